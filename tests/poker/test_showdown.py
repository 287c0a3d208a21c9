"""One showdown for every game: what wins with few cards, and logs of odd games that ingest agrees with."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pyspiel
import pytest

from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.formats.acpc import hand_values
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.cards import parse_cards, rank_hands, ranking
from pipeline.poker.game import Game, find_game, game_names, parse_game
from pipeline.poker.rules import (
    showdown,
)
from pipeline.poker.showdown import ranks_value, showdown_value
from pipeline.solving.small import settle_deal

ODD = {
    "one-hole-five-board": ("limit", 1, (0, 3, 1, 1), 2),
    "two-hole-one-board": ("limit", 2, (0, 1), 3),
    "two-hole-two-board": ("nolimit", 2, (0, 2), 2),
    "one-hole-three-board": ("nolimit", 1, (0, 3), 3),
    "one-hole-four-board": ("limit", 1, (0, 3, 1), 2),
    "two-hole-no-board": ("nolimit", 2, (0,), 2),
    "two-hole-three-board": ("limit", 2, (0, 3), 2),
}


def odd_text(name: str) -> str:
    """The `.game` file of an odd game."""
    betting, hole, board, players = ODD[name]
    rounds = len(board)
    lines = ["GAMEDEF", betting, f"numPlayers = {players}", f"numRounds = {rounds}"]
    lines += [f"blind = {' '.join(['5', '10', '0'][:players])}", f"firstPlayer = {' '.join(['1'] * rounds)}"]
    if betting == "limit":
        lines += [f"raiseSize = {' '.join(['10'] * rounds)}", f"maxRaises = {' '.join(['3'] * rounds)}"]
    else:
        lines += [f"stack = {' '.join(['200'] * players)}"]
    lines += ["numSuits = 4", "numRanks = 13", f"numHoleCards = {hole}"]
    return "\n".join([*lines, f"numBoardCards = {' '.join(map(str, board))}", "END GAMEDEF", ""])


def value(hole: str, board: str) -> int:
    holes, open_ = parse_cards(hole), parse_cards(board)
    return int(showdown_value(holes, len(holes), open_, len(open_), ranking()))


def test_a_pair_of_twos_beats_ace_king_on_one_board_card() -> None:
    assert value("2c2d", "Qh") > value("AcKd", "Qh")
    assert value("AcKd", "Kh") > value("2c2d", "Kh")


def test_one_hole_card_makes_straights_and_flushes_with_the_board() -> None:
    board = "2h4h6h8hTc"
    assert value("3h", board) > value("Td", board)  # a flush over a pair
    assert value("9d", "5c6h7d8s2c") > value("8c", "5c6h7d8s2c")  # a straight over a pair


def test_two_pair_beats_a_pair_of_aces_among_four_cards() -> None:
    assert value("3c2d", "3h2s") > value("Ac3d", "As2c")  # two pair over a pair
    assert value("2c2d", "2h3s") > value("AcAd", "KhKs")  # three of a kind over two pair


def test_few_cards_rank_as_they_do_beside_cards_that_help_nobody() -> None:
    """Four cards compare as the five-card hands they become with a two of another suit that pairs nothing."""
    rng = np.random.default_rng(5)
    deck = np.arange(8, 52)  # fours and higher
    hands = np.stack([rng.choice(deck, 4, replace=False) for _ in range(400)]).astype(np.uint8)
    suits = [{int(card) & 3 for card in hand} for hand in hands]
    low = np.array([next(s for s in range(4) if s not in found) if len(found) < 4 else 0 for found in suits])
    fives = rank_hands(np.column_stack([hands, low]).astype(np.uint8))
    fours = [int(showdown_value(hand[:2], 2, hand[2:], 2, ranking())) for hand in hands]
    straight = [sorted(int(c) >> 2 for c in hand) for hand in hands]
    kept = [i for i, ranks in enumerate(straight) if ranks not in ([2, 3, 4, 5], [1, 2, 3, 12])]
    for i, j in combinations(kept[:120], 2):
        assert np.sign(fours[i] - fours[j]) == np.sign(int(fives[i]) - int(fives[j]))


def test_arena_ingest_and_solver_rank_leduc_alike() -> None:
    game = find_game("leduc.limit.2p")
    state = game.start()
    for _ in range(2 * 2):
        state = state.apply(1)
    hands, result = np.zeros(2, np.int64), np.zeros(2)
    for first, second, board in combinations(game.deck, 3):
        for mine, other, shown in ((first, second, board), (board, first, second), (second, board, first)):
            values = np.zeros(2, np.int64)
            hole = np.array([[mine, 255], [other, 255]], np.uint8)
            showdown(game.rules, hole, np.array([shown, 255, 255, 255, 255], np.uint8), ranking(), values)
            deal = np.array([mine >> 2, other >> 2, shown >> 2], np.int64)
            settle_deal(game.rules, state.vector, deal, hands, result)
            assert result.tolist() == list(state.payoffs(values))


def test_the_fourteenth_rank_of_a_game_without_a_deck_wins() -> None:
    assert [ranks_value(rank, 1) for rank in range(14)] == sorted(ranks_value(rank, 1) for rank in range(14))


def spiel_values(game: Game, path: Path) -> list[tuple[str, list[float], list[float]]]:
    """Each hand of a log: its text, its payoffs, and those of open_spiel's copy of the ACPC rules."""
    oracle = pyspiel.universal_poker.load_universal_poker_from_acpc_gamedef(game.text)
    if game.nolimit:
        oracle = pyspiel.load_game("universal_poker", {**oracle.get_parameters(), "bettingAbstraction": "fullgame"})
    found = []
    for line in path.read_text().splitlines():
        if not line.startswith("STATE:"):
            continue
        _, _, betting, cards, payoffs, _ = line.split(":")
        hole, _, board = cards.partition("/")
        coming = iter(parse_cards(board.replace("/", "")).tolist())
        state = oracle.new_initial_state()
        for card in parse_cards(hole.replace("|", "")).tolist():
            state.apply_action(card)
        for letter in re.findall(r"[fc]|r\d*", betting):
            while state.is_chance_node():
                state.apply_action(next(coming))
            state.apply_action("fc".index(letter) if letter in "fc" else int(letter[1:] or 2))
        while state.is_chance_node():
            state.apply_action(next(coming))
        found.append((line, [float(x) for x in payoffs.split("|")], state.returns()))
    return found


@pytest.mark.parametrize("name", [*game_names(), *ODD])
def test_the_arenas_logs_of_any_game_are_ingested_without_a_rejected_line(name: str, tmp_path: Path) -> None:
    if name in ODD:
        path = tmp_path / f"{name}.game"
        path.write_text(odd_text(name))
        game = find_game(path)
    else:
        game, path = find_game(name), None
    players = [resolve(agent, game) for agent in ("@random", "@call", "@random")[: game.players]]
    played = play_match(players, game, hands=150 * game.players, seed=4, log=tmp_path / "x.log")
    done = ingest([str(log) for log in played.logs], tmp_path / "rows", options(game=str(path or name)))
    assert done.rejected == 0
    assert done.hands == 150 * game.players
    if name in ODD:
        for line, given, due in spiel_values(game, played.logs[0]):
            assert given == pytest.approx(due, abs=1e-5), line


def test_hand_values_of_text_are_those_of_the_kernels() -> None:
    game = parse_game(odd_text("one-hole-five-board"))
    weaker, stronger = hand_values(game, ("Td", "3h"), ("", "2h4h6h", "8h", "Tc"))
    assert weaker < stronger
