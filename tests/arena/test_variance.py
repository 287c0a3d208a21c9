"""Adjusted results have the mean of the results, whatever the weights and whoever plays, and less spread."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.arena.adjusting import HOLDINGS, block_records, imagine, select_imagined
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.match import play_match
from pipeline.arena.variance import estimator
from pipeline.arena.variance.equities import is_adjustable
from pipeline.arena.variance.estimator import PENALTY, Adjuster, adjust, cross_fit, fold_of
from pipeline.arena.variance.records import MISFIT_LIMIT, HandRecords, misfit
from pipeline.arena.variance.terms import build_terms
from pipeline.cli.main import group
from pipeline.dataset.decisions import extend_betting
from pipeline.models.measures import Winnings, half_width
from pipeline.poker.cards import NO_CARD, ranking
from pipeline.poker.game import builtin, parse_game
from pipeline.poker.rules import R_HOLE, showdown
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")


def played(agents, game=LIMIT, *, deals=500, seed=1, probabilities=True):
    block = HandBlock.dealt(game, seed, 0, deals, seatings(game.players), False)
    block.play([resolve(agent, game) for agent in agents], keep=probabilities)
    return block_records(block, seed)


class Known:
    """Plays the strategies of a small game by what the rows say."""

    name = "known"

    def __init__(self, game, strategies):
        self.game, self.strategies = game, strategies

    def probabilities(self, rows):
        return np.array([self.strategies[self.key(row)] for row in rows])

    def key(self, row):
        shown = self.game.visible(int(row["street"]))
        cards = tuple(int(card) >> 2 for card in row["board"][:shown])
        return tuple(map(int, row["betting_codes"])), int(row["hole"][0]) >> 2, cards


def every_hand(game, seed):
    """All hands of a small game under random strategies, the probability of each, and the strategies as an agent."""
    luck = np.random.default_rng(seed)
    strategies, hands, chances = {}, [], []

    def walk(state, hole, board, path, mixes, chance, words=(0, 0, 0, 0)):
        if state.finished:
            values = np.zeros(game.players, np.int64)
            if state.showdown:
                showdown(game.rules, hole, board, ranking(), values)
            hands.append((hole, board, path, mixes, state.payoffs(values)))
            chances.append(chance)
            return
        legal = np.array([state.legal_labels >> label & 1 for label in range(3)])
        open_cards = tuple(int(card) >> 2 for card in board[: game.visible(state.round)])
        key = words, int(hole[state.actor, 0]) >> 2, open_cards
        if key not in strategies:
            strategies[key] = luck.dirichlet(np.ones(3)) * legal
            strategies[key] /= strategies[key].sum()
        for label in np.flatnonzero(legal):
            mix, after, street = strategies[key], list(words), state.round
            after[street] = extend_betting(after[street], int(label))
            moved = state.apply(*state.choose(label))
            walk(moved, hole, board, [*path, label + 1], [*mixes, mix], chance * mix[label], tuple(after))

    drawn = game.players * game.hole_cards + sum(game.board_cards)
    deals = list(itertools.permutations(game.deck, drawn))
    for deal in deals:
        hole = np.full((game.players, 2), NO_CARD, np.uint8)
        board = np.full(5, NO_CARD, np.uint8)
        hole[:, 0] = deal[: game.players]
        board[: drawn - game.players] = deal[game.players :]
        walk(game.start(), hole, board, [], [], 1.0 / len(deals))
    longest = max(len(path) for _, _, path, _, _ in hands)
    labels = np.zeros((len(hands), longest), np.uint8)
    mixes = np.full((len(hands), longest, 3), np.nan)
    for i, (_, _, path, steps, _) in enumerate(hands):
        labels[i, : len(path)], mixes[i, : len(path)] = path, steps
    records = HandRecords(
        game=game,
        hole=np.stack([hand[0] for hand in hands]),
        board=np.stack([hand[1] for hand in hands]),
        labels=labels,
        sizes=np.zeros(labels.shape, np.int64),
        payoffs=np.array([hand[4] for hand in hands]),
        seats=np.tile(np.arange(game.players), (len(hands), 1)),
        deals=np.arange(len(hands), dtype=np.uint64),
        streams=np.arange(len(hands), dtype=np.uint64),
        probabilities=mixes,
    )
    return records, np.array(chances), Known(game, strategies)


def entries(found):
    """The hand, the column and the value of each number of terms."""
    widths = np.diff(found.starts)
    columns = np.repeat(found.columns - found.starts[:-1], widths) + np.arange(len(found.values))
    return np.repeat(np.repeat(np.arange(found.hands), np.diff(found.ends)), widths), columns, found.values


@pytest.mark.parametrize("name", ["kuhn.limit.2p", "kuhn.limit.3p", "leduc.limit.2p"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_weights_leave_the_exact_value_of_random_strategies(name, seed):
    game = builtin(name)
    hands, chances, _ = every_hand(game, seed)
    assert abs(chances.sum() - 1.0) < 1e-12
    found = build_terms(hands, np.zeros(len(hands), np.int64))
    rows, columns, values = entries(found)
    weights = np.random.default_rng(seed).normal(size=(columns.max() + 1, game.players))
    taken = np.zeros(found.results.shape)
    np.add.at(taken, rows, values[:, None] * weights[columns])
    value = chances @ hands.payoffs / game.big_blind
    assert np.abs(value).max() > 1e-3
    np.testing.assert_allclose(chances @ found.results, value, atol=1e-9)
    np.testing.assert_allclose(np.einsum("h,hka->ka", chances, found.luck), 0.0, atol=1e-9)
    assert np.abs(found.luck[:, :2]).max() > 0.1
    np.testing.assert_allclose(chances @ (found.results - taken), value, atol=1e-9)
    assert np.abs(chances @ np.abs(taken)).min() > 0.1


@pytest.mark.parametrize("name", ["kuhn.limit.2p", "kuhn.limit.3p", "leduc.limit.2p"])
@pytest.mark.parametrize("number", [0, 1])
def test_the_mean_over_all_holdings_leaves_the_exact_value(name, number):
    game = builtin(name)
    hands, chances, agent = every_hand(game, 5)
    imagined = imagine(hands, agent, number, 60)
    np.testing.assert_allclose(np.bincount(imagined.hand_of, imagined.share), 1.0, atol=1e-12)
    value = chances @ hands.payoffs / game.big_blind
    paid = np.stack([np.bincount(imagined.hand_of, imagined.share * won) for won in imagined.payoffs.T], axis=1)
    np.testing.assert_allclose(chances @ paid / game.big_blind, value, atol=1e-9)
    found = build_terms(imagined, np.zeros(len(imagined), np.int64))
    assert found.hands == len(hands)
    rows, columns, values = entries(found)
    weights = np.random.default_rng(number).normal(size=(columns.max() + 1, game.players))
    taken = np.zeros(found.results.shape)
    np.add.at(taken, rows, values[:, None] * weights[columns])
    np.testing.assert_allclose(chances @ found.results, value, atol=1e-9)
    np.testing.assert_allclose(np.einsum("h,hka->ka", chances, found.luck), 0.0, atol=1e-9)
    np.testing.assert_allclose(chances @ (found.results - taken), value, atol=1e-9)
    plain = build_terms(hands, np.zeros(len(hands), np.int64))
    averaged, single = (terms.results - terms.luck.sum(axis=1) - value for terms in (found, plain))
    assert chances @ averaged[:, 0] ** 2 < chances @ single[:, 0] ** 2


@pytest.mark.parametrize("name", ["holdem.limit.2p.reverse_blinds", "holdem.limit.3p"])
def test_the_mean_over_some_holdings_of_holdem_has_no_drift(name):
    game = builtin(name)
    names = ["@random", "@calibrated:70,70"] if game.players == 2 else ["@call", "@random", "@random"]
    hands, agent = played(names, game, deals=1500), resolve(names[1], game)
    imagined = imagine(hands, agent, 1, 6)
    assert (np.bincount(imagined.hand_of) <= 6).all()
    mean = np.stack([np.bincount(imagined.hand_of, imagined.share * won) for won in imagined.payoffs.T], axis=1)
    drift = (mean - hands.payoffs).reshape(-1, len(seatings(game.players)), game.players).mean(axis=1)
    assert np.abs(drift.mean(axis=0) / (drift.std(axis=0) / np.sqrt(len(drift)))).max() < 4.0
    first = imagined.firsts
    np.testing.assert_array_equal(imagined.hole[first], hands.hole)
    np.testing.assert_array_equal(imagined.payoffs[first], hands.payoffs)
    known = ~np.isnan(hands.probabilities)
    np.testing.assert_allclose(imagined.probabilities[first][:, : known.shape[1]][known], hands.probabilities[known])


def test_a_match_of_a_local_response_imagines_what_its_opponent_held():
    agents = [resolve("@lbr:@calibrated:70,70", LIMIT), resolve("@calibrated:70,70", LIMIT)]
    assert select_imagined(agents, True) == (1, HOLDINGS)
    assert select_imagined(agents[::-1], True) == (0, HOLDINGS)
    assert select_imagined(agents[1:] * 2, True) == (0, 1)
    assert select_imagined(agents[1:] * 2, 5) == (1, 5)
    match = play_match(agents, LIMIT, hands=60, seed=2, adjusted=True)
    assert match.adjusted.shape == match.payoffs.shape
    assert match.adjusted_ci95() < match.ci95()
    np.testing.assert_allclose(match.adjusted.sum(axis=2), 0.0, atol=1e-8)


def test_no_column_of_a_small_game_has_a_mean():
    hands, chances, _ = every_hand(builtin("leduc.limit.2p"), 3)
    found = build_terms(hands, np.zeros(len(hands), np.int64))
    rows, columns, values = entries(found)
    means = np.bincount(columns, values * chances[rows])
    assert np.abs(means).max() < 1e-12


@pytest.mark.parametrize(
    ("agents", "game"),
    [
        (["@equity", "@random"], "holdem.limit.2p.reverse_blinds"),
        (["@call", "@random", "@equity"], "holdem.limit.3p"),
        (["@equity", "@random"], "holdem.nolimit.2p.reverse_blinds"),
    ],
)
def test_no_term_of_holdem_has_a_mean(agents, game):
    hands = played(agents, builtin(game), deals=3000)
    players = hands.game.players
    found = build_terms(hands, np.zeros(len(hands), np.int64))
    orders = len(seatings(players))
    rows, columns, values = entries(found)
    used, columns = np.unique(columns, return_inverse=True)
    sums = np.zeros((len(hands) // orders, len(used)))
    np.add.at(sums, (rows // orders, columns), values)
    often = np.count_nonzero(sums, axis=0) > 300
    assert often.sum() > 100
    errors = sums[:, often].mean(axis=0) / (sums[:, often].std(axis=0) / np.sqrt(len(sums)))
    assert np.abs(errors).max() < 5.0
    drift = found.luck.sum(axis=1).reshape(-1, orders, players).mean(axis=1)
    assert np.abs(drift.mean(axis=0) / (drift.std(axis=0) / np.sqrt(len(drift)))).max() < 4.0


def test_adjusted_results_of_unlike_agents_have_a_fifth_of_the_spread():
    hands = played(["@equity", "@calibrated:70,70"], deals=4000)
    adjusted = adjust(hands)
    agent = np.argsort(hands.seats, axis=1)
    raw, less = (np.take_along_axis(x, agent, axis=1)[:, 0] for x in (hands.payoffs, adjusted))
    assert less.var() < raw.var() / 5
    assert abs(less.mean() - raw.mean()) < 4 * raw.std() / np.sqrt(len(raw))
    alone = adjust(replace(hands, probabilities=None))
    chance = np.take_along_axis(alone, agent, axis=1)[:, 0]
    assert less.var() < chance.var() < raw.var() / 2


def test_what_is_adjusted_still_adds_up_to_nothing():
    for agents, game in (
        (["@equity", "@call", "@random"], "holdem.limit.3p"),
        (["@call", "@random"], "leduc.limit.2p"),
    ):
        hands = played(agents, builtin(game), deals=300)
        np.testing.assert_allclose(adjust(hands).sum(axis=1), 0.0, atol=1e-8)


def test_pieces_and_threads_do_not_change_what_comes_out():
    hands = played(["@equity", "@random"], deals=700)
    found = []
    for size, threads in ((1400, 1), (96, 2), (333, 2)):
        adjuster = Adjuster(LIMIT, seatings(2), fit_hands=1000, threads=threads)
        for first in range(0, len(hands), size):
            adjuster.add(adjuster.prepare(hands.take(slice(first, first + size))))
        found.append(adjuster.payoffs())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_deal_is_not_adjusted_by_what_came_of_it():
    hands = played(["@equity", "@random"], deals=600)
    payoffs = hands.payoffs.copy()
    payoffs[:1] += [[1000.0, -1000.0]]
    before, after = adjust(hands), adjust(replace(hands, payoffs=payoffs))
    np.testing.assert_allclose(after[:2] - before[:2], payoffs[:2] - hands.payoffs[:2], atol=1e-6)
    assert np.abs(after[2:] - before[2:]).max() > 1e-3


def test_twins_are_in_one_fold():
    assert (fold_of(np.array([7, 7, 8], np.uint64))[:2] == fold_of(np.array([7], np.uint64))[0]).all()
    assert len(np.unique(fold_of(np.arange(100, dtype=np.uint64)))) == 5


def test_weights_are_those_of_ridge_regression(monkeypatch):
    hands = played(["@equity", "@random"], deals=400, probabilities=False)
    found = build_terms(hands, hands.seats[:, 0])
    by_agent = np.take_along_axis(found.results, np.argsort(hands.seats, axis=1), axis=1)
    monkeypatch.setattr(estimator, "SWEEPS", 400)
    weights = cross_fit(found._replace(results=by_agent), hands.deals)
    ends = np.append(weights.places[1:], weights.values.shape[1])
    groups = zip(weights.groups, weights.places, ends, strict=True)
    used = np.concatenate([group + np.arange(last - first) for group, first, last in groups])
    rows, columns, values = entries(found)
    kept = np.isin(columns, used)
    full = np.zeros((len(hands), len(used)))
    np.add.at(full, (rows[kept], np.searchsorted(used, columns[kept])), values[kept])
    inside = fold_of(hands.deals) != 2
    matrix, targets = full[inside], by_agent[inside]
    centred = targets - targets.mean(axis=0)
    system = matrix.T @ matrix + PENALTY * targets.var(axis=0).mean() * np.eye(len(used))
    np.testing.assert_allclose(weights.values[2], np.linalg.solve(system, matrix.T @ centred), atol=1e-5)


def test_probabilities_that_were_not_played_are_noticed():
    hands = played(["@random", "@calibrated:70,70"], deals=1500)
    known = ~np.isnan(hands.probabilities[:, :, 0]) & (hands.labels[:, : hands.probabilities.shape[1]] > 0)
    labels, mixes = hands.labels[known].astype(np.int64) - 1, hands.probabilities[known]
    assert misfit(labels, mixes) < MISFIT_LIMIT
    other = 0.9 * mixes + 0.1 * np.eye(3)[1]
    assert misfit(labels, other) > MISFIT_LIMIT
    same = (mixes > 0) @ np.array([1, 2, 4])
    shifted = mixes.copy()
    for kind in np.unique(same):
        shifted[same == kind] = np.roll(mixes[same == kind], 1, axis=0)
    assert misfit(labels, shifted) > MISFIT_LIMIT
    assert misfit(np.zeros(1, np.int64), np.array([[0.0, 1.0, 0.0]])) == float("inf")
    assert misfit(np.zeros(0, np.int64), np.zeros((0, 3))) == 0.0


def test_a_game_whose_cards_cannot_be_enumerated_is_refused():
    text = builtin("leduc.limit.2p").text.replace("numHoleCards = 1", "numHoleCards = 2")
    game = parse_game(text, "two-card leduc")
    assert game.rules[R_HOLE] == 2
    assert not is_adjustable(game)
    with pytest.raises(PipelineError, match="one hole card"):
        adjust(played(["@call", "@call"], game, deals=3))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two matches of the same agents with other seeds, and their probabilities, under the same names."""
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "other")]
    agents = [resolve(text, LIMIT) for text in ("@random", "@calibrated:70,70")]
    for seed, folder in enumerate(folders):
        play_match(agents, LIMIT, hands=800, seed=seed, log=folder / "match", probabilities=True)
    return folders


def score(*arguments):
    return CliRunner().invoke(group, ["match", *map(str, arguments)], catch_exceptions=False)


def test_logs_are_scored_as_the_match_was(logs):
    agents = [resolve(text, LIMIT) for text in ("@random", "@calibrated:70,70")]
    match = play_match(agents, LIMIT, hands=800, seed=0, adjusted=True)
    paths = sorted(logs[0].glob("*.log"))
    shown = score("--from", *paths, "--probabilities", logs[0] / "match.probs.parquet", "--json")
    assert "warning" not in shown.stderr
    found = {row["agent"]: row for row in json.loads(shown.stdout)}
    row = found[match.names[0]]
    assert row["hands"] == 800
    assert row["mbb_per_hand"] == pytest.approx(match.mbb_per_hand())
    assert row["ci95"] == pytest.approx(match.ci95(), rel=1e-6)
    assert row["adjusted_ci95"] == pytest.approx(match.adjusted_ci95(), rel=0.3)
    assert row["adjusted_ci95"] < row["ci95"]
    assert not row["doubtful"]
    alone = {row["agent"]: row for row in json.loads(score("--from", *paths, "--json").stdout)}
    assert alone[match.names[0]]["misfit"] is None
    assert alone[match.names[0]]["adjusted_ci95"] > row["adjusted_ci95"]


def test_probabilities_of_another_match_are_warned_about(logs):
    shown = score("--from", *logs[0].glob("*.log"), "--probabilities", logs[1] / "match.probs.parquet")
    assert "did not play by these probabilities" in shown.stderr


def test_score_takes_logs_or_a_dataset(logs):
    with pytest.raises(PipelineError, match="leave out @call"):
        score("@call", "--data", logs[0])


def test_a_tournament_ranks_by_adjusted_results_and_has_the_plain_ones():
    arguments = ["tournament", "@equity", "@call", "@random", "--hands", "200", "--json"]
    found = json.loads(CliRunner().invoke(group, arguments, catch_exceptions=False).stdout)
    plain = json.loads(CliRunner().invoke(group, [*arguments, "--no-adjusted"], catch_exceptions=False).stdout)
    for one, other in zip(found["lineups"], plain["lineups"], strict=True):
        for member, plain_member in zip(one["results"], other["results"], strict=True):
            assert member["mbb_per_hand"] == plain_member["mbb_per_hand"] != member["adjusted_mbb_per_hand"]
            assert plain_member["adjusted_mbb_per_hand"] is None
    assert (found["total_bankroll"]["ranked_by"], found["cap_mbb"]) == ("capped_mbb_per_hand", 750)
    free = json.loads(CliRunner().invoke(group, [*arguments, "--cap", "0"], catch_exceptions=False).stdout)
    for rule in ("total_bankroll", "instant_runoff"):
        assert free[rule]["ranked_by"] == "adjusted_mbb_per_hand"
        assert free[rule]["standings"][0]["capped_mbb_per_hand"] is None


def test_the_same_hands_have_the_same_keys_and_numbers_in_a_match_and_a_tournament():
    words = ["@raise", "@fold", "--hands", "200", "--seed", "4", "--json"]
    match, tournament = (
        json.loads(CliRunner().invoke(group, [command, *words], catch_exceptions=False).stdout)
        for command in ("match", "tournament")
    )
    keys = [key for key in Winnings().json() if not key.startswith("capped")]
    assert [{key: member[key] for key in keys} for member in tournament["lineups"][0]["results"]] == [
        {key: member[key] for key in keys} for member in match["agents"]
    ]
    for standing, member in zip(tournament["total_bankroll"]["standings"], match["agents"], strict=True):
        for kind in ("mbb_per_hand", "adjusted_mbb_per_hand"):
            assert standing[kind] == pytest.approx(member[kind])


def test_play_ends_with_what_the_person_won_without_luck(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")  # so that what is offered stands on the line of the prompt
    monkeypatch.setattr("builtins.input", lambda prompt: "c" if "Enter" not in prompt else "")
    group.main(["play", "@call", "--seed", "1", "--hands", "4"], standalone_mode=False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("you: ")
    assert "without the luck of the cards" in last


LIKE_TYPICAL = [
    (["@teacher", "@equity"], "limit"),
    (["@equity", "@call"], "limit"),
    (["@bearl", "@equity"], "nolimit"),
    (["@random", "@random"], "nolimit"),
]
UNLIKE_TYPICAL = [
    (["@chump:maniac", "@chump:rock"], "limit"),
    (["@random", "@raise"], "limit"),
    (["@fold", "@raise"], "limit"),
    (["@chump:maniac", "@calibrated:70,70"], "nolimit"),
    (["@equity", "@call"], "nolimit"),
]


def short_matches(agents, betting, hands, matches):
    """(matches, deals) what agent 0 won on each deal of many short matches: plain and adjusted, in big blinds."""
    game = builtin(f"holdem.{betting}.2p.reverse_blinds")
    records = played(agents, game, deals=matches * hands // 2, seed=3)
    agent = np.argsort(records.seats, axis=1)
    pieces = [adjust(records.take(slice(first, first + hands))) for first in range(0, len(records), hands)]
    return [
        (np.take_along_axis(payoffs, agent, axis=1)[:, 0] / game.big_blind).reshape(matches, -1, 2).mean(axis=2)
        for payoffs in (records.payoffs, np.concatenate(pieces))
    ]


@pytest.mark.parametrize(("hands", "matches"), [(20, 100), (50, 60), (100, 40), (500, 12)])
def test_adjusted_results_of_few_hands_scatter_no_more_than_plain_ones(hands, matches):
    ratios = []
    for agents, betting in LIKE_TYPICAL + UNLIKE_TYPICAL:
        plain, adjusted = short_matches(agents, betting, hands, matches)
        before, after = plain.var(axis=1).mean(), adjusted.var(axis=1).mean()
        noise = (adjusted.var(axis=1) - plain.var(axis=1)).std() / np.sqrt(matches)
        assert after <= 1.05 * before + 2 * noise + 1e-12, (agents, betting, after / before)
        change = (adjusted - plain).mean(axis=1)
        assert abs(change.mean()) <= 4 * change.std() / np.sqrt(matches) + 1e-12
        ratios.append(after / before if before > 0 else 1.0)
    assert np.mean(ratios) < 0.85
    assert max(ratios[: len(LIKE_TYPICAL)]) < 0.9


def test_intervals_of_few_hands_cover_the_value_after_shrinkage():
    covered, matches = [], 60
    for agents, betting in LIKE_TYPICAL[:3] + UNLIKE_TYPICAL[3:]:
        _, long_match = short_matches(agents, betting, 20_000, 1)
        for hands in (50, 200, 500):
            _, adjusted = short_matches(agents, betting, hands, matches)
            half = np.array([half_width(samples) for samples in adjusted])
            covered.append(np.abs(adjusted.mean(axis=1) - long_match.mean()) <= half)
    shares = np.array(covered).mean(axis=1)
    # 15 shares of 60 matches each: 0.85 is 3.5 standard errors below 0.95
    assert 0.92 < shares.mean() < 0.98
    assert shares.min() > 0.85


def test_luck_that_only_adds_noise_is_not_taken_out():
    match = play_match([resolve("@fold", LIMIT), resolve("@raise", LIMIT)], LIMIT, hands=60, adjusted=True)
    np.testing.assert_array_equal(match.adjusted, match.payoffs)
    assert match.winnings().json()["adjustment"] == "none"
    assert match.winnings().text() == "-750.0 ± 0.0   adjusting does not help"
    longer = play_match([resolve("@equity", LIMIT), resolve("@call", LIMIT)], LIMIT, hands=600, adjusted=True)
    assert longer.winnings().json()["adjustment"] == "control variates"
    assert "   adjusted " in longer.winnings().text()


@pytest.mark.long
def test_two_hundred_matches_scatter_about_a_long_one_as_their_intervals_say():
    from scipy.stats import kstest

    agents = ["@equity", "@calibrated:70,70"]

    def result(deals, seed):
        hands = played(agents, deals=deals, seed=seed)
        mine = np.take_along_axis(adjust(hands), np.argsort(hands.seats, axis=1), axis=1)[:, 0]
        samples = mine.reshape(-1, 2).mean(axis=1)
        return samples.mean(), samples.std(ddof=1) / np.sqrt(len(samples))

    truth, error = result(60_000, 10_000)
    found = [result(500, seed) for seed in range(200)]
    assert kstest([(mean - truth) / np.hypot(one, error) for mean, one in found], "norm").pvalue > 0.01


@pytest.mark.parametrize("game", ["holdem.limit.2p.reverse_blinds", "leduc.limit.2p", "kuhn.limit.3p"])
def test_a_match_is_adjusted_to_the_same_bytes_by_any_block_and_threads(game, monkeypatch):
    played_game = builtin(game)
    agents = [resolve(text, played_game) for text in ["@random", "@call", "@raise"][: played_game.players]]
    settings = {"hands": 1200, "seed": 3, "adjusted": True}
    one = play_match(agents, played_game, **settings, workers=1)
    monkeypatch.setattr("pipeline.arena.match.BLOCK_HANDS", 120)
    two = play_match(agents, played_game, **settings, workers=2)
    np.testing.assert_array_equal(one.adjusted, two.adjusted)
    np.testing.assert_array_equal(one.payoffs, play_match(agents, played_game, hands=1200, seed=3).payoffs)
    assert one.adjusted.shape == one.payoffs.shape
    assert one.adjusted_ci95() < one.ci95()
    assert abs(one.adjusted_mbb_per_hand() - one.mbb_per_hand()) < 3 * one.ci95()
    assert "adjusted" in repr(one)


def test_adjusted_payoffs_go_to_the_agents_that_earned_them():
    game = builtin("kuhn.limit.3p")
    match = play_match([resolve(text, game) for text in ("@fold", "@random", "@call")], game, hands=3000, adjusted=True)
    for i in range(3):
        assert abs(match.adjusted_mbb_per_hand(i) - match.mbb_per_hand(i)) < match.ci95(i) + 1e-9
    assert match.mbb_per_hand(0) < match.mbb_per_hand(1) - 3 * match.ci95(1)


def test_a_match_that_was_not_adjusted_says_so():
    match = play_match([resolve("@call", LIMIT)] * 2, LIMIT, hands=20)
    assert match.adjusted is None
    assert match.adjusted_mbb_per_hand() is None
    assert match.adjusted_ci95() is None
    assert {"agent", "mbb_per_hand", "adjusted_mbb_per_hand", "adjustment"} <= set(match.frame().columns)
    assert set(match.frame()["adjustment"]) == {"none"}
    assert match.frame()["adjusted_mbb_per_hand"].isna().all()


def test_the_match_command_prints_both_results():
    run = CliRunner().invoke(group, ["match", "@equity", "@call", "--hands", "600", "--json"])
    found = json.loads(run.stdout)
    assert found["adjusted_ci95"] < found["ci95"]
    assert found["agents"][1]["adjusted_mbb_per_hand"] == pytest.approx(-found["adjusted_mbb_per_hand"])
    plain = CliRunner().invoke(group, ["match", "@equity", "@call", "--hands", "600", "--no-adjusted", "--json"])
    assert json.loads(plain.stdout)["adjusted_ci95"] is None
    assert json.loads(plain.stdout)["mbb_per_hand"] == found["mbb_per_hand"]
    assert "adjusted" in CliRunner().invoke(group, ["match", "@equity", "@call", "--hands", "60"]).stdout
