"""`profile`: statistics of the players of a dataset."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli._options import DATA_GAME, data_option, format_option, game_option, json_option
from pipeline.cli._output import print_json, sentence_text, terminal_table
from pipeline.cli._progress import bar

GROUPS = ("position", "opponent", "time", "street")


@click.command()
@data_option()
@click.option(
    "--agent", "agents", multiple=True, metavar="NAME", help="Describe this player (repeatable).  [default: all]"
)
@click.option("--by", multiple=True, type=click.Choice(GROUPS), help="Also divide the hands (repeatable).")
@game_option(DATA_GAME)
@format_option("text", "csv")
@json_option
def command(
    data: Path, agents: tuple[str, ...], by: tuple[str, ...], game: str | None, form: str, as_json: bool
) -> None:
    """Describe the players of a dataset by VPIP, PFR, 3-bet, c-bet, aggression and showdowns, with 95 % intervals.

    Aggression and rationality, in percent, are those of the built-in agent @calibrated that plays most like the player;
    they need known hole cards.

    Example: pipeline profile --data out/rows --agent teacher --by position
    """
    from pipeline.opponents.profiles import profiles, with_styles
    from pipeline.report.players import drift_sentences, rates_table, streets_table
    from pipeline.report.text import TextTable

    described = profiles(data, agents or None, by=[word for word in by if word != "street"], game=game)
    with bar("styles", "players") as progress:
        described = with_styles(described, data, game=game, progress=progress)
    if as_json:
        print_json([profile.json() for profile in described])
    elif form == "csv":
        click.echo(TextTable.of([profile.row() for profile in described]).csv() if described else "", nl=False)
    else:
        parts = ["Rates in percent with half of their 95 % intervals", terminal_table(rates_table(described))]
        if "street" in by:
            parts += ["What is done on each street: bets where there is none yet; folds, calls and raises facing a bet"]
            parts += [terminal_table(streets_table(described))]
        click.echo("\n\n".join([*parts, *map(sentence_text, drift_sentences(described))]))
