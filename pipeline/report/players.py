"""The tables of `profile` and `identify`: what is said of the players of logs.

In go profiles and identifications, out come text tables with their titles, and sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.opponents.identify import Identification
from pipeline.opponents.profiles import STATISTICS, Drift, Profile, Rate
from pipeline.report.text import TextTable, number, percent, signed

MAX_P_VALUE = 0.001
"""changes over time are told whose p-value, adjusted for the number of tests, is below this"""


def _rate(rate: Rate) -> str:
    """Return a share in percent with half its interval, a dash where there was no chance."""
    if rate.value is None or rate.interval is None:
        return "-"
    low, high = rate.interval
    return f"{percent(rate.value, 1)} ±{percent((high - low) / 2, 1)}"


def rates_table(profiles: Sequence[Profile]) -> TextTable:
    """Return a row per profile: its rates, winnings and style."""
    divided = any(profile.group != "all" for profile in profiles)
    styled = any(profile.style is not None for profile in profiles)
    head = ["agent", *(["hands of"] if divided else []), "hands", *STATISTICS.values(), "AF", "mbb/h"]
    rows = []
    for profile in profiles:
        style, plain = profile.style, profile.winnings.plain
        won = "-" if plain is None else f"{signed(plain.value, 0)}{'' if plain.ci95 is None else f' ±{plain.ci95:.0f}'}"
        row = [profile.agent, *([profile.group] if divided else []), f"{profile.hands:,}"]
        row += [_rate(profile.rates[name]) for name in STATISTICS]
        row += [number(profile.aggression_factor, 2), won]
        row += [f"{style.aggression:.0f} %", f"{style.rationality:.0f} %"] if style else ["-", "-"] if styled else []
        rows.append(row)
    return TextTable([*head, *(["aggression", "rationality"] if styled else [])], rows, range(2 if divided else 1))


def streets_table(profiles: Sequence[Profile]) -> TextTable:
    """Return a row per profile and street."""
    head = ["agent", "hands of", "street", "bet", "fold", "call", "raise"]
    rows = [
        [profile.agent, profile.group, play.street, *(_rate(rate) for rate in play[1:])]
        for profile in profiles
        for play in profile.streets
    ]
    return TextTable(head, rows, range(3))


def drift_sentences(profiles: Sequence[Profile]) -> list[str]:
    """Return a sentence about each rate that has changed over time by more than chance."""

    def sentence(agent: str, drift: Drift) -> str:
        values = ", ".join("-" if value is None else f"{100 * value:.1f}" for value in drift.values)
        name = STATISTICS[drift.statistic]
        return (
            f"{agent}: {name} changes over time: {values} % in the quarters of its hands against "
            f"each opponent (p = {drift.p_value:.1g}, adjusted for the number of rates {drift.adjusted_p_value:.1g})."
        )

    return [
        sentence(profile.agent, drift)
        for profile in profiles
        for drift in profile.drift
        if drift.adjusted_p_value is not None and drift.adjusted_p_value < MAX_P_VALUE
    ]


def posterior_table(results: Sequence[Identification], among: Sequence[str]) -> TextTable:
    """Return a row per player: the posterior, and the log-likelihood per hand of each agent."""
    head = ["player", "likeliest", "hands", "cards unknown", *among, *(f"{name}, nats/hand" for name in among)]
    rows = []
    for result in results:
        row = [result.player, result.likeliest, f"{result.hands:,}", f"{result.summed_out:,}"]
        row += [f"{100 * share:.1f} %" for share in result.posterior.values()]
        row += [f"{nats / result.hands:.3f}" for nats in result.log_likelihood.values()]
        rows.append(row)
    return TextTable(head, rows, range(2))


def naming_table(results: Sequence[Identification]) -> TextTable | None:
    """Return how often players are named right after some of their hands; None where nobody's agent is known."""
    checked = [result for result in results if result.truth is not None]
    if not checked:
        return None
    steps = sorted({step for result in checked for step in result.rates})
    head = ["named right after", *(f"{step:,} hand{'s' if step > 1 else ''}" for step in steps)]
    rows = [
        [result.player, *(f"{100 * result.rates[step]:.0f} %" if step in result.rates else "-" for step in steps)]
        for result in checked
    ]
    return TextTable(head, rows)
