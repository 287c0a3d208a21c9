"""The `deal` command: run an ACPC dealer."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import click

from pipeline.commands._progress import bar
from pipeline.dealer import listen, run_match
from pipeline.dealing import Limits, MatchPlan
from pipeline.errors import PipelineError
from pipeline.files import Progress
from pipeline.game import find_game


@click.command()
@click.argument("game")
@click.argument("names", nargs=-1, required=True)
@click.option("--hands", type=click.IntRange(1), required=True, help="Hands to deal.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Decides the cards.")
@click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True, help="One per seat; free ones if none.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--log", "log_file", type=click.Path(dir_okay=False, path_type=Path), help="Write finished hands.")
@click.option(
    "--transactions", type=click.Path(dir_okay=False, path_type=Path), help="Write every action, to resume from."
)
@click.option("--resume", is_flag=True, help="Take up the match of --transactions where it was interrupted.")
@click.option("--fixed-seats", is_flag=True, help="Keep everybody's position for the whole match.")
@click.option("--response-ms", default=Limits().response_ms, show_default=True, help="Time for one action.")
@click.option("--hand-ms", default=Limits().hand_ms, show_default=True, help="Time for a player's actions of a hand.")
@click.option("--per-hand-ms", default=Limits().per_hand_ms, show_default=True, help="Average time for a hand.")
@click.option("--start-ms", default=Limits().start_ms, show_default=True, help="Time for all players to connect.")
def command(
    game: str,
    names: tuple[str, ...],
    hands: int,
    seed: int,
    ports: tuple[int, ...],
    host: str,
    log_file: Path | None,
    transactions: Path | None,
    resume: bool,
    fixed_seats: bool,
    response_ms: int,
    hand_ms: int,
    per_hand_ms: int,
    start_ms: int,
) -> None:
    """Deal a match of GAME to players NAMES over TCP, as the official ACPC dealer does.

    The first line printed has the ports, in seat order; the last one the score.

    Example: pipeline deal holdem.limit.2p.reverse_blinds Alice Bob --hands 3000 --seed 1 --log match.log
    """
    gc.set_threshold(100_000)  # looking for garbage took a tenth of the time
    rules = find_game(game)
    if resume and transactions is None:
        raise PipelineError("--resume needs the file of the interrupted match: --transactions FILE")
    if ports and len(ports) != len(names):
        raise PipelineError(f"{len(ports)} ports for {len(names)} players; give one --port per seat, or none")
    title = log_file.stem if log_file else "match"
    limits = Limits(response_ms, hand_ms, per_hand_ms, start_ms)
    match = MatchPlan(rules, names, hands, seed, title=title, fixed=fixed_seats, limits=limits)
    listeners = listen(ports or (0,) * len(names), host)
    click.echo(" ".join(str(listener.getsockname()[1]) for listener in listeners))
    with ExitStack() as stack:

        @cache
        def started() -> Progress:
            return stack.enter_context(bar("dealing", "hands"))  # the clock starts with the first hand

        outcome = run_match(
            match,
            listeners,
            log_file=log_file,
            transactions=transactions,
            resume=resume,
            progress=lambda done, total: started()(done, total),
        )
    click.echo(str(outcome.score))
