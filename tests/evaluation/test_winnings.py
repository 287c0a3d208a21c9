"""Scores of datasets are computed from pieces: the same figures whatever the pieces, and memory for arrays alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.arena.variance import estimator
from pipeline.evaluation import winnings
from pipeline.evaluation.winnings import score_dataset
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import builtin

NAMES = ("holdem.limit.2p.reverse_blinds", "holdem.nolimit.2p.reverse_blinds")


def dataset(folder: Path, hands: int, names: tuple[str, ...] = NAMES) -> Path:
    for number, name in enumerate(names):
        game = builtin(name)
        (folder / name).mkdir(parents=True)
        for pair in (("@random", "@call"), ("@call", "@equity")):
            agents = [resolve(agent, game) for agent in pair]
            play_match(agents, game, hands=hands, seed=number, log=folder / name / pair[0][1:])
    ingest([folder / name for name in names], folder / "rows", options(strength=False))
    return folder / "rows"


def test_scores_do_not_depend_on_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = dataset(tmp_path, 300)
    whole = score_dataset(rows)
    assert {(result.game, result.agent) for result in whole} >= {(NAMES[0], "equity"), (NAMES[1], "random")}
    assert all(result.winnings.adjusted is not None for result in whole)
    monkeypatch.setattr(winnings, "BATCH_HANDS", 41)
    monkeypatch.setattr(estimator, "PIECE_HANDS", 70)
    assert score_dataset(rows) == whole


MEASURE = """
import gc, sys, tracemalloc
from pathlib import Path
from pipeline.evaluation import winnings
from pipeline.poker.game import builtin
winnings.BATCH_HANDS = 500
game = builtin(sys.argv[1])
for folder in sys.argv[2:]:
    winnings.dataset_records(Path(folder), game)
    gc.collect()
    tracemalloc.start()
    records, _ = winnings.dataset_records(Path(folder), game)
    print(len(records), tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""


def test_a_hand_that_is_scored_takes_less_than_two_hundred_bytes(tmp_path: Path) -> None:
    folders = [dataset(tmp_path / str(hands), hands, NAMES[:1]) for hands in (2_000, 10_000)]
    # a process of its own: memory of other tests, freed or taken meanwhile, would be counted too
    words = [sys.executable, "-c", MEASURE, NAMES[0], *map(str, folders)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    (few, small), (many, large) = (map(int, line.split()) for line in shown.splitlines())
    assert many == 5 * few
    assert (large - small) / (many - few) < 200
