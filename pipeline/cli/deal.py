"""The `deal` command: run an ACPC dealer."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pipeline.arena.wire.sockets import Limits
from pipeline.cli._options import FILE, hands_range, seed_option, time_option
from pipeline.cli._output import log_base, written_logs
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress

if TYPE_CHECKING:
    from pipeline.arena.wire.dealer import MatchOutcome, MatchPlan
    from pipeline.formats.acpc import Hand


@click.command()
@click.argument("game")
@click.argument("names", nargs=-1, required=True)
@click.option("--hands", type=hands_range(), required=True, help="Hands to deal.")
@seed_option
@click.option(
    "--port",
    "ports",
    type=click.IntRange(0, 65535),
    multiple=True,
    help="A port for each seat (repeatable).  [default: free ones]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option(
    "--log", "log_file", type=FILE, help="Write finished hands; FILE.phhs: as hand histories.", metavar="FILE"
)
@click.option("--transactions", type=FILE, help="Write every action, to resume from.")
@click.option("--resume", is_flag=True, help="Take up the match of --transactions where it was interrupted.")
@click.option("--duplicate", is_flag=True, help="Play the same cards in every seating; print mbb/h.")
@click.option("--fixed-seats", is_flag=True, help="Keep all positions for the whole match.")
@time_option("response", "Time for one action", Limits().response_ms)
@time_option("hand", "Time for a player's actions of a hand", Limits().hand_ms)
@time_option("per-hand", "Average time for a hand", Limits().per_hand_ms)
@time_option("start", "Time for all players to connect", Limits().start_ms)
def command(game: str, names: tuple[str, ...], hands: int, seed: int, **options: Any) -> None:
    """Deal a match of GAME to players NAMES over TCP, as the official ACPC dealer does.

    The first line printed has the ports, in seat order; the last one the score. With --duplicate every seating is a
    match of its own with the same cards (two matches for two players, six for three): the ports are printed again for
    each, in the order of NAMES, every player is started anew, and the last lines say what each wins in thousandths of
    a big blind per hand, ± half a 95% interval. --log x.log then gives x.0.log, x.1.log ...

    Example: pipeline deal holdem.limit.2p.reverse_blinds Alice Bob --hands 3000 --seed 1 --log match.log
    """
    from pipeline.arena.wire.dealer import MatchPlan
    from pipeline.poker.game import find_game

    # A match makes millions of short-lived objects and no cycles: at the usual threshold the collector goes through
    # them every 700 allocations, a tenth of the time.
    gc.set_threshold(100_000)
    limits = Limits(*(options.pop(name) for name in Limits._fields))
    fixed, duplicate = options.pop("fixed_seats"), options.pop("duplicate")
    chosen = _Output(**options)
    rules = find_game(game)
    log_base(chosen.log_file, rules)  # refuses what cannot be written
    _check(chosen, len(names), duplicate, fixed)
    match = MatchPlan(rules, names, hands, seed, title=chosen.title, fixed=fixed, limits=limits)
    if duplicate:
        _deal_duplicate(match, chosen)
        return
    transactions = {"transactions": chosen.transactions, "resume": chosen.resume}
    click.echo(str(_deal(match, names, chosen, chosen.log_file, **transactions).score))
    written_logs([chosen.log_file] if chosen.log_file else [], chosen.log_file, rules)


class _Output(NamedTuple):
    """Ports of a match, and the files that are written of it."""

    ports: tuple[int, ...]
    host: str
    log_file: Path | None
    transactions: Path | None
    resume: bool

    @property
    def title(self) -> str:
        """Return the name of the match in its log."""
        return self.log_file.stem if self.log_file else "match"


def _check(chosen: _Output, players: int, duplicate: bool, fixed: bool) -> None:
    """Refuse options that do not go together, and files that hold another match."""
    from pipeline.arena.wire.dealer import check_unwritten

    if chosen.resume and chosen.transactions is None:
        raise PipelineError("--resume needs the file of the interrupted match: --transactions FILE")
    if duplicate and (chosen.transactions is not None or fixed):
        other = "--transactions" if chosen.transactions is not None else "--fixed-seats"
        raise PipelineError(f"--duplicate plays several matches in turn; leave out {other}")
    if chosen.ports and len(chosen.ports) != players:
        raise PipelineError(f"{len(chosen.ports)} ports for {players} players; give one --port per seat, or none")
    if chosen.transactions and not chosen.resume:
        check_unwritten(chosen.transactions, chosen.log_file)


def _deal(plan: MatchPlan, names: tuple[str, ...], chosen: _Output, log: Path | None, **more: Any) -> MatchOutcome:
    """Listen on a port for each of `names`, print the ports and deal `plan`, whose names may be in another order."""
    from pipeline.arena.wire.dealer import listen, run_match

    opened = dict(zip(names, listen(chosen.ports or (0,) * len(names), chosen.host), strict=True))
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


def _deal_duplicate(match: MatchPlan, chosen: _Output) -> None:
    """Deal a match in every seating, one after the other, and print what each player wins."""
    from pipeline.arena.duplicate import seating_logs, seatings
    from pipeline.arena.wire.matches import play_duplicate

    rules, names = match.game, match.names
    if len(set(names)) != rules.players or len(names) != rules.players:
        raise PipelineError(f"{rules.name} needs {rules.players} different names, not {' '.join(names)}")

    logs = seating_logs(chosen.log_file, len(seatings(rules.players))) if chosen.log_file else ()

    def one(plan: MatchPlan, finished: Callable[[Hand], None], seating: int) -> None:
        log = logs[seating] if logs else None
        named = plan._replace(title=log.stem if log else chosen.title)
        click.echo(str(_deal(named, names, chosen, log, finished=finished).score))
        written_logs([log] if log else [], chosen.log_file, rules)

    result = play_duplicate(match, one, adjusted=True)
    for i, name in enumerate(names):
        click.echo(f"{name} {result.winnings(i).text(rules.unit)}")
