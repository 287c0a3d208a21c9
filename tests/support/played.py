"""Hands played at random by the rules, as log lines, and lines spoiled in ways that must be noticed."""

from __future__ import annotations

import random

from pipeline.formats.acpc import SCORE, Hand, Score, hand_values
from pipeline.poker.cards import card_text, parse_card
from pipeline.poker.game import Game, State, builtin

ALPHABET = "fcrb0123456789/|:.-# STATEcdhsTJQKA\r"


def play(game: Game, rng: random.Random) -> State:
    """A finished hand's betting, chosen at random among legal actions."""
    state = game.start()
    while not state.finished:
        low, high = state.raise_range
        choices = [(1, 0)] * 3 + ([(0, 0)] if state.to_call > 0 else [])
        if high:
            size = rng.choice([low, high, rng.randint(low, high)]) if game.nolimit else 0
            choices += [(2, size)] * 2
        state = state.apply(*rng.choice(choices))
    return state


def hand(game: Game, rng: random.Random, number: int = 0, names: tuple[str, ...] = ()) -> Hand:
    """A finished hand with random cards and the right payoffs."""
    state = play(game, rng)
    deck = [card_text(int(card)) for card in game.deck]
    rng.shuffle(deck)
    holes = tuple("".join(deck.pop() for _ in range(game.hole_cards)) for _ in range(game.players))
    board = tuple("".join(deck.pop() for _ in range(count)) for count in game.board_cards[1 : state.round + 1])
    values = hand_values(game, holes, board) if state.showdown else [0] * game.players
    names = names or tuple(f"player_{i}" for i in range(game.players))
    return Hand(number, state.betting, holes, board, state.payoffs(values), names)


def parse_score(line: str) -> Score:
    """The totals and names of a SCORE line."""
    found = SCORE.fullmatch(line)
    assert found, f"not a score line of an ACPC log: {line!r}"
    return Score(tuple(map(float, found["totals"].split("|"))), tuple(found["names"].split("|")))


def older(game: Game, played: Hand) -> str:
    """The same hand as logs of 2009 and 2010 wrote it."""
    state = game.start()
    betting = "".join(f"b{blind}" for blind in sorted(game.blinds) if blind)
    for round_index, word in enumerate(played.betting.split("/")):
        betting += "/" if round_index else ""
        while word:
            size = ""
            letter, word = word[0], word[1:]
            while word and word[0].isdigit():
                size, word = size + word[0], word[1:]
            actor = state.actor
            state = state.apply("fcr".index(letter), int(size or 0))
            betting += letter if letter == "f" or not game.nolimit else f"{letter}{state.spent[actor]}"
    _, number, _, cards, payoffs, names = str(played).split(":")
    return f"{names}:{number}:{betting}:{cards}:{payoffs}"


def spoil(line: str, rng: random.Random) -> str:
    """The line with one to three random changes."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(line) + 1) if line else 0
        kind = rng.randrange(7)
        if kind == 0:
            line = line[:at] + line[at + 1 :]
        elif kind == 1:
            line = line[:at] + rng.choice(ALPHABET) + line[at:]
        elif kind == 2:
            line = line[:at] + rng.choice(ALPHABET) + line[at + 1 :]
        elif kind == 3:
            line = line[:at]
        elif kind == 4:
            fields = line.split(":")
            rng.shuffle(fields)
            line = ":".join(fields)
        elif kind == 5:
            other = rng.randrange(len(line) + 1)
            line = line[: min(at, other)] + line[max(at, other) :]
        else:
            fields = line.split(":")
            i = rng.randrange(len(fields))
            halves = fields[i].split("|")
            rng.shuffle(halves)
            fields[i] = "|".join(halves)
            line = ":".join(fields)
    return line.replace("\n", "")


def actions(betting: str) -> list[tuple[str, str]]:
    """Each action of a betting string with the string before it."""
    found = []
    at = 0
    while at < len(betting):
        end = at + 1
        while end < len(betting) and betting[end].isdigit():
            end += 1
        if betting[at] != "/":
            found.append((betting[:at], betting[at:end]))
        at = end
    return found


def numbers(cards: str) -> list[int]:
    """Card numbers of a text."""
    return [parse_card(cards[i : i + 2]) for i in range(0, len(cards), 2)]


def replayed(game: Game, dealt: Hand, rng: random.Random, names: tuple[str, ...]) -> Hand:
    """Another play of a deal: same hole cards, other betting and names."""
    state = play(game, rng)
    held = {card for hole in dealt.holes for card in numbers(hole)}
    deck = [card_text(int(card)) for card in game.deck if int(card) not in held]
    rng.shuffle(deck)
    board = tuple("".join(deck.pop() for _ in range(count)) for count in game.board_cards[1 : state.round + 1])
    values = hand_values(game, dealt.holes, board) if state.showdown else [0] * game.players
    return Hand(dealt.number, state.betting, dealt.holes, board, state.payoffs(values), names)


def redealt(hand_: Hand, position: int, rng: random.Random) -> Hand:
    """The same hand of heads-up limit hold'em with other hole cards for one player, paid accordingly."""
    game = builtin("holdem.limit.2p.reverse_blinds")
    used = {*numbers("".join(hand_.holes)), *numbers("".join(hand_.board))}
    free = [int(card) for card in game.deck if int(card) not in used]
    holes = list(hand_.holes)
    holes[position] = "".join(card_text(card) for card in rng.sample(free, 2))
    state = game.start()
    for _, action in actions(hand_.betting):
        state = state.apply("fcr".index(action))
    values = hand_values(game, tuple(holes), hand_.board) if state.showdown else [0, 0]
    return Hand(hand_.number, hand_.betting, tuple(holes), hand_.board, state.payoffs(values), hand_.names)
