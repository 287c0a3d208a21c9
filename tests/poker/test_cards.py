"""Cards, ranking, names, starting classes and suit patterns."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, pairwise, permutations, product

import numpy as np
import phevaluator
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.poker import cards
from pipeline.poker.cards import (
    card_text,
    cards_text,
    class_combos,
    class_text,
    hand_name,
    hand_names,
    hand_value,
    holding_value,
    name_text,
    pair_index,
    parse_card,
    parse_cards,
    pattern_text,
    patterns,
    rank_hands,
    ranking,
    start_class,
)
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from tools.tables import scores

deals = st.lists(st.integers(0, 51), min_size=7, max_size=7, unique=True).map(lambda deal: np.array(deal, np.uint8))
counts = st.sampled_from([3, 4, 5])


@pytest.fixture(scope="module")
def random_deals() -> np.ndarray:
    rng = np.random.default_rng(7)
    return np.argsort(rng.random((400_000, 52)), axis=1)[:, :7].astype(np.uint8)


def test_card_text_is_the_inverse_of_parsing():
    assert [parse_card(card_text(card)) for card in range(52)] == list(range(52))
    assert cards_text(parse_cards("Td 2c As")) == "Td2cAs"
    assert cards_text([51, cards.NO_CARD]) == "As"


@pytest.mark.parametrize(
    ("text", "reason"),
    [("1c", "not a card"), ("TD", "not a card"), ("TcT", "half a card"), ("TcTc", "twice"), ("Tc", "2 are needed")],
)
def test_bad_cards_are_named(text: str, reason: str):
    with pytest.raises(PipelineError, match=reason):
        parse_cards(text, 2)


def test_all_five_card_hands_have_the_known_category_counts():
    hands = np.fromiter((card for hand in combinations(range(52), 5) for card in hand), np.uint8).reshape(-1, 5)
    per_value = np.bincount(rank_hands(hands), minlength=7463)
    assert per_value[0] == 0
    assert (per_value[1:] > 0).all()
    first = np.searchsorted([score[0] for score in scores()], range(10)) + 1
    per_category = [int(per_value[a:b].sum()) for a, b in pairwise(first)]
    assert per_category == [1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 40]


def test_ranking_agrees_with_an_independent_evaluator(random_deals: np.ndarray):
    for count in (5, 6, 7):
        hands = random_deals[:20_000, :count]
        expected = [7463 - phevaluator.evaluate_cards(*map(int, hand)) for hand in hands]
        np.testing.assert_array_equal(rank_hands(hands), expected)


@given(deals, counts)
def test_a_holding_is_worth_the_same_as_its_cards_together(deal: np.ndarray, count: int):
    together = hand_value(deal, 2 + count, ranking())
    assert holding_value(deal[:2], 2, deal[2:], count, ranking()) == together
    assert hand_name(deal[:2], deal[2:], count, ranking()) == ranking().names[together]


def test_ranking_refuses_what_is_not_a_hand():
    with pytest.raises(PipelineError, match="5 to 7"):
        rank_hands(np.zeros((3, 4), np.uint8))
    with pytest.raises(PipelineError, match="255"):
        rank_hands(np.array([[0, 1, 2, 3, 255]], np.uint8))


@pytest.mark.parametrize(
    ("hand", "name"),
    [
        ("9cKc 6dJs5c7dTs", "King High"),
        ("9c2d 9h5s6cKdAh", "Pair of Nines"),
        ("9cKd 9hKs6cQdAh", "Two Pair, Kings and Nines"),
        ("5c5d 5hKs6cQdAh", "Three of a Kind, Fives"),
        ("Ac5d 4h3s2cQdKh", "Five-High Straight"),
        ("6cTd 9h8s7cQdKh", "Ten-High Straight"),
        ("AcTc 9c8c7cQdKh", "Ace-High Flush"),
        ("5c5d 5hKsKcQdAh", "Fives Full of Kings"),
        ("5c5d 5hKsKcKdAh", "Kings Full of Fives"),
        ("6c6d 6h6sKcKdAh", "Four of a Kind, Sixes"),
        ("6cTc 9c8c7cQdKh", "Ten-High Straight Flush"),
        ("AcTc JcQcKcQdKh", "Royal Flush"),
    ],
)
def test_hands_have_the_names_players_say(hand: str, name: str):
    deal = parse_cards(hand)
    assert name_text(hand_name(deal[:2], deal[2:], 5, ranking())) == name
    assert name_text(hand_name(deal[:2], deal[2:], 0, ranking())) == "-"


def test_names_are_ordered_by_value():
    ids = ranking().names
    assert (np.diff(ids.astype(int)) >= 0).all()
    assert len(set(hand_names())) == len(hand_names()) == ids[-1] + 1
    assert [hand_names()[i] for i in ids[1:]] == [cards.score_name(score) for score in scores()]


def test_the_169_classes_share_out_the_1326_pairs():
    found = Counter(start_class(a, b) for a, b in combinations(range(52), 2))
    assert found == {index: class_combos(index) for index in range(169)}
    assert len({class_text(index) for index in range(169)}) == 169
    assert class_text(start_class(*map(int, parse_cards("9hTh")))) == "T9s"
    assert class_text(start_class(*map(int, parse_cards("9hTc")))) == "T9o"
    assert sorted(pair_index(a, b) for a, b in combinations(range(52), 2)) == list(range(1326))


def test_the_thesis_rows_have_their_patterns():
    hole, board = parse_cards("9cKc"), parse_cards("6dJs5c7dTs")
    assert [pattern_text(patterns(hole, board, n)[0]) for n in (0, 3, 4, 5)] == ["a", "ega", "egga", "-"]
    assert pattern_text(patterns(hole, board, 4)[1]) == ".ee."
    assert pattern_text(patterns(parse_cards("9cKd"), board, 0)[0]) == "bc"


def written_out(hole: np.ndarray, board: np.ndarray, coarse: bool) -> str:
    """The pattern by its definition: the smallest string over every order the definition leaves open."""
    live = {suit for suit in range(4) if np.count_nonzero(board % 4 == suit) >= len(board) - 2}
    if not live:
        return "-"
    tied_holes = [hole[::-1], hole] if hole[0] // 4 == hole[1] // 4 else [np.sort(hole)[::-1]]
    strings = []
    for (high, low), order in product(tied_holes, permutations(board)):
        if any(a // 4 < b // 4 for a, b in pairwise(order)):
            continue
        letters = {high % 4: "a"} if high % 4 == low % 4 else {high % 4: "b", low % 4: "c"}
        if coarse:
            letters |= {suit: "." for suit in range(4) if suit not in live}
        free = iter("egi")
        strings.append(
            "".join(letters.setdefault(c % 4, next(free)) if c % 4 not in letters else letters[c % 4] for c in order)
        )
    return min(strings)


@given(deals, counts)
def test_patterns_follow_their_definition(deal: np.ndarray, count: int):
    hole, board = deal[:2], deal[2 : 2 + count]
    fine, coarse = patterns(hole, board, count)
    assert pattern_text(fine) == written_out(hole, board, coarse=False)
    assert pattern_text(coarse) == written_out(hole, board, coarse=True)


@given(deals, counts, st.permutations(range(4)), st.permutations(range(5)))
def test_patterns_do_not_change_when_suits_are_renamed(
    deal: np.ndarray, count: int, suits: list[int], order: list[int]
):
    renamed = (deal // 4 * 4 + np.array(suits)[deal % 4]).astype(np.uint8)
    hole, board = renamed[1::-1].copy(), renamed[2:][[i for i in order if i < count]]
    assert patterns(hole, board, count) == patterns(deal[:2], deal[2:], count)


@kernel
def pattern_rows(deals: np.ndarray, count: int, out: np.ndarray) -> None:
    for i in range(len(deals)):
        out[i, 0], out[i, 1] = patterns(deals[i, :2], deals[i, 2:], count)


@pytest.mark.parametrize(("count", "fine", "coarse"), [(3, 47, 47), (4, 164, 72), (5, 300, 65)])
def test_patterns_take_the_known_number_of_values(random_deals: np.ndarray, count: int, fine: int, coarse: int):
    found = np.empty((len(random_deals), 2), np.uint16)
    pattern_rows(random_deals, count, found)
    assert len(np.unique(found[:, 0])) == fine
    assert len(np.unique(found[:, 1])) == coarse


def flush_outlook(deal: np.ndarray, count: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """For each suit that can still make a flush: the ranks held and the ranks on board, suits unnamed."""
    hole, board = deal[:2], deal[2 : 2 + count]
    return tuple(
        sorted(
            (tuple(sorted(hole[hole % 4 == suit] // 4)), tuple(sorted(board[board % 4 == suit] // 4)))
            for suit in range(4)
            if np.count_nonzero(board % 4 == suit) >= count - 2
        )
    )


@pytest.mark.parametrize("count", [3, 4, 5])
def test_pattern_and_ranks_never_merge_different_flush_possibilities(count: int):
    rng = np.random.default_rng(count)
    outlooks = defaultdict(set)
    for _ in range(20_000):
        ranks = rng.choice(4, size=2 + count, p=[0.4, 0.3, 0.2, 0.1])
        deal = (ranks * 4 + rng.integers(4, size=2 + count)).astype(np.uint8)
        if len(set(deal.tolist())) < len(deal):
            continue
        ranks_seen = tuple(sorted(deal[:2] // 4)), tuple(sorted(deal[2:] // 4))
        for coarse, kind in enumerate(patterns(deal[:2], deal[2:], count)):
            outlooks[coarse, ranks_seen, kind].add(flush_outlook(deal, count))
    assert len(outlooks) > 500
    assert {len(different) for different in outlooks.values()} == {1}
