"""README and docs are facts: links resolve, generated parts are fresh, commands have those options, blocks run.

A fenced block of `sh` or `python` is run in a folder that is made like a fresh clone after its first ingest and
training (small logs). A block after `<!-- checked, not run: REASON -->` is only checked: its commands are parsed by the
real options of the real commands.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner
from generated_docs import ROOT, all_commands, pages

from benchmarks.__main__ import TOPICS
from pipeline.cli.main import group

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "models").glob("*.md")])
FENCE = re.compile(
    r"(?:<!-- checked, not run: (?P<reason>[^\n]+?) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.S | re.M
)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    body: str
    run: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(kind: str) -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            if found["kind"] == kind:
                line = text.count("\n", 0, found.start("body")) + 1
                yield Block(page, line, kind, found["body"], found["reason"] is None)


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of every `pipeline` command in a shell block."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in line.split("|") if " pipeline " in f" {line}" and "'" not in line else [line]:
            words = shlex.split(part, comments=True)
            if words[:1] == ["pipeline"]:
                yield words[1:]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for found in LINK.finditer(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)):
        target, _, anchor = found["target"].partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {found['target']}"
        assert not anchor or anchor in anchors(path), f"{page.name} links to {found['target']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_its_language(page: Path) -> None:
    kinds = {found["kind"] for found in FENCE.finditer(page.read_text())}
    assert kinds <= {"sh", "python", "text"}, f"{page.name}: {kinds}"


def test_generated_parts_are_fresh() -> None:
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_pages_are_written_for_strangers() -> None:
    for page in PAGES:
        text = page.read_text()
        assert not re.search(r"\basked:? \|", text), f"{page.name} calls a target `asked`"
        assert "python -m pipeline " not in re.sub(r"^```text.*?^```$", "", text, flags=re.S | re.M), page.name


def resolve(words: list[str]) -> tuple[click.Command, list[str], click.Context]:
    """The command that words name, and the rest of them."""
    command: click.Command = group
    context = click.Context(group, info_name="pipeline")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"no command {words[0]}"
        context = click.Context(found, info_name=words[0], parent=context)
        command, words = found, words[1:]
    return command, words, context


def parse(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command's own parser read the words; files need not exist."""
    command, rest, context = resolve(words)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            monkeypatch.setattr(parameter.type, "exists", False)
    command.make_context(context.info_name, list(rest), parent=context.parent, resilient_parsing=False)


@pytest.mark.parametrize("block", list(blocks("sh")), ids=str)
def test_commands_have_these_options(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = []
    for words in commands(block.body):
        try:
            parse(words, monkeypatch)
        except click.exceptions.Exit:  # --help, --version
            pass
        except click.ClickException as error:
            refused.append(f"pipeline {shlex.join(words)}: {error.format_message()}")
    assert refused == []


def examples() -> Iterator[tuple[str, str]]:
    """The examples in the help of every command."""
    for words, command in all_commands():
        text = " ".join((command.help or "").split()) + "  " + " ".join((command.epilog or "").split())
        for found in re.finditer(r"Example: (.*?)(?=  |Example:|$)", text):
            yield words, found[1].strip()


@pytest.mark.parametrize(("words", "example"), list(examples()))
def test_help_examples_have_these_options(words: str, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = shlex.split(example)
    assert given[0] == "pipeline", f"{words}: {example}"
    parse(given[1:], monkeypatch)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a fresh clone after its first ingest and training."""
    import pipeline as p

    root = tmp_path_factory.mktemp("clone")
    logs = root / "path" / "to" / "logs"
    logs.mkdir(parents=True)
    (root / "data" / "sample").mkdir(parents=True)
    shutil.copytree(ROOT / "data" / "acpc2013", root / "data" / "acpc2013")
    for log in sorted((ROOT / "data" / "sample").glob("*.log")):
        head = "".join(log.read_text().splitlines(keepends=True)[:400])
        (root / "data" / "sample" / log.name).write_text(head)
        (logs / log.name).write_text(head)
    shutil.copy(ROOT / "data" / "sample" / "sample.probs.parquet", root / "data" / "sample")
    for name in ("models", "examples"):
        shutil.copytree(ROOT / name, root / name)
    shutil.make_archive(str(root / "more"), "bztar", root / "data" / "sample")
    (root / "more.tar.bz2").exists()
    p.ingest(logs, root / "out" / "rows", strength=False, workers=1)
    p.train(root / "out" / "rows", root / "out" / "teacher", agent="teacher", pattern="thesis", max_iterations=10)
    return root


def quick(words: list[str]) -> list[str]:
    """A command as it is, in fewer hands where the page names many."""
    if "--hands" in words:
        at = words.index("--hands") + 1
        words = [*words[:at], str(min(int(words[at]), 200)), *words[at + 1 :]]
    return words


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ("README.md", "CONTRIBUTING.md")], ids=lambda page: page.name
)
def test_blocks_run(page: Path, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone)
    space: dict[str, object] = {}
    kinds = [block for kind in ("sh", "python") for block in blocks(kind) if block.page == page and block.run]
    for block in sorted(kinds, key=lambda block: block.line):
        if block.kind == "python":
            exec(compile(block.body, str(block), "exec"), space)
            continue
        for words in commands(block.body):
            shown = CliRunner().invoke(group, quick(words), input="c\nc\nf\nq\n" * 50, catch_exceptions=True)
            assert shown.exit_code == 0, f"{block}: {shlex.join(words)}: {shown.output[-500:]} {shown.exception!r}"


def test_the_page_of_figures_names_every_topic_of_the_benchmarks() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    lines = [line.split(" --")[0] for line in re.findall(r"^python -m benchmarks (.+)$", page, re.M)]
    assert {word for line in lines for word in line.split()} == set(TOPICS)
