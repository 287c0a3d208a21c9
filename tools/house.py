"""Measure how hard the package is to own, and hold it to the numbers that were reached.

    python -m tools.house                 the numbers: before the move to rooms, now, the limit, the target
    python -m tools.house --room poker    what stands behind them in one room, by file and line
    python -m tools.house --check         fail if a number is above its limit (part of `make check`)

The numbers: names at the package's top level, layers of the import contract, pairs of rooms of which one imports the
other, lines, files, functions that bind a name which says nothing of what it holds (`VAGUE`), docstrings that begin
with "What" instead of a verb, public names that more than one module defines, and lines that are comments. Names that
repeat by a convention of docs/architecture.md (`CONVENTIONS`) have one owner, their room. Lower a limit when its number
falls. The numbers before come from another script: in the same tree this one counts 23 % vague functions (it
follows names into nested functions), 319 docstrings and 541 edges.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
VAGUE = frozenset(
    "found,told,one,kept,said,shown,held,at,left,known,done,less,some,each,every".split(",")  # noqa: SIM905
)
MIN_SPAN = 4
"""Lines between the first and the last use of a name from which on it must say what it holds."""
CONVENTIONS = {"command": "cli", "make": "agents", "train": "training"}
"""Public names that every module of a room may define, because what is added there is found by that name."""


class Measure(NamedTuple):
    """A number of the house; None where there is no such value."""

    name: str
    before: float | None
    limit: float | None
    """what `--check` allows: the number that was reached, with a margin for lines and files"""
    target: float | None


MEASURES = (
    Measure("top-level names", 71, 17, 18),
    Measure("layers of the import contract", 43, 17, 18),
    Measure("edges between rooms", 554, 105, 140),
    Measure("lines", 59_259, 61_000, 47_000),
    Measure("files", 338, 275, 260),
    Measure("functions with vague names, per cent", 15, 0.2, 2),
    Measure("docstrings that begin with What", 281, 0, 10),
    Measure("public names with several owners", 98, 7, 15),
    Measure("comments per thousand lines", 1.6, None, None),
)


class Place(NamedTuple):
    """A line of the package that a number counts."""

    kind: str
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def sources(root: Path) -> dict[Path, ast.Module]:
    """Return the syntax tree of every module of the package, by its path below `root`."""
    return {
        path.relative_to(root): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((root / "pipeline").rglob("*.py"))
    }


def top_level(root: Path) -> list[str]:
    """Return what stands directly in the package's folder, Python's own markers left out."""
    markers = {"__init__.py", "__init__.pyi", "__main__.py", "__pycache__", "py.typed"}
    return sorted(path.name for path in (root / "pipeline").iterdir() if path.name not in markers)


def layers(root: Path) -> int:
    """Return the number of layers of the import contract."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return max(len(contract.get("layers", ())) for contract in contracts)


def room_of(path: Path) -> str:
    """Return the room, or the module, at the top level of the package that a path belongs to.

    >>> room_of(Path("pipeline/poker/cards.py")), room_of(Path("pipeline/cli.py"))
    ('poker', 'cli')
    """
    return path.with_suffix("").parts[1]


def edges(trees: dict[Path, ast.Module]) -> set[tuple[str, str]]:
    """Return the pairs (importing room, imported room), imports inside functions included."""
    tops = {room_of(path) for path in trees}
    pairs = set()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            for module in modules:
                words = module.split(".")
                if words[0] == "pipeline" and len(words) > 1 and words[1] in tops:
                    pairs.add((room_of(path), words[1]))
    return {(a, b) for a, b in pairs if a != b and not a.startswith("__")}


def functions(trees: dict[Path, ast.Module]) -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function of the package with its file."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def vague_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, int]:
    """Return the vague names that a function binds and uses over at least `MIN_SPAN` lines, with their lines."""
    lines: dict[str, list[int]] = defaultdict(list)
    bound = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)} & VAGUE
    for name in bound:
        lines[name].append(function.lineno)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in VAGUE:
            lines[node.id].append(node.lineno)
            if isinstance(node.ctx, ast.Store):
                bound.add(node.id)
    return {name: min(lines[name]) for name in bound if max(lines[name]) - min(lines[name]) + 1 >= MIN_SPAN}


def places(trees: dict[Path, ast.Module]) -> list[Place]:
    """Return every vague name, "What" docstring and name with several owners."""
    result = []
    for path, function in functions(trees):
        for name, line in vague_names(function).items():
            result.append(Place("vague", path, line, f"{function.name} binds `{name}`"))
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text and text.startswith("What "):
                    line = getattr(node, "lineno", 1)
                    result.append(Place("what", path, line, text.split("\n")[0]))
    for name, owners in several_owners(trees).items():
        others = ", ".join(map(str, owners))
        result += [Place("owners", path, line, f"`{name}` is defined in {others}") for path, line in owners.items()]
    return result


def several_owners(trees: dict[Path, ast.Module]) -> dict[str, dict[Path, int]]:
    """Return the public names that more than one module defines, with the line in each.

    Overloads in a module are one definition, and a room that finds its parts by a name (`CONVENTIONS`) is one owner.
    """
    lines: dict[str, dict[Path, int]] = defaultdict(dict)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                lines[node.name][path] = node.lineno
    result = {}
    for name, by_path in lines.items():
        owners = {room_of(path) if room_of(path) == CONVENTIONS.get(name) else path for path in by_path}
        if len(owners) > 1:
            result[name] = by_path
    return result


def measure(root: Path) -> dict[str, float]:
    """Return every number by its name in `MEASURES`."""
    trees = sources(root)
    listed = places(trees)
    vague = {(place.path, place.line, place.text.split(" binds ")[0]) for place in listed if place.kind == "vague"}
    texts = [(root / path).read_text(encoding="utf-8").splitlines() for path in trees]
    line_count = sum(map(len, texts))
    comments = sum(line.lstrip().startswith("#") for text in texts for line in text)
    values = [
        len(top_level(root)),
        layers(root),
        len(edges(trees)),
        line_count,
        len(trees),
        100 * len({(path, name) for path, _, name in vague}) / max(1, sum(1 for _ in functions(trees))),
        sum(place.kind == "what" for place in listed),
        len(several_owners(trees)),
        1000 * comments / max(1, line_count),
    ]
    return {part.name: value for part, value in zip(MEASURES, values, strict=True)}


def table(numbers: dict[str, float]) -> str:
    """Return the numbers as aligned text: before, now, limit and target of each."""
    lines = [f"{'':<38}{'before':>10}{'now':>10}{'limit':>10}{'target':>10}"]
    for part in MEASURES:
        cells = (part.before, numbers[part.name], part.limit, part.target)
        lines.append(f"{part.name:<38}" + "".join(f"{'-' if x is None else f'{x:,.5g}':>10}" for x in cells))
    return "\n".join(lines)


def main() -> None:
    """Print the numbers, or what stands behind them, or fail where one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", help="list what is counted in this room")
    parser.add_argument("--check", action="store_true", help="fail if a number is above its limit")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to measure; default: this one")
    options = parser.parse_args()
    if options.room:
        for place in places(sources(options.root)):
            if room_of(place.path) == options.room:
                print(place)
        return
    numbers = measure(options.root)
    print(table(numbers))
    above = [part.name for part in MEASURES if part.limit is not None and numbers[part.name] > part.limit]
    if options.check and above:
        sys.exit(f"error: above the limit: {', '.join(above)} (python -m tools.house --room NAME lists the places)")


if __name__ == "__main__":
    main()
