"""`match`: play a duplicate match between two or more agents."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pipeline.agents import default_game, resolve
from pipeline.arena import play_match
from pipeline.commands._progress import bar
from pipeline.game import find_game


@click.command()
@click.argument("agents", nargs=-1, required=True, metavar="A B [C]...")
@click.option("--hands", type=click.IntRange(1), default=10_000, show_default=True, help="Hands, all seatings counted.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Same seed, same match.")
@click.option("--game", help="A game file or its name; otherwise the bundles' game, or limit hold'em.")
@click.option("--log", type=click.Path(path_type=Path), help="Write FILE.0.log, FILE.1.log ..., one per seating.")
@click.option("--probabilities", is_flag=True, help="Write the agents' true probabilities beside the logs.")
@click.option("--shared-luck", is_flag=True, help="Share the agents' dice too: a closer comparison of similar agents.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
def command(
    agents: tuple[str, ...],
    hands: int,
    seed: int,
    game: str | None,
    log: Path | None,
    probabilities: bool,
    shared_luck: bool,
    threads: int,
    as_json: bool,
) -> None:
    """Play every deal in all seatings; print what each agent wins, in thousandths of a big blind per hand.

    An agent is @name (@fold @call @raise @random @equity @chump:maniac @teacher ...) or a bundle's folder or zip, with
    options: out/bundle:mode=argmax,chart=selby.

    Example: pipeline match @equity @call --hands 100000 --seed 1
    """
    played = find_game(game) if game else default_game(agents)
    with bar("match", "hands") as progress:
        match = play_match(
            [resolve(agent, played) for agent in agents],
            played,
            hands=hands,
            seed=seed,
            log=log,
            probabilities=probabilities,
            shared_luck=shared_luck,
            threads=threads,
            progress=progress,
        )
    if as_json:
        ranges = [width if width < float("inf") else None for width in map(match.ci95, range(len(agents)))]
        found = {
            **dict(zip("abcdefghijklm", agents, strict=False)),
            "hands": match.hands,
            "mbb_per_hand": match.mbb_per_hand(),
            "ci95": ranges[0],
            "seconds": match.seconds,
            "game": played.name,
            "seed": seed,
            "agents": [
                {"agent": agent, "name": name, "mbb_per_hand": match.mbb_per_hand(i), "ci95": ranges[i]}
                for i, (agent, name) in enumerate(zip(agents, match.names, strict=True))
            ],
            "logs": [str(path) for path in match.logs],
        }
        click.echo(json.dumps(found))
        return
    unit = "mbb/h" if played.is_holdem else "milli-antes/h"
    for i, name in enumerate(match.names):
        click.echo(f"{name:<30} {match.mbb_per_hand(i):+12.1f} ± {match.ci95(i):.1f} {unit}")
    click.echo(f"{match.hands:,} hands of {played.name} in {match.seconds:.1f} s")
    for path in match.logs:
        click.echo(str(path))
