"""What is held out is one thing, wherever it is written down; logs are known by their bytes, also in archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import pipeline as p
from pipeline.dataset.manifest import IngestedLog, read_manifest
from pipeline.dataset.split import BY_DEAL, BY_PLAYER, Split
from pipeline.runtime.errors import PipelineError


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("split") / "logs"
    p.match("@call", "@chump:rock", hands=30, log=folder / "a")
    p.match("@call", "@chump:rock", hands=30, seed=2, log=folder / "b")
    return folder


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def packed(logs: Path, path: Path) -> Path:
    """An archive of all logs, the last of them compressed in it, beside a file that is no log."""
    with tarfile.open(path, "w") as archive:
        files = {log.name: log.read_bytes() for log in sorted(logs.iterdir())}
        last = max(files)
        files[f"{last}.gz"] = gzip.compress(files.pop(last))
        for name, data in {**files, "notes.txt": b"no log\n"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def test_splits_are_equal_if_they_hold_out_the_same_rows() -> None:
    aliases = (("old", "new"),)
    assert Split() == Split(aliases=aliases)  # the deal decides, whatever players are called
    assert Split(hold_out="players") != Split()
    assert Split(hold_out="players", aliases=aliases) != Split(hold_out="players")
    assert Split(("b", "a")) == Split(("a", "b"), "players", aliases) != Split()


@pytest.mark.parametrize(
    ("split", "words", "side"),
    [
        (Split(), "one deal in ten", BY_DEAL),
        (Split(hold_out="players"), "one player in ten", BY_PLAYER),
        (Split(("*.1.log", "x/*")), "the files *.1.log, x/*", 0),
        (Split(("a.*",)), "the files a.*", 1),
    ],
)
def test_a_split_says_what_it_holds_out_and_on_which_side_a_log_is(split: Split, words: str, side: int) -> None:
    assert split.words == words
    assert split.held_out("logs/a.0.log") == side


@pytest.mark.parametrize(
    "settings",
    [
        *(None, [], {}, {"validation": 3}, {"validation": [3]}, {"validation": [], "hold_out": 3}),
        *({"validation": [], "hold_out": ["deals"]}, {"validation": [], "alias": ["x"]}),
    ],
)
def test_settings_that_say_nothing_of_a_split_give_none(settings: Any) -> None:
    assert Split.read(settings) is None


def test_settings_from_before_players_could_be_held_out_hold_out_deals() -> None:
    assert Split.read({"agent": [], "alias": {"a": "b"}, "validation": [], "strength": False}) == Split()


def test_every_log_in_an_archive_is_known_by_its_bytes(logs: Path, tmp_path: Path) -> None:
    archive = packed(logs, tmp_path / "all.tar")
    p.ingest(archive, tmp_path / "rows", strength=False)
    p.ingest(logs, tmp_path / "plain", strength=False)
    manifest, plain = read_manifest(tmp_path / "rows"), read_manifest(tmp_path / "plain")
    assert manifest.knows_packed
    expected = {sha256(log.read_bytes()) for log in logs.iterdir()}
    assert {log.sha256 for log in manifest.logs} == {log.sha256 for log in plain.logs} == expected
    assert {log.source_sha256 for log in manifest.logs} == {sha256(archive.read_bytes())}
    assert {log.label for log in manifest.logs} >= {f"{archive}/a.0.log", f"{archive}/b.0.log"}
    assert all(log.sha256 == log.source_sha256 for log in plain.logs)


def test_logs_of_an_archive_from_standard_input_are_known_too(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(logs, tmp_path / "all.tar")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(archive.read_bytes())))
    p.ingest("-", tmp_path / "rows", strength=False)
    manifest = read_manifest(tmp_path / "rows")
    assert {log.sha256 for log in manifest.logs} == {sha256(log.read_bytes()) for log in logs.iterdir()}
    assert {log.source_sha256 for log in manifest.logs} == {sha256(archive.read_bytes())}


def test_an_older_dataset_knows_its_archives_alone(logs: Path, tmp_path: Path) -> None:
    archive = packed(logs, tmp_path / "all.tar")
    p.ingest(archive, tmp_path / "rows", strength=False)
    path = tmp_path / "rows" / "manifest.json"
    content = json.loads(path.read_text())
    for batch in content["batches"]:
        del batch["packed"]
    path.write_text(json.dumps(content))
    manifest, digest = read_manifest(tmp_path / "rows"), sha256(archive.read_bytes())
    assert not manifest.knows_packed
    assert manifest.logs == [IngestedLog(str(archive), digest, digest)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["batches"][0].update(packed=[["x"]]), "without a checksum"),
        (lambda content: content["batches"][0].update(packed=[["x", "y"]]), "without a checksum"),
        (lambda content: content["options"].update(hold_out="cards"), "neither deals nor players"),
    ],
)
def test_a_manifest_with_other_checksums_or_splits_is_refused(
    change: Any, message: str, logs: Path, tmp_path: Path
) -> None:
    p.ingest(logs, tmp_path / "rows", strength=False)
    path = tmp_path / "rows" / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(PipelineError, match=message):
        read_manifest(tmp_path / "rows")
