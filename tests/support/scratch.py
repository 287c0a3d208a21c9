"""Folders for the time of a process: what several tests or attacks share and nobody needs afterwards."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def scratch_folder() -> Path:
    """A new folder in the temporary directory, removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="scratch-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
