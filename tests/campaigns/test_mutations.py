"""Bundles, strategies, charts and patterns that somebody harmed on purpose: refused (see also `test_campaigns`)."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mutations_of_data import dataset
from mutations_of_play import mixture, readers, with_hands
from safetensors.numpy import save
from training_rows import decisions

from pipeline.dataset.decisions import NO_START, OBSERVATION
from pipeline.models.bundle import load_bundle
from pipeline.models.policy import find_chart, load_policy, masked
from pipeline.poker.game import find_game
from pipeline.runtime.arrays import read_arrays, read_npy
from pipeline.runtime.diskcache import open_array, store_array
from pipeline.runtime.errors import PipelineError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "bundles"


def crafted(kind: str, folder: Path, **changes: object) -> Path:
    """A fixture's bundle whose flop model has other arrays, its checksums made again as an attacker would."""
    with zipfile.ZipFile(FIXTURES / f"{kind}.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    arrays = dict(read_arrays(files["flop.safetensors"]))
    for name, change in changes.items():
        arrays[name] = np.ascontiguousarray(change(arrays[name].copy()))
    files["flop.safetensors"] = save(arrays)
    manifest = json.loads(files["manifest.json"])
    manifest["files"]["flop.safetensors"] = hashlib.sha256(files["flop.safetensors"]).hexdigest()
    files["manifest.json"] = json.dumps(manifest).encode()
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def first(value: float):
    """A change that puts a value in the first place of an array."""

    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("loglinear", {"weights": lambda a: a[:, :1]}, "has 1 labels, not 3"),
        ("loglinear", {"weights": first(np.nan)}, "'weights' has values"),
        ("loglinear", {"weights": first(np.inf)}, "'weights' has values"),
        ("loglinear", {"weights": lambda a: a[:-1]}, "'weights' is float32"),
        ("loglinear", {"keys": lambda a: a[::-1]}, "do not ascend"),
        ("trees", {"roots": first(-(10**6))}, "'roots' has values"),
        ("trees", {"column": first(-1)}, "'column' has values"),
        ("trees", {"children": first(0)}, "comes before its parent"),
        ("trees", {"children": first(-(10**6))}, "'children' has values"),
        ("trees", {"children": lambda a: np.full_like(a, -1)}, "several parents"),
        ("trees", {"threshold": first(np.nan)}, "'threshold' has values"),
        ("trees", {"leaves": first(np.inf)}, "'leaves' has values"),
    ],
)
def test_a_crafted_bundle_is_refused_before_any_kernel_reads_it(kind, changes, message, tmp_path):
    load_bundle(crafted(kind, tmp_path / "sound"))
    with pytest.raises(PipelineError, match=message):
        load_bundle(crafted(kind, tmp_path / "b", **changes))


def crafted_prior(folder: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> Path:
    """A bundle of a model against priors (a chart and trees, and @chump:rock), changed and its checksums made again."""
    folder.mkdir()
    for path in mixture("tilted").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    arrays = dict(read_arrays((folder / "flop.safetensors").read_bytes()))
    change(manifest["models"][0], arrays)
    data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    (folder / "flop.safetensors").write_bytes(data)
    manifest["files"]["flop.safetensors"] = hashlib.sha256(data).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def chart_of_ranks(kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    models = kept["priors"][0]["models"]
    at = next(i for i, model in enumerate(models) if model["kind"] == "chart")
    arrays[f"prior 0 {at} counts"] = arrays[f"prior 0 {at} counts"][:, :13]


def no_flop(kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    for model in kept["priors"][0]["models"]:
        model["streets"] = [0] if model["kind"] == "chart" else [3]


def another_game(kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    game = find_game("holdem.limit.3p")
    kept["priors"][1]["agent"] = {"name": game.name, "text": game.text}


def impossible_rows(kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    arrays["prior 1 rows"] = np.full_like(arrays["prior 1 rows"], 200)


def one_impossible_seat(kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    rows = np.frombuffer(arrays["prior 1 rows"].tobytes(), OBSERVATION).copy()
    rows["position"][-1] = 7
    arrays["prior 1 rows"] = np.frombuffer(rows.tobytes(), np.uint8).reshape(arrays["prior 1 rows"].shape)


def deep_blends(kept: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    plain = {"features": kept["features"]}
    inside: dict[str, Any] = {"kind": "loglinear", "model": plain}
    for _ in range(6):
        models = [{"kind": "blend", "streets": [1], "parts": [inside]}]
        inside = {"kind": "tilted", "model": {**plain, "priors": [{"name": "x", "hash": "", "models": models}]}}
    kept["priors"] = inside["model"]["priors"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (chart_of_ranks, "chart is for another game"),
        (no_flop, "no model for a street"),
        (another_game, "'@chump:rock' is for another game"),
        (impossible_rows, "no decisions of holdem"),
        (one_impossible_seat, "no decisions of holdem"),
        (deep_blends, "more than 4 deep"),
    ],
)
def test_a_crafted_prior_is_refused_before_any_kernel_or_agent_reads_it(change, message, tmp_path):
    load_bundle(crafted_prior(tmp_path / "sound", lambda *_: None))
    with pytest.raises(PipelineError, match=message):
        load_bundle(crafted_prior(tmp_path / "b", change))


@pytest.mark.parametrize("name", ["@lbr:@call", "@lbr:models/teacher", "@teacher:folder"])
def test_no_path_or_other_agent_is_followed_from_a_bundle(name, tmp_path):
    bundle = load_bundle(crafted_prior(tmp_path / "b", lambda kept, _: kept["priors"][1].update(name=name)))
    rows = decisions(20)[1]
    with pytest.raises(PipelineError, match="cannot be a prior"):
        bundle.models[1].predict(rows[rows["street"] == 1])


def test_a_chart_knows_nothing_of_cards_that_are_not_known():
    chart = find_chart(Path("selby"))
    row = decisions(1)[1][:1].copy()
    row["start"] = NO_START
    assert (chart.predict(row) == 0).all()


def put(name: str, *values: object) -> Callable[[pa.Table], pa.Table]:
    """A change that puts values in the first rows of a column."""

    def change(table: pa.Table) -> pa.Table:
        at, kind = table.column_names.index(name), table.column(name).type
        found = [*values, *table.column(name).to_pylist()[len(values) :]]
        coded = pa.types.is_dictionary(kind)
        return table.set_column(at, name, pa.array(found).dictionary_encode() if coded else pa.array(found, kind))

    return change


@pytest.mark.parametrize(
    ("change", "who"),
    [
        (lambda table: table.drop_columns(["deal"]), ["score"]),
        (lambda table: table.drop_columns(["line"]), ["profile", "explorer"]),
        (put("betting", None), ["score", "explorer"]),
        (put("names", "alone"), ["score", "explorer"]),
        (put("payoffs", "nan|x"), ["score", "explorer"]),
        (put("payoffs", "1|2|3"), ["score", "explorer"]),
        (put("cards", "AsKd|AsKd/2c3c4c/5c/6c"), ["score"]),
        (put("cards", "AsAc|AdAh"), ["score"]),
        (put("game", "another"), ["score"]),
    ],
)
def test_hands_that_ingest_does_not_write_are_refused_by_all_that_reads_them(change, who, tmp_path):
    def shown_first(table: pa.Table) -> pa.Table:
        order = np.argsort(~np.array(table.column("showdown").to_pylist()), kind="stable")
        return change(table.take(pa.array(order)))

    readers(dataset("limit"), "limit", tmp_path / "sound")["explorer"]()  # its index must not stand in for what follows
    rows = with_hands(tmp_path, "limit", random.Random(1), shown_first)
    for name in who:
        with pytest.raises(PipelineError, match="ingest"):
            readers(rows, "limit", tmp_path)[name]()


def test_a_zip_file_that_would_fill_the_memory_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        manifest = {"format": 1, "about": {}, "models": [], "files": {"flop.safetensors": ""}}
        archive.writestr("manifest.json", json.dumps(manifest))
        with archive.open("flop.safetensors", "w", force_zip64=True) as file:
            for _ in range(100):
                file.write(bytes(1 << 20))
    assert (tmp_path / "b.zip").stat().st_size < 200_000
    with pytest.raises(PipelineError, match="would unpack to over 20 times its size"):
        load_bundle(tmp_path / "b.zip")


def test_deeply_nested_json_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(PipelineError, match="damaged"):
        load_bundle(tmp_path)
    header = b"[" * 200_000
    with pytest.raises(ValueError, match="nested too deeply"):
        read_arrays(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("harm", [b"(", b"[" * 30, b"'", b"\\"])
def test_a_kept_array_with_a_header_that_no_parser_reads_is_made_again(harm, tmp_path):
    path = tmp_path / "flop.npy"
    store_array(path, np.arange(300, dtype=np.uint16), 3)
    data = path.read_bytes()
    at = data.index(b"}") + 3
    path.write_bytes(data[:at] + harm + data[at + len(harm) :])
    note = json.loads(path.with_suffix(".json").read_text())
    note["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(note))
    assert open_array(path, 3, lambda table: True) is None
    with pytest.raises(ValueError, match=r"flop\.npy is no array"):
        read_npy(path)
    path.with_suffix(".json").write_text("[" * 5000)
    assert open_array(path, 3, lambda table: True) is None


def test_a_chart_of_ranks_does_not_play_a_game_of_two_cards(tmp_path):
    chart = tmp_path / "ranks.txt"
    chart.write_text("# situation class f c r\nr A 1 2 3\n")
    game = find_game("holdem.limit.2p.reverse_blinds")
    with pytest.raises(PipelineError, match="13 starting hands"):
        load_policy(FIXTURES / "loglinear.zip", {"chart": str(chart)}, game=game)
    chart.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PipelineError, match="not text"):
        find_chart(chart)


def test_probabilities_without_a_column_for_calling_are_no_probabilities():
    with pytest.raises(ValueError, match="column per label"):
        masked(np.ones((4, 1)), np.full(4, 7, np.uint8))
