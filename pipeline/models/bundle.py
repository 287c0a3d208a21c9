"""A bundle: the models of a game's streets in a folder or zip file with a manifest and arrays.

`manifest.json` names the format's version, the game (its whole definition), the labels in order, the agents imitated,
the data and split it was trained on, and for each model its kind, streets, features, parameters and scores; it
has the SHA-256 of every other file, which is compared before a file is used. Arrays are in safetensors files, read
here by numpy alone, memory-mapped: opening takes milliseconds and playing needs neither pickle nor another package.
In no-limit games a bundle also has the amounts its agents bet (`pipeline.models.sizes`); without them sizes are
fixed. It says which logs it, its priors and its chart were learned from (`pipeline.models.trained_on`).

Kinds of models are in `pipeline.models.kinds`. The same input gives the same bytes.

A bundle may come from anybody: its checksums only prove that it arrived whole. So the manifest is checked for type and
range, and each kind's `load` checks its arrays (see `pipeline.runtime.arrays`); files are read and compared by
`pipeline.models.artifacts`.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.dataset.decisions import STREETS
from pipeline.models.artifacts import MANIFEST, check_replaceable, read_checked, read_files
from pipeline.models.charts import Chart
from pipeline.models.kinds import KINDS, Model, kind_of, load_model
from pipeline.models.prior import ModelPrior, PriorTimesFeatures
from pipeline.models.sizes import Sizes
from pipeline.models.trained_on import TRAINED_ON, TrainedOn, read_records
from pipeline.poker.game import Game, parse_game
from pipeline.runtime.arrays import parse_json, read_arrays, whole_number, write_arrays
from pipeline.runtime.bundled import check_writable, locate
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing, write_text
from pipeline.runtime.version import __version__

FORMAT = 1
ABOUT: dict[str, type] = {
    **dict.fromkeys(["algorithm", "pattern", "data", "columns", "prior", "agent", "street", "scored_on"], str),
    **dict.fromkeys(
        ["rows", "validation_rows", "active", "iterations", "kept_iteration", "inner_rows", "max_iterations"], int
    ),
    **dict.fromkeys(["rounds", "passes", "patience", "seed", "part_rows", "workers"], int),
    **dict.fromkeys(
        ["objective", "error", "log_loss", "best_error", "best_log_loss", "baseline_log_loss", "power"], float
    ),
    **dict.fromkeys(["rho1", "rho2", "tolerance", "min_weight", "floor_error", "floor_log_loss"], float),
    **dict.fromkeys([f"hands_to_tell{end}" for end in ("", "_low", "_high", "_at_most")], float),
    **dict.fromkeys(["options", "parameters", "parts_log_loss", "exponents", "looks_at", "range"], dict),
    **dict.fromkeys(("priors", "forests", "scores"), list),
    "interrupted": bool,
}
"""entries of `about` of a bundle and its models, at any depth, and of recorded scores, with their types"""
SCORED: tuple[str, ...] = ("agent", "street", "rows", "error", "log_loss", "floor_error", "floor_log_loss")
SCORED += tuple(f"hands_to_tell{end}" for end in ("", "_low", "_high", "_at_most"))
"""what is recorded of a row of `evaluate --format csv`"""
CHART = "chart"
"""the name of the model that is the starting-hand chart"""
SIZES = "sizes"
"""the key and file of the amounts that the agents bet"""


@dataclass(frozen=True, repr=False)
class StreetModel:
    """A model with its name, its streets and facts about its training."""

    name: str
    streets: tuple[int, ...]
    model: Model
    about: Mapping[str, Any] = field(default_factory=dict)
    """algorithm, parameters, rows, scores"""

    def __repr__(self) -> str:
        return f"<{type(self.model).__name__} {self.name}: {self.about.get('algorithm', 'unknown algorithm')}>"


@dataclass(frozen=True, repr=False)
class Bundle:
    """Models of a game's streets."""

    game: Game | None
    """none for models of text rows"""
    labels: tuple[str, ...]
    agents: tuple[str, ...]
    parts: tuple[StreetModel, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    """the data: fingerprint, split"""
    missing: tuple[str, ...] = ()
    """streets that an interrupted training had not finished; the same command goes on from there"""
    sizes: Sizes | None = None
    """the amounts behind the raise labels of a no-limit game"""
    trained_on: tuple[TrainedOn, ...] = ()
    """records of the rows that it was learned from, its own first, then those of priors and of a borrowed chart"""

    @property
    def models(self) -> dict[int, Model]:
        """Model that plays on each street, by the street's number: before the flop the chart, where there is one.

        This is the one rule for play and evaluation alike; `preflop_model` is the other choice.
        """
        models: dict[int, Model] = {}
        for part in self.parts:
            for street in part.streets:
                if street not in models or part.name == CHART:
                    models[street] = part.model
        return models

    @property
    def preflop_model(self) -> Model | None:
        """The trained model for the street before the flop, the chart aside."""
        return next((part.model for part in self.parts if 0 in part.streets and part.name != CHART), None)

    def describe_missing(self, path: Path | str) -> str:
        """Return a sentence on the streets that an interrupted training left out; empty for a whole bundle."""
        if not self.missing:
            return ""
        streets = ", ".join(self.missing)
        return (
            f"{path} is not finished: its training was interrupted before the end of {streets};"
            " run the same `train` command again, it goes on from there"
        )

    def __repr__(self) -> str:
        parts = ", ".join(part.name for part in self.parts)
        game = self.game.name if self.game else "text rows"
        lacking = f", lacks {', '.join(self.missing)}" if self.missing else ""
        return f"<Bundle of {', '.join(self.agents) or 'anybody'} in {game}: {parts}{lacking}>"

    @property
    def chart(self) -> Model | None:
        """The starting-hand chart, if there is one."""
        return next((part.model for part in self.parts if part.name == CHART), None)


def save_bundle(path: Path, bundle: Bundle, extra: Mapping[str, str] | None = None) -> None:
    """Write a bundle's folder in one move; `extra` holds text files for people."""
    check_target(path)
    with replacing(path) as folder:
        folder.mkdir(parents=True)
        models = []
        for part in bundle.parts:
            write_arrays(folder / f"{part.name}.safetensors", part.model.to_arrays())
            entry = {"kind": kind_of(part.model), "streets": list(part.streets), "about": dict(part.about)}
            models.append({"name": part.name} | entry | part.model.to_json())
        if bundle.sizes is not None:
            write_arrays(folder / f"{SIZES}.safetensors", bundle.sizes.to_arrays())
        if bundle.trained_on:
            digests = {
                f"{number} {name}": array
                for number, record in enumerate(bundle.trained_on)
                for name, array in record.to_arrays().items()
            }
            write_arrays(folder / f"{TRAINED_ON}.safetensors", digests)
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
            **({"missing": list(bundle.missing)} if bundle.missing else {}),
            **({SIZES: bundle.sizes.to_json()} if bundle.sizes is not None else {}),
            **({TRAINED_ON: [record.to_json() for record in bundle.trained_on]} if bundle.trained_on else {}),
            "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())},
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def record_scores(path: Path, rows: Sequence[Mapping[str, Any]], data: str) -> None:
    """Write rows of scores, on data of this fingerprint, into the manifest of a bundle's folder."""
    check_writable(path)
    manifest = _read_manifest(path)
    manifest["about"] |= {"scores": [{key: row[key] for key in SCORED} for row in rows], "scored_on": data}
    write_text(path / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def check_target(path: Path, *sources: Path) -> None:
    """Refuse to put a bundle in the place of anything but a bundle or an empty folder; see `check_replaceable`."""
    check_replaceable(path, "bundle", _is_bundle, *sources)


def _is_bundle(path: Path) -> bool:
    """Return whether a path is a zip file, or a folder whose manifest names models."""
    try:
        return zipfile.is_zipfile(path) or "models" in parse_json((path / MANIFEST).read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def load_bundle(path: Path | str) -> Bundle:
    """Open a bundle's folder or zip file; its files are checked against the manifest, then every array."""
    path = locate(path)
    manifest, files = _open(path)
    try:
        game = _game(manifest["game"])
        labels = _texts(manifest["labels"], "labels")
        if len(labels) < 2 or (game is not None and labels != tuple(game.labels)):
            raise ValueError(f"its labels are {', '.join(labels)[:40]}")
        parts = tuple(_load_part(entry, files, path, game, len(labels)) for entry in manifest["models"])
        if len({part.name for part in parts}) != len(parts):
            raise ValueError("two of its models have the same name")
        missing = _texts(manifest.get("missing", []), "missing streets")
        sizes = None
        if SIZES in manifest:
            sizes = Sizes.load(manifest[SIZES], read_arrays(files[f"{SIZES}.safetensors"]), game)
        agents, about = _texts(manifest["agents"], "agents"), manifest["about"]
        if TRAINED_ON in manifest:
            records = read_records(manifest[TRAINED_ON], read_arrays(files[f"{TRAINED_ON}.safetensors"]))
        else:
            records = (TrainedOn.of_earlier_version(about, agents, is_text=game is None), *_unknown_priors(parts))
        return Bundle(game, labels, agents, parts, about, missing, sizes, records)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PipelineError(f"{path} is not a bundle this version can read ({error}): train it again") from None


def _unknown_priors(parts: Sequence[StreetModel]) -> Iterator[TrainedOn]:
    """Yield a record that says nothing of the rows of each prior that a bundle without records took along."""
    models = [model for part in parts for model in (part.model, *getattr(part.model, "parts", ()))]
    priors = [prior for model in models if isinstance(model, PriorTimesFeatures) for prior in model.priors]
    for name in dict.fromkeys(prior.name for prior in priors if isinstance(prior, ModelPrior)):
        yield TrainedOn("prior", name)


def read_bundle_manifest(path: Path | str) -> dict[str, Any]:
    """Read a bundle's manifest and check its files."""
    return _open(Path(path))[0]


def _game(entry: Mapping[str, Any] | None) -> Game | None:
    """Return the game of a manifest's entry; None for models of text rows."""
    return None if entry is None else parse_game(*_texts([entry["text"], entry["name"]], "game"))


def _texts(value: Any, name: str) -> tuple[str, ...]:
    """Return a list of texts as a tuple; any other value raises `ValueError`."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"its {name} are not a list of texts")
    return tuple(value)


def _load_part(
    entry: Mapping[str, Any], files: Mapping[str, Any], path: Path, game: Game | None, width: int
) -> StreetModel:
    """Open a model from its entry in the manifest and its file, checked to fit the bundle's game and labels."""
    if entry["kind"] == "net":
        raise PipelineError(f"{path} holds a neural net, which this version has no more: train it again, by boosting")
    if entry["kind"] not in KINDS:
        raise PipelineError(f"{path} holds a model of the kind {entry['kind']!r}: open it with a newer version")
    (name,) = _texts([entry["name"]], "models' names")
    if not isinstance(entry["about"], dict):
        raise ValueError(f"it says nothing about its model {name[:40]!r}")
    streets = tuple(
        whole_number(street, "a model's street", 0, game.rounds - 1 if game else -1) for street in entry["streets"]
    )
    model = load_model(entry["kind"], entry, read_arrays(files[f"{name}.safetensors"]))
    if model.width != width:
        raise ValueError(f"its model {name[:40]!r} has {model.width} labels, not {width}")
    if isinstance(model, Chart) and name != CHART:
        raise ValueError("it has a chart under another name")
    _check_fit(model, name, game, streets)
    return StreetModel(name, streets, model, entry["about"])


def _check_fit(model: Any, name: str, game: Game | None, streets: Collection[int]) -> None:
    """Refuse a model, or a submodel of it, for another game or form of rows: kernels do not check bounds."""
    if isinstance(model, Chart) and (game is None or not model.fits(game) or set(streets) != {0}):
        raise ValueError("its chart is for another game")
    if getattr(model, "is_for_text", False) != (game is None):
        raise ValueError(f"its model {name[:40]!r} is for rows of another form")
    if hasattr(model, "submodels"):
        if game is None:
            raise ValueError(f"its model {name[:40]!r} is for rows of another form")
        for inner, its_streets in model.submodels(game, streets):
            _check_fit(inner, name, game, its_streets)


def _open(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the manifest and the bytes of every file that it names, compared with their checksums."""
    manifest = _read_manifest(path)
    return manifest, read_checked(path, manifest["files"], "copy the bundle again or train it again")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -1e300 < value < 1e300


def _check_about(about: Mapping[str, Any]) -> None:
    """Raise an error unless the known entries of `about` have their types; what is no table or list may be None."""
    for name, value in about.items():
        kind = ABOUT.get(name, object)
        fits = isinstance(value, kind) or (value is None and kind not in (dict, list))
        if kind in (int, float) and value is not None:
            fits = _is_number(value) and (kind is float or (type(value) is int and 0 <= value < 1 << 63))
        elif name in ("parts_log_loss", "exponents", "looks_at"):
            fits = fits and all(map(_is_number, value.values()))
        elif name == "range":  # of players, and of stacks or None: see `training.prior`
            ends = [*value["players"], *((0, 0) if value["stacks_bb"] is None else value["stacks_bb"])]
            fits = fits and len(ends) == 4 and all(map(_is_number, ends))
        if not fits:
            raise ValueError(f"{name[:40]} is {str(value)[:40]}")
        for entry in value if kind is list else [value] if name == "parameters" else []:
            _check_about(entry)


def _check_facts(manifest: Mapping[str, Any]) -> None:
    """Raise an error unless what a manifest says for people, of the bundle and of its models, has its types."""
    for key in ("labels", "agents", "missing"):
        _texts(manifest.get(key, []), key)
    for entry in (manifest, *manifest["models"]):
        _check_about(entry.get("about", {}))
        _texts([entry.get(key, "") for key in ("version", "kind", "name")], "version, kinds and names of models")
        for street in entry.get("streets", ()):
            whole_number(street, "a model's street", 0, len(STREETS) - 1)


def bundle_game(path: Path) -> Game:
    """Return the game a bundle was trained for; reads no more than the manifest."""
    manifest = _read_manifest(path)
    try:
        game = _game(manifest["game"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PipelineError(f"{path / MANIFEST} is damaged: copy the bundle or train it again") from None
    if game is None:
        raise PipelineError(f"{path} was trained on text rows: it labels rows, it cannot play")
    return game


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest and check its parts."""
    data = dict(read_files(path, {MANIFEST})).get(MANIFEST)
    if data is None:
        raise PipelineError(f"{path} is not a bundle: it has no {MANIFEST}")
    try:
        manifest: dict[str, Any] = parse_json(data)
        if "models" not in manifest:
            raise PipelineError(f"{path} is not a bundle: its {MANIFEST} names no models")
        version, models, sums = manifest["format"], manifest["models"], manifest["files"]
        sound = isinstance(models, list) and isinstance(sums, dict) and isinstance(manifest["about"], dict)
        if not sound or not all(isinstance(text, str) for text in sums.values()):
            raise ValueError("it does not list models and files")
        if version != FORMAT:
            raise PipelineError(f"{path} has the bundle format {version}, this version reads {FORMAT}: train it again")
        _check_facts(manifest)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"{path / MANIFEST} is damaged ({error}): copy the bundle or train it again") from None
    return manifest
