"""A bundle: what training leaves behind and play opens. A folder or zip file with a manifest and arrays.

`manifest.json` names the format's version, the game (its whole definition), the labels in order, the agents imitated,
the data and split it was trained on, and for each model its kind, streets, features, parameters and scores; it
holds the SHA-256 of every other file, which is compared before a file is used. Arrays are in safetensors files, read
here by numpy alone, memory-mapped: opening takes milliseconds and playing needs neither pickle nor another package.

A model has `predict(rows) -> (rows, labels)`, `to_json`, `to_arrays` and `load`; `KINDS` says where each kind lives.
The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import mmap
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline import __version__
from pipeline.errors import PipelineError
from pipeline.files import replacing
from pipeline.game import Game, parse_game

__all__ = [
    "Bundle",
    "Model",
    "StreetModel",
    "bundle_game",
    "contents",
    "load_bundle",
    "read_arrays",
    "read_manifest",
    "save_bundle",
    "write_arrays",
]

FORMAT = 1
MANIFEST = "manifest.json"
KINDS = {
    "loglinear": ("pipeline.models.loglinear", "LogLinear"),
    "trees": ("pipeline.models.trees", "Trees"),
    "net": ("pipeline.models.mlp", "Net"),
    "chart": ("pipeline.charts", "Chart"),
}
TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8", "I32": "<i4", "U32": "<u4", "U16": "<u2", "U8": "u1"}


class Model(Protocol):
    """What a bundle holds per street."""

    def predict(self, rows: Any) -> NDArray[np.float64]:
        """(rows, labels) probabilities."""

    def to_json(self) -> dict[str, Any]:
        """What the manifest keeps of the model."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What the model's file keeps."""


@dataclass(frozen=True)
class StreetModel:
    """A model with the name and streets it is for and what is known about it."""

    name: str
    streets: tuple[int, ...]
    model: Model
    about: Mapping[str, Any] = field(default_factory=dict)
    """algorithm, parameters, rows, scores"""


@dataclass(frozen=True)
class Bundle:
    """Models of a game's streets."""

    game: Game | None
    """none for models of text rows"""
    labels: tuple[str, ...]
    agents: tuple[str, ...]
    parts: tuple[StreetModel, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    """the data: fingerprint, split"""

    @property
    def models(self) -> dict[int, Model]:
        """The model of each street, by the street's number; before the flop a model goes before a chart."""
        found: dict[int, Model] = {}
        for part in self.parts:
            for street in part.streets:
                if street not in found or part.name != "chart":
                    found[street] = part.model
        return found

    @property
    def chart(self) -> Model | None:
        """The starting-hand chart, if there is one."""
        return next((part.model for part in self.parts if part.name == "chart"), None)


def save_bundle(path: Path, bundle: Bundle, extra: Mapping[str, str] | None = None) -> None:
    """Write a bundle's folder in one move; `extra` holds text files for people."""
    check_target(path)
    with replacing(path) as folder:
        folder.mkdir(parents=True)
        models = []
        for part in bundle.parts:
            write_arrays(folder / f"{part.name}.safetensors", part.model.to_arrays())
            kind = next(kind for kind, (_, name) in KINDS.items() if name == type(part.model).__name__)
            kept = {"name": part.name, "kind": kind, "streets": list(part.streets), "about": dict(part.about)}
            models.append(kept | part.model.to_json())
        for name, text in (extra or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        manifest = {
            "format": FORMAT,
            "version": __version__,
            "game": {"name": bundle.game.name, "text": bundle.game.text} if bundle.game else None,
            "labels": list(bundle.labels),
            "agents": list(bundle.agents),
            "about": dict(bundle.about),
            "models": models,
            "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())},
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def check_target(path: Path) -> None:
    """Refuse to put a bundle in the place of anything but a bundle or an empty folder."""
    if path.is_file() and not zipfile.is_zipfile(path):
        raise PipelineError(f"{path} is there and is not a bundle: name another place or remove it")
    if path.is_dir() and any(path.iterdir()):
        try:
            known = "models" in json.loads((path / MANIFEST).read_bytes())
        except (OSError, ValueError):
            known = False
        if not known:
            raise PipelineError(f"{path} is there and is not a bundle: name another folder or remove it")


def load_bundle(path: Path | str) -> Bundle:
    """Open a bundle's folder or zip file; every file is checked against the manifest first."""
    path = Path(path)
    manifest, files = _open(path)
    try:
        game = manifest["game"]
        return Bundle(
            parse_game(game["text"], game["name"]) if game else None,
            tuple(manifest["labels"]),
            tuple(manifest["agents"]),
            tuple(_part(kept, files, path) for kept in manifest["models"]),
            manifest["about"],
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PipelineError(f"{path} is not a bundle this version can read ({error}): train it again") from None


def read_manifest(path: Path | str) -> dict[str, Any]:
    """A bundle's manifest, its files checked."""
    return _open(Path(path))[0]


def _part(kept: Mapping[str, Any], files: Mapping[str, Any], path: Path) -> StreetModel:
    if kept["kind"] not in KINDS:
        raise PipelineError(f"{path} holds a model of the kind {kept['kind']!r}: open it with a newer version")
    module, name = KINDS[kept["kind"]]
    arrays = read_arrays(files[f"{kept['name']}.safetensors"])
    model = getattr(importlib.import_module(module), name).load(kept, arrays)
    return StreetModel(kept["name"], tuple(kept["streets"]), model, kept["about"])


def _open(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The manifest and the bytes of every other file, compared with their checksums."""
    files = dict(contents(path))
    manifest = _manifest(path, files.pop(MANIFEST, None))
    sums = manifest["files"]
    for name in sums:
        if name not in files:
            raise PipelineError(f"{path} lacks {name}: copy the bundle again or train it again")
    order = sorted(sums, key=lambda name: len(files[name]), reverse=True)  # so that both threads end together
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(order, pool.map(lambda name: hashlib.sha256(files[name]).hexdigest(), order), strict=True))
    for name, expected in sums.items():
        if found[name] != expected:
            raise PipelineError(f"{path / name} is damaged or foreign: it is not the file that its manifest names")
    return manifest, files


def bundle_game(path: Path) -> Game:
    """The game a bundle was trained for; reads no more than the manifest."""
    only = dict(contents(path, MANIFEST))
    game = _manifest(path, only.get(MANIFEST)).get("game")
    if game is None:
        raise PipelineError(f"{path} was trained on text rows: it labels rows, it cannot play")
    try:
        return parse_game(game["text"], game["name"])
    except (KeyError, TypeError, AttributeError):
        raise PipelineError(f"{path / MANIFEST} is damaged: copy the bundle again or train it again") from None


def _manifest(path: Path, data: Any) -> dict[str, Any]:
    """A manifest from its bytes."""
    if data is None:
        raise PipelineError(f"{path} is not a bundle: it has no {MANIFEST}")
    try:
        manifest: dict[str, Any] = json.loads(bytes(data))
        if "models" not in manifest:
            raise PipelineError(f"{path} is not a bundle: its {MANIFEST} names no models")
        version, _ = manifest["format"], manifest["files"].items()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PipelineError(f"{path / MANIFEST} is damaged: copy the bundle again or train it again") from None
    if version != FORMAT:
        raise PipelineError(f"{path} has the bundle format {version}, this version reads {FORMAT}: train it again")
    return manifest


def contents(path: Path, only: str = "") -> Iterator[tuple[str, Any]]:
    """Name and bytes of a folder's or zip file's files, or of the one that is named."""
    if not path.exists():
        raise PipelineError(f"there is no bundle at {path}: `train --out {path}` makes one")
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if file.is_file() and not file.name.startswith(".") and only in ("", file.name):
                yield file.name, _mapped(file)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if only in ("", Path(name).name):
                    yield Path(name).name, archive.read(name)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error) as error:
        raise PipelineError(f"{path} is not a bundle's folder or zip file: {error}") from None


def _mapped(path: Path) -> Any:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a safetensors file, names in order of the alphabet."""
    from safetensors.numpy import save

    path.write_bytes(save({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}))


def read_arrays(data: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file's bytes, not copied: read-only views. Malformed bytes raise ValueError."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise ValueError("not a safetensors file")
    header = json.loads(bytes(data[8 : 8 + size]))
    arrays = {}
    for name, kept in header.items():
        if name == "__metadata__":
            continue
        low, high = kept["data_offsets"]
        kind = np.dtype(TYPES[kept["dtype"]])
        shape = tuple(kept["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        if not 0 <= low <= high <= len(data) - 8 - size or high - low != count * kind.itemsize:
            raise ValueError("not a safetensors file")
        arrays[name] = np.frombuffer(data, kind, count, 8 + size + low).reshape(shape)
    return arrays
