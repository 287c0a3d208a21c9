"""@teacher looks decisions up as its tables say; the opponents with character keep to their reports."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pipeline.agents.bearl import BLUFFER, NEUTRAL, STATION, TIMID, Bearl, profile_of
from pipeline.agents.calibrated import label_of_stake, stakes, start_stack
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Learner
from pipeline.agents.teacher import VERSION, Teacher, _cached_buckets, _open_table
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import observation
from pipeline.poker.cards import parse_cards, start_class
from pipeline.poker.game import Game, actions, find_game
from pipeline.poker.rules import FOLD, RAISE
from pipeline.poker.strength.boards import HOLDINGS, boards, entry_numbers
from pipeline.poker.strength.queries import find_strengths
from pipeline.runtime.diskcache import cache_root, store_array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import no_progress
from pipeline.solving.buckets import without_rivers
from pipeline.solving.layout import T_SLOT, Layout
from pipeline.solving.lookup import project_on_buckets
from pipeline.solving.strategy import LEVELS, StoredStrategy, dequantise, quantise

LIMIT = find_game("holdem.limit.2p.reverse_blinds")
NOLIMIT = find_game("holdem.nolimit.2p.reverse_blinds")
SIZES = (169, 4, 3, 5)


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    """A made-up strategy over made-up clusters: looking up is what is tested."""
    layout = Layout(LIMIT, SIZES)
    rng = np.random.default_rng(1)
    mixes = rng.dirichlet([1, 1, 1], layout.rows) * (layout.legal[:, None] >> np.arange(3) & 1)
    steps = quantise((mixes / mixes.sum(axis=1, keepdims=True)).astype(np.float32))
    none = np.zeros((1, 8), np.uint8)
    stored = StoredStrategy(layout, steps, none, none, "", {})
    flop = (np.arange(len(boards(1).cards) * HOLDINGS[1]) % SIZES[1]).astype(np.uint16)
    turn = (np.arange(len(boards(2).cards) * HOLDINGS[2]) % SIZES[2]).astype(np.uint16)
    return Teacher("teacher", LIMIT, stored, without_rivers(flop, turn, SIZES[3]))


def test_an_agent_is_written_in_buckets_as_it_plays(teacher: Teacher) -> None:
    layout = teacher.stored.layout
    for each in (4, (2, 2, 2, 1)):
        found = project_on_buckets(teacher.probabilities, layout, teacher.tables, samples=each)
        assert np.allclose(found, dequantise(teacher.stored.steps))


@pytest.mark.parametrize(("agent", "least", "most"), [("@fold", 750, 750), ("@call", 500, 2000)])
def test_the_local_best_response_wins_from_those_who_do_not_look_at_their_cards(
    agent: str, least: int, most: int
) -> None:
    match = play_match([resolve(f"@lbr:{agent}", LIMIT), resolve(agent, LIMIT)], LIMIT, hands=200, seed=1)
    assert least <= match.mbb_per_hand() <= most


def test_the_local_best_response_needs_an_agent_to_answer() -> None:
    with pytest.raises(PipelineError, match="needs the agent"):
        resolve("@lbr", LIMIT)
    with pytest.raises(PipelineError, match="for two players"):
        resolve("@lbr:@call", find_game("holdem.limit.3p"))


@pytest.mark.parametrize(("agent", "least"), [("@fold", 750), ("@call", 15_000), ("@calibrated:70,70", 2_000)])
def test_in_no_limit_the_local_best_response_bets_what_pays(agent: str, least: int) -> None:
    match = play_match([resolve(f"@lbr:{agent}", NOLIMIT), resolve(agent, NOLIMIT)], NOLIMIT, hands=200, adjusted=True)
    assert match.adjusted_mbb_per_hand(0) >= least


def test_amounts_that_no_class_of_raises_stands_for_are_answered_by_the_chips_on_the_table() -> None:
    response = resolve("@lbr:@call", NOLIMIT)
    hole, board = parse_cards("AcAd"), parse_cards("AhAs2c7d9h")
    rows = [
        np.atleast_1d(observation(NOLIMIT, betting, position, hole, board[:shown]))
        for betting, position, shown in (
            ("r217c/cr333c/cr923c/c", 1, 5),
            ("r217c/cr5003c/c", 1, 4),
            ("r217r601r1901c/cr5003", 0, 3),
        )
    ]
    best = response.probabilities(np.concatenate(rows)).argmax(axis=1)
    assert best.tolist() == [NOLIMIT.labels.index("a")] * 3  # nothing beats four aces, and it calls


@pytest.mark.parametrize(
    ("betting", "cards"),
    [
        ("", ""),
        ("crr", ""),
        ("rc/", "2c7dTh"),
        ("rc/crr", "2c7dTh"),
        ("rc/cc/r", "2c7dTh9s"),
        ("cc/cc/cc/crrr", "2c7dTh9sAs"),
    ],
)
def test_a_decision_is_looked_up_by_betting_and_bucket(teacher: Teacher, betting: str, cards: str) -> None:
    hole, board = parse_cards("AcKd"), parse_cards(cards)
    layout, street = teacher.stored.layout, betting.count("/")
    node = 0
    for letter in betting.replace("/", ""):
        node = int(layout.children[node, "fcr".index(letter)])
    position = int(layout.tree[node, 0])
    full = np.full((1, 5), 255, np.uint8)
    full[0, : len(board)] = board
    if street == 0:
        bucket = start_class(int(hole[0]), int(hole[1]))
    elif street < 3:
        bucket = int(entry_numbers(street, hole[None], full)[0]) % SIZES[street]
    else:
        bucket = int(find_strengths(3, hole[None], full)["ehs"][0]) * SIZES[3] // 65536
    at = layout.offsets[street, position] + bucket * layout.counts[street, position] + layout.tree[node, T_SLOT]
    fold, raise_ = teacher.stored.steps[at] / LEVELS
    row = observation(LIMIT, betting, position, hole, board)
    assert teacher.probabilities(np.atleast_1d(row))[0] == pytest.approx([fold, 1 - fold - raise_, raise_])


def test_a_match_of_the_teacher_asks_only_for_legal_actions(teacher: Teacher) -> None:
    match = play_match([teacher, resolve("@random", LIMIT)], LIMIT, hands=2000, seed=1)
    assert match.payoffs.sum() == 0


def test_kept_tables_with_zeros_or_impossible_clusters_are_not_used(tmp_path: Path) -> None:
    entries = len(boards(1).cards) * HOLDINGS[1]
    good = (np.arange(entries) % SIZES[1]).astype(np.uint16)
    store_array(tmp_path / "flop.npy", good, VERSION)
    opened = _open_table(tmp_path, 1, SIZES[1])
    assert opened is not None
    assert np.array_equal(opened, good)
    before = (tmp_path / "flop.npy").stat()
    with (tmp_path / "flop.npy").open("r+b") as file:  # zeros, under the date that it had
        file.seek(-1000, 2)
        file.write(bytes(1000))
    os.utime(tmp_path / "flop.npy", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _open_table(tmp_path, 1, SIZES[1]) is None
    store_array(tmp_path / "flop.npy", good, VERSION)
    (tmp_path / "flop.npy").touch()
    assert _open_table(tmp_path, 1, SIZES[1] - 1) is None  # a cluster that the strategy does not have
    assert _open_table(tmp_path, 2, SIZES[1]) is None


def test_rows_of_another_game_are_refused(teacher: Teacher) -> None:
    row = np.atleast_1d(observation(NOLIMIT, "r300", 0, parse_cards("AcKd"))).copy()
    row["betting_codes"][0, 0] = 7
    with pytest.raises(PipelineError, match="not a decision"):
        teacher.probabilities(row)
    with pytest.raises(PipelineError, match=r"not holdem\.nolimit\.3p"):
        resolve("@teacher", find_game("holdem.nolimit.3p"))


@pytest.mark.parametrize("name", ["kuhn.limit.2p", "leduc.limit.2p"])
def test_the_teacher_of_a_small_game_beats_who_always_calls(name: str) -> None:
    game = find_game(name)
    match = play_match([resolve("@teacher", game), resolve("@call", game)], game, hands=4000, seed=1)
    assert match.mbb_per_hand() > match.ci95()


@pytest.mark.parametrize("game", [LIMIT, NOLIMIT, find_game("holdem.limit.3p"), find_game("holdem.nolimit.3p")])
def test_opponents_with_character_play_every_holdem_game(game: Game) -> None:
    agents = [resolve(text, game) for text in ("@calibrated:70,20", "@bearl", "@calibrated:10,90")[: game.players]]
    match = play_match(agents, game, hands=300, seed=1)
    assert match.payoffs.sum() == 0


def rows_of(game: Game, *spots: tuple[str, str, str]) -> np.ndarray:
    found = []
    for betting, hole, board in spots:
        actor = actor_after(game, betting)
        found.append(observation(game, betting, actor, parse_cards(hole), parse_cards(board)))
    return np.concatenate([np.atleast_1d(row) for row in found])


def actor_after(game: Game, betting: str) -> int:
    state = game.start()
    for action, size in actions(betting.replace("/", "")):
        state = state.apply(action, size)
    return state.actor


def test_a_rational_bot_folds_a_bad_hand_and_raises_a_good_one() -> None:
    rows = rows_of(LIMIT, ("cc/cc/cc/r", "2c3d", "AhKsQsJd9c"), ("cc/cc/cc/", "AcAd", "AhKsQs4d9c"))
    fold, _, _ = resolve("@calibrated:1,100", LIMIT).probabilities(rows)[0]
    assert fold > 0.95
    raise_ = resolve("@calibrated:100,100", LIMIT).probabilities(rows)[1][2]
    assert raise_ == pytest.approx(1)


def test_aggression_makes_bots_stake_more() -> None:
    stake = []
    for aggression in (10, 50, 90):
        agents = [resolve(f"@calibrated:{aggression},50", LIMIT), resolve("@call", LIMIT)]
        match = play_match(agents, LIMIT, hands=200, seed=1)
        stake.append(np.abs(match.payoffs).mean())
    assert stake[0] < stake[1] < stake[2]


@pytest.mark.parametrize("arguments", ["70", "70,x", "101,5", "-1,5"])
def test_a_calibration_is_two_percentages(arguments: str) -> None:
    with pytest.raises(PipelineError, match=r"AGGRESSION|percentages"):
        resolve(f"@calibrated:{arguments}", LIMIT)


def test_bearl_judges_as_its_report_says() -> None:
    nan = float("nan")
    assert profile_of([]) == NEUTRAL
    assert profile_of([(0.08, nan, False)]) == TIMID
    assert profile_of([(0.5, 1.2, False)]) == STATION
    assert profile_of([(0.15, 0.9, False)]) == NEUTRAL
    assert profile_of([(0.15, 0.9, True), (0.15, nan, True)]) == BLUFFER
    assert profile_of([(0.15, 0.4, False)]) == BLUFFER


def test_bearl_finds_out_who_never_folds_and_forgets_for_the_next_match() -> None:
    agent = resolve("@bearl", LIMIT)
    assert isinstance(agent, Bearl)
    assert isinstance(agent, Learner)
    play_match([agent, resolve("@raise", LIMIT)], LIMIT, hands=1000, seed=1)
    assert agent.profile == STATION
    agent.begin()
    assert agent.profile == NEUTRAL


def test_stakes_are_shares_of_what_can_be_put_in() -> None:
    assert start_stack(LIMIT) == 240
    assert start_stack(NOLIMIT) == 20000
    row = rows_of(LIMIT, ("rr", "AcAd", ""))
    at = stakes(LIMIT, row)
    assert (at.staked[0], at.to_call[0], at.least[0]) == (20, 10, 10)


def test_amounts_become_the_nearest_legal_label() -> None:
    row = rows_of(NOLIMIT, ("r300", "AcAd", ""))[0]
    amounts = (300.0, 500.0, 900.0, 19700.0)
    assert [label_of_stake(row, RAISE, amount, 7, True) for amount in amounts] == [3, 4, 5, 6]
    assert label_of_stake(row, FOLD, 0.0, 7, True) == 0
    row = rows_of(LIMIT, ("rrr", "AcAd", ""))[0]
    assert label_of_stake(row, RAISE, 10.0, 3, False) == 1


def test_complete_tables_are_used_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = resolve("@teacher", LIMIT)
    assert isinstance(agent, Teacher)
    kept, copy = cache_root() / "teacher", tmp_path / "teacher"
    for file in kept.glob("*/*.*"):
        (copy / file.parent.name).mkdir(parents=True, exist_ok=True)
        (copy / file.parent.name / file.name).symlink_to(file)
    for folder in copy.iterdir():
        (folder / "lock").mkdir()  # stops the superuser too, whom a read-only folder would not stop
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path))
    opened = _cached_buckets(agent.stored, no_progress)
    assert np.array_equal(opened.flop, agent.tables.flop)
