"""Memory: the peak of commands on a piece of work and on four times as much.

`ingest` of many logs of one hand, `train` in parts, `evaluate` and `match --data`: each command is a process of its
own, whose peak resident memory the system tells when it ends. What follows the work alone has the ratio 4, what is
bounded 1; start-up and compiled code are in both. Logs are played here, by the agent @calibrated:70,70 against @call.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks._figures import Figure, Settings
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.formats.acpc import Header
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError

GAME = builtin("holdem.limit.2p.reverse_blinds")
LOGS, HANDS, PART_ROWS = 10_000, 40_000, 20_000
QUICK_LOGS, QUICK_HANDS, QUICK_PART_ROWS = 400, 1_000, 500
WATCHER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
TRAIN = """
import sys
from pipeline.features.patterns import find_pattern
from pipeline.training.config import TrainConfig
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles
data, out, rows = sys.argv[1:]
config = TrainConfig(part_rows=int(rows), max_iterations=5, workers=2)
train_bundles(Request(data, out, ("calibrated-70-70",), ("flop",), ("l-bfgs",), find_pattern("thesis"), config=config))
"""


def run(settings: Settings) -> list[Figure]:
    """Return the peak memory of commands at four times the work beside that of the work."""
    quick = settings.quick
    logs, hands, part_rows = (QUICK_LOGS, QUICK_HANDS, QUICK_PART_ROWS) if quick else (LOGS, HANDS, PART_ROWS)
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as folder:
        many, played = ([Path(folder) / f"{name}-{times}" for times in (1, 4)] for name in ("many", "played"))
        for times, one_hand, match in zip((1, 4), many, played, strict=True):
            _play(match, hands * times)
            _split(match, one_hand, logs * times)
        rows = [Path(folder) / f"rows-{times}" for times in (1, 4)]
        for logs_of_match, out in zip(played, rows, strict=True):
            ingest([logs_of_match], out, options(strength=False))
        bundle, program = Path(folder) / "bundle", [sys.executable, "-m", "pipeline"]
        _peak([sys.executable, "-c", TRAIN, str(rows[0]), str(bundle), str(part_rows)])
        commands: dict[str, Callable[[int], list[str]]] = {
            f"ingest, {logs:,} logs of a hand": lambda i: [
                *(*program, "ingest", str(many[i]), "--no-strength", "--out"),
                str(Path(folder) / f"ingested-{i}"),
            ],
            f"train in parts of {part_rows:,} rows, {hands:,} hands": lambda i: [
                *(sys.executable, "-c", TRAIN, str(rows[i])),
                *(str(Path(folder) / f"trained-{i}"), str(part_rows)),
            ],
            f"evaluate, {hands:,} hands": lambda i: [*program, "evaluate", str(bundle), "--data", str(rows[i])],
            f"match --data, {hands:,} hands": lambda i: [*program, "match", "--data", str(rows[i])],
        }
        figures = []
        for name, command in commands.items():
            once, fourfold = _peak(command(0)), _peak(command(1))
            figures.append(
                Figure(f"memory: {name}, times 4", fourfold, "MB", "of the work", once, fourfold / once, "below 4x")
            )
        return figures


def _play(folder: Path, hands: int) -> None:
    """Play a match and write its log."""
    folder.mkdir()
    agents = [resolve(name, GAME) for name in ("@calibrated:70,70", "@call")]
    play_match(agents, GAME, hands=hands, seed=1, log=folder / "match")


def _split(played: Path, out: Path, count: int) -> None:
    """Write hands of a match as logs of one hand."""
    text = "".join(log.read_text(encoding="utf-8") for log in sorted(played.glob("*.log")))
    lines = [line for line in text.splitlines() if line.startswith("STATE:")]
    for number in range(count):
        folder = out / f"{number // 1000:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        header = Header("one", f"{GAME.name}.game", 1, number)
        (folder / f"{number:07d}.log").write_text(f"{header}\n{lines[number % len(lines)]}\n", encoding="utf-8")


def _peak(command: list[str]) -> float:
    """Run a command; return its peak resident memory in MB."""
    # a child begins with the peak of the process that it is forked from, so a small one starts it
    done = subprocess.run([sys.executable, "-c", WATCHER, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PipelineError(f"{' '.join(command[:4])} ... ended with {done.returncode}: {done.stderr[-2000:]}")
    return int(done.stdout) / (1e6 if sys.platform == "darwin" else 1e3)
