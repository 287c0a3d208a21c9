"""The `solve` and `match --sample` commands as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.cli.main import group
from pipeline.poker.game import find_game
from pipeline.runtime.errors import PipelineError
from pipeline.solving.teacher import solve_holdem


def run(*words: object) -> str:
    found = CliRunner().invoke(group, [str(word) for word in words], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_kuhn_is_solved_and_told_in_json() -> None:
    found = json.loads(run("solve", "kuhn", "--iterations", 300, "--json"))
    assert found["game"] == "kuhn.limit.2p"
    assert found["players"] == 2
    assert found["iterations"] == 300
    assert found["value"][0] == pytest.approx(-1 / 18, abs=1e-3)
    assert found["exploitability"] < 1e-2
    assert len(found["curve"]) == 8
    assert found["watched"] == [":Q", ":K", ":A"]


def test_curves_are_a_table_and_a_picture(tmp_path: Path) -> None:
    for name in ("leduc.html", "leduc.svg"):
        page = tmp_path / name
        text = run("solve", "leduc", "--iterations", 20, "--watch", "r:A", "--picture", page)
        assert "raise r:A" in text
        assert "best responses would win" in text
        assert "<svg" in page.read_text()
        assert "r:A" in page.read_text()


def test_exploitability_comes_first_and_is_drawn_on_a_logarithmic_axis(tmp_path: Path) -> None:
    for name in ("kuhn.html", "kuhn.svg"):
        run("solve", "kuhn", "--iterations", 1000, "--picture", tmp_path / name)
        text = (tmp_path / name).read_text()
        places = [text.index(title) for title in ("Exploitability", "Value of the game", "Chance to raise")]
        assert places == sorted(places)
        for power in ("0.01", "0.001"):
            assert f">{power}</text>" in text
    drawing = ElementTree.fromstring((tmp_path / "kuhn.svg").read_text())
    assert drawing.tag.endswith("svg")
    with pytest.raises(PipelineError, match=r"--picture .*kuhn\.png: .*end the name in \.html or \.svg"):
        run("solve", "kuhn", "--picture", tmp_path / "kuhn.png")
    assert not (tmp_path / "kuhn.png").exists()


def test_spots_that_the_solution_never_reaches_are_marked(tmp_path: Path) -> None:
    told = run("solve", "preflop", "--below", 2, "--out", tmp_path / "p.svg")
    titles = [line for line in told.splitlines() if " decisions, " in line]
    assert len(titles) == 8
    reached = json.loads(run("solve", "preflop", "--below", 2, "--json"))["reached"]
    assert reached[""] == pytest.approx(1.0)
    for betting, share in reached.items():
        title = next(line for line in titles if f" ({betting or '-'}): " in line)
        assert title.endswith("(never reached)") == (share < 1e-5)
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    spots = {text.split("(")[1].split(")")[0]: text for text in told.split("\n\n")[:8]}
    assert ".." not in spots["-"]
    assert ".." not in spots["c"]
    assert ".." in spots["rrr"].splitlines()[-1]  # a player with a deuce does not raise a second time


def test_preflop_writes_a_chart_that_show_can_draw(tmp_path: Path) -> None:
    chart = tmp_path / "preflop.chart"
    text = run("solve", "preflop", "--below", 5, "--out", chart)
    assert "small blind -2" in text
    assert chart.read_text().startswith("# situation class f c r")
    assert json.loads(run("solve", "preflop", "--below", 5, "--json"))["exploitability"] < 5


def test_sizes_are_three_numbers(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="flop, turn and river"):
        run("solve", "holdem", "--out", tmp_path, "--sizes", "10,10")


def test_a_sample_is_the_same_for_the_same_seed_and_comes_with_probabilities(tmp_path: Path) -> None:
    options = ("@teacher", "@random", "@call", "--hands", 200, "--game", "kuhn.limit.2p")
    made = json.loads(run("match", "--sample", tmp_path / "a", *options, "--json"))
    run("match", "--sample", tmp_path / "b", *options)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert made["hands"] == 200
    assert len(made["files"]) == 6
    assert "sample.probs.parquet" in names
    assert len(names) == 7
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_second_seed_keeps_the_probabilities_of_the_first(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    options = ("--hands", 200, "--game", "kuhn.limit.2p", "--sample", tmp_path)
    run("match", "@teacher", "@random", *options)
    first = pq.read_table(tmp_path / "sample.probs.parquet")
    run("match", "@teacher", "@random", *options, "--seed", 2)
    both = pq.read_table(tmp_path / "sample.probs.parquet")
    assert both.slice(0, len(first)).equals(first)
    assert set(both["file"].to_pylist()) == {path.name for path in tmp_path.glob("*.log")}
    run("match", "@teacher", "@random", *options, "--seed", 2)
    assert pq.read_table(tmp_path / "sample.probs.parquet").equals(both)


def test_a_sample_needs_some_hands(tmp_path: Path) -> None:
    for game in ("kuhn.limit.2p", "kuhn.limit.3p"):
        with pytest.raises(PipelineError, match="too few"):
            run("match", "@call", "@call", "--hands", 1, "--sample", tmp_path, "--game", game)


@pytest.mark.long
def test_an_interrupted_solve_goes_on_where_it_was_and_the_result_plays(tmp_path: Path) -> None:
    game = find_game("holdem.limit.2p.reverse_blinds")

    def stop(done: int, total: int) -> None:
        if done > total // 3:
            raise KeyboardInterrupt

    options = {"sizes": (20, 20, 10), "deals": 2_000_000, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        solve_holdem(game, tmp_path / "a", progress=stop, **options)  # type: ignore[arg-type]
    assert (tmp_path / "a" / "checkpoint").is_dir()
    report = solve_holdem(game, tmp_path / "a", **options)  # type: ignore[arg-type]
    solve_holdem(game, tmp_path / "b", **options)  # type: ignore[arg-type]
    assert (tmp_path / "a" / "strategy.xz").read_bytes() == (tmp_path / "b" / "strategy.xz").read_bytes()
    assert report.opponents["random"].mbb > 500
    assert resolve(f"@teacher:{tmp_path / 'a'}", game).name.startswith("teacher-")


def test_a_sample_for_three_seats_everybody_in_every_order(tmp_path: Path) -> None:
    options = ("@random", "@call", "@raise", "--hands", 240, "--game", "kuhn.limit.3p", "--sample", tmp_path)
    made = json.loads(run("match", *options, "--json"))
    assert made["hands"] == 240
    names = sorted(Path(path).name for path in made["files"])
    assert len(names) == 3 * 6
    assert names[0] == "random.call.raise.0.0.log"
    assert {name.rsplit(".", 3)[0] for name in names} == {
        "random.random.random",
        "random.call.raise",
        "random.raise.call",
    }
    with pytest.raises(PipelineError, match="of two or three"):
        run("match", *options[:3], "--hands", 240, "--game", "kuhn.limit.4p", "--sample", tmp_path)


@pytest.mark.parametrize("players", [1, 14, 100])
def test_kuhn_poker_is_solved_for_two_to_thirteen_players(players: int) -> None:
    shown = CliRunner().invoke(group, ["solve", "kuhn", "--players", str(players)])
    assert shown.exit_code == 2
    assert f"{players} is not in the range 2<=x<=13" in shown.output
