"""@bearl: the bot of a student report called BEARL, which plays by its chance to win and its view of the opponent.

After every few hands it profiles the opponent by the last fifty. F is the mean of its stake divided by its stack, over
the hands in which it put in more than its blind. Cu is the mean over showdowns of the opponent's strength divided by
ours (1 without any showdown), times 0.7 for each time that we folded a hand stronger than 60%.

    F <= 0.1 and Cu > 0.5           timid
    1 - F <= 0.8 and Cu > 0.5       never folds
    Cu <= 0.5                       bluffer
    else                            neutral

The profile and the strength s (percent; up to 40, up to 70, above) choose the action: with nothing to call, check
or bet a share of the stack; otherwise call up to a share of it, else fold. `TABLE` has the report's figures; it
also raises a neutral or never-folding opponent where the report does. Limit games have no stacks: see
`pipeline.agents.calibrated`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.agents.calibrated import Stakes, label_of_stake, stakes, start_stack
from pipeline.agents.equity import equities
from pipeline.agents.names import plain_name
from pipeline.agents.protocol import FinishedHands
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL, FOLD, RAISE, S_FOLDED, S_SPENT
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.win_counts import FULL_STRENGTH
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel

PROFILES = ("timid", "never folds", "bluffer", "neutral")
TIMID, STATION, BLUFFER, NEUTRAL = range(4)
PROFILE_HANDS = 50
"""the last hands, which a profile is computed from"""
STRONG = 60.0
"""chance to win, in percent, above which folding a hand counts as a strong fold"""


class Line(NamedTuple):
    """Linear rules in the strength s, in percent of the stack: a + b s."""

    bet: tuple[float, float]
    """what to bet when nothing is to be called"""
    call: tuple[float, float]
    """the least amount that is not called"""
    over: float
    """raise instead of calling under this share of the bet"""


NEVER, ALWAYS = (-1000.0, 0.0), (1000.0, 0.0)
POTENTIAL = (-110.0, 2.0)
TABLE = (
    (Line(NEVER, NEVER, 0.0), Line((-40.0, 1.0), (-20.0, 0.5), 0.0), Line((80.0, 0.0), (-60.0, 1.0), 0.0)),
    (Line(NEVER, (10.0, 0.0), 0.0), Line(NEVER, (-60.0, 1.5), 0.0), Line(POTENTIAL, (-30.0, 1.0), 0.5)),
    (Line(NEVER, (10.0, 0.0), 0.0), Line(NEVER, (-40.0, 1.0), 0.0), Line((40.0, 0.0), ALWAYS, 0.0)),
    (Line(NEVER, (10.0, 0.0), 0.0), Line(NEVER, (-40.0, 1.0), 0.0), Line(POTENTIAL, (-30.0, 1.0), 1.5)),
)
"""by profile and strength (up to 40, up to 70, above)"""
RULES = np.array([[[*line.bet, *line.call, line.over] for line in lines] for lines in TABLE])
"""`TABLE` as numbers"""


@kernel
def _choose(rows: Array, chips: Stakes, chance: Array, rules: Array, nolimit: bool, out: Array) -> None:
    """Mark the label that a profile's rules (three bands of strength x 5) choose for each row."""
    for i in range(rows.shape[0]):
        rule = rules[0 if chance[i] <= 40.0 else 1 if chance[i] <= 70.0 else 2]
        bet = (rule[0] + rule[1] * chance[i]) / 100 * chips.behind[i]
        most = (rule[2] + rule[3] * chance[i]) / 100 * chips.behind[i]
        to_call = chips.to_call[i]
        if bet > 0 if to_call == 0 else to_call < rule[4] * bet:
            kind = RAISE
        else:
            kind = CALL if to_call == 0 or to_call < most else FOLD
        out[i, label_of_stake(rows[i], kind, max(bet - to_call, chips.least[i]), out.shape[1], nolimit)] = 1.0


@dataclass
class Bearl:
    """Plays by strength and profile; all its opponents share one profile."""

    name: str
    game: Game
    interval: int = 200
    profile: int = NEUTRAL
    _hands: deque[tuple[float, float, bool]] = field(default_factory=lambda: deque(maxlen=PROFILE_HANDS))
    """of each hand: the others' stake / stack, their strength / ours (both NaN where unknown), a strong fold of ours"""

    def begin(self) -> None:
        self._hands.clear()
        self.profile = NEUTRAL

    def probabilities(self, rows: Array) -> Array:
        chance = 100 * equities(self.game, rows)
        chips = stakes(self.game, rows)
        out = np.zeros((len(rows), len(self.game.labels)))
        _choose(rows, chips, chance, RULES[self.profile], self.game.nolimit, out)
        return out

    def seen(self, hands: FinishedHands) -> None:
        """Update the profile of the opponents with the last of the hands just finished."""
        players, stack = self.game.players, start_stack(self.game)
        first = max(0, len(hands.position) - PROFILE_HANDS)
        recent = np.arange(first, len(hands.position))
        me = hands.position[recent].astype(np.int64)
        spent = hands.states[recent, S_SPENT : S_SPENT + players]
        strengths = np.stack(
            [self._strengths(hands.hole[recent, p], hands.board[recent]) for p in range(players)], axis=1
        )
        mine = strengths[np.arange(len(recent)), me]
        folded = hands.states[recent, S_FOLDED] >> me & 1 == 1
        for i in range(len(recent)):
            others = [p for p in range(players) if p != me[i]]
            put = [spent[i, p] / stack for p in others if spent[i, p] > self.game.blinds[p]]
            ratios = [strengths[i, p] / max(mine[i], 1.0) for p in others if not np.isnan(strengths[i, p])]
            self._hands.append(
                (
                    float(np.mean(put)) if put else np.nan,
                    float(np.mean(ratios)) if ratios else np.nan,
                    bool(folded[i]) and bool(mine[i] > STRONG),
                )
            )
        self.profile = profile_of(list(self._hands))

    def _strengths(self, hole: Array, board: Array) -> Array:
        """Return the chance to win (percent) of each row's cards where they are known, else NaN."""
        out = np.full(len(hole), np.nan)
        streets = np.searchsorted([0, 3, 4, 5], (board != NO_CARD).sum(axis=1))
        for street in range(4):
            rows = np.flatnonzero((streets == street) & (hole[:, 0] != NO_CARD))
            if len(rows) > 0:
                counts = find_strengths(street, hole[rows], board[rows])
                out[rows] = 100 * counts["ehs"].astype(np.float64) / FULL_STRENGTH
        return out


def profile_of(hands: list[tuple[float, float, bool]]) -> int:
    """Return the profile of the opponents over the remembered hands.

    >>> [PROFILES[profile_of(hands)] for hands in ([(0.05, np.nan, False)], [(0.3, 0.9, False)], [])]
    ['timid', 'never folds', 'neutral']
    """
    put = [hand[0] for hand in hands if not np.isnan(hand[0])]
    ratios = [hand[1] for hand in hands if not np.isnan(hand[1])]
    if not put:
        return NEUTRAL
    stake_share = float(np.mean(put))  # F of the report
    strength_ratio = (float(np.mean(ratios)) if ratios else 1.0) * 0.7 ** sum(hand[2] for hand in hands)  # its Cu
    if strength_ratio <= 0.5:
        return BLUFFER
    return TIMID if stake_share <= 0.1 else STATION if 1 - stake_share <= 0.8 else NEUTRAL


def make(name: str, arguments: str, game: Game) -> Bearl:
    """Return @bearl, which takes no arguments."""
    if arguments:
        raise PipelineError(f"@bearl takes no arguments; leave out {arguments!r}")
    if not game.is_holdem:
        raise PipelineError(f"@bearl plays hold'em, not {game.name}")
    return Bearl(plain_name(f"@{name}"), game)
