"""A player that follows a match state by state: lines of the protocol go in, answers come out.

`Player` turns each line from a dealer into an answer or silence: it follows the hand by the rules of the game, asks its
agent for probabilities in the very form it was trained on (`decisions.observation`), draws an action with its own
random numbers and keeps the score. Hand numbers are only compared, never counted on. It knows nothing of sockets: the
client on the network, the table in the terminal and tests hand it lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, FinishedHands, Learner, amounts_of, set_background
from pipeline.agents.rules import Rule
from pipeline.dataset.decisions import observation
from pipeline.formats.acpc import MATCH_STATE, hand_values, parse_match_state
from pipeline.models.sizes import drawn
from pipeline.poker.cards import NO_CARD, parse_cards
from pipeline.poker.game import MOST_REMEMBERED, Game, State, Walk, actions
from pipeline.poker.rules import CALL, RAISE, STATE_SIZE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

MOST_FINISHED = 32
"""hands that wait to be counted"""


def pick(probabilities: list[float], luck: float) -> int:
    """The label that `luck` in [0, 1) falls on.

    >>> pick([0.25, 0.75, 0.0], 0.2), pick([0.25, 0.75, 0.0], 0.999999)
    (0, 1)
    """
    last = CALL
    for label, probability in enumerate(probabilities):
        if probability > 0:
            last = label
            luck -= probability
            if luck < 0:
                break
    return last


class Turn(NamedTuple):
    """A state in which the player is to act."""

    line: str
    position: int
    state: State
    cards: str
    """as the line has them"""

    def reply(self, action: str) -> str:
        """The line repeated with an action (`f`, `c`, `r` or `r<n>`)."""
        return f"{self.line}:{action}"


class _Seen(NamedTuple):
    """A finished hand, kept for an agent that learns."""

    position: int
    state: State
    holes: list[list[int]]
    board: list[int]
    payoffs: tuple[float, ...]


class Player:
    """An agent at the wire."""

    def __init__(self, agent: Agent, seed: int | None = None) -> None:
        self.agent = agent
        self.game: Game = agent.game
        self.hands = 0
        self.begun = 0
        self.news = 0
        """states heard, the same one in a row counted once"""
        self.ignored = 0
        self.between_hands = True
        self.mix: list[float] = []
        """the probabilities of the last decision"""
        self._chips = 0.0
        self._hand = ""
        self._last = ""
        self._answer: str | None = None
        """to the last line: a repeated state gets the same one"""
        self._luck = np.random.default_rng(seed)
        self._dice: list[float] = []
        self._blind = agent.table.tolist() if isinstance(agent, Rule) else None
        """the probabilities of an agent that looks at nothing but what is legal"""
        self._learner = agent if isinstance(agent, Learner) else None
        self._finished: list[Turn] = []
        """hands not counted yet"""
        self._kept: list[_Seen] = []
        self._walk = Walk(agent.game)
        self._known: dict[str, State] = {}
        """states by their betting, as far as lines have had it"""
        if self._learner:
            set_background(self._learner, True)
            self._learner.begin()

    @property
    def chips(self) -> float:
        """What was won, less what was lost."""
        self.settle()
        return self._chips

    def warm_up(self) -> None:
        """Act once on every street, so that everything is loaded before the first hand."""
        deck = self.game.deck.tolist()
        state = self.game.start()
        while not state.finished:
            board = deck[2 : 2 + self.game.visible(state.round)]
            rows = observation(self.game, state.betting, state.actor, deck[: self.game.hole_cards], board)
            self.agent.probabilities(rows)
            state.choose(max(CALL, state.legal_labels.bit_length() - 1), self._amount(rows, RAISE))
            state = state.apply(CALL)
        state.payoffs(range(self.game.players))
        holes, board = ("AsAh"[: 2 * self.game.hole_cards],), ("KsQsJsTs9s"[: 2 * self.game.visible(state.round)],)
        hand_values(self.game, holes, board)

    def hear(self, line: str) -> Turn | None:
        """Take a line from the dealer; a turn if this player is to act on it."""
        words = line.split(":")
        state = self._known.get(words[3]) if MATCH_STATE.fullmatch(line) else None
        if state is None or words[4].count("|") != self.game.players - 1:
            state = self._check(line)  # also for a betting that is new
            if state is None:
                return None
        _, place, hand, _, cards = words
        position = int(place)
        if position >= self.game.players:
            raise PipelineError(f"{line!r} is for player {position} of {self.game.players}: see --game")
        if line != self._last:
            self.news += 1
            if self.between_hands or hand != self._hand:
                self.begun += 1
            if state.finished:
                self.hands += 1
                self._finished.append(Turn(line, position, state, cards))
                if self._learner or len(self._finished) >= MOST_FINISHED:
                    self.settle()
            self._last, self._hand, self._answer = line, hand, None
        self.between_hands = state.finished
        return Turn(line, position, state, cards) if state.actor == position else None

    def _check(self, line: str) -> State | None:
        """The state of a line; none for comments and what is no match state."""
        if line.startswith(("#", ";")) or not line:
            return None
        try:
            seen = parse_match_state(line)
        except PipelineError:
            self.ignored += 1
            return None
        if len(seen.holes) != self.game.players:
            raise PipelineError(
                f"{line!r} is not of {self.game.name}, which has {self.game.players} players: see --game"
            )
        try:
            state = self._walk.at(seen.betting)
        except PipelineError as error:
            raise PipelineError(f"{error}: the dealer plays another game than {self.game.name}, see --game") from None
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[seen.betting] = state
        return state

    def decide(self, turn: Turn) -> str:
        """The agent's answer: the state repeated with an action."""
        if self._answer is not None:
            return self._answer
        state = turn.state
        rows = None
        if self._blind:
            self.mix = self._blind[state.legal_labels]
        else:
            rows = self._seen(turn)
            self.mix = self.agent.probabilities(rows)[0].tolist()
        label = pick(self.mix, self._die())
        if not state.legal_labels >> label & 1:
            label = CALL
        action, size = state.choose(label, self._amount(rows, label))
        self._answer = turn.reply("fcr"[action] + (str(size) if action == RAISE and self.game.nolimit else ""))
        return self._answer

    def _die(self) -> float:
        """A random number in [0, 1)."""
        if not self._dice:
            self._dice = self._luck.random(256).tolist()[::-1]
        return self._dice.pop()

    def _amount(self, rows: Array | None, label: int) -> int:
        """How many chips beyond the highest bet the agent raises with a label; -1 for the label's fixed size."""
        if rows is None or label < RAISE:
            return -1
        found = amounts_of(self.agent, rows, np.array([label]))
        return -1 if found is None else int(drawn(found, np.array([self._die()]))[0])

    def _seen(self, turn: Turn) -> Array:
        """What the agent sees: one row."""
        holes, *board = turn.cards.split("/")
        hole = parse_cards(holes.split("|")[turn.position], self.game.hole_cards)
        return observation(self.game, turn.state.betting, turn.position, hole, parse_cards("".join(board)))

    def settle(self) -> None:
        """Count the hands that have been finished: many at once, which takes half the time."""
        for _, position, state, cards in self._finished:
            first, *board = cards.split("/")
            holes = first.split("|")
            values = [0] * self.game.players
            if state.showdown:
                shown = [p for p, hole in enumerate(holes) if hole]
                worth = hand_values(self.game, tuple(holes[p] for p in shown), tuple(board))
                for p, value in zip(shown, worth, strict=True):
                    values[p] = value
            payoffs = state.payoffs(values)
            self._chips += payoffs[position]
            if self._learner:
                numbers = [parse_cards(hole).tolist() for hole in holes]
                self._kept.append(_Seen(position, state, numbers, parse_cards("".join(board)).tolist(), payoffs))
                if len(self._kept) >= self._learner.interval:
                    self._learner.seen(_hands(self.game, self._kept))
                    self._kept = []
        self._finished = []


def _hands(game: Game, kept: list[_Seen]) -> FinishedHands:
    """Finished hands as agents that learn take them."""
    count, players = len(kept), game.players
    most = max(len(list(actions(hand.state.betting))) for hand in kept)
    made = FinishedHands(
        position=np.array([hand.position for hand in kept], dtype=np.uint8),
        seats=np.array([[(p - hand.position) % players for p in range(players)] for hand in kept], dtype=np.uint8),
        states=np.zeros((count, STATE_SIZE), dtype=np.int64),
        labels=np.zeros((count, most), dtype=np.uint8),
        sizes=np.zeros((count, most), dtype=np.int64),
        hole=np.full((count, players, 2), NO_CARD, dtype=np.uint8),
        board=np.full((count, 5), NO_CARD, dtype=np.uint8),
        payoffs=np.array([hand.payoffs for hand in kept]),
    )
    for i, hand in enumerate(kept):
        made.states[i] = hand.state.vector
        state = game.start()
        for k, (action, size) in enumerate(actions(hand.state.betting)):
            made.labels[i, k] = state.label_of(action, size) + 1
            made.sizes[i, k] = size
            state = state.apply(action, size)
        for p, hole in enumerate(hand.holes):
            made.hole[i, p, : len(hole)] = hole
        made.board[i, : len(hand.board)] = hand.board
    return made
