"""Generated and mutated log lines of every form and game: ingest and the slow rules say the same of each.

Lines are hands played at random, as logs of 2011 or of 2009 write them, hands whose payoffs are all-in expectations,
and both of these changed: at random, or in ways that keep the form (a size off by one, an action more or less, two
cards exchanged, payoffs exchanged). Each batch is a log of one game, ingested as a user would; then every line's
verdict and every row of every hand are compared with those of `slow_rules`.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import played
import pyarrow.parquet as pq
import slow_rules

from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import Game, find_game, game_names

BATCH = 2000
"""lines of a log; fewer when there are few in all, so that every game has its turn"""
COLUMNS = (
    *("k", "position", "to_call", "pot", "raises", "stack", "legal", "previous", *slow_rules.STREETS, "players"),
    *("in_hand", "to_act", "relative_position", "aggressor", "label", "action", "amount", "agent", "opponents"),
    *("result", "hole1", "hole2", "board1", "board2", "board3", "board4", "board5"),
)


def nudged(line: str, luck: random.Random) -> str:
    """A line changed in a way that keeps its form."""
    kind = luck.randrange(7)
    fields = line.split(":")
    betting = 2
    if kind == 0:
        numbers = list(re.finditer(r"[0-9]+", line))
        found = luck.choice(numbers)
        return line[: found.start()] + str(max(0, int(found[0]) + luck.choice([-1, 1, 100]))) + line[found.end() :]
    if kind in (1, 2):
        tokens = re.findall("[bfcr][0-9]*|/", fields[betting]) or ["c"]
        at = luck.randrange(len(tokens))
        if kind == 1:
            tokens.insert(at, luck.choice([*tokens, "f", "c", "r", "/", "r300"]))
        else:
            tokens[at] = luck.choice(["", "f", "c", "r", "/", "r20000", *tokens])
        fields[betting] = "".join(tokens)
        return ":".join(fields)
    if kind in (3, 4):
        cards = re.findall("[2-9TJQKA][cdhs]", fields[3])
        one, other = luck.choice(cards), luck.choice(cards) if kind == 3 else luck.choice(["As", "2c", "Kh", "Td"])
        fields[3] = fields[3].replace(one, "??").replace(other, one).replace("??", other)
        return ":".join(fields)
    if kind == 5:
        halves = fields[4].split("|")
        luck.shuffle(halves)
        fields[4] = "|".join(halves)
        return ":".join(fields)
    return line + luck.choice([" 0", " 1", " # 12.5", " 1 # 3\r", "\r", " ", "#", " 2"])


def expected(line: str, game: slow_rules.Game) -> str:
    """The line of an early all-in with its expectation, if it is one with at most two cards to come."""
    found = slow_rules.judge(line, game)
    if found.word != "hand" or found.hand is None or not line.startswith("STATE:"):
        return line
    fields, hand = line.split(":"), found.hand
    last = slow_rules.STREETS.index(hand.rows[-1]["street"])
    known = [card for cards in found.board for card in cards][: sum(game.board[: last + 1])]
    missing = sum(game.board) - len(known)
    if last == hand.street or len(hand.folded) > game.players - 2 or not 0 < missing <= 2:
        return line
    left = sorted(game.deck - {card for cards in found.holes for card in cards} - set(known))
    boards = [
        hand.payoffs([slow_rules.value([*cards, *known, *more]) for cards in found.holes])
        for more in slow_rules.combinations(left, missing)
    ]
    fields[4] = "|".join(f"{sum(column) / len(boards):.6f}" for column in zip(*boards, strict=True))
    return ":".join(fields)


def lines(game: Game, slow: slow_rules.Game, count: int, luck: random.Random) -> list[str]:
    """Lines of one game, right and wrong ones."""
    found: list[str] = []
    while len(found) < count:
        hand = played.hand(game, luck, len(found), tuple(f"p{luck.randrange(50)}.{i}" for i in range(game.players)))
        line = str(hand) if luck.random() < 0.6 else played.older(game, hand)
        if luck.random() < 0.02:
            line = expected(line, slow)
        found.append(line)
        found += [nudged(line, luck) for _ in range(3)] + [played.spoil(line, luck) for _ in range(3)]
        found.append(nudged(nudged(line, luck), luck))
    return [re.sub(r"[\n]", "", line) for line in found[:count]]


def ingested(text: list[str], game: str) -> tuple[dict[int, str], dict[int, list[dict[str, Any]]]]:
    """What ingest says of each line, and the rows of each hand in the order of its actions."""
    folder = Path(tempfile.mkdtemp(prefix="differential-"))
    (folder / "a.log").write_text("".join(f"{line}\n" for line in text), newline="")
    ingest([folder / "a.log"], folder / "rows", options(strength=False, game=game))
    said: dict[int, str] = {}
    for path in (folder / "rows" / "hands").glob("*.parquet"):
        for row in pq.ParquetFile(path).read(columns=["line", "expected"]).to_pylist():
            said[row["line"]] = "expected" if row["expected"] else "hand"
    for path in (folder / "rows" / "rejected").glob("*.parquet"):
        said |= {row["line"]: row["reason"] for row in pq.ParquetFile(path).read().to_pylist()}
    rows: dict[int, list[dict[str, Any]]] = {}
    for path in (folder / "rows" / "decisions").rglob("*.parquet"):
        for row in pq.ParquetFile(path).read(columns=["line", *COLUMNS]).to_pylist():
            rows.setdefault(row.pop("line"), []).append(row)
    shutil.rmtree(folder)
    return said, {line: sorted(found, key=lambda row: row["k"]) for line, found in rows.items()}


def campaign(count: int, seed: int, first: int = 0, kept: Path = Path("out/torture")) -> dict[str, int]:
    """Compare `count` lines after the `first` batches; how many of each verdict there were, and how many rows."""
    names = [*game_names(), "kuhn.limit.5p"]
    outcomes: Counter[str] = Counter()
    batch = min(BATCH, -(-count // len(names)))
    for number in range(first, first + -(-count // batch)):
        luck = random.Random(f"{seed} {number}")
        game = find_game(names[number % len(names)])
        slow = slow_rules.read_game(game.text)
        text = lines(game, slow, min(batch, count - (number - first) * batch), luck)
        said, rows = ingested(text, game.name)
        for i, line in enumerate(text, 1):
            verdict = slow_rules.judge(line, slow)
            mine, theirs = verdict.word, said.get(i, "comment or score")
            right = [] if verdict.hand is None else slow_rules.rows(verdict)
            same = mine == theirs or (theirs == "comment or score" and mine in ("comment", "score"))
            if mine == "undecided":
                same = theirs in ("expected", "payoffs: not what betting and cards give")
            if same and theirs in ("hand", "expected"):
                given = [{name: row[name] for name in COLUMNS} for row in right]
                same = given == rows.get(i, [])
                outcomes["rows: equal"] += len(given)
            if not same:
                kept.mkdir(parents=True, exist_ok=True)
                (kept / "line.log").write_text(f"{line}\n")
                shown = [(a, b) for a, b in zip(right, rows.get(i, []), strict=False) if a.items() < b.items()][:1]
                raise AssertionError(
                    f"{game.name}: {line!r} (kept in {kept / 'line.log'}): {mine!r} by the slow rules, {theirs!r} by "
                    f"ingest {shown or ''}; repeat it by --seed {seed} --first {number} --count {batch}"
                )
            outcomes[f"lines: {theirs}"] += 1
    return dict(sorted(outcomes.items()))
