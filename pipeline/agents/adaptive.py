"""@adaptive: an equilibrium that turns to counter-strategies when the hands it has seen say what the opponent is.

It holds a *portfolio*: the equilibrium (@teacher) first, and strategies that each take much from one kind of opponent.
After every few hands it looks back at them (`solve.hindsight`) and keeps two accounts:

- how likely each opponent that it knows would have played so, and how likely one who plays each hand like one of them,
  drawn anew (a mixture whose shares are fitted to the hands): the model of an opponent that it does not know. Together
  with what every strategy wins from each known opponent this foretells what a strategy would win from this one;
- what each strategy would have won in the very hands, whoever the opponent is: an estimate that needs no model, and is
  coarse over few hands.

What a strategy is worth is the mean of both, each weighed by how sure it is. A strategy is played in the next hands
only where it is worth more than the equilibrium by `CAUTION` times the uncertainty of the difference: the one of these
that is worth most. Else the equilibrium is: so it starts, and so it stays against an opponent that plays well. Older
hands count less and less (`HALF_LIFE`), as opponents may change.

Under a clock (`beside`, set by `pipeline.arena.wire.player`) the looking back is done by a thread while the next hands
are played, and no decision waits for it; in the arena it is done at once, so that the same seed gives the same match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from pipeline.agents.background import Beside
from pipeline.agents.names import plain_name
from pipeline.agents.protocol import Agent, FinishedHands
from pipeline.dataset.decisions import observation
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.solving.hindsight import Hands, Judge

INTERVAL = 20
"""hands between two looks back"""
HALF_LIFE = 2_000.0
"""hands after which a hand counts half"""
CAUTION = 1.0
"""standard deviations that are taken off a difference"""
MISFIT = 0.15
"""standard deviation, in big blinds per hand, of what the nearest known opponent foretells"""
TRUST = 0.3
"""the same as a share of what a strategy is foretold to win more than the equilibrium"""
LEAST_SPREAD = 2.0
"""standard deviation of a single hand's estimate at least, in big blinds"""
STRANGE = 0.3
"""standard deviation, in big blinds per hand, that is added for an opponent who is a mixture of known ones"""
HANDICAP = 0.1
"""nats per hand by which a mixture must explain the hands better than a known opponent"""
MIXED = 0.1
"""how likely an opponent is a mixture before the first hand, beside 1 for all known ones"""
UNCOVERED = 4.0
"""standard deviation, in big blinds, of what is won where a strategy does what was never done"""
MOST_STEPS = 1_024
"""looks back that are remembered: of a longer match every second one, then every fourth ..."""


@dataclass(frozen=True)
class Holdings:
    """What an adaptive agent plays with."""

    names: tuple[str, ...]
    members: tuple[Agent, ...]
    """the equilibrium first"""
    judge: Judge = field(repr=False)
    opponents: tuple[str, ...]
    values: Array = field(repr=False)
    """(members, opponents): what each member wins, in big blinds per hand"""
    prior: Array = field(repr=False)
    """(opponents,) how likely each is before the first hand"""


class Step(NamedTuple):
    """What was thought after some hands of a match."""

    hands: int
    playing: int
    """the member that is played next"""
    weights: tuple[float, ...]
    """by member: how likely it is the one that wins most from this opponent"""
    gains: tuple[float, ...]
    """by member: how much more it is thought to win than the equilibrium, in mbb/h"""
    opponent: str
    """the most likely of the known ones"""
    likelihood: float
    """how likely that one is among them"""


class _Memory:
    """What is known in one match."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self.best = 0
        self.hands = 0
        self.steps: list[Step] = []
        self._every = 1
        self._looks = 0
        self._evidence = self._prior = np.log([*holdings.prior, MIXED])
        """by opponent: the logarithm of its prior times the likelihood of the hands; of a mixture of them last"""
        self._shares = np.array(holdings.prior)
        """by opponent: how many hands of the mixture are like its own, with those of the prior counted as one"""
        self._sums = np.zeros((4, len(holdings.members)))
        """by member: hands; what it would have won in them, in big blinds, and its squares; how often it was so"""

    def learn(self, hands: Hands, playing: int, big_blind: int) -> None:
        """Take in finished hands that were played by one of the members."""
        held = self._holdings
        likelihood, worth, covered = held.judge.judge(hands, playing)
        kept = 0.5 ** (len(worth) / HALF_LIFE)
        likelihood = np.maximum(likelihood, 1e-30)
        mixed = 0.0
        for one in likelihood:
            parts = self._shares / self._shares.sum() * one
            mixed += float(np.log(parts.sum())) - HANDICAP
            self._shares += parts / parts.sum()
        likely = np.append(np.log(likelihood).sum(axis=0), mixed)
        self._evidence = self._prior + kept * (self._evidence - self._prior) + likely
        self._shares = held.prior + kept * (self._shares - held.prior)
        won = worth / big_blind
        more = [np.full(won.shape[1], len(won)), won.sum(0), (won**2).sum(0), covered.sum(0)]
        self._sums = kept * self._sums + np.stack(more)
        self.hands += len(worth)
        self._choose()

    def _choose(self) -> None:
        """Decide which member is played next."""
        held = self._holdings
        share = np.exp(self._evidence - self._evidence.max())
        share /= share.sum()
        strange, share = share[-1], share[:-1] + share[-1] * self._shares / self._shares.sum()
        told = held.values @ share
        doubt = MISFIT + TRUST * np.maximum(told - told[0], 0.0)
        doubt = doubt**2 + strange * STRANGE**2 + np.maximum((held.values**2) @ share - told**2, 0.0)
        count, total, squares, covered = self._sums
        mean = total / count
        spread = np.maximum(squares / count - mean**2, LEAST_SPREAD**2) / count
        spread = spread + (UNCOVERED * (1 - covered / count)) ** 2
        worth = (told / doubt + mean / spread) / (1 / doubt + 1 / spread)
        left = 1 / (1 / doubt + 1 / spread)
        gain = worth - worth[0]
        sure = gain - CAUTION * np.sqrt(left + left[0])
        gain[0] = sure[0] = 0.0
        self.best = int(np.argmax(np.where(sure >= 0, gain, -np.inf)))
        weights = np.bincount(held.values.argmax(axis=0), share, minlength=len(held.members))
        self._looks += 1
        if self._looks % self._every == 0:
            top = int(share.argmax())
            self.steps.append(
                Step(
                    self.hands,
                    self.best,
                    tuple(weights.tolist()),
                    tuple((1000 * gain).tolist()),
                    held.opponents[top],
                    float(share[top]),
                )
            )
            if len(self.steps) == MOST_STEPS:
                self.steps, self._every = self.steps[1::2], 2 * self._every


@dataclass
class Adaptive:
    """Plays the member of its portfolio that the hands of the match speak for."""

    name: str
    game: Game
    holdings: Holdings
    interval: int = INTERVAL
    beside: bool = False
    """whether to look back in a thread while play goes on"""
    playing: int = 0
    """the member in use"""

    def __post_init__(self) -> None:
        none = Hands(*(np.empty(shape, np.uint8) for shape in ((0,), (0, 1), (0, 2, 2), (0, 5))))
        self.holdings.judge.judge(none, 0)  # compiles now what the first look back and every member need
        hole = self.game.deck[: self.game.hole_cards]
        for member in self.holdings.members:
            member.probabilities(observation(self.game, "", self.game.start().actor, hole))
        self._beside = Beside()
        self.begin()

    @property
    def steps(self) -> list[Step]:
        """What was thought in this match so far."""
        return list(self._memory.steps)

    def begin(self) -> None:
        self._beside.clear()
        self._memory = _Memory(self.holdings)
        self.playing = 0

    def probabilities(self, rows: Array) -> Array:
        return self.holdings.members[self.playing].probabilities(rows)

    def seen(self, hands: FinishedHands) -> None:
        told = Hands(*(np.ascontiguousarray(getattr(hands, part), np.uint8) for part in Hands._fields))
        work = partial(self._memory.learn, told, self.playing, self.game.big_blind)
        if self.beside:
            self._beside.put(work)
        else:
            work()
        self.playing = self._memory.best

    def wait(self) -> None:
        """Return when all hands that were seen have been taken in."""
        self._beside.wait()


def make(name: str, arguments: str, game: Game, *, trusted: bool = False) -> Adaptive:
    """@adaptive, or @adaptive:AGENT,AGENT,... with strategies of one's own beside the equilibrium."""
    from pipeline.agents.holdings import own_holdings, small_holdings, typical_holdings

    if game.players != 2 or game.nolimit or not (game.is_holdem or game.hole_cards == 1):
        raise PipelineError(f"@adaptive plays limit hold'em, Kuhn and Leduc for two players, not {game.name}")
    text = plain_name(f"@{name}:{arguments}")
    if arguments:
        return Adaptive(text, game, own_holdings(arguments, game, trusted=trusted))
    return Adaptive(text, game, small_holdings(game) if game.hole_cards == 1 else typical_holdings(game))
