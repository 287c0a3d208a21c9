"""Imitating people and Pluribus: log-loss of max-ent beside frequencies by betting, by ten-fold cross-validation.

The hands are those of `phh/handhq_sample.tar.xz` and `phh/pluribus.tar.xz` in the folder of corpora. Deals are divided
into ten folds by their hash; the model that a fold is scored by is trained on eight of the others and stopped by the
ninth; all streets are pooled. The baseline counts what follows each betting of a street in the same training rows; for
a betting it never saw it answers with the frequencies of the whole street. The interval is 95 % of the paired
difference, deals being the unit. Of people the figures are also those of each site, and of players of few hands
(see `_people`). The amounts of raises are learned from the deals that `ingest` does not hold out and measured on those
that it does, beside the fixed sizes of the labels. What is lost where cards are seen only at showdowns is
measured on Pluribus and on an agent of ours, all of whose cards are known (see `_showdowns`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._figures import Figure, bench_data
from benchmarks._people import player_figures
from benchmarks._showdowns import agent_rows, showdown_figures
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.raises import raise_pieces
from pipeline.evaluation.sizing import SIZE_MEASURES, raise_scores
from pipeline.features.patterns import Pattern, find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.poker.rules import ALL_IN, RAISE
from pipeline.runtime.parallel import Workers
from pipeline.training.sizing import fit_history_sizes, history_raises
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
            figures += _amounts(Path(scratch) / "rows", agent)
            figures += (
                showdown_figures(Path(scratch) / "rows", agent) if agent else player_figures(Path(scratch) / "rows")
            )
    with tempfile.TemporaryDirectory() as scratch:
        figures += showdown_figures(*agent_rows(Path(scratch)))
    return figures


def _compared(rows: Path, agent: str | None, pattern: Pattern, target: str) -> list[Figure]:
    """Log-loss of a pattern and of the baseline on everybody's, or one agent's, decisions."""
    losses, deals = [], []
    for street in STREETS:
        found = load_decisions(rows, [agent] if agent else None, [street])
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


def _amounts(rows: Path, agent: str | None) -> list[Figure]:
    """How close learned amounts of raises are to those bet on held-out deals, all-in aside, in pots after calling."""
    pieces = list(raise_pieces(rows, [agent] if agent else None))
    sizes = fit_history_sizes(pieces[0][0].game, *history_raises(pieces))
    if sizes is None:
        return []
    learned, fixed = [], []
    for piece, by in pieces:
        at = np.flatnonzero((piece.action >= RAISE) & (piece.action < ALL_IN) & piece.validation & (by > 0))
        raised, labels, chips = piece.rows[at], piece.action[at].astype(np.int64), by[at]
        learned.append(raise_scores(sizes.amounts(raised, labels, whole_mix=True), raised, labels, chips))
        fixed.append(raise_scores(None, raised, labels, chips))
    ours, theirs = np.concatenate(learned, axis=1), np.concatenate(fixed, axis=1)
    who = f"{agent or 'people'}, {ours.shape[1]:,} held-out raises"
    figures = []
    for name, unit in (("size_crps", "pots"), ("size_hit", "share")):
        at_name = SIZE_MEASURES.index(name)
        own, other = float(ours[at_name].mean()), float(theirs[at_name].mean())
        figures.append(Figure(f"{who}: {name}", own, unit, "fixed sizes of labels", other, own / other))
    return figures


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
