"""What governs a line is known wherever a log is cut: its verdict never depends on where a piece ends."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import played
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.formats.acpc import REASONS, Header
from pipeline.ingestion.hand_buffers import Lineups
from pipeline.ingestion.hands import scan_lines
from pipeline.ingestion.log_context import context_after, first_context, header_resolver
from pipeline.ingestion.options import Options
from pipeline.ingestion.readers import LogPiece, log_pieces, open_source
from pipeline.ingestion.run import ingest
from pipeline.ingestion.sources import find_sources
from pipeline.poker.game import Game, builtin, find_game

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
GAMES = [LIMIT, builtin("holdem.nolimit.2p.reverse_blinds"), builtin("leduc.limit.2p"), builtin("holdem.limit.3p")]
OPTIONS = Options(strength=False)


def verdicts(path: Path, size: int) -> list[str]:
    """What is said of every line of a log that is read in pieces of about `size` bytes."""
    said: list[str] = []
    ((source,), _) = find_sources([path])
    with open_source(source) as stream:
        governed = None
        for piece in log_pieces(source, stream, size):
            assert isinstance(piece, LogPiece)
            if governed is None:
                governed = first_context(OPTIONS, path.name, piece.data, piece.ahead)
            found = scan_lines(
                np.frombuffer(piece.data, np.uint8),
                0,
                governed.match,
                Lineups(),
                header_resolver(OPTIONS, piece.ahead),
                names=governed.names,
            )
            lines = ["comment or score"] * found.lines
            for hands in found.matches:
                for record in hands.records:
                    lines[record["line"]] = f"hand of {hands.match.game and hands.match.game.name}"
            for bad in found.rejected:
                lines[bad["line"]] = REASONS[bad["code"]]
            said += lines
            governed = context_after(OPTIONS, governed, piece.data, piece.ahead)
    return said


def match(game: Game, rng: random.Random, names: tuple[str, ...]) -> list[str]:
    """Some hands of a match, with or without what belongs around them."""
    known = rng.choice([f"/x/{game.name}.game", "house.game"])
    header = str(Header("a match", known, 9, rng.randrange(99)))
    lines = [header] * (rng.random() < 0.6)
    for i in range(rng.randrange(8)):
        hand = played.hand(game, rng, i, names if i % 2 else names[::-1])
        line = str(hand) if rng.random() < 0.8 else played.older(game, hand)
        lines.append(played.spoil(line, rng) if rng.random() < 0.15 else line)
        if rng.random() < 0.1:
            lines.append(rng.choice([header[: rng.randrange(40)], "#--t 600", "", "x" * rng.randrange(60), "SCORE:1"]))
    score = "SCORE:" + "|".join("0" * game.players) + ":" + "|".join(names)
    return lines + [score] * (rng.random() < 0.4)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), size=st.integers(1, 900))
def test_the_verdict_on_a_line_does_not_depend_on_where_a_piece_ends(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int
) -> None:
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(rng.randrange(1, 7)):
        game = rng.choice(GAMES)
        lines += match(game, rng, tuple(rng.sample(["Ann", "Bob", "Eve", "Dan"], game.players)))
    path = tmp_path_factory.mktemp("cut") / "x.log"
    path.write_text("\n".join(lines) + "\n" * rng.randrange(2))
    if path.stat().st_size and any(line.startswith("STATE:") for line in lines):
        assert verdicts(path, size) == verdicts(path, 1 << 20)


def long_log(rng: random.Random, hands: int, names: tuple[str, str] = ("Ann", "Bob")) -> list[str]:
    """Lines of a match, as many as asked for, from a few hands."""
    few = [str(played.hand(LIMIT, rng, i, names if i % 2 else names[::-1])) for i in range(50)]
    return [few[i % 50] for i in range(hands)]


HEADER = str(Header("x", "holdem.limit.2p.reverse_blinds.game", 40_000, 1))


@pytest.mark.parametrize(
    "how", ["truncated header", "unknown game at a boundary", "two matches without headers", "foreign first line"]
)
def test_a_log_over_a_mebibyte_keeps_all_its_hands(how: str, tmp_path: Path) -> None:
    rng = random.Random(how)
    hands = long_log(rng, 24_000)
    lines = [HEADER, *hands]
    if how == "truncated header":
        lines.insert(100, HEADER[:30])
    elif how == "unknown game at a boundary":
        unknown = HEADER.replace("holdem.limit.2p.reverse_blinds", "house")
        size, room = 1 << 20, (1 << 20) - len(unknown) - 100
        at = int(np.searchsorted(np.cumsum([len(line) + 1 for line in lines]), room))
        missing = size - sum(len(line) + 1 for line in lines[:at]) - len(unknown) - 1
        lines = [*lines[:at], "#" + "x" * (missing - 2), unknown, *lines[at:]]
        assert len("\n".join(lines[: at + 2])) + 1 == size
    elif how == "two matches without headers":
        lines = [*hands[:12_000], *long_log(rng, 12_000, ("Eve", "Dan"))]
    else:
        lines = [str(played.hand(LIMIT, rng, 0, ("Eve", "Dan"))), *hands[1:]]
    (tmp_path / "x.log").write_text("\n".join(lines) + "\n")
    assert (tmp_path / "x.log").stat().st_size > 1 << 20
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", OPTIONS)
    assert (summary.hands, summary.rejected) == (24_000, 0)


def test_a_name_may_begin_with_a_number_sign(tmp_path: Path) -> None:
    game = find_game("holdem.limit.2p.reverse_blinds")
    rng = random.Random(1)
    lines = [played.older(game, played.hand(game, rng, i, ("#1", ";b"))) for i in range(20)]
    (tmp_path / "x.log").write_text("# a comment\n" + "\n".join(lines) + "\n")
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", OPTIONS)
    assert (summary.hands, summary.comments, summary.rejected) == (20, 1, 0)


def _acted(betting: str) -> tuple[bool, bool]:
    """Whether the big blind and the button had a decision: the button acts first before the flop."""
    return len(betting.replace("/", "")) > 1, True


def test_a_hundred_line_ups_and_more_are_told_apart(tmp_path: Path) -> None:
    rng = random.Random(2)
    lines = [str(played.hand(LIMIT, rng, i, (f"player{i}", f"other{i % 700}"))) for i in range(1500)]
    (tmp_path / "x.log").write_text("\n".join(lines) + "\n")
    summary = ingest([tmp_path / "x.log"], tmp_path / "rows", OPTIONS)
    assert (summary.hands, summary.rejected) == (1500, 0)
    from pipeline.dataset.load import load_decisions

    found = load_decisions(tmp_path / "rows")
    acting = {
        name
        for line in lines
        for name, acts in zip(line.split(":")[-1].split("|"), _acted(line.split(":")[2]), strict=True)
        if acts
    }
    assert set(found.agents) == acting
    assert len(acting) > 1500
    for i in range(0, len(found), 97):
        names = lines[found.hand[i]].split(":")[-1].split("|")
        position = found.rows["position"][i]
        assert found.agents[found.agent[i]] == names[position]
        assert found.opponents[found.opponent[i]] == names[1 - position]
    one = load_decisions(tmp_path / "rows", ["other7"])
    assert len(one) == int((found.agent == found.agents.index("other7")).sum()) > 0
    assert one.agents == ("other7",)
    assert set(one.opponents) <= {"player7", "player707", "player1407"}
