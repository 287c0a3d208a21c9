"""True probabilities by file, hand and action."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.evaluation.truth import read_truth
from pipeline.runtime.errors import PipelineError


def write(path: Path, **columns: list) -> Path:
    """A Parquet file of these columns."""
    pq.write_table(pa.table(columns), path)
    return path


def test_probabilities_are_found_by_file_hand_and_action(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.parquet",
        file=["a.0.log", "a.0.log", "b.0"],
        hand=[0, 7, 7],
        k=[0, 3, 3],
        f=[0.0, 0.25, 0.0],
        c=[1.0, 0.25, 0.5],
        r=[0.0, 0.5, 0.5],
    )
    truth = read_truth(path, "fcr")
    found = truth.find(
        ["x.log", "a.0.log.bz2", "b.0.log"], np.array([1, 2, 0, 1]), np.array([7, 7, 7, 8]), np.array([3] * 4)
    )
    assert found[:2].tolist() == [[0.25, 0.25, 0.5], [0.0, 0.5, 0.5]]
    assert np.isnan(found[2:]).all()


def test_match_and_perm_stand_for_the_end_of_the_logs_name(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", match=[10], perm=[1], hand=[2], k=[0], pf=[0.1], pc=[0.2], pr=[0.7])
    truth = read_truth(path, "fcr")
    where = (np.array([0]), np.array([2]), np.array([0]))
    assert truth.find(["logs/2pl.x.y.10.1.log"], *where).tolist() == [[0.1, 0.2, 0.7]]
    assert np.isnan(truth.find(["2pl.x.y.10.0.log"], *where)).all()
    with pytest.raises(PipelineError, match="could be"):
        truth.find(["2pl.x.y.10.1.log", "2pl.x.z.10.1.log"], *where)


def test_a_decision_given_twice_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.parquet", file=["a", "a.log"], hand=[1, 1], k=[2, 2], f=[0.0] * 2, c=[1.0] * 2, r=[0.0] * 2
    )
    with pytest.raises(PipelineError, match="comes twice"):
        read_truth(path, "fcr")


def test_what_is_no_distribution_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", file=["a"], hand=[1], k=[2], f=[0.5], c=[0.9], r=[0.0])
    with pytest.raises(PipelineError, match="no distribution"):
        read_truth(path, "fcr")


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", file=["a"], hand=[1], k=[2], f=[0.5], c=[0.5])
    with pytest.raises(PipelineError, match="no column pr"):
        read_truth(path, "fcr")
    (tmp_path / "text").write_text("not parquet")
    with pytest.raises(PipelineError, match="not a Parquet file"):
        read_truth(tmp_path / "text", "fcr")
    with pytest.raises(PipelineError, match="no such file"):
        read_truth(tmp_path / "nowhere", "fcr")
