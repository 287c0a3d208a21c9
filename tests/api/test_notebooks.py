"""The notebooks of examples/notebooks run, and show what is stored in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from notebooks import FOLDER, ROOT, run


def texts(notebook: dict[str, Any]) -> list[str]:
    """What the cells print and show as text."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [output["text"] if "text" in output else output["data"]["text/plain"] for output in outputs]


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_runs_and_shows_what_it_stores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    stored = (FOLDER / name).read_text(encoding="utf-8")
    assert texts(run(FOLDER / name)) == texts(json.loads(stored))
    assert len(texts(json.loads(stored))) >= 3
    for path in (str(ROOT), str(Path.home()), "/tmp/"):
        assert path not in stored
