"""The thesis's three cycles and the rank correlation of measures with winnings, on players of known strength."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from pipeline.arena import rankings
from pipeline.runtime.errors import PipelineError
from tools.selection import Entry, rank_correlation, restrict_results, select

STRENGTH = {"slumbot": 60.0, "hyperborean": 30.0, "rprop": 40.0, "l-bfgs": 0.0, "street": 25.0, "joint": 0.0}


def entries() -> list[Entry]:
    return [
        Entry(f"out/{corpus}/{algorithm}/{kind}", (corpus,), algorithm, kind == "joint")
        for corpus in ("slumbot", "hyperborean")
        for algorithm in ("rprop", "l-bfgs")
        for kind in ("street", "joint")
    ]


class Table:
    """Plays by known strengths; l-bfgs of slumbot exploits the weak, Selby's chart helps everyone."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.random = np.random.default_rng(0)

    def strength(self, name: str, other: str) -> float:
        if name.startswith("@"):
            return -300.0
        value = sum(STRENGTH[part] for part in name.partition(":")[0].split("/")[1:])
        value += 35.0 if "chart=selby" in name else 0.0
        return value + (400.0 if other.startswith("@") and "slumbot/l-bfgs" in name else 0.0)

    def __call__(self, names) -> rankings.LineUpSamples:
        a, b = names
        self.asked.append((a, b))
        won = self.strength(a, b) - self.strength(b, a) + self.random.normal(scale=200, size=4000)
        return rankings.LineUpSamples(np.stack([won, -won], axis=1))


@pytest.fixture(scope="module")
def selection():
    table = Table()
    return select(entries(), table, charts=("own", "selby"), weak=("@call", "@random")), table


def test_each_cycle_keeps_the_winner_of_its_group(selection) -> None:
    found, _ = selection
    first = [cycle for cycle in found.cycles if cycle.number == 1]
    assert len(first) == 4
    assert all(name.endswith("/street") for cycle in first for name in cycle.kept)
    second = {cycle.group: cycle.kept for cycle in found.cycles if cycle.number == 2}
    assert second["hyperborean"] == ("out/hyperborean/rprop/street",)
    assert second["slumbot"] == ("out/slumbot/rprop/street", "out/slumbot/l-bfgs/street")


def test_the_run_off_takes_the_strongest_and_the_bankroll_the_exploiter(selection) -> None:
    found, _ = selection
    assert len(found.results.names) == 6
    assert found.runoff.standings[0].name == "out/slumbot/rprop/street:chart=selby"
    assert found.bankroll.standings[0].name == "out/slumbot/l-bfgs/street:chart=selby"
    assert not any(standing.name.startswith("@") for standing in found.bankroll.standings)
    assert found.cycles[-1].kept == (found.runoff.standings[0].name, found.bankroll.standings[0].name)


def test_no_pair_is_played_twice(selection) -> None:
    _, table = selection
    assert len({frozenset(pair) for pair in table.asked}) == len(table.asked)


def test_a_measure_that_orders_like_the_winnings_correlates_perfectly(selection) -> None:
    found, table = selection
    skill = {entry.spec: table.strength(entry.spec, "") for entry in entries()}
    measures = {
        "log_loss": {name: -value for name, value in skill.items()},
        "noise": {name: float(i % 3) for i, name in enumerate(skill)},
        "unknown": {},
    }
    by_name = {one.measure: one for one in rank_correlation(measures, _strong(found.field))}
    assert by_name["log_loss"].spearman.value == pytest.approx(-1.0)
    assert by_name["log_loss"].models == 8
    assert "unknown" not in by_name
    won = rankings.total_bankroll(_strong(found.field)).standings
    expected = spearmanr([measures["noise"][one.name] for one in won], [one.won.value for one in won]).statistic
    assert by_name["noise"].spearman.value == pytest.approx(expected)


def _strong(field):
    return restrict_results(field, [name for name in field.names if not name.startswith("@")])


def test_options_are_joined_to_an_agent_that_has_some() -> None:
    assert Entry("out/a", (), "rprop", False, "selby").spec == "out/a:chart=selby"
    assert Entry("out/a:mode=argmax", (), "rprop", False, "selby").spec == "out/a:mode=argmax,chart=selby"
    assert Entry("out/a", (), "rprop", False).spec == "out/a"


def test_a_single_model_is_no_selection() -> None:
    with pytest.raises(PipelineError, match="at least two models"):
        select(entries()[:1], Table())


def test_models_of_one_kind_and_corpus_go_straight_to_the_end() -> None:
    two = [
        Entry("out/slumbot/rprop/street", ("slumbot",), "rprop", False),
        Entry("out/slumbot/l-bfgs/street", ("slumbot",), "l-bfgs", False),
    ]
    found = select(two, Table())
    assert [cycle.number for cycle in found.cycles] == [2, 3]
    assert found.runoff.standings[0].name == "out/slumbot/rprop/street"


def test_models_of_different_patterns_do_not_meet_in_the_first_cycle() -> None:
    pair = [
        Entry("out/slumbot/rprop/street", ("slumbot",), "rprop", False, variant="thesis"),
        Entry("out/slumbot/rprop/joint", ("slumbot",), "rprop", True, variant="default"),
    ]
    assert [cycle.number for cycle in select(pair, Table()).cycles] == [2, 3]
