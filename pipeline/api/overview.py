"""Facts of a dataset, a bundle, a stored strategy or a portfolio, as `pipeline info` prints them.

In goes the path of a folder that `ingest` wrote, or of a folder or zip file that `train` or `counter` wrote; out comes
a dictionary whose values are ready for JSON. Only manifests and file sizes are read, so that it takes milliseconds
whatever the size of the data; `verify` also reads every file and compares it with what the manifest says of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import agent_rows
from pipeline.dataset.opening import verify as verify_dataset
from pipeline.features.patterns import pattern_name
from pipeline.models import bundle
from pipeline.models.artifacts import MANIFEST, read_files
from pipeline.runtime.arrays import parse_json
from pipeline.runtime.bundled import locate
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import recover
from pipeline.runtime.tabular import Tabular
from pipeline.solving.strategy import (
    check_strategy,
    counter_facts,
    is_portfolio,
    is_strategy,
    read_packed,
    strategy_facts,
    strategy_files,
    strategy_game,
)


@dataclass(frozen=True, repr=False)
class Description(Tabular):
    """Facts of a dataset, a bundle, a stored strategy or a portfolio."""

    kind: Literal["dataset", "bundle", "strategy", "portfolio"]
    path: Path
    agents: tuple[str, ...]
    """players of a dataset, whom a bundle imitates, whom a strategy or a portfolio is made against"""
    games: tuple[str, ...]
    streets: tuple[str, ...]
    files: int
    bytes: int
    facts: Mapping[str, Any]
    """all that `pipeline info --json` prints: what the kind has besides, such as `hands`, `options`, `models`"""

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per player of a dataset or model of a bundle; of others one row."""
        tables = {"dataset": "agents", "bundle": "models"}
        return list(self.facts[tables[self.kind]]) if self.kind in tables else [dict(self.facts)]

    def __repr__(self) -> str:
        who = f"{len(self.agents):,} agents" if len(self.agents) > 3 else ", ".join(self.agents)
        return f"<{self.kind.capitalize()} {self.path}: {who} in {', '.join(self.games)}, {self.files:,} files>"


def describe(path: str | PathLike[str], *, verify: bool = False) -> Description:
    """Describe a dataset, a bundle, a stored strategy or a portfolio.

    Parameters
    ----------
    path : path
        A dataset's folder, or a bundle's or stored strategy's folder or zip file.
    verify : bool
        Read every file and compare it with the manifest: the rows of a dataset's Parquet files, the SHA-256 of a
        bundle's files, all of a strategy. A file that differs raises `PipelineError`.

    Returns
    -------
    Description
        `kind`, `path`, `agents`, `games`, `streets`, `files`, `bytes`, and `facts` by name, also as an index: a
        dataset has `hands`, `decisions`, `rejected`, `options`, `logs` (files that were ingested), `logs_inside`
        (how many logs these hold: an archive has many), `files` and `bytes`; a bundle `models` (street, algorithm,
        rows, error, log-loss), `pattern`, `options`, `files` and `bytes`; a strategy `players`, `buckets` of each
        street, `against`, `counter` (what it wins and risks, with its curve; None of an equilibrium), `unit`, `files`
        and `bytes`; a portfolio `members` (its strategies), `opponents` (whom it knows), `options`, `files` and
        `bytes`.

    Examples
    --------
    >>> describe("nothing")
    Traceback (most recent call last):
    ...
    pipeline.runtime.errors.PipelineError: there is nothing at nothing: name a folder that `ingest` or `train` wrote
    """
    path = locate(Path(path))
    facts = _facts(path, verify)
    agents = [entry["agent"] if isinstance(entry, dict) else entry for entry in facts["agents"]]
    names = (tuple(agents), tuple(facts["games"]), tuple(facts["streets"]))
    return Description(facts["kind"], path, *names, facts["files"], facts["bytes"], facts)


def _facts(path: Path, verify: bool) -> dict[str, Any]:
    """Return the facts of what lies at a path, ready for JSON."""
    if not path.exists():
        recover(path)
    if not path.exists():
        raise PipelineError(f"there is nothing at {path}: name a folder that `ingest` or `train` wrote")
    if is_portfolio(path):
        return _portfolio(path, verify)
    if is_strategy(path):
        return _strategy(path, verify)
    if path.is_file() and path.suffix == ".zip":
        return _bundle(path, verify)
    if not (path / MANIFEST).is_file():
        raise PipelineError(f"{path} is neither a dataset's folder nor a bundle's folder or zip file")
    try:
        manifest = parse_json((path / MANIFEST).read_bytes())
    except (OSError, ValueError):
        raise PipelineError(f"{path / MANIFEST} is damaged: it is not JSON") from None
    if isinstance(manifest, dict) and "models" in manifest:
        return _bundle(path, verify)
    return _dataset(path, verify)


def _dataset(path: Path, verify: bool) -> dict[str, Any]:
    """Return a dataset's facts from its manifest; its files are only measured, or read with `verify`."""
    manifest = read_manifest(path)
    decisions: dict[str, dict[str, int]] = {}
    for file in manifest.decisions:
        for agent, rows in agent_rows(path, file).items():
            counts = decisions.setdefault(agent, {})
            counts[str(file.street)] = counts.get(str(file.street), 0) + rows
    streets = Counter[str]()
    for counts in decisions.values():
        streets.update(counts)
    size = 0
    for file in manifest.files:
        part = path / file.path
        if not part.is_file():
            raise PipelineError(f"{part} is missing: run the interrupted ingest again")
        size += part.stat().st_size
    if verify:
        for problem in verify_dataset(path):
            raise PipelineError(problem)
    return {
        "kind": "dataset",
        "path": str(path),
        "agents": [
            {
                "agent": agent,
                "decisions": sum(counts.values()),
                "streets": {street: counts[street] for street in STREETS if street in counts},
            }
            for agent, counts in sorted(decisions.items())
        ],
        "games": sorted(manifest.games),
        "streets": {street: streets[street] for street in STREETS if street in streets},
        "hands": manifest.hands,
        "decisions": sum(streets.values()),
        "rejected": sum(file.rows for file in manifest.files if file.path.startswith("rejected/")),
        "options": asdict(manifest.options),
        "logs": sorted(source.file for line in manifest.details() for source in line.sources),
        "logs_inside": len({label for line in manifest.details() for label in line.logs}),
        "schema": manifest.schema,
        "files": len(manifest.files) + len(manifest.pieces) + 1,
        "bytes": size + sum(piece.bytes for piece in manifest.pieces) + (path / MANIFEST).stat().st_size,
        "verified": verify,
    }


def _bundle(path: Path, verify: bool) -> dict[str, Any]:
    manifest = bundle.read_bundle_manifest(path)  # compares the SHA-256 of every file
    if verify:
        bundle.load_bundle(path)
    try:
        models = [_model(entry) for entry in manifest["models"]]
        trained = [entry["about"] for entry in manifest["models"] if entry["kind"] != "chart"]
        patterns = dict.fromkeys(pattern_name(about["pattern"]) for about in trained if about.get("pattern"))
        sizes = [len(data) for _, data in read_files(path, {MANIFEST, *manifest["files"]})]
        return {
            "kind": "bundle",
            "path": str(path),
            "agents": list(manifest["agents"]),
            "games": [manifest["game"]["name"]] if manifest["game"] else [],
            "labels": list(manifest["labels"]),
            "streets": [street for street in STREETS if any(street in model["streets"] for model in models)],
            "models": models,
            "missing": list(manifest.get("missing", [])),
            "pattern": ", ".join(patterns) or None,
            "options": trained[0].get("parameters", {}) if trained else {},
            "data": dict(manifest["about"]),
            "version": manifest["version"],
            "files": len(sizes),
            "bytes": sum(sizes),
            "verified": verify,
        }
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise PipelineError(f"{path} is not a bundle this version can read ({error}): train it again") from None


def _strategy(path: Path, verify: bool) -> dict[str, Any]:
    """Return a stored strategy's facts from its manifest; with `verify` all of it is opened and checked."""
    if verify:
        check_strategy(path)
    facts, game = strategy_facts(path), strategy_game(path)
    sizes = [len(data) for data in strategy_files(path).values()]
    against = facts.get("against")
    return {
        "kind": "strategy",
        "path": str(path),
        "agents": [against] if isinstance(against, str) else [],
        "games": [game.name],
        "players": game.players,
        "streets": list(STREETS[: game.rounds]),
        "buckets": dict(zip(STREETS, facts["sizes"], strict=False)),
        "against": against if isinstance(against, str) else None,
        "counter": _counter(facts),
        "unit": str(facts.get("unit", "mbb/h")),
        "options": _options(facts, "seed", "deals", "method"),
        "version": facts["version"],
        "files": len(sizes),
        "bytes": sum(sizes),
        "verified": verify,
    }


def _counter(facts: dict[str, Any]) -> dict[str, Any] | None:
    """Return the facts of a counter-strategy, None where a manifest has not the expected ones."""
    try:
        return counter_facts(facts)
    except ValueError:
        return None


def _portfolio(path: Path, verify: bool) -> dict[str, Any]:
    """Return a portfolio's facts from its manifest; with `verify` its file is compared with the checksum there."""
    facts = strategy_facts(path)
    packed = strategy_files(path)
    if verify:
        read_packed(path, facts, "make the portfolio again")
    try:
        members, opponents = ([str(name) for name in facts[key]] for key in ("members", "opponents"))
    except (KeyError, TypeError):
        raise PipelineError(f"{path} has no readable {MANIFEST}: make the portfolio again") from None
    return {
        "kind": "portfolio",
        "path": str(path),
        "agents": opponents,
        "games": [str(facts["game"])],
        "streets": list(STREETS[: len(facts["sizes"])]),
        "members": members,
        "opponents": opponents,
        "options": _options(facts, "seed", "deals", "share", "compared"),
        "version": facts["version"],
        "files": len(packed),
        "bytes": sum(map(len, packed.values())),
        "verified": verify,
    }


def _options(facts: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return those of a manifest's options that are texts or finite numbers, which JSON can hold."""
    return {
        key: facts[key]
        for key in keys
        if type(facts.get(key)) in (str, int) or (type(facts.get(key)) is float and isfinite(facts[key]))
    }


def _model(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a model's streets, its training and its scores on the held-out rows."""
    about = entry["about"]
    names = ("rows", "validation_rows", "iterations", "error", "log_loss", "interrupted")
    return {
        "name": entry["name"],
        "kind": entry["kind"],
        "streets": [STREETS[street] for street in entry["streets"]],
        "algorithm": about.get("algorithm"),
        **{name: about.get(name) for name in names},
    }
