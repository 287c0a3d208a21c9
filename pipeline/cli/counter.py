"""`counter`: a strategy that exploits an agent or a player of logs, and what could be won from an agent at most."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    DEALS_RANGE,
    Finite,
    cluster_option,
    connected,
    data_option,
    game_option,
    hands_range,
    json_option,
    only_with,
    out_option,
    picture_option,
    seed_option,
    workers_option,
)
from pipeline.cli._output import file_kind, print_json, table_text
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import write_text

if TYPE_CHECKING:
    from pipeline.opponents.counters import Exploitability
    from pipeline.solving.counter import Counter

METHODS = ("best", "rnr", "dbr")
"""those of `pipeline.solving.counter`, written down here so that `--help` need not load it"""


@click.command()
@click.option("--against", metavar="AGENT", help="The agent to exploit: a bundle or @name.")
@data_option("A dataset with hands of the player to exploit.", required=False)
@click.option("--agent", metavar="NAME", help="The player's name in the dataset.")
@click.option("--judge", metavar="AGENT", help="Only print what could be won from this agent; no strategy is written.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="best: best response. rnr: restricted Nash response. dbr: data-biased response.  "
    "[default: dbr with --data, else rnr]",
)
@click.option("--share", type=Finite(0), help="How far the model is trusted, 0 to 1; chosen by --risk if not given.")
@click.option(
    "--risk",
    type=Finite(0),
    default=100.0,
    show_default=True,
    help="How much more exploitable than an equilibrium the counter may be: mbb/h, or milli-antes in small games.",
)
@click.option(
    "--deals",
    type=DEALS_RANGE,
    help="In limit hold'em: deals that each answer is trained on, for each seat.  "
    "[default: 4,000,000; with --judge 16,000,000]",
)
@click.option(
    "--hands",
    type=hands_range(2),
    help="In hold'em, with --judge: hands that a local best response plays.  [default: 2,000]",
)
@game_option()
@seed_option
@out_option("Write the strategy to this folder; it plays.", required=False)
@picture_option
@workers_option
@cluster_option
@json_option
def command(
    against: str | None,
    data: Path | None,
    agent: str | None,
    judge: str | None,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find a strategy that wins more from an opponent than an equilibrium does, and say what it risks.

    The opponent is an agent (--against) or a player of logs (--data and --agent). Kuhn and Leduc are solved exactly,
    heads-up limit hold'em over the teacher's buckets, there also on the workers of --cluster; other games are refused.
    In hold'em only --workers 1 gives the same result again.

    With --judge it says how exploitable an agent is: what a player who knows its strategy can win from it. This is
    exact in Kuhn and Leduc. In hold'em for two it is a lower bound: what a local best response wins at the table or, in
    limit games, a best response over the teacher's buckets, if that surely wins more. The latter is trained against a
    projection of the agent on the buckets; what it wins from the projection is printed too, and bounds nothing.

    Example: pipeline counter --against @call --game leduc.limit.2p --method best --out out/counter

    Example: pipeline counter --judge @call --game leduc.limit.2p
    """
    if judge is not None:
        only_with("--judge", "deals", "hands", "game", "seed", "workers", "as_json")
        numbers = {name: options[name] for name in ("deals", "hands") if options[name] is not None}
        _judge(judge, options["game"], as_json, seed=options["seed"], workers=options["workers"], **numbers)
        return
    if (against is None) == (data is None) or (data is None) != (agent is None):
        raise PipelineError(
            "name the opponent: either --against AGENT, or --data DIR and --agent NAME (or --judge AGENT)"
        )
    if out is None:
        raise click.UsageError("Missing option '--out'.")
    if options.pop("hands") is not None:
        raise PipelineError("--hands are those of --judge: a counter is measured on as many as it needs")
    _find(against, data, agent, out, as_json, **options)


def _find(
    against: str | None,
    data: Path | None,
    agent: str | None,
    out: Path,
    as_json: bool,
    game: str | None,
    picture: Path | None,
    cluster: str | None,
    **search: Any,
) -> None:
    """Find a counter-strategy, write it and print how it was chosen."""
    from pipeline.agents.names import choose_game, resolve
    from pipeline.opponents.counters import Search, against_agent, against_player, find_counter
    from pipeline.solving.strategy import check_strategy_target

    if picture is not None:
        file_kind(picture, ".html", ".svg", option="--picture")
        if picture.resolve().is_relative_to(out.resolve()):
            raise PipelineError(f"--picture {picture} is in the place of --out {out}: name another file")
    # an agent's name may hold paths: `@teacher:DIR`, `DIR:mode=argmax`, `@adaptive:DIR,DIR`
    paths = [Path(part) for part in re.split("[:,]", against or "") if part]
    check_strategy_target(out, *(paths if data is None else [data]))
    search["method"] = search["method"] or ("rnr" if data is None else "dbr")
    work = out.with_name(out.name + ".work")
    with connected(cluster) as dask:
        settings = Search(cluster=dask, **{name: value for name, value in search.items() if value is not None})
        if data is not None and agent is not None:
            with bar(f"copy of {agent}") as progress:
                setting = against_player(data, agent, settings, folder=work, game=game, progress=progress)
            facts = {"against": agent, "method": settings.method}
        else:
            assert against is not None
            opponent = resolve(against, choose_game(game, [against, "@call"]), trusted=True)
            with bar("opponent") as progress:
                setting = against_agent(opponent, settings, folder=work, progress=progress)
            facts = {"against": opponent.name, "method": settings.method}
        if dask is not None and not setting.costly:
            click.echo("the game is small: it is solved exactly, in this process", err=True)
        with bar("counter") as progress:
            counter = find_counter(setting, settings, out, facts=facts, progress=progress)
    if picture is not None:
        from pipeline.evaluation.findings import read_counter_choice
        from pipeline.report.pages import counter_page, counter_picture

        tried = read_counter_choice(out)
        draw = counter_picture if picture.suffix.lower() == ".svg" else counter_page
        write_text(picture, draw(f"Counter to {tried.against}, {tried.method}", tried))
    if as_json:
        print_json({"out": str(out), "unit": setting.unit, **facts, **counter.json()})
        return
    click.echo(_counter_text(counter, setting.unit, out))


def _counter_text(counter: Counter, unit: str, out: Path) -> str:
    """Return the curve of the shares that were tried, and the chosen one."""
    from pipeline.solving.counter import MEASURED_AT, TABLE

    tradeoff = counter.tradeoff
    at_table = tradeoff.measured_at == TABLE
    rows = [
        [
            f"{point.share:g}" + (" *" if point.share == counter.tradeoff.share else ""),
            f"{point.winnings:+.1f} ± {point.winnings_ci95:.1f}",
            f"{point.exploitability:.1f} ± {point.exploitability_ci95:.1f}",
            *([f"{point.over_buckets:+.1f}"] if at_table else []),
        ]
        for point in counter.curve
    ]
    head = ["trust", f"wins, {unit}", "exploitable for", *(["wins from the projection"] if at_table else [])]
    chosen = f"trust {tradeoff.share:g} is kept"
    if tradeoff.winnings_ci95:
        again = f"{tradeoff.winnings:+.1f} ± {tradeoff.winnings_ci95:.1f} {unit}"
        chosen += f", which wins {again} on deals that it was not chosen by"
    measured = f"Winnings are those {MEASURED_AT[tradeoff.measured_at]}."
    return f"{table_text(head, rows)}\n\n{measured}\n{out}: {chosen}; play it with `pipeline match {out} ...`"


def _judge(agent: str, game: str | None, as_json: bool, **settings: int) -> None:
    """Print how exploitable an agent is."""
    from pipeline.agents.names import choose_game, resolve
    from pipeline.opponents.counters import exploitability

    opponent = resolve(agent, choose_game(game, [agent, "@call"]), trusted=True)
    with bar("best response") as progress:
        result = exploitability(opponent, progress=progress, **settings)
    if as_json:
        print_json(result.json())
    else:
        click.echo(_exploitability_text(result))


def _exploitability_text(result: Exploitability) -> str:
    """Say in a line what is known for sure, and in a second one what was won over buckets, which is not."""
    agent = f"{result.agent} is exploitable for"
    seconds = f"{result.seconds:.0f} s"
    if result.exact:
        return f"{agent} {result.exploitability:.1f} {result.unit} in {result.game} ({result.method}, {seconds})"
    if not math.isfinite(result.ci95):
        won = f"in the single deal that was played ({result.method}): no bound, play more hands"
        return f"{agent} {result.exploitability:.1f} {result.unit} in {result.game} {won}"
    won = f"{result.method} won {result.exploitability:.1f} ± {result.ci95:.1f}" if result.response else result.method
    lines = [f"{agent} at least {result.at_least:.1f} {result.unit} in {result.game} (95 % sure; {won}; {seconds})"]
    if result.over_buckets is not None and result.over_buckets_ci95 is not None:
        over_buckets = f"{result.over_buckets:.1f} ± {result.over_buckets_ci95:.1f} {result.unit}"
        lines += [f"best response over buckets, against the agent's projection on these: {over_buckets}, no bound"]
    return "\n".join(lines)
