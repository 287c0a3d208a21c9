"""Text of poker sites through ingest: recognised, every hand accounted for, results and rake checked."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from test_histories import HAND, SITE_LOG

from pipeline.cli.main import group
from pipeline.formats.histories.sites import SITES, site_of, unread_site
from pipeline.ingestion import readers
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest

BARE = options(strength=False)
FULL_TILT = """Full Tilt Poker Game #1234567: Table Ivy (6 max) - $0.50/$1 - No Limit Hold'em - 10:35:30 ET - 2009/07/15
Seat 1: Ann ($100)
Seat 2: Bob ($99.75)
Seat 3: Cy ($50)
Ann posts the small blind of $0.50
Bob posts the big blind of $1
The button is in seat #3
*** HOLE CARDS ***
Cy raises to $3
Ann calls $2.50
Bob folds
*** FLOP *** [2c 3c 4c]
Ann bets $5
Cy folds
Uncalled bet of $5 returned to Ann
Ann mucks
Ann wins the pot ($6.65)
*** SUMMARY ***
Total pot $7 | Rake $0.35
Board: [2c 3c 4c]
Seat 1: Ann (small blind) collected ($6.65), mucked
Seat 2: Bob (big blind) folded before the Flop
Seat 3: Cy (button) folded on the Flop


"""
PARTY = """Game #8281133 starts.

#Game No : 8281133
***** Hand History for Game 8281133 *****
$100 USD NL Texas Hold'em - Wednesday, July 15, 09:40:57 EDT 2009
Table Blue (Real Money)
Seat 3 is the button
Total number of players : 3/6
Seat 1: Ann ( $100 USD )
Seat 2: Bob ( $99.75 USD )
Seat 3: Cy ( $50 USD )
Ann posts small blind [$0.50 USD].
Bob posts big blind [$1 USD].
** Dealing down cards **
Cy raises [$3 USD]
Ann calls [$2.50 USD]
Bob folds
** Dealing Flop ** [ 2c, 3c, 4c ]
Ann bets [$5 USD]
Cy folds
Ann does not show cards.
Ann wins $11.65 USD


"""


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = ds.dataset(folder / table).to_table().to_pylist()
    return found


@pytest.mark.parametrize(
    ("site", "text", "venue"),
    [
        ("pokerstars", SITE_LOG, "PokerStars"),
        ("full_tilt_poker", FULL_TILT, "Full Tilt Poker"),
        ("partypoker", PARTY, "PartyPoker"),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_sites_text_becomes_rows_with_its_rake(site: str, text: str, venue: str, ends: str, tmp_path: Path) -> None:
    assert site_of(text.encode()) == site
    (tmp_path / "table.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", ends).encode())
    summary = ingest([tmp_path / "table.txt"], tmp_path / "rows", BARE)
    assert (summary.lines, summary.hands, summary.rejected, summary.rejected_by_reason) == (1, 1, 0, {})
    (hand,) = rows(tmp_path / "rows", "hands")
    assert (hand["names"], hand["betting"], hand["payoffs"]) == ("Ann|Bob|Cy", "r300cf/r800f", "365|-100|-300")
    assert (hand["rake"], hand["flagged"], hand["venue"], hand["line"], hand["decimals"]) == (35, False, venue, 1, 2)
    assert hand["stacks"] == "10000|9975|5000"


def test_a_rake_that_the_results_do_not_leave_is_flagged(tmp_path: Path) -> None:
    text = (
        SITE_LOG
        + SITE_LOG.replace("Rake $0.35", "Rake $0.05")
        + SITE_LOG.replace("collected $6.65", "collected $16.65")
    )
    (tmp_path / "table.txt").write_text(text)
    summary = ingest([tmp_path / "table.txt"], tmp_path / "rows", BARE)
    assert (summary.hands, summary.histories["flagged"]) == (3, 2)
    hands = sorted(rows(tmp_path / "rows", "hands"), key=lambda hand: int(str(hand["line"])))
    assert [(hand["flagged"], hand["rake"]) for hand in hands] == [(False, 35), (True, 35), (True, 0)]
    starts = [i for i, line in enumerate(text.splitlines(), 1) if line.startswith("PokerStars")]
    assert [hand["line"] for hand in hands] == [hand["hand"] for hand in hands] == starts


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Bob: folds\n", "", "betting: an action is missing or too much"),
        (
            "Ann: posts small",
            "Cy: posts the ante $0.10\nAnn: posts small",
            "fields: antes, which are not read from this site's text",
        ),
        ("Bob: posts big blind $1", "Bob: posts small & big blinds $1.50", "fields: blinds posted out of turn"),
        ("Hold'em No Limit", "Omaha Pot Limit", "grammar: PokerKit cannot read it (ValueError)"),
        ("Ann: bets $5", "Ann: bets $99999", "grammar: PokerKit cannot read it"),
    ],
)
def test_what_cannot_be_read_of_a_sites_text_is_rejected_with_its_place(
    old: str, new: str, reason: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = SITE_LOG + SITE_LOG.replace(old, new)
    (tmp_path / "table.txt").write_text(text)
    summary = ingest([tmp_path / "table.txt"], tmp_path / "rows", BARE)
    assert (summary.lines, summary.hands, summary.rejected) == (2, 1, 1)
    (bad,) = rows(tmp_path / "rows", "rejected")
    assert str(bad["reason"]).startswith(reason)
    assert bad["line"] == len(SITE_LOG.splitlines()) + 1
    assert str(bad["text"]).startswith("PokerStars Game #60973377752")
    assert capfd.readouterr() == ("", "")


def test_a_long_file_of_a_site_is_cut_between_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(SITE_LOG.replace("60973377752", str(60973377752 + i)) for i in range(40))
    (tmp_path / "table.txt").write_text(text)
    ingest([tmp_path / "table.txt"], tmp_path / "whole", BARE)
    monkeypatch.setattr(readers, "WINDOW", 5_000)
    monkeypatch.setattr(readers, "BLOCK", 1_000)
    ingest([tmp_path / "table.txt"], tmp_path / "cut", BARE)
    assert rows(tmp_path / "cut", "hands") == rows(tmp_path / "whole", "hands")
    assert len(rows(tmp_path / "cut", "hands")) == 40


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Poker Hand #RC1234: Hold'em No Limit ($0.5/$1) - 2023/01/01 10:00:00\n", "GGPoker"),
        ("Winamax Poker - CashGame - HandId: #1-2-3 - Holdem no limit\n", "Winamax"),
        ("***** 888poker Hand History for Game 1 *****\n", "888poker"),
        ("Ignition Hand #1 TBL#2 HOLDEM No Limit\n", "Bovada"),
        ('{"ohh": {"spec_version": "1.2.2"}}\n', "Open Hand History"),
    ],
)
def test_forms_that_are_not_read_are_named(text: str, name: str, tmp_path: Path) -> None:
    assert unread_site(text.encode()) == name
    (tmp_path / "x.txt").write_text(text)
    (tmp_path / "table.txt").write_text(SITE_LOG)
    summary = ingest([tmp_path], tmp_path / "rows", BARE)
    ((_, reason),) = summary.skipped
    assert reason == f"is a hand history of {name}, which is not read (those of {', '.join(SITES)} are)"


def test_show_hand_reads_hand_histories_and_text_of_sites(tmp_path: Path) -> None:
    (tmp_path / "a.phhs").write_text(f"[1]\n{HAND}\n[3]\n{HAND}\n")
    (tmp_path / "b.txt").write_text(SITE_LOG + SITE_LOG)
    second = len(SITE_LOG.splitlines()) + 1
    for path, number in ((tmp_path / "b.txt", second), (tmp_path / "b.txt", 1)):
        shown = CliRunner().invoke(group, ["show", "hand", str(path), str(number), "@call"])
        assert shown.exit_code == 0, shown.output
        assert "Ann wins 365: Bob and Cy folded" in shown.output
        assert f"hand {number} of holdem.nolimit.3p" in shown.output
    shown = CliRunner().invoke(group, ["show", "hand", str(tmp_path / "a.phhs"), "3"])
    assert shown.exit_code == 0, shown.output
    assert "hand 3 of" in shown.output
    missing = CliRunner().invoke(group, ["show", "hand", str(tmp_path / "a.phhs"), "2"])
    assert "has no hand 2" in str(missing.exception) + missing.output
