"""What tells a copied agent's classes of hands apart, in words and as bars: a section of the page.

In: the columns of the learned metric of each street with their weights (see `models.classes`). Out: a sentence with
the columns that weigh at least half as much as the heaviest, and a bar for each of the heaviest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.evaluate.findings import Findings, Looks
from pipeline.report.markup import columns, escape, section, tag
from pipeline.report.plots import figure

__all__ = ["looks", "looks_words"]

SHOWN = 8
"""bars of a street"""
HEAVY = 0.5
"""share of the heaviest weight from which a column is named in the sentence"""
QUANTILES = (10, 30, 50, 70, 90)
NAMES = {"ihs": "strength now", "ehs": "expected strength", "ehs2": "expected square of the strength"}
COLUMN = re.compile(r"(\w+?)(?:\((.*)\))?")


def column_words(shown: str) -> str:
    """A column of hands in words.

    >>> column_words("river_quantile(flop, 3)"), column_words("ehs(turn)")
    ('50 % quantile of the strength at the river, seen from the flop', 'expected strength on the turn')
    """
    found = COLUMN.fullmatch(shown)
    if found is None:
        return shown
    name, inside = found[1], [word.strip() for word in (found[2] or "").split(",") if word.strip()]
    street = next((word for word in inside if not word.isdigit()), "")
    part = next((int(word) for word in inside if word.isdigit()), 0)
    if name in NAMES:
        return NAMES[name] + (f" on the {street}" if street else "")
    seen = f", seen from the {street}" if street else ""
    if name in ("fifth", "river_quantile"):
        return f"{QUANTILES[part - 1]} % quantile of the strength at the river{seen}"
    if name in ("eighth", "river_octile"):
        return f"mean of the {part}. eighth of the strengths at the river{seen}"
    return f"strength against group {part} of hands" if name == "ochs" else shown


def looks_words(one: Looks) -> str:
    """Which columns an agent decides by on a street, in a sentence."""
    heavy = [column_words(name) for name, share in one.weights if share >= HEAVY]
    return f"On the {one.street} it tells hands apart by {'; '.join(heavy)}."


def looks(findings: Findings) -> tuple[str, str, str] | None:
    """What every copied agent looks at."""
    inside = []
    for model in dict.fromkeys(one.model for one in findings.looks):
        mine = [one for one in findings.looks if one.model == model]
        said = "".join(tag("p", escape(f"{model}: {looks_words(one)}")) for one in mine)
        drawn = [_bars(one.street, one.weights[:SHOWN]) for one in mine]
        inside.append(said + columns(*drawn, least="22rem", most="40rem"))
    if not inside:
        return None
    text = (
        "<p>Training learns which hands the agent treats alike, and by which measures of strength it tells them apart. "
        "Bars are weights, as shares of the heaviest; the sentences name what weighs at least half as much.</p>"
    )
    return section("looks", "What it looks at", text, *inside)


def _bars(street: str, weights: Sequence[tuple[str, float]]) -> str:
    """A bar for each column, its words above it."""
    drawn = ""
    for place, (name, share) in enumerate(weights):
        y = 26.0 * place
        drawn += tag("text", escape(column_words(name)), x=0, y=y + 10, class_="ink")
        drawn += tag("rect", x=0, y=y + 14, width=round(300 * share, 1), height=6, fill="var(--m0)")
    return figure(street, 320.0, 26.0 * len(weights), drawn)
