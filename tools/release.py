"""Prepare a copy of the tree for a release: `python -m tools.release ADDRESS TAG`.

The repository's public address is written nowhere in the tree; whoever builds a release knows it (a workflow has it in
its environment). This writes it into pyproject.toml, as the addresses that a package page shows and that remedies for
missing packages name, and makes README's links and pictures absolute, since a package page has no files beside it.
The tag must be the version of the package. Run it in a fresh clone that is thrown away after the build.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pipeline.runtime.version import __version__

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<path>[^)\s]+)\)")


def absolute_links(text: str, address: str, tag: str) -> str:
    """Return a page with links to files of the repository made absolute.

    >>> absolute_links("![a](b.svg) [c](d.md#e) [f](https://g.example)", "https://h.example/i", "v1")
    '![a](https://h.example/i/raw/v1/b.svg) [c](https://h.example/i/blob/v1/d.md#e) [f](https://g.example)'
    """
    return LINK.sub(
        lambda link: (
            f"{link['image']}[{link['text']}]({address}/{'raw' if link['image'] else 'blob'}/{tag}/{link['path']})"
        ),
        text,
    )


def prepare(root: Path, address: str, tag: str) -> None:
    """Write the repository's address into README and pyproject.toml of a tree."""
    if tag != f"v{__version__}":
        sys.exit(f"error: the tag {tag} is not v{__version__}, the version of the package: change one of them")
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+", address):
        sys.exit(f"error: {address!r} is not the https address of a repository")
    readme, project = root / "README.md", root / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    if "[project.urls]" in text:
        sys.exit(f"error: {project} names addresses already: begin with a fresh clone")
    urls = f'[project.urls]\nRepository = "{address}"\nChangelog = "{address}/blob/{tag}/CHANGELOG.md"\n\n'
    project.write_text(text.replace("[project.scripts]", f"{urls}[project.scripts]", 1), encoding="utf-8")
    readme.write_text(absolute_links(readme.read_text(encoding="utf-8"), address, tag), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tools.release ADDRESS TAG")
    prepare(Path(__file__).parents[1], sys.argv[1].removesuffix("/"), sys.argv[2])
