"""`counter`: a strategy that exploits an agent or a player of logs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli._options import (
    DEALS_RANGE,
    REPEATABLE,
    Finite,
    cluster_option,
    connected,
    data_option,
    file_kind,
    game_option,
    json_option,
    out_option,
    picture_option,
    seed_option,
    table_hands_option,
    workers_option,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json, table_text
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import write_text
from pipeline.runtime.parallel import processors

if TYPE_CHECKING:
    from pipeline.solving.counter import Counter

METHODS = ("best", "rnr", "dbr")
"""those of `pipeline.solving.counter`, written down here so that `--help` need not load it"""


@click.command()
@click.option("--against", help="The AGENT to exploit: a bundle or @name.")
@data_option("A dataset with hands of the player to exploit.", required=False)
@click.option("--agent", help="The player's name in the dataset.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="best: best response. rnr: restricted Nash response. dbr: data-biased response.  "
    "[default: dbr with --data, else rnr]",
)
@click.option("--share", type=float, help="How far the model is trusted, 0 to 1; chosen by --risk if not given.")
@click.option(
    "--risk",
    type=Finite(0),
    default=100.0,
    show_default=True,
    help="How much more exploitable than an equilibrium the counter may be: mbb/h, or milli-antes in small games.",
)
@click.option(
    "--half",
    type=Finite(0, min_open=True),
    default=1.0,
    show_default=True,
    help="With dbr: a decision that the logs show so often is trusted half as much as one shown without end.",
)
@game_option("With --against @name a game file or its name; with --data one of the dataset's games.")
@click.option(
    "--deals",
    type=DEALS_RANGE,
    default=4_000_000,
    show_default=True,
    help="In hold'em: how many deals each answer is trained on, for each seat.",
)
@table_hands_option
@seed_option(1, f"Same seed, same result{REPEATABLE}.")
@out_option("Folder of the strategy; it plays.")
@picture_option
@workers_option()
@cluster_option
@json_option
def command(
    against: str | None,
    data: Path | None,
    agent: str | None,
    out: Path,
    as_json: bool,
    game: str | None,
    method: str | None,
    workers: int | None,
    cluster: str | None,
    picture: Path | None,
    **search: float | int | None,
) -> None:
    """Find a strategy that wins more from an opponent than an equilibrium does, at a risk that is named.

    The opponent is an agent (--against) or a player of logs (--data and --agent). Kuhn and Leduc are solved exactly,
    heads-up limit hold'em over the teacher's buckets, there also on the workers of --cluster; other games are refused.

    Example: pipeline counter --against @call --game leduc.limit.2p --method best --out out/counter
    """
    from pipeline.agents.names import choose_game, resolve
    from pipeline.opponents.counters import Search, against_agent, against_player, find_counter
    from pipeline.solving.strategy import check_strategy_target

    if (against is None) == (data is None) or (data is None) != (agent is None):
        raise PipelineError("name the opponent: either --against AGENT, or --data DIR and --agent NAME")
    if picture is not None:
        file_kind(picture, ".html", ".svg", option="--picture")
        if picture.resolve().is_relative_to(out.resolve()):
            raise PipelineError(f"--picture {picture} is in the place of --out {out}: name another file")
    # an agent's name may hold paths: `@teacher:DIR`, `DIR:mode=argmax`, `@adaptive:DIR,DIR`
    paths = [Path(part) for part in re.split("[:,]", against or "") if part]
    check_strategy_target(out, *(paths if data is None else [data]))
    by = method or ("rnr" if data is None else "dbr")
    work = out.with_name(out.name + ".work")
    with connected(cluster) as dask:
        search_settings = Search(method=by, workers=workers or processors(), cluster=dask, **search)  # type: ignore[arg-type]
        if data is not None and agent is not None:
            with bar(f"copy of {agent}") as progress:
                setting = against_player(data, agent, search_settings, folder=work, game=game, progress=progress)
            facts = {"against": agent, "method": by}
        else:
            assert against is not None
            rules = choose_game(game, [against, "@call"])
            opponent = resolve(against, rules, trusted=True)
            with bar("opponent") as progress:
                setting = against_agent(opponent, search_settings, folder=work, progress=progress)
            facts = {"against": opponent.name, "method": by}
        if dask is not None and not setting.costly:
            click.echo("the game is small: it is solved exactly, in this process", err=True)
        with bar("counter") as progress:
            counter = find_counter(setting, search_settings, out, facts=facts, progress=progress)
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
