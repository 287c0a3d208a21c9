"""The cache folder: what clearing it removes, and what it never touches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pipeline.cli.main import group, main
from pipeline.runtime.diskcache import CACHE_FOLDERS, TAG, clear_cache, locked, store_array, store_bytes


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fill(root: Path) -> list[Path]:
    """Write a file of every form that the cache has; return all of them."""
    table = np.arange(3)
    with locked(root / "strength"):
        for path in ("strength/flop.npy", "strength/fifths-turn.npy", f"teacher/{'0a' * 8}/turn.npy"):
            store_array(root / path, table, 1)
    store_array(root / f"explorer/{'0a' * 12}.npy", table, 1)
    for name in ("clusters/flop-10-1.clusters", f"kernels/{'0a' * 8}/pipeline.x.y-1-{'0a' * 8}.kernel"):
        store_bytes(root / name, b"x", 1)
    store_bytes(root / "teacher" / f"exploited-{'0a' * 16}-120000-1-thread.json", b"x", 1)
    (root / "clusters" / ".flop-10-1.clusters.123.part").write_bytes(b"x")
    return [path for path in root.rglob("*") if path.is_file()]


def test_clearing_removes_what_the_cache_wrote_and_says_so(root: Path) -> None:
    written = fill(root)
    shown = CliRunner().invoke(group, ["cache", "clear"])
    assert shown.exit_code == 0, shown.output
    assert list(root.rglob("*")) == [root / TAG]
    for name in CACHE_FOLDERS:
        assert f"of {name}," in shown.output
    assert sum(files for files, _ in clear_cache().removed.values()) == 0
    assert sum(int(line.split()[1]) for line in shown.output.splitlines()[1:]) == len(written) - 1


def test_clearing_leaves_files_that_the_cache_did_not_make(root: Path, tmp_path: Path) -> None:
    fill(root)
    mine = [root / name for name in ("teacher/notes.txt", "explorer/photos/1.png", "kernels/a.kernel", "own.txt")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine", encoding="utf-8")
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "flop-10-1.clusters").write_text("mine", encoding="utf-8")
    (root / "clusters").rename(root / "other")
    (root / "clusters").symlink_to(tmp_path / "clusters")
    shown = CliRunner().invoke(group, ["cache", "clear"])
    assert shown.exit_code == 0, shown.output
    assert all(path.read_text(encoding="utf-8") == "mine" for path in mine)
    assert (tmp_path / "clusters" / "flop-10-1.clusters").exists()
    assert f"left, because it is not of this program: {str(mine[0])!r}" in shown.stderr


@pytest.mark.parametrize("used", [False, True])
def test_a_folder_that_had_files_before_is_never_cleared(
    used: bool, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    look_alike = root / "teacher" / ("0a" * 8) / "flop.npy"
    look_alike.parent.mkdir(parents=True)
    look_alike.write_text("mine", encoding="utf-8")
    if used:
        store_bytes(root / "clusters/flop-10-1.clusters", b"x", 1)
    with pytest.raises(SystemExit):
        main(["cache", "clear"])
    assert f"{root} has no CACHEDIR.TAG" in capsys.readouterr().err
    assert look_alike.read_text(encoding="utf-8") == "mine"


def test_the_cache_at_its_usual_place_is_cleared_without_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIPELINE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "acpc-pipeline" / "clusters" / "flop-10-1.clusters"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"of an older version")
    assert clear_cache().removed["clusters"] == (1, 19)
    assert not path.parent.exists()
