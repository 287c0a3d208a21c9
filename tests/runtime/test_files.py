"""Replacing files and folders: whoever is killed in between leaves the old one or the new one, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.runtime import files
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import discard, recover, replacing, write_text

CHILD = """
import os, signal, sys
from pathlib import Path
from pipeline.runtime import files

target, kind, last, can_exchange = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "yes"
seen = 0

def step():
    global seen
    seen += 1
    if seen == last:
        os.kill(os.getpid(), signal.SIGKILL)

def watch(event, arguments):
    changes = event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")
    changes |= event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR) > 0
    if changes and str(target.parent) in str(arguments[0]):
        step()

exchange = files._exchange

def exchanged(one, other):
    step()
    found = exchange(one, other) if can_exchange else False
    step()
    return found

files._exchange = exchanged
sys.addaudithook(watch)
if kind == "discarded":
    files.discard(target)
    print(seen)
    sys.exit()
with files.replacing(target) as beside:
    if kind == "file":
        beside.write_text("new")
    else:
        beside.mkdir()
        for name in "ab":
            (beside / name).write_text("new")
print(seen)
"""


def replaced(target: Path, kind: str, last: int, can_exchange: bool) -> subprocess.CompletedProcess[str]:
    """Replace the target in a process of its own that is killed at its `last` change of the disk (0: never)."""
    words = [str(target), kind, str(last), "yes" if can_exchange else "no"]
    return subprocess.run([sys.executable, "-c", CHILD, *words], capture_output=True, text=True, check=False)


def old(target: Path, kind: str) -> None:
    if kind == "file":
        target.write_text("old")
        return
    target.mkdir()
    for name in "abc":
        (target / name).write_text("old")


def content(target: Path) -> object:
    return target.read_text() if target.is_file() else {path.name: path.read_text() for path in target.iterdir()}


@pytest.mark.parametrize(("kind", "can_exchange"), [("file", True), ("folder", True), ("folder", False)])
def test_a_process_killed_at_any_change_of_the_disk_leaves_the_old_or_the_new_whole(kind, can_exchange, tmp_path):
    whole = ["old", "new"] if kind == "file" else [dict.fromkeys("abc", "old"), dict.fromkeys("ab", "new")]
    first = tmp_path / "0" / "target"
    first.parent.mkdir()
    old(first, kind)
    done = replaced(first, kind, 0, can_exchange)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps >= (2 if kind == "file" else 8)
    for last in range(1, steps + 1):
        target = tmp_path / str(last) / "target"
        target.parent.mkdir()
        old(target, kind)
        assert replaced(target, kind, last, can_exchange).returncode == -signal.SIGKILL
        if not can_exchange:
            recover(target)
        assert content(target) in whole
        again = replaced(target, kind, 0, can_exchange)
        assert again.returncode == 0, again.stderr
        assert content(target) == whole[1]
        assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_leftovers_of_a_process_that_runs_are_not_touched(tmp_path):
    mine = tmp_path / f".target.{os.getppid()}.part"
    mine.touch()
    foreign = tmp_path / ".other.999999999.part"
    foreign.touch()
    with replacing(tmp_path / "target") as beside:
        beside.write_text("new")
    assert mine.exists()
    assert foreign.exists()
    assert (tmp_path / "target").read_text() == "new"


def test_leftovers_of_every_name_in_a_folder_are_cleaned(tmp_path):
    for name in "ab":
        (tmp_path / f".{name}.999999999.part").mkdir()
    for name in "ab":
        with replacing(tmp_path / name) as beside:
            beside.write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_what_is_discarded_leaves_nothing_of_killed_runs_behind(tmp_path):
    for name in ("target", ".target.999999999.part", ".target.999999998.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
    discard(tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_a_process_killed_while_it_discards_a_folder_leaves_it_whole_or_not_at_all(tmp_path):
    for last in range(1, 4):
        target = tmp_path / str(last) / "target"
        target.parent.mkdir()
        old(target, "folder")
        done = replaced(target, "discarded", last, True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not target.exists() or content(target) == dict.fromkeys("abc", "old")
        assert replaced(target, "discarded", 0, True).returncode == 0
        assert list(target.parent.iterdir()) == []


def test_a_block_that_fails_leaves_what_was_there(tmp_path):
    (tmp_path / "target").write_text("old")
    with pytest.raises(IsADirectoryError), replacing(tmp_path / "target") as beside:
        (beside.mkdir(), beside.write_text("half"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_folder_takes_the_place_of_a_file_and_a_file_that_of_a_folder(tmp_path):
    (tmp_path / "target").write_text("old")
    with replacing(str(tmp_path / "target")) as beside:
        beside.mkdir()
        (beside / "a").touch()
    assert (tmp_path / "target" / "a").is_file()
    with replacing(tmp_path / "target") as beside:
        beside.write_text("new")
    assert (tmp_path / "target").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_two_folders_change_places_on_this_system(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not files._exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot exchange two folders")
    assert (tmp_path / "a" / "b").exists()
    with pytest.raises(FileNotFoundError):
        files._exchange(tmp_path / "a", tmp_path / "nothing")


def test_a_text_takes_the_place_of_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    for text in ("Tarbäck\n", "short"):
        write_text(tmp_path / "folder" / "x.txt", text)
        assert [(path.name, path.read_bytes()) for path in (tmp_path / "folder").iterdir()] == [
            ("x.txt", text.encode())
        ]


def test_a_text_does_not_take_the_place_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(PipelineError, match="is a folder: name a file to write"):
        write_text(folder, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"
