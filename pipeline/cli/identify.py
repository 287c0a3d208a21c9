"""`identify`: who plays under each name of the logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.cli._options import game_option, json_option
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json, sentence_text, table_text

if TYPE_CHECKING:
    from pipeline.opponents.identify import Identification


@click.command(epilog="Example: pipeline identify data/sample --among @teacher --among @equity --player teacher")
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--among", multiple=True, required=True, metavar="AGENT", help="Who it may be (repeatable, at least two)."
)
@click.option("--player", "players", multiple=True, help="Only this player of the logs (repeatable).")
@click.option("--spectator", is_flag=True, help="Use only the cards that a spectator sees: those of showdowns.")
@click.option("--check", is_flag=True, help="How often are players named right whose name is that of an agent?")
@click.option("--allow-overlap", is_flag=True, help="Count that although an agent was trained on these logs.")
@game_option()
@json_option
def command(
    logs: tuple[str, ...],
    among: tuple[str, ...],
    players: tuple[str, ...],
    spectator: bool,
    check: bool,
    allow_overlap: bool,
    game: str | None,
    as_json: bool,
) -> None:
    """Say how likely each AGENT is to be the one who plays under each name in LOGS (files, archives or a dataset).

    Bayes' rule, hand by hand, with the same prior for all; cards that are not known are summed out.
    """
    from pipeline.opponents.identify import identify_players

    with bar("identify", "parts") as progress:
        results = identify_players(
            *(logs, among),
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
    click.echo(_table(results, among))
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
        click.echo()
        click.echo(_rates(results))


def _table(results: list[Identification], among: tuple[str, ...]) -> str:
    """Return a line for each player: the posterior, and the log-likelihood per hand of each agent."""
    head = ["player", "likeliest", "hands", "cards unknown", *among, *(f"{name}, nats/hand" for name in among)]
    rows = []
    for result in results:
        row = [result.player, result.likeliest, f"{result.hands:,}", f"{result.summed_out:,}"]
        row += [f"{100 * share:.1f} %" for share in result.posterior.values()]
        row += [f"{nats / result.hands:.3f}" for nats in result.log_likelihood.values()]
        rows.append(row)
    return table_text(head, rows, words=2)


def _rates(results: list[Identification]) -> str:
    """Return the table of how often players are named right, by number of hands."""
    checked = [result for result in results if result.truth is not None]
    steps = sorted({step for result in checked for step in result.rates})
    if not checked:
        return "No player has the name of one of these agents: nothing to check."
    head = ["named right after", *(f"{step:,} hand{'s' if step > 1 else ''}" for step in steps)]
    rows = [
        [result.player, *(f"{100 * result.rates[step]:.0f} %" if step in result.rates else "-" for step in steps)]
        for result in checked
    ]
    return table_text(head, rows)
