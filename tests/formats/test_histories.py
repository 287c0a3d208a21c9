"""Hand histories: the grammar, the rules against PokerKit's, the byte kernel against `tomllib`, and round trips."""

from __future__ import annotations

import os
import tarfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from played_histories import random_history
from pokerkit_oracle import assert_agrees_with_pokerkit

from pipeline.formats.acpc import parse_hand
from pipeline.formats.histories.convert import from_acpc, game_of, to_acpc
from pipeline.formats.histories.history import Action, HistoryError
from pipeline.formats.histories.notation import (
    decimals_of,
    histories_text,
    history_text,
    is_history,
    parse_history,
    parse_table,
    read_section,
    sections,
)
from pipeline.formats.histories.packing import outcome, pack
from pipeline.formats.histories.replay import REASONS, replay
from pipeline.formats.histories.replay import play as play_packed
from pipeline.formats.histories.scan import scan_histories
from pipeline.formats.histories.sites import site_sections
from pipeline.poker.cards import ranking
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.numeric import hash_name

HAND = """variant = 'NT'
ante_trimming_status = true
antes = [0, 0, 0]
blinds_or_straddles = [0.50, 1, 0]
min_bet = 1
starting_stacks = [100, 99.75, inf]
actions = ['d dh p1 AhKh', 'd dh p2 ????', 'p3 cbr 2.50', 'p1 cc', 'p2 f', 'd db 2c3c4c', 'p1 cbr 5', 'p3 f']
venue = 'A Site'
time = 19:50:13
day = 6
hand = 77
table = 'Blue 7'
seats = [1, 3, 2]
players = ['Ann', 'Bob', 'Cy']
"""


def hand(**changes: str) -> str:
    """`HAND` with some lines changed, or left out when None."""
    lines = []
    for line in HAND.splitlines():
        key = line.split(" = ")[0]
        value = changes.pop(key, line.split(" = ", 1)[1])
        if value != "":
            lines.append(f"{key} = {value}")
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in changes.items())]) + "\n"


def reason(text: str) -> str:
    with pytest.raises(HistoryError) as caught:
        replay(parse_history(text))
    return str(caught.value)


# The grammar


def test_a_hand_keeps_what_its_text_says_in_units_of_cents() -> None:
    history = parse_history(HAND)
    assert history.decimals == 2
    assert history.blinds == (50, 100, 0)
    assert history.stacks == (10000, 9975, None)
    assert (history.min_bet, history.big_blind, history.nolimit) == (100, 100, True)
    assert history.actions[2] == Action("cbr", 2, amount=250)
    assert (history.venue, history.table, history.hand) == ("A Site", "Blue 7", "77")
    assert (history.players, history.seats) == (("Ann", "Bob", "Cy"), (1, 3, 2))
    assert dict(history.other)["day"] == 6
    assert is_history(HAND.encode())
    assert not is_history(b"STATE:0:f:AhKh|2c2d:1|-1:a|b")


def test_comments_lists_over_lines_and_double_quotes_are_toml_too() -> None:
    text = hand(actions='[ # the betting\n  "p3 f", # gone\n "p1 cbr 10 # a large one",\n]', venue='"Ünïcode"')
    history = parse_history(text)
    assert [action.kind for action in history.actions] == ["f", "cbr"]
    assert history.actions[1].comment == "a large one"
    assert history.venue == "Ünïcode"
    hands, refused = scan_histories(text.encode())
    assert (len(hands.records), refused) == (1, [])


def test_what_is_no_hand_is_refused_by_reason() -> None:
    assert reason(hand(variant="'PO'")) == "variant PO"
    assert reason(hand(variant="7")) == "fields: no variant"
    assert reason(hand(antes="")) == "fields: no antes"
    assert reason(hand(min_bet="")) == "fields: no min_bet"
    assert reason(hand(antes="[0, 0]")) == "fields: antes has another number of entries than starting_stacks"
    assert reason(hand(starting_stacks="[5, 0, 5]")) == "amounts: a starting stack is empty"
    assert reason(hand(starting_stacks="[5, -inf, 5]")) == "amounts: starting_stacks is no finite number"
    assert reason(hand(starting_stacks="[5, nan, 5]")) == "amounts: starting_stacks is no finite number"
    assert reason(hand(starting_stacks=f"[{10**20}, 5, 5]")).startswith("amounts: starting_stacks is beyond")
    assert reason(hand(blinds_or_straddles="[0, 0, 0]")) == "fields: neither antes nor blinds"
    assert reason(hand(players="['Ann', 'Ann', 'Cy']")) == "names: two players have the same name"
    assert reason(hand(players="['Ann', '', 'Cy']")).startswith("names: a name is no line")
    assert reason(hand(actions="['p9 f']")) == "actions: a player who is not in the hand"
    assert reason(hand(actions="['p3 cbr 1e3']")) == "actions: an entry is not understood"
    assert reason(hand(actions="['d db ??????']")) == "cards: a board card is not known"
    assert reason(hand(x="[")) == "grammar: not TOML"
    assert reason(hand(x="[" * 5000)) == "grammar: not TOML"
    assert reason(HAND + "\0") == "grammar: not TOML"
    assert reason(hand(x="1" * 5000)) == "grammar: not TOML"
    assert reason(HAND + "#" * 300_000) == "grammar: longer than 262,144 bytes"


def test_the_unit_is_the_smallest_that_occurs_and_names_do_not_count() -> None:
    assert decimals_of(b"antes = [0, 0]\nmin_bet = 100.00\n") == 0
    assert decimals_of(b"actions = ['p1 cbr 0.5']") == 1
    assert decimals_of(b"players = ['a.1234', 'b']\ntable = 'No. 1.125'\n") == 0
    assert decimals_of(b"starting_stacks = [\n  1.25,\n]") == 2


def test_a_file_is_cut_into_its_tables_and_a_damaged_one_costs_only_itself() -> None:
    data = f'# a comment\n[1]\n{HAND}\n[2]\nvariant = \'NT\n[ "3" ] # x\n{HAND}'.encode()
    assert [section.number for section in sections(data)] == [1, 2, 3]
    hands, refused = scan_histories(data)
    assert hands.records["number"].tolist() == [1, 3]
    assert [(entry.number, entry.reason) for entry in refused] == [(2, "grammar: not TOML")]


# The rules


def test_a_fold_gives_up_the_pot_and_the_uncalled_bet_comes_back() -> None:
    result = replay(parse_history(HAND))
    assert result.result == (350.0, -100.0, -250.0)
    assert result.spent == (750, 100, 250)
    assert result.hole == ("AhKh", "", "")
    assert (result.partial, result.showdown) == (False, False)


def test_with_two_players_the_button_posts_the_first_blind_and_acts_first() -> None:
    text = hand(
        antes="[0, 0]",
        blinds_or_straddles="[1, 2]",
        min_bet="2",
        starting_stacks="[50, 50]",
        players="['Ann', 'Bob']",
        seats="",
        actions="['p2 f']",
    )
    assert replay(parse_history(text)).result == (1.0, -1.0)


def short(actions: str, stacks: str = "[200, 200, 45, 200]") -> str:
    return hand(
        antes="[0, 0, 0, 0]",
        blinds_or_straddles="[5, 10, 0, 0]",
        min_bet="10",
        starting_stacks=stacks,
        players="['a', 'b', 'c', 'd']",
        seats="",
        actions=actions,
    )


def test_an_all_in_below_the_smallest_raise_does_not_reopen_the_betting() -> None:
    # d raises by 20 to 30, a calls; c goes all-in for 45, 15 more: d and a may only call
    start = "'p3 cc', 'p4 cbr 30', 'p1 cc', 'p2 f', 'p3 cbr 45'"
    assert reason(short(f"[{start}, 'p4 cbr 100']")) == "betting: an illegal action"
    assert replay(parse_history(short(f"[{start}, 'p4 cc', 'p1 cc']"))).partial is not False
    fresh = "'p3 cbr 20', 'p4 cbr 40', 'p1 cbr 45'"
    assert replay(parse_history(short(f"[{fresh}, 'p2 cbr 100']", "[45, 200, 200, 200]"))).partial


def test_people_may_fold_without_a_bet_and_hands_may_stop_anywhere() -> None:
    assert replay(parse_history(short("['p3 cc', 'p4 f', 'p1 cc', 'p2 f']"))).partial
    assert replay(parse_history(short("[]"))).result is None


def test_entries_out_of_order_are_refused_by_reason() -> None:
    assert reason(short("['p4 f']")) == "betting: another player's turn"
    assert reason(short("['p3 f', 'd dh p1 AhKh']")) == "cards: hole cards dealt after the betting began"
    assert reason(short("['d dh p1 Ah', 'p3 f']")).startswith("cards: a player is dealt one card")
    assert reason(short("['d dh p1 AhKh', 'd dh p2 AhQd']")) == "cards: one occurs twice"
    assert reason(short("['d db 2c3c4c']")).startswith("cards: board cards where")
    assert reason(short("['p3 cc', 'p4 cc', 'p1 cc', 'p2 cc', 'p1 cc']")).startswith("betting: goes on before")
    assert reason(short("['p3 f', 'p4 f', 'p1 f', 'p2 cc']")) == "betting: goes on after the end of the hand"
    assert reason(short("['p1 sm AhKh']")) == "cards: shown by a player who has nothing to show"
    ended = "'d dh p2 AhKh', 'p3 f', 'p4 f', 'p1 f'"
    assert reason(short(f"[{ended}, 'p2 sm AhKd']")) == "cards: shown cards are not those dealt"
    assert reason(short(f"[{ended}, 'p2 sm ????']")) == "cards: shown by a player who has nothing to show"
    assert replay(parse_history(short(f"[{ended}, 'p2 sm AhKh']"))).hole[1] == "AhKh"


SHOWDOWN = (
    "['d dh p1 ????', 'd dh p2 ????', 'p2 cc', 'p1 cc', 'd db 2c7d9h', 'p1 cc', 'p2 cc', 'd db Js', 'p1 cc', 'p2 cc', "
    "'d db 3s', 'p1 cc', 'p2 cc', {}]"
)


def heads_up(shows: str, **more: str) -> str:
    names = {"antes": "[0, 0]", "blinds_or_straddles": "[5, 10]", "min_bet": "10", "starting_stacks": "[100, 100]"}
    return hand(**names, seats="", players="['a', 'b']", actions=SHOWDOWN.format(shows), **more)


def test_who_shows_wins_from_who_does_not_and_nobody_knows_when_nobody_shows() -> None:
    assert replay(parse_history(heads_up("'p1 sm AhKh', 'p2 sm ????'"))).result == (10.0, -10.0)
    assert replay(parse_history(heads_up("'p1 sm ????', 'p2 sm ????'"))).result is None
    assert replay(parse_history(heads_up("'p1 sm', 'p2 sm AhKh'"))).result == (-10.0, 10.0)
    assert replay(parse_history(heads_up("'p1 sm AhKh', 'p2 sm AdKd'"))).result == (0.0, 0.0)


def test_what_the_source_says_is_believed_within_a_tenth_of_rake_and_flagged_beyond() -> None:
    silent = "'p1 sm ????', 'p2 sm ????'"
    raked = replay(parse_history(heads_up(silent, winnings="[0, 19]")))
    assert (raked.result, raked.rake, raked.by_source, raked.flagged) == ((-10.0, 9.0), 1, True, False)
    greedy = replay(parse_history(heads_up(silent, winnings="[0, 17]")))
    assert (greedy.result, greedy.flagged) == (None, True)
    wrong = replay(parse_history(heads_up("'p1 sm AhKh', 'p2 sm 4c5c'", finishing_stacks="[90, 110]")))
    assert (wrong.result, wrong.flagged) == ((10.0, -10.0), True)
    empty = replay(parse_history(heads_up(silent, winnings="[0, 0]")))
    assert (empty.result, empty.flagged) == (None, False)
    left = replay(parse_history(heads_up(silent, finishing_stacks="[109, 90]")))
    assert (left.result, left.rake) == ((9.0, -10.0), 1)


# PokerKit as the oracle


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_any_hand_goes_as_in_pokerkit(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agrees_with_pokerkit(random_history(seed))


@pytest.mark.parametrize("name", ["plain", "straddle_and_post", "side_pots", "ante_all_in", "limit", "run_out"])
def test_hands_written_by_hand_go_as_in_pokerkit(name: str) -> None:
    texts = {
        "plain": short("['p3 cbr 30', 'p4 f', 'p1 cc', 'p2 f', 'd db 2c3c4c', 'p1 cc', 'p3 f']"),
        "straddle_and_post": hand(
            antes="[0, 0, 0, 0, 0]",
            blinds_or_straddles="[5, 10, 20, -15, 0]",
            min_bet="10",
            starting_stacks="[300, 300, 300, 300, 300]",
            players="['a', 'b', 'c', 'd', 'e']",
            seats="",
            actions="['p4 cc', 'p5 cbr 60', 'p1 f', 'p2 f', 'p3 cc', 'p4 f', 'd db 2c3c4c', 'p3 cc']",
        ),
        "side_pots": short(
            "['d dh p1 2c2d', 'd dh p2 AhAd', 'd dh p3 KcKd', 'd dh p4 7c2h', 'p3 cbr 45', 'p4 cc', 'p1 cbr 120', "
            "'p2 cbr 200', 'p4 f', 'p1 cc', 'p1 sm 2c2d', 'p2 sm AhAd', 'p3 sm KcKd', 'd db 5s6s8s', 'd db Td', "
            "'d db Qc']"
        ),
        "ante_all_in": hand(
            antes="[3, 3, 3]",
            blinds_or_straddles="[1, 2, 0]",
            min_bet="2",
            starting_stacks="[2, 4, 50]",
            players="",
            seats="",
            actions="['d dh p1 2c2d', 'd dh p2 AhAd', 'd dh p3 KcKd', 'p3 cc', 'p1 sm 2c2d', 'p2 sm AhAd', "
            "'p3 sm KcKd', 'd db 5s6s8s', 'd db Td', 'd db Qc']",
        ),
        "limit": hand(
            variant="'FT'",
            min_bet="",
            antes="[0, 0]",
            blinds_or_straddles="[5, 10]",
            small_bet="10",
            big_bet="20",
            starting_stacks="[500, 500]",
            players="",
            seats="",
            actions="['p2 cbr 20', 'p1 cbr 30', 'p2 cbr 40', 'p1 cbr 50', 'p2 cc', 'd db 2c3c4c', 'p1 cbr 10', 'p2 f']",
        ),
        "run_out": heads_up("'p1 sm AhKh', 'p2 sm AdKd'"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_agrees_with_pokerkit(parse_history(texts[name]))


# The byte kernel


def assert_agrees_with_toml(data: bytes) -> None:
    """The byte kernel and `tomllib` come to the same hands and the same reasons."""
    decimals = decimals_of(data)
    hands, refused = scan_histories(data)
    accepted = {int(record["begin"]): at for at, record in enumerate(hands.records)}
    reasons = {entry.begin: entry.reason for entry in refused}
    for section in sections(data):
        out = outcome()
        why = ""
        try:
            history = parse_table(read_section(data[section.begin : section.end]), decimals)
            why = REASONS[play_packed(pack(history), out, ranking())]
        except HistoryError as error:
            why = str(error)
        assert reasons.pop(section.begin, "") == why
        if why:
            continue
        at = accepted.pop(section.begin)
        record, n = hands.records[at], history.count
        assert (hands.arrays.rules[at] == out.rules).all()
        assert (hands.arrays.holes[at] == out.hole[:10]).all()
        assert (hands.arrays.boards[at] == out.board).all()
        first, count = int(record["first"]), int(record["count"])
        assert (hands.arrays.places[first : first + count] == out.places[:count]).all()
        assert (hands.arrays.totals[first : first + count] == out.totals[:count]).all()
        assert (hands.arrays.results[at, :n] == out.result[:n]).all()
        assert [hands.texts[int(value)] for value in record["names"][:n]] == list(history.names)
        assert [hash_name(name) for name in history.names] == record["names"][:n].tolist()
        again, _ = scan_histories(b"# not the common form\n" + data[section.begin : section.end], decimals)
        for field in ("place", "partial", "showdown", "flagged", "source", "shown", "pot", "rake"):
            assert record[field] == again.records[0][field]
    assert (accepted, reasons) == ({}, {})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**32), min_size=1, max_size=4), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_byte_kernel_reads_what_is_written(seeds: list[int], known: float) -> None:
    written = [replace(random_history(seed, known), hand=str(at), venue="v") for at, seed in enumerate(seeds)]
    data = "".join(histories_text(written)).encode()
    hands, refused = scan_histories(data)
    assert (len(hands.records), refused) == (len(written), [])
    assert (hands.records["named"][:, 0, 0] >= 0).all(), "the kernel itself read them"
    assert_agrees_with_toml(data)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2**32), st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3), st.integers(0, 3)), max_size=4)
)
@example(0, [(0.1, b"\0", 0)])
def test_the_byte_kernel_and_tomllib_agree_on_damaged_text(seed: int, damage: list[tuple[float, bytes, int]]) -> None:
    text = f"[1]\n{HAND}\n[2]\n{history_text(random_history(seed))}".encode()
    for where, what, cut in damage:
        at = int(where * len(text))
        text = text[:at] + what + text[at + cut :]
    assert_agrees_with_toml(text)


WORDS = [
    "0",
    "1",
    "-1",
    "00",
    "1.",
    ".5",
    "1.005",
    "99999999999999999999",
    "inf",
    "-inf",
    "nan",
    "1e3",
    "1_0",
    "true",
    "'x'",
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([line.split(" = ")[0] for line in HAND.splitlines()]),
    st.one_of(
        st.sampled_from(WORDS),
        st.lists(st.sampled_from(WORDS), max_size=4).map(lambda words: f"[{', '.join(words)}]"),
        st.sampled_from(
            ["['p3 f', 'p1 f']", "['p3  f']", "[ 'p3 f' ]", "['p03 f']", "['p3 cbr 2,000']", "['']", "''", "[]"]
        ),
    ),
)
def test_the_byte_kernel_and_tomllib_agree_on_changed_fields(key: str, value: str) -> None:
    assert_agrees_with_toml(hand(**{key: value}).encode())


# Writing


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.text(max_size=20), st.integers(0, 3))
def test_what_is_written_is_read_again(seed: int, words: str, decimals: int) -> None:
    history = replace(
        random_history(seed, 0.5),
        decimals=decimals,
        table=words,
        venue="It's",
        hand="007",
        winnings=(-5, *[0] * (len(random_history(seed).stacks) - 1)),
        other=(("_note", words), ("day", 3), ("_all", [1, {"a b": True}])),
    )
    again = parse_history(history_text(history), decimals)
    assert again == history
    assert again.other == history.other


def test_pokerkit_reads_what_is_written() -> None:
    from pokerkit import HandHistory

    history = parse_history(HAND)
    again = HandHistory.loads(history_text(history))
    assert again.players == ["Ann", "Bob", "Cy"]
    assert list(again)[-1].payoffs == [3.5, -1, -2.5]


# ACPC


NOLIMIT = "holdem.nolimit.2p.reverse_blinds"
LINES = [
    (NOLIMIT, "STATE:5:r300f:2d3c|Js2s:-100|100:Bob|Alice"),
    (NOLIMIT, "STATE:0:cc/cr200c/cc/cr400r800f:2d3c|Js2s/4c5c6c/7d/8d:200|-200:Bob|Alice"),
    (NOLIMIT, "STATE:7:r20000c///:2d2c|AsAh/4c5c6c/7d/8d:-20000|20000:Bob|Alice"),
    (NOLIMIT, "STATE:7:r20000c///:2d2c|AsAh/4c5c6c/7d/8d:-12345.5|12345.5:Bob|Alice"),
    ("holdem.limit.2p.reverse_blinds", "STATE:1:rrc/rc/cc/rrf:2d2c|AsAh/4c5c6c/7d/8d:-50|50:Bob|Alice"),
    ("holdem.limit.2p.reverse_blinds", "STATE:2:cc/cc/cc/cc:2d3c|2s3h/4c5c6c/7d/8d:0|0:Bob|Alice"),
    ("holdem.limit.3p", "STATE:3:crfc/cc/rc/cc:2d2c|AsAh|KdKh/4c5c6c/7d/8d:-20|-20|40:A|B|C"),
]


@pytest.mark.parametrize(("name", "line"), LINES)
def test_an_acpc_hand_comes_back_from_a_history_as_it_was(name: str, line: str) -> None:
    game = builtin(name)
    found = parse_hand(line)
    if name == "holdem.limit.3p":
        found = replace(found, payoffs=_due(line, name))
    history = from_acpc(found, game)
    again = parse_history(history_text(history))
    assert str(to_acpc(again, game)) == str(found)
    assert str(to_acpc(again, replace(game_of(again), name=name))) == str(found)


def _due(line: str, name: str) -> tuple[float, ...]:
    """What the cards give in a hand whose payoffs are not the point."""
    from pipeline.formats.acpc import hand_values
    from pipeline.poker.game import actions

    found, state = parse_hand(line), builtin(name).start()
    for action, size in actions(found.betting):
        state = state.apply(action, size)
    return state.payoffs(hand_values(state.game, found.holes, found.board))


def test_what_has_no_place_in_an_acpc_log_is_said() -> None:
    with pytest.raises(PipelineError, match="not known"):
        to_acpc(parse_history(HAND))
    with pytest.raises(PipelineError, match="antes"):
        game_of(replace(parse_history(HAND), antes=(1, 1, 1)))
    with pytest.raises(PipelineError, match="finished"):
        to_acpc(parse_history(short("['p3 cc']")))
    with pytest.raises(PipelineError, match="hold'em"):
        from_acpc(parse_hand("STATE:0:rf:Ks|Qs:1|-1:a|b"), builtin("kuhn.limit.2p"))


def test_random_acpc_hands_come_back() -> None:
    draw = np.random.default_rng(5)
    game = builtin(NOLIMIT)
    from pipeline.poker.cards import cards_text

    for number in range(200):
        state, deck = game.start(), draw.permutation(52)
        while not state.finished:
            low, high = state.raise_range
            if high and draw.random() < 0.4:
                state = state.apply(2, low if draw.random() < 0.5 else int(draw.integers(low, high + 1)))
            elif state.to_call and draw.random() < 0.2:
                state = state.apply(0)
            else:
                state = state.apply(1)
        board = tuple(cards_text(deck[4 + a : 4 + b]) for a, b in ((0, 3), (3, 4), (4, 5))[: state.round])
        bare = parse_hand(f"STATE:{number}:{state.betting}:{cards_text(deck[:2])}|{cards_text(deck[2:4])}:0|0:x|y")
        from pipeline.formats.acpc import hand_values

        whole = replace(bare, board=board)
        values = hand_values(game, whole.holes, board) if state.showdown else [0, 0]
        whole = replace(whole, payoffs=state.payoffs(values))
        assert str(to_acpc(parse_history(history_text(from_acpc(whole, game))), game)) == str(whole)


# Logs of sites, and the public collections


SITE_LOG = """PokerStars Game #60973377752:  Hold'em No Limit ($0.50/$1.00) - 2009/07/15 10:35:30 ET
Table 'Blue' 6-max Seat #3 is the button
Seat 1: Ann ($100 in chips)
Seat 2: Bob ($99.75 in chips)
Seat 3: Cy ($50 in chips)
Ann: posts small blind $0.50
Bob: posts big blind $1
*** HOLE CARDS ***
Cy: raises $2 to $3
Ann: calls $2.50
Bob: folds
*** FLOP *** [2c 3c 4c]
Ann: bets $5
Cy: folds
Uncalled bet ($5) returned to Ann
Ann collected $6.65 from pot
*** SUMMARY ***
Total pot $7 | Rake $0.35
Board [2c 3c 4c]
Seat 1: Ann (small blind) collected ($6.65)
Seat 2: Bob (big blind) folded before Flop
Seat 3: Cy (button) folded on the Flop


"""


def test_a_log_of_a_site_is_read_through_pokerkit() -> None:
    (place,) = site_sections(SITE_LOG.encode(), "pokerstars", 2)
    history = parse_history(place.text)
    assert (history.venue, history.players, history.hand) == ("PokerStars", ("Ann", "Bob", "Cy"), "60973377752")
    assert replay(history).result == (365.0, -100.0, -300.0)


def collection(name: str) -> list[bytes]:
    """The files of an archive of the public collection, where the folder PIPELINE_CORPORA has it."""
    path = Path(os.environ.get("PIPELINE_CORPORA", "")) / "phh" / name
    if not path.is_file():
        pytest.skip(f"no phh/{name} in the folder of corpora")
    with tarfile.open(path) as archive:
        members = sorted((member for member in archive if member.isfile()), key=lambda member: member.name)
        files = [archive.extractfile(member) for member in members]
        return [file.read() for file in files if file]


@pytest.mark.long
def test_every_hand_of_pluribus_goes_as_in_pokerkit() -> None:
    files = collection("pluribus.tar.xz")
    assert len(files) == 10_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in files:
            assert_agrees_with_toml(data)
            history = parse_history(data)
            assert_agrees_with_pokerkit(history)
            assert not replay(history).flagged
            line = to_acpc(history)
            assert str(to_acpc(from_acpc(line, game_of(history)))) == str(line)


@pytest.mark.long
def test_hands_of_people_go_as_in_pokerkit() -> None:
    files = collection("handhq_sample.tar.xz")
    total = taken = 0
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in files:
            hands, refused = scan_histories(data)
            taken, total = taken + len(hands.records), total + len(hands.records) + len(refused)
            for section in sections(data)[:: max(1, 80_320 // 2_000)]:
                try:
                    history = parse_table(read_section(data[section.begin : section.end]), hands.decimals)
                    replay(history)
                except HistoryError:
                    continue
                assert_agrees_with_pokerkit(history)
                compared += 1
    assert total == 80_320
    assert taken / total > 0.995
    assert compared >= 2_000


@pytest.mark.long
def test_hands_of_television_are_read_or_refused_by_variant() -> None:
    files = collection("others.tar.xz")
    found = [scan_histories(data) for data in files]
    assert sum(len(hands.records) for hands, _ in found) == 19
    reasons = [entry.reason for _, refused in found for entry in refused]
    assert len(reasons) == 69
    assert all(why.startswith("variant ") for why in reasons)
