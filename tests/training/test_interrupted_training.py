"""Training that is killed or interrupted by real signals, at points that the test chooses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.poker.game import find_game
from pipeline.runtime.errors import PipelineError

CHILD = """
import sys
from pipeline.features.patterns import find_pattern
from pipeline.runtime.progress import Callbacks
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles
from pipeline.training.config import TrainConfig

data, out, kind, street, number = sys.argv[1:]

def wait_here():
    print("here", flush=True)
    sys.stdin.readline()

def watch(scope, algorithm, step):
    print("step", scope, step.iteration, flush=True)
    if (kind, street, number) == ("step", scope, str(step.iteration)):
        wait_here()

def stage(scope, name):
    print("stage", scope, name, flush=True)
    if (kind, street, number) == ("stage", scope, name):
        wait_here()
    return lambda done, total: None

config = TrainConfig(max_iterations=8, patience=0, checkpoint_seconds=0)
request = Request(data, out, ("random",), algorithms=("rprop",), pattern=find_pattern("thesis"), config=config)
train_bundles(request, Callbacks(watch, stage))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    game = find_game("holdem.limit.2p.reverse_blinds")
    agents = [resolve("@chump:maniac", game), resolve("@random", game)]
    match = play_match(agents, game, hands=300, seed=3, workers=1, log=folder / "m")
    ingest(match.logs, folder / "rows", options(strength=False))
    return folder / "rows"


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "b"
    trained(data, out)
    return contents(out)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def child(data: Path, out: Path, *stop: object) -> subprocess.Popen[str]:
    words = [str(word) for word in (data, out, *(stop or ("", "", "")))]
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", CHILD, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def trained(data: Path, out: Path) -> list[str]:
    """Train to the end; the lines it printed."""
    said, errors = child(data, out).communicate()
    assert "Error" not in errors, errors
    return said.splitlines()


def stopped(data: Path, out: Path, number: int, *stop: object) -> str:
    """Train up to a point and send a signal there; what was printed on stderr."""
    process = child(data, out, *stop)
    for line in process.stdout:
        if line == "here\n":
            process.send_signal(number)
            break
    _, errors = process.communicate()
    assert process.returncode not in (0, None), errors
    return errors


POINTS = [
    (("step", "flop", 3), "step flop 3", None),
    (("step", "turn", 5), "step turn 5", ("turn", "river")),
    (("stage", "turn", "reading rows"), "step turn 1", ("turn", "river")),
    (("stage", "river", "encoding features"), "step river 1", ("river",)),
    (("stage", "turn", "writing"), "step river 1", ("turn", "river")),
    (("stage", "all", "writing"), None, ("river",)),
]


@pytest.mark.parametrize(("point", "first", "missing"), POINTS)
def test_a_killed_training_goes_on_where_it_was_and_ends_with_the_same_bytes(
    point, first, missing, data, undisturbed, tmp_path
):
    out = tmp_path / "b"
    stopped(data, out, signal.SIGKILL, *point)
    assert (load_bundle(out).missing if out.exists() else None) == missing
    said = [line for line in trained(data, out) if line.startswith("step")]
    assert (said[0] if said else None) == first
    assert contents(out) == undisturbed
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("point", "first", "parts"),
    [
        (("step", "turn", 5), "step turn 6", ["chart", "flop", "turn"]),
        (("stage", "turn", "encoding features"), "step turn 1", ["chart", "flop"]),
        (("stage", "river", "sorting rows"), "step river 1", ["chart", "flop", "turn"]),
        (("step", "river", 3), "step river 4", ["chart", "flop", "turn", "river"]),
    ],
)
def test_ctrl_c_leaves_a_bundle_that_says_what_it_lacks_and_goes_on(point, first, parts, data, undisturbed, tmp_path):
    out = tmp_path / "b"
    if point[0] == "step":
        process = child(data, out, *point)
        for line in process.stdout:
            if line == "here\n":
                process.send_signal(signal.SIGINT)
                break
        process.communicate()
    else:
        assert "KeyboardInterrupt" in stopped(data, out, signal.SIGINT, *point)
    found = load_bundle(out)
    assert [part.name for part in found.parts] == parts
    assert found.missing == (("river",) if point[1] == "river" else ("turn", "river"))
    with pytest.raises(PipelineError, match=f"before the end of {', '.join(found.missing)}; run the same"):
        resolve(str(out), find_game("holdem.limit.2p.reverse_blinds"))
    said = [line for line in trained(data, out) if line.startswith("step")]
    assert said[0] == first
    assert contents(out) == undisturbed


def test_an_interrupted_retraining_leaves_the_whole_bundle_that_was_there(data, undisturbed, tmp_path):
    out = tmp_path / "b"
    trained(data, out)
    stopped(data, out, signal.SIGINT, "stage", "turn", "encoding features")
    assert contents(out) == undisturbed


def test_ctrl_c_in_the_command_ends_it_without_a_traceback(data, tmp_path):
    """An endless training: the signal meets whatever the program is doing just then."""
    words = ["train", "--data", data, "--agent", "random", "--pattern", "thesis", "--algorithm", "rprop", "--out",
             tmp_path / "b", "--max-iterations", 10**6, "--tolerance", 0, "--patience", 0, "--verbose"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", *map(str, words)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("flop rprop   20"):
            process.send_signal(signal.SIGINT)
            break
    output, rest = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert "SystemError" not in rest
    assert "the same command goes on" in rest
    assert output.startswith("street")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["missing"] == ["flop", "turn", "river"]
    assert any("encoding features" in line for line in said)
