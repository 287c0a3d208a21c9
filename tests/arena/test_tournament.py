"""Total bankroll and instant run-off: the published tables of the ACPC 2013 and small made-up ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.arena import rankings
from pipeline.evaluation.findings import Findings
from pipeline.report import tables
from pipeline.report.pages import build_page
from pipeline.runtime.errors import PipelineError

TABLES = Path(__file__).parents[2] / "data" / "acpc2013"

BANKROLL = {
    "marv": 199.9,
    "feste_tbr": 178.9,
    "hyperborean_tbr": 174.9,
    "zbot": 151.3,
    "littlerock": 144.4,
    "propokertools": 143.2,
    "neo_poker_lab": 143.0,
    "HITSZ_CS_13": 90.1,
    "chump12": 24.2,
    "unamur_tbr": -60.0,
    "liacc": -229.3,
    "chump1": -391.3,
    "slugathorus": -569.3,
}
RUNOFF_FIRST_COUNT = {
    "marv": 165.2,
    "feste_iro": 131.9,
    "hyperborean_iro": 127.8,
    "zbot": 123.3,
    "littlerock": 116.4,
    "neo_poker_lab": 116.1,
    "propokertools": 114.5,
    "HITSZ_CS_13": 29.4,
    "unamur_iro": -85.6,
    "liacc": -298.7,
    "slugathorus": -540.4,
}
ELIMINATED = [
    "slugathorus",
    "liacc",
    "unamur_iro",
    "HITSZ_CS_13",
    "feste_iro",
    "propokertools",
    "littlerock",
    "marv",
    "zbot",
    "hyperborean_iro",
]
PUBLISHED_POINTS = [
    {"marv": 10.0, "feste_iro": 8.886, "hyperborean_iro": 8.089, "zbot": 7.021, "littlerock": 5.263},
    {"marv": 9.0, "hyperborean_iro": 7.994, "neo_poker_lab": 6.088, "littlerock": 4.571, "feste_iro": 3.389},
    {"marv": 7.446, "neo_poker_lab": 6.793, "hyperborean_iro": 6.742, "zbot": 5.019, "feste_iro": 2.0},
    {"marv": 6.534, "hyperborean_iro": 5.826, "neo_poker_lab": 5.634, "propokertools": 2.176},
    {"neo_poker_lab": 5.610, "hyperborean_iro": 5.389, "zbot": 3.567, "marv": 3.434},
    {"neo_poker_lab": 4.789, "hyperborean_iro": 4.211, "littlerock": 0.832, "propokertools": 0.168},
    {"neo_poker_lab": 3.935, "marv": 1.074, "littlerock": 0.0},
    {"neo_poker_lab": 2.972, "marv": 0.089},
    {"neo_poker_lab": 1.987, "zbot": 0.010},
    {"neo_poker_lab": 0.999, "hyperborean_iro": 0.001},
]


def test_the_2013_bankroll_table_gives_the_published_averages_and_order() -> None:
    ranking = rankings.total_bankroll(rankings.read_table(TABLES / "bankroll.csv"))
    assert [standing.name for standing in ranking.standings] == list(BANKROLL)
    assert [standing.won.value for standing in ranking.standings] == pytest.approx(list(BANKROLL.values()), abs=0.051)
    assert ranking.confidence > 0.99


def test_the_2013_runoff_table_gives_the_published_averages_and_order_of_elimination() -> None:
    ranking = rankings.instant_runoff(rankings.read_table(TABLES / "runoff.csv"))
    first = {standing.name: standing.won.value for standing in ranking.rounds[0].standings}
    assert list(first) == list(RUNOFF_FIRST_COUNT)
    assert first == pytest.approx(RUNOFF_FIRST_COUNT, abs=0.051)
    assert [count.eliminated for count in ranking.rounds] == ELIMINATED
    assert [standing.name for standing in ranking.standings] == ["neo_poker_lab", *ELIMINATED[::-1]]


def test_the_2013_bootstrap_points_come_out_from_the_published_intervals() -> None:
    ranking = rankings.instant_runoff(rankings.read_table(TABLES / "runoff.csv", replicates=4000))
    for count, published in zip(ranking.rounds, PUBLISHED_POINTS, strict=True):
        points = {standing.name: standing.points for standing in count.standings}
        assert {name: points[name] for name in published} == pytest.approx(published, abs=0.3)


def test_a_loss_counts_at_most_the_cap() -> None:
    won = np.array([[0.0, 2000.0, -10.0], [-2000.0, 0.0, 30.0], [10.0, -30.0, 0.0]])
    results = rankings.from_table("abc", won)
    capped = {standing.name: standing.won.value for standing in rankings.total_bankroll(results).standings}
    assert capped == {"a": 370.0, "c": -10.0, "b": -360.0}
    free = {one.name: one.won.value for one in rankings.total_bankroll(results, cap=None).standings}
    assert free == {"a": 995.0, "c": -10.0, "b": -985.0}


def test_bankroll_and_runoff_can_name_different_winners() -> None:
    won = np.array([[0.0, -10.0, 700.0], [10.0, 0.0, 50.0], [-700.0, -50.0, 0.0]])
    results = rankings.from_table(["exploiter", "solid", "weak"], won)
    assert rankings.total_bankroll(results).standings[0].name == "exploiter"
    assert rankings.instant_runoff(results).standings[0].name == "solid"


def test_a_certain_table_is_certain_and_a_tie_is_not() -> None:
    won = np.array([[0.0, 0.0], [0.0, 0.0]])
    tie = rankings.instant_runoff(rankings.from_table("ab", won, np.full((2, 2), 5.0)))
    assert tie.confidence == pytest.approx(0.5, abs=0.06)
    assert tie.places.sum(axis=1) == pytest.approx(1.0)
    sure = rankings.instant_runoff(rankings.from_table("ab", np.array([[0.0, 9.0], [-9.0, 0.0]]), np.full((2, 2), 1.0)))
    assert sure.confidence == 1.0
    assert [standing.points for standing in sure.standings] == [1.0, 0.0]


def strengths(lineup: list[str], random: np.random.Generator) -> rankings.LineUpSamples:
    """Deals in which an agent's name is how well it plays."""
    skill = np.array([float(name) for name in lineup])
    noise = random.normal(scale=500, size=(2000, len(lineup)))
    return rankings.LineUpSamples(skill - skill.mean() + noise - noise.mean(axis=1, keepdims=True))


@pytest.mark.parametrize("members", [2, 3])
def test_every_lineup_plays_and_the_strongest_wins(members: int) -> None:
    random = np.random.default_rng(1)
    names = ["10", "400", "-100", "150", "-90"]
    results = rankings.play_all(names, lambda lineup: strengths(lineup, random), members=members)
    order = ["400", "150", "10", "-90", "-100"]
    bankroll, runoff = rankings.total_bankroll(results), rankings.instant_runoff(results)
    assert [one.name for one in bankroll.standings][:3] == order[:3]
    assert [one.name for one in runoff.standings][:3] == order[:3]
    assert len(runoff.rounds) == len(names) + 1 - members
    assert runoff.places.sum(axis=0) == pytest.approx(1.0)
    assert runoff.places.sum(axis=1) == pytest.approx(1.0)
    for standing in bankroll.standings:
        assert standing.won.low < standing.won.value < standing.won.high


def test_a_cross_table_is_antisymmetric_and_empty_on_its_diagonal() -> None:
    random = np.random.default_rng(2)
    results = rankings.play_all(["5", "50", "100"], lambda lineup: strengths(lineup, random))
    won, half = rankings.cross_table(results)
    assert np.isnan(np.diag(won)).all()
    assert np.nan_to_num(won + won.T) == pytest.approx(0)
    assert half[0, 1] == pytest.approx(1.96 * 354 / np.sqrt(2000), rel=0.15)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a cross table"),
        (",a,c\na,,1\nb,-1,\n", "not a cross table"),
        (",a,b\na,,x\nb,-1,\n", "a against b is 'x'"),
        (",a,b\na,,20\nb,-1,\n", "is not minus"),
    ],
)
def test_a_damaged_table_is_refused_with_the_cell(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(PipelineError, match=said):
        rankings.read_table(path)


def test_a_table_for_three_is_ranked_as_the_tournament_was(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    results = rankings.play_all(["5", "50", "100", "70"], lambda lineup: strengths(lineup, random), members=3)
    path = tmp_path / "three.csv"
    path.write_text(rankings.table_csv(replace(results, cap=750.0)))
    again = rankings.read_table(path)
    assert (again.names, again.cap) == (results.names, 750.0)
    assert again.lineups.tolist() == results.lineups.tolist()
    for rank in (rankings.total_bankroll, rankings.instant_runoff):
        first, second = ([(one.name, *one.won) for one in rank(found, 750.0).standings] for found in (results, again))
        assert [row[0] for row in first] == [row[0] for row in second]
        assert np.allclose([row[1:] for row in first], [row[1:] for row in second], atol=1e-4)
    shown = build_page(Findings("Three", [], results=again))
    assert "Line-ups" in shown
    assert "mbb/h of 3" in shown


@pytest.mark.parametrize("harm", ["agent 1", "5,50,100", "draws", "mean", "cap", "999,"])
def test_a_damaged_table_for_three_is_refused(tmp_path: Path, harm: str) -> None:
    random = np.random.default_rng(4)
    results = rankings.play_all(["5", "50", "100", "70"], lambda lineup: strengths(lineup, random), members=3)
    lines, path = rankings.table_csv(results).splitlines(), tmp_path / "three.csv"
    at = next(i for i, line in enumerate(lines) if line.startswith(harm))
    cut = lines[at].rsplit(",", 1)[0]  # the line loses its last cell
    path.write_text("\n".join([*lines[:at], cut, *lines[at + 1 :]]))
    if harm == "draws":  # whose cells are for people; without the line nothing belongs to the table
        path.write_text("\n".join([*lines[:at], *lines[at + 1 :]]))
    with pytest.raises(PipelineError, match="line-ups is ranked by the draws"):
        rankings.read_table(path)


def test_too_few_agents_and_doubles_are_refused() -> None:
    with pytest.raises(PipelineError, match="at least 2"):
        rankings.play_all(["a"], lambda lineup: rankings.LineUpSamples(np.zeros((1, 2))))
    with pytest.raises(PipelineError, match="entered twice"):
        rankings.play_all(["a", "b", "a"], lambda lineup: rankings.LineUpSamples(np.zeros((1, 2))))


def test_a_cross_table_written_is_the_table_read(tmp_path: Path) -> None:
    text = (TABLES / "runoff.csv").read_text(encoding="utf-8")
    assert rankings.table_csv(rankings.read_table(TABLES / "runoff.csv")).startswith(f"{text}\ndraws,")


def test_a_table_that_was_written_gives_the_numbers_of_the_tournament(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    luck = random.normal(scale=900, size=4000)  # shared by all line-ups, as the deals are

    def play(names: Sequence[str]) -> rankings.LineUpSamples:
        won = 10.0 * len(names[0]) + luck + random.normal(scale=400, size=4000)
        return rankings.LineUpSamples(np.stack([won, -won], axis=1))

    played = replace(rankings.play_all(["a", "bb", "ccc", "dddd"], play), cap=60.0)
    path = tmp_path / "table.csv"
    path.write_text(rankings.table_csv(played), encoding="utf-8")
    read = rankings.read_table(path, seed=99)
    assert read.cap == played.cap
    for rule in (rankings.total_bankroll, rankings.instant_runoff):
        assert tables.ranking_table(rule(read, read.cap)) == tables.ranking_table(rule(played, played.cap))
    assert tables.cross_results(read, rankings.total_bankroll(read)) == tables.cross_results(
        played, rankings.total_bankroll(played)
    )
    shown = build_page(Findings("t", [], results=read))
    for standing in rankings.total_bankroll(played, played.cap).standings:
        assert f"[{standing.won.low:+.1f}, {standing.won.high:+.1f}]" in shown


def test_draws_of_another_table_are_refused(tmp_path: Path) -> None:
    text = rankings.table_csv(rankings.read_table(TABLES / "runoff.csv"))
    path = tmp_path / "table.csv"
    for wrong in (text.replace("mean,", "mean,9"), text.rsplit(",", 1)[0], text.replace("cap,750", "cap,much")):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(PipelineError, match="do not belong to it"):
            rankings.read_table(path)
