"""`sample`: make logs with the built-in teacher."""

from __future__ import annotations

import time
from pathlib import Path

import click

from pipeline.cli._options import (
    FOLDER,
    HOLDEM,
    cluster_option,
    connected,
    game_option,
    json_option,
    out_option,
    seed_option,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json


@click.command()
@click.option("--hands", type=click.IntRange(1), required=True, help="Hands in all, all seatings counted.")
@out_option("Folder for the logs.", FOLDER)
@seed_option(1)
@click.argument("agents", nargs=-1, metavar="[AGENT] [OPPONENT]...")
@game_option("A game's name or file.", HOLDEM)
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
    from pipeline.arena.sampling import play_sample
    from pipeline.poker.game import find_game

    began = time.monotonic()
    rules = find_game(game)
    with connected(cluster) as workers, bar("sample", "hands") as progress:
        sample = play_sample(agents, rules, out, hands=hands, seed=seed, cluster=workers, progress=progress)
    seconds = time.monotonic() - began
    if as_json:
        print_json({"hands": sample.hands, "files": list(map(str, sample.logs)), "seconds": seconds})
        return
    click.echo(f"{sample.hands:,} hands in {len(sample.logs)} logs in {out}, {seconds:.1f} s")
