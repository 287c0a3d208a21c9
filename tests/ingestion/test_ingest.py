"""Logs in, decision rows out: every line accounted for, whatever the runs in between."""

from __future__ import annotations

import lzma
import random
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import played
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from limited_memory import limited

from pipeline.cli.main import group
from pipeline.dataset.decisions import betting_text, observation
from pipeline.dataset.load import load_decisions
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.schema import DECISIONS, HANDS, REJECTED, STRENGTH_COLUMNS
from pipeline.formats.acpc import Header
from pipeline.ingestion import batches, plan, wapiti
from pipeline.ingestion.options import Options, options
from pipeline.ingestion.run import ingest
from pipeline.ingestion.summary import Summary
from pipeline.poker.cards import cards_text
from pipeline.poker.game import Game, find_game
from pipeline.poker.strength.hand_clusters import ochs
from pipeline.poker.strength.queries import find_strengths
from pipeline.runtime.errors import PipelineError

LIMIT = find_game("holdem.limit.2p.reverse_blinds")
BARE = Options(strength=False)


def log(
    game: Game, hands: int, seed: int, names: Sequence[str] = ("Ann", "Bob"), *, header: bool = True, score: bool = True
) -> str:
    """A match played at random."""
    rng = random.Random(seed)
    lines = [str(Header(f"2pl.{seed}", f"/x/{game.name}.game", hands, seed)), "#--t_response 600000"] if header else []
    for i in range(hands):
        turn = i % len(names)
        lines.append(str(played.hand(game, rng, i, (*names[turn:], *names[:turn]))))
    if score:
        lines.append("SCORE:" + "|".join("0" * len(names)) + ":" + "|".join(names))
    return "\n".join(lines) + "\n"


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def accounted(summary: Summary) -> bool:
    return summary.lines == summary.comments + summary.scores + summary.hands + summary.rejected


def rejected(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(folder / "rejected").to_table().to_pylist()
    return found


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for i in range(6):
        (folder / f"2pl.Ann.Bob.{i}.0.log").write_text(log(LIMIT, 40, i))
    return folder


# Rows


def test_the_six_rows_of_the_thesis_come_out_exactly(tmp_path: Path) -> None:
    path = tmp_path / "2pl.slumbot.entropy.0.0.log"
    path.write_text("STATE:0:rrc/rc/crc/crf:9cKc|7s8d/6dJs5c/7d/Ts:-60|60:slumbot|entropy\n")
    out = tmp_path / "rows"
    arguments = [path, "--out", out, "--agent", "slumbot", "--no-strength", "--format", "wapiti-hands"]
    group.main(["ingest", *map(str, arguments)], standalone_mode=False)
    (text,) = (out / "wapiti" / "slumbot").glob("hands.*.txt")
    assert text.read_text() == (
        "pflop blind r - - - K 9 - - - - - a - r\n"
        "flop blind rrc - - - K 9 J 6 5 - - ega King_High r\n"
        "turn blind rrc rc - - K 9 J 7 6 5 - egga King_High c\n"
        "turn blind rrc rc cr - K 9 J 7 6 5 - egga King_High c\n"
        "river blind rrc rc crc - K 9 J T 7 6 5 - King_High c\n"
        "river blind rrc rc crc cr K 9 J T 7 6 5 - King_High f\n\n"
    )


@pytest.mark.parametrize(
    "name",
    ["holdem.limit.2p.reverse_blinds", "holdem.nolimit.2p.reverse_blinds", "holdem.nolimit.3p", "leduc.limit.2p"],
)
def test_rows_read_back_are_what_a_live_player_sees(name: str, tmp_path: Path) -> None:
    game = find_game(name)
    names = ["Ann", "Bob", "Carol"][: game.players]
    text = log(game, 60, 7, names)
    (tmp_path / "x.log").write_text(text)
    ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    found = load_decisions(tmp_path / "rows")
    hands = [line.split(":") for line in text.splitlines() if line.startswith("STATE")]
    assert len(found) == sum(len(played.actions(betting)) for _, _, betting, _, _, _ in hands)
    for i in range(len(found)):
        _, number, betting, cards, payoffs, seats = hands[found.hand[i]]
        k, row = int(found.k[i]), found.rows[i]
        before, action = played.actions(betting)[k]
        position = int(row["position"])
        holes = cards.split("/")[0].split("|")
        board = "".join(cards.split("/")[1:])[: 2 * game.visible(int(row["street"]))]
        live = observation(game, before, position, played.numbers(holes[position]), played.numbers(board))[0]
        assert row == live
        assert found.agents[found.agent[i]] == seats.split("|")[position]
        others = seats.split("|")[position + 1 :] + seats.split("|")[:position]
        assert found.opponents[found.opponent[i]] == "|".join(others)
        assert found.result[i] == float(payoffs.split("|")[position])
        label = game.labels[found.action[i]]
        assert label == action[0] or (action[0] == "r" and label in "shpoa")
        assert found.line[i] == int(number) + 3


def test_the_opponents_hidden_cards_change_no_row(tmp_path: Path) -> None:
    rng = random.Random(5)
    first, second = [], []
    for i in range(200):
        hand = played.hand(LIMIT, rng, i, ("Ann", "Bob"))
        other = played.redealt(hand, 1, rng)
        first.append(str(hand))
        second.append(str(other))
    seen = []
    for name, lines in (("a", first), ("b", second)):
        (tmp_path / f"{name}.log").write_text("\n".join(lines) + "\n")
        ingest([tmp_path / f"{name}.log"], tmp_path / name, Options(agents=("Ann",), strength=False))
        seen.append(load_decisions(tmp_path / name))
    assert len(seen[0]) > 300
    assert np.array_equal(seen[0].rows, seen[1].rows)
    assert np.array_equal(seen[0].action, seen[1].action)


def test_twins_of_duplicate_matches_are_on_one_side(tmp_path: Path) -> None:
    rng = random.Random(9)
    deals = [played.hand(LIMIT, rng, i, ("Ann", "Bob")) for i in range(300)]
    for name, names in (("0.0", ("Ann", "Bob")), ("0.1", ("Bob", "Ann"))):
        lines = [str(played.replayed(LIMIT, deal, rng, names)) for deal in deals]
        (tmp_path / f"2pl.Ann.Bob.{name}.log").write_text("\n".join(lines) + "\n")
    ingest([f"{tmp_path}/*.log"], tmp_path / "rows", BARE)
    hands = ds.dataset(tmp_path / "rows" / "hands").to_table().to_pylist()
    sides: dict[int, set[tuple[bool, int]]] = {}
    for hand in hands:
        sides.setdefault(hand["hand"], set()).add((hand["validation"], hand["deal"]))
    assert all(len(side) == 1 for side in sides.values())
    held_out = sum(next(iter(side))[0] for side in sides.values())
    assert 10 <= held_out <= 60
    found = load_decisions(tmp_path / "rows")
    by_hand = {hand["hand"]: hand["validation"] for hand in hands}
    assert all(by_hand[int(number)] == side for number, side in zip(found.hand, found.validation, strict=True))


def test_twins_of_games_with_few_deals_go_by_seed_and_hand(tmp_path: Path) -> None:
    game = find_game("leduc.limit.2p")
    for name, names in (("a", ("Ann", "Bob")), ("b", ("Bob", "Ann"))):
        (tmp_path / f"{name}.log").write_text(log(game, 100, 3, names))
    ingest([tmp_path / "a.log", tmp_path / "b.log"], tmp_path / "rows", BARE)
    hands = ds.dataset(tmp_path / "rows" / "hands").to_table().to_pylist()
    assert len({(hand["hand"], hand["deal"]) for hand in hands}) == 100


def test_the_columns_are_those_written_down(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", Options())
    for folder, columns in (("hands", HANDS), ("rejected", REJECTED)):
        assert ds.dataset(tmp_path / "rows" / folder).schema.names == list(columns)
    decisions = ds.dataset(tmp_path / "rows" / "decisions", partitioning="hive")
    (river,) = (tmp_path / "rows").rglob("street=river/*.parquet")
    strength = [
        name.replace("<street>", street)
        for street in ("flop", "turn", "river")
        for name in STRENGTH_COLUMNS
        if "<" in name
    ]
    assert set(decisions.schema.names) >= set(DECISIONS)
    for street in ("preflop", "flop", "turn", "river"):
        (file,) = (tmp_path / "rows").rglob(f"street={street}/*.parquet")
        assert pq.read_schema(file).names == [name for name in DECISIONS if name != "street"] + [
            *strength,
            "river_ochs",
        ]
        assert pq.read_schema(file).equals(pq.read_schema(river))
    assert b'"parameters"' in pq.read_metadata(river).metadata[b"pipeline"]


def test_strength_is_that_of_the_holding_on_each_street(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", Options())
    found = load_decisions(tmp_path / "rows", strength=True)
    assert found.strength is not None
    for street in (1, 2, 3):
        now = found.rows["street"] >= street
        rows = found.rows[now][:50]
        assert np.array_equal(find_strengths(street, rows["hole"], rows["board"]), found.strength[now][:50, street - 1])
        assert not found.strength["ehs"][~now, street - 1].any()
    assert found.ochs is not None
    assert np.array_equal(ochs(rows["hole"], rows["board"]), found.ochs[now][:50])
    assert not found.ochs[~now].any()


def test_text_rows_have_a_blank_line_between_sequences(logs: Path, tmp_path: Path) -> None:
    group.main(
        ["ingest", str(logs), "--out", str(tmp_path / "rows"), "--no-strength", "--format", "wapiti"],
        standalone_mode=False,
    )
    texts = {path.name: path.read_text() for path in (tmp_path / "rows" / "wapiti" / "Ann").iterdir()}
    assert set(texts) >= {"preflop.train.txt", "river.train.txt", "preflop.devel.txt"}
    found = load_decisions(tmp_path / "rows", ["Ann"])
    lines = [line for text in texts.values() for line in text.split("\n\n") if line]
    assert len(lines) == len(found)
    assert all(len(line.split(" ")) == 16 for line in lines)
    row = found.rows[0]
    assert lines[0].split(" ")[0] in ("pflop", "flop", "turn", "river")
    assert (
        f"pflop {'blind' if row['position'] == 0 else 'button'} {betting_text(row['betting_codes'][0])} - - -"
        in texts["preflop.train.txt"] + texts["preflop.devel.txt"]
    )


# PartLines


def test_every_line_is_accounted_for(logs: Path, tmp_path: Path) -> None:
    rng = random.Random(1)
    for path in logs.iterdir():
        lines = path.read_text().splitlines()
        path.write_text("\n".join(played.spoil(line, rng) if rng.random() < 0.2 else line for line in lines))
    summary = ingest([logs], tmp_path / "rows", BARE)
    assert accounted(summary)
    assert summary.lines == sum(len(path.read_text().split("\n")) for path in logs.iterdir())
    assert summary.rejected == sum(summary.rejected_by_reason.values()) == len(rejected(tmp_path / "rows")) > 10
    for bad in rejected(tmp_path / "rows"):
        text = Path(bad["file"]).read_text().split("\n")[bad["line"] - 1]
        assert bad["text"] == text.rstrip("\r")
    for part in read_manifest(tmp_path / "rows").parts:
        for counts in part.logs.values():
            assert counts.lines == counts.comments + counts.scores + counts.hands + counts.rejected


def test_quirks_of_real_files_are_read(tmp_path: Path) -> None:
    hand = "STATE:{}:crf:2d3c|Js2s:10|-10:Bob|Alice"
    header = str(Header("x", "holdem.limit.2p.reverse_blinds.game", 6, 3))
    text = "\r\n".join(
        [
            header,
            hand.format(0),
            hand.format(1) + " 1",
            header,
            hand.format(1),
            "",
            "; note",
            hand.format(2) + " # 14.5",
        ]
    )
    (tmp_path / "x.log").write_text(text + "\r\nSCORE:1|-1:Bob|Alice\r\nSCORE:1|-1:Bob|Alice")
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    assert (summary.hands, summary.comments, summary.scores, summary.rejected) == (4, 4, 2, 0)
    assert summary.truncated == []


def test_a_match_that_died_is_named(tmp_path: Path) -> None:
    (tmp_path / "died.log").write_text(log(LIMIT, 20, 1, score=False).replace(" 20 1\n", " 30 1\n"))
    (tmp_path / "whole.log").write_text(log(LIMIT, 20, 2, score=False))
    summary = ingest([tmp_path], tmp_path.parent / f"{tmp_path.name}-rows", BARE)
    assert summary.truncated == [f"{tmp_path}/died.log"]


def test_half_a_line_is_rejected_and_the_rest_kept(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(log(LIMIT, 5, 1, score=False) + "STATE:5:crrc/cr")
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    assert (summary.hands, summary.rejected) == (5, 1)
    (bad,) = rejected(tmp_path / "rows")
    assert (bad["line"], bad["text"]) == (8, "STATE:5:crrc/cr")
    assert (bad["hand"], bad["number"]) == (5, "")
    assert bad["reason"].startswith("grammar")


def test_a_rejected_line_keeps_the_number_of_its_hand_where_it_has_one(tmp_path: Path) -> None:
    lines = [
        "STATE:12:crrc/cr",
        "Ann|Bob:13:oops",
        "STATE:1234567890:cr:",
        "SCORE:1:2:3",
        "what is this",
        "STATE:",
        ":7:",
    ]
    (tmp_path / "x.log").write_text(log(LIMIT, 5, 1, score=False) + "\n".join(lines))
    ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    assert [row["text"] for row in rejected(tmp_path / "rows")] == lines
    assert [row["hand"] for row in rejected(tmp_path / "rows")] == [12, 13, None, None, None, None, 7]


def test_names_that_change_within_a_match_are_rejected(tmp_path: Path) -> None:
    text = log(LIMIT, 4, 1, score=False) + log(LIMIT, 2, 2, ("Ann", "Eve"), header=False)
    (tmp_path / "x.log").write_text(text + log(LIMIT, 3, 3, ("Ann", "Eve")))
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    assert (summary.hands, summary.rejected) == (7, 2)
    assert list(summary.rejected_by_reason) == ["names: not those of the match so far"]


def test_a_file_whose_name_says_otherwise_is_reported(tmp_path: Path) -> None:
    (tmp_path / "2pl.Ann.Eve.0.0.log").write_text(log(LIMIT, 4, 1))
    summary = ingest([tmp_path / "2pl.Ann.Eve.0.0.log"], tmp_path / "rows", BARE)
    assert summary.misnamed == [(f"{tmp_path}/2pl.Ann.Eve.0.0.log", "Bob")]
    assert summary.hands == 4


def test_strict_makes_a_rejection_an_error_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(log(LIMIT, 5, 1) + "STATE:5:crrc/cr")
    with pytest.raises(PipelineError, match=r"1 lines rejected.*x\.log \(grammar"):
        ingest([tmp_path / "x.log"], tmp_path / "rows", BARE, strict=True)
    with pytest.raises(PipelineError, match="no dataset"):
        load_decisions(tmp_path / "rows")


# Games


def test_the_game_comes_from_the_option_the_header_or_the_lines(tmp_path: Path) -> None:
    for i, name in enumerate(
        ("holdem.nolimit.2p.reverse_blinds", "leduc.limit.2p", "kuhn.limit.3p", "holdem.limit.3p")
    ):
        game = find_game(name)
        names = ("Ann", "Bob", "Carol")[: game.players]
        text = log(game, 30, i, names)
        own = tmp_path / "house.game"
        own.write_text(game.text)
        for how, content, chosen in (
            ("header", text, None),
            ("lines", log(game, 30, i, names, header=False), None),
            ("unknown", text.replace(name, "house-rules"), None),
            ("option", text.replace(name, "house-rules"), str(own)),
        ):
            path = tmp_path / f"{name}.{how}.log"
            path.write_text(content)
            summary = ingest([path], tmp_path / f"{name}.{how}", options(game=chosen, strength=False))
            assert (summary.hands, summary.rejected) == (30, 0), (name, how)
            assert list(read_manifest(tmp_path / f"{name}.{how}").games) == ["house" if chosen else name]


def test_several_games_share_a_dataset_but_not_a_load(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log(LIMIT, 10, 1, ("Ann", "Bob")))
    (tmp_path / "b.log").write_text(log(find_game("leduc.limit.2p"), 10, 1, ("Ann", "Eve")))
    ingest([tmp_path / "a.log", tmp_path / "b.log"], tmp_path / "rows", BARE)
    with pytest.raises(PipelineError, match="holds 2 games"):
        load_decisions(tmp_path / "rows")
    assert load_decisions(tmp_path / "rows", ["Eve"]).game.name == "leduc.limit.2p"
    assert load_decisions(tmp_path / "rows", game=LIMIT.name).agents == ("Ann", "Bob", "Eve")


# Options


def test_agents_are_filtered_and_renamed(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log(LIMIT, 10, 1, ("Ann", "Bob_2011")))
    (tmp_path / "b.log").write_text(log(LIMIT, 10, 2, ("Eve", "bob")))
    chosen = options(agents=["Bob"], aliases=["Bob_2011=Bob", "bob=Bob"], strength=False)
    summary = ingest([tmp_path / "a.log", tmp_path / "b.log"], tmp_path / "rows", chosen)
    found = load_decisions(tmp_path / "rows")
    assert found.agents == ("Bob",)
    assert set(found.opponents) == {"Ann", "Eve"}
    assert summary.hands == 20
    assert 0 < len(found) == summary.decisions


def test_files_can_be_held_out_by_name(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", options(validation=["*.[05].0.log"], strength=False))
    found = load_decisions(tmp_path / "rows")
    named = np.array([name.endswith((".0.0.log", ".5.0.log")) for name in found.files])
    assert np.array_equal(found.validation, named[found.file])
    assert len(load_decisions(tmp_path / "rows", side="train")) + len(
        load_decisions(tmp_path / "rows", side="validation")
    ) == len(found)


def test_mistaken_options_are_explained(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="OLD=NEW"):
        options(aliases=["Ann"])
    with pytest.raises(PipelineError, match="two aliases"):
        options(aliases=["Ann=A", "Ann=B"])
    with pytest.raises(PipelineError, match="renamed to 'A'"):
        options(aliases=["Ann=A"], agents=["Ann"])
    with pytest.raises(PipelineError, match=r"no hand of agent 'Anne' \(did you mean Ann\?\)"):
        ingest([logs], tmp_path / "rows", Options(agents=("Anne",), strength=False))
    with pytest.raises(PipelineError, match="no game file"):
        options(game="holdem.limt.2p")


def test_other_options_are_refused_by_name(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    for other, word in (
        (Options(strength=False, agents=("Ann",)), "agent"),
        (Options(), "strength"),
        (options(validation=["*"], strength=False), "validation"),
        (options(game=LIMIT.name, strength=False), "game"),
        (options(aliases=["Ann=A"], strength=False), "alias"),
    ):
        with pytest.raises(PipelineError, match=f"made with {word} = "):
            ingest([logs], tmp_path / "rows", other)
    assert tree(tmp_path / "rows") == before


# Runs


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and parts of a few kilobytes, so that little logs make many."""
    for module, name, size in (
        (plan, "SMALLEST", 5000),
        (plan, "LARGEST", 9000),
        (batches, "PART_BYTES", 6000),
        (batches, "CHUNK_BYTES", 2000),
    ):
        monkeypatch.setattr(module, name, size)


def test_the_number_of_workers_and_of_runs_changes_no_byte(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    monkeypatch.chdir(logs)  # where batches end depends on the paths, so these must not be those of a temporary folder
    ingest(["."], tmp_path / "one", BARE, workers=1)
    ingest(["."], tmp_path / "three", BARE, workers=3)
    files = sorted(Path().glob("*.log"))
    for i in (3, 1, 6):
        summary = ingest(files[:i], tmp_path / "slowly", BARE)
    assert (summary.new, summary.unchanged) == (3, 3)
    whole = tree(tmp_path / "one")
    assert len(whole) > 15
    assert tree(tmp_path / "three") == whole
    assert tree(tmp_path / "slowly") == whole


def test_a_second_run_adds_only_what_is_new_or_changed(logs: Path, tmp_path: Path) -> None:
    first = ingest([logs], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    again = ingest([logs], tmp_path / "rows", BARE)
    assert (first.new, again.new, again.unchanged) == (6, 0, 6)
    assert (again.hands, again.decisions) == (first.hands, first.decisions)
    assert tree(tmp_path / "rows") == before
    (logs / "2pl.Ann.Bob.3.0.log").write_text(log(LIMIT, 50, 33))
    (logs / "2pl.Ann.Bob.7.0.log").write_text(log(LIMIT, 10, 7))
    summary = ingest([logs], tmp_path / "rows", BARE)
    assert (summary.new, summary.changed, summary.unchanged) == (1, 1, 5)
    assert summary.hands == 6 * 40 + 20
    ingest([logs], tmp_path / "fresh", BARE)
    assert tree(tmp_path / "rows") == tree(tmp_path / "fresh")


def test_the_same_bytes_are_taken_once(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    copy = tmp_path / "copy.log"
    copy.write_bytes((logs / "2pl.Ann.Bob.0.0.log").read_bytes())
    summary = ingest([copy], tmp_path / "rows", BARE)
    assert summary.duplicates == [(str(copy), f"{logs}/2pl.Ann.Bob.0.0.log")]
    assert summary.hands == 240


def test_logs_that_are_gone_stay_in_the_dataset(tmp_path: Path) -> None:
    for i in range(2):
        path = tmp_path / f"{i}.log"
        path.write_text(log(LIMIT, 10, i))
        summary = ingest([path], tmp_path / "rows", BARE)
        path.unlink()
    assert summary.hands == 20
    assert set(load_decisions(tmp_path / "rows").files) == {f"{tmp_path}/0.log", f"{tmp_path}/1.log"}


def test_another_file_of_the_same_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, folder in enumerate(("monday", "tuesday")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "match.log").write_text(log(LIMIT, 10, i))
    monkeypatch.chdir(tmp_path / "monday")
    ingest(["match.log"], tmp_path / "rows", BARE)
    monkeypatch.chdir(tmp_path / "tuesday")
    with pytest.raises(PipelineError, match="give a longer path"):
        ingest(["match.log"], tmp_path / "rows", BARE)


KILLED = """
import os, signal, sys
import numpy as np
from pipeline.ingestion.options import Options
from pipeline.ingestion.run import ingest
from pipeline.ingestion import batches, plan, wapiti
from pipeline.ingestion.log_context import first_context
from pipeline.ingestion.parts import PartLines, scan_chunk

logs, out = sys.argv[1:3]
line = b"STATE:5:crf:2d3c|Js2s:10|-10:Bob|Ann"
governed = first_context(Options(), "x", line, b"")
lines = PartLines("x", 0, 1, governed, np.frombuffer(line, dtype=np.uint8), b"")
scan_chunk([lines], Options())  # kernels are loaded once
plan.SMALLEST, plan.LARGEST, batches.PART_BYTES, batches.CHUNK_BYTES = 5000, 9000, 6000, 2000
options = Options(strength=False)
left = 0

def watch(event, arguments):
    global left
    if event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "open") and out in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
kills = 0
moment = 0
while True:
    moment += 1 + moment // 5
    child = os.fork()
    if child == 0:
        left = moment
        ingest([logs], out, options, workers=2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        break
    kills += 1
print(kills, os.WEXITSTATUS(status))
"""


def test_a_run_killed_at_any_moment_continues_to_the_same_bytes(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(logs), str(out)], capture_output=True, text=True, check=True, timeout=300
    )
    kills, status = map(int, done.stdout.split())
    assert status == 0
    assert kills > 10
    small(monkeypatch)
    ingest([logs], tmp_path / "whole", BARE)
    assert tree(out) == tree(tmp_path / "whole")


def test_two_runs_at_once_are_refused(logs: Path, tmp_path: Path) -> None:
    from pipeline.ingestion.commit import locked_dataset

    (tmp_path / "rows").mkdir()
    with locked_dataset(tmp_path / "rows"), pytest.raises(PipelineError, match="another ingest is writing"):
        ingest([logs], tmp_path / "rows", BARE)


def whole(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of a dataset of many small parts that nobody disturbed."""
    small(monkeypatch)
    ingest([logs], tmp_path / "whole", BARE)
    return tree(tmp_path / "whole")


@pytest.mark.parametrize("how", ["removed", "moved", "another in its place"])
@pytest.mark.parametrize("moment", [1, 2, -1])
def test_a_folder_that_is_removed_or_moved_in_mid_run_is_refused_and_made_again(
    how: str, moment: int, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(logs, tmp_path, monkeypatch)
    reports = len(read_manifest(tmp_path / "whole").parts)
    out, moved = tmp_path / "rows", tmp_path / "moved"
    seen = 0

    def disturb(hands: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen != moment % (reports + 1):
            return
        out.rename(moved)
        if how == "removed":
            shutil.rmtree(moved, ignore_errors=True)
        if how == "another in its place":
            ingest([logs], out, BARE)

    with pytest.raises(PipelineError, match="rows was removed or moved while ingest wrote to it: run again"):
        ingest([logs], out, BARE, progress=disturb)
    assert seen >= moment % (reports + 1)
    for folder in (out, moved):
        if folder == out or how != "removed":
            ingest([logs], folder, BARE)
            assert tree(folder) == expected


def test_a_finished_part_that_is_gone_before_the_end_is_made_again(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(logs, tmp_path, monkeypatch)
    reports = len(read_manifest(tmp_path / "whole").parts)
    out, seen = tmp_path / "rows", 0

    def lose(hands: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen == reports:
            sorted((out / ".unfinished").rglob("*.parquet"))[0].unlink()

    with pytest.raises(PipelineError, match=r"\.parquet is gone though it was written: run again"):
        ingest([logs], out, BARE, progress=lose)
    assert not (out / "manifest.json").exists()
    ingest([logs], out, BARE)
    assert tree(out) == expected


def test_a_missing_file_of_a_dataset_is_made_again_from_its_logs(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(logs, tmp_path, monkeypatch)
    rows = tmp_path / "whole"
    for pattern in ("hands/*", "decisions/*/*", "rejected/*"):
        sorted(rows.glob(pattern))[-1].unlink()
        ingest([logs], rows, BARE)
        assert tree(rows) == expected
    shutil.rmtree(rows / "hands")
    ingest([logs], rows, BARE)
    assert tree(rows) == expected


def test_a_missing_file_whose_log_is_gone_is_named_and_nothing_else_changed(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole(logs, tmp_path, monkeypatch)
    rows = tmp_path / "whole"
    sorted(rows.glob("hands/*"))[0].unlink()
    before = tree(rows)
    kept = tmp_path / "elsewhere"
    logs.rename(kept)
    with pytest.raises(PipelineError, match=r"\.parquet is missing, and so is .*restore one of them"):
        ingest([kept], rows, BARE)
    assert tree(rows) == before


def test_text_for_wapiti_needs_few_open_files_and_no_name_is_a_path(tmp_path: Path) -> None:
    rng = random.Random(1)
    names = [("..", "."), *((f"Ann{i}", f"Bob{i}") for i in range(60))]
    hands = [str(played.hand(LIMIT, rng, i, lineup)) for i, lineup in enumerate(names * 3)]
    (tmp_path / "x.log").write_text("\n".join(hands) + "\n")
    ingest([tmp_path / "x.log"], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 60, hard))
    try:
        written = wapiti.export_wapiti(tmp_path / "rows")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {path.parent.name for path in written} == {"%2E%2E", "%2E", *(name for two in names[1:] for name in two)}
    after = tree(tmp_path / "rows")
    assert {name: data for name, data in after.items() if not name.startswith("wapiti/")} == before
    lines = sum(data.decode().count("\n\n") for name, data in after.items() if name.startswith("wapiti/"))
    assert lines == sum(file.rows for file in read_manifest(tmp_path / "rows").decisions)


def test_a_dataset_among_its_logs_is_no_log(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = logs / "deep" / "rows"
    first = ingest([logs], out, BARE)
    before = tree(out)
    for inputs in ([logs], [f"{logs}/**/*"]):
        again = ingest(inputs, out, BARE)
        assert tree(out) == before
        assert again.files == first.files
        assert (again.new, again.changed, again.unchanged) == (0, 0, first.new)
        assert {reason for _, reason in again.skipped} == {"belongs to the dataset that is written"}
    with pytest.raises(PipelineError, match=r"no files in .* belongs to the dataset that is written"):
        ingest([out], out, BARE)
    assert tree(out) == before


def test_an_archive_of_millions_of_empty_files_is_refused_in_little_memory(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("x").tobuf(tarfile.GNU_FORMAT)
    path = tmp_path / "many.tar.xz"
    path.write_bytes(lzma.compress(lzma.compress(entry * 2048) * 3000))
    assert path.stat().st_size < 10_000
    command = limited(4 << 30, "ingest", path, "--out", tmp_path / "rows")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("has more than 100,000 files that are no logs: unpack it and give its logs alone\n")
    assert not (tmp_path / "rows").exists()


# What cannot be done


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "x.log is empty"),
        (bytes(range(256)) * 100, "x.log is a binary file, not a log"),
        (b"Dear diary\n", "x.log holds no line of an ACPC log"),
        (b"STATE:5:crf:2d3c|Js2s:30|-30:Bob|Ann\n", "game: no known game fits"),
        (b"STATE:0:crrc/cr", "no hand found in .*x.log: 1 lines grammar"),
        (b"STATE:0:" + b"c" * 10_000_000, "longer than 16,384 bytes"),
    ],
)
def test_files_without_hands_are_refused_and_nothing_is_lost(
    content: bytes, said: str, logs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(content)
    with pytest.raises(PipelineError, match=said):
        ingest([path], tmp_path / "new", BARE)
    assert not (tmp_path / "new" / "manifest.json").exists()
    ingest([logs], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    with pytest.raises(PipelineError, match=said):
        ingest([path], tmp_path / "rows", BARE)
    assert {name: data for name, data in tree(tmp_path / "rows").items() if ".unfinished" not in name} == before
    ingest([logs], tmp_path / "rows", BARE)
    assert tree(tmp_path / "rows") == before


def test_the_wrong_game_is_refused(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"no hand found in .* and 3 more: 240 lines (players|cards|betting)"):
        ingest([logs], tmp_path / "rows", options(game="leduc.limit.2p", strength=False))


def test_a_folder_that_is_no_dataset_is_not_written_to(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(PipelineError, match=r"not empty and no dataset \(it has thesis.txt\)"):
        ingest([logs], tmp_path / "mine", BARE)
    assert tree(tmp_path / "mine") == {"thesis.txt": b"years of work"}


def test_a_full_disk_loses_nothing(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    before = tree(tmp_path / "rows")
    (tmp_path / "more.log").write_text(log(LIMIT, 2000, 77))
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from pipeline.cli.main import main; main(sys.argv[1:])"
    )
    command = ["ingest", str(tmp_path / "more.log"), "--out", str(tmp_path / "rows"), "--no-strength"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "compiling" not in line] == [
        f"error: no space left for {tmp_path}/rows: free some and run again (what was there before is unharmed)"
    ]
    assert {name: data for name, data in tree(tmp_path / "rows").items() if ".unfinished" not in name} == before
    summary = ingest([tmp_path / "more.log"], tmp_path / "rows", BARE)
    assert summary.hands == 2240


# The command


def test_the_command_prints_one_json_object(logs: Path, tmp_path: Path) -> None:
    import json

    from click.testing import CliRunner

    done = CliRunner().invoke(group, ["ingest", str(logs), "--out", str(tmp_path / "rows"), "--no-strength", "--json"])
    summary = json.loads(done.stdout)
    assert {*summary} >= {
        *("files", "lines", "comments", "scores", "hands", "decisions", "rejected", "rejected_by_reason", "seconds")
    }
    assert summary["hands"] == 240
    shown = CliRunner().invoke(group, ["ingest", str(logs), "--out", str(tmp_path / "rows"), "--no-strength"])
    assert "6 unchanged" in shown.stdout
    assert "240 hands" in shown.stdout


def test_standard_input_is_known_by_its_bytes(logs: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    arguments = ["ingest", "-", "--out", str(tmp_path / "rows"), "--no-strength"]
    texts = [path.read_text() for path in sorted(logs.iterdir())]
    for text, hands in ((texts[0] + texts[1], 80), (texts[0] + texts[1], 80), (texts[2], 120)):
        done = CliRunner().invoke(group, arguments, input=text, catch_exceptions=False)
        assert f" {hands} hands" in done.stdout
    assert load_decisions(tmp_path / "rows").files == ("standard input",)


def test_cards_in_rows_are_those_of_the_hand(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "rows", BARE)
    hands = {
        (hand["file"], hand["hand"]): hand for hand in ds.dataset(tmp_path / "rows" / "hands").to_table().to_pylist()
    }
    found = load_decisions(tmp_path / "rows", streets=["river"])
    for i in range(0, len(found), 7):
        hand = hands[found.files[found.file[i]], int(found.hand[i])]
        holes = hand["cards"].split("/")[0].split("|")
        assert cards_text(found.rows["hole"][i]) == holes[found.rows["position"][i]]
        assert cards_text(found.rows["board"][i]) == "".join(hand["cards"].split("/")[1:])
