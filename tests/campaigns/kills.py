"""Commands killed while they change the disk, and run again: in the end the bytes are those of an undisturbed run.

A command runs in a process of its own, forked from this one so that nothing is imported twice. It is killed either
just before the N-th call that changes the disk (Python's audit events: files opened for writing, renamed, removed,
folders made or removed, two folders exchanged) or in the middle of a write, wherever that is, by a limit on the size
of files: the system ends the process at that byte. Half of the kills meet an empty place, half one where an older
result lies. Then the same command runs again, and every file below its folder is compared with that of a run which
nobody disturbed: nothing missing, nothing different, nothing left behind.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from click.testing import CliRunner

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"}
EXCHANGES = {"renameat2", "renamex_np"}
MAKERS: dict[str, tuple[str, str]] = {
    "ingest": ("ingest ../logs --out out/rows", "ingest ../logs/equity.call.0.0.log --out out/rows"),
    "train": (
        "train --data ../rows --agent equity --pattern thesis --algorithm rprop --max-iterations 4 --out out/b",
        "train --data ../rows --agent equity --pattern thesis --algorithm rprop --max-iterations 2 --out out/b",
    ),
    "solve": ("solve holdem --sizes 4,4,4 --deals 20000 --seed 5 --workers 1 --out out/teacher", ""),
    "cache": ("cache build", ""),
    "sample": (
        "match @random @call --hands 40 --seed 2 --sample out/logs",
        "match @random @call --hands 20 --seed 3 --sample out/logs",
    ),
    "report": (
        "report --data ../rows ../b --out out/page.html",
        "report --data ../rows ../b --agent equity --also cross --out out/page.html",
    ),
    "ship": ("ship ../b --out out/bot", "ship ../older --out out/bot"),
    "counter": (
        "counter --against @call --game kuhn.limit.2p --method best --out out/c",
        "counter --against @raise --game kuhn.limit.2p --method best --out out/c",
    ),
    "export": (
        "export --data ../rows --format phh --out out/hands.phhs",
        "export --data ../rows --format acpc --out out/hands.phhs",
    ),
    "ship a zip file": ("ship ../b --out out/bot.zip", "ship ../older --out out/bot.zip"),
}
"""each command, and one whose result may lie there before"""


class Ended(NamedTuple):
    """How a forked command ended."""

    status: int
    """of the process, negative for a signal"""
    changes: int
    said: str


@cache
def buckets() -> Any:
    """The buckets of the small strategy: a minute's work that changes nothing on the disk, so it is done once."""
    from pipeline.poker.strength.board_tables import ensure_tables
    from pipeline.poker.strength.hand_clusters import load_clusters
    from pipeline.solving.buckets import make_buckets

    ensure_tables()
    return make_buckets(load_clusters(1, 4, 5), load_clusters(2, 4, 5), 4)


def be_quick() -> None:
    """Take what is only computed from what is there already, and let the solver write a checkpoint after every step."""
    from pipeline.poker.strength import board_tables
    from pipeline.poker.strength.board_tables import table_folder
    from pipeline.solving import teacher

    source, made = table_folder(), buckets()
    board_tables.river_strengths = lambda progress: np.empty(0, np.uint16)
    board_tables._build = lambda street, rivers, progress: np.load(source / f"{board_tables.NAMES[street]}.npy")
    teacher.make_buckets = lambda *_: made
    teacher.SAVE_EVERY, teacher.COMPARED_DEALS = 0.0, {2: 500, 3: 500}


def run(words: str, work: Path, *, at: int = 0, size: int = 0) -> Ended:
    """Run a command in `work`; killed before change number `at`, or when a file exceeds `size` bytes (0: never)."""
    said, counted = work.parent / "said.txt", work.parent / "changes.txt"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _in_child(words, work, at, size, said, counted)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, waited = os.waitpid(child, 0)
    changes = int(counted.read_text()) if counted.exists() else 0
    counted.unlink(missing_ok=True)
    return Ended(os.waitstatus_to_exitcode(waited), changes, said.read_text(errors="replace"))


def _in_child(words: str, work: Path, at: int, size: int, said: Path, counted: Path) -> int:
    from pipeline.cli.main import main

    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.chdir(work)
    seen, inside = 0, str(work.resolve())

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event == "open":
            writes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) > 0
            if not writes or isinstance(arguments[0], int) or arguments[0] is None:
                return
        elif event == "ctypes.dlsym":
            if arguments[1] not in EXCHANGES:
                return
        elif event not in CHANGES:
            return
        named = arguments[0] if event != "ctypes.dlsym" else ""
        if not str(Path(inside, os.fsdecode(named))).startswith(inside):
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    if words.startswith(("cache", "solve")):
        be_quick()
    if words.startswith("ingest"):  # a manifest in pieces, where the older dataset has a single file
        from pipeline.ingestion import commit

        commit.LISTED_LOGS = 3
    if words.startswith("cache"):
        os.environ["PIPELINE_CACHE"] = str(work / "out")
    if size:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    sys.addaudithook(watch)
    status = 0
    try:
        main(words.split())
    except SystemExit as end:
        status = int(end.code or 0)
    if not size:
        counted.write_text(str(seen))
    return status


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; of the notes beside kept arrays only what does not depend on the time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            found[f"{name}/"] = b""
        elif path.suffix == ".json" and path.with_suffix(".npy").exists():
            note = json.loads(path.read_text())
            found[name] = f"{note['version']} {note['sha256']}".encode()
        else:
            found[name] = path.read_bytes()
    return found


def prepare(base: Path) -> None:
    """The logs, rows and bundles that the commands work on; made in this process, which then knows the kernels."""
    from pipeline.cli.main import group

    train = f"train --data {base}/rows --agent equity --pattern thesis --algorithm rprop"
    for words in (
        f"match @equity @call --hands 200 --sample {base}/logs",
        f"ingest {base}/logs --out {base}/rows",
        f"{train} --max-iterations 3 --out {base}/b",
        f"{train} --max-iterations 1 --out {base}/older",
        f"report --data {base}/rows {base}/b --out {base}/page.html",
    ):
        found = CliRunner().invoke(group, words.split(), catch_exceptions=False)
        assert found.exit_code == 0, f"{words}\n{found.output}"


class Undisturbed(NamedTuple):
    """What a command leaves when nobody disturbs it."""

    changes: int
    sizes: list[int]
    files: dict[str, bytes]


def undisturbed(words: str, before: str, base: Path) -> Undisturbed:
    """Run a command to its end, after another one where `before` names it."""
    work = base / "undisturbed"
    (work / "out").mkdir(parents=True)
    for command in filter(None, (before, words)):
        ended = run(command, work)
        assert ended.status == 0, f"{command}\n{ended.said}"
    files = contents(work / "out")
    shutil.rmtree(work)
    return Undisturbed(ended.changes, sorted({len(data) for data in files.values() if data}), files)


class Case(NamedTuple):
    """A command, what lies in its place before, and what it leaves there."""

    name: str
    words: str
    before: str
    right: Undisturbed


def trial(case: Case, luck: random.Random, base: Path, at: int) -> str:
    """Kill a command at change `at` (0: in the middle of a write), run it again, compare; how the first run ended."""
    words, right = case.words, case.right
    work = base / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "out").mkdir(parents=True)
    if case.before:
        assert run(case.before, work).status == 0
    size = 0 if at else max(1, luck.choice(right.sizes) - luck.randint(1, max(1, min(right.sizes))))
    killed = run(words, work, at=at, size=size)
    where = f"{words!r} killed at {f'change {at}' if at else f'{size} bytes'}"
    if killed.status not in (-signal.SIGKILL, -signal.SIGXFSZ):
        assert killed.status in (0, 1), f"{where}: ended with {killed.status}\n{killed.said}"
        assert "Traceback" not in killed.said, f"{where}\n{killed.said}"
    again = run(words, work)
    assert again.status == 0, f"{where}: the second run ended with {again.status}\n{again.said}"
    found = contents(work / "out")
    wrong = sorted(name for name in found.keys() | right.files.keys() if found.get(name) != right.files.get(name))
    assert not wrong, f"{where}: {len(wrong)} files differ, the first is {wrong[0]}; they are in {work}"
    return {0: "ended before the kill, same bytes", 1: "refused"}.get(killed.status, "killed, same bytes after")


def plan(cases: list[Case], count: int, luck: random.Random) -> list[tuple[Case, int]]:
    """Whom to kill where: at `count` of all changes of the disk, or at all; a fifth, and what remains, in writes."""
    changes = [(case, at) for case in cases for at in range(1, case.right.changes + 1)]
    chosen = sorted(luck.sample(range(len(changes)), min(len(changes), count - count // 5)))
    writes = [(luck.choice(cases), 0) for _ in range(count - len(chosen))]
    return [changes[i] for i in chosen] + sorted(writes, key=lambda one: one[0].name)


def campaign(
    count: int, seed: int, only: Sequence[str] = (), note: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Kill commands `count` times in all; how many of each were killed and came to the same bytes."""
    luck, outcomes = random.Random(seed), Counter[str]()
    base = Path(tempfile.mkdtemp(prefix="kills-"))
    prepare(base)
    if not only or "solve" in only:
        buckets()
    cases = [
        Case(name, words, first, undisturbed(words, first, base))
        for name, (words, before) in MAKERS.items()
        if not only or name in only
        for first in dict.fromkeys(("", before))
    ]
    for case, at in plan(cases, count, luck):
        where = f"change {at} of {case.right.changes}" if at else "a write"
        note(f"{case.name} {'over an older result' if case.before else 'at an empty place'}, killed at {where}")
        outcomes[f"{case.name}: {trial(case, luck, base, at)}"] += 1
    shutil.rmtree(base)
    return dict(sorted(outcomes.items()))
