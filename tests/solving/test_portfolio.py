"""Portfolios: groups of hands, the file, and the tool that makes the one that comes with the package."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from pipeline.agents.names import resolve
from pipeline.agents.teacher import Teacher
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.solving.groups import BANDS, SPREADS, HandGroups, group_numbers
from pipeline.solving.portfolio import load_portfolio
from pipeline.solving.strategy import check_strategy_target
from tools.portfolio import Plan, _stored_part, make_portfolio

LIMIT = builtin("holdem.limit.2p.reverse_blinds")


def test_groups_divide_the_clusters_into_bands_of_strength() -> None:
    centroids = np.sort(np.random.default_rng(1).integers(0, 256, (1000, 8)), axis=1)
    numbers = group_numbers(centroids)
    assert np.bincount(numbers).tolist() == [1000 // (BANDS * SPREADS)] * (BANDS * SPREADS)
    means = np.array([centroids[numbers // SPREADS == band].mean() for band in range(BANDS)])
    assert (np.diff(means) > 0).all()
    spread = centroids[:, -1] - centroids[:, 0]
    for group in range(0, BANDS * SPREADS, SPREADS):
        assert spread[numbers == group].max() <= spread[numbers == group + SPREADS - 1].min()


def test_a_damaged_portfolio_is_refused(tmp_path: Path) -> None:
    teacher = resolve("@teacher", LIMIT)
    assert isinstance(teacher, Teacher)
    groups = HandGroups(teacher.stored, teacher.tables)
    shutil.copytree(str(files("pipeline.agents") / "resources" / "portfolio"), tmp_path / "copy")
    load_portfolio(tmp_path / "copy", groups)
    manifest = tmp_path / "copy" / "manifest.json"
    text = manifest.read_text()
    for wrong in (text.replace('"teacher"', '"x"'), text.replace('"equity"', '"teacher"')):
        manifest.write_text(wrong)
        with pytest.raises(PipelineError, match="teacher is not among them"):
            load_portfolio(tmp_path / "copy", groups)
    manifest.write_text(text)
    file = tmp_path / "copy" / "strategy.xz"
    file.write_bytes(file.read_bytes()[:-9] + b"otherwise")
    with pytest.raises(PipelineError, match="make it again or reinstall"):
        load_portfolio(tmp_path / "copy", groups)
    with pytest.raises(PipelineError, match="does not hold a portfolio"):
        load_portfolio(tmp_path, groups)


def test_a_portfolio_is_made_in_the_form_of_the_one_that_comes_with_the_package(tmp_path: Path) -> None:
    plan = Plan(countered=("@chump:maniac",), known=("@call",), deals=20_000, compared=200, workers=1)
    made = make_portfolio(tmp_path / "portfolio", plan)
    shipped = Path(str(files("pipeline.agents"))) / "resources" / "portfolio"
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (shipped, tmp_path / "portfolio")]
    assert list(manifests[0]) == list(manifests[1])
    assert all(manifests[0][key] == manifests[1][key] for key in ("version", "game", "sizes", "levels", "strategy"))
    assert made.members == ("teacher", "counter-chump-maniac")
    assert made.opponents == ("teacher", "chump-maniac", "call")
    assert made.values[0, 0] == pytest.approx(0, abs=1e-6)
    assert made.values[1, 1] > made.values[0, 1] + 1000
    teacher = resolve("@teacher", LIMIT)
    assert isinstance(teacher, Teacher)
    read = load_portfolio(tmp_path / "portfolio", HandGroups(teacher.stored, teacher.tables))
    assert all(np.array_equal(one, other) for one, other in zip(read.steps, made.steps, strict=True))
    before = (tmp_path / "portfolio" / "strategy.xz").read_bytes()
    make_portfolio(tmp_path / "portfolio", plan)  # from its kept parts
    assert (tmp_path / "portfolio" / "strategy.xz").read_bytes() == before


def test_a_portfolio_takes_the_place_of_a_portfolio_or_an_empty_folder_only(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "manifest.json").write_text("mine")
    packaged = Path(str(files("pipeline.agents"))) / "resources"
    shutil.copytree(packaged / "teacher", tmp_path / "strategy")
    for name in ("data", "strategy"):
        with pytest.raises(PipelineError, match="is not a portfolio"):
            make_portfolio(tmp_path / name, Plan())
    assert (tmp_path / "data" / "manifest.json").read_text() == "mine"
    shutil.copytree(packaged / "portfolio", tmp_path / "portfolio")
    check_strategy_target(tmp_path / "portfolio", portfolio=True)
    with pytest.raises(PipelineError, match="is not a stored strategy"):
        check_strategy_target(tmp_path / "portfolio")


def test_a_damaged_part_of_a_portfolio_is_made_again(tmp_path: Path) -> None:
    sound, file = np.full((4, 3), 1 / 3, np.float32), tmp_path / "part.npy"
    for harm in (sound[:3], sound.astype(np.float64), sound * np.nan, sound * 2, np.array([])):
        np.save(file, harm)
        assert np.array_equal(_stored_part(file, 4, lambda: sound), sound)
    file.write_bytes(b"no array")
    assert np.array_equal(_stored_part(file, 4, lambda: sound), sound)
    assert np.array_equal(_stored_part(file, 4, lambda: 0 * sound), sound)  # kept by now
