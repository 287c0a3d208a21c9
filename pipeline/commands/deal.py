"""The `deal` command: run an ACPC dealer."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.commands._log_format import check_log_format, log_format_option, written_logs
from pipeline.commands._progress import bar
from pipeline.errors import PipelineError
from pipeline.files import Progress
from pipeline.time_limits import Limits

if TYPE_CHECKING:
    from pipeline.acpc import Hand
    from pipeline.dealer import Outcome
    from pipeline.dealing import MatchPlan


@click.command()
@click.argument("game")
@click.argument("names", nargs=-1, required=True)
@click.option("--hands", type=click.IntRange(1), required=True, help="Hands to deal.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Decides the cards.")
@click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True, help="One per seat; free ones if none.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--log", "log_file", type=click.Path(dir_okay=False, path_type=Path), help="Write finished hands.")
@log_format_option
@click.option(
    "--transactions", type=click.Path(dir_okay=False, path_type=Path), help="Write every action, to resume from."
)
@click.option("--resume", is_flag=True, help="Take up the match of --transactions where it was interrupted.")
@click.option("--duplicate", is_flag=True, help="Play the same cards in every seating; print mbb/h.")
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
    log_format: str,
    transactions: Path | None,
    resume: bool,
    duplicate: bool,
    fixed_seats: bool,
    response_ms: int,
    hand_ms: int,
    per_hand_ms: int,
    start_ms: int,
) -> None:
    """Deal a match of GAME to players NAMES over TCP, as the official ACPC dealer does.

    The first line printed has the ports, in seat order; the last one the score. With --duplicate every seating is a
    match of its own with the same cards (two matches for two players, six for three): the ports are printed again for
    each, in the order of NAMES, every player is started anew, and the last lines say what each wins in thousandths of
    a big blind per hand, ± half a 95% interval. --log x.log then gives x.0.log, x.1.log ...

    Example: pipeline deal holdem.limit.2p.reverse_blinds Alice Bob --hands 3000 --seed 1 --log match.log
    """
    from pipeline.dealer import listen, run_match
    from pipeline.dealing import MatchPlan
    from pipeline.game import find_game
    from pipeline.wired import play_duplicate

    # A match makes millions of short-lived objects and no cycles: at the usual threshold the collector goes through
    # them every 700 allocations, a tenth of the time.
    gc.set_threshold(100_000)
    rules = find_game(game)
    check_log_format(log_format, rules)
    if resume and transactions is None:
        raise PipelineError("--resume needs the file of the interrupted match: --transactions FILE")
    if duplicate and (transactions is not None or fixed_seats):
        other = "--transactions" if transactions is not None else "--fixed-seats"
        raise PipelineError(f"--duplicate plays several matches in turn; leave out {other}")
    if ports and len(ports) != len(names):
        raise PipelineError(f"{len(ports)} ports for {len(names)} players; give one --port per seat, or none")
    title = log_file.stem if log_file else "match"
    limits = Limits(response_ms, hand_ms, per_hand_ms, start_ms)
    match = MatchPlan(rules, names, hands, seed, title=title, fixed=fixed_seats, limits=limits)

    def deal(plan: MatchPlan, log: Path | None, **more: Any) -> Outcome:
        opened = dict(zip(names, listen(ports or (0,) * len(names), host), strict=True))
        click.echo(" ".join(str(listener.getsockname()[1]) for listener in opened.values()))
        with ExitStack() as stack:

            @cache
            def started() -> Progress:
                return stack.enter_context(bar("dealing", "hands"))  # the clock starts with the first hand

            return run_match(
                plan,
                [opened[name] for name in plan.names],
                log_file=log,
                progress=lambda done, total: started()(done, total),
                **more,
            )

    if not duplicate:
        click.echo(str(deal(match, log_file, transactions=transactions, resume=resume).score))
        written_logs([log_file] if log_file else [], log_format, rules)
        return
    if len(set(names)) != rules.players or len(names) != rules.players:
        raise PipelineError(f"{rules.name} needs {rules.players} different names, not {' '.join(names)}")

    def one(plan: MatchPlan, finished: Callable[[Hand], None], seating: int) -> None:
        log = log_file.with_name(f"{log_file.stem}.{seating}.log") if log_file else None
        click.echo(str(deal(plan._replace(title=log.stem if log else title), log, finished=finished).score))
        written_logs([log] if log else [], log_format, rules)

    result = play_duplicate(match, one)
    for i, name in enumerate(names):
        click.echo(f"{name} {result.mbb_per_hand(i):+.1f} ± {result.ci95(i):.1f} mbb/h")
