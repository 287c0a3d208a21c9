"""Let a person play against agents, action by action, and show the hands in a terminal.

The person sits at seat 0; the other seats are agents behind the same `Player` that plays them on the wire, so they see
match states and nothing else. Cards come from the dealer's generator. A `Sitting` takes the person's actions and gives
the state, the others' actions and the probability of each; the table in a browser plays through it too. Finished hands
are stored as an ACPC log, written anew after each, which can be ingested like any other.

A `TerminalTable` shows a sitting in words and reads a person's words, through two functions, `show` and `ask`; nothing
here knows of a screen. Amounts are those of a street, as players say them: after 300 before the flop, `bet 600` puts in
600 more, which the protocol writes as a raise to a total of 900.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, Learner
from pipeline.arena.variance.equities import is_adjustable
from pipeline.arena.variance.estimator import adjust
from pipeline.arena.variance.records import records_of
from pipeline.arena.wire.dealer import Deal, MatchPlan, deals, finished_hand, header_lines, view
from pipeline.arena.wire.player import Player
from pipeline.formats.acpc import Hand, Score
from pipeline.models.measures import Estimate, Winnings, half_width
from pipeline.poker.allin import showdown_shares
from pipeline.poker.cards import SUIT_SIGNS, parse_cards
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import CALL, FOLD, RAISE
from pipeline.poker.spoken import action_words, is_bet, name_with_kickers, on_street, over_hand, sentence, wrap_items
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing


class Move(NamedTuple):
    """An action of a hand."""

    name: str
    """of the acting player; the person is `you`"""
    state: State
    """before it"""
    action: int
    size: int
    mix: list[float]
    """the agent's probabilities by label; empty for the person"""


class LiveHand:
    """A hand that is being played."""

    def __init__(self, number: int, deal: Deal, game: Game, names: Sequence[str]) -> None:
        players = game.players
        self.number, self.deal = number, deal
        self.seats = [(position + number) % players for position in range(players)]
        """who sits at each position"""
        self.me = self.seats.index(0)
        """the person's position"""
        self.names = ["you" if seat == 0 else names[seat] for seat in self.seats]
        """by position"""
        self.order = [self.seats.index(seat) for seat in range(players)]
        """positions in seat order: the person first, whoever is the dealer"""
        self.state = game.start()
        self.moves: list[Move] = []

    def add(self, action: int, size: int, mix: list[float]) -> Move:
        """Apply an action of the player to act, and return it as a move."""
        after = self.state.apply(action, size)
        move = Move(self.names[self.state.actor], self.state, action, size, mix)
        self.moves.append(move)
        self.state = after
        return move

    def take_back(self, count: int) -> None:
        """Return to the state after the first `count` moves."""
        if len(self.moves) > count:
            self.state = self.moves[count].state
            del self.moves[count:]


class Sitting:
    """Hands of one person against agents, one after the other.

    Parameters: `names` in seat order, the person first; `seed` decides the cards and the agents' dice; `log_file`
    for finished hands, which must not exist yet.
    """

    def __init__(
        self, game: Game, bots: Sequence[Agent], names: tuple[str, ...], seed: int, log_file: Path | None = None
    ) -> None:
        if len(bots) != game.players - 1:
            raise PipelineError(f"{game.name} seats {game.players - 1} agents beside you")
        if log_file and log_file.exists():
            raise PipelineError(f"{log_file} exists; name another log to keep what is in it")
        self.game, self.names, self.seed, self.log_file = game, names, seed, log_file
        self.hands: list[Hand] = []
        self.totals = [0.0] * game.players
        self.hand: LiveHand | None = None
        self._deals = deals(game, seed)
        self.learning = any(isinstance(bot, Learner) for bot in bots)
        """whether an agent at the table learns from hand to hand"""
        self._players = [Player(bot, seed + seat) for seat, bot in enumerate(bots, 1)]
        for player in self._players:
            player.warm_up()

    @property
    def score(self) -> Score:
        """Return everybody's chips won so far."""
        return Score(tuple(round(total, 6) for total in self.totals), self.names)

    def next_hand(self) -> LiveHand:
        """Deal a new hand; one that is not finished is not counted."""
        self.hand = LiveHand(len(self.hands), next(self._deals), self.game, self.names)
        return self.hand

    def others_act(self) -> list[Move]:
        """Let the agents act until it is the person's turn or the hand is over, which is then counted."""
        hand = self._current_hand()
        if len(self.hands) > hand.number:
            return []
        made = []
        while True:
            state = hand.state
            heard = {
                p: self._players[seat - 1].hear(view(hand.number, hand.deal, state, p))
                for p, seat in enumerate(hand.seats)
                if p != hand.me
            }
            if state.finished or state.actor == hand.me:
                break
            step, player = heard[state.actor], self._players[hand.seats[state.actor] - 1]
            assert step is not None
            ((action, size),) = actions(player.decide(step).rpartition(":")[2])
            made.append(hand.add(action, size, player.mix))
        if hand.state.finished:
            self._count(hand)
        return made

    def act(self, action: int, size: int) -> Move:
        """Take the person's action; one that is not legal is an error."""
        hand = self._current_hand()
        if hand.state.finished or hand.state.actor != hand.me:
            raise PipelineError("it is not your turn")
        return hand.add(action, size, [])

    def _current_hand(self) -> LiveHand:
        if self.hand is None:
            raise PipelineError("no hand has been dealt yet")
        return self.hand

    def _count(self, hand: LiveHand) -> None:
        """Add the results of a finished hand, and write the log of the hands so far."""
        line = finished_hand(hand.number, hand.deal, hand.state, [self.names[seat] for seat in hand.seats])
        for seat, position in enumerate(hand.order):
            self.totals[seat] += line.payoffs[position]
        self.hands.append(line)
        if self.log_file is not None:
            match = MatchPlan(self.game, self.names, len(self.hands), self.seed, title=self.log_file.stem)
            with replacing(self.log_file) as path:
                path.write_text(
                    header_lines(match) + "".join(f"{line}\n" for line in (*self.hands, self.score)), encoding="utf-8"
                )


class SittingResult(NamedTuple):
    """A person's win per hand, in thousandths of the big blind (of the ante in games of one card)."""

    hands: int
    winnings: Winnings
    """without an interval for fewer than two hands"""


def sitting_result(sitting: Sitting, *, adjusted: bool = True) -> SittingResult:
    """Return the person's result so far, plain and, with `adjusted`, with the luck of the cards taken out."""
    game, hands = sitting.game, sitting.hands
    won_mbb = np.array([hand.payoffs[hand.names.index(sitting.names[0])] for hand in hands]) * (1000 / game.big_blind)
    if len(hands) < 2:
        return SittingResult(len(hands), Winnings(Estimate(float(won_mbb.sum()))))
    plain = _estimate(won_mbb, sitting.learning)
    if not adjusted or not is_adjustable(game):
        return SittingResult(len(hands), Winnings(plain))
    records, names = records_of(game, hands, np.arange(len(hands), dtype=np.uint64))
    mine_mbb = adjust(records)[records.seats == names.index(sitting.names[0])] * (1000 / game.big_blind)
    return SittingResult(len(hands), Winnings(plain, _estimate(mine_mbb, sitting.learning)))


def _estimate(samples: Array, learning: bool) -> Estimate:
    """Return the mean of samples, hands in order, with its interval."""
    return Estimate.around(float(samples.mean()), half_width(samples, learning=learning))


RED, PLAIN = "\x1b[31m", "\x1b[0m"
WIDTH = 100
POT_SHARES = {"s": "a quarter pot", "h": "half the pot", "p": "the pot", "o": "twice the pot", "a": "all-in"}
HELP_LIMIT = ("f  fold", "c  check or call", "r  bet or raise", "q  leave (the hand is not counted)")
HELP_NOLIMIT = (
    "f  fold",
    "c  check or call",
    "r 300 or 300  bet 300, or raise to 300 on this street",
    "s h p o a  bet or raise by a quarter, half, one or two pots, or all-in",
    "q  leave (the hand is not counted)",
)
OFFERS_AFTER_HAND = ("Enter  next hand", "p  the others' probabilities", "e  equity by street", "q  leave", "?")
HELP_AFTER = (
    "Enter  the next hand is dealt",
    "p  every decision of the others: their cards, the betting, and how likely each action was (* the one taken)",
    "e  the chance to win on each street, all cards known",
    "q  leave; this hand is counted",
)


class LeaveTable(Exception):  # noqa: N818
    """Raised when the person leaves the table."""


def card_art(cards: Sequence[str], colour: bool = False) -> list[str]:
    """Return pictures of cards side by side, as three lines.

    >>> print("\\n".join(card_art(["As", "Td"])))
    ┌────┐┌────┐
    │ A♠ ││ T♦ │
    └────┘└────┘
    """
    faces = []
    for card in cards:
        face = card[0] + SUIT_SIGNS[card[1]]
        faces.append(f"│ {RED}{face}{PLAIN} │" if colour and card[1] in "dh" else f"│ {face} │")
    return ["┌────┐" * len(cards), "".join(faces), "└────┘" * len(cards)]


def single_cards(cards: str) -> list[str]:
    """Return the single cards of a text.

    >>> single_cards("AsTd")
    ['As', 'Td']
    """
    return [cards[i : i + 2] for i in range(0, len(cards), 2)]


def parse_action(text: str, state: State) -> tuple[int, int]:
    """Return the action that a person's words mean; an error says what would be legal."""
    word = text.strip().lower().replace(" ", "")
    letter, number = word[:1], word.lstrip("abcdefghijklmnopqrstuvwxyz")
    game = state.game
    low, high = state.raise_range
    if word in ("f", "fold"):
        if not state.is_legal(FOLD):
            raise PipelineError("there is nothing to call, so nothing to fold: check with c")
        return FOLD, 0
    if word in ("c", "call", "check", "k", "x"):
        return CALL, 0
    if high == 0 and (letter in "rb" or number.isdecimal()):
        raise PipelineError("no raise is possible here")
    if not game.nolimit and word in ("r", "raise", "b", "bet"):
        return RAISE, 0
    if game.nolimit and word in POT_SHARES:
        label = game.labels.index(word)
        if not state.legal_labels >> label & 1:
            raise PipelineError(f"a raise by {POT_SHARES[word]} is not possible: {_range(state)}")
        return state.choose(label)
    if game.nolimit and number.isdecimal() and word.removesuffix(number) in ("", "r", "raise", "b", "bet", "raiseto"):
        total = over_hand(state, int(number[:12]))
        if not low <= total <= high:
            raise PipelineError(f"{number} is not possible: {_range(state)}")
        return RAISE, total
    if game.nolimit and word in ("r", "raise", "b", "bet"):
        raise PipelineError(f"how much? {_range(state)}, as in r {on_street(state, low)}")
    raise PipelineError(f"{text.strip()!r} is not an action; ? explains")


def _range(state: State) -> str:
    """Return the possible amounts in words, as players say them."""
    low, high = (on_street(state, total) for total in state.raise_range)
    return f"{'bet' if is_bet(state) else 'raise to'} {low:,} up to {high:,}"


@dataclass
class TerminalTable:
    """A person and agents at a game, shown in words."""

    game: Game
    bots: Sequence[Agent]
    names: tuple[str, ...]
    """in seat order, the person first"""
    seed: int
    show: Callable[[str], None]
    ask: Callable[[str], str]
    """may raise EOFError or KeyboardInterrupt to leave"""
    log_file: Path | None = None
    colour: bool = False
    width: int = WIDTH
    """columns of the screen"""
    sitting: Sitting = field(init=False)

    def __post_init__(self) -> None:
        self.sitting = Sitting(self.game, self.bots, self.names, self.seed, self.log_file)

    @property
    def hands(self) -> list[Hand]:
        """Return the finished hands."""
        return self.sitting.hands

    @property
    def totals(self) -> list[float]:
        """Return the chips won in all, in seat order."""
        return self.sitting.totals

    def play(self, most: int | None = None) -> Score:
        """Play hands until the person leaves or `most` have been played; return the result."""
        while len(self.hands) != most:
            try:
                self._hand()
            except (LeaveTable, EOFError, KeyboardInterrupt):
                break
        return self.sitting.score

    def _flow(self, items: Iterable[str], gap: str = "   ") -> None:
        self.show(wrap_items(items, self.width, gap=gap))

    def _hand(self) -> None:
        """Play one hand, and answer the person's questions after it."""
        hand = self.sitting.next_hand()
        posted = [sentence(hand.names[p], "post", f" {blind:,}") for p, blind in enumerate(self.game.blinds) if blind]
        head = (f"hand {hand.number + 1}", "   ".join(self._by_seat(self.totals)), ", ".join(posted))
        self.show("\n" + wrap_items((f"── {part}" for part in head), self.width, indent="", gap=" "))
        while True:
            for move in self.sitting.others_act():
                self._show_move(move)
            if hand.state.finished:
                break
            self._draw(hand.deal, hand.state, hand.me)
            self._show_move(self.sitting.act(*self._choose(hand.state)))
        self._draw_end(hand.deal, hand.state, hand.names, hand.order)
        won = [self.hands[-1].payoffs[position] for position in hand.order]
        self._flow(["result:", *self._by_seat(won)])
        mixes = [move for move in hand.moves if move.mix]
        while (word := self._ask(OFFERS_AFTER_HAND)) != "":
            if word == "q":
                raise LeaveTable
            if word == "?":
                self.show("\n".join(wrap_items(line.split(" "), self.width, gap=" ") for line in HELP_AFTER))
            elif word == "p":
                for move in mixes:
                    self._flow(_mix_items(hand.deal, move), gap=" ")
                if not mixes:
                    self.show("   nobody else acted")
            elif word == "e":
                self._show_equities(hand.deal, hand.state, hand.names, hand.order)
            else:
                self.show(f"   {word!r} is none of these; ? explains")

    def _show_move(self, move: Move) -> None:
        """Show an action in words."""
        self.show(f"   {sentence(move.name, *action_words(move.state, move.action, move.size))}")

    def _ask(self, offers: Iterable[str]) -> str:
        """Return the words that the person types, in small letters; the offers may take several lines."""
        *above, last = wrap_items([*offers, ">"], self.width).split("\n")
        for line in above:
            self.show(line)
        return self.ask(f"{last} ").strip().lower()

    def _choose(self, state: State) -> tuple[int, int]:
        """Ask until the person's action is legal."""
        low, high = state.raise_range
        offers = ["[f]old"] if state.to_call else []
        offers.append(f"[c]all {state.to_call:,}" if state.to_call else "[c]heck")
        if high:
            verb = "[r] bet" if is_bet(state) else "[r]aise to"
            most = f"-{on_street(state, high):,}" if self.game.nolimit and high > low else ""
            offers.append(f"{verb} {on_street(state, low):,}{most}")
        if self.game.nolimit:
            for label, letter in enumerate(self.game.labels):
                if letter in POT_SHARES and state.legal_labels >> label & 1:
                    offers.append(f"[{letter}] {on_street(state, state.choose(label)[1]):,}")
        while True:
            word = self._ask([*offers, "?"])
            if word == "q":
                raise LeaveTable
            if word == "?":
                lines = HELP_NOLIMIT if self.game.nolimit else HELP_LIMIT
                self.show("\n".join(wrap_items(line.split(" "), self.width, gap=" ") for line in lines))
                continue
            try:
                return parse_action(word, state)
            except PipelineError as error:
                self._flow(str(error).split(" "), gap=" ")

    def _by_seat(self, values: Sequence[float]) -> list[str]:
        """Return a number for everybody in words, the person first."""
        return [f"{name} {value:+,g}" for name, value in zip(("you", *self.names[1:]), values, strict=True)]

    def _draw(self, deal: Deal, state: State, me: int) -> None:
        """Show the board and the person's cards."""
        board = single_cards("".join(deal.board[: state.round]))
        hole = single_cards(deal.holes[me])
        made_hand = []
        if self.game.is_holdem and board:
            made_hand = [f"you hold {name_with_kickers(parse_cards(deal.holes[me]), parse_cards(''.join(board)))}"]
        hole_art, board_art = card_art(hole, self.colour), card_art(board, self.colour)
        if 9 + 6 * (len(hole) + len(board)) <= self.width:
            self.show("\n".join(f"   {a}   {b}".rstrip() for a, b in zip(hole_art, board_art, strict=True)))
        else:
            self.show("\n".join(f"   {line}" for line in (*hole_art, *board_art)))
        self._flow([f"pot {state.pot:,}", *made_hand])

    def _draw_end(self, deal: Deal, state: State, names: Sequence[str], order: Sequence[int]) -> None:
        """Show the board and the hole cards of the showdown."""
        if not state.showdown:
            return
        for line in card_art(single_cards("".join(deal.board)), self.colour) if any(deal.board) else []:
            self.show(f"   {line}")
        for position in order:
            if not state.folded[position]:
                face = "".join(card[0] + SUIT_SIGNS[card[1]] for card in single_cards(deal.holes[position]))
                self._flow([sentence(names[position], "show", f" {face}{self._called(deal, position)}")])

    def _called(self, deal: Deal, position: int) -> str:
        if not self.game.is_holdem:
            return ""
        return f", {name_with_kickers(parse_cards(deal.holes[position]), parse_cards(''.join(deal.board)))}"

    def _show_equities(self, deal: Deal, state: State, names: Sequence[str], order: Sequence[int]) -> None:
        """Show everybody's equity on each street that was played, all cards known."""
        self._flow(["all cards known:", *(f"{names[p]} {deal.holes[p]}" for p in order)])
        for street in range(state.round + 1):
            board = "".join(deal.board[:street])
            shares = showdown_shares(self.game, deal.holes, board, [False] * len(names))
            self._flow([f"{board or 'before the board':>16}", *(f"{names[p]} {shares[p]:.1%}" for p in order)])


def _mix_items(deal: Deal, move: Move) -> list[str]:
    """Return the parts of a text on an agent's decision: its cards, the situation and its probabilities."""
    state = move.state
    labels = state.game.labels
    taken = state.label_of(move.action, move.size)
    board = "".join(deal.board[: state.round])
    cards = deal.holes[state.actor] + (f" on {board}" if board else "")
    return [
        f"{move.name} with {cards} after {state.betting or '-'}:",
        *(
            f" {'*' if label == taken else ''}{labels[label]} {share:.0%}"
            + (f" (to {move.size:,})" if label == taken and move.size else "")
            for label, share in enumerate(move.mix)
            if share > 0
        ),
    ]
