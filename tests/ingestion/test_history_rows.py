"""Hand histories through ingest and export: every hand accounted for, rows that say what nobody knows."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from played_histories import random_history
from test_histories import HAND, hand, short

from pipeline.cli.main import group
from pipeline.dataset.export import export_hands
from pipeline.dataset.load import load_decisions
from pipeline.dataset.manifest import MAX_LISTED_NAMES, read_manifest
from pipeline.dataset.opening import agent_rows, list_agents
from pipeline.dataset.schema import HANDS
from pipeline.dataset.sql import query
from pipeline.formats.histories.convert import to_acpc
from pipeline.formats.histories.notation import (
    histories_text,
    history_text,
    parse_history,
    parse_table,
    read_section,
    sections,
)
from pipeline.formats.histories.replay import replay
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError

QUIET = options(strength=False)


def tables(folder: Path, name: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for path in sorted((folder / name).rglob("*.parquet")):
        rows += pq.ParquetFile(path).read().to_pylist()
    return rows


def test_a_file_of_hands_becomes_rows_and_what_is_no_hand_is_told(tmp_path: Path) -> None:
    bad = hand(variant="'PO'"), short("['p4 f']")
    text = f"[1]\n{HAND}\n[2]\n{bad[0]}\n[5]\n{bad[1]}\n[7]\n{short(chr(91) + chr(39) + 'p3 f' + chr(39) + chr(93))}"
    (tmp_path / "table.phhs").write_text(text)
    summary = ingest([tmp_path / "table.phhs"], tmp_path / "rows", QUIET)
    assert (summary.lines, summary.hands, summary.rejected) == (4, 2, 2)
    assert summary.rejected_by_reason == {"betting: another player's turn": 1, "variant PO": 1}
    rejected = {str(row["reason"]): row for row in tables(tmp_path / "rows", "rejected")}
    assert str(rejected["variant PO"]["text"]).startswith("[2]\nvariant = 'PO'")
    lines = text.splitlines()
    assert lines[int(str(rejected["variant PO"]["line"])) - 1] == "[2]"
    assert (rejected["variant PO"]["hand"], rejected["variant PO"]["number"]) == (2, "77")
    assert rejected["betting: another player's turn"]["hand"] == 5
    hands = {row["hand"]: row for row in tables(tmp_path / "rows", "hands")}
    assert hands[1]["betting"] == "r250cf/r750f"
    assert hands[1]["cards"] == "AhKh||/2c3c4c"
    assert (hands[1]["payoffs"], hands[1]["stacks"]) == ("350|-100|-250", "10000|9975|inf")
    assert (hands[1]["blinds"], hands[1]["stakes"], hands[1]["decimals"]) == ("50|100|0", "NT 100 trimmed", 2)
    assert (hands[1]["venue"], hands[1]["table"], hands[1]["number"]) == ("A Site", "Blue 7", "77")
    assert hands[7]["partial"] is True
    assert hands[7]["payoffs"] == ""


def test_rows_of_unknown_cards_are_frames_in_pandas_duckdb_and_polars(tmp_path: Path) -> None:
    import polars

    (tmp_path / "table.phhs").write_text(f"[1]\n{HAND}\n[7]\n{short(str(['p3 f']))}")
    ingest([tmp_path / "table.phhs"], tmp_path / "rows")
    frame = load_decisions(tmp_path / "rows", strength=True).frame()
    hidden = ~frame["known"]
    assert 0 < hidden.sum() < len(frame)
    assert set(frame["start"][hidden]) == {"-"}
    assert set(frame["hole"][hidden]) == {""}
    assert set(frame["start"][~hidden]) == {"AKs"}
    assert frame["ehs"][hidden].isna().all()
    assert frame["ehs"][~hidden & (frame["street"] == "flop")].notna().all()
    order = ["street", "agent", "line", "k"]
    frame["street"] = frame["street"].astype(str)
    frame["agent"] = frame["agent"].astype(str)
    facts = frame.sort_values(order)[["start", "known", "action"]].values.tolist()
    sql = f"SELECT start, known, label FROM decisions ORDER BY {', '.join(order)}"
    assert query(tmp_path / "rows", sql).frame().values.tolist() == facts
    read = polars.read_parquet(str(tmp_path / "rows" / "decisions" / "**" / "*.parquet"), hive_partitioning=True)
    text = [polars.col(name).cast(polars.String) for name in ("street", "agent", "start", "label")]
    rows = read.with_columns(text).sort(order).select("start", "known", "label").rows()
    assert [list(row) for row in rows] == facts


def test_the_manifest_counts_what_is_unknown_or_odd_and_names_the_big_blinds(tmp_path: Path) -> None:
    (tmp_path / "a.phhs").write_text(
        f"[1]\n{HAND}\n[2]\n{hand(min_bet='2', blinds_or_straddles='[1, 2, 0]', hand='78')}"
    )
    texts = [short("['p3 f']"), short("['p3 f']", stacks="[200, 200, 45, inf]")]
    (tmp_path / "b.phhs").write_text("".join(f"[{k}]\n{text}\n" for k, text in enumerate(texts)))
    summary = ingest([tmp_path / "a.phhs", tmp_path / "b.phhs"], tmp_path / "rows", QUIET)
    hands = tables(tmp_path / "rows", "hands")
    assert summary.hands == len(hands)
    kept = [log for part in read_manifest(tmp_path / "rows").parts for log in part.logs.values()]
    for what, count in (
        ("unknown_stacks", sum("inf" in str(row["stacks"]) for row in hands)),
        ("unknown_result", sum(row["payoffs"] == "" for row in hands)),
        ("partial", sum(row["partial"] is True for row in hands)),
    ):
        assert count > 0
        assert summary.histories[what] == count == sum(log.histories.get(what, 0) for log in kept)
    assert summary.histories.get("flagged", 0) == sum(row["flagged"] is True for row in hands)
    found: dict[str, int] = {}
    for row in hands:
        size = f"{Decimal(str(row['big_blind'])).scaleb(-int(str(row['decimals']))).normalize():f}"
        found[size] = found.get(size, 0) + 1
    assert summary.big_blinds == found
    assert {size for log in kept for size in log.big_blinds} == set(found)


def test_rows_of_hands_tell_what_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "one.phh").write_text(HAND)
    ingest([tmp_path / "one.phh"], tmp_path / "rows", QUIET)
    found = load_decisions(tmp_path / "rows")
    assert found.agents == ("Ann", "Bob", "Cy")
    assert found.game.name == "holdem.nolimit.histories"
    ann, cy = found.agent == 0, found.agent == 2
    assert found.known[ann].all()
    assert not found.known[cy].any()
    assert (found.rows["stack"][cy] == 0).all()
    assert (found.rows["effective"][ann] == 0).all(), "Cy's stack is not known"
    assert (found.rows["players"] == 3).all()
    assert (found.rows["big_blind"] == 100).all()
    frame = {(row["agent"], row["k"]): row for row in tables(tmp_path / "rows", "decisions")}
    assert frame["Cy", 0]["stack"] is None
    assert (frame["Cy", 0]["start"], frame["Cy", 0]["high"]) == ("-", "-")
    assert frame["Ann", 1]["start"] == "AKs"
    assert (frame["Ann", 1]["to_call"], frame["Ann", 1]["pot"]) == (200, 400)


def test_strength_is_there_where_cards_are_known_and_null_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "one.phh").write_text(HAND)
    ingest([tmp_path / "one.phh"], tmp_path / "rows", options())
    flop = {row["agent"]: row for row in tables(tmp_path / "rows", "decisions") if row["flop_ehs"] is not None}
    assert set(flop) == {"Ann"}
    rows = [row for row in tables(tmp_path / "rows", "decisions") if row["agent"] == "Cy"]
    assert all(row["flop_ehs"] is None and row["flop_q"] is None for row in rows)


def crowd(tables: int, first: int = 0) -> str:
    """Hands at so many tables with three players each who sit at no other."""
    names = ["Ann", "Bob", "Cy"]
    assert f"players = {names}" in HAND
    texts = [
        HAND.replace(f"players = {names}", f"players = {[f'{name}{i}' for name in names]}").replace(
            "hand = 77", f"hand = {i}"
        )
        for i in range(first, first + tables)
    ]
    return "\n".join(f"[{i}]\n{text}" for i, text in enumerate(texts, 1))


def test_players_too_many_for_the_manifest_are_found_in_the_files_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.phhs").write_text(crowd(MAX_LISTED_NAMES))
    ingest([tmp_path / "a.phhs"], tmp_path / "rows", QUIET)
    manifest = read_manifest(tmp_path / "rows")
    preflop = next(file for file in manifest.decisions if file.street == "preflop")
    assert (preflop.agents, preflop.unlisted) == ({}, 3 * MAX_LISTED_NAMES)
    assert manifest.parts[0].logs[f"{tmp_path}/a.phhs"].names == []
    players = sorted(f"{name}{i}" for name in ("Ann", "Bob", "Cy") for i in range(MAX_LISTED_NAMES))
    assert list_agents(tmp_path / "rows") == players
    rows = tables(tmp_path / "rows", "decisions")
    assert agent_rows(tmp_path / "rows", preflop) == {
        name: sum(row["agent"] == name and row["flop"] == "-" and row["board1"] == "-" for row in rows)
        for name in players
    }
    found = load_decisions(tmp_path / "rows")
    assert found.agents == tuple(players)
    assert [found.agents[i] for i in found.agent] == sorted(str(row["agent"]) for row in rows)
    few = ["Ann7", "Cy33"]
    some = load_decisions(tmp_path / "rows", few)
    of_few = np.isin(np.array(found.agents)[found.agent], few)
    assert np.array_equal(some.rows, found.rows[of_few])
    assert len(some) > 0
    with pytest.raises(PipelineError, match=r"no decisions of 'Ann7x' \(did you mean Ann7\?\)"):
        load_decisions(tmp_path / "rows", ["Ann7x"])
    shown = CliRunner().invoke(group, ["info", str(tmp_path / "rows"), "--json"])
    listed = {one["agent"]: one["decisions"] for one in json.loads(shown.output)["agents"]}
    assert listed == {name: sum(row["agent"] == name for row in rows) for name in players}
    text = CliRunner().invoke(group, ["info", str(tmp_path / "rows")], catch_exceptions=False).output
    assert f"and {3 * MAX_LISTED_NAMES - 40} agents with fewer decisions" in text


def test_one_of_many_players_can_be_taken_alone_and_a_wrong_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.phhs").write_text(crowd(MAX_LISTED_NAMES))
    ingest([tmp_path / "a.phhs"], tmp_path / "rows", options(agents=["Bob5"], strength=False))
    manifest = read_manifest(tmp_path / "rows")
    assert manifest.parts[0].logs[f"{tmp_path}/a.phhs"].names == ["Bob5"]
    assert list_agents(tmp_path / "rows") == ["Bob5"]
    with pytest.raises(PipelineError, match="no hand of agent 'Bob5000'"):
        ingest([tmp_path / "a.phhs"], tmp_path / "other", options(agents=["Bob5000"], strength=False))


def test_a_manifest_that_counts_other_players_than_its_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.phhs").write_text(crowd(MAX_LISTED_NAMES))
    ingest([tmp_path / "a.phhs"], tmp_path / "rows", QUIET)
    path = tmp_path / "rows" / "manifest.json"
    whole = path.read_text()
    path.write_text(whole.replace(f'"unlisted": {3 * MAX_LISTED_NAMES}', f'"unlisted": {3 * MAX_LISTED_NAMES - 1}'))
    with pytest.raises(PipelineError, match="other agents than its manifest says"):
        load_decisions(tmp_path / "rows")
    path.write_text(whole.replace(f'"unlisted": {3 * MAX_LISTED_NAMES}', '"unlisted": -1'))
    with pytest.raises(PipelineError, match="is not a file that ingest writes"):
        load_decisions(tmp_path / "rows")


def test_archives_of_many_small_files_and_both_kinds_of_logs_are_read(tmp_path: Path) -> None:
    state = b"STATE:0:r300f:2d3c|Js2s:-100|100:Bob|Alice\n"
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as archive:
        for number in range(6):
            texts = history_text(replace(random_history(number), hand=str(number))).encode()
            member = tarfile.TarInfo(f"deep/{number}.phh")
            member.size = len(texts)
            archive.addfile(member, BytesIO(texts))
        member = tarfile.TarInfo("match.log")
        member.size = len(state)
        archive.addfile(member, BytesIO(state))
    summary = ingest([tmp_path / "all.tar.xz"], tmp_path / "rows", QUIET)
    assert (summary.hands, summary.rejected, summary.files) == (7, 0, 7)
    assert "7 in 7 logs of 1 file\n" in CliRunner().invoke(group, ["info", str(tmp_path / "rows")]).output
    names = {row["names"] for row in tables(tmp_path / "rows", "hands")}
    assert "Bob|Alice" in names
    assert any("player 0|player 1" in str(name) for name in names)


def test_a_deal_with_unknown_cards_is_known_by_venue_table_and_hand(tmp_path: Path) -> None:
    other = hand(hand="78")
    (tmp_path / "a.phhs").write_text(f"[1]\n{HAND}\n[2]\n{other}")
    (tmp_path / "b.phhs").write_text(f"# the same hand again\n[9]\n{HAND}")
    ingest([tmp_path / "a.phhs", tmp_path / "b.phhs"], tmp_path / "rows", QUIET)
    deals = {(Path(str(row["file"])).name, row["hand"]): row["deal"] for row in tables(tmp_path / "rows", "hands")}
    assert deals["a.phhs", 1] == deals["b.phhs", 9]
    assert deals["a.phhs", 1] != deals["a.phhs", 2]


def test_people_can_be_held_out_by_player(tmp_path: Path) -> None:
    hands = [random_history(number, 0.0) for number in range(200)]
    hands = [
        replace(hand, players=tuple(f"player {(number * 7 + p) % 40}" for p in range(hand.count)), hand=str(number))
        for number, hand in enumerate(hands)
        if hand.nolimit
    ]
    (tmp_path / "all.phhs").write_text("".join(histories_text(hands)))
    ingest([tmp_path / "all.phhs"], tmp_path / "rows", options(strength=False, hold_out="players"))
    found = load_decisions(tmp_path / "rows")
    sides = {agent: set(found.validation[found.agent == at].tolist()) for at, agent in enumerate(found.agents)}
    assert all(len(side) == 1 for side in sides.values())
    assert {True, False} == set.union(*sides.values())
    with pytest.raises(PipelineError, match="hold_out"):
        ingest([tmp_path / "all.phhs"], tmp_path / "rows", QUIET)
    with pytest.raises(PipelineError, match="cannot both"):
        options(validation=["*.log"], hold_out="players")


def test_many_players_make_few_files(tmp_path: Path) -> None:
    hands = []
    for number in range(300):
        played = random_history(number, 0.0)
        hands.append(replace(played, players=tuple(f"p{number}.{p}" for p in range(played.count)), hand=str(number)))
    (tmp_path / "all.phhs").write_text("".join(histories_text(hands)))
    summary = ingest([tmp_path / "all.phhs"], tmp_path / "rows", QUIET)
    assert summary.hands == 300
    assert len(list((tmp_path / "rows").rglob("*.parquet"))) <= 10


def test_rows_hold_every_action_and_amount(tmp_path: Path) -> None:
    hands = [replace(random_history(number), hand=str(number)) for number in range(60)]
    (tmp_path / "all.phhs").write_text("".join(histories_text(hands)))
    ingest([tmp_path / "all.phhs"], tmp_path / "rows", QUIET)
    rows = tables(tmp_path / "rows", "decisions")
    for number, history in enumerate(hands, 1):
        mine = sorted((row for row in rows if row["hand"] == number), key=lambda row: int(str(row["k"])))
        taken = [(row["position"], row["action"]) for row in mine]
        expected = [
            (player, f"r{total}" if action == 2 and history.nolimit else "fcr"[action])
            for player, _, action, total in replay(history).betting
        ]
        assert taken == expected


@pytest.mark.parametrize("text", ["variant = 'NT'\n", "variant = 'NT'\n" + "[" * 10_000, f"[1]\n{HAND}\0\n[2]\n\0"])
def test_hostile_histories_end_in_a_sentence_or_a_rejection(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.phh").write_text(text)
    result = CliRunner().invoke(group, ["ingest", str(tmp_path / "bad.phh"), "--out", str(tmp_path / "rows")])
    assert result.exception is None or isinstance(result.exception, PipelineError)


def test_a_hand_of_a_history_in_the_middle_of_a_file_costs_no_other(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    texts = [history_text(replace(random_history(number), hand=str(number))) for number in range(40)]
    for at in range(0, 40, 4):
        cut = int(draw.integers(10, len(texts[at]) - 10))
        texts[at] = texts[at][:cut] + '"' + texts[at][cut:]
    (tmp_path / "all.phhs").write_text("".join(f"[{i}]\n{text}\n" for i, text in enumerate(texts, 1)))
    summary = ingest([tmp_path / "all.phhs"], tmp_path / "rows", QUIET)
    assert summary.lines == summary.hands + summary.rejected == 40
    assert summary.hands >= 30


def test_the_summary_as_json_counts_hands_of_histories(tmp_path: Path) -> None:
    (tmp_path / "one.phh").write_text(HAND)
    command = ["ingest", str(tmp_path / "one.phh"), "--out", str(tmp_path / "rows"), "--no-strength", "--json"]
    result = CliRunner().invoke(group, command)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["hands"] == 1
    assert parse_history(HAND).count == 3


# Export


def test_histories_come_back_from_rows_with_every_action_and_amount(tmp_path: Path) -> None:
    hands = [replace(random_history(number, 0.7), hand=str(number), venue="v") for number in range(80)]
    (tmp_path / "all.phhs").write_text("".join(histories_text(hands)))
    ingest([tmp_path / "all.phhs"], tmp_path / "rows", QUIET)
    done = export_hands(tmp_path / "rows", "phh", tmp_path / "again.phhs")
    assert (done.hands, done.left_out) == (80, {})
    ingest([tmp_path / "again.phhs"], tmp_path / "again", QUIET)
    kept = [name for name in HANDS if name not in ("file", "line", "hand", "game", "expected")]
    before, after = (
        sorted(tables(tmp_path / name, "hands"), key=lambda row: int(str(row["number"]))) for name in ("rows", "again")
    )
    for old, new in zip(before, after, strict=True):
        assert {name: old[name] for name in kept} == {name: new[name] for name in kept}
    text = (tmp_path / "again.phhs").read_bytes()
    found = [parse_table(read_section(text[section.begin : section.end]), 0) for section in sections(text)]
    for history, again in zip(sorted(hands, key=lambda hand: not hand.nolimit), found, strict=True):
        assert replay(again).betting == replay(history).betting
        assert (again.antes, again.blinds, again.stacks) == (history.antes, history.blinds, history.stacks)


STATES = [
    "STATE:0:r300f:2d3c|Js2s:-100|100:Bob|Alice",
    "STATE:1:cc/cr200c/cc/cr400r800f:2d3c|Js2s/4c5c6c/7d/8d:400|-400:Alice|Bob",
    "STATE:2:r20000c///:2d2c|AsAh/4c5c6c/7d/Kd:-20000|20000:Bob|Alice",
]


def test_acpc_lines_come_back_from_histories_and_from_rows(tmp_path: Path) -> None:
    (tmp_path / "2pn.log").write_text("\n".join(STATES) + "\n")
    summary = ingest([tmp_path / "2pn.log"], tmp_path / "rows", QUIET)
    assert (summary.hands, summary.rejected) == (3, 0)
    export_hands(tmp_path / "rows", "acpc", tmp_path / "again.log")
    lines = [line for line in (tmp_path / "again.log").read_text().splitlines() if line.startswith("STATE")]
    assert lines == STATES
    export_hands(tmp_path / "rows", "phh", tmp_path / "again.phhs")
    ingest([tmp_path / "again.phhs"], tmp_path / "histories", QUIET)
    done = export_hands(tmp_path / "histories", "acpc", tmp_path / "third.log")
    lines = [line for line in (tmp_path / "third.log").read_text().splitlines() if line.startswith("STATE")]
    assert lines == STATES, "numbers of hands included"
    again = ingest(
        [tmp_path / "third.log"], tmp_path / "last", options(strength=False, game=str(tmp_path / "third.game"))
    )
    assert (again.hands, again.rejected) == (3, 0)
    assert sorted(Path(file).name for file in done.files) == ["third.game", "third.log"]


def test_what_cannot_be_exported_is_counted_by_reason(tmp_path: Path) -> None:
    (tmp_path / "one.phh").write_text(HAND)
    ingest([tmp_path / "one.phh"], tmp_path / "rows", QUIET)
    command = ["export", "--data", str(tmp_path / "rows"), "--format", "acpc", "--out", str(tmp_path / "a.log")]
    result = CliRunner().invoke(group, [*command, "--json"], catch_exceptions=False)
    assert sum(json.loads(result.stdout)["left_out"].values()) == 1
    assert "not known" in CliRunner().invoke(group, command, catch_exceptions=False).output


def test_a_match_writes_hand_histories(tmp_path: Path) -> None:
    command = ["match", "@call", "@raise", "--hands", "40", "--seed", "3", "--log", str(tmp_path / "m")]
    plain = CliRunner().invoke(group, [*command, "--json"], catch_exceptions=False)
    states = [line for path in json.loads(plain.stdout)["logs"] for line in Path(path).read_text().splitlines()]
    result = CliRunner().invoke(group, [*command[:-1], str(tmp_path / "m.phhs"), "--json"], catch_exceptions=False)
    files = [Path(path) for path in json.loads(result.stdout)["logs"]]
    assert {path.suffix for path in files} == {".phhs"}
    game = builtin(json.loads(result.stdout)["game"])
    again = []
    for path in files:
        data = path.read_bytes()
        again += [str(to_acpc(parse_history(data[s.begin : s.end]), game)) for s in sections(data)]
    assert again == [line for line in states if line.startswith("STATE")]
    called = [*command[:-1], str(tmp_path / "n.phhs"), "--json"]
    result = CliRunner().invoke(group, called, catch_exceptions=False)
    assert [Path(path).name for path in json.loads(result.stdout)["logs"]] == ["n.0.phhs", "n.1.phhs"]
    refused = CliRunner().invoke(group, [*called, "--game", "kuhn.limit.2p"])
    assert isinstance(refused.exception, PipelineError)
