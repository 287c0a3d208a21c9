"""What a release writes into its copy of the tree: the repository's address, and nothing into the tree itself."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from test_docs import LINK, ROOT

from pipeline.runtime.version import __version__
from tools.release import prepare

ADDRESS, TAG = "https://host.example/someone/acpc-pipeline", f"v{__version__}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_links_and_pictures_of_the_package_page_are_absolute_and_lead_to_files(tree: Path) -> None:
    prepare(tree, ADDRESS, TAG)
    targets = [link["target"] for link in LINK.finditer((tree / "README.md").read_text())]
    assert all(target.startswith("https://") for target in targets)
    places = [re.fullmatch(rf"{ADDRESS}/(raw|blob)/{TAG}/([^#]+)(#.*)?", target) for target in targets]
    assert sum(place is not None for place in places) > 15
    assert all((ROOT / place[2]).exists() for place in places if place)
    assert {Path(place[2]).suffix for place in places if place and place[1] == "raw"} <= {".svg", ".webp"}


def test_the_package_names_its_repository(tree: Path) -> None:
    prepare(tree, ADDRESS, TAG)
    before, after = (tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (ROOT, tree))
    assert after.pop("urls")["Repository"] == ADDRESS
    assert after == before


@pytest.mark.parametrize(
    ("address", "tag", "sentence"),
    [
        (ADDRESS, "v0.0.1", "the tag v0.0.1 is not v"),
        ("host.example/x", TAG, "is not the https address of a repository"),
        ("https://host.example/a b", TAG, "is not the https address of a repository"),
    ],
)
def test_a_wrong_tag_or_address_is_refused(tree: Path, address: str, tag: str, sentence: str) -> None:
    before = (tree / "README.md").read_bytes()
    with pytest.raises(SystemExit, match=sentence):
        prepare(tree, address, tag)
    assert (tree / "README.md").read_bytes() == before


def test_the_lowest_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(text for name in extras if name not in ("all", "test") for text in extras[name]),
    ]
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    lowest = {name: version.removesuffix(".*") for name, version in (line.split("==") for line in lines)}
    assert lowest == {re.sub(r"\[.*\]", "", name): least for name, least in (text.split(">=") for text in wanted)}
