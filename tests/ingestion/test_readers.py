"""Streams: what is read from files, archives and pipes, in pieces of bounded size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from limited_memory import limited

from pipeline.formats.acpc import MAX_LINE
from pipeline.ingestion.readers import BLOCK, LogPiece, line_blocks, log_pieces, open_source
from pipeline.ingestion.sources import SkippedFile, find_sources
from pipeline.runtime.errors import PipelineError

LOG = b"# name/game/hands/seed x holdem.limit.2p.reverse_blinds.game 1 1\nSTATE:5:crf:2d3c|Js2s:10|-10:Bob|Alice\n"


def read(*inputs: Path | str) -> tuple[dict[str, bytes], dict[str, str]]:
    """The bytes of each log, by label, and what is none."""
    logs: dict[str, bytes] = {}
    skipped: dict[str, str] = {}
    for source in find_sources(inputs)[0]:
        with open_source(source) as stream:
            for found in log_pieces(source, stream):
                if isinstance(found, SkippedFile):
                    skipped[found.label] = found.reason
                else:
                    logs[found.label] = logs.get(found.label, b"") + found.data
    return logs, skipped


def tar(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_log_is_read_whatever_it_is_packed_with(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(pack(LOG))  # type: ignore[operator]
    logs, skipped = read(path)
    assert logs == {path.as_posix(): LOG}
    assert skipped == {}


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_archives_hold_logs_at_any_depth(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "logs.tar.x"
    members = {"a.log": LOG, "deep/er/b.log.gz": gzip.compress(LOG), "c.tar.xz": lzma.compress(tar({"d.log": LOG}))}
    path.write_bytes(pack(tar(members)))  # type: ignore[operator]
    logs, _ = read(path)
    base = path.as_posix()
    assert logs == {f"{base}/{name}": LOG for name in ("a.log", "deep/er/b.log.gz", "c.tar.xz/d.log")}


def test_zip_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(zipped({"a.log": LOG, "sub/b.log.bz2": bz2.compress(LOG), "c.zip": zipped({"d.log": LOG})}))
    logs, skipped = read(path)
    assert set(logs) == {f"{path}/a.log", f"{path}/sub/b.log.bz2"}
    assert "zip archive inside" in skipped[f"{path}/c.zip"]


@pytest.mark.parametrize("method", [1, 9, 14, 93, 98, 99, 255])
def test_zip_members_packed_in_rare_ways_are_named_and_the_rest_read(method: int, tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    data = bytearray(zipped({"a.log": LOG, "b.log": LOG}))
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    data[local + 8 : local + 10] = data[central + 10 : central + 12] = method.to_bytes(2, "little")
    path.write_bytes(data)
    logs, skipped = read(path)
    assert set(logs) == {f"{path}/b.log"}
    assert skipped == {f"{path}/a.log": f"is packed by zip method {method}: unpack it first"}


def test_xz_streams_may_follow_each_other_and_be_padded(tmp_path: Path) -> None:
    path = tmp_path / "two.log.xz"
    path.write_bytes(lzma.compress(LOG) + bytes(8) + lzma.compress(LOG) + bytes(4))
    assert read(path)[0] == {path.as_posix(): LOG + LOG}


def test_xz_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "greedy.log.xz"
    path.write_bytes(with_dictionary(lzma.compress(LOG), 1 << 30))
    with pytest.raises(PipelineError, match=r"greedy\.log\.xz needs more than 128 MB of memory"):
        read(path)


def with_dictionary(packed: bytes, size: int) -> bytes:
    """The same xz data with a header that asks for a dictionary of so many bytes (a power of two)."""
    data = bytearray(packed)
    head = 12  # the stream's header; then the block's: size, flags, filter, size of properties, properties
    length = (data[head] + 1) * 4
    at = data.index(b"\x21\x01", head) + 2
    data[at] = 2 * (size.bit_length() - 13)
    data[head + length - 4 : head + length] = zlib.crc32(data[head : head + length - 4]).to_bytes(4, "little")
    return bytes(data)


def test_names_in_archives_are_never_paths(tmp_path: Path) -> None:
    path = tmp_path / "in" / "evil.tar"
    path.parent.mkdir()
    path.write_bytes(tar({"../../escape.log": LOG, "/etc/absolute.log": LOG}))
    logs, _ = read(path)
    assert len(logs) == 2
    assert [found.name for found in tmp_path.rglob("*")] == ["in", "evil.tar"]


def test_folders_and_patterns_stand_for_their_files(tmp_path: Path) -> None:
    for name in ("b/2.log", "b/c/3.log", "1.log", ".hidden.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(LOG)
    (tmp_path / "README.md").write_text("about these logs\n")
    logs, skipped = read(tmp_path)
    assert set(logs) == {f"{tmp_path}/{name}" for name in ("1.log", "b/2.log", "b/c/3.log")}
    assert skipped == {f"{tmp_path}/README.md": "holds no line of an ACPC log and no hand history"}
    assert set(read(f"{tmp_path}/**/[23].log")[0]) == {f"{tmp_path}/{name}" for name in ("b/2.log", "b/c/3.log")}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "match.log").write_bytes(LOG)
    with pytest.raises(PipelineError, match=r"no file or folder .*did you mean match\.log"):
        find_sources([tmp_path / "macth.log"])
    with pytest.raises(PipelineError, match="no file matches"):
        find_sources([f"{tmp_path}/*.txt"])
    (tmp_path / "dangling.log").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PipelineError, match=r"cannot read .*dangling.log: no such file"):
        find_sources([tmp_path])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PipelineError, match="neither a file nor a folder"):
        find_sources([tmp_path / "pipe"])


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here that nobody can read")
def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(PipelineError, match="cannot read /proc/self/mem: input/output error"):
        read(Path("/proc/self/mem"))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_damaged_files_are_named(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "cut.log.x"
    path.write_bytes(pack(LOG + os.urandom(1000))[:-600])  # type: ignore[operator]
    with pytest.raises(PipelineError, match=r"cut\.log\.x is damaged or cut short"):
        read(path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.tar"
    path.write_bytes(tar({"a.log": LOG * 100})[:2000])
    with pytest.raises(PipelineError, match="damaged or cut short"):
        read(path)


def test_binary_and_empty_files_are_told_from_logs(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"STATE:\0\0\0")
    (tmp_path / "b.log").write_bytes(b"")
    assert read(tmp_path) == ({}, {f"{tmp_path}/a.bin": "is a binary file, not a log", f"{tmp_path}/b.log": "is empty"})


class Endless(io.RawIOBase):
    """A stream of so many bytes of one letter, never in memory at once."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int = -1) -> bytes:
        taken = min(size, self.left)
        self.left -= taken
        return b"c" * taken


def test_a_line_of_a_gigabyte_costs_no_memory() -> None:
    found = list(line_blocks(Endless(1 << 30)))  # type: ignore[arg-type]
    assert [len(data) for data in found] == [MAX_LINE + 1]


def test_an_archive_bomb_is_read_in_small_pieces(tmp_path: Path) -> None:
    path = tmp_path / "bomb.log.bz2"
    path.write_bytes(bz2.compress(LOG + (b"c" * 4000 + b"\n") * 20_000))
    ((source,), _) = find_sources([path])
    sizes = []
    with open_source(source) as stream:
        for found in log_pieces(source, stream):
            assert isinstance(found, LogPiece)
            sizes.append(len(found.data))
    assert sum(sizes) > 80_000_000
    assert max(sizes) <= BLOCK + MAX_LINE


def test_lines_stay_whole_and_complete() -> None:
    lines = [b"x" * (i * 37 % 300) for i in range(3000)]
    lines[7] = b"y" * (MAX_LINE + 5000)
    text = b"\n".join(lines)
    for size in (50, 1000, 1 << 20):
        found = list(line_blocks(io.BytesIO(text), size))
        read_lines = b"".join(found).split(b"\n")
        assert len(read_lines) == len(lines)
        assert all(data.endswith(b"\n") for data in found[:-1])
        assert all(
            a == b or (i == 7 and len(a) > MAX_LINE) for i, (a, b) in enumerate(zip(read_lines, lines, strict=True))
        )


def tar_header(kind: bytes, size: int, body: bytes = b"") -> bytes:
    """A tar header of a kind that claims so many bytes, and the beginning of what it claims."""
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT) + body


def with_sum(header: bytes) -> bytes:
    """The header of a tar member with its checksum made again."""
    blank = header[:148] + b" " * 8 + header[156:]
    return blank[:148] + b"%06o\0 " % sum(blank) + blank[156:]


SPARSE_MAP = with_sum(tar_header(tarfile.GNUTYPE_SPARSE, 0)[:482] + b"\1" + bytes(29))
"""the header of a sparse file whose map of holes goes on in the next block"""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (tar_header(tarfile.GNUTYPE_LONGNAME, 2 << 20, b"n" * (2 << 20)), "take more than 1 MB"),
        (tar_header(tarfile.GNUTYPE_LONGLINK, 2 << 20, b"n" * (2 << 20)), "take more than 1 MB"),
        (tar_header(tarfile.XHDTYPE, 2 << 20, b"2097152 a=" + b"n" * (2 << 20)), "take more than 1 MB"),
        (tar_header(tarfile.XGLTYPE, 2 << 20, b"2097152 a=" + b"n" * (2 << 20)), "take more than 1 MB"),
        (tar_header(tarfile.XHDTYPE, 1 << 19, b"1" * (1 << 19)), "more than 255 digits"),
        (SPARSE_MAP + (bytes(504) + b"\1" + bytes(7)) * 4096, "take more than 1 MB"),
        (tar_header(tarfile.GNUTYPE_LONGNAME, 512, b"n" * 512) * 4096, "take more than 1 MB|recursion"),
    ],
    ids=["long name", "long link", "pax", "global pax", "digits", "map of holes", "names of names"],
)
def test_a_tar_member_with_endless_headers_is_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "greedy.tar"
    path.write_bytes(tar({"a.log": LOG})[:1024] + data + tar({"b.log": LOG}))
    with pytest.raises(PipelineError, match=rf"greedy\.tar.* is damaged or cut short: .*({reason})"):
        read(path)


@pytest.mark.parametrize("place", [0, 150, 600])
def test_no_member_is_lost_behind_a_damaged_header(place: int, tmp_path: Path) -> None:
    path = tmp_path / "damaged.tar"
    data = bytearray(tar({"a.log": LOG, "b.log": LOG, "c.log": LOG}))
    data[1024 + place % 512] ^= 1
    path.write_bytes(data if place < 512 else data[: 1024 + 88])
    with pytest.raises(PipelineError, match=r"damaged\.tar.* is damaged or cut short: .*\(a header is damaged\)"):
        read(path)


def test_attributes_of_all_members_do_not_add_up_without_end(tmp_path: Path) -> None:
    path = tmp_path / "greedy.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for number in range(3):
            words = tarfile.TarInfo.create_pax_global_header({f"name{number}": "x" * (1 << 19)})
            archive.fileobj.write(words)  # type: ignore[union-attr]
            archive.addfile(tarfile.TarInfo("empty"))
    with pytest.raises(PipelineError, match="attributes of all members take more than 1 MB"):
        read(path)


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_in_archives_are_read(form: int, tmp_path: Path) -> None:
    path, name = tmp_path / "long.tar", "folder/" * 60 + "ä.log"
    with tarfile.open(path, "w", format=form) as archive:
        for number in range(3):
            entry = tarfile.TarInfo(f"{number}{name}")
            entry.size = len(LOG)
            archive.addfile(entry, io.BytesIO(LOG))
    assert read(path)[0] == {f"{path}/{number}{name}": LOG for number in range(3)}


def test_a_sparse_file_in_an_archive_is_left_out_by_name(tmp_path: Path) -> None:
    path = tmp_path / "holes.tar"
    entry = tarfile.TarInfo("holes.log")
    entry.size, entry.pax_headers = len(LOG), {"GNU.sparse.map": "0,100", "GNU.sparse.size": str(1 << 60)}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(LOG))
    assert read(path) == ({}, {f"{path}/holes.log": "is a sparse file in an archive: unpack it first"})


def test_a_kilobyte_that_stands_for_gigabytes_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "tiny.xz"
    claim = tar_header(tarfile.GNUTYPE_LONGNAME, 3 << 30)
    path.write_bytes(lzma.compress(lzma.compress(claim) + lzma.compress(bytes(1 << 20)) * (3 << 10)))
    assert path.stat().st_size < 2000
    command = limited(3 << 30, "ingest", path, "--out", tmp_path / "out")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {path} is damaged or cut short: restore it or leave it out "
        "(the headers of a member take more than 1 MB)\n"
    )
