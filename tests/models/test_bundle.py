"""Bundles: what is written is what is read, and nothing else is."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from training_rows import LIMIT, decisions

from pipeline.api.overview import describe
from pipeline.features.patterns import parse_pattern
from pipeline.models.bundle import SCORED, Bundle, StreetModel, bundle_game, load_bundle, record_scores, save_bundle
from pipeline.models.charts import count_chart
from pipeline.models.shipping import ship
from pipeline.poker.game import find_game
from pipeline.runtime.arrays import read_arrays, write_arrays
from pipeline.runtime.errors import PipelineError
from pipeline.training.config import TrainConfig
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

FIXTURES = Path(__file__).parents[1] / "fixtures" / "bundles"
PATTERN = "betting\nhigh * low\nehs(bins=5)\ncluster(30)"


def made(algorithm: str = "l-bfgs") -> Bundle:
    """A small bundle: a chart and a flop model."""
    game, rows, labels, _ = decisions(300)
    flop = rows["street"] == 1
    task = Task(
        Examples(rows[flop], labels[flop]),
        None,
        parse_pattern(PATTERN),
        tuple(game.labels),
        (1,),
        TrainConfig(max_iterations=5, min_weight=0),
    )
    model = train_model(algorithm, task).model
    chart = count_chart(rows, labels, game.labels)
    parts = (StreetModel("chart", (0,), chart), StreetModel("flop", (1,), model, {"algorithm": algorithm}))
    return Bundle(game, tuple(game.labels), ("someone",), parts, {"data": "x"})


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "b"
    save_bundle(path, made(), {"flop.features.txt": "for people\n"})
    return path


def test_a_bundle_says_the_same_after_opening(bundle):
    _, rows, _, _ = decisions(300)
    found, before = load_bundle(bundle), made()
    assert found.game == find_game(LIMIT)
    assert (found.labels, found.agents, found.about) == (tuple("fcr"), ("someone",), {"data": "x"})
    for street in (0, 1):
        seen = rows[rows["street"] == street]
        assert (found.models[street].predict(seen) == before.models[street].predict(seen)).all()
    assert found.chart is found.models[0]
    assert found.parts[1].about == {"algorithm": "l-bfgs"}


def test_the_same_input_gives_the_same_bytes(bundle, tmp_path):
    save_bundle(tmp_path / "b", made(), {"flop.features.txt": "for people\n"})
    assert sorted(p.name for p in bundle.iterdir()) == sorted(p.name for p in (tmp_path / "b").iterdir())
    for path in bundle.iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_arrays_are_read_as_safetensors_reads_them(tmp_path):
    luck = np.random.default_rng(0)
    arrays = {
        "a": luck.normal(size=(3, 4)).astype(np.float32),
        "b": luck.integers(0, 2**63, 5, dtype=np.uint64),
        "c": np.empty((0, 8), np.uint8),
        "d": np.arange(3, dtype=np.uint16),
    }
    write_arrays(tmp_path / "x", arrays)
    ours, theirs = read_arrays((tmp_path / "x").read_bytes()), load_file(tmp_path / "x")
    for name, array in arrays.items():
        assert (ours[name] == array).all()
        assert (theirs[name] == array).all()
        assert ours[name].dtype == array.dtype
        assert not ours[name].flags.writeable


@pytest.mark.parametrize("kind", ["loglinear", "trees"])
def test_a_bundle_of_an_earlier_day_still_opens_and_says_what_it_said(kind):
    found = load_bundle(FIXTURES / f"{kind}.zip")
    expected = json.loads((FIXTURES / "expected.json").read_text())
    _, rows, _, _ = decisions(300)
    for street in (0, 1):
        chances = found.models[street].predict(rows[rows["street"] == street][:5])
        assert chances == pytest.approx(np.array(expected[kind][str(street)]), abs=1e-6)


def test_a_bundle_of_an_earlier_day_with_a_neural_net_says_what_to_do(bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "b")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["models"][1]["kind"] = "net"
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PipelineError, match=r"holds a neural net, .* train it again, by boosting"):
        load_bundle(tmp_path / "b")


def test_shipping_to_a_folder_or_a_zip_file_keeps_what_it_says(bundle, tmp_path):
    _, rows, _, _ = decisions(300)
    flop = rows[rows["street"] == 1]
    expected = load_bundle(bundle).models[1].predict(flop)
    for name in ("folder", "file.zip"):
        shipped = ship(bundle, tmp_path / name, {"start.sh": "#!/bin/sh\n"})
        assert shipped.files == 7
        assert (load_bundle(tmp_path / name).models[1].predict(flop) == expected).all()
        ship(bundle, tmp_path / name, {"start.sh": "#!/bin/sh\n"})
    assert (tmp_path / "folder" / "start.sh").stat().st_mode & 0o111
    said = (tmp_path / "folder" / "README.md").read_text()
    assert "like someone" in said
    assert "./start.sh HOST PORT" in said
    assert "| flop | l-bfgs |" in said
    again = ship(tmp_path / "file.zip", tmp_path / "again" / "file.zip", {"start.sh": "#!/bin/sh\n"})
    assert again.files == 7
    assert (tmp_path / "file.zip").read_bytes() == (tmp_path / "again" / "file.zip").read_bytes()
    with pytest.raises(PipelineError, match="onto itself"):
        ship(bundle, bundle, {})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(PipelineError, match="is not a bundle"):
        ship(bundle, tmp_path / "full", {})


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def rewrite(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda b: flip(b / "flop.safetensors"), "damaged or foreign"),
        (lambda b: (b / "flop.safetensors").write_bytes(b"short"), "damaged or foreign"),
        (lambda b: (b / "flop.safetensors").write_bytes(b""), "damaged or foreign"),
        (lambda b: shutil.copy(b / "chart.safetensors", b / "flop.safetensors"), "damaged or foreign"),
        (lambda b: flip(b / "flop.features.txt"), "damaged or foreign"),
        (lambda b: (b / "flop.safetensors").unlink(), "lacks flop.safetensors"),
        (lambda b: (b / "manifest.json").unlink(), "no manifest"),
        (lambda b: (b / "manifest.json").write_text("{"), "damaged"),
        (lambda b: (b / "manifest.json").write_text("[]"), "names no models"),
        (lambda b: (b / "manifest.json").write_text("3"), "damaged"),
        (lambda b: rewrite(b / "manifest.json", format=2), "bundle format 2"),
        (lambda b: rewrite(b / "manifest.json", models=[{"kind": "oracle"}]), "'oracle'"),
        (lambda b: rewrite(b / "manifest.json", models=[{"kind": "chart"}]), "cannot|can read"),
        (lambda b: rewrite(b / "manifest.json", game={"name": "x", "text": "limit"}), "GAMEDEF"),
    ],
)
def test_harmed_bundles_are_refused_with_a_sentence(bundle, tmp_path, harm, message):
    copy = shutil.copytree(bundle, tmp_path / "b")
    harm(copy)
    with pytest.raises(PipelineError, match=message):
        load_bundle(copy)


def test_the_game_is_known_from_the_manifest_alone(bundle, tmp_path):
    path = tmp_path / "bare"
    path.mkdir()
    shutil.copy(bundle / "manifest.json", path)
    assert bundle_game(path) == find_game(LIMIT)
    with pytest.raises(PipelineError, match="lacks"):
        load_bundle(path)
    rewrite(path / "manifest.json", game={"name": "no text"})
    with pytest.raises(PipelineError, match="damaged"):
        bundle_game(path)


def test_what_is_no_bundle_is_named(tmp_path):
    with pytest.raises(PipelineError, match="there is no bundle"):
        load_bundle(tmp_path / "nothing")
    (tmp_path / "x.zip").write_bytes(b"PK but not really")
    with pytest.raises(PipelineError, match="not a bundle's folder or zip"):
        load_bundle(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as archive:
        archive.writestr("hello", "world")
    with pytest.raises(PipelineError, match="no manifest"):
        load_bundle(tmp_path / "y.zip")
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "mine").touch()
    with pytest.raises(PipelineError, match="is not a bundle"):
        save_bundle(tmp_path / "z", made())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 4,
        (10**6).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (1).to_bytes(8, "little") + b"{",
    ],
)
def test_bytes_that_are_no_safetensors_raise_value_errors(data):
    with pytest.raises((ValueError, AttributeError)):
        read_arrays(data)


@pytest.mark.parametrize("begin", [0, 8, 24])
def test_arrays_that_share_bytes_are_refused(begin: int, tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", {"first": np.arange(4.0), "none": np.zeros(0), "second": np.arange(4.0)})
    data = (tmp_path / "x").read_bytes()
    assert set(read_arrays(data)) == {"first", "none", "second"}
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["second"]["data_offsets"] = [begin, begin + 32]
    written = json.dumps(header).encode()
    with pytest.raises(ValueError, match=r"the arrays '(first|second)' and '(first|second)' overlap"):
        read_arrays(len(written).to_bytes(8, "little") + written + data[8 + size :])


@pytest.mark.parametrize(
    "entry",
    [
        {"rows": -1},
        {"error": 10**400},
        {"agent": 7},
        {"hands_to_tell": "12"},
        {"hands_to_tell_low": [1]},
        {"street": {}},
    ],
)
def test_damaged_scores_are_refused_in_one_sentence(entry: dict[str, Any], tmp_path: Path) -> None:
    bundle = tmp_path / "bot"
    with zipfile.ZipFile(FIXTURES / "loglinear.zip") as archive:
        archive.extractall(bundle)
    row = dict.fromkeys(SCORED) | {"agent": "a", "street": "all", "rows": 7, "error": 0.25, "log_loss": 0.5}
    record_scores(bundle, [row], "0f")
    assert load_bundle(bundle).about["scores"] == [row]
    record_scores(bundle, [row | entry], "0f")
    (key,) = entry
    for refused in (load_bundle, describe, lambda path: ship(path, tmp_path / "out", {})):
        with pytest.raises(PipelineError, match=rf"manifest.json is damaged \({key} is .*\): copy the bundle or train"):
            refused(bundle)
    record = json.loads((bundle / "manifest.json").read_text())
    record["about"]["scores"] = [7]
    (bundle / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(PipelineError, match="is damaged"):
        load_bundle(bundle)


@pytest.mark.parametrize(
    ("where", "entry"),
    [
        ("model", {"rows": "x"}),
        ("model", {"rows": -1}),
        ("model", {"error": float("nan")}),
        ("model", {"error": 10**400}),
        ("model", {"algorithm": ["l-bfgs"]}),
        ("model", {"pattern": {"a": 1}}),
        ("model", {"parameters": []}),
        ("model", {"parameters": {"rho1": "x"}}),
        ("model", {"forests": [{"columns": 1}]}),
        ("model", {"exponents": {"maxent": None}}),
        ("model", {"priors": ["@teacher"]}),
        ("model", {"interrupted": "no"}),
        ("bundle", {"options": []}),
        ("bundle", {"data": 7}),
        ("bundle", {"range": {"players": "ab", "stacks_bb": None}}),
        ("bundle", {"range": {"players": [2, 2]}}),
        ("manifest", {"agents": "someone"}),
        ("manifest", {"agents": [7]}),
        ("manifest", {"missing": {"flop": 1}}),
        ("manifest", {"version": None}),
    ],
)
def test_facts_of_other_types_are_refused_by_all_that_opens_a_bundle(where, entry, bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "b")
    manifest = json.loads((bundle / "manifest.json").read_text())
    {"model": manifest["models"][1]["about"], "bundle": manifest["about"], "manifest": manifest}[where].update(entry)
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(manifest))
    for opens in (load_bundle, describe):
        with pytest.raises(PipelineError, match=r"manifest.json is damaged \("):
            opens(tmp_path / "b")


@pytest.mark.parametrize("entry", [{"rows": None, "error": None}, {"of_a_later_version": [{"rows": "x"}]}])
def test_facts_that_nobody_knows_or_reads_do_no_harm(entry, bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "b")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["models"][1]["about"] |= entry
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(manifest))
    assert load_bundle(tmp_path / "b").parts[1].about == {"algorithm": "l-bfgs"} | entry
    assert describe(tmp_path / "b")["models"][1]["algorithm"] == "l-bfgs"
