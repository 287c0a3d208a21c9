"""Exact hand strength: enumeration, tables and where they are kept."""

from __future__ import annotations

import os
import threading
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import phevaluator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.poker.cards import parse_cards, ranking
from pipeline.poker.strength import board_tables
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.poker.strength.boards import BOARD_CARDS, HOLDINGS, boards, canonical, entry_number, entry_numbers
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.rows import STRENGTH, enumerate_row
from pipeline.poker.strength.win_counts import count_below, doubled_wins, rank_holdings, scaled_strength, sort_holdings
from pipeline.runtime.diskcache import load_bytes, load_or_build, locked, open_array, store_array, store_bytes
from pipeline.runtime.errors import PipelineError

deals = st.lists(st.integers(0, 51), min_size=7, max_size=7, unique=True).map(lambda deal: np.array(deal, np.uint8))
streets = st.sampled_from([1, 2, 3])


def random_deals(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    deal = np.argsort(rng.random((count, 52)), axis=1)[:, :7].astype(np.uint8)
    return np.ascontiguousarray(deal[:, :2]), np.ascontiguousarray(deal[:, 2:])


def brute_doubled_wins(hole: np.ndarray, board: np.ndarray) -> int:
    """Twice the wins plus ties, by an independent evaluator."""
    shown = [*map(int, hole), *map(int, board)]
    mine = phevaluator.evaluate_cards(*shown)
    others = combinations(sorted(set(range(52)) - set(shown)), 2)
    found = np.array([phevaluator.evaluate_cards(*map(int, board), *other) for other in others])
    return int(2 * (found > mine).sum() + (found == mine).sum())


# Boards


@pytest.mark.parametrize(("street", "size"), [(1, 1_755), (2, 16_432), (3, 134_459)])
def test_there_are_so_many_canonical_boards(street: int, size: int):
    found = boards(street)
    assert len(found.cards) == size
    assert found.weights.sum() == comb(52, BOARD_CARDS[street])
    own = [
        entry_number(np.array([50, 51], np.uint8), board, len(board), found.find) // HOLDINGS[street]
        for board in found.cards[:500]
    ]
    assert own == list(range(500))


@given(deals, streets, st.permutations(range(4)), st.permutations(range(5)))
def test_renaming_suits_changes_no_strength(deal: np.ndarray, street: int, suits: list[int], order: list[int]):
    renamed = (deal // 4 * 4 + np.array(suits)[deal % 4]).astype(np.uint8)
    count = BOARD_CARDS[street]
    shuffled = np.zeros(5, np.uint8)
    shuffled[:count] = renamed[2:][[i for i in order if i < count]]
    find = boards(street).find
    first = entry_number(deal[:2], deal[2:], count, find)
    second = entry_number(renamed[1::-1].copy(), shuffled, count, find)
    assert first // HOLDINGS[street] == second // HOLDINGS[street]
    tables = ranking()
    assert doubled_wins(deal[:2], deal[2:], count, tables) == doubled_wins(renamed[:2], shuffled, count, tables)


def test_entries_of_a_board_are_all_different():
    board = parse_cards("2dTsKh7h")
    left = [card for card in range(52) if card not in board]
    holes = np.array(list(combinations(left, 2)), np.uint8)
    found = entry_numbers(2, holes, np.tile(np.append(board, 255).astype(np.uint8), (len(holes), 1)))
    assert sorted(found % HOLDINGS[2]) == list(range(HOLDINGS[2]))
    assert len(set(found // HOLDINGS[2])) == 1


# One holding and all holdings


def test_the_thesis_example_wins_899_ties_6_loses_176():
    hole, board = parse_cards("TcJc"), parse_cards("2dTsKh")
    doubled = doubled_wins(hole, board, 3, ranking())
    assert doubled == 2 * 899 + 6
    assert find_strengths(1, hole[None], np.append(board, [255, 255])[None].astype(np.uint8))["ihs"][
        0
    ] == scaled_strength(doubled, 47)


def test_strength_agrees_with_an_independent_evaluator():
    holes, full = random_deals(90, seed=1)
    for k, (hole, board) in enumerate(zip(holes, full, strict=True)):
        count = 3 + k % 3
        if k % 2:  # boards with many of a suit, where flushes must be told apart
            board[:count] = np.setdiff1d(np.arange(k % 4, 52, 4), hole)[:count] if k % 4 == 1 else board[:count]
        assert doubled_wins(hole, board, count, ranking()) == brute_doubled_wins(hole, board[:count])


@pytest.mark.parametrize("text", ["2dTsKh", "8h9hTh", "2c2d2h2s", "4s5s6s7s", "AhKhQhJhTh", "2cTc5c5d8h", "3c4c5c6c8d"])
def test_all_holdings_at_once_equal_one_by_one(text: str):
    board = parse_cards(text)
    deck, values = np.empty(52, np.uint8), np.empty(1326, np.uint16)
    items, spare, out = np.empty(1326, np.uint32), np.empty(1326, np.uint32), np.empty(1326, np.uint16)
    left = rank_holdings(board, len(board), ranking(), deck, values)
    sort_holdings(values, left, items, spare)
    count_below(items, left, out)
    holes = [np.array([deck[low], deck[high]], np.uint8) for high in range(left) for low in range(high)]
    expected = [scaled_strength(doubled_wins(hole, board, len(board), ranking()), left - 2) for hole in holes]
    np.testing.assert_array_equal(out[: len(holes)], expected)


def test_my_strength_and_all_opponents_add_up_to_one():
    board = parse_cards("2dTsKh7h7c")
    left = [card for card in range(52) if card not in board]
    total = sum(doubled_wins(np.array(hole, np.uint8), board, 5, ranking()) for hole in combinations(left, 2))
    assert total == comb(47, 2) * comb(45, 2)


# The distribution


def brute_row(hole: np.ndarray, board: np.ndarray) -> np.ndarray:
    """River strengths of every runout, sorted."""
    shown = {*map(int, hole), *map(int, board)}
    runouts = combinations(sorted(set(range(52)) - shown), 5 - len(board))
    full = [np.array([*board, *runout], np.uint8) for runout in runouts]
    return np.sort([doubled_wins(hole, one, 5, ranking()) / (2 * comb(45, 2)) for one in full])


def test_rows_hold_the_mean_the_mean_square_and_the_means_of_eighths():
    holes, full = random_deals(12, seed=2)
    for street in (1, 2, 3):
        rows = find_strengths(street, holes, full)
        for hole, board, row in zip(holes, full, rows, strict=True):
            river = brute_row(hole, board[: BOARD_CARDS[street]])
            assert row["ehs"] / 65535 == pytest.approx(river.mean(), abs=2e-5)
            assert row["ehs2"] / 65535 == pytest.approx((river**2).mean(), abs=4e-5)
            eighths = np.repeat(river, 8).reshape(8, -1).mean(1)
            np.testing.assert_allclose(row["q"] / 255, eighths, atol=1.01 / 255)


def reachable_rivers(board: np.ndarray) -> set[int]:
    """Numbers of the canonical rivers that can come after a board."""
    left = [card for card in range(52) if card not in board]
    find = boards(3).find
    full = [np.array([*board, *rest], np.uint8) for rest in combinations(left, 5 - len(board))]
    return {canonical(one, 5, find)[0] for one in full}


@pytest.mark.parametrize(("street", "number"), [(1, 321), (2, 0), (2, 777), (2, 9_999)])
def test_tables_hold_what_enumeration_finds(street: int, number: int):
    cards = boards(street).cards[number : number + 1]
    rivers = np.zeros(len(boards(3).cards) * HOLDINGS[3], np.uint16)
    for river in reachable_rivers(cards[0]):
        board_tables._fill_rivers(boards(3).cards, river, river + 1, ranking(), rivers)
    built = np.zeros((HOLDINGS[street], 7), np.uint16)
    board_tables._fill_boards(cards, 0, 1, boards(3).find, rivers, ranking(), built)
    deck = [card for card in range(52) if card not in cards[0]]
    row = np.empty(7, np.uint16)
    for pair in range(0, HOLDINGS[street], 29):
        high = next(high for high in range(52) if comb(high + 1, 2) > pair)
        hole = np.array([deck[pair - comb(high, 2)], deck[high]], np.uint8)
        enumerate_row(hole, cards[0], cards.shape[1], ranking(), row)
        np.testing.assert_array_equal(built[pair], row)


def test_before_the_flop_aces_win_852_and_seven_deuce_346_in_a_thousand():
    holes = np.stack([parse_cards("AsAd"), parse_cards("7c2d"), parse_cards("JsTs"), parse_cards("4c4d")])
    rows = find_strengths(0, holes, np.full((4, 5), 255, np.uint8))
    np.testing.assert_allclose(rows["ehs"] / 65535, [0.8520, 0.3458, 0.5753, 0.5702], atol=5e-5)
    np.testing.assert_allclose(rows["q"].mean(1) / 255, rows["ehs"] / 65535, atol=1 / 255)
    assert rows["ehs2"][2] > rows["ehs2"][3]  # JTs and 44: the same mean, different distributions


# Queries


@pytest.mark.parametrize(
    ("street", "hole", "board", "reason"),
    [
        (1, "AcAc", "2d3d4d", "repeated or missing card: it holds AcAc"),
        (2, "AcAd", "2d3d4d", "4 different board cards"),
        (1, "AcAd", "Ac3d4d", "repeated"),
        (4, "AcAd", "2d3d4d", "not a street"),
    ],
)
def test_bad_cards_are_refused_with_the_reason(street: int, hole: str, board: str, reason: str):
    holes = np.array([[parse_cards(hole[:2])[0], parse_cards(hole[2:])[0]]], np.uint8)
    shown = np.full((1, 5), 255, np.uint8)
    shown[0, : len(board) // 2] = parse_cards(board)
    with pytest.raises(PipelineError, match=reason):
        find_strengths(street, holes, shown)
    with pytest.raises(PipelineError, match="rows of 2 hole"):
        find_strengths(1, holes[0], shown[0])


def test_a_query_without_rows_gives_no_rows():
    assert len(find_strengths(1, np.empty((0, 2), np.uint8), np.empty((0, 5), np.uint8))) == 0


# Kept tables


def fits(table: np.ndarray) -> bool:
    return table.dtype == STRENGTH and table.shape == (50,)


def test_a_kept_array_is_opened_as_it_was_written(tmp_path: Path):
    path = tmp_path / "deep" / "some.npy"
    array = np.frombuffer(np.random.default_rng(0).bytes(14 * 50), STRENGTH)
    assert open_array(path, 1, fits) is None
    with locked(path.parent):
        store_array(path, array, 1)
    opened = open_array(path, 1, fits)
    assert opened is not None
    assert not opened.flags.writeable
    np.testing.assert_array_equal(opened, array)


def test_a_damaged_or_old_array_is_as_good_as_none(tmp_path: Path):
    path = tmp_path / "some.npy"
    store_array(path, np.zeros(50, STRENGTH), 1)
    assert open_array(path, 2, fits) is None
    path.touch()  # another time, the same bytes: still good
    assert open_array(path, 1, fits) is not None
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert open_array(path, 1, fits) is None
    path.write_bytes(content[:100])
    assert open_array(path, 1, fits) is None
    store_array(path, np.zeros(50, STRENGTH), 1)
    path.with_suffix(".json").write_text("{")
    assert open_array(path, 1, fits) is None


def test_damage_is_noticed_though_the_file_keeps_its_date(tmp_path: Path):
    path = tmp_path / "some.npy"
    store_array(path, np.zeros(50, STRENGTH), 1)
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert open_array(path, 1, fits) is None


def test_an_array_of_another_shape_or_type_is_as_good_as_none(tmp_path: Path):
    path = tmp_path / "some.npy"
    store_array(path, np.zeros(49, STRENGTH), 1)
    path.touch()
    assert open_array(path, 1, fits) is None


def test_kept_bytes_come_back_and_damaged_or_old_ones_do_not(tmp_path: Path):
    path = tmp_path / "x" / "some.bytes"
    assert load_bytes(path, 3) is None
    store_bytes(path, b"centroids\n\x00", 3)
    assert load_bytes(path, 3) == b"centroids\n\x00"
    assert load_bytes(path, 4) is None
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert load_bytes(path, 3) is None
        path.write_bytes(whole[:at])
        assert load_bytes(path, 3) is None


def test_what_is_kept_is_found_where_nothing_can_be_written(tmp_path: Path):
    (tmp_path / "lock").mkdir()  # stops the superuser too, whom a read-only folder would not stop
    assert load_or_build(tmp_path, lambda: "kept", lambda: "made") == "kept"
    with pytest.raises(OSError, match="lock"):
        load_or_build(tmp_path, lambda: None, lambda: "made")
    (tmp_path / "lock").rmdir()
    looked = iter([None, "made by another"])
    assert load_or_build(tmp_path, lambda: next(looked), lambda: "made twice") == "made by another"
    assert load_or_build(tmp_path, lambda: None, lambda: "made") == "made"


def test_a_second_builder_waits_for_the_first(tmp_path: Path):
    order = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with locked(tmp_path):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(tmp_path):
        thread.start()
        waiting.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.long
def test_whole_tables_answer_as_enumeration_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path))
    folder = tmp_path / "strength"
    holes, full = random_deals(2_000, seed=5)
    without = [find_strengths(street, holes, full) for street in (1, 2)]
    assert not folder.exists()
    ensure_tables()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 320e6
    for street, expected in zip((1, 2), without, strict=True):
        np.testing.assert_array_equal(find_strengths(street, holes, full), expected)
    (folder / "flop.npy").write_bytes(b"damaged")
    ensure_tables()
    np.testing.assert_array_equal(find_strengths(1, holes, full), without[0])
