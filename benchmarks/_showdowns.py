"""Cards seen only at showdowns: what a model with cards loses when it is trained on such hands alone, and what helps.

In: rows whose cards are all known, of Pluribus and of an agent of ours in heads-up no-limit. A hand of a player counts
as shown where it went to a showdown and the player had not folded; the cards of the others are hidden from training.
Deals are divided into ten folds, as in `histories`; every model is scored on all decisions of the deals it did not see,
with their true cards: betting alone, cards of shown hands alone, cards with the hidden ones drawn
(`training.hidden`), and all cards as if nothing were hidden, which is what nobody can have.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._figures import Figure
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.opening import hand_batches
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import Model
from pipeline.models.measures import LEAST_PROBABILITY
from pipeline.poker.game import builtin
from pipeline.runtime.numeric import hash_name
from pipeline.runtime.parallel import Workers
from pipeline.training.hidden import HandRows, draw_hidden, with_cards
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

FOLDS = 10
CARDS, BETTING = "tables", "betting"
WAYS = ("betting alone", "shown hands alone", "hidden cards drawn", "all cards known")
OURS, OTHER, HANDS = "@calibrated:50,70", "@bearl", 6_000
GAME = "holdem.nolimit.2p.reverse_blinds"

Mask = NDArray[np.bool_]


class Hands(NamedTuple):
    """Decisions by street, and the hands of players that they belong to."""

    streets: list[Decisions]
    rows: list[HandRows]
    shown: Mask
    """(hands,)"""
    fold: NDArray[np.int64]
    """(hands,)"""


def agent_rows(folder: Path) -> tuple[Path, str]:
    """Rows of a match of one of our agents, and its name in them."""
    game = builtin(GAME)
    match = play_match([resolve(OURS, game), resolve(OTHER, game)], game, hands=HANDS, seed=16, log=folder / "match")
    ingest(match.logs, folder / "ours", options(agents=[match.names[0]], strength=False))
    return folder / "ours", match.names[0]


def _hands(rows: Path, agent: str) -> Hands:
    """The decisions of an agent, with its hands numbered over all streets."""
    streets = [load_decisions(rows, [agent], [street]) for street in STREETS]
    keys = [np.stack([_number_files(found), found.line.astype(np.int64)], axis=1) for found in streets]
    unique, numbers = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    parts = np.split(numbers.reshape(-1), np.cumsum([len(found) for found in streets])[:-1])
    folded, deal = np.zeros(len(unique), np.bool_), np.zeros(len(unique), np.uint64)
    for found, hand in zip(streets, parts, strict=True):
        folded[hand[found.action == 0]] = True
        deal[hand] = found.deal
    over = _showdowns(rows)
    shown = np.array([over[file, line] for file, line in unique.tolist()]) & ~folded
    both = [HandRows(found.rows, found.action, hand) for found, hand in zip(streets, parts, strict=True)]
    return Hands(streets, both, shown, (deal // np.uint64(10) % np.uint64(FOLDS)).astype(np.int64))


def _number_files(found: Decisions) -> NDArray[np.int64]:
    """A number for each row's file that is the same on all streets."""
    return np.array([hash_name(name) for name in found.files], np.uint64).view(np.int64)[found.file]


def _showdowns(rows: Path) -> dict[tuple[int, int], bool]:
    """Whether each hand was decided by cards, by file and line."""
    found: dict[tuple[int, int], bool] = {}
    for batch in hand_batches(rows, ["file", "line", "showdown"]):
        files = batch.column("file")
        numbers = {name: int(np.uint64(hash_name(name)).view(np.int64)) for name in set(files.to_pylist())}
        names = [numbers[name] for name in files.to_pylist()]
        found |= {
            (name, line): over
            for name, line, over in zip(
                names, batch.column("line").to_pylist(), batch.column("showdown").to_pylist(), strict=True
            )
        }
    return found


def _fit(
    hands: Hands, street: int, pattern: str, train: Mask, held: Mask, versions: list[NDArray[np.void]] | None = None
) -> Model:
    """A street's model of the hands of a mask, stopped by those of another; `versions` of its rows count in shares."""
    own = hands.rows[street]
    versions = [own.rows] if versions is None else versions
    times = len(versions)

    def examples(chosen: Mask) -> Examples:
        at = np.flatnonzero(chosen[own.hand])
        rows = np.concatenate([version[at] for version in versions])
        return Examples(rows, np.tile(own.action[at], times), weights=np.full(times * len(at), 1 / times))

    labels = tuple(hands.streets[0].game.labels)
    task = Task(examples(train), examples(held), find_pattern(pattern), labels, (street,), workers=Workers(2))
    return train_model("l-bfgs", task).model


def _fold_losses(hands: Hands, test: int) -> list[NDArray[np.float64]]:
    """By street, (rows of the fold, ways) log-loss."""
    rules = hands.streets[0].game.rules
    away, inside = hands.fold == test, hands.fold == (test + 1) % FOLDS
    train = ~away & ~inside
    kept = np.flatnonzero(~away)
    number = np.full(len(away), -1)
    number[kept] = np.arange(len(kept))
    mine = Hands(hands.streets, [_some(one, number) for one in hands.rows], hands.shown[kept], hands.fold[kept])

    def fit(street: int, rows: NDArray[np.void]) -> Model:
        return _fit(mine, street, CARDS, train[kept], inside[kept], [rows])

    draws = draw_hidden(mine.rows, mine.shown, rules, fit)
    losses = []
    for street, own in enumerate(hands.rows):
        models = [
            _fit(hands, street, BETTING, train, inside),
            _fit(hands, street, CARDS, train & hands.shown, inside & hands.shown),
            _fit(
                mine,
                street,
                CARDS,
                train[kept],
                inside[kept],
                [with_cards(rules, mine.rows[street], holes) for holes in draws],
            ),
            _fit(hands, street, CARDS, train, inside),
        ]
        at = np.flatnonzero(away[own.hand])
        chances = np.stack([model.predict(own.rows[at]) for model in models], axis=1)
        taken = chances[np.arange(len(at)), :, own.action[at]]
        losses.append(-np.log(np.maximum(taken, LEAST_PROBABILITY)))
    return losses


def _some(street: HandRows, number: NDArray[np.int64]) -> HandRows:
    """The rows of the hands that have a number, with these numbers."""
    at = np.flatnonzero(number[street.hand] >= 0)
    return HandRows(street.rows[at], street.action[at], number[street.hand[at]])


def showdown_figures(rows: Path, agent: str) -> list[Figure]:
    """Log-loss of each way on all decisions of an agent, all streets pooled."""
    hands = _hands(rows, agent)
    loss = np.concatenate([part for test in range(FOLDS) for part in _fold_losses(hands, test)])
    deal = np.concatenate(
        [
            found.deal[hands.fold[own.hand] == test]
            for test in range(FOLDS)
            for found, own in zip(*hands[:2], strict=True)
        ]
    )
    means = loss.mean(axis=0)
    who = f"{agent}, {hands.shown.mean():.1%} of {len(hands.shown):,} hands shown"
    figures = []
    for way, mean in zip(WAYS, means, strict=True):
        gap = loss[:, WAYS.index(way)] - loss[:, 0]
        sums = np.bincount(np.unique(deal, return_inverse=True)[1].reshape(-1), gap - gap.mean())
        width = 1.96 * np.sqrt((sums**2).sum()) / len(gap)
        name = f"{who}: {way}" + (f" ({gap.mean():+.3f} ± {width:.3f})" if way != WAYS[0] else "")
        figures.append(Figure(name, mean, "nats", WAYS[0], means[0], mean / means[0]))
    return figures
