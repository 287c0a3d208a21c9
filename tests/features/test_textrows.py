"""Rows in the thesis's text form."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest

from pipeline.features.textrows import read_rows
from pipeline.runtime.errors import PipelineError


def test_rows_have_hashed_columns_actions_and_sequences(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"flop  blind\tx c\r\nflop button x r\n\n\nturn blind y f")
    rows = read_rows(path)
    assert rows.labels == ("f", "c", "r")
    assert rows.action.tolist() == [1, 2, 0]
    assert rows.first.tolist() == [0, 0, 2]
    assert rows.columns.shape == (3, 3)
    assert rows.columns[0, 0] == rows.columns[1, 0] != rows.columns[2, 0]
    assert rows.previous().tolist() == [0, 2, 0]
    assert rows.cell(-1, 1)[1] == rows.columns[0, 1]
    assert rows.cell(-1, 1)[0] == rows.cell(-1, 1)[2] == -1
    assert rows.cell(1, 1)[0] == rows.columns[1, 1]


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files_hold_the_same_rows(tmp_path, suffix, compress):
    data = b"a b f\n\nc d r\n"
    (tmp_path / "rows.txt").write_bytes(data)
    (tmp_path / f"rows.txt{suffix}").write_bytes(compress(data))
    plain, packed = read_rows(tmp_path / "rows.txt"), read_rows(tmp_path / f"rows.txt{suffix}")
    assert np.array_equal(plain.columns, packed.columns)


def test_the_hash_is_fnv_1a(tmp_path):
    (tmp_path / "rows.txt").write_bytes(b"a f\n\na r\n")
    assert read_rows(tmp_path / "rows.txt").columns[0, 0].astype(np.uint64) == 0xAF63DC4C8601EC8C


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no rows"),
        (b"\n \n", "no rows"),
        (b"f\n", "at least one column"),
        (b"a b f\n\na f\n", "rows.txt:3: the row has not 3 columns"),
        (b"a b f\na b c d\n", "rows.txt:2"),
    ],
)
def test_bad_files_are_named(tmp_path, data, message):
    path = tmp_path / "rows.txt"
    path.write_bytes(data)
    with pytest.raises(PipelineError, match=message):
        read_rows(path)


def test_an_action_unknown_in_training_is_refused(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"a q\n")
    with pytest.raises(PipelineError, match="'q'"):
        read_rows(path, ("f", "c"))
