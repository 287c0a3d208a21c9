"""`profile`: statistics of the players of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli._options import DATA_GAME, data_option, format_option, game_option, json_option
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json, sentence_text, table_text

if TYPE_CHECKING:
    from pipeline.opponents.profiles import Drift, Profile, Rate

GROUPS = ("position", "opponent", "time", "street")
MAX_P_VALUE = 0.001
"""changes over time are printed whose p-value, adjusted for the number of tests, is below this"""


@click.command()
@data_option()
@click.option("--agent", "agents", multiple=True, help="Whose profile (repeatable); everybody's by default.")
@click.option("--by", multiple=True, type=click.Choice(GROUPS), help="Also divide the hands (repeatable).")
@game_option(DATA_GAME)
@click.option("--style/--no-style", default=True, show_default=True, help="Fit aggression and rationality.")
@format_option("text", "csv")
@json_option
def command(
    data: Path, agents: tuple[str, ...], by: tuple[str, ...], game: str | None, style: bool, form: str, as_json: bool
) -> None:
    """Describe the players of a dataset: VPIP, PFR, 3-bet, c-bet, aggression, showdowns, with counts and intervals.

    Aggression and rationality, in percent, are those of the calibrated player (@calibrated) that is most like somebody;
    they need known hole cards.

    Example: pipeline profile --data out/rows --agent teacher --by position
    """
    from pipeline.opponents.profiles import profiles, with_styles

    described = profiles(data, agents or None, by=[word for word in by if word != "street"], game=game)
    if style:
        with bar("styles", "players") as progress:
            described = with_styles(described, data, game=game, progress=progress)
    if as_json:
        print_json([profile.json() for profile in described])
    elif form == "csv":
        click.echo(_csv(described), nl=False)
    else:
        click.echo(_profile_tables(described, "street" in by))


def _csv(described: list[Profile]) -> str:
    """Return a line per profile: values, and the counts behind each rate."""
    from pipeline.report.text import TextTable

    return TextTable.of([profile.row() for profile in described]).csv() if described else ""


def _rate(rate: Rate) -> str:
    """Return a share in percent with half its interval, a dash where there was no chance."""
    from pipeline.report.text import percent

    if rate.value is None or rate.interval is None:
        return "-"
    low, high = rate.interval
    return f"{percent(rate.value, 1)} ±{percent((high - low) / 2, 1)}"


def _profile_tables(described: list[Profile], streets: bool) -> str:
    """Return the tables: a line per profile, the play on each street, and the changes over time."""
    from pipeline.opponents.profiles import STATISTICS
    from pipeline.report.text import number, signed

    divided = any(profile.group != "all" for profile in described)
    head = ["agent", *(["hands of"] if divided else []), "hands", *STATISTICS.values(), "AF", "mbb/h"]
    styled = any(profile.style is not None for profile in described)
    head += ["aggression", "rationality"] if styled else []
    rows = []
    for profile in described:
        style = profile.style
        plain = profile.winnings.plain
        won = "-" if plain is None else f"{signed(plain.value, 0)}{'' if plain.ci95 is None else f' ±{plain.ci95:.0f}'}"
        row = [profile.agent, *([profile.group] if divided else []), f"{profile.hands:,}"]
        row += [_rate(profile.rates[name]) for name in STATISTICS]
        row += [number(profile.aggression_factor, 2), won]
        row += [f"{style.aggression:.0f} %", f"{style.rationality:.0f} %"] if style else ["-", "-"] if styled else []
        rows.append(row)
    parts = ["Rates in percent with half of their 95 % intervals", table_text(head, rows, words=2 if divided else 1)]
    if streets:
        head = ["agent", "hands of", "street", "bet", "fold", "call", "raise"]
        rows = [
            [profile.agent, profile.group, play.street, *(_rate(rate) for rate in play[1:])]
            for profile in described
            for play in profile.streets
        ]
        parts += ["What is done on each street: bets where nobody has, folds, calls and raises facing a bet"]
        parts += [table_text(head, rows, words=3)]
    parts += [
        sentence_text(_drift_sentence(profile.agent, drift))
        for profile in described
        for drift in profile.drift
        if _notable(drift)
    ]
    return "\n\n".join(parts)


def _notable(drift: Drift) -> bool:
    """Return whether a rate has changed over time by more than chance."""
    return drift.adjusted_p_value is not None and drift.adjusted_p_value < MAX_P_VALUE


def _drift_sentence(agent: str, drift: Drift) -> str:
    """Return a sentence about a rate that has changed."""
    from pipeline.opponents.profiles import STATISTICS

    values = ", ".join("-" if value is None else f"{100 * value:.1f}" for value in drift.values)
    return (
        f"{agent}: {STATISTICS[drift.statistic]} changes over time: {values} % in the quarters of its hands against "
        f"each opponent (p = {drift.p_value:.1g}, adjusted for the number of rates {drift.adjusted_p_value:.1g})."
    )
