"""`tournament`: rank agents by total bankroll and instant run-off."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli._options import (
    PATH,
    Finite,
    adjusted_option,
    cluster_option,
    connected,
    game_option,
    hands_range,
    json_option,
    seed_option,
)
from pipeline.cli._output import file_kind, print_json, terminal_table
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import write_text


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--hands", type=hands_range(2), default=20_000, show_default=True, help="Hands of each line-up.")
@seed_option
@game_option()
@click.option(
    "--cap",
    type=Finite(0),
    help="Largest loss that counts, in mbb per hand; 0: no limit.  [default: what always folding loses heads-up]",
)
@click.option(
    "--table",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rank a CSV cross table instead of playing.",
)
@click.option(
    "--out",
    type=PATH,
    help="Write FILE.csv: the cross table with its bootstrap draws, or for three players a row per line-up.",
)
@adjusted_option
@cluster_option
@json_option
def command(
    agents: tuple[str, ...],
    hands: int,
    seed: int,
    game: str | None,
    cap: float | None,
    table: Path | None,
    out: Path | None,
    adjusted: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Let every pair of AGENTS (in games for three, every three) play the same deals, and rank them as the ACPC did.

    The rules are total bankroll and instant run-off.

    Ranks and intervals are those of adjusted results; --json has the plain ones of each line-up too.

    Example: pipeline tournament @equity @call @raise @random --hands 20000

    Example: pipeline tournament --table data/acpc2013/runoff.csv
    """
    from pipeline.agents.names import choose_game, plain_name, resolve
    from pipeline.arena import rankings
    from pipeline.arena.duplicate import distinct
    from pipeline.arena.tournament import play_tournament
    from pipeline.models.measures import batches_note
    from pipeline.report import tables

    if out is not None:
        file_kind(out, ".csv")
    if table is not None:
        if agents:
            raise PipelineError("give either agents or --table, not both")
        results = rankings.read_table(table, seed=seed)
        ranked = rankings.Tournament.rank(results, results.cap if cap is None else cap)
    else:
        rules = choose_game(game, agents[:2])
        names = distinct(map(plain_name, agents))
        players = {name: resolve(text, rules, trusted=True) for name, text in zip(names, agents, strict=True)}
        with connected(cluster) as workers, bar("tournament", "line-ups") as progress:
            ranked = play_tournament(
                *(players, rules),
                hands=hands,
                seed=seed,
                cap=cap,
                adjusted=adjusted,
                cluster=workers,
                typed=dict(zip(names, agents, strict=True)),
                progress=progress,
            )
    if out is not None:
        write_text(out, rankings.table_csv(ranked.results))
    if as_json:
        print_json(ranked.json())
        return
    bankroll, runoff = ranked.total_bankroll, ranked.instant_runoff
    shown = (tables.results_table(ranked.results, bankroll), *map(tables.ranking_table, (bankroll, runoff)))
    click.echo("\n\n".join(map(terminal_table, (*shown, tables.rounds(runoff)))))
    if note := batches_note(ranked.results.batches):
        click.echo(f"\n{note}")
