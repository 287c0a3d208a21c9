"""Datasets of many logs: the manifest in pieces says what one file would, and memory follows the work."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from test_ingest import BARE, LIMIT, log, tree

from pipeline.api.overview import describe as info
from pipeline.dataset.load import load_decisions
from pipeline.dataset.manifest import data_fingerprint, read_manifest
from pipeline.dataset.opening import verify
from pipeline.ingestion import batches, commit, plan
from pipeline.ingestion.log_context import first_context
from pipeline.ingestion.parts import PartLines, scan_chunk
from pipeline.ingestion.run import ingest
from pipeline.runtime.errors import PipelineError


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Nine logs: one cut short, one with a bad line, one whose name lacks a player, and a file that is none."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for i in range(9):
        (folder / f"2pl.Ann.Bob.{i}.0.log").write_text(log(LIMIT, 12, i))
    text = (folder / "2pl.Ann.Bob.3.0.log").read_text()
    (folder / "2pl.Ann.Bob.3.0.log").write_text("".join(text.splitlines(keepends=True)[:-4]))
    (folder / "2pl.Ann.Cy.9.0.log").write_text(log(LIMIT, 12, 9) + "STATE:nonsense\n")
    (folder / "notes.txt").write_text("nothing\n")
    return folder


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three logs be many."""
    monkeypatch.setattr(commit, "LISTED_LOGS", 3)
    monkeypatch.setattr(batches, "PART_FILES", 2)
    monkeypatch.setattr(plan, "FEWEST", 4)
    monkeypatch.setattr(plan, "MOST", 4)


def test_a_manifest_in_pieces_says_what_a_single_file_would(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "PART_FILES", 2)
    monkeypatch.setattr(plan, "MOST", 4)
    whole = ingest([logs], tmp_path / "whole", BARE)
    monkeypatch.setattr(commit, "LISTED_LOGS", 3)
    split = ingest([logs], tmp_path / "split", BARE)
    assert {**split.json(), "seconds": 0} == {**whole.json(), "seconds": 0}
    assert (len(whole.truncated), len(whole.misnamed), len(whole.skipped), whole.files) == (1, 1, 1, 10)
    one, many = read_manifest(tmp_path / "whole"), read_manifest(tmp_path / "split")
    assert not one.pieces
    assert len(many.pieces) > 2
    assert list(many.details()) == list(one.details())
    assert many.logs == one.logs
    assert (many.hands, many.fingerprint, data_fingerprint(many)) == (one.hands, one.fingerprint, data_fingerprint(one))
    assert many.knows_packed
    facts = [dict(info(tmp_path / name, verify=True).facts) for name in ("whole", "split")]
    for name in ("path", "files", "bytes"):
        assert facts[0].pop(name) != facts[1].pop(name)
    assert facts[0] == facts[1]
    small = json.loads((tmp_path / "split" / "manifest.json").read_text())
    assert (small["sources"], small["batches"]) == ([], [])
    assert all(part["logs"] == {} for part in small["parts"])
    rows = tree(tmp_path / "split")
    assert {name: data for name, data in tree(tmp_path / "whole").items() if name != "manifest.json"} == {
        name: data for name, data in rows.items() if not name.startswith("manifest")
    }
    assert len(load_decisions(tmp_path / "split")) == whole.decisions


def test_a_dataset_of_one_manifest_grows_into_pieces_and_back_to_the_same_bytes(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "PART_FILES", 2)
    monkeypatch.setattr(plan, "MOST", 4)
    files = sorted(logs.glob("*.log"))
    ingest(files[:5], tmp_path / "rows", BARE)
    monkeypatch.setattr(commit, "LISTED_LOGS", 3)
    ingest(files[5:], tmp_path / "rows", BARE)
    again = ingest(files, tmp_path / "rows", BARE)
    assert (again.new, again.unchanged) == (0, 10)
    ingest(files, tmp_path / "whole", BARE)
    assert tree(tmp_path / "rows") == tree(tmp_path / "whole")
    files[0].write_text(log(LIMIT, 13, 77))
    changed = ingest(files, tmp_path / "rows", BARE)
    assert (changed.new, changed.changed) == (0, 1)
    ingest(files, tmp_path / "changed", BARE)
    assert tree(tmp_path / "rows") == tree(tmp_path / "changed")
    for path in files[:4]:
        path.unlink()  # what is gone stays in its batch
    kept = ingest(files[4:], tmp_path / "rows", BARE)
    assert kept.files == 10


def test_a_log_that_is_read_again_must_have_the_bytes_that_it_had(tmp_path: Path) -> None:
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    for i, path in enumerate((first, second)):
        path.write_text(log(LIMIT, 6, i))
    ingest([first], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    text = first.read_text()
    first.write_text(text[:-2] + ("a" if text[-2] != "a" else "b") + text[-1])  # as many bytes, so it is still there
    with pytest.raises(PipelineError, match=r"a\.log has changed since it was ingested: name it again"):
        ingest([second], tmp_path / "rows", BARE)
    assert {name: data for name, data in tree(tmp_path / "rows").items() if ".unfinished" not in name} == before
    ingest([first, second], tmp_path / "rows", BARE)
    ingest([first, second], tmp_path / "whole", BARE)
    assert tree(tmp_path / "rows") == tree(tmp_path / "whole")


@pytest.mark.usefixtures("in_pieces")
def test_logs_of_an_archive_are_in_the_piece_of_their_part(logs: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(logs, "logs")
    ingest([tmp_path / "all.tar"], tmp_path / "packed", BARE)
    ingest([logs], tmp_path / "plain", BARE)
    packed, plain = read_manifest(tmp_path / "packed"), read_manifest(tmp_path / "plain")
    assert len(packed.pieces) > 1
    assert max(len(line.packed or []) for line in packed.details()) <= 3
    assert {entry.sha256 for entry in packed.logs} == {entry.sha256 for entry in plain.logs}
    (digest,) = {source.sha256 for line in packed.details() for source in line.sources}
    assert {entry.source_sha256 for entry in packed.logs} == {digest}


@pytest.mark.usefixtures("in_pieces")
def test_a_damaged_or_missing_piece_is_named(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    piece = sorted((tmp_path / "rows" / "manifest").iterdir())[0]
    sound = piece.read_bytes()
    piece.write_bytes(sound.replace(b'"hands": 12', b'"hands": 13', 1))
    with pytest.raises(PipelineError, match=r"jsonl is damaged: restore it"):
        list(read_manifest(tmp_path / "rows").details())
    with pytest.raises(PipelineError, match=r"jsonl is damaged: restore it"):
        ingest([logs], tmp_path / "rows", BARE)
    assert [sentence for sentence in verify(tmp_path / "rows") if "jsonl is damaged" in sentence]
    assert len(load_decisions(tmp_path / "rows")) > 0  # rows are read without it
    piece.unlink()
    with pytest.raises(PipelineError, match=r"jsonl is missing: restore it"):
        ingest([logs], tmp_path / "rows", BARE)
    piece.write_bytes(sound)
    assert ingest([logs], tmp_path / "rows", BARE).unchanged == 11


@pytest.mark.usefixtures("in_pieces")
def test_a_missing_file_of_a_dataset_in_pieces_is_made_again(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    sorted((tmp_path / "rows" / "hands").iterdir())[-1].unlink()
    ingest([logs], tmp_path / "rows", BARE)
    assert tree(tmp_path / "rows") == before


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../x.jsonl"},
        {"path": "manifest/../../aaaaaaaaaaaaaaaa.jsonl"},
        {"sha256": "x"},
        {"bytes": -1},
        {"batches": "all"},
    ],
)
@pytest.mark.usefixtures("in_pieces")
def test_pieces_that_no_ingest_writes_are_refused(change: dict[str, object], logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    path = tmp_path / "rows" / "manifest.json"
    content = json.loads(path.read_text())
    content["pieces"][0].update(change)
    path.write_text(json.dumps(content))
    with pytest.raises(PipelineError, match=r"ingest the logs into a new folder"):
        read_manifest(tmp_path / "rows")


def test_a_short_log_takes_little_memory_while_its_part_is_scanned() -> None:
    data = log(LIMIT, 1, 5).encode()
    context = first_context(BARE, "x", data, b"")
    lines = [PartLines(f"{i}", i, 1, context, np.frombuffer(data, np.uint8), b"") for i in range(50)]
    chunk = scan_chunk(lines, BARE)
    assert len(chunk.hands) == 50
    arrays = [array for hands, *_ in chunk.hands for array in hands.buffer] + [bad.records for bad in chunk.rejected]
    owners = {id(owner): owner.nbytes for owner in (array if array.base is None else array.base for array in arrays)}
    assert sum(owners.values()) < 50 * 6_000
