"""Parts of a topic that takes long, each stored on disk, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._figures import Figure
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.bundle import load_bundle
from pipeline.runtime.files import replacing
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles


def stored_figures(file: Path, measure: Callable[[], Sequence[Figure]]) -> list[Figure]:
    """Return the figures in `file`; measure and write them where it is not there."""
    if not file.is_file():
        measured = [figure._asdict() for figure in measure()]
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as beside:
            beside.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    return [Figure(**figure) for figure in json.loads(file.read_text(encoding="utf-8"))]


def stored_rows(out: Path, logs: Callable[[], Sequence[Path]], *, agents: Sequence[str], validation: str = "") -> Path:
    """Return a dataset of some agents; `logs` is called for its files where it is not there."""
    if not (out / "manifest.json").is_file():
        ingest(list(logs()), out, options(agents=list(agents), validation=[validation] if validation else []))
    return out


def stored_bundle(request: Request) -> Path:
    """Return a trained bundle; a training that was stopped goes on."""
    if not (request.out / "manifest.json").is_file() or load_bundle(request.out).missing:
        train_bundles(request)
    return request.out
