"""`sample`: make logs with the built-in teacher."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli._options import cluster_option, connected, json_option, seed_option
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

if TYPE_CHECKING:
    from pipeline.poker.game import Game

AGAINST = ("@random", "@equity", "@call", "@calibrated:70,70", "@bearl")
AGAINST_ANYWHERE = ("@random", "@call")
"""opponents that play every game"""
DEFAULT_AGENTS = ("@teacher", "@equity", "@call")
"""agents to sample where none is named: the first that plays the game"""


def able_to_play(names: Sequence[str], game: Game) -> tuple[str, ...]:
    """Return those built-in agents that play a game."""
    from pipeline.agents.names import resolve

    players = []
    for name in names:
        with suppress(PipelineError):
            resolve(name, game)
            players.append(name)
    return tuple(players)


def line_ups(agent: str, opponents: Sequence[str], players: int) -> list[tuple[str, ...]]:
    """Return the line-ups of `agent`: with each opponent in turn, in games for three also the one named after it.

    >>> line_ups("@teacher", ["@call", "@raise"], 2)
    [('@teacher', '@call'), ('@teacher', '@raise')]
    >>> line_ups("@teacher", ["@call", "@raise"], 3)
    [('@teacher', '@call', '@raise'), ('@teacher', '@raise', '@call')]
    """
    count = len(opponents)
    others = range(players - 1)
    return [(agent, *(opponents[(first + i) % count] for i in others)) for first in range(count)]


@click.command()
@click.option("--hands", type=click.IntRange(1), required=True, help="Hands in all, all seatings counted.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the logs.")
@seed_option(1)
@click.argument("agents", nargs=-1, metavar="[AGENT] [OPPONENT]...")
@click.option("--game", default="holdem.limit.2p.reverse_blinds", show_default=True, help="A game's name or file.")
@cluster_option
@json_option
def command(
    agents: tuple[str, ...],
    hands: int,
    out: Path,
    seed: int,
    game: str,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Play AGENT against itself (half of the hands) and against OPPONENTS; write ACPC logs.

    AGENT is @teacher unless named, @equity in the hold'em games that the teacher does not play.

    Opponents are @random @equity @call @calibrated:70,70 @bearl unless named (@random @call where the game is not
    hold'em). In games for three every opponent sits with AGENT and the opponent named after it.

    Self-play alone never shows what the teacher does against mistakes, so an imitator needs both. The file
    sample.probs.parquet has the true probabilities of every decision, for `evaluate --probabilities`.

    Example: pipeline sample --hands 20000 --out out/logs

    Example: pipeline sample @equity @call @random --hands 20000 --out out/logs
    """
    from pipeline.agents.names import plain_name, resolve
    from pipeline.arena.duplicate import seatings
    from pipeline.arena.match import THREADS, ClusterTable, play_match
    from pipeline.poker.game import find_game

    began = time.monotonic()
    played = find_game(game)
    if played.players > 3:
        raise PipelineError(f"a sample is made of matches of two or three; {played.name} has {played.players} players")
    agent = agents[0] if agents else able_to_play(DEFAULT_AGENTS, played)[0]
    opponents = agents[1:] or able_to_play(AGAINST if played.is_holdem else AGAINST_ANYWHERE, played)
    matches = [(line_up, hands // 2 // len(opponents)) for line_up in line_ups(agent, opponents, played.players)]
    matches.insert(0, ((agent,) * played.players, hands // 2))
    fewest = len(seatings(played.players))
    total = sum(count for _, count in matches)
    logs: list[Path] = []
    made = 0
    with connected(cluster) as there, bar("sample", "hands") as progress:
        for number, (line_up, count) in enumerate(matches):
            if count < fewest:
                continue
            hands_before = made
            match = play_match(
                [resolve(text, played) for text in line_up],
                played,
                hands=count,
                seed=1000 * seed + number,
                log=out / ".".join([*map(plain_name, line_up), str(seed)]),
                probabilities=True,
                workers=ClusterTable.of(there, line_up) or THREADS,
                progress=lambda now, _, hands_before=hands_before: progress(hands_before + now, total),  # type: ignore[misc]
            )
            logs += match.logs
            made += match.hands
    if not logs:
        raise PipelineError(
            f"{hands} hands are too few for {len(matches)} matches; make at least {2 * fewest * len(matches)}"
        )
    _join(sorted(out.glob(f"*.{seed}.probs.parquet")), out / "sample.probs.parquet")
    seconds = time.monotonic() - began
    if as_json:
        click.echo(json.dumps({"hands": made, "files": [str(path) for path in logs], "seconds": seconds}))
        return
    click.echo(f"{made:,} hands in {len(logs)} logs in {out}, {seconds:.1f} s")


def _join(parts: list[Path], whole: Path) -> None:
    """Join the true probabilities of all matches in one file; rows of logs made before are kept."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tables = [pq.read_table(part) for part in parts]
    if whole.is_file():
        made = pa.array(sorted({name for table in tables for name in table["file"].to_pylist()}))
        before = pq.read_table(whole)
        tables.insert(0, before.filter(pc.invert(pc.is_in(before["file"].cast(pa.string()), value_set=made))))
    with replacing(whole) as beside:
        pq.write_table(pa.concat_tables(tables, promote_options="permissive"), beside, compression="zstd")
    for part in parts:
        part.unlink()
