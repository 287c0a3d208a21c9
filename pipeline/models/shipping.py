"""Copying a bundle to where it plays: a folder or a zip file with the manifest, the arrays and nothing else.

What is copied has been opened and checked first, so a damaged bundle is not shipped. A zip file is not compressed:
it opens as fast as a folder. The same bundle gives the same bytes.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import PipelineError
from pipeline.files import replacing
from pipeline.models.bundle import MANIFEST, check_target, contents, load_bundle, read_manifest

__all__ = ["Shipped", "ship"]


class Shipped(NamedTuple):
    """What was copied."""

    files: int
    size: int


def ship(bundle: Path, target: Path, scripts: Mapping[str, str]) -> Shipped:
    """Copy a bundle to a folder, or to a zip file by its name; `scripts` are put beside it and can be run."""
    opened = load_bundle(bundle)
    if opened.missing:
        raise PipelineError(opened.describe_missing(bundle))
    if target.exists() and target.resolve() == bundle.resolve():
        raise PipelineError(f"{bundle} cannot be shipped onto itself: name another place with --out")
    check_target(target)
    wanted = {MANIFEST, *read_manifest(bundle)["files"]}
    files = {name: bytes(data) for name, data in contents(bundle, wanted)}
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


def _write_zip(path: Path, files: Mapping[str, bytes], scripts: Mapping[str, str]) -> None:
    """A zip file without times of day."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [*sorted(files.items()), *((name, text.encode()) for name, text in sorted(scripts.items()))]:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | (0o755 if name in scripts else 0o644)) << 16
            archive.writestr(entry, data)
