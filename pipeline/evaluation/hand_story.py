"""A logged hand replayed: street by street the actions, the pot, the mixes of agents in each place, and the winners.

In go a parsed `Hand`, its game and the agents to ask; out comes a `HandStory`, which `pipeline.report.terminal` writes
as text and `show hand --json` as an object. The hand is replayed by the rules; nothing is taken from the log but cards,
actions and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline.dataset.decisions import STREETS, observation
from pipeline.evaluation.scoring import ScoredPlayer
from pipeline.formats.acpc import Hand, parse_hand, parse_header
from pipeline.formats.histories.convert import game_of, to_acpc
from pipeline.formats.histories.history import MAX_AMOUNT, History
from pipeline.formats.histories.notation import is_history, parse_history, sections
from pipeline.formats.histories.sites import site_decimals, site_of, site_sections
from pipeline.poker.cards import hand_name, name_text, parse_cards, ranking
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import RAISE
from pipeline.poker.spoken import position_words
from pipeline.runtime.bundled import locate
from pipeline.runtime.errors import PipelineError

_MOST_BYTES = 64 << 20
"""of a file of hand histories in which a hand is looked for"""


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


def find_hand(log: str, number: int | None = None) -> tuple[Hand, str | Game | None]:
    """Find a hand and its game, or the name of it in its log's header; a hand's line itself may be given as `log`.

    Parameters: `number` of the hand, by default the log's first; in text of a poker site the line that it begins on.
    """
    if log.startswith("STATE:"):
        return parse_hand(log), None
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
                return parse_hand(text), game
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES)
    if is_history(data):
        for section in sections(data):
            if number is None or (section.number or 1) == number:
                return _hand_of_history(parse_history(data[section.begin : section.end]), section.number or 1)
    elif site := site_of(data):
        for place in site_sections(data, site, site_decimals(data)):
            line = data.count(b"\n", 0, place.begin) + 1
            if number is None or line == number:
                if place.reason:
                    raise PipelineError(f"{log}, line {line}: {place.reason}")
                return _hand_of_history(parse_history(place.text, site_decimals(data)), line)
    raise PipelineError(f"{log} has no {'hand' if number is None else f'hand {number}'}")


def _hand_of_history(history: History, number: int) -> tuple[Hand, Game]:
    """Return a hand of a hand history, whose cards need not be known, and the game that it was played in."""
    # nobody can be all-in on a stack that is not known
    history = replace(history, stacks=tuple(MAX_AMOUNT if stack is None else stack for stack in history.stacks))
    game = game_of(history)
    return to_acpc(history, game, number, hidden=True), game


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
        mixes = {}
        if hand.holes[actor]:  # what an agent would do depends on cards that hand histories may hide
            row = observation(game, state.betting, actor, parse_cards(hand.holes[actor]), parse_cards(board))
            for name, agent in agents:
                mixes[name] = dict(zip(game.labels, agent.probabilities(row)[0].tolist(), strict=True))
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
    if not game.is_holdem or not board or not hole:
        return ""
    board_cards = parse_cards(board)
    return name_text(hand_name(parse_cards(hole), board_cards, len(board_cards), ranking()))
