"""A table for a person: hands against agents, in the terminal.

The person sits at seat 0; the other seats are agents behind the same `Player` that plays them on the wire, so they see
match states and nothing else. Cards come from the dealer's generator. What to show and what was typed go through two
functions, `show` and `ask`; nothing here knows of a screen. Finished hands are kept as an ACPC log, written anew after
each, which can be ingested like any other.

Amounts are those of the protocol: a raise is to a total over the whole hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np

from pipeline.acpc import Hand, Score, hand_values
from pipeline.agents import Agent
from pipeline.cards import SUIT_SIGNS, card_text, hand_name, name_text, parse_cards, rank_hands, ranking
from pipeline.dealing import Deal, MatchPlan, deals, finished_hand, header_lines, view
from pipeline.errors import PipelineError
from pipeline.files import replacing
from pipeline.game import Game, State, actions
from pipeline.player import Player
from pipeline.rules import CALL, FOLD, RAISE

__all__ = ["Table", "drawn", "equities", "parse_action"]

RED, PLAIN = "\x1b[31m", "\x1b[0m"
MOST_BOARDS = 50_000
"""boards that are gone through one by one for an equity; beyond, so many are drawn"""
SIZES = {"s": "a quarter pot", "h": "half the pot", "p": "the pot", "o": "twice the pot", "a": "all-in"}
HELP_LIMIT = "   f  fold   c  check or call   r  raise   q  leave (the hand is not counted)"
HELP_NOLIMIT = """\
   f  fold   c  check or call   q  leave (the hand is not counted)
   r 300 or 300  raise to a total of 300 over the whole hand
   s h p o a     raise by a quarter, half, one or two pots, or all-in"""
AFTER = "Enter: next hand   p: what the others' mixes were   e: equity by street   q: leave > "


class Leave(Exception):  # noqa: N818
    """The person stands up."""


def drawn(cards: Sequence[str], colour: bool = False) -> list[str]:
    """Cards side by side, as three lines.

    >>> print("\\n".join(drawn(["As", "Td"])))
    ┌────┐┌────┐
    │ A♠ ││ T♦ │
    └────┘└────┘
    """
    faces = []
    for card in cards:
        face = card[0] + SUIT_SIGNS[card[1]]
        faces.append(f"│ {RED}{face}{PLAIN} │" if colour and card[1] in "dh" else f"│ {face} │")
    return ["┌────┐" * len(cards), "".join(faces), "└────┘" * len(cards)]


def split(cards: str) -> list[str]:
    """The single cards of a text."""
    return [cards[i : i + 2] for i in range(0, len(cards), 2)]


def parse_action(text: str, state: State) -> tuple[int, int]:
    """The action that a person's words mean; an error says what would be legal."""
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
    if game.nolimit and word in SIZES:
        label = game.labels.index(word)
        if not state.legal_labels >> label & 1:
            raise PipelineError(f"a raise by {SIZES[word]} is not possible: raise to {low} up to {high}")
        return state.choose(label)
    if game.nolimit and number.isdecimal() and word.removesuffix(number) in ("", "r", "raise", "b", "bet", "raiseto"):
        if not low <= int(number) <= high:
            raise PipelineError(f"a raise to {number} is not possible: raise to {low} up to {high}")
        return RAISE, int(number)
    if game.nolimit and word in ("r", "raise", "b", "bet"):
        raise PipelineError(f"how much? raise to a total of {low} up to {high}, as in r {low}")
    raise PipelineError(f"{text.strip()!r} is not an action; ? explains")


def equities(game: Game, deal: Deal, street: int, folded: Sequence[bool], seed: int = 0) -> list[float]:
    """Each player's share of the pot if nobody acted any more, over all boards to come (or many drawn ones)."""
    board = parse_cards("".join(deal.board[:street]))
    holes = parse_cards("".join(deal.holes)).reshape(game.players, game.hole_cards)
    left = np.setdiff1d(game.deck, np.concatenate([board, holes.ravel()]))
    missing = sum(game.board_cards) - len(board)
    if (count := comb(len(left), missing)) <= MOST_BOARDS:
        rest = np.array(list(combinations(left.tolist(), missing)), dtype=np.uint8).reshape(count, missing)
    else:
        order = np.random.default_rng(seed).random((MOST_BOARDS, len(left))).argpartition(missing, axis=1)
        rest = left[order[:, :missing]]
    boards = np.hstack([np.tile(board, (len(rest), 1)), rest])
    values = np.zeros((len(boards), game.players), dtype=np.int64)
    for p, hole in enumerate(holes):
        if folded[p]:
            values[:, p] = -1
        elif game.is_holdem:
            values[:, p] = rank_hands(np.hstack([np.tile(hole, (len(boards), 1)), boards]))
        else:
            values[:, p] = [
                hand_values(game, (deal.holes[p],), ("".join(map(card_text, cards)),))[0] for cards in boards.tolist()
            ]
    best = values == values.max(axis=1, keepdims=True)
    return [float(share) for share in (best / best.sum(axis=1, keepdims=True)).mean(axis=0)]


@dataclass
class Table:
    """A person and agents at a game."""

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
    hands: list[Hand] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)

    def play(self, most: int | None = None) -> Score:
        """Hands until the person leaves or `most` have been played."""
        if len(self.bots) != self.game.players - 1:
            raise PipelineError(f"{self.game.name} seats {self.game.players - 1} agents beside you")
        if self.log_file and self.log_file.exists():
            raise PipelineError(f"{self.log_file} exists; name another log to keep what is in it")
        self.totals = [0.0] * self.game.players
        players = [Player(bot, self.seed + seat) for seat, bot in enumerate(self.bots, 1)]
        for player in players:
            player.warm_up()
        for number, deal in enumerate(deals(self.game, self.seed)):
            if number == most:
                break
            try:
                self._hand(number, deal, players)
            except (Leave, EOFError, KeyboardInterrupt):
                break
        return Score(tuple(round(total, 6) for total in self.totals), self.names)

    def _hand(self, number: int, deal: Deal, players: Sequence[Player]) -> None:
        """One hand and what the person wants to know after it."""
        seats = [(position + number) % self.game.players for position in range(self.game.players)]
        me, mixes = seats.index(0), []
        names = [self.names[seat] for seat in seats]
        self.show(f"\n── hand {number + 1} ── {self._standing()} ── {self._blinds(names, me)}")
        state = self.game.start()
        while True:
            heard = {p: players[seats[p] - 1].hear(view(number, deal, state, p)) for p in range(len(seats)) if p != me}
            if state.finished:
                break
            actor = state.actor
            if actor == me:
                self._draw(deal, state, me)
                action, size = self._choose(state)
            else:
                turn, player = heard[actor], players[seats[actor] - 1]
                assert turn is not None
                ((action, size),) = actions(player.decide(turn).rpartition(":")[2])
                mixes.append((names[actor], state, action, size, player.mix))
            self.show(f"   {_says('you' if actor == me else names[actor], *_deed(state, action, size))}")
            state = state.apply(action, size)
        hand = finished_hand(number, deal, state, names)
        for seat, payoff in zip(seats, hand.payoffs, strict=True):
            self.totals[seat] += payoff
        self.hands.append(hand)
        self._save()
        self._draw_end(deal, state, ["you" if seat == 0 else self.names[seat] for seat in seats], hand)
        while (word := self.ask(AFTER).strip().lower()) != "":
            if word == "q":
                raise Leave
            if word == "p":
                self.show("\n".join(_mix_line(deal, *mix) for mix in mixes) or "   nobody else acted")
            elif word == "e":
                self._show_equities(deal, state, names)
            else:
                self.show(f"   {word!r} is none of these")

    def _choose(self, state: State) -> tuple[int, int]:
        """Ask until the person's action is legal."""
        low, high = state.raise_range
        offers = ["[f]old"] if state.to_call else []
        offers.append(f"[c]all {state.to_call}" if state.to_call else "[c]heck")
        if high:
            offers.append(f"[r]aise to {low}" + (f"-{high}" if self.game.nolimit else ""))
        prompt = "   ".join(["", *offers, "? > "])
        while True:
            word = self.ask(prompt).strip().lower()
            if word == "q":
                raise Leave
            if word == "?":
                self.show(HELP_NOLIMIT if self.game.nolimit else HELP_LIMIT)
                continue
            try:
                return parse_action(word, state)
            except PipelineError as error:
                self.show(f"   {error}")

    def _standing(self) -> str:
        return "   ".join(f"{name} {total:+,g}" for name, total in zip(self.names, self.totals, strict=True))

    def _blinds(self, names: Sequence[str], me: int) -> str:
        """Who has put in what before the cards."""
        posted = [(p, blind) for p, blind in enumerate(self.game.blinds) if blind]
        return ", ".join(_says("you" if p == me else names[p], "post", f" {blind}") for p, blind in posted)

    def _draw(self, deal: Deal, state: State, me: int) -> None:
        """The board and the person's cards."""
        board = split("".join(deal.board[: state.round]))
        hole = split(deal.holes[me])
        said = ""
        if self.game.is_holdem and board:
            held, opened = parse_cards(deal.holes[me]), parse_cards("".join(board))
            said = name_text(hand_name(held, opened, len(opened), ranking()))
        left, right = drawn(hole, self.colour), drawn(board, self.colour)
        self.show("\n".join(f"   {a}   {b}" for a, b in zip(left, right, strict=True)))
        self.show(f"   pot {state.pot}" + (f"   you hold {said}" if said else ""))

    def _draw_end(self, deal: Deal, state: State, names: Sequence[str], hand: Hand) -> None:
        """The board, what was shown and who won."""
        if state.showdown:
            for line in drawn(split("".join(deal.board)), self.colour) if any(deal.board) else []:
                self.show(f"   {line}")
            for p, name in enumerate(names):
                if not state.folded[p]:
                    face = "".join(card[0] + SUIT_SIGNS[card[1]] for card in split(deal.holes[p]))
                    self.show(f"   {_says(name, 'show', f' {face}{self._called(deal, p)}')}")
        results = (f"{name} {payoff:+,g}" for name, payoff in zip(names, hand.payoffs, strict=True))
        self.show(f"   result: {'   '.join(results)}")

    def _called(self, deal: Deal, position: int) -> str:
        if not self.game.is_holdem:
            return ""
        board = parse_cards("".join(deal.board))
        return f", {name_text(hand_name(parse_cards(deal.holes[position]), board, len(board), ranking()))}"

    def _show_equities(self, deal: Deal, state: State, names: Sequence[str]) -> None:
        """Everybody's chances on each street that was played, all cards known."""
        self.show("   all cards known: " + "   ".join(f"{n} {h}" for n, h in zip(names, deal.holes, strict=True)))
        for street in range(state.round + 1):
            shares = equities(self.game, deal, street, [False] * len(names), self.seed)
            board = "".join(deal.board[:street]) or "before the board"
            self.show(f"   {board:>16}  " + "   ".join(f"{n} {s:.1%}" for n, s in zip(names, shares, strict=True)))

    def _save(self) -> None:
        """Write the log of the hands so far."""
        if self.log_file is None:
            return
        match = MatchPlan(self.game, self.names, len(self.hands), self.seed, title=self.log_file.stem)
        score = Score(tuple(round(total, 6) for total in self.totals), self.names)
        with replacing(self.log_file) as path:
            path.write_text(header_lines(match) + "".join(f"{line}\n" for line in (*self.hands, score)))


def _deed(state: State, action: int, size: int) -> tuple[str, str]:
    """What an action is called at a table: verb and amount."""
    if action == FOLD:
        return "fold", ""
    if action == CALL:
        return ("call", f" {state.to_call}") if state.to_call else ("check", "")
    total = size if state.game.nolimit else state.raise_range[0]
    return "raise", f" to {total}" + (", all-in" if total == state.game.stacks[state.actor] else "")


def _says(who: str, verb: str, rest: str) -> str:
    return f"you {verb}{rest}" if who == "you" else f"{who} {verb}s{rest}"


def _mix_line(deal: Deal, name: str, state: State, action: int, size: int, mix: Sequence[float]) -> str:
    """A decision of an agent: its cards, the situation and its probabilities."""
    labels = state.game.labels
    taken = state.label_of(action, size)
    shares = "  ".join(
        f"{'*' if label == taken else ''}{labels[label]} {share:.0%}" for label, share in enumerate(mix) if share > 0
    )
    board = "".join(deal.board[: state.round])
    cards = deal.holes[state.actor] + (f" on {board}" if board else "")
    return f"   {name} with {cards} after {state.betting or '-'}: {shares}"
