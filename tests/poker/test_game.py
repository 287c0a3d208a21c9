"""The rules of betting: closed counts, the protocol's rules, and agreement with open_spiel's universal_poker."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.poker.cards import rank_hands
from pipeline.poker.game import Game, State, actions, builtin, find_game, game_names, kuhn, parse_game
from pipeline.poker.rules import CALL, FOLD, NO_STACK, RAISE
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
NOLIMIT3 = builtin("holdem.nolimit.3p")


def after(game: Game, betting: str) -> State:
    """The state after a betting string."""
    state = game.start()
    for action, size in actions(betting.replace("/", "")):
        state = state.apply(action, size)
    return state


def words(game: Game, street: int) -> tuple[set[str], set[str]]:
    """The betting codes of a street that continue the hand, and those that end it."""
    going: set[str] = set()
    ending: set[str] = set()

    def walk(state: State) -> None:
        for action in (FOLD, CALL, RAISE):
            if not state.is_legal(action):
                continue
            then = state.apply(action)
            if then.finished:
                ending.add(then.rounds[street])
            elif then.round > street:
                going.add(then.rounds[street])
            else:
                walk(then)

    walk(after(game, "/".join(["cc"] * street)))
    return going, ending


# Heads-up limit hold'em


def test_limit_betting_has_8_70_630_5670_decisions_per_street() -> None:
    tree = LIMIT.betting_tree()
    decisions = tree.states[~tree.terminal]
    assert [int((decisions[:, 0] == street).sum()) for street in range(4)] == [8, 70, 630, 5670]


def test_seven_preflop_words_and_nine_flop_and_turn_words_continue() -> None:
    assert [len(words(LIMIT, street)[0]) for street in range(3)] == [7, 9, 9]
    assert words(LIMIT, 0)[0] == {"cc", "crc", "crrc", "crrrc", "rc", "rrc", "rrrc"}


def test_seventeen_river_words_end_the_hand() -> None:
    going, ending = words(LIMIT, 3)
    assert (len(going), len(ending)) == (0, 17)
    assert {"cf", "f"}.isdisjoint(ending)  # nothing to call, nothing to fold


def test_the_tree_agrees_with_the_states() -> None:
    tree = LIMIT.betting_tree()
    node, state = 0, LIMIT.start()
    for action, _ in actions("crrcrcccrf"):
        node, state = int(tree.child[node, action]), state.apply(action)
        np.testing.assert_array_equal(tree.states[node], state.vector)
    assert tree.terminal[node]


def test_the_most_a_limit_hand_can_cost_is_240() -> None:
    state = after(LIMIT, "rrrc/rrrrc/rrrrc/rrrrc")
    assert state.payoffs([1, 2]) == (-240, 240)


def test_a_fold_gives_up_the_pot() -> None:
    assert after(LIMIT, "crf").payoffs([0, 0]) == (10, -10)
    assert not after(LIMIT, "crf").showdown


def test_equal_hands_split_the_pot() -> None:
    assert after(LIMIT, "cc/cc/cc/cc").payoffs([5, 5]) == (0, 0)
    three = builtin("holdem.limit.3p")
    assert after(three, "fcc/cc/cc/cc").payoffs([9, 9, 1]) == (0, 0, 0)


def test_a_fold_needs_a_bet_to_face() -> None:
    assert not after(LIMIT, "c").is_legal(FOLD)
    with pytest.raises(PipelineError, match="not legal"):
        after(LIMIT, "cc/").apply(FOLD)


def test_raises_are_capped() -> None:
    assert not after(LIMIT, "rrr").is_legal(RAISE)
    assert after(LIMIT, "rrrc/rrr").is_legal(RAISE)
    assert not after(LIMIT, "rrrc/rrrr").is_legal(RAISE)


def test_the_small_blind_speaks_first_before_the_flop_and_last_after() -> None:
    assert LIMIT.start().actor == 1
    assert after(LIMIT, "cc").actor == 0


# No-limit


def test_the_first_raise_is_at_least_twice_the_big_blind() -> None:
    assert NOLIMIT.start().raise_range == (200, 20000)


def test_a_raise_is_at_least_as_large_as_the_last_one() -> None:
    assert after(NOLIMIT, "r300").raise_range == (500, 20000)
    assert after(NOLIMIT, "r300r900").raise_range == (1500, 20000)


def test_a_new_round_starts_again_from_the_big_blind() -> None:
    assert after(NOLIMIT, "r300r900c/").raise_range == (1000, 20000)


def test_an_all_in_raise_may_be_smaller_than_the_minimum() -> None:
    short = replace(NOLIMIT, stacks=(350, 20000))
    state = after(short, "r300")
    assert state.raise_range == (350, 350)
    assert state.is_legal(RAISE, 350)


def test_nobody_raises_when_nobody_is_left_to_answer() -> None:
    assert after(NOLIMIT, "r20000").raise_range == (0, 0)
    short = replace(NOLIMIT, stacks=(20000, 500))
    assert after(short, "r500").raise_range == (0, 0)


def test_an_all_in_call_ends_the_betting_and_leaves_empty_streets() -> None:
    state = after(NOLIMIT, "r18208r20000c")
    assert state.finished
    assert state.showdown
    assert state.betting == "r18208r20000c///"


def test_side_pots_go_to_the_best_hand_in_each() -> None:
    game = replace(NOLIMIT3, stacks=(500, 1000, 2000))
    state = after(game, "r2000cc")
    assert state.spent == (500, 1000, 2000)
    assert state.payoffs([3, 2, 1]) == (1000, 0, -1000)  # 1,500 to the first, 1,000 to the second, 1,000 back
    assert state.payoffs([3, 1, 2]) == (1000, -1000, 0)
    assert state.payoffs([3, 3, 1]) == (250, 750, -1000)


# An independent implementation


def oracle(game: Game) -> pyspiel.Game:
    """The same game in open_spiel."""
    joined = {
        "blind": game.blinds,
        "firstPlayer": game.first,
        "numBoardCards": game.board_cards,
    }
    if game.nolimit:
        joined["stack"] = game.stacks
    else:
        joined |= {"raiseSize": game.raise_sizes, "maxRaises": game.max_raises}
    return pyspiel.load_game(
        "universal_poker",
        {
            "betting": "nolimit" if game.nolimit else "limit",
            "bettingAbstraction": "fullgame" if game.nolimit else "fcpa",
            "numPlayers": game.players,
            "numRounds": game.rounds,
            "numSuits": game.suits,
            "numRanks": game.ranks,
            "numHoleCards": game.hole_cards,
            **{key: " ".join(map(str, values)) for key, values in joined.items()},
        },
    )


def random_action(state: State, rng: np.random.Generator) -> tuple[int, int]:
    """A legal action; raises are often the smallest or all-in."""
    low, high = state.raise_range
    kinds = [CALL, CALL] + [RAISE] * (high > 0) + [FOLD] * (state.to_call > 0)
    action = int(rng.choice(kinds))
    if action != RAISE or not state.game.nolimit:
        return action, 0
    return RAISE, int(rng.choice([low, low, high, rng.integers(low, high + 1), min(3 * low, high)]))


@pytest.mark.parametrize(
    "game",
    [
        LIMIT,
        builtin("holdem.limit.3p"),
        NOLIMIT,
        NOLIMIT3,
        replace(NOLIMIT, name="unequal 2p", stacks=(700, 1900)),
        replace(NOLIMIT3, name="unequal 3p", stacks=(450, 1000, 2300)),
    ],
    ids=lambda game: game.name,
)
def test_the_rules_agree_with_universal_poker(game: Game) -> None:
    rng = np.random.default_rng(1)
    other = oracle(game)
    for _ in range(40 if game.nolimit and max(game.stacks) > 5000 else 150):
        deck = rng.permutation(game.deck)
        hole, board = deck[: 2 * game.players].reshape(-1, 2), deck[2 * game.players :][:5]
        dealt = iter([int(card) for card in (*hole.ravel(), *board)])
        theirs, ours = other.new_initial_state(), game.start()
        while not theirs.is_terminal():
            if theirs.is_chance_node():
                theirs.apply_action(next(dealt))
                continue
            assert ours.actor == theirs.current_player()
            legal = theirs.legal_actions()
            low, high = ours.raise_range
            assert (FOLD in legal) == ours.is_legal(FOLD)
            assert CALL in legal
            raises = [action for action in legal if action >= RAISE]
            if game.nolimit:
                assert (raises[0], raises[-1]) == (low, high) if raises else high == 0
            else:
                assert bool(raises) == ours.is_legal(RAISE)
            action, size = random_action(ours, rng)
            theirs.apply_action(size if action == RAISE and game.nolimit else action)
            ours = ours.apply(action, size)
            assert ours.betting.rstrip("/") in str(theirs)
        assert ours.finished
        values = rank_hands(np.hstack([hole, np.tile(board, (game.players, 1))]))
        np.testing.assert_allclose(ours.payoffs(values), theirs.returns(), atol=1e-9)


# Labels


@given(st.integers(0, 2**32), st.sampled_from([LIMIT, NOLIMIT, NOLIMIT3, replace(NOLIMIT, stacks=(350, 1234))]))
def test_every_legal_label_stands_for_a_legal_action_of_that_label(seed: int, game: Game) -> None:
    rng = np.random.default_rng(seed)
    state = game.start()
    while not state.finished:
        for label in range(len(game.labels)):
            action, size = state.choose(label)
            if state.legal_labels >> label & 1:
                assert state.is_legal(action, size)
                assert state.label_of(action, size) == label
            elif label < RAISE:
                assert not state.is_legal(action)
        action, size = random_action(state, rng)
        assert state.legal_labels >> state.label_of(action, size) & 1
        state = state.apply(action, size)
    assert state.legal_labels == 0


def test_raise_sizes_are_classed_by_the_pot_after_calling() -> None:
    # 50 + 100 in the middle, 50 to call: the pot after calling is 200
    state = NOLIMIT.start()
    bounds = {"s": 179, "h": 249, "p": 399, "o": 19999, "a": 20000}
    for letter, last in list(bounds.items())[1:]:
        assert NOLIMIT.labels[state.label_of(RAISE, last)] == letter
    for (_, last), (letter, _) in pairwise(bounds.items()):
        assert NOLIMIT.labels[state.label_of(RAISE, last + 1)] == letter
    assert [state.choose(NOLIMIT.labels.index(letter)) for letter in "hpoa"] == [
        (RAISE, 200),
        (RAISE, 300),
        (RAISE, 500),
        (RAISE, 20000),
    ]


# Game files


def test_all_games_that_come_with_the_package_parse() -> None:
    assert {find_game(name).name for name in game_names()} == set(game_names())
    assert LIMIT.stacks == (NO_STACK, NO_STACK)


def test_a_game_is_found_by_the_path_in_a_log_header() -> None:
    assert find_game("/some/where/holdem.limit.3p.game") == builtin("holdem.limit.3p")


def test_the_text_of_a_game_says_the_same_again() -> None:
    for game in [*map(builtin, game_names()), *map(kuhn, range(2, 13))]:
        assert parse_game(game.text, game.name) == game


def test_small_games_use_the_top_cards() -> None:
    assert builtin("kuhn.limit.2p").deck.tolist() == [43, 47, 51]
    assert builtin("leduc.limit.2p").deck.tolist() == [42, 43, 46, 47, 50, 51]


def test_kuhn_poker_for_n_players_ends_within_two_turns_each() -> None:
    game = find_game("kuhn.limit.5p")
    assert after(game, "ccccc").showdown
    assert after(game, "rffff").payoffs([0] * 5) == (4, -1, -1, -1, -1)
    with pytest.raises(PipelineError, match="2 to 12"):
        find_game("kuhn.limit.13p")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("limit\n", ""), "neither 'limit' nor 'nolimit'"),
        (("numSuits", "numsuites"), "line 9.*did you mean numsuits"),
        (("blind = 10 5", "blind = 10"), "blinds needs 2 numbers, has 1"),
        (("blind = 10 5", "blind = ten 5"), "not a number"),
        (("END GAMEDEF", "END GAMEDEF\nlimit"), "line 14.*outside"),
        (("numHoleCards = 2", "numHoleCards = 3"), "one or two hole cards"),
        (("numRanks = 13", "numRanks = 2"), "too few"),
        (("numPlayers = 2", "numPlayers = 99"), "players"),
        (("firstPlayer = 2 1 1 1", "firstPlayer = 3 1 1 1"), "between 1 and 2"),
    ],
)
def test_a_bad_game_file_says_what_is_wrong(change: tuple[str, str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        parse_game(LIMIT.text.replace(*change), "bad")


def test_an_unknown_game_suggests_one() -> None:
    with pytest.raises(PipelineError, match=r"did you mean holdem\.limit\.3p"):
        find_game("holdem.limit.3")


def test_settings_are_read_whatever_their_case_and_comments_are_skipped() -> None:
    assert parse_game(LIMIT.text.lower() + "# the end\n", LIMIT.name) == LIMIT


# Amounts


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("blind = 10 5", "blind = 0 0", "nothing is at stake"),
        ("blind = 10 5", "blind = -10 5", "nothing is at stake"),
        ("blind = 10 5", f"blind = {10**20} 5", "too large"),
        ("raiseSize = 10 10 20 20", f"raiseSize = 10 10 20 {2**31}", "too large"),
        ("raiseSize = 10 10 20 20", "raiseSize = 10 10 0 20", "at least 1"),
        ("maxRaises = 3 4 4 4", "maxRaises = 3 4 4 1000", "maxRaises between 0 and 255"),
        ("maxRaises = 3 4 4 4", "maxRaises = 3 4 4 -1", "maxRaises between 0 and 255"),
        ("numBoardCards = 0 3 1 1", "numBoardCards = 0 3 -1 1", "numBoardCards must be 0 or more"),
        ("numBoardCards = 0 3 1 1", "numBoardCards = 3 1 1 0", "numBoardCards begins with 0"),
    ],
)
def test_amounts_that_are_no_stakes_are_refused_when_a_game_is_read(old: str, new: str, complaint: str) -> None:
    assert old in LIMIT.text
    with pytest.raises(PipelineError, match=complaint):
        parse_game(LIMIT.text.replace(old, new))


def test_stacks_whose_pot_needs_more_than_32_bits_are_refused() -> None:
    assert "stack = 20000 20000" in NOLIMIT.text
    with pytest.raises(PipelineError, match=r"2,147,483,647 is the most"):
        parse_game(NOLIMIT.text.replace("stack = 20000 20000", f"stack = {2**31 - 1} {2**31 - 1}"))
    endless = parse_game(NOLIMIT.text.replace("stack = 20000 20000\n", ""))
    assert sum(endless.stacks) <= 2**31 - 1


def test_settling_ends_whatever_the_amounts() -> None:
    state = replace(NOLIMIT, stacks=(2**40, 2**40)).start()
    state = state.apply(RAISE, 2**40).apply(CALL)
    assert state.payoffs([1, 2]) == (-(2**40), 2**40)


def test_a_limit_game_without_a_bound_on_raises_is_read_but_not_written_out() -> None:
    game = parse_game(LIMIT.text.replace("maxRaises = 3 4 4 4\n", ""), "endless")
    assert game.max_raises == (255,) * 4
    with pytest.raises(PipelineError, match=r"more than 1,000 situations.*smaller maxRaises"):
        game.betting_tree(1_000)


def test_the_beginning_of_a_name_finds_the_one_built_in_game_that_begins_so() -> None:
    assert find_game("holdem.limit.2p") == LIMIT
    assert find_game("holdem.nolimit.2p") == NOLIMIT
    with pytest.raises(PipelineError, match="no game file 'holdem'"):
        find_game("holdem")
