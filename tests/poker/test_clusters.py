"""Clusters of strength distributions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli.main import group
from pipeline.poker.cards import class_text
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.hand_clusters import (
    HandClusters,
    _descend,
    assign_clusters,
    fit_clusters,
    load_clusters,
    nearest_centroid,
)
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.diskcache import locked
from pipeline.runtime.errors import PipelineError
from tools.clusters import command as clusters_command

NUMBER = {class_text(index): index for index in range(169)}


def starting_hands() -> np.ndarray:
    return preflop_rows().view(STRENGTH).ravel()


def test_nine_preflop_clusters_part_44_from_jts():
    found = assign_clusters(fit_clusters(0, 9), starting_hands())
    assert set(found) == set(range(9))
    assert found[NUMBER["44"]] != found[NUMBER["JTs"]]
    assert found[NUMBER["AA"]] == found[NUMBER["KK"]] == 8
    assert found[NUMBER["32o"]] == 0


def test_the_same_seed_gives_the_same_clusters():
    first, again, other = fit_clusters(0, 9, seed=3), fit_clusters(0, 9, seed=3), fit_clusters(0, 9, seed=4)
    np.testing.assert_array_equal(first.centroids, again.centroids)
    assert first.cost == again.cost
    assert (first.centroids != other.centroids).any()


def test_more_clusters_lie_closer_until_every_hand_has_its_own():
    costs = [fit_clusters(0, size).cost for size in (1, 3, 9, 30, 169)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0


def test_centroids_that_make_the_search_try_all_of_them_are_refused():
    random = np.random.default_rng(1)
    rows = np.zeros(2_000, STRENGTH)
    rows["q"] = np.sort(random.integers(0, 256, (len(rows), 8)).astype(np.uint8), axis=1)
    equal = np.full((1_000, 8), 100, np.uint8)
    of_one_sum = random.permuted(np.tile(np.arange(0, 240, 30, dtype=np.uint8), (1_000, 1)), axis=1)
    for centroids in (equal, of_one_sum):
        with pytest.raises(PipelineError, match="the 1,000 clusters of turn hands lie too close together"):
            assign_clusters(HandClusters(2, centroids, 0, 0.0), rows)
        assert (assign_clusters(HandClusters(2, centroids[:100], 0, 0.0), rows) < 100).all()
    spread = rows["q"][:1_000][np.argsort(rows["q"][:1_000].sum(axis=1), kind="stable")]
    found = assign_clusters(HandClusters(2, spread, 0, 0.0), rows[:1_000])
    assert (spread[found] == rows["q"][:1_000]).all()


def test_asking_for_more_clusters_than_holdings_is_refused():
    with pytest.raises(PipelineError, match="170 clusters of the preflop's 169"):
        fit_clusters(0, 170)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_the_nearest_centroid_is_the_first_at_the_least_distance(seed: int, size: int):
    rng = np.random.default_rng(seed)
    centroids = rng.integers(0, 256, (size, 8)).astype(np.uint8)
    centroids = centroids[np.argsort(centroids.sum(1), kind="stable")]
    point = rng.integers(0, 256, 8).astype(np.uint8)
    gaps = np.abs(centroids.astype(int) - point.astype(int)).sum(1)
    assert nearest_centroid(point, centroids, centroids.sum(1, dtype=np.int64)) == gaps.argmin()


def test_separate_heaps_are_found():
    rng = np.random.default_rng(0)
    middles = np.arange(20, 250, 40)
    heaps = (np.repeat(middles, 500)[:, None] + rng.integers(-5, 6, (6 * 500, 8))).astype(np.uint8)
    _, centroids = _descend(1, heaps, np.ones(len(heaps), np.int64), 6, np.random.default_rng(1), 100)
    np.testing.assert_allclose(centroids, np.repeat(middles[:, None], 8, axis=1), atol=1)


def test_river_clusters_are_intervals_of_strength():
    strengths = np.arange(0, 65_536, 33, dtype=np.uint16)[:, None]
    cost, centroids = _descend(3, strengths, np.ones(len(strengths), np.int64), 10, np.random.default_rng(0), 100)
    rows = np.zeros(65_536, STRENGTH)
    rows["ehs"] = np.arange(65_536)
    found = assign_clusters(HandClusters(3, centroids, 0, cost), rows)
    assert (np.diff(found.astype(int)) >= 0).all()
    assert set(found) == set(range(10))
    gaps = np.abs(rows["ehs"].astype(int)[:, None] - centroids[:, 0].astype(int))
    np.testing.assert_array_equal(found, gaps.argmin(1))


def test_saved_clusters_come_back(tmp_path: Path):
    found = fit_clusters(0, 5, seed=2)
    found.save(tmp_path / "five.safetensors")
    again = HandClusters.load(tmp_path / "five.safetensors")
    np.testing.assert_array_equal(again.centroids, found.centroids)
    assert (again.street, again.seed, again.cost) == (0, 2, found.cost)
    (tmp_path / "bad.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(PipelineError, match="does not hold clusters"):
        HandClusters.load(tmp_path / "bad.safetensors")


def test_clusters_asked_for_again_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path))
    found = load_clusters(0, 7, seed=11)
    path = tmp_path / "clusters" / "preflop-7-11.clusters"
    assert path.is_file()
    np.testing.assert_array_equal(found.centroids, fit_clusters(0, 7, seed=11).centroids)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # damaged: made again
    load_clusters.cache_clear()
    np.testing.assert_array_equal(load_clusters(0, 7, seed=11).centroids, found.centroids)
    assert path.read_bytes() == whole


def test_the_same_clusters_are_written_as_the_same_bytes():
    script = (
        "import sys; from pipeline.poker.strength.hand_clusters import fit_clusters;"
        "sys.stdout.buffer.write(fit_clusters(0, 4, seed=3).to_bytes())"
    )
    written = {subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout for _ in range(4)}
    assert len(written) == 1
    assert HandClusters.from_bytes(written.pop(), "here").centroids.shape == (4, 8)


def test_centroids_that_do_not_ascend_are_refused():
    upside_down = fit_clusters(0, 5)._replace(centroids=np.ascontiguousarray(fit_clusters(0, 5).centroids[::-1]))
    with pytest.raises(PipelineError, match="do not ascend"):
        HandClusters.from_bytes(upside_down.to_bytes(), "x.safetensors")


def test_the_commands_show_clusters_and_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("PIPELINE_CACHE", str(cache))
    out = tmp_path / "nine.safetensors"
    shown = CliRunner().invoke(clusters_command, ["preflop", "9", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) == 15
    groups = json.loads(CliRunner().invoke(clusters_command, ["preflop", "3", "--json"]).output)["clusters"]
    assert len(groups) == 169
    assert groups["AA"] != groups["32o"]
    assert HandClusters.load(out).centroids.shape == (9, 8)
    with locked(cache / "clusters"):
        (cache / "clusters" / "lock").unlink()
    (cache / "strength").mkdir()
    (cache / "strength" / "flop.npy").write_bytes(b"0" * 1_000_000)
    (cache / "notes.txt").write_text("mine")
    (cache / "teacher" / ("0a" * 8)).mkdir(parents=True)
    (cache / "teacher" / ("0a" * 8) / "flop.npy").write_bytes(b"0" * 2_000)
    listed = json.loads(CliRunner().invoke(group, ["cache", "--json"]).output)
    assert listed["folder"] == str(cache)
    assert {kept["name"]: (kept["files"], kept["bytes"]) for kept in listed["kept"] if kept["files"]} == {
        "strength": (1, 1_000_000),
        "teacher": (1, 2_000),
    }
    assert "1.0 MB  strength and quantile tables" in CliRunner().invoke(group, ["cache"]).output
    assert CliRunner().invoke(group, ["cache", "clear"]).exit_code == 0
    assert sorted(path.name for path in cache.iterdir()) == ["CACHEDIR.TAG", "notes.txt"]
