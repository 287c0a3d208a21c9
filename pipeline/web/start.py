"""From what was typed to an explorer: agents opened, the dataset checked, long preparations begun in the background."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.agents.names import is_bundle
from pipeline.dataset.manifest import read_manifest
from pipeline.models.policy import HISTORY_GAMES
from pipeline.poker.game import Game, find_game, parse_game
from pipeline.poker.strength.board_tables import ensure_tables, open_tables
from pipeline.web.app import Explorer
from pipeline.web.shelf import Shelf


def prepare(
    agents: Sequence[str],
    *,
    token: str,
    data: Path | None = None,
    games: Sequence[str] = (),
    save: Path = Path("out/played"),
    matches: Sequence[Path] = (),
    table: Path | None = None,
) -> Explorer:
    """Open what was named; a bundle on a machine without strength tables has them built in the background."""
    offered: list[Game] = [find_game(name) for name in games]
    if data is not None:
        manifest = read_manifest(data)
        offered += [parse_game(text, name) for name, text in manifest.games.items() if name not in HISTORY_GAMES]
    shelf = Shelf(agents, offered)
    explorer = Explorer(shelf, token, data, save, matches, table)
    holdem = any(game.is_holdem for game in shelf.games.values())
    if holdem and any(is_bundle(entry.text) for entry in shelf.entries.values()) and len(open_tables()[0]) == 0:
        explorer.jobs.start("tables", "building the strength tables (once on this machine)", ensure_tables)
    if explorer.hands is not None:
        for name in explorer.hands.games()[:1]:
            explorer.hands.archive(shelf.games[name])
    return explorer
