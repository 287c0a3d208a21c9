"""The wheel of this package, made of its own files: what a shipped bot installs where no index has it.

A wheel is a zip file of the package and of a folder of metadata: name, version and requirements (`METADATA`), the kind
of wheel (`WHEEL`), the command (`entry_points.txt`) and a SHA-256 of every file (`RECORD`). The package is pure Python,
so its files as they are installed are those of the wheel; neither a network nor a build tool is needed. It names the
four packages of the core alone. The same files give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from functools import lru_cache
from pathlib import Path

import pipeline
from pipeline.runtime.version import __version__

PYTHON = (3, 11)
"""the oldest that the package runs on"""
REQUIREMENTS = ("click>=8.1", "numba>=0.61", "numpy>=2.1", "safetensors>=0.5")
"""what playing needs; pyproject.toml has the same ones"""
WHEEL_NAME = f"acpc_pipeline-{__version__}-py3-none-any.whl"
_ABOUT = f"acpc_pipeline-{__version__}.dist-info"


def _package_files() -> dict[str, bytes]:
    """Return the files of the installed package by their paths, without what compiling left."""
    root = Path(pipeline.__file__).parent
    paths = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    files = {f"pipeline/{path.relative_to(root).as_posix()}": path.read_bytes() for path in paths}
    for licence in (root.parent / "LICENSE", root.parent / _ABOUT / "licenses" / "LICENSE"):
        if licence.is_file():
            files[f"{_ABOUT}/licenses/LICENSE"] = licence.read_bytes()
    return files


def _about() -> dict[str, bytes]:
    """Return the metadata of the wheel, without its RECORD."""
    python = ".".join(map(str, PYTHON))
    metadata = ["Metadata-Version: 2.1", "Name: acpc-pipeline", f"Version: {__version__}", "License: MIT"]
    metadata += [f"Requires-Python: >={python}", *(f"Requires-Dist: {name}" for name in REQUIREMENTS)]
    kind = ["Wheel-Version: 1.0", "Generator: acpc-pipeline", "Root-Is-Purelib: true", "Tag: py3-none-any"]
    entry = ["[console_scripts]", "pipeline = pipeline.cli.main:main"]
    texts = {"METADATA": metadata, "WHEEL": kind, "entry_points.txt": entry}
    return {f"{_ABOUT}/{name}": "".join(f"{line}\n" for line in lines).encode() for name, lines in texts.items()}


@lru_cache(maxsize=1)
def core_wheel() -> bytes:
    """Return a wheel of this package, which needs the packages of the core alone."""
    files = dict(sorted({**_package_files(), **_about()}.items()))
    record = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in files.items()
    ]
    files[f"{_ABOUT}/RECORD"] = "".join(f"{line}\n" for line in [*record, f"{_ABOUT}/RECORD,,"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # without a time of day
            entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return buffer.getvalue()
