"""@calibrated:auto: the calibrated player that finds out how its opponent plays and turns to what beats that.

The counter-calibration of the student report that the calibrated players come from. The opponent's style, its
aggression and rationality, is fitted to its decisions in the hands that came to a showdown (`agents.style`), again and
again as these become more. A table says which calibrated player wins most from each style; its figures are those of
matches in our arena (`pipeline solve styles` makes it). Before the first fit it plays what wins most from all styles
taken together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.background import Beside
from pipeline.agents.calibrated import Calibrated
from pipeline.agents.protocol import FinishedHands
from pipeline.agents.style import Style, fit_style
from pipeline.dataset.decisions import OBSERVATION, replay
from pipeline.poker.cards import NO_CARD, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import RAISE, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import parse_json
from pipeline.runtime.errors import PipelineError

INTERVAL = 50
FEWEST_ROWS = 40
"""decisions before the first fit"""
MOST_ROWS = 2_000
"""decisions that are remembered, the last ones"""
GROWTH = 1.3
"""the style is fitted again when there are so many times more decisions than at the last fit"""


class StyleCounter(NamedTuple):
    """A style and the calibrated player that wins most from it, rates in percent."""

    aggression: float
    rationality: float
    counter: tuple[float, float]
    mbb_per_hand: float
    ci95: float


@cache
def counters_of(game: Game) -> tuple[tuple[float, float], tuple[StyleCounter, ...]]:
    """The calibration to begin with, and the counter to each style that was measured in a game."""
    games = read_styles(Path(str(files("pipeline.agents"))) / "resources" / "styles.json")["games"]
    if game.name not in games:
        played = ", ".join(sorted(games))
        raise PipelineError(f"@calibrated:auto has no table of counters for {game.name}: it plays {played}")
    found = games[game.name]
    rows = tuple(StyleCounter(a, r, (b, s), won, width) for a, r, b, s, won, width in found["counters"])
    return (found["first"][0], found["first"][1]), rows


def read_styles(file: Path) -> dict[str, Any]:
    """A file of tables of counters, by game; one that is damaged is refused."""
    try:
        table = parse_json(file.read_bytes())
        for found in table["games"].values():
            first, rows = found["first"], np.array(found["counters"], np.float64)
            rates = np.array([*first, *rows[:, :4].ravel()], np.float64)
            if len(first) != 2 or rows.shape[1:] != (6,) or not len(rows) or not np.isfinite(rows).all():
                raise ValueError("a table of another form")
            if not ((rates >= 0) & (rates <= 100)).all():
                raise ValueError("rates that are no percentages")
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise PipelineError(f"{file} is no table of counter-calibrations ({error}): remove it, or reinstall") from None
    return dict(table)


class _Profile:
    """What is known of the opponent in one match."""

    def __init__(self, game: Game) -> None:
        self._game = game
        first, self._counters = counters_of(game)
        self.style: Style | None = None
        self.player = Calibrated("", game, *first)
        self._rows = np.empty(0, OBSERVATION)
        self._labels = np.empty(0, np.uint8)
        self._since = 0
        """decisions since the last fit"""

    def learn(self, hands: FinishedHands) -> None:
        """Take in finished hands; fit the style again where they are many enough."""
        rows, labels = _shown_decisions(self._game, hands)
        self._rows = np.concatenate([self._rows, rows])[-MOST_ROWS:]
        self._labels = np.concatenate([self._labels, labels])[-MOST_ROWS:]
        self._since += len(rows)
        if self._since < (GROWTH - 1) * (len(self._rows) - self._since):
            return
        style = fit_style(self._game, self._rows, self._labels, unfolded=True, fewest=FEWEST_ROWS)
        if style is not None:
            self._since = 0
            nearest = min(
                self._counters,
                key=lambda one: (one.aggression - style.aggression) ** 2 + (one.rationality - style.rationality) ** 2,
            )
            self.style, self.player = style, Calibrated("", self._game, *nearest.counter)


def _shown_decisions(game: Game, hands: FinishedHands) -> tuple[Array, Array]:
    """What the opponent saw and did in the hands whose cards were shown: rows of OBSERVATION and labels."""
    found, taken = [np.empty(0, OBSERVATION)], [np.empty(0, np.uint8)]
    state = np.zeros(STATE_SIZE, np.int64)
    for i in np.flatnonzero((hands.hole[:, :, 0] != NO_CARD).all(axis=1)):
        labels = hands.labels[i][hands.labels[i] > 0].astype(np.int64) - 1
        rows, again = np.zeros(len(labels), OBSERVATION), np.zeros(len(labels), np.int64)
        moves, sizes = np.minimum(labels, RAISE), hands.sizes[i][: len(labels)].astype(np.int64)
        replay(game.rules, moves, sizes, len(moves), hands.hole[i], hands.board[i], ranking(), state, rows, again)
        theirs = rows["position"] != hands.position[i]
        found.append(rows[theirs])
        taken.append(labels[theirs].astype(np.uint8))
    return np.concatenate(found), np.concatenate(taken)


@dataclass
class AutoCalibrated:
    """Plays the calibrated player that wins most from the opponent's style."""

    name: str
    game: Game
    interval: int = INTERVAL
    beside: bool = False
    """whether to fit in a thread while play goes on"""
    _beside: Beside = field(default_factory=Beside, repr=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._beside.clear()
        self._profile = _Profile(self.game)

    @property
    def style(self) -> Style | None:
        """The opponent's style, as far as it is known."""
        return self._profile.style

    @property
    def playing(self) -> tuple[float, float]:
        """The aggression and rationality it plays with, in percent."""
        player = self._profile.player
        return player.aggression, player.rationality

    def probabilities(self, rows: Array) -> Array:
        return self._profile.player.probabilities(rows)

    def seen(self, hands: FinishedHands) -> None:
        work = partial(self._profile.learn, hands)
        if self.beside:
            self._beside.put(work)
        else:
            work()

    def wait(self) -> None:
        """Return when all hands that were seen have been taken in."""
        self._beside.wait()


def make_auto(name: str, game: Game) -> AutoCalibrated:
    """@calibrated:auto, in the games that the table of counters has."""
    counters_of(game)
    return AutoCalibrated(name, game)
