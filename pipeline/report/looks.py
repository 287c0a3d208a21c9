"""What tells a copied agent's classes of hands apart, in words and as bars: a section of the page.

In: the columns of the learned metric of each street with their weights (see `models.classes`). Out: a sentence with
the columns that weigh at least half as much as the heaviest, and a bar for each of the heaviest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.evaluation.findings import Findings, Looks
from pipeline.report.markup import columns, escape, section, tag
from pipeline.report.plots import figure

SHOWN = 8
"""bars of a street"""
HEAVY = 0.5
"""share of the heaviest weight from which a column is named in the sentence"""
QUANTILES = (10, 30, 50, 70, 90)
NAMES = {"ihs": "strength now", "ehs": "expected strength", "ehs2": "expected square of strength"}
COLUMN = re.compile(r"(\w+?)(?:\((.*)\))?")


def _read(shown: str, street: str) -> tuple[str, str]:
    """What kind of measure a column is, seen from a street, and which one of its kind."""
    found = COLUMN.fullmatch(shown)
    name, inside = (found[1], found[2] or "") if found else (shown, "")
    words = [word.strip() for word in inside.split(",") if word.strip()]
    other = next((word for word in words if not word.isdigit() and word != street), "")
    seen = {"": "", "preflop": " (before the flop)"}.get(other, f" (on the {other})")
    part = next((int(word) for word in words if word.isdigit()), 0)
    if name == "river_quantile":
        return f"quantile of river strength{seen}", f"{QUANTILES[part - 1]} %"
    if name == "river_octile":
        return f"eighth of river strength{seen}", f"{part}."
    if name == "ochs":
        return "strength against a group of hands", f"{part}."
    return NAMES.get(name, name) + seen, ""


def column_words(shown: str, street: str) -> str:
    """A column of hands in words, as seen on a street.

    >>> column_words("river_quantile(flop, 3)", "flop"), column_words("ehs(turn)", "river")
    ('50 % quantile of river strength', 'expected strength (on the turn)')
    """
    kind, which = _read(shown, street)
    return f"{which} {kind}" if which else kind


def looks_words(one: Looks) -> str:
    """Which columns an agent decides by on a street, in a sentence; those of a kind together."""
    kinds: dict[str, list[str]] = {}
    for name, share in one.weights:
        if share >= HEAVY:
            kind, which = _read(name, one.street)
            kinds.setdefault(kind, []).append(which)
    said = [f"{_joined(sorted(which, key=_number))} {kind}".strip() for kind, which in kinds.items()]
    return f"On the {one.street} it tells hands apart by {'; '.join(said)}."


def _number(which: str) -> int:
    return int(re.sub(r"\D", "", which) or 0)


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def looks(findings: Findings) -> tuple[str, str, str] | None:
    """What every copied agent looks at."""
    inside = []
    for model in dict.fromkeys(one.model for one in findings.looks):
        mine = [one for one in findings.looks if one.model == model]
        said = "".join(tag("p", escape(f"{model}: {looks_words(one)}")) for one in mine)
        drawn = [_bars(one) for one in mine]
        inside.append(said + columns(*drawn, least="22rem", most="40rem"))
    if not inside:
        return None
    text = (
        "<p>Training learns which hands the agent treats alike, and by which measures of strength it tells them apart. "
        "River strength is what a hand's strength may be at the river: its quantiles, and the means of its eighths. "
        "Bars are weights, as shares of the heaviest; the sentences name what weighs at least half as much.</p>"
    )
    return section("looks", "What it looks at", text, *inside)


def _bars(one: Looks) -> str:
    """A bar for each of the heaviest columns, its words above it."""
    drawn, weights = "", one.weights[:SHOWN]
    for place, (name, share) in enumerate(weights):
        y = 26.0 * place
        drawn += tag("text", escape(column_words(name, one.street)), x=0, y=y + 10, class_="ink")
        drawn += tag("rect", x=0, y=y + 14, width=round(300 * share, 1), height=6, fill="var(--m0)")
    return figure(one.street, 320.0, 26.0 * len(weights), drawn)
