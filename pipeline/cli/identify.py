"""`identify`: who plays under each name of the logs."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli._options import data_option, game_option, json_option
from pipeline.cli._output import print_json, sentence_text, terminal_table
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError


@click.command(epilog="Example: pipeline identify data/sample --among @teacher --among @equity --agent teacher")
@click.argument("logs", nargs=-1)
@data_option("A dataset instead of logs.", required=False)
@click.option(
    "--among", multiple=True, required=True, metavar="AGENT", help="Who it may be (repeatable, at least two)."
)
@click.option("--agent", "players", multiple=True, metavar="NAME", help="Only this player of the logs (repeatable).")
@click.option("--spectator", is_flag=True, help="Use only the cards that a spectator sees: those of showdowns.")
@click.option("--check", is_flag=True, help="How often are players named right whose name is that of an agent?")
@click.option("--allow-overlap", is_flag=True, help="Count that although an agent was trained on these logs.")
@game_option()
@json_option
def command(
    logs: tuple[str, ...],
    data: Path | None,
    among: tuple[str, ...],
    players: tuple[str, ...],
    spectator: bool,
    check: bool,
    allow_overlap: bool,
    game: str | None,
    as_json: bool,
) -> None:
    """Estimate how likely each agent is to be the one that plays under each name in logs.

    LOGS are files, folders, patterns, URLs or archives. It is Bayes' rule, hand by hand, with the same prior for all
    agents; cards that are not known are summed out.
    """
    from pipeline.opponents.identify import identify_players
    from pipeline.report.players import naming_table, posterior_table

    if bool(logs) == (data is not None):
        raise PipelineError("give either logs or --data DIR")
    with bar("identify", "parts") as progress:
        results = identify_players(
            *((data,) if data is not None else logs, among),
            players=players,
            spectator=spectator,
            check=check,
            allow_overlap=allow_overlap,
            game=game,
            trusted=True,
            progress=progress,
        )
    if as_json:
        print_json([result.json() for result in results])
        return
    click.echo(terminal_table(posterior_table(results, among)))
    click.echo()
    click.echo(
        sentence_text(
            "Posteriors are right if one of these agents plays and hands are independent given who does; a "
            "copy that is not exact makes them too sure."
        )
    )
    for name, count in results[0].overlap.items():
        if count is None:
            click.echo(sentence_text(f"It is unknown whether {name} was made from these logs."))
        elif count:
            click.echo(sentence_text(f"{name} was trained on {count:,} of these logs: it explains them too well."))
    if check:
        table = naming_table(results)
        click.echo()
        click.echo("No player has the name of one of these agents." if table is None else terminal_table(table))
