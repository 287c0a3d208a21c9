"""The dataset on disk: what others read of it, what is noticed when it is damaged or was made to do harm."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import played
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pipeline.cli.main import group
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions, select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import verify
from pipeline.dataset.schema import DECISIONS
from pipeline.formats.acpc import Header
from pipeline.ingestion.options import Options, options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import Game, find_game
from pipeline.runtime.errors import PipelineError

LIMIT = find_game("holdem.limit.2p.reverse_blinds")
NOLIMIT = find_game("holdem.nolimit.2p.reverse_blinds")
BARE = Options(strength=False)


def log(game: Game, hands: int, seed: int = 1, names: tuple[str, ...] = ("Ann", "Bob")) -> str:
    """A match played at random."""
    rng = random.Random(seed)
    lines = [str(Header("x", f"{game.name}.game", hands, seed))]
    for i in range(hands):
        turn = i % len(names)
        lines.append(str(played.hand(game, rng, i, (*names[turn:], *names[:turn]))))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of limit and no-limit hands, with strength."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.log").write_text(log(LIMIT, 80))
    (folder / "b.log").write_text(log(NOLIMIT, 80))
    ingest([folder / "a.log", folder / "b.log"], folder / "rows", Options())
    return folder / "rows"


@pytest.fixture
def rows(made: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "rows"))


# Others read it


def counted(made: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in read_manifest(made).decisions:
        found[str(file.street)] = found.get(str(file.street), 0) + file.rows
    return found


def test_reading_rows_does_without_pandas(made: Path) -> None:
    """Importing pandas takes half a second, which every command on a dataset would pay."""
    script = (
        "import sys; from pipeline.dataset.load import load_decisions;"
        "load_decisions(sys.argv[1], game=sys.argv[2], strength=True)"
    )
    words = [sys.executable, "-c", f"{script}; print('pandas' in sys.modules)", made, LIMIT.name]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


BEFORE_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pipeline.dataset import load

class Pool(ThreadPoolExecutor):
    def map(self, *arguments):
        print("pyarrow.compute" in sys.modules)
        return super().map(*arguments)

load.ThreadPoolExecutor = Pool
load.load_decisions(sys.argv[1], game=sys.argv[2])
"""


def test_the_functions_of_arrow_are_registered_before_threads_need_them(made: Path) -> None:
    """A thread that cast while another one imported them found `No function registered with name: cast`."""
    words = [sys.executable, "-c", BEFORE_THREADS, made, LIMIT.name]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "True\n"


def test_an_agent_without_hands_of_a_game_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log(LIMIT, 8))
    (tmp_path / "b.log").write_text(log(NOLIMIT, 8, names=("Ann", "Cid")))
    ingest([tmp_path / "a.log", tmp_path / "b.log"], tmp_path / "rows", BARE)
    with pytest.raises(PipelineError, match=f"no decisions of 'Bob' in {NOLIMIT.name}"):
        load_decisions(tmp_path / "rows", ["Bob"], game=NOLIMIT.name)
    assert len(load_decisions(tmp_path / "rows", ["Ann", "Bob"], game=NOLIMIT.name)) > 0


def test_pandas_duckdb_and_polars_read_all_columns_of_all_streets(made: Path) -> None:
    by_pandas = pd.read_parquet(made / "decisions")
    by_polars = pl.read_parquet(made / "decisions/**/*.parquet", hive_partitioning=True)
    by_duckdb = duckdb.sql(f"SELECT * FROM read_parquet('{made}/decisions/**/*.parquet')")
    strength = [f"{street}_{part}" for street in STREETS[1:] for part in ("ihs", "ehs", "ehs2", "q")]
    for columns in (by_pandas.columns, by_polars.columns, by_duckdb.columns):
        assert set(columns) == {*DECISIONS, *strength, "river_ochs"}
    assert by_pandas["street"].value_counts().to_dict() == counted(made)
    assert dict(by_polars.group_by("street").len().iter_rows()) == counted(made)
    assert dict(by_duckdb.aggregate("street, count(*)").fetchall()) == counted(made)
    early = by_pandas[by_pandas["street"] == "flop"]
    assert early["flop_ehs"].notna().all()
    assert early["turn_ehs"].isna().all()
    assert by_polars.filter(pl.col("street") == "river")["turn_ehs"].null_count() == 0
    assert by_duckdb.filter("street = 'preflop' AND flop_ihs IS NOT NULL").aggregate("count(*)").fetchall() == [(0,)]


def test_the_columns_of_the_situation_are_what_they_say(made: Path) -> None:
    found = pd.read_parquet(made / "decisions")
    nolimit = found[found["game"] == NOLIMIT.name]
    assert found["known"].all()
    assert (found["players"] == 2).all()
    assert np.allclose(nolimit["effective_stack_bb"], nolimit["effective_stack"] / 100)
    assert np.allclose(nolimit["stack_to_pot"], nolimit["effective_stack"] / nolimit["pot"])
    assert np.allclose(found["faced"], found["to_call"] / (found["pot"] - found["to_call"]))
    assert found[found["game"] == LIMIT.name]["effective_stack"].isna().all()
    raises = found["action"].astype(str).str.startswith("r")
    assert found["amount"].notna().equals(raises)
    told = nolimit["action"].astype(str).str.removeprefix("r")[raises]
    assert (nolimit["amount"][raises] == told.astype(int)).all()
    first = found[(found["preflop"] == "-") & (found["street"] == "preflop")]
    assert first["aggressor"].isna().all()
    limit = found[(found["game"] == LIMIT.name) & (found["preflop"] == "-") & raises]
    assert (limit["amount"] == 20).all()


def test_a_frame_has_readable_columns(made: Path) -> None:
    found = load_decisions(made, game=NOLIMIT.name, strength=True)
    frame = found.frame()
    assert len(frame) == len(found)
    assert {"agent", "street", "action", "hole", "board", "amount", "pot", "ehs"} <= set(frame.columns)
    assert set(frame["agent"]) == {"Ann", "Bob"}
    for i in range(0, len(frame), 37):
        row = frame.iloc[i]
        line = (made.parent / "b.log").read_text().splitlines()[row["line"] - 1].split(":")
        holes, *board = line[3].split("/")
        assert row["hole"] == holes.split("|")[row["position"]]
        assert row["board"] == "".join(board[: STREETS.index(row["street"])])
        _, action = played.actions(line[2])[row["k"]]
        assert pd.isna(row["amount"]) if action[0] != "r" else row["amount"] == int(action[1:])
        assert row["action"] in NOLIMIT.labels
        assert (row["street"] == "preflop") == pd.isna(row["ehs"])
    assert len(load_decisions(made, ["Ann"], ["river"], game=LIMIT.name).frame()["name"].cat.categories) > 9


def test_pieces_hold_what_load_gives(made: Path) -> None:
    for agents in (None, ["Bob"]):
        whole = load_decisions(made, agents, game=LIMIT.name)
        parts = [piece for _, piece in select_rows(made, agents, game=LIMIT.name).pieces()]
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(np.concatenate([part.agent for part in parts]), kind="stable")
        assert np.array_equal(rows[order], whole.rows)


def test_agents_that_are_no_neighbours_are_loaded_once(tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / f"{i}.log").write_text(log(LIMIT, 20, i, (f"a{i:02}", f"b{i:02}")))
    ingest([tmp_path / f"{i}.log" for i in range(12)], tmp_path / "rows", BARE)
    whole = load_decisions(tmp_path / "rows")
    for some in (["a00", "a05", "b03"], [f"a{i:02}" for i in range(12)]):
        found = load_decisions(tmp_path / "rows", some)
        wanted = np.isin(whole.agent, [whole.agents.index(agent) for agent in some])
        assert np.array_equal(found.rows, whole.rows[wanted])
        assert [found.agents[i] for i in found.agent] == [whole.agents[i] for i in whole.agent[wanted]]


def test_a_file_is_read_once_for_several_agents_and_the_manifest_not_at_all_once_rows_are_selected(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selected = select_rows(made, ["Ann", "Bob"], game=LIMIT.name)
    opened: list[Path] = []
    read = Path.read_bytes

    def count(path: Path) -> bytes:
        opened.append(path)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", count)
    assert len(selected.load()) == selected.size > 0
    files = {made / rows.file.path for rows in selected.ranges}
    assert sorted(opened) == sorted(files)
    opened.clear()
    assert sum(len(piece) for part in selected.by_part().values() for _, piece in part.pieces()) == selected.size
    assert set(opened) == files


# Damage


def test_one_flipped_bit_is_noticed(rows: Path) -> None:
    rng = random.Random(4)
    files = [rows / file.path for file in read_manifest(rows).files]
    assert verify(rows) == []
    for path in rng.sample(files, len(files)):
        whole = path.read_bytes()
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        assert [str(path) in problem and "damaged" in problem for problem in verify(rows)] == [True]
        if "decisions" in str(path):
            game = NOLIMIT.name if NOLIMIT.name in path.name else LIMIT.name
            with pytest.raises(PipelineError, match="is damaged"):
                load_decisions(rows, game=game)
        path.write_bytes(whole)
    assert verify(rows) == []


def test_an_emptied_or_missing_file_is_noticed(rows: Path) -> None:
    path = rows / read_manifest(rows).decisions[0].path
    path.write_bytes(b"")
    assert len(verify(rows)) == 1
    with pytest.raises(PipelineError, match=r"is damaged \(0 bytes"):
        ingest([rows.parent / "none.log"] if (rows.parent / "none.log").exists() else [__file__], rows, Options())
    path.unlink()
    assert "is missing" in verify(rows)[0]


def test_a_parquet_file_of_other_columns_is_refused(rows: Path) -> None:
    manifest = json.loads((rows / "manifest.json").read_text())
    file = next(file for part in manifest["parts"] for file in part["files"] if file["street"] == "flop")
    table = pq.read_table(rows / file["path"], partitioning=None)
    for changed in (
        table.drop_columns(["pot"]),
        table.set_column(table.column_names.index("pot"), "pot", table["file"]),
        *(
            table.set_column(table.column_names.index(name), name, pa.array([value] * len(table), table[name].type))
            for name, value in (("in_hand", 1), ("position", 2), ("players", 200), ("aggressor", 7), ("pot", -5))
        ),
        table.set_column(table.column_names.index("pot"), "pot", pa.array([float("nan")] * len(table))),
        table.set_column(table.column_names.index("legal"), "legal", pa.nulls(len(table), table["legal"].type)),
        table.set_column(
            table.column_names.index("pattern"), "pattern", pa.array(["A" * 30] * len(table)).dictionary_encode()
        ),
    ):
        pq.write_table(changed, rows / file["path"])
        data = (rows / file["path"]).read_bytes()
        file.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), crc32=zlib.crc32(data))
        (rows / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(PipelineError, match=r"lacks columns|is not what ingest writes"):
            load_decisions(rows, game=file["game"])


# Manifests made to do harm


def test_no_file_leaves_the_dataset_whatever_the_manifest_says(rows: Path, tmp_path: Path) -> None:
    staged = rows / ".unfinished" / "hands" / ("0" * 16 + "-000.parquet")
    staged.parent.mkdir(parents=True)
    staged.write_text("payload")
    manifest = json.loads((rows / "manifest.json").read_text())
    for bad in ("../escaped.parquet", "hands/../../escaped.parquet", "/tmp/escaped.parquet", "hands\\..\\x.parquet"):
        changed = copy.deepcopy(manifest)
        changed["parts"][0]["files"][0]["path"] = bad
        (rows / "manifest.json").write_text(json.dumps(changed))
        with pytest.raises(PipelineError, match="is not a file that ingest writes"):
            ingest([__file__], rows, Options())
    assert not (tmp_path / "escaped.parquet").exists()
    (rows / "manifest.json").write_text(json.dumps(manifest))
    outside = tmp_path / "outside"
    shutil.move(rows / "hands", outside)
    (rows / "hands").symlink_to(outside)
    with pytest.raises(PipelineError, match="behind one"):
        ingest([__file__], rows, Options())


def mutated(value: Any, rng: random.Random) -> Any:
    """The value with one thing in it changed, removed or replaced."""
    value = copy.deepcopy(value)
    at, key, holder = value, None, None
    while isinstance(at, dict | list) and at and (holder is None or rng.random() < 0.85):
        holder, key = at, rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
        at = holder[key]
    if holder is None:
        return value
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(
            [None, True, -1, 10**30, 1.5, "", "../x", [], {}, [[]], {"a": 1}, float("nan"), "\ud800", [None] * 3]
        )
    return value


def test_mutated_manifests_end_in_a_sentence(rows: Path) -> None:
    rng = random.Random(21)
    manifest = json.loads((rows / "manifest.json").read_text())
    refused = 0
    for _ in range(400):
        (rows / "manifest.json").write_text(json.dumps(mutated(manifest, rng)))
        for work in (
            lambda: load_decisions(rows, game=LIMIT.name),
            lambda: verify(rows),
            lambda: ingest([rows.parent / "nothing.log"], rows, Options()),
        ):
            try:
                work()
            except PipelineError:
                refused += 1
    assert refused > 700


def test_a_manifest_that_is_no_manifest_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "3", "[" * 100_000, '{"schema": 3}', '{"schema": "3"}', '{"schema": 3, "parts": 5}', "\xff"):
        (tmp_path / "manifest.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(PipelineError):
            load_decisions(tmp_path)


def test_older_datasets_are_refused_with_the_command_that_makes_them_anew(rows: Path) -> None:
    manifest = json.loads((rows / "manifest.json").read_text()) | {"schema": 2}
    (rows / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PipelineError, match=r"version 2.*pipeline ingest /.*a\.log /.*b\.log --out .*rows-new"):
        load_decisions(rows)


def test_a_bundle_is_not_called_an_old_dataset(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "models": [], "files": {}}))
    with pytest.raises(PipelineError, match="is a bundle, not a dataset"):
        load_decisions(tmp_path)
    with pytest.raises(PipelineError, match="is a bundle, not a dataset"):
        ingest([__file__], tmp_path, BARE)


# Runs


KILL_AT_MANIFEST = """
import os, signal, sys
from pipeline.ingestion.options import Options
from pipeline.ingestion.run import ingest

def watch(event, arguments):
    if event == "os.rename" and str(arguments[1]).endswith("manifest.json"):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
ingest([sys.argv[1]], sys.argv[2], Options(strength=False))
"""


def test_a_run_killed_at_its_first_manifest_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(log(LIMIT, 30))
    command = [sys.executable, "-c", KILL_AT_MANIFEST, str(tmp_path / "x.log"), str(tmp_path / "rows")]
    assert subprocess.run(command, timeout=300).returncode == -signal.SIGKILL
    assert [path.name for path in (tmp_path / "rows").iterdir() if path.name.startswith(".manifest")]
    assert ingest([tmp_path / "x.log"], tmp_path / "rows", BARE).hands == 30
    assert verify(tmp_path / "rows") == []
    assert not [path.name for path in (tmp_path / "rows").iterdir() if path.name.startswith(".")]


def test_an_agent_against_itself_gives_rows_of_both_seats(tmp_path: Path) -> None:
    text = log(LIMIT, 50)
    (tmp_path / "x.log").write_text(text.replace("Ann", "me").replace("Bob", "me"))
    (tmp_path / "y.log").write_text(text)
    chosen = options(aliases=["Ann=me", "Bob=me"], strength=False)
    same = []
    for name in ("x", "y"):
        summary = ingest([tmp_path / f"{name}.log"], tmp_path / name, chosen)
        assert (summary.hands, summary.rejected) == (50, 0)
        same.append(load_decisions(tmp_path / name))
    assert same[0].agents == same[0].opponents == same[1].opponents == ("me",)
    assert np.array_equal(same[0].rows, same[1].rows)
    assert set(same[0].rows["position"]) == {0, 1}
    assert len(same[0]) == summary.decisions


def test_a_log_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.ingestion import batches

    path = tmp_path / "x.log"
    path.write_text(log(LIMIT, 30))
    real = batches.first_context

    def grow(*arguments: Any) -> Any:
        with path.open("a") as file:
            file.write("STATE:30:crf:2d3c|Js2s:10|-10:Bob|Ann\n")
        return real(*arguments)

    monkeypatch.setattr(batches, "first_context", grow)
    with pytest.raises(PipelineError, match=r"x\.log changed while it was read"):
        ingest([path], tmp_path / "rows", BARE)
    monkeypatch.undo()
    assert ingest([path], tmp_path / "rows", BARE).hands == 31


def test_what_was_left_out_of_a_folder_is_named(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (logs / "x.log").write_text(log(LIMIT, 5))
    (logs / ".hidden.log").write_text(log(LIMIT, 5, 2))
    (logs / ".git").mkdir()
    (logs / "deep" / "link").symlink_to(tmp_path / "elsewhere")
    summary = ingest([logs], tmp_path / "rows", BARE)
    assert dict(summary.skipped) == {
        f"{logs}/.git": "is hidden: give it by name to read it",
        f"{logs}/.hidden.log": "is hidden: give it by name to read it",
        f"{logs}/deep/link": "is a link to a folder: give it by name to read it",
    }
    shown = CliRunner().invoke(group, ["ingest", str(logs), "--out", str(tmp_path / "rows"), "--no-strength"])
    assert ".hidden.log is hidden" in shown.output


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, whose folder it is not")
def test_a_subfolder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    code = (
        "import os, shutil, sys, tempfile; from pathlib import Path;"
        "from pipeline.ingestion.sources import find_sources;"
        "folder = Path(tempfile.mkdtemp()); folder.chmod(0o755); (folder / 'x.log').write_text('STATE:');"
        "(folder / 'shut').mkdir(mode=0o700); os.seteuid(65534); files, left = find_sources([folder]);"
        "print(len(files), left[0].label == f'{folder}/shut', left[0].reason);"
        "os.seteuid(0); shutil.rmtree(folder)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "1 True cannot be read: permission denied"


def test_names_that_are_no_text_are_shown_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for i, name in enumerate((b"caf\xe9.log", b"red\x1b[31m.log")):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text(log(LIMIT, 5, i))
    out = str(tmp_path / "rows")
    done = CliRunner().invoke(group, ["ingest", str(folder), "--out", out, "--no-strength", "--json"])
    assert json.loads(done.stdout)["hands"] == 10
    assert sorted(Path(name).name for name in load_decisions(out).files) == ["caf\\xe9.log", "red\\x1b[31m.log"]
    again = ingest([folder], out, BARE)
    assert (again.unchanged, again.new) == (2, 0)


def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="an empty path"):
        ingest([""], tmp_path / "rows", BARE)


def test_a_zero_byte_spoils_its_line_and_not_the_log(tmp_path: Path) -> None:
    lines = log(LIMIT, 30).splitlines()
    lines[7] = lines[7][:9] + "\0" + lines[7][9:]
    (tmp_path / "x.log").write_text("\n".join(lines) + "\n")
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    assert (summary.hands, summary.rejected) == (29, 1)
