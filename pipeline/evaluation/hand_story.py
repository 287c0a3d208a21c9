"""A logged hand replayed: street by street the actions, the pot, the mixes of agents in each place, and the winners.

In go a parsed `Hand`, its game and the agents to ask; out comes a `HandStory`, which `pipeline.report.terminal` writes
as text and `show hand --json` as an object. The hand is replayed by the rules; nothing is taken from the log but cards,
actions and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.dataset.decisions import STREETS, observation
from pipeline.evaluation.scoring import ScoredPlayer
from pipeline.formats.acpc import Hand, parse_header
from pipeline.poker.cards import hand_name, name_text, parse_cards, ranking
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import RAISE
from pipeline.poker.spoken import position_words
from pipeline.runtime.bundled import locate
from pipeline.runtime.errors import PipelineError


@dataclass(frozen=True)
class SeatStory:
    """One player of the hand."""

    name: str
    position: str
    """big blind and button heads-up, else a number"""
    cards: str
    won: float
    """net chips"""
    folded: bool
    hand: str
    """the name of the hand at the showdown; empty where there was none"""


@dataclass(frozen=True)
class Decision:
    """One action, and the mix of each agent in its place."""

    street: str
    board: str
    """the board cards seen"""
    player: str
    position: str
    action: str
    """in words, such as `raises to 20`"""
    pot: int
    """after the action"""
    mixes: dict[str, dict[str, float]]
    """by agent: probabilities by label"""


@dataclass(frozen=True)
class HandStory:
    """The whole hand."""

    number: int
    game: str
    labels: str
    seats: list[SeatStory]
    decisions: list[Decision]
    board: str
    showdown: bool

    @property
    def winners(self) -> list[SeatStory]:
        """Return the players who won chips; none where the pot was split evenly."""
        return [seat for seat in self.seats if seat.won > 0]

    def json(self) -> dict[str, Any]:
        """Return the object that `show hand --json` prints."""
        return {**asdict(self), "labels": list(self.labels), "winners": [seat.name for seat in self.winners]}


def find_hand(log: str, number: int | None = None) -> tuple[str, str | None]:
    """Find the line of a hand and the game that its log's header names; a hand's line itself may be given as `log`.

    Parameters: `number` of the hand, by default the log's first.
    """
    if log.startswith("STATE:"):
        return log, None
    path = locate(log)
    if not path.is_file():
        raise PipelineError(f"{log} is neither a log file nor a line that begins with STATE:")
    game = None
    with path.open(encoding="utf-8", errors="replace") as lines:
        for text in lines:
            text = text.rstrip("\r\n")
            header = parse_header(text)
            game = header.game if header else game
            if text.startswith("STATE:") and (number is None or text.split(":", 2)[1] == str(number)):
                return text, game
    raise PipelineError(f"{log} has no {'hand' if number is None else f'hand {number}'}")


def street_name(game: Game, round_index: int) -> str:
    """Name a round of the betting."""
    return STREETS[round_index] if game.is_holdem else f"round {round_index + 1}"


def replay_hand(hand: Hand, game: Game, agents: Sequence[tuple[str, ScoredPlayer]] = ()) -> HandStory:
    """Replay a hand; one that does not follow the game's rules is refused.

    Parameters: `agents` are (name, agent) and are asked at every decision, with the cards of the player who acts.
    """
    if len(hand.names) != game.players:
        raise PipelineError(f"hand {hand.number} has {len(hand.names)} players, {game.name} has {game.players}")
    positions = [position_words(i, game.players, game.is_holdem) for i in range(game.players)]
    decisions = []
    state = game.start()
    street_start = [0] * game.players  # chips of each player when the street began
    for action, size in actions(hand.betting):
        actor, street = state.actor, state.round
        board = "".join(hand.board[:street])
        row = observation(game, state.betting, actor, parse_cards(hand.holes[actor]), parse_cards(board))
        mixes = {
            name: dict(zip(game.labels, agent.probabilities(row)[0].tolist(), strict=True)) for name, agent in agents
        }
        after = state.apply(action, size)
        decisions.append(
            Decision(
                street=street_name(game, street),
                board=board,
                player=hand.names[actor],
                position=positions[actor],
                action=_action_words(action, state, after, street_start),
                pot=after.pot,
                mixes=mixes,
            )
        )
        if after.round != street:
            street_start = list(after.spent)
        state = after
    board = "".join(hand.board)
    seats = [
        SeatStory(
            name=hand.names[i],
            position=positions[i],
            cards=hand.holes[i],
            won=float(hand.payoffs[i]),
            folded=state.folded[i],
            hand=_hand_words(game, hand.holes[i], board) if state.showdown and not state.folded[i] else "",
        )
        for i in range(game.players)
    ]
    return HandStory(hand.number, game.name, game.labels, seats, decisions, board, state.showdown)


def _action_words(action: int, before: State, after: State, street_start: Sequence[int]) -> str:
    """Return an action in players' words; `street_start` has the chips of each player when the street began."""
    if action == RAISE:
        total = after.spent[before.actor] - street_start[before.actor]
        blinds = before.round == 0 and any(before.game.blinds)
        return f"raises to {total}" if before.to_call or blinds else f"bets {total}"
    return ("folds", f"calls {before.to_call}" if before.to_call else "checks")[action]


def _hand_words(game: Game, hole: str, board: str) -> str:
    """Return the name of a hold'em hand; none in games of one card, where the card itself says it."""
    if not game.is_holdem or not board:
        return ""
    board_cards = parse_cards(board)
    return name_text(hand_name(parse_cards(hole), board_cards, len(board_cards), ranking()))
