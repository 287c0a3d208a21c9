"""Stages of a bench that takes long: each is kept on disk, so that a run that was stopped goes on where it was.

The folder is named by the environment variable PIPELINE_BENCH_SCRATCH, else it lies under the temporary directory.
Remove it to measure everything again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._figures import Figure
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.runtime.files import replacing
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles


def scratch_folder(topic: str) -> Path:
    """Where the stages of a topic are kept."""
    named = os.environ.get("PIPELINE_BENCH_SCRATCH")
    return (Path(named) if named else Path(tempfile.gettempdir()) / "pipeline-bench") / topic


def kept_figures(file: Path, measure: Callable[[], Sequence[Figure]]) -> list[Figure]:
    """The figures of a stage: read from `file`, else measured and written there."""
    if not file.is_file():
        found = [figure._asdict() for figure in measure()]
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as beside:
            beside.write_text(json.dumps(found, indent=1))
    return [Figure(**one) for one in json.loads(file.read_text())]


def kept_rows(out: Path, logs: Callable[[], Sequence[Path]], *, agents: Sequence[str], validation: str = "") -> Path:
    """A dataset of some agents; `logs` is called for its files where it is not there yet."""
    if not (out / "manifest.json").is_file():
        ingest(list(logs()), out, options(agents=list(agents), validation=[validation] if validation else []))
    return out


def kept_bundle(request: Request) -> Path:
    """A bundle; a training that was stopped goes on."""
    if not (request.out / "manifest.json").is_file() or load_bundle(request.out).missing:
        train_bundles(request)
    return request.out
