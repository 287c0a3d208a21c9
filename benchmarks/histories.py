"""Imitating people and Pluribus: log-loss of max-ent beside frequencies by betting, by ten-fold cross-validation.

The hands are those of `phh/handhq_sample.tar.xz` and `phh/pluribus.tar.xz` in the folder of corpora. Deals are divided
into ten folds by their hash; the model that a fold is scored by is trained on eight of the others and stopped by the
ninth; all streets are pooled. The baseline counts what follows each betting of a street in the same training rows; for
a betting it never saw it answers with the frequencies of the whole street. The interval is 95 % of the paired
difference, deals being the unit. Of people there are also figures of players of few hands. The amounts of raises are
learned from the deals that `ingest` does not hold out and measured on those that it does, beside the fixed sizes of the
labels. What is lost where cards are seen only at showdowns is measured on Pluribus and on an agent of ours, all of
whose cards are known.

Players of few hands: everybody's model, a player's own, and the player's offset to everybody, on held-out deals.

In: the rows of a dataset of hand histories. A fifth of the deals is held out for the figures. Everybody's model
(betting alone) is trained on the other deals of all players but those that figures are of: a prior that had learned
from a player's own rows would look better in the folds that choose penalties than it is. A player's own is trained on
that player's rows twice: as `train` does without a prior, and with penalties chosen by cross-fitting like those of the
offset. The offset has everybody's model as its prior. Players are divided in two halves by a hash of their names:
settings were chosen on one, figures are of the other (`REPORTED`). The unit of the intervals is the player.

Cards seen only at showdowns: what a model with cards loses when it is trained on such hands alone, and what helps.

In: rows whose cards are all known, of Pluribus and of an agent of ours in heads-up no-limit. A hand of a player counts
as shown where it went to a showdown and the player had not folded; the cards of the others are hidden from training.
Deals are divided into ten folds, as above; every model is scored on all decisions of the deals it did not see,
with their true cards: betting alone, cards of shown hands alone, cards with the hidden ones drawn
(`training.hidden`), and all cards as if nothing were hidden, which is what nobody can have.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._figures import Figure, Settings
from benchmarks._hidden_cards import HandRows, draw_hidden, with_cards
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.opening import hand_batches
from pipeline.dataset.raises import raise_pieces
from pipeline.evaluation.sizing import SIZE_MEASURES, raise_scores
from pipeline.features.patterns import Pattern, find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.kinds import Model
from pipeline.models.measures import LEAST_PROBABILITY, STANDARD_ERRORS_95
from pipeline.models.prior import ModelPrior
from pipeline.poker.game import builtin
from pipeline.poker.rules import ALL_IN, RAISE
from pipeline.runtime.numeric import hash_name
from pipeline.runtime.parallel import Workers
from pipeline.training.sizing import fit_history_sizes, history_raises
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

# Players of few hands


REPORTED = 1
LEAST_HANDS, MOST_HANDS = 100, 1463
PLAYER_WAYS = ("everybody", "own rows", "own rows, chosen penalties", "offset")


@dataclass(frozen=True)
class Even:
    """A prior that says nothing: with it, penalties are chosen as they are for an offset."""

    name: str = "even"
    digest: str = "even"

    def predict(self, rows: Any) -> NDArray[np.float64]:
        return np.ones((len(rows), 7))

    def to_json(self) -> dict[str, Any]:
        return {}

    def to_arrays(self) -> dict[str, Any]:
        return {}


def _half(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] & 1


def chosen_players(streets: list[Decisions], most: int) -> list[int]:
    """Return the numbers of players of the reported half with few hands, at most so many."""
    first = streets[0]
    hands = np.unique(np.stack([first.agent, first.file, first.line]).astype(np.int64), axis=1)
    counts = np.bincount(hands[0], minlength=len(first.agents))
    fitting = [
        at
        for at in np.flatnonzero((counts >= LEAST_HANDS) & (counts <= MOST_HANDS))
        if _half(first.agents[at]) == REPORTED
    ]
    luck = np.random.default_rng(1)
    return sorted(luck.permutation(fitting)[:most].tolist())


def _player_examples(found: Decisions, chosen: NDArray[np.bool_]) -> Examples:
    hand = np.unique(np.stack([found.file[chosen], found.line[chosen]]), axis=1, return_inverse=True)[1]
    return Examples(found.rows[chosen], found.action[chosen], hand.reshape(-1).astype(np.int64))


def _player_task(decisions: Decisions, street: int, chosen: NDArray[np.bool_]) -> Task:
    examples, labels = _player_examples(decisions, chosen), tuple(decisions.game.labels)
    return Task(examples, None, find_pattern("betting"), labels, (street,), workers=Workers(2))


def everybody(decisions: Decisions, street: int, left_out: list[str]) -> Model:
    """Return the model of the training deals of all players but some."""
    numbers = [number for number, name in enumerate(decisions.agents) if name in left_out]
    others = ~np.isin(decisions.agent, numbers)
    return train_model("l-bfgs", _player_task(decisions, street, others & (_folds(decisions) > 1))).model


def _folds(found: Decisions) -> NDArray[np.int64]:
    return (found.deal // np.uint64(10) % np.uint64(10)).astype(np.int64)


def player_losses(decisions: Decisions, street: int, player: int, population: Model) -> NDArray[np.float64]:
    """(rows, ways) log-loss of each way on the player's decisions in held-out deals."""
    fold, mine = _folds(decisions), decisions.agent == player
    test = mine & (fold < 2)
    if not test.any():
        return np.empty((0, len(PLAYER_WAYS)))
    rows = decisions.rows[test]
    whole = _player_task(decisions, street, mine & (fold > 1))
    answers = [population.predict(rows)]
    plain = whole.is_learnable
    answers.append(train_model("l-bfgs", whole).model.predict(rows) if plain else np.full_like(answers[0], np.nan))
    answers.append(train_model("l-bfgs", replace(whole, priors=(Even(),))).model.predict(rows))
    prior = ModelPrior("everybody", {street: population})
    answers.append(train_model("l-bfgs", replace(whole, priors=(prior,))).model.predict(rows))
    legal = (rows["legal"][:, None] >> np.arange(answers[0].shape[1])) & 1
    even = legal / legal.sum(axis=1, keepdims=True)
    taken = np.stack([np.where(np.isfinite(one), one, even) for one in answers], axis=1)
    taken = taken[np.arange(len(rows)), :, decisions.action[test]]
    return -np.log(np.maximum(taken, LEAST_PROBABILITY))


def player_figures(rows: Path, most: int = 120) -> list[Figure]:
    """Measure players of the half on which nothing was chosen, at most so many."""
    streets = [load_decisions(rows, None, [street]) for street in STREETS]
    names, chosen = streets[0].agents, chosen_players(streets, most)
    reported = [names[player] for player in chosen]
    populations = [everybody(decisions, street, reported) for street, decisions in enumerate(streets)]
    losses, owner = [], []
    for number, player in enumerate(chosen):
        for street, decisions in enumerate(streets):
            at = decisions.agents.index(names[player]) if names[player] in decisions.agents else -1
            part = player_losses(decisions, street, at, populations[street])
            losses.append(part)
            owner.append(np.full(len(part), number))
    loss, unit = np.concatenate(losses), np.concatenate(owner)
    means = loss.mean(axis=0)
    figures = []
    for way, theirs in list(zip(PLAYER_WAYS, means, strict=True))[:-1]:
        gain = loss[:, PLAYER_WAYS.index(way)] - loss[:, -1]
        sums = np.bincount(unit, gain - gain.mean(), most)
        width = STANDARD_ERRORS_95 * np.sqrt((sums**2).sum()) / len(gain)
        name = f"few hands, {int(unit.max()) + 1} players: offset less {way} (± {width:.4f})"
        figures.append(Figure(name, -gain.mean(), "nats", way, theirs, means[-1] / theirs, "below 0"))
    return figures


# Cards seen only at showdowns


FOLDS = 10
CARDS, BETTING = "tables", "betting"
SHOWDOWN_WAYS = ("betting alone", "shown hands alone", "hidden cards drawn", "all cards known")
OURS, OTHER, MATCH_HANDS = "@calibrated:50,70", "@bearl", 6_000
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
    """Return rows of a match of one of our agents, and its name in them."""
    game = builtin(GAME)
    match = play_match(
        [resolve(OURS, game), resolve(OTHER, game)], game, hands=MATCH_HANDS, seed=16, log=folder / "match"
    )
    ingest(match.logs, folder / "ours", options(agents=[match.names[0]], strength=False))
    return folder / "ours", match.names[0]


def _hands(rows: Path, agent: str) -> Hands:
    """Return the decisions of an agent, with its hands numbered over all streets."""
    streets = [load_decisions(rows, [agent], [street]) for street in STREETS]
    keys = [np.stack([_number_files(decisions), decisions.line.astype(np.int64)], axis=1) for decisions in streets]
    unique, numbers = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    parts = np.split(numbers.reshape(-1), np.cumsum([len(decisions) for decisions in streets])[:-1])
    folded, deal = np.zeros(len(unique), np.bool_), np.zeros(len(unique), np.uint64)
    for decisions, hand in zip(streets, parts, strict=True):
        folded[hand[decisions.action == 0]] = True
        deal[hand] = decisions.deal
    over = _showdowns(rows)
    shown = np.array([over[file, line] for file, line in unique.tolist()]) & ~folded
    both = [HandRows(decisions.rows, decisions.action, hand) for decisions, hand in zip(streets, parts, strict=True)]
    return Hands(streets, both, shown, (deal // np.uint64(10) % np.uint64(FOLDS)).astype(np.int64))


def _number_files(found: Decisions) -> NDArray[np.int64]:
    """Return a number for each row's file that is the same on all streets."""
    return np.array([hash_name(name) for name in found.files], np.uint64).view(np.int64)[found.file]


def _showdowns(rows: Path) -> dict[tuple[int, int], bool]:
    """Return whether each hand was decided by cards, by file and line."""
    decisions: dict[tuple[int, int], bool] = {}
    for batch in hand_batches(rows, ["file", "line", "showdown"]):
        files = batch.column("file")
        numbers = {name: int(np.uint64(hash_name(name)).view(np.int64)) for name in set(files.to_pylist())}
        names = [numbers[name] for name in files.to_pylist()]
        decisions |= {
            (name, line): over
            for name, line, over in zip(
                names, batch.column("line").to_pylist(), batch.column("showdown").to_pylist(), strict=True
            )
        }
    return decisions


def _fit(
    hands: Hands,
    street: int,
    pattern: str,
    train: Mask,
    stop_mask: Mask,
    versions: list[NDArray[np.void]] | None = None,
) -> Model:
    """Fit a street's model to the hands of a mask, stopped by those of another; `versions` of rows count in shares."""
    own = hands.rows[street]
    versions = [own.rows] if versions is None else versions
    times = len(versions)

    def examples(chosen: Mask) -> Examples:
        at = np.flatnonzero(chosen[own.hand])
        rows = np.concatenate([version[at] for version in versions])
        return Examples(rows, np.tile(own.action[at], times), weights=np.full(times * len(at), 1 / times))

    labels = tuple(hands.streets[0].game.labels)
    task = Task(examples(train), None, find_pattern(pattern), labels, (street,), workers=Workers(2))
    task = replace(task, judges=examples(stop_mask))
    return train_model("l-bfgs", task).model


def _fold_losses(hands: Hands, test: int) -> list[NDArray[np.float64]]:
    """By street, (rows of the fold, ways) log-loss."""
    rules = hands.streets[0].game.rules
    away, inside = hands.fold == test, hands.fold == (test + 1) % FOLDS
    train = ~away & ~inside
    fitted = np.flatnonzero(~away)
    number = np.full(len(away), -1)
    number[fitted] = np.arange(len(fitted))
    mine = Hands(hands.streets, [_of_hands(one, number) for one in hands.rows], hands.shown[fitted], hands.fold[fitted])

    def fit(street: int, rows: NDArray[np.void]) -> Model:
        return _fit(mine, street, CARDS, train[fitted], inside[fitted], [rows])

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
                train[fitted],
                inside[fitted],
                [with_cards(rules, mine.rows[street], holes) for holes in draws],
            ),
            _fit(hands, street, CARDS, train, inside),
        ]
        at = np.flatnonzero(away[own.hand])
        chances = np.stack([model.predict(own.rows[at]) for model in models], axis=1)
        taken = chances[np.arange(len(at)), :, own.action[at]]
        losses.append(-np.log(np.maximum(taken, LEAST_PROBABILITY)))
    return losses


def _of_hands(street: HandRows, number: NDArray[np.int64]) -> HandRows:
    """Return the rows of the hands that have a number, with these numbers."""
    at = np.flatnonzero(number[street.hand] >= 0)
    return HandRows(street.rows[at], street.action[at], number[street.hand[at]])


def showdown_figures(rows: Path, agent: str) -> list[Figure]:
    """Measure log-loss of each way on all decisions of an agent, all streets pooled."""
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
    for way, mean in zip(SHOWDOWN_WAYS, means, strict=True):
        gap = loss[:, SHOWDOWN_WAYS.index(way)] - loss[:, 0]
        sums = np.bincount(np.unique(deal, return_inverse=True)[1].reshape(-1), gap - gap.mean())
        width = STANDARD_ERRORS_95 * np.sqrt((sums**2).sum()) / len(gap)
        name = f"{who}: {way}" + (f" ({gap.mean():+.3f} ± {width:.3f})" if way != SHOWDOWN_WAYS[0] else "")
        figures.append(Figure(name, mean, "nats", SHOWDOWN_WAYS[0], means[0], mean / means[0]))
    return figures


# All figures


def run(settings: Settings) -> list[Figure]:
    """Measure all figures; those whose archive is not there are skipped."""
    figures = []
    for name, agent, pattern, target in (
        ("handhq_sample.tar.xz", None, "betting", "at least 15 % lower"),
        ("pluribus.tar.xz", "Pluribus", "tables", "at least 20 % lower"),
    ):
        archive = settings.corpus("phh", name)
        if archive is None:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            ingest([archive], Path(scratch) / "rows", options(strength=False))
            figures += _compared(Path(scratch) / "rows", agent, find_pattern(pattern), target)
            figures += _amounts(Path(scratch) / "rows", agent)
            figures += (
                showdown_figures(Path(scratch) / "rows", agent) if agent else player_figures(Path(scratch) / "rows")
            )
    with tempfile.TemporaryDirectory() as scratch:
        figures += showdown_figures(*agent_rows(Path(scratch)))
    return figures


def _compared(rows: Path, agent: str | None, pattern: Pattern, target: str) -> list[Figure]:
    """Measure log-loss of a pattern and of the baseline on everybody's, or one agent's, decisions."""
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
    width = STANDARD_ERRORS_95 * sums.std() * np.sqrt(len(unit)) / len(loss)
    who = agent or "people, betting alone"
    return [
        Figure(f"{who}: log-loss, {FOLDS}-fold", ours, "nats", "frequency", theirs, ours / theirs, target),
        Figure(f"{who}: lower by (± {100 * width / theirs:.2f})", 100 * (1 - ours / theirs), "%"),
    ]


def _amounts(rows: Path, agent: str | None) -> list[Figure]:
    """Measure how close learned amounts are to those bet on held-out deals, all-in aside, in pots after calling."""
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


def _street(decisions: Decisions, street: int, pattern: Pattern) -> NDArray[np.float64]:
    """(rows, 2) log-loss of the pattern's model and of the baseline on each decision, by models that did not see it."""
    fold = (decisions.deal // np.uint64(10) % np.uint64(FOLDS)).astype(np.int64)
    out = np.zeros((len(decisions), 2))

    def examples(chosen: NDArray[np.bool_]) -> Examples:
        return Examples(decisions.rows[chosen], decisions.action[chosen], decisions.hand[chosen])

    for test in range(FOLDS):
        held_out, inside = fold == test, fold == (test + 1) % FOLDS
        task = Task(
            examples(~held_out & ~inside),
            None,
            pattern,
            tuple(decisions.game.labels),
            (street,),
            workers=Workers(2),
            judges=examples(inside),
        )
        for column, algorithm in enumerate(("l-bfgs", "frequency")):
            chances = train_model(algorithm, task).model.predict(decisions.rows[held_out])
            taken = chances[np.arange(len(chances)), decisions.action[held_out]]
            out[held_out, column] = -np.log(np.maximum(taken, LEAST_PROBABILITY))
    return out
