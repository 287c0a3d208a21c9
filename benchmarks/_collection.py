"""A whole collection of hand histories in one go: hands a second, peak memory, and what was refused.

The environment variable PIPELINE_BENCH_COLLECTION names a folder of histories, such as `data/handhq` of the public
collection (16 GB, 21.6 million hands). Rows (10 GB of it) go to the folder for temporary files, which TMPDIR
names. It is measured apart from the sample because what grows with the number of files and players shows only there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._figures import Figure
from benchmarks._watching import started, watch
from pipeline.runtime.errors import PipelineError

NAMED = "PIPELINE_BENCH_COLLECTION"
PAUSE = 0.1
"""seconds between two looks at the memory: a look takes milliseconds, and the run takes a quarter of an hour"""


def collection_figures() -> list[Figure]:
    """The figures; none without a collection."""
    named = os.environ.get(NAMED)
    if not named:
        print(f"skipped: a whole collection of hand histories ({NAMED} names its folder)", file=sys.stderr)
        return []
    if not Path(named).is_dir():
        raise PipelineError(f"{NAMED} names {named}, which is not a folder")
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "said.json").open("w+b") as said:
        begin = time.perf_counter()
        memory = watch(started([Path(named)], Path(scratch) / "rows", said=said), PAUSE)
        seconds = time.perf_counter() - begin
        said.seek(0)
        summary = json.load(said)
        manifest = (Path(scratch) / "rows" / "manifest.json").stat().st_size
    hands, rejected = summary["hands"], summary["rejected"]
    return [
        Figure("a whole collection, 2 workers", hands / seconds, "hands/s"),
        Figure("  hands taken", hands, "hands", "of all", hands + rejected, hands / (hands + rejected)),
        *(Figure(f"  refused, {reason[:40]}", n, "hands") for reason, n in summary["rejected_by_reason"].items()),
        Figure("  peak memory (PSS)", memory, "MB", target="under 1500"),
        Figure("  its manifest", manifest / 1e6, "MB"),
    ]
