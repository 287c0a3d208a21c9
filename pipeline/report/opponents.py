"""Opponents on the page: what counter-strategies win and risk, and how adaptive agents turned in a match.

In: the shares of trust that were tried for a counter (`Tried`), and what adaptive agents thought (`Thoughts`). Out: a
section of the report, or a page or picture of one of them alone. A counter is a curve of winnings against own
exploitability. A match is two drawings over its hands, how likely each strategy of the portfolio is the one that wins
most and how much more than the equilibrium it is thought to win; a table beneath lists when the agent turned to another
strategy, and whom it took its opponent for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pipeline.agents.adaptive import Step
from pipeline.evaluation.findings import Findings
from pipeline.evaluation.opponents import Thoughts, Tried
from pipeline.report.markup import columns, escape, page, section, table
from pipeline.report.plots import Curve, Panel, curves, draw_curves, line_key, picture

Section = tuple[str, str, str]
DRAWN = 6
"""strategies in a drawing at most: those that were played or likely"""
MARKS = 24
"""looks back in a drawing at most, evenly spread; the last is among them"""


def opponents(findings: Findings) -> Section | None:
    """The section of the report."""
    inside = [
        f"<h3>Counter to {escape(one.against)} ({escape(one.method)})</h3>{_counter(one)}" for one in findings.tried
    ]
    for one in findings.thoughts:
        inside.append(f"<h3>{escape(one.name)} against {escape(one.against)}, hand by hand</h3>{_thoughts(one)}")
    return section("opponents", "Opponents", *inside) if inside else None


def counter_page(title: str, tried: Tried) -> str:
    """A page about one counter-strategy."""
    parts = [section("curve", _SAID, _counter(tried))]
    return page(title, "Each point trusts the model of the opponent to another share.", parts, "")


def counter_picture(title: str, tried: Tried) -> str:
    """A picture of one counter-strategy's curve."""
    lines, axes = _lines(tried)
    return picture(title, [Panel(_SAID, draw_curves(lines, **axes), [line.name for line in lines])])


def adaptation_page(title: str, thoughts: Sequence[Thoughts]) -> str:
    """A page about the adaptive agents of one match."""
    parts = [section(f"agent-{number}", one.name, _thoughts(one)) for number, one in enumerate(thoughts)]
    return page(title, "What was thought after every few hands of the match.", parts, "")


_SAID = "Winnings from the model against own exploitability"


def _lines(tried: Tried) -> tuple[list[Curve], dict[str, Any]]:
    """The curve of what was tried with the point that was kept, and the names of its axes."""
    points = sorted(tried.curve, key=lambda one: one.exploitability)
    every = Curve("tried", [one.exploitability for one in points], [one.winnings for one in points])
    kept = Curve(f"kept: trust {tried.kept.share:g}", [tried.kept.exploitability], [tried.kept.winnings])
    axes = {"x_label": f"exploitable for, {tried.unit}", "y_label": f"wins, {tried.unit}"}
    return [every, kept], axes


def _counter(tried: Tried) -> str:
    """What was tried, drawn and as a table."""
    lines, axes = _lines(tried)
    rows = [
        [
            f"{one.share:g}",
            f"{one.winnings:+.1f}{_interval(one.winnings_ci95)}",
            f"{one.exploitability:.1f}{_interval(one.exploitability_ci95)}",
        ]
        for one in tried.curve
    ]
    marked = {(i, 0) for i, one in enumerate(tried.curve) if one.share == tried.kept.share}
    listed = table(["trust", f"wins, {escape(tried.unit)}", "exploitable for"], rows, "What was tried", marked)
    drawn = curves(_SAID, lines, **axes) + line_key([line.name for line in lines])
    return columns(f"<div>{drawn}</div>", listed)


def _interval(half: float) -> str:
    """Half an interval beside its value; nothing where the value is exact."""
    return f"<small>±{half:.1f}</small>" if half else ""


def turns(steps: Sequence[Step]) -> list[tuple[int, Step]]:
    """When another strategy was turned to: the hand from which on it was played, and what was thought then."""
    found, before = [], 0
    for playing, run in groupby(steps, key=lambda step: step.playing):
        first = next(run)
        if playing != before:
            found.append((first.hands + 1, first))
        before = playing
    return found


def _thoughts(thoughts: Thoughts) -> str:
    """Two drawings over the hands and a table of turns."""
    names, steps = thoughts.members, thoughts.steps
    if not steps:
        return "<p>The match was over before its hands were looked back at.</p>"
    drawn_at = steps[:: -math.ceil(len(steps) / MARKS)][::-1]
    x = [float(step.hands) for step in drawn_at]
    most = [max(step.weights[i] + (step.playing == i) for step in steps) for i in range(len(names))]
    shown = sorted(sorted(range(len(names)), key=lambda i: -most[i])[:DRAWN])
    weights = [Curve(names[i], x, [step.weights[i] for step in drawn_at]) for i in shown]
    gains = [Curve(names[i], x, [step.gains[i] for step in drawn_at]) for i in shown]
    rows = [
        [f"{hand:,}", escape(names[step.playing]), escape(step.opponent), f"{step.gains[step.playing]:+.0f}"]
        for hand, step in turns(steps)
    ]
    drawn = columns(
        curves("Chance to be the strategy that wins most", weights, y_label="weight", x_label="hands"),
        curves("Thought to win more than the equilibrium", gains, y_label="mbb/h", x_label="hands"),
    )
    listed = "<p>It kept to the equilibrium.</p>"
    if rows:
        head = ["hand", "plays", "takes the opponent for", "gain, mbb/h"]
        listed = "<p>It begins with the equilibrium. From hand:</p>" + table(head, rows, left={1, 2})
    return drawn + line_key([names[i] for i in shown]) + listed
