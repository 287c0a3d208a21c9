"""Hands played at random by the rules, as log lines, and lines spoiled in ways that must be noticed."""

from __future__ import annotations

import random

from pipeline.acpc import Hand, hand_values
from pipeline.cards import card_text
from pipeline.game import Game, State

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
