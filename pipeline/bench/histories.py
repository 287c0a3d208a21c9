"""Imitating people and Pluribus: log-loss of max-ent beside frequencies by betting, by ten-fold cross-validation.

The hands are those of `phh/handhq_sample.tar.xz` and `phh/pluribus.tar.xz` in the folder of corpora. Deals are divided
into ten folds by their hash; the model that a fold is scored by is trained on eight of the others and stopped by the
ninth; all streets are pooled. The baseline counts what follows each betting of a street in the same training rows; for
a betting it never saw it answers with the frequencies of the whole street. The interval is 95 % of the paired
difference, deals being the unit. Of people the figures are also those of each site, and of players of few hands
(see `_people`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.bench import Figure, bench_data
from pipeline.bench._people import player_figures
from pipeline.dataset import Decisions, load
from pipeline.decisions import STREETS
from pipeline.features.patterns import Pattern, find_pattern
from pipeline.ingest import ingest, options
from pipeline.measures import LEAST_PROBABILITY
from pipeline.parallel import Workers
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

FOLDS = 10


def run() -> list[Figure]:
    """All figures; those whose archive is not there are skipped."""
    figures = []
    for name, agent, pattern, target in (
        ("handhq_sample.tar.xz", None, "betting", "at least 15 % lower"),
        ("pluribus.tar.xz", "Pluribus", "tables", "at least 20 % lower"),
    ):
        data = bench_data()
        if data is None or not (data / "phh" / name).exists():
            print(f"skipped: no phh/{name} in the folder of corpora", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            ingest([data / "phh" / name], Path(scratch) / "rows", options(strength=False))
            figures += _compared(Path(scratch) / "rows", agent, find_pattern(pattern), target)
            figures += [] if agent else player_figures(Path(scratch) / "rows")
    return figures


def _compared(rows: Path, agent: str | None, pattern: Pattern, target: str) -> list[Figure]:
    """Log-loss of a pattern and of the baseline on everybody's, or one agent's, decisions."""
    losses, deals = [], []
    for street in STREETS:
        found = load(rows, [agent] if agent else None, [street])
        losses.append(_street(found, STREETS.index(street), pattern))
        deals.append(found.deal)
    loss, deal = np.concatenate(losses), np.concatenate(deals)
    ours, theirs = loss.mean(axis=0)
    unit, numbers = np.unique(deal, return_inverse=True)
    sums = np.zeros(len(unit))
    np.add.at(sums, numbers, loss[:, 1] - loss[:, 0])
    width = 1.96 * sums.std() * np.sqrt(len(unit)) / len(loss)
    who = agent or "people, betting alone"
    return [
        Figure(f"{who}: log-loss, {FOLDS}-fold", ours, "nats", "frequency", theirs, ours / theirs, target),
        Figure(f"{who}: lower by (± {100 * width / theirs:.2f})", 100 * (1 - ours / theirs), "%"),
    ]


def _street(found: Decisions, street: int, pattern: Pattern) -> NDArray[np.float64]:
    """(rows, 2) log-loss of the pattern's model and of the baseline on each decision, by models that did not see it."""
    fold = (found.deal // np.uint64(10) % np.uint64(FOLDS)).astype(np.int64)
    out = np.zeros((len(found), 2))

    def examples(chosen: NDArray[np.bool_]) -> Examples:
        return Examples(found.rows[chosen], found.action[chosen], found.hand[chosen])

    for test in range(FOLDS):
        held, inside = fold == test, fold == (test + 1) % FOLDS
        task = Task(
            examples(~held & ~inside),
            examples(inside),
            pattern,
            tuple(found.game.labels),
            (street,),
            workers=Workers(2),
        )
        for column, algorithm in enumerate(("l-bfgs", "frequency")):
            chances = train_model(algorithm, task).model.predict(found.rows[held])
            taken = chances[np.arange(len(chances)), found.action[held]]
            out[held, column] = -np.log(np.maximum(taken, LEAST_PROBABILITY))
    return out
