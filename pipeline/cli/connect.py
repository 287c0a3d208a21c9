"""The `connect` command: play an agent on an ACPC dealer's socket."""

from __future__ import annotations

import gc

import click

from pipeline.arena.wire.sockets import Limits
from pipeline.cli._options import game_option, json_option, own_seed_option, time_option
from pipeline.cli._output import print_json
from pipeline.runtime.errors import PipelineError


@click.command()
@click.argument("host")
@click.argument("port", type=click.IntRange(1, 65535))
@click.argument("agent")
@game_option()
@own_seed_option
@time_option("reconnect", "How long to try when the dealer is not there", 0, least=0)
@time_option("response", "Time for one action", Limits().response_ms)
@time_option("hand", "Time for your actions of a hand", Limits().hand_ms)
@time_option("per-hand", "Average time for a hand", Limits().per_hand_ms)
@json_option
def command(
    host: str,
    port: int,
    agent: str,
    game: str | None,
    seed: int | None,
    reconnect_ms: int,
    as_json: bool,
    **limits: int,
) -> None:
    """Play AGENT on the ACPC dealer at HOST PORT until the match ends.

    AGENT is a bundle's folder or zip, @name[:arguments] of a built-in agent, or a bot of your own, as
    python:./file.py:factory.

    Example: pipeline connect localhost 18791 models/teacher
    """
    from pipeline.agents.names import choose_game, resolve
    from pipeline.arena.wire.client import connect_agent

    player = resolve(agent, choose_game(game, [agent, agent]), trusted=True)
    # A match makes millions of short-lived objects and no cycles: at the usual threshold the collector goes through
    # them every 700 allocations, a tenth of the time.
    gc.set_threshold(100_000)
    summary = connect_agent(
        player,
        host,
        port,
        seed=seed,
        reconnect_ms=reconnect_ms,
        **limits,
    )
    if as_json:
        print_json(summary.json())
    else:
        click.echo(
            f"{summary.hands:,} hands, {summary.chips:+,.0f} chips ({summary.mbb_per_hand:+,.0f} mbb/h); "
            f"{summary.decisions:,} decisions, {summary.mean_ms:.2f} ms on average, "
            f"99% within {summary.p99_ms:.2f} ms, longest {summary.longest_ms:.1f} ms, {summary.overdue} overdue"
        )
    if not summary.complete:
        raise PipelineError(f"the dealer at {host} port {port} left before the match was over")
