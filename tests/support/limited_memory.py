"""Commands under a limit of memory: a hostile file ends them in a sentence and never takes the machine's memory."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = """
import resource, sys
from pipeline.cli.main import main
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
main(sys.argv[2:])
"""


def limited(size: int, *words: str | Path) -> list[str]:
    """The words of a program that runs a command of the package with so many bytes of addresses."""
    return [sys.executable, "-c", PROGRAM, str(size), *map(str, words)]
