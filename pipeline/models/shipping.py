"""Copies of bundles that play: a folder or a zip file with the manifest, the arrays and a start script.

A README in it describes the bot, its start and its scores. A bundle is opened and checked before it is copied, so a
damaged or unfinished bundle is not shipped. A zip file is not compressed: it opens as fast as a folder. The
same bundle under the same name gives the same bytes.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.models.bundle import MANIFEST, Bundle, check_target, contents, load_bundle, read_bundle_manifest
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.runtime.version import __version__

README = "README.md"


class Shipped(NamedTuple):
    """Number and bytes of the files copied."""

    files: int
    size: int


def ship(bundle: Path, target: Path, scripts: Mapping[str, str]) -> Shipped:
    """Copy a bundle to a folder, or to a zip file by its name; `scripts` are put beside it and can be run.

    A README is put beside them. A damaged bundle, and one whose training was interrupted, is refused.
    """
    opened = load_bundle(bundle)
    if opened.missing:
        raise PipelineError(opened.describe_missing(bundle))
    if target.exists() and target.resolve() == bundle.resolve():
        raise PipelineError(f"{bundle} cannot be shipped onto itself: name another place with --out")
    check_target(target)
    wanted = {MANIFEST, *read_bundle_manifest(bundle)["files"]}
    files = {name: bytes(data) for name, data in contents(bundle, wanted)}
    files[README] = readme(opened, target.stem).encode()
    return write_shipped(target, files, scripts)


def write_shipped(target: Path, files: Mapping[str, bytes], scripts: Mapping[str, str]) -> Shipped:
    """Write files, and scripts that can be run, to a folder or to a zip file by its name."""
    with replacing(target) as beside:
        if target.suffix == ".zip":
            _write_zip(beside, files, scripts)
        else:
            beside.mkdir()
            for name, data in files.items():
                (beside / name).write_bytes(data)
            for name, text in scripts.items():
                (beside / name).write_text(text)
                (beside / name).chmod(0o755)
    size = sum(map(len, files.values())) + sum(len(text.encode()) for text in scripts.values())
    return Shipped(len(files) + len(scripts), size)


def readme(bundle: Bundle, name: str) -> str:
    """Return the README of a shipped bot: its game and agents, its start, its scores on held-out decisions."""
    game = bundle.game.name if bundle.game else "text rows"
    lines = [
        f"# {name}",
        "",
        f"A bot that plays {game} like {', '.join(bundle.agents) or 'the players of its logs'}. It was made with"
        f" acpc-pipeline {__version__}: a starting-hand chart and a model per street, learned from logs.",
        "",
        *how_to_start(name),
        "## Scores",
        "",
        "Error is the share of held-out decisions whose likeliest action was not the one taken; log-loss is in nats.",
        "",
        "| model | algorithm | rows | error | log-loss |",
        "|---|---|---:|---:|---:|",
    ]
    for part in bundle.parts:
        about = part.about
        error = f"{about['error']:.2%}" if isinstance(about.get("error"), float) else "-"
        loss = f"{about['log_loss']:.4f}" if isinstance(about.get("log_loss"), float) else "-"
        rows = f"{about['rows']:,}" if isinstance(about.get("rows"), int) else "-"
        lines.append(f"| {part.name} | {about.get('algorithm', '-')} | {rows} | {error} | {loss} |")
    return "\n".join(lines) + "\n"


def how_to_start(name: str) -> list[str]:
    """Return lines of a README on the requirements and the start of a shipped bot."""
    return [
        "## Start",
        "",
        "Python 3.11 or later and the core of acpc-pipeline (it brings click, numpy, numba and safetensors, no more):",
        "",
        "    pip install acpc-pipeline        # or, from a copy of its sources: pip install .",
        "",
        "In this folder (unpack the zip file first), on an ACPC dealer that waits on HOST and PORT:",
        "",
        "    ./start.sh HOST PORT",
        "",
        "`PYTHON=/path/to/python ./start.sh HOST PORT` takes another Python than python3 to find the package.",
        "",
        "Without a dealer, with this folder or the zip file itself:",
        "",
        f"    pipeline match {name} @call --hands 10000",
        f"    pipeline play {name}",
        "",
        "The first start compiles for a minute; compiled code is kept in your cache folder.",
        "",
    ]


def _write_zip(path: Path, files: Mapping[str, bytes], scripts: Mapping[str, str]) -> None:
    """Write a zip file without times of day."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [*sorted(files.items()), *((name, text.encode()) for name, text in sorted(scripts.items()))]:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | (0o755 if name in scripts else 0o644)) << 16
            archive.writestr(entry, data)
