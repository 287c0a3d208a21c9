"""The measure of the package's size and words counts what it says it counts."""

from __future__ import annotations

from pathlib import Path

from tools.house import CONVENTIONS, MEASURES, ROOT, measure, several_owners, sources, table

CONTRACT = '[tool.importlinter]\n[[tool.importlinter.contracts]]\nlayers = ["pipeline.cli", "pipeline.agents"]\n'


def tree(folder: Path, modules: dict[str, str]) -> Path:
    """Write a small package with an import contract of two layers."""
    (folder / "pyproject.toml").write_text(CONTRACT)
    for name, text in modules.items():
        path = folder / "pipeline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_each_number_is_counted_in_a_small_tree(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "agents/rules.py": '"""What rules do."""\n\ndef deal(): pass\n',
            "cli/main.py": "from pipeline.agents import rules\n# comment\ndef deal():\n    at = 1\n\n\n    return at\n",
        },
    )
    assert list(measure(root).values()) == [2, 2, 1, 10, 2, 50, 1, 1, 100]


def test_overloads_and_names_by_convention_have_one_owner(tmp_path: Path) -> None:
    modules = {"agents/a.py": "def make(): pass\n", "agents/b.py": "def make(): pass\n"}
    modules["runtime/kernels.py"] = "def kernel(): pass\n" * 3
    assert several_owners(sources(tree(tmp_path, modules))) == {}
    modules["web/app.py"] = "def make(): pass\n"
    assert list(several_owners(sources(tree(tmp_path, modules)))) == ["make"]


def test_a_name_is_exempt_only_by_a_convention_that_is_written_down() -> None:
    words = (ROOT / "docs" / "architecture.md").read_text().partition("## Names that repeat")[2].split()
    text = " ".join(words)
    assert all(f"`{name}` in `{room}/`" in text for name, room in CONVENTIONS.items())


def test_the_table_shows_a_number_beside_its_limit_and_its_target() -> None:
    lines = table({part.name: 1.0 for part in MEASURES}).splitlines()
    limit = next(part.limit for part in MEASURES if part.name == "lines")
    assert lines[4].split() == ["lines", "59,259", "1", f"{limit:,}", "47,000"]
    assert lines[-1].split()[-3:] == ["1", "-", "-"]
