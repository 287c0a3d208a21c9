"""The explorer's index of hands: what the logs say, opened again from the cache, usable while it is made."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import pipeline as p
import pipeline.web.archive as module
from pipeline.formats.acpc import Hand, parse_hand
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import no_progress
from pipeline.web.archive import Archive, ArchiveReader, Filter

NOLIMIT = builtin("holdem.nolimit.3p")


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Hand]]:
    """A dataset of no-limit hands of three players, and its hands."""
    folder = tmp_path_factory.mktemp("archive")
    p.match("@random", "@call", "@equity", game=NOLIMIT, hands=300, seed=2, log=folder / "logs" / "m")
    hands = []
    for log in sorted((folder / "logs").glob("*.log")):
        hands += [parse_hand(line) for line in log.read_text().splitlines() if line.startswith("STATE:")]
    p.ingest(folder / "logs", folder / "rows", strength=False)
    return folder / "rows", hands


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and pieces so small that a dataset has several."""
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "BATCH_HANDS", 64)
    return tmp_path / "cache" / "explorer"


def test_every_hand_comes_back_as_the_log_has_it(logged: tuple[Path, list[Hand]], cache: Path) -> None:
    data, hands = logged
    archive = ArchiveReader(data, NOLIMIT).read(no_progress)
    assert [archive.hand(number) for number in range(len(archive))] == hands
    with pytest.raises(PipelineError, match="there is no hand 900"):
        archive.hand(900)


def test_filters_agree_with_the_hands(logged: tuple[Path, list[Hand]], cache: Path) -> None:
    data, hands = logged
    archive = ArchiveReader(data, NOLIMIT).read(no_progress)

    def numbers(fits: object) -> list[int]:
        return [number for number, hand in enumerate(hands) if fits(hand)]  # type: ignore[operator]

    prefix = hands[7].betting[:6]
    assert archive.find(Filter(betting=prefix)).tolist() == numbers(lambda hand: hand.betting.startswith(prefix))
    assert archive.find(Filter(street=3)).tolist() == numbers(lambda hand: hand.betting.count("/") == 3)
    assert archive.find(Filter(player="call", opponent="call")).tolist() == []
    won = [hand.payoffs[hand.names.index("call")] for hand in hands]
    assert archive.winnings("call", np.arange(len(archive))).tolist() == won


def test_the_hands_read_so_far_can_be_listed(logged: tuple[Path, list[Hand]], cache: Path) -> None:
    data, hands = logged
    reader, lengths = ArchiveReader(data, NOLIMIT), []

    def look(done: int, total: int) -> None:
        assert total == len(hands)
        if reader.so_far is not None:
            lengths.append(len(reader.so_far))
            assert reader.so_far.hand(done - 1) == hands[done - 1]
            assert set(reader.so_far.players) == {"random", "call", "equity"}

    reader.read(look)
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 3
    assert reader.so_far is None


def test_the_next_start_opens_the_index_and_a_damaged_one_is_made_again(
    logged: tuple[Path, list[Hand]], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, hands = logged
    ArchiveReader(data, NOLIMIT).read(no_progress)
    built = []
    build = ArchiveReader._build
    monkeypatch.setattr(ArchiveReader, "_build", lambda self, progress: built.append(1) or build(self, progress))
    assert ArchiveReader(data, NOLIMIT).read(no_progress).hand(5) == hands[5]
    assert not built
    won = next(cache.glob("*-won.npy"))
    won.write_bytes(won.read_bytes()[:-8] + bytes(8))
    assert ArchiveReader(data, NOLIMIT).read(no_progress).hand(len(hands) - 1) == hands[-1]
    assert built == [1]


def test_without_a_cache_to_write_to_the_index_is_made_for_one_run(
    logged: tuple[Path, list[Hand]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, hands = logged
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PIPELINE_CACHE", str(tmp_path / "file" / "cache"))  # a folder in a file cannot be made
    reader = ArchiveReader(data, NOLIMIT)
    archive: Archive = reader.read(no_progress)
    assert archive.hand(3) == hands[3]


def test_a_game_without_hands_and_odd_names_are_refused(logged: tuple[Path, list[Hand]], cache: Path) -> None:
    data, _ = logged
    with pytest.raises(PipelineError, match=re.escape("has no hands of kuhn.limit.2p")):
        ArchiveReader(data, builtin("kuhn.limit.2p")).read(no_progress)
    archive = ArchiveReader(data, NOLIMIT).read(no_progress)
    with pytest.raises(PipelineError, match="nobody is called 'cal'"):
        archive.find(Filter(player="cal"))


def test_the_same_logs_in_another_folder_get_an_index_of_their_own(
    logged: tuple[Path, list[Hand]], cache: Path, tmp_path: Path
) -> None:
    data, _ = logged
    ArchiveReader(data, NOLIMIT).read(no_progress)
    shutil.copytree(data.parent / "logs", tmp_path / "moved")
    p.ingest(tmp_path / "moved", tmp_path / "rows", strength=False)
    archive = ArchiveReader(tmp_path / "rows", NOLIMIT).read(no_progress)
    assert all(str(tmp_path) in file for file in archive.files)
