"""docs/architecture.md names files and functions that exist, and the way of a line stays short."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEP = re.compile(r"^\d+\. `([\w/]+\.py)`: (.*)$", re.M)
MAX_FUNCTIONS, MAX_ROOM_CHANGES = 60, 15


def way() -> list[tuple[str, list[str]]]:
    """Return the files of the way of one line, with the functions named beside each."""
    text = PAGE.split("## The way of one line")[1].split("## ")[0]
    return [(file, re.findall(r"`(\w+)`", words)) for file, words in STEP.findall(text)]


def functions_of(file: str) -> set[str]:
    """Return the names of the functions and methods that a file of the package defines."""
    tree = ast.parse((ROOT / "pipeline" / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_function_on_the_way_of_a_line_is_where_the_page_says():
    steps = way()
    assert len(steps) > 30
    missing = [f"{file}: {name}" for file, names in steps for name in set(names) - functions_of(file)]
    assert not missing


def test_the_way_of_a_line_is_short():
    steps = way()
    functions = {(file, name) for file, names in steps for name in names}
    rooms = [file.split("/")[0] for file, _ in steps]
    changes = sum(before != after for before, after in pairwise(rooms))
    assert len(functions) <= MAX_FUNCTIONS
    assert changes <= MAX_ROOM_CHANGES


def test_the_page_names_rooms_files_and_registries_that_exist():
    outside = ("pipeline/", "tests/", "benchmarks/", "tools/")
    for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.pyi?|/))`", PAGE):
        path = name if name.startswith(outside) else f"pipeline/{name}"
        assert (ROOT / path).exists(), name
    for registry, name in re.findall(r"`([A-Z_]+)` of\s+`([a-z_/]+\.py)`", PAGE):
        text = (ROOT / "pipeline" / name).read_text(encoding="utf-8")
        assert re.search(rf"^{registry}\b", text, re.M), f"{registry} of {name}"


def test_every_room_is_in_the_table():
    rooms = {path.parent.name for path in (ROOT / "pipeline").glob("*/__init__.py")}
    assert rooms == set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.M))


def test_every_room_says_in_which_order_to_read_its_files():
    for room in (ROOT / "pipeline").glob("*/__init__.py"):
        words = set(re.findall(r"\w+", ast.get_docstring(ast.parse(room.read_text(encoding="utf-8"))) or ""))
        files = {path.stem for path in room.parent.glob("*.py")} - {"__init__"}
        # every command is a file of cli/, so only what they share is listed there
        listed = (
            {name for name in files if not name.startswith("_")} if room.parent.name != "cli" else {"main", "_options"}
        )
        assert listed <= words, f"{room.parent.name}: {sorted(listed - words)}"
