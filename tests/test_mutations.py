"""Bundles, strategies, charts and patterns that somebody harmed on purpose: refused (see also `test_campaigns`)."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from pipeline.arrays import read_arrays, read_npy
from pipeline.diskcache import keep, open_kept
from pipeline.errors import PipelineError
from pipeline.game import find_game
from pipeline.models.bundle import load_bundle
from pipeline.policy import find_chart, load_policy, masked

FIXTURES = Path(__file__).parent / "fixtures" / "bundles"


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
        ("net", {"source": first(-1)}, "'source' has values"),
        ("net", {"weights 0": lambda a: a[1:]}, "'weights 0' is float32"),
        ("net", {"weights 1": first(np.nan)}, "'weights 1' has values"),
        ("net", {"bias 0": lambda a: a[1:]}, "'bias 0' is float32"),
    ],
)
def test_a_crafted_bundle_is_refused_before_any_kernel_reads_it(kind, changes, message, tmp_path):
    load_bundle(crafted(kind, tmp_path / "sound"))
    with pytest.raises(PipelineError, match=message):
        load_bundle(crafted(kind, tmp_path / "b", **changes))


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
    keep(path, np.arange(300, dtype=np.uint16), 3)
    data = path.read_bytes()
    at = data.index(b"}") + 3
    path.write_bytes(data[:at] + harm + data[at + len(harm) :])
    note = json.loads(path.with_suffix(".json").read_text())
    note["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(note))
    assert open_kept(path, 3, lambda table: True) is None
    with pytest.raises(ValueError, match=r"flop\.npy is no array"):
        read_npy(path)
    path.with_suffix(".json").write_text("[" * 5000)
    assert open_kept(path, 3, lambda table: True) is None


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
