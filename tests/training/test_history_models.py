"""Models of hand histories: betting alone where cards are not known, cards where they are, and the games they play."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from played_histories import random_history

from pipeline.agents.names import default_game, resolve
from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.dataset.load import load_decisions
from pipeline.dataset.raises import raise_increments, raise_pieces
from pipeline.evaluation.repeat_floor import information_set_keys
from pipeline.features.columns import Column
from pipeline.features.patterns import find_pattern, parse_pattern
from pipeline.features.reading import Needs, strengths
from pipeline.formats.histories.convert import convert_log
from pipeline.formats.histories.notation import histories_text
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.models.charts import count_chart
from pipeline.models.policy import check_game
from pipeline.models.sizes import Sizes
from pipeline.poker.game import builtin, parse_game
from pipeline.poker.rules import ALL_IN, RAISE, class_start
from pipeline.poker.strength.queries import find_strengths
from pipeline.runtime.errors import PipelineError
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles
from pipeline.training.sizing import fit_history_sizes


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of no-limit hands of which a third of the cards are known."""
    folder = tmp_path_factory.mktemp("histories")
    hands = (replace(random_history(seed, 0.3), hand=str(seed), table="t") for seed in range(1500))
    (folder / "all.phhs").write_text("".join(histories_text(hand for hand in hands if hand.nolimit)))
    ingest([folder / "all.phhs"], folder / "rows", options(strength=False))
    return folder / "rows"


@pytest.fixture(scope="module")
def bundle(rows: Path) -> Path:
    out = rows.parent / "bundle"
    results = train_bundles(Request(rows, out, pattern=find_pattern("betting")))
    assert [result.street for result in results] == ["preflop", "flop", "turn", "river"]
    assert all(result.remarks == () or "counting" in result.remarks[0] for result in results)
    return out


def test_a_pattern_without_cards_uses_every_row(rows: Path, bundle: Path) -> None:
    found = load_decisions(rows, streets=["preflop"], side="train")
    assert not found.known.all()
    assert load_bundle(bundle).parts[0].about["rows"] == len(found)
    assert not find_pattern("betting").reads_cards
    assert find_pattern("default").reads_cards


def test_the_raises_of_histories_are_measured_from_the_bet_before_them(tmp_path: Path) -> None:
    text = (
        "variant='NT'\nantes=[1,1,1]\nblinds_or_straddles=[5,10,0]\nmin_bet=10\nstarting_stacks=[500,500,inf]\n"
        "actions=['d dh p1 ????','d dh p2 ????','d dh p3 ????','p3 cbr 30','p1 cbr 90','p2 f','p3 cc',"
        "'d db 2c3d4h','p1 cbr 50','p3 f']\n"
    )
    (tmp_path / "one.phh").write_text(text)
    assert ingest([tmp_path / "one.phh"], tmp_path / "rows", options(strength=False)).hands == 1
    found = load_decisions(tmp_path / "rows")
    by = raise_increments(tmp_path / "rows", found)
    assert {int(k): int(chips) for k, chips in zip(found.k, by, strict=True) if chips >= 0} == {0: 20, 1: 60, 4: 50}


def test_a_bundle_of_histories_bets_the_amounts_of_its_players(rows: Path) -> None:
    raised = next(piece for piece, by in raise_pieces(rows) if (by > 0).any())
    game = raised.game
    seen = raised.rows[(raised.action >= RAISE) & (raised.action < ALL_IN)][:1]
    many = np.repeat(seen, 400)
    label = 3
    after = int(seen["pot"][0] + seen["to_call"][0])
    chips = np.where(np.arange(400) % 4 == 0, class_start(after, label), class_start(after, label + 1) - 1)
    made = fit_history_sizes(game, many, np.full(400, label), chips.astype(np.int64))
    assert made is not None
    loaded = Sizes.load(made.to_json(), made.to_arrays(), game)
    played = builtin("holdem.nolimit.2p.reverse_blinds")
    found = loaded.for_game(played).amounts(seen, np.array([label]), whole_mix=True)
    assert dict(zip(found.by.tolist(), found.share.tolist(), strict=True)) == {
        int(chips[0]): pytest.approx(0.25),
        int(chips[1]): pytest.approx(0.75),
    }
    table = loaded.to_arrays() | {"units": np.ones_like(loaded.table.units)}
    with pytest.raises(ValueError, match="units"):
        Sizes.load(loaded.to_json(), table, game)


def test_a_bundle_of_histories_names_its_range_and_plays_inside_it(bundle: Path) -> None:
    about = load_bundle(bundle).about["range"]
    assert about["players"] == [2, 10]
    game = builtin("holdem.nolimit.2p.reverse_blinds")
    deep = parse_game(game.text.replace("20000 20000", "10000 10000"), "half")
    match = play_match([resolve(str(bundle), deep), resolve("@call", deep)], deep, hands=20, seed=1)
    assert match.hands == 20
    shown = CliRunner().invoke(group, ["info", str(bundle)], catch_exceptions=False).output
    assert f"games of 2 to 10 players, stacks of {about['stacks_bb'][0]:,g} to {about['stacks_bb'][1]:,g} big" in shown
    with pytest.raises(
        PipelineError, match=r"hand histories, which are of many games: name the one to play with --game"
    ):
        default_game([str(bundle), "@call"])


def test_a_bundle_of_two_players_hands_plays_with_two_and_refuses_three(tmp_path: Path) -> None:
    game = builtin("holdem.nolimit.2p.reverse_blinds")
    deals = play_match(
        [resolve("@call", game), resolve("@raise", game)], game, hands=60, seed=2, log=tmp_path / "m.log"
    )
    assert deals.hands == 60
    for number, log in enumerate(sorted(tmp_path.glob("*.log"))):
        convert_log(log, game, tmp_path / f"{number}.phhs")
    ingest([str(tmp_path / "*.phhs")], tmp_path / "rows", options(strength=False))
    train_bundles(
        Request(tmp_path / "rows", tmp_path / "two", algorithms=("frequency",), pattern=find_pattern("betting"))
    )
    assert load_bundle(tmp_path / "two").about["range"] == {"players": [2, 2], "stacks_bb": [199.0, 200.0]}
    match = play_match([resolve(str(tmp_path / "two"), game), resolve("@call", game)], game, hands=20, seed=1)
    assert match.hands == 20
    with pytest.raises(PipelineError, match=r"knows hands of 2 players and cannot play holdem\.nolimit\.3p"):
        resolve(str(tmp_path / "two"), builtin("holdem.nolimit.3p"))


def test_outside_its_range_a_bundle_says_so(bundle: Path) -> None:
    game = builtin("holdem.nolimit.2p.reverse_blinds")
    huge = parse_game(game.text.replace("20000 20000", "2000000 2000000"), "huge")
    with pytest.raises(PipelineError, match=r"knows stacks of .* whose stacks are 20000"):
        resolve(str(bundle), huge)
    with pytest.raises(PipelineError, match="cannot play"):
        resolve(str(bundle), builtin("holdem.limit.2p.reverse_blinds"))


def test_a_pattern_with_cards_uses_the_rows_that_have_them_and_says_what_that_means(rows: Path) -> None:
    pattern = rows.parent / "cards.pattern"
    pattern.write_text("betting\nbetting * start\n")
    (result,) = train_bundles(
        Request(rows, rows.parent / "cards", streets=("preflop",), pattern=find_pattern(str(pattern)))
    )
    found = load_decisions(rows, streets=["preflop"], side="train")
    assert result.rows == int(found.known.sum())
    assert any("no random sample" in remark for remark in result.remarks)


def test_charts_count_known_cards_only(rows: Path) -> None:
    found = load_decisions(rows, streets=["preflop"])
    chart = count_chart(found.rows, found.action, found.game.labels)
    assert chart.counts.sum() == found.known.sum()
    with pytest.raises(PipelineError, match="known cards"):
        count_chart(found.rows[~found.known], found.action[~found.known], found.game.labels)


def test_strength_of_cards_that_nobody_knows_is_refused_not_made_up(rows: Path) -> None:
    found = load_decisions(rows, streets=["flop"])
    assert (found.rows["start"][~found.known] == 169).all()
    assert (found.rows["hole"][~found.known] == 255).all()
    with pytest.raises(PipelineError, match="whose cards are unknown"):
        strengths(found.rows, Needs.of([Column("ehs")]))


def test_stored_strengths_of_known_cards_are_read_where_others_are_missing(rows: Path, tmp_path: Path) -> None:
    ingest([rows.parent / "all.phhs"], tmp_path / "rows", options(strength=True))
    found = load_decisions(tmp_path / "rows", streets=["turn"], strength=True)
    assert not found.known.all()
    assert found.strength is not None
    known = found.rows[found.known]
    assert (found.strength[found.known, 1] == find_strengths(2, known["hole"], known["board"])).all()
    assert not found.strength["ehs"][~found.known].any()
    pattern = parse_pattern("betting * ehs(quantiles=4)")
    for data, name in ((rows, "computed"), (tmp_path / "rows", "stored")):
        train_bundles(Request(data, tmp_path / name, streets=("turn",), pattern=pattern))
    weights = [(tmp_path / name / "turn.safetensors").read_bytes() for name in ("computed", "stored")]
    assert weights[0] == weights[1]


def test_unknown_cards_never_make_the_same_situation_twice(rows: Path) -> None:
    found = load_decisions(rows, streets=["preflop"])
    keys = information_set_keys(found.rows)
    assert len(np.unique(keys[~found.known])) == int((~found.known).sum())


def test_a_bundle_of_histories_scores_rows_of_histories(rows: Path, bundle: Path) -> None:
    game = load_decisions(rows, streets=["river"]).game
    check_game(load_bundle(bundle), bundle, game)
