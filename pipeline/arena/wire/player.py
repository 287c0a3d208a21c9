"""Follow a match state by state: lines of the protocol go in, an agent's answers come out.

`Player` turns each line from a dealer into an answer or silence: it follows the hand by the rules of the game, asks its
agent for probabilities in the very form it was trained on (`decisions.observation`), draws an action with its own
random numbers and keeps the score. Hand numbers are only compared, never counted on. It knows nothing of sockets: the
client on the network, the table in the terminal and tests hand it lines.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, FinishedHands, Learner, amounts_of, set_background
from pipeline.agents.rules import Rule
from pipeline.arena.variance.records import betting_arrays, card_arrays
from pipeline.dataset.decisions import observation
from pipeline.formats.acpc import MATCH_STATE, hand_values, parse_match_state
from pipeline.models.sizes import draw_amounts
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import CACHED_STATES, Game, State, StateCache
from pipeline.poker.rules import CALL, RAISE
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

MOST_FINISHED = 32
"""hands that wait to be counted"""


def sample_label(probabilities: list[float], uniform: float) -> int:
    """Return the label that a uniform number in [0, 1) falls on.

    >>> sample_label([0.25, 0.75, 0.0], 0.2), sample_label([0.25, 0.75, 0.0], 0.999999)
    (0, 1)
    """
    last = CALL
    for label, probability in enumerate(probabilities):
        if probability > 0:
            last = label
            uniform -= probability
            if uniform < 0:
                break
    return last


class ActionRequest(NamedTuple):
    """A match state in which the player is to act."""

    line: str
    position: int
    state: State
    cards: str
    """as the line has them"""
    number: int = 0
    """of the state among those heard; the same one in a row has the same number"""

    def reply(self, action: str) -> str:
        """Return the line repeated with an action (`f`, `c`, `r` or `r<n>`)."""
        return f"{self.line}:{action}"


class _FinishedHand(NamedTuple):
    """A finished hand that waits for an agent that learns."""

    position: int
    state: State
    holes: list[str]
    board: str
    payoffs: tuple[float, ...]


class Player:
    """An agent that answers match states, and its score."""

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
        self._last_line = ""
        self._answer = 0, ""
        """to the state of this number: a repeated one gets the same answer"""
        self._generator = np.random.default_rng(seed)
        self._random_numbers: list[float] = []
        self._fixed_mixes = agent.table.tolist() if isinstance(agent, Rule) else None
        """probabilities by legal actions, of an agent that looks at nothing else"""
        self._learner = agent if isinstance(agent, Learner) else None
        self._finished: deque[ActionRequest] = deque()
        """hands not counted yet; one thread may add them while another counts"""
        self._unlearned: list[_FinishedHand] = []
        self._walk = StateCache(agent.game)
        self._states: dict[str, State] = {}
        """states by their betting, of the lines so far"""
        if self._learner:
            set_background(self._learner, True)
            self._learner.begin()

    @property
    def chips(self) -> float:
        """Return the net chips won."""
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

    def hear(self, line: str, settle: bool = True) -> ActionRequest | None:
        """Take a line from the dealer; return a request if this player is to act on it.

        Without `settle` the agent, which may take its time to learn, hears of finished hands only when `settle` is
        called: a thread may then hear on while another one settles and decides.
        """
        words = line.split(":")
        state = self._states.get(words[3]) if MATCH_STATE.fullmatch(line) else None
        # most bettings have been met before: the pattern is checked for every line, its parts only for a new one
        if state is None or words[4].count("|") != self.game.players - 1:
            state = self._parse_state(line)  # also for a betting that is new
            if state is None:
                return None
        _, place, hand, _, cards = words
        position = int(place)
        if position >= self.game.players:
            raise PipelineError(f"{line!r} is for player {position} of {self.game.players}: see --game")
        if line != self._last_line:
            self.news += 1
            if self.between_hands or hand != self._hand:
                self.begun += 1
            if state.finished:
                self.hands += 1
                self._finished.append(ActionRequest(line, position, state, cards))
                if settle and self.unsettled:
                    self.settle()
            self._last_line, self._hand = line, hand
        self.between_hands = state.finished
        return ActionRequest(line, position, state, cards, self.news) if state.actor == position else None

    @property
    def unsettled(self) -> bool:
        """Return whether finished hands should be settled now."""
        return len(self._finished) >= (1 if self._learner else MOST_FINISHED)

    def _parse_state(self, line: str) -> State | None:
        """Return the state of a line; None for comments and what is no match state."""
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
        if len(self._states) >= CACHED_STATES:
            self._states.clear()
        self._states[seen.betting] = state
        return state

    def decide(self, request: ActionRequest) -> str:
        """Return the agent's answer: the state repeated with an action."""
        if request.number == self._answer[0]:
            return self._answer[1]
        state = request.state
        rows = None
        if self._fixed_mixes:
            self.mix = self._fixed_mixes[state.legal_labels]
        else:
            rows = self._observation(request)
            self.mix = self.agent.probabilities(rows)[0].tolist()
        label = sample_label(self.mix, self._random())
        if not state.legal_labels >> label & 1:
            label = CALL
        action, size = state.choose(label, self._amount(rows, label))
        answer = request.reply("fcr"[action] + (str(size) if action == RAISE and self.game.nolimit else ""))
        self._answer = request.number, answer
        return answer

    def _random(self) -> float:
        """Return a random number in [0, 1); they are drawn in batches, which is faster."""
        if not self._random_numbers:
            self._random_numbers = self._generator.random(256).tolist()[::-1]
        return self._random_numbers.pop()

    def _amount(self, rows: Array | None, label: int) -> int:
        """Return the chips beyond the highest bet that the agent raises by; -1 for the label's fixed size."""
        if rows is None or label < RAISE:
            return -1
        amounts = amounts_of(self.agent, rows, np.array([label]))
        return -1 if amounts is None else int(draw_amounts(amounts, np.array([self._random()]))[0])

    def _observation(self, request: ActionRequest) -> Array:
        """Return the agent's observation: one row."""
        holes, *board = request.cards.split("/")
        hole = parse_cards(holes.split("|")[request.position], self.game.hole_cards)
        return observation(self.game, request.state.betting, request.position, hole, parse_cards("".join(board)))

    def settle(self) -> None:
        """Count the hands that have been finished: many at once, which takes half the time."""
        while self._finished:
            _, position, state, cards, _ = self._finished.popleft()
            first, *board = cards.split("/")
            holes = first.split("|")
            values = [0] * self.game.players
            if state.showdown:
                known_holes = [p for p, hole in enumerate(holes) if hole]
                showdown_values = hand_values(self.game, tuple(holes[p] for p in known_holes), tuple(board))
                for p, value in zip(known_holes, showdown_values, strict=True):
                    values[p] = value
            payoffs = state.payoffs(values)
            self._chips += payoffs[position]
            if self._learner:
                self._unlearned.append(_FinishedHand(position, state, holes, "".join(board), payoffs))
                if len(self._unlearned) >= self._learner.interval:
                    self._learner.seen(_as_arrays(self._walk, self._unlearned))
                    self._unlearned = []


def _as_arrays(walk: StateCache, finished: list[_FinishedHand]) -> FinishedHands:
    """Return finished hands as the arrays that agents take to learn from."""
    game = walk.start.game
    hole, board = card_arrays(game, [hand.holes for hand in finished], [hand.board for hand in finished])
    labels, sizes, _ = betting_arrays(walk, [hand.state.betting for hand in finished])
    position = np.array([hand.position for hand in finished], dtype=np.uint8)
    return FinishedHands(
        position=position,
        seats=((np.arange(game.players) - position[:, None].astype(int)) % game.players).astype(np.uint8),
        states=np.array([hand.state.vector for hand in finished]),
        labels=labels,
        sizes=sizes,
        hole=hole,
        board=board,
        payoffs=np.array([hand.payoffs for hand in finished]),
    )
