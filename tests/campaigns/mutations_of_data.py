"""Harm done to datasets, their manifests, what is kept on a machine, and hand histories, and what became of each.

Beside `mutations`, which runs these attacks and says what is allowed. A dataset's Parquet files are harmed column by
column (types, nulls, values out of place, rows lost or doubled) with sizes and checksums made again, as an attacker
would; what is still accepted must go through all that reads rows, compiled code included, without a crash.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import random
import shutil
import tarfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import played
import pyarrow as pa
import pyarrow.parquet as pq
from mutations import harm_array, harm_bytes, harm_file, harm_json, harm_text
from played_histories import random_history
from scratch import scratch_folder

from pipeline.agents import teacher
from pipeline.agents.names import resolve
from pipeline.api.bundles import train
from pipeline.api.overview import describe
from pipeline.api.scores import evaluate
from pipeline.dataset.load import load_decisions
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import verify
from pipeline.features.encoding import fit_features
from pipeline.features.patterns import find_pattern
from pipeline.formats.histories.notation import histories_text, history_text, read_section, sections
from pipeline.formats.histories.scan import scan_histories
from pipeline.ingestion.options import options
from pipeline.ingestion.readers import LogPiece, log_pieces, open_source
from pipeline.ingestion.run import ingest
from pipeline.ingestion.sources import find_sources
from pipeline.models.bundle import load_bundle
from pipeline.poker.game import find_game
from pipeline.poker.strength.boards import HOLDINGS, boards
from pipeline.poker.strength.hand_clusters import HandClusters
from pipeline.runtime.diskcache import load_bytes, open_array, store_array, store_bytes
from pipeline.runtime.errors import PipelineError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "bundles"
GAMES = {"limit": "holdem.limit.2p.reverse_blinds", "nolimit": "holdem.nolimit.3p"}


@cache
def dataset(kind: str) -> Path:
    """A small dataset, made once."""
    folder = scratch_folder()
    write_log(folder / "a.log", kind, 1)
    ingest([folder / "a.log"], folder / "rows", options(strength=kind == "limit"))
    return folder / "rows"


def write_log(path: Path, kind: str, seed: int) -> None:
    """A log of forty random hands."""
    game, luck = find_game(GAMES[kind]), random.Random(seed)
    path.write_text("".join(f"{played.hand(game, luck, i)}\n" for i in range(40)))


def rows_of(folder: Path, kind: str) -> list[bytes]:
    """Everything that `load` gives, as bytes."""
    found = load_decisions(folder, strength=kind == "limit")
    columns = [found.rows, found.action, found.deal, found.validation, found.agent, found.opponent, found.file]
    columns += [found.line, found.hand, found.k, found.result, found.amount, found.known]
    columns += [found.strength, found.ochs] if found.strength is not None else []
    texts = [found.agents, found.opponents, found.files, found.game.text]
    return [np.ascontiguousarray(column).tobytes() for column in columns] + [repr(texts).encode()]


def use(folder: Path, kind: str, deeply: bool) -> None:
    """Let everything that reads rows read them: features, models, agents; `deeply` trains a model and scores it too."""
    rows = load_decisions(folder, strength=kind == "limit").rows
    if not len(rows):
        return
    fit_features(find_pattern("default" if kind == "limit" else "thesis"), rows, (1, 2, 3)).hashes(
        rows[rows["street"] > 0]
    )
    game = find_game(GAMES[kind])
    for name in ("@equity", "@random", "@call"):
        resolve(name, game).probabilities(rows)
    if kind == "limit":
        for part in load_bundle(FIXTURES / "loglinear.zip").parts:
            part.model.predict(rows[np.isin(rows["street"], part.streets)])
    if deeply:
        model = folder.with_name("model")
        train(folder, model, agent=load_decisions(folder).agents[0], pattern="thesis", max_iterations=2)
        evaluate(folder, model)


def harm_column(table: pa.Table, luck: random.Random) -> pa.Table:
    """Another type, a null, a value out of place, a column lost or under another's name, rows lost or doubled."""
    at, kind = luck.randrange(table.num_columns), luck.randrange(9)
    name, column = table.column_names[at], table.column(at).combine_chunks()
    if kind == 0:
        return table.drop_columns([name])
    if kind == 1:
        return table.rename_columns(
            [*table.column_names[:at], luck.choice(table.column_names), *table.column_names[at + 1 :]]
        )
    if kind == 2:
        return table.slice(0, luck.randrange(len(table)))
    if kind == 3:
        return pa.concat_tables([table, table])
    if kind == 4:
        return table.take(pa.array(luck.sample(range(len(table)), len(table))))
    values = column.to_pylist()
    place = luck.randrange(len(values))
    if kind == 5:
        changed = pa.array([None if i == place else value for i, value in enumerate(values)], column.type)
        return table.set_column(at, name, changed)
    if kind == 6:
        other = luck.choice([pa.string(), pa.float64(), pa.int64(), pa.uint8(), pa.bool_(), pa.binary()])
        try:
            return table.set_column(at, name, pa.array(values).cast(other, safe=False))
        except (pa.ArrowException, ArithmeticError, ValueError, TypeError):
            return table.set_column(at, name, pa.nulls(len(table), other))
    if pa.types.is_dictionary(column.type):
        odd: list[Any] = [
            "",
            "x",
            "-",
            "AsAs",
            "rrrrrrrrrrrrrrrrrrrrrrrrrrrr",
            "c" * 21,
            "\0",
            "é",
            "fcr",
            "AAAAAA",
            *values[:9],
        ]
        values[place] = luck.choice(odd)
        return table.set_column(at, name, pa.array(values).dictionary_encode().cast(column.type))
    if pa.types.is_integer(column.type):
        bits, signed = column.type.bit_width, str(column.type).startswith("int")
        top = 2 ** (bits - signed) - 1
        values[place] = luck.choice([0, 1, top, top - 1, 13, 200, -1 if signed else 3, -top - 1 if signed else 7])
    elif pa.types.is_floating(column.type):
        values[place] = luck.choice([float("nan"), float("inf"), -1e308, 0.0, -1.0])
    elif pa.types.is_boolean(column.type):
        values[place] = not values[place]
    elif pa.types.is_string(column.type):
        odd = [
            "",
            "x",
            "|",
            "nan|inf",
            "1|2|3|4",
            "9" * 400,
            "é",
            "AsAs|AsAs/AsAsAs",
            "r99999999999999999999",
            "cc/",
            "\0",
        ]
        values[place] = luck.choice([*odd, values[place][:-1], luck.choice(values), f"{values[place]}{values[place]}"])
    elif values[place] is not None:
        values[place] = bytes(luck.randrange(256) for _ in values[place])
    return table.set_column(at, name, pa.array(values, column.type))


def attack_dataset(luck: random.Random, folder: Path) -> str:
    """Harm one Parquet file: its bytes, or its columns with size and checksum made again."""
    kind = luck.choice(sorted(GAMES))
    rows = folder / "rows"
    shutil.copytree(dataset(kind), rows)
    path = luck.choice(sorted(rows.rglob("decisions/**/*.parquet")))
    again = luck.random() < 0.7
    if again:
        harmed = harm_column(pq.ParquetFile(path).read(), luck)
        pq.write_table(harmed, path)
        if luck.random() < 0.1:
            path.write_bytes(harm_bytes(path.read_bytes(), luck))
        manifest = json.loads((rows / "manifest.json").read_bytes())
        for part in manifest["parts"]:
            for file in part["files"]:
                if rows / file["path"] == path:
                    data = path.read_bytes()
                    file.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), crc32=zlib.crc32(data))
                    if luck.random() < 0.5 and len(file["agents"]) > 1:
                        first = sorted(file["agents"])[0]
                        file["agents"][first] += harmed.num_rows - file["rows"]
                        file["rows"] = harmed.num_rows
        (rows / "manifest.json").write_text(json.dumps(manifest))
    else:
        path.write_bytes(harm_bytes(path.read_bytes(), luck))
    try:
        found = rows_of(rows, kind)
        use(rows, kind, deeply=luck.random() < 0.05)
    except PipelineError:
        return "refused"
    equal = found == rows_of(dataset(kind), kind)
    assert equal or again, "a damaged file was accepted and says something else"
    return "equal" if equal else "other rows"


def attack_manifest(luck: random.Random, folder: Path) -> str:
    """Harm a dataset's manifest and read, describe, verify and extend the dataset."""
    kind = luck.choice(sorted(GAMES))
    rows = folder / "rows"
    shutil.copytree(dataset(kind), rows)
    manifest = harm_json(json.loads((rows / "manifest.json").read_bytes()), luck)
    text = json.dumps(manifest).encode()
    (rows / "manifest.json").write_bytes(harm_bytes(text, luck) if luck.random() < 0.1 else text)
    outside = sorted(folder.iterdir())
    try:
        read_manifest(rows)
        describe(rows)
        problems = verify(rows)
        found = rows_of(rows, kind)
        if luck.random() < 0.2:
            write_log(folder / "b.log", kind, 2)
            outside = sorted(folder.iterdir())
            ingest([folder / "b.log"], rows, options(strength=kind == "limit"))
            rows_of(rows, kind)
    except PipelineError:
        return "refused"
    finally:
        assert sorted(folder.iterdir()) == outside, "something was written outside the dataset"
    assert not problems or found is not None
    return "equal" if found == rows_of(dataset(kind), kind) else "other rows"


@cache
def kept_table(kind: str) -> np.ndarray:
    """A table as large as the real one, with possible values."""
    entries, luck = len(boards(1).cards) * HOLDINGS[1], np.random.default_rng(1)
    if kind == "teacher":
        return luck.integers(0, 1000, entries, dtype=np.uint16)
    return luck.integers(0, 256, (entries, 5), dtype=np.uint8)


def attack_cache(luck: random.Random, folder: Path) -> str:
    """Harm the teacher's table, clusters or compiled code as they are kept; each must be made again or be as before."""
    kind = luck.choice(["teacher", "small", "small", "small", "clusters", "kernel"])
    if kind == "teacher" and luck.random() < 0.9:
        kind = "small"  # the large one takes thirty milliseconds
    path = folder / "flop.npy"
    if kind in ("clusters", "kernel"):
        made = HandClusters(1, np.arange(24, dtype=np.uint8).reshape(3, 8), 1, 0.5)
        data = made.to_bytes() if kind == "clusters" else random.Random(5).randbytes(3000)
        store_bytes(path, data, 7)
        if luck.random() < 0.5 and kind == "clusters":
            store_bytes(path, harm_file(data, luck), 7)
        else:
            path.write_bytes(harm_bytes(path.read_bytes(), luck))
        found = load_bytes(path, 7)
        if found is None:
            return "made again"
        if kind == "kernel":
            assert found == data
            return "equal"
        try:
            read = HandClusters.from_bytes(found, str(path))
        except PipelineError:
            return "refused"
        return "equal" if np.array_equal(read.centroids, made.centroids) else "another model"
    table = kept_table("teacher") if kind == "teacher" else np.arange(300, dtype=np.uint16)

    def opened() -> np.ndarray | None:
        if kind == "teacher":
            return teacher._open_table(folder, 1, 1000)
        return open_array(path, 3, lambda one: one.dtype == np.uint16 and one.shape == (300,) and one.max() < 300)

    store_array(path, table, teacher.VERSION if kind == "teacher" else 3)
    note = path.with_suffix(".json")
    said = json.loads(note.read_text())
    again = luck.random() < 0.5
    if luck.random() < 0.3:
        said = harm_json(said, luck)
    elif again:
        np.save(path, harm_array(table, luck), allow_pickle=False)
        if luck.random() < 0.3:
            path.write_bytes(harm_bytes(path.read_bytes(), luck))
        said["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        path.write_bytes(harm_bytes(path.read_bytes(), luck))
    text = json.dumps(said).encode()
    note.write_bytes(harm_bytes(text, luck) if luck.random() < 0.1 else text)
    read_table = opened()
    if read_table is None:
        return "made again"
    equal = np.array_equal(read_table, table)
    assert equal or again, "a damaged table was opened"
    assert read_table.dtype == table.dtype
    assert read_table.shape == table.shape
    assert int(read_table.max()) < 1000
    return "equal" if equal else "another model"


def attack_history(luck: random.Random, folder: Path) -> str:
    """Harm hand histories and read them by the byte kernel and by `tomllib`: both take the same hands."""
    hands = [random_history(luck.randrange(10**6), 0.8) for _ in range(luck.choice([1, 1, 3]))]
    text = history_text(hands[0]) if len(hands) == 1 else "".join(histories_text(hands))
    data = harm_text(text, luck).encode() if luck.random() < 0.7 else harm_bytes(text.encode(), luck)
    found, refused = scan_histories(data)
    reasons = {entry.begin: entry.reason for entry in refused}
    for section in sections(data):
        try:
            read_section(data[section.begin : section.end])
        except PipelineError:
            assert section.begin in reasons, "the byte kernel took what is no history"
    if luck.random() < 0.1:
        (folder / "a.phh").write_bytes(data)
        try:
            ingest([folder / "a.phh"], folder / "rows", options(strength=False))
        except PipelineError:
            return "refused"
    if refused:
        return "refused"
    before, _ = scan_histories(text.encode())
    equal = len(found.records) == len(before.records) and np.array_equal(found.arrays.results, before.arrays.results)
    return "equal" if equal else "other hands"


def attack_tar(luck: random.Random, folder: Path) -> str:
    """Harm the headers of a tar archive, in seven of ten with checksums made again; no log is lost in silence."""
    write_log(folder / "a.log", "limit", 3)
    text = (folder / "a.log").read_bytes()
    buffer = io.BytesIO()
    headers = []
    form = luck.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name in ("a.log", "b" * luck.choice([5, 99 if form == tarfile.USTAR_FORMAT else 300]), "c.log"):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            begin = archive.offset
            archive.addfile(member, io.BytesIO(text))
            headers += range(begin, archive.offset - -(-len(text) // 512) * 512, 512)
    data = bytearray(buffer.getvalue())
    again = luck.random() < 0.7
    for at in luck.sample(headers, luck.choice([1, 1, 2, 3])):
        block = bytearray(data[at : at + 512])
        kind = luck.randrange(4)
        if kind == 0:
            block[156:157] = luck.choice([b"L", b"K", b"x", b"g", b"S", b"X", b"0", b"5", b"1", b"7", b"\0", b"Z"])
        elif kind == 1:
            size = luck.choice([0, 1, 511, 1 << 20, (1 << 20) + 1, 3 << 30, 1 << 60, -1, -512, -(1 << 40)])
            field = b"%011o\0" % size if 0 <= size < 1 << 33 else b"\x80" + size.to_bytes(11, "big", signed=True)
            block[124:136] = field if size >= 0 else b"\xff" + field[1:]
        elif kind == 2:
            block[482:512] = b"\1" + bytes(29)  # another map of holes follows
        else:
            block[luck.randrange(512)] ^= 1 << luck.randrange(8)
        if again:
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
        data[at : at + 512] = block
    if luck.random() < 0.2:
        data += b"0" * 600
    path = folder / "a.tar.xz"
    path.write_bytes(lzma.compress(data, preset=0))
    found = b""
    try:
        (source,), _ = find_sources([path])
        with open_source(source) as stream:
            for piece in log_pieces(source, stream):
                if not isinstance(piece, LogPiece):
                    if piece.label == source.label:
                        return "refused"
                    continue
                found += piece.data
                assert len(found) <= len(data), "more came out than went in"
    except PipelineError:
        return "refused"
    equal = found == text * 3
    assert equal or again, "an archive with a damaged header was accepted and lacks something"
    return "equal" if equal else "other logs"
