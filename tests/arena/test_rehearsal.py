"""What a match needs is compiled before it begins, and nobody from outside is asked for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.agents.guests import GuestLearner
from pipeline.agents.names import resolve
from pipeline.arena import match
from pipeline.arena.match import rehearse
from pipeline.poker.game import builtin

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from pathlib import Path
from pipeline.runtime import kernels
from pipeline.agents.names import resolve
from pipeline.arena import match
from pipeline.poker.game import builtin

def loaded():
    return {(name, str(types)) for name, made in kernels._kernels.items() for types in made.overloads}

folder, game = Path(sys.argv[1]), builtin(sys.argv[2])
agents = [resolve(text, game) for text in sys.argv[3:]]
kept, match.is_compiled = kernels.is_compiled, lambda module: False
match.rehearse(agents, game, adjusted=True, logged=True)
before = loaded()
match.play_match(agents, game, hands=2000, adjusted=True, log=folder / "log")
print(len(before), *sorted(loaded() - before))
match.is_compiled, match.prepare = kept, lambda work, modules: print("rehearses again for", *modules)
match.rehearse(agents, game, adjusted=True, logged=True)
"""


@pytest.mark.parametrize(
    ("game", "agents"),
    [
        ("holdem.limit.2p.reverse_blinds", ["models/teacher", "@equity"]),
        ("holdem.nolimit.2p.reverse_blinds", ["@calibrated:50,50", "@bearl"]),
    ],
)
def test_a_match_calls_nothing_that_its_rehearsal_did_not(game: str, agents: list[str], tmp_path: Path) -> None:
    """Compiled functions are loaded, or compiled, at their first call; a second match finds that all are kept."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path, game, *agents], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    (count,) = done.stdout.split()
    assert int(count) > 20


class Diary:
    """A bot that writes down how often it is called."""

    interval = 10
    called = 0

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        self.called += 1
        return np.tile([0.0, 1.0, 0.0], (len(rows), 1))

    def begin(self) -> None:
        self.called += 1

    def seen(self, hands: object) -> None:
        self.called += 1


def test_bots_from_outside_do_not_notice_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    kuhn = builtin("kuhn.limit.2p")
    bot = Diary()
    prepared: list[str] = []

    def prepare(work: object, modules: list[str]) -> None:
        prepared.extend(modules)
        assert callable(work)
        work()

    monkeypatch.setattr(match, "is_compiled", lambda module: False)
    monkeypatch.setattr(match, "prepare", prepare)
    rehearse([GuestLearner("diary", kuhn, "python:diary:Diary", bot), resolve("@call", kuhn)], kuhn)
    assert prepared == ["pipeline.arena.lockstep"]
    assert bot.called == 0
