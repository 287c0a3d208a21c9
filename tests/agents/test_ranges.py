"""Ranges and kinds of hands: against single observations and against a slow classification written out by hand."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from pipeline.agents.names import resolve
from pipeline.agents.ranges import holdings, own_rows, range_at, state_after
from pipeline.dataset.decisions import observation
from pipeline.poker.cards import RANKS, parse_cards, rank_hands
from pipeline.poker.game import builtin
from pipeline.poker.made_hands import DRAWS, MADE, classify
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")


@pytest.mark.parametrize("game", [LIMIT, NOLIMIT, builtin("holdem.limit.3p"), builtin("leduc.limit.2p")])
def test_rows_of_a_range_are_the_observations_of_its_hands(game) -> None:
    random = np.random.default_rng(5)
    for _ in range(12):
        state, before = game.start(), []
        while not state.finished and (not before or random.random() < 0.85):
            legal = [label for label in range(len(game.labels)) if state.legal_labels >> label & 1]
            before.append((state.actor, state.betting))
            state = state.apply(*state.choose(int(random.choice(legal))))
        if state.finished:
            continue
        board = random.permutation(game.deck)[: game.visible(state.round)].astype(np.uint8)
        holes = holdings(game, board)
        rows, labels = own_rows(game, state.betting, state.actor, holes, board)
        mine = [betting for actor, betting in before if actor == state.actor] + [state.betting]
        assert len(rows) == len(mine) == len(labels) + 1
        for betting, found in zip(mine, rows, strict=True):
            for at in random.integers(0, len(holes), 5):
                expected = observation(game, betting, state.actor, holes[at], board)
                assert found[at].tobytes() == expected[0].tobytes()


def test_a_range_of_somebody_who_is_not_to_act_has_only_its_reach() -> None:
    agent = resolve("@random", LIMIT)
    found = range_at(agent, "rc/", parse_cards("6dJs5c"), 1)
    assert len(found.mix) == 0
    assert np.allclose(found.reach, 1 / 3)
    with pytest.raises(PipelineError, match="over"):
        range_at(agent, "f", parse_cards(""))


def test_bettings_of_another_game_are_refused() -> None:
    for betting in ("rc", "r300c/", "x", "rc/cc/cc/cc/", "ff"):
        with pytest.raises(PipelineError):
            state_after(LIMIT, betting)


def straight_ranks(ranks: set[int]) -> bool:
    wheel = ranks | ({-1} if 12 in ranks else set())
    return any(all(low + i in wheel for i in range(5)) for low in range(-1, 9))


def slow_kind(hole: list[int], board: list[int]) -> tuple[str, str]:
    """The kind of a hand, by looking at it card by card."""
    ranks, shown = [card // 4 for card in hole], [card // 4 for card in board]
    counts, all_suits = Counter(ranks + shown), Counter(card % 4 for card in hole + board)
    suited = [card // 4 for card in hole + board if all_suits[card % 4] >= 5]
    order = sorted(set(shown), reverse=True)
    best = int(max(rank_hands(np.array(list(combinations(hole + board, 5)), dtype=np.uint8))))
    if straight_ranks(set(suited)):
        made = "straight flush"
    elif max(counts.values()) == 4:
        made = "four of a kind"
    elif max(counts.values()) == 3 and len([n for n in counts.values() if n >= 2]) > 1:
        made = "full house"
    elif suited:
        made = "flush"
    elif straight_ranks(set(counts)):
        made = "straight"
    elif max(counts.values()) == 3:
        rank = max(rank for rank, count in counts.items() if count == 3)
        made = "set" if ranks == [rank, rank] else "trips" if rank in ranks else "only the board's pair or trips"
    else:
        pairs = {rank for rank, count in counts.items() if count == 2}
        own = [rank for rank in ranks if rank in pairs and rank in shown]
        if len(own) == 2:
            made = "two pair"
        elif ranks[0] == ranks[1] or own:
            rank = own[0] if own else ranks[0]
            if rank > order[0]:
                made = "overpair"
            elif rank == order[0]:
                made = "top pair"
            elif rank == order[1] or (not own and rank > order[1]):
                made = "second pair"
            else:
                made = "weak pair"
        elif pairs:
            made = "only the board's pair or trips"
        else:
            made = "ace high" if 12 in ranks else "no pair"
    assert best > 0
    if len(board) == 5 or MADE.index(made) <= MADE.index("straight"):
        return made, "no draw"
    flush = any(all_suits[card % 4] == 4 for card in hole)
    outs = [rank for rank in range(13) if straight_ranks({*ranks, *shown, rank}) and not straight_ranks({*shown, rank})]
    if flush:
        return made, "flush and straight draw" if outs else "flush draw"
    return made, "open straight draw" if len(outs) > 1 else "gutshot" if outs else "no draw"


def test_kinds_of_hands_are_those_of_a_slow_look() -> None:
    random = np.random.default_rng(11)
    cards = np.stack([random.permutation(52)[:7] for _ in range(6_000)]).astype(np.uint8)
    seen: Counter[str] = Counter()
    for count in (3, 4, 5):
        boards = cards[:, 2:].copy()
        boards[:, count:] = 255
        made, draws = classify(cards[:, :2], boards)
        for i in range(len(cards)):
            expected = slow_kind(cards[i, :2].tolist(), cards[i, 2 : 2 + count].tolist())
            assert (MADE[made[i]], DRAWS[draws[i]]) == expected, cards[i, : 2 + count]
            seen[expected[0]] += 1
    assert set(MADE) - set(seen) <= {"straight flush"}


def test_every_pair_of_cards_is_held_once() -> None:
    every = holdings(LIMIT, parse_cards(""))
    assert len({frozenset(hole) for hole in every.tolist()}) == 1326
    assert RANKS[every[-1, 0] >> 2] == "A"
