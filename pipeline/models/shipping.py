"""Copies of bundles that play: a folder or a zip file with the manifest, the arrays and a start script.

A README in it describes the bot, its start and its scores; a wheel of this package is beside them (`wheel`), so that
the bot starts on a machine that has only Python. A bundle is opened and checked before it is copied, so a damaged or
unfinished bundle is not shipped. A zip file is not compressed: it opens as fast as a folder. The same bundle under the
same name gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.models.artifacts import MANIFEST, README, Shipped, describe_start, read_files, write_copy
from pipeline.models.bundle import SCORED, Bundle, check_target, load_bundle, read_bundle_manifest
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.version import __version__


def ship(bundle: Path, target: Path, scripts: Mapping[str, str]) -> Shipped:
    """Copy a bundle to a folder, or to a zip file by its name; `scripts` are put beside it and can be run.

    A README is put beside them. A damaged bundle, and one whose training was interrupted, is refused.
    """
    opened = load_bundle(bundle)
    if opened.missing:
        raise PipelineError(opened.describe_missing(bundle))
    check_target(target, bundle)
    wanted = {MANIFEST, *read_bundle_manifest(bundle)["files"]}
    files = {name: bytes(data) for name, data in read_files(bundle, wanted)}
    files[README] = readme(opened, target.stem).encode("utf-8", "backslashreplace")
    return write_copy(target, files, scripts)


def readme(bundle: Bundle, name: str) -> str:
    """Return the README of a shipped bot: its game and agents, its start, its scores on held-out decisions."""
    game = bundle.game.name if bundle.game else "text rows"
    lines = [
        f"# {name}",
        "",
        f"A bot that plays {game} like {', '.join(bundle.agents) or 'the players of its logs'}. It was made with"
        f" acpc-pipeline {__version__}: a starting-hand chart and a model per street, learned from logs.",
        "",
        *describe_start(),
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
    return "\n".join([*lines, *_recorded_lines(bundle.about)]) + "\n"


def _recorded_lines(about: Mapping[str, Any]) -> list[str]:
    """Return sentences on the scores that `evaluate --record` wrote: floors by street, and the hands to tell."""
    lines = []
    for row in about.get("scores", ()):
        cells = (f"{row[key]:.4f}" if row.get(key) is not None else "-" for key in SCORED[3:7])
        text = "{}: error {}, log-loss {}; no copy could come below {} and {}.".format(row.get("street"), *cells)
        lines += ["", text]
    hands = hands_to_tell_text(about)
    return [*lines, "", f"A perfect detector needs {hands} to tell it from its original."] if hands else lines


def hands_to_tell_text(about: Mapping[str, Any]) -> str:
    """Return how many hands until 95 % certainty, by recorded scores; empty where they do not say."""
    row = (about.get("scores") or [{}])[-1]
    hands, low, high = (row.get(f"hands_to_tell{end}") for end in ("", "_low", "_high"))
    ends = "" if low is None else f" ({low:.3g} or more)" if high is None else f" ({low:.3g} to {high:.3g})"
    return "" if hands is None else f"about {hands:.3g} hands{ends}"
