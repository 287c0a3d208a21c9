"""Decision rows as text for Wapiti and CRF++, in the thesis's fifteen columns and the label.

Columns: street (`pflop` before the flop), position, the betting of the four streets, two hole ranks, five board ranks,
suit pattern, hand name, label; `-` for nothing, spaces inside a value become `_`. A blank line ends a sequence, which
is one decision or all of an agent's decisions in a hand. Files: `wapiti/<agent>/<street>.train.txt` and `.devel.txt`
(the validation side), or `hands.train.txt` and `hands.devel.txt` when a sequence is a hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline.dataset.decisions import STREETS
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import agent_rows
from pipeline.poker.game import parse_game
from pipeline.runtime.files import replacing

COLUMNS = [
    *("position", *STREETS, "high", "low", "ranks", "pattern", "name", "label"),
    "file",
    "line",
    "k",
    "validation",
]
_SIDES = {False: "train", True: "devel"}


def export_wapiti(folder: Path, by_hand: bool = False) -> list[Path]:
    """Write a dataset's decisions as text below it; return the files written."""
    manifest = read_manifest(folder)
    players = {name: parse_game(text, name).players for name, text in manifest.games.items()}
    written: set[Path] = set()
    with replacing(folder / "wapiti") as beside:
        beside.mkdir(parents=True)

        def append(agent: str, name: str, held_out: bool, text: str) -> None:
            # opened for each piece of text: a file left open per agent and street is too many for the system
            path = Path(_folder_name(agent)) / f"{name}.{_SIDES[held_out]}.txt"
            (beside / path.parent).mkdir(exist_ok=True)
            with (beside / path).open("ab") as file:
                file.write(text.encode())
            written.add(folder / "wapiti" / path)

        for part in manifest.parts:
            tables: dict[tuple[str, str], dict[str, Any]] = {}
            for file in part.files:
                if file.street and file.game:
                    table = _rows(folder / file.path, file.street, players[file.game])
                    first = 0
                    for agent, rows in agent_rows(folder, file).items():
                        tables.setdefault((agent, file.game), {})[file.street] = table.slice(first, rows)
                        first += rows
            for (agent, _), streets in sorted(tables.items()):
                _write(streets, by_hand, partial(append, agent))
    return sorted(written)


def _folder_name(agent: str) -> str:
    """Return the name of an agent's folder: no path, and short enough for the system.

    >>> _folder_name("a/b"), _folder_name(".."), len(_folder_name("é" * 64))
    ('a%2Fb', '%2E%2E', 177)
    """
    name = quote(agent, safe="")
    if not name.strip("."):
        return name.replace(".", "%2E")
    return name if len(name) <= 200 else f"{name[:160]}-{hashlib.sha256(agent.encode()).hexdigest()[:16]}"


def _write(tables: dict[str, Any], by_hand: bool, append: Callable[[str, bool, str], None]) -> None:
    """Write the rows of an agent in a part."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if by_hand:
        order = [(name, "ascending") for name in ("file", "line", "k")]
        tables = {"hands": pa.concat_tables(tables.values()).sort_by(order)}
    for name, table in tables.items():
        for held_out in (False, True):
            rows = table.filter(pc.equal(table["validation"], held_out)).combine_chunks()
            if rows.num_rows == 0:
                continue
            breaks: Any = "\n\n"
            if by_hand:
                pairs = [(rows[key].slice(1), rows[key].slice(0, rows.num_rows - 1)) for key in ("file", "line")]
                inside = pc.and_(*(pc.equal(later, earlier) for later, earlier in pairs)).to_pylist()
                breaks = pa.array(["\n" if same else "\n\n" for same in (*inside, False)])
            lines = pc.binary_join_element_wise(rows["text"], breaks, "")
            append(name, held_out, "".join(lines.to_pylist()))


def _rows(path: Path, street: str, players: int) -> Any:
    """Return a file's rows as text, with file, line and index of each decision."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with path.open("rb") as opened, pq.ParquetFile(opened) as file:
        table = file.read(columns=COLUMNS)

    def texts(name: str, change: Callable[[str], str] = lambda text: text.replace(" ", "_")) -> Any:
        column = table[name].combine_chunks()
        words = pa.array([change(text) for text in column.dictionary.to_pylist()], pa.string())
        return words.take(column.indices)

    seats = ["blind", "button"] if players == 2 else [str(i) for i in range(players)]
    parts = [
        pa.array(["pflop" if street == "preflop" else street]).take(pa.array([0] * table.num_rows)),
        pa.array(seats).take(table["position"].combine_chunks()),
        *(texts(name) for name in (*STREETS, "high", "low")),
        texts("ranks", lambda text: " ".join(text.strip("-").ljust(5, "-"))),
        *(texts(name) for name in ("pattern", "name", "label")),
    ]
    text = pc.binary_join_element_wise(*parts, " ")
    file_names = texts("file", str)
    return pa.table(
        {"text": text, "file": file_names, "line": table["line"], "k": table["k"], "validation": table["validation"]}
    )
