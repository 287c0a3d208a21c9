"""What the acting player sees of the others: checked against a plain reading of the state."""

from __future__ import annotations

import random

import played
import pytest

from pipeline.dataset.decisions import NO_AGGRESSOR, observation
from pipeline.poker.game import Game, State, find_game, parse_game

SIX = parse_game(
    """GAMEDEF
nolimit
numPlayers = 6
numRounds = 4
stack = 1000 400 2000 150 20000 1000
blind = 50 100 0 0 0 0
firstPlayer = 3 1 1 1
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF""",
    "six",
)
GAMES = [SIX, *map(find_game, ("holdem.limit.2p.reverse_blinds", "holdem.nolimit.3p", "leduc.limit.2p"))]


def others(state: State) -> list[int]:
    return [p for p in range(state.game.players) if p != state.actor and not state.folded[p]]


def left_to_act(state: State) -> int:
    """Others who get a turn on this street if everybody from here on calls."""
    actor, seen = state.actor, set()
    now = state.apply(1)
    while not now.finished and now.round == state.round:
        seen.add(now.actor)
        now = now.apply(1)
    return len(seen - {actor})


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_the_others_are_counted_as_they_sit(game: Game) -> None:
    rng = random.Random(game.name)
    for _ in range(150):
        hand = played.hand(game, rng)
        state, aggressor = game.start(), NO_AGGRESSOR
        board = "".join(hand.board)
        for before, action in played.actions(hand.betting):
            position = state.actor
            opened = played.numbers(board[: 2 * game.visible(state.round)])
            row = observation(game, before, position, played.numbers(hand.holes[position]), opened)[0]
            order = [(game.first[-1] - 1 + i) % game.players for i in range(game.players)]
            later = order[order.index(position) + 1 :]
            assert row["in_hand"] == len(others(state)) + 1
            assert row["behind"] == len([p for p in others(state) if p in later])
            assert row["to_act"] == left_to_act(state)
            assert row["aggressor"] == aggressor
            least = max(game.stacks[p] for p in others(state))
            effective = min(game.stacks[position], least) - state.spent[position]
            assert row["effective"] == (effective if game.nolimit else 0)
            if action[0] == "r":
                aggressor = position
            state = state.apply("fcr".index(action[0]), int(action[1:] or 0))
