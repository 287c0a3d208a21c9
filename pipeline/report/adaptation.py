"""A page about how adaptive agents turned in a match: weights of the portfolio, gains, and what was played when.

In: adaptive agents after a match. Out: one page in which curves over the hands show how likely each strategy of the
portfolio is the one that wins most, and how much more than the equilibrium it is thought to win; a table beneath lists
when the agent turned to another strategy, and whom it took its opponent for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pipeline.agents.adaptive import Adaptive, Step
from pipeline.report.markup import columns, page, section, table
from pipeline.report.plots import Curve, curves, line_key

__all__ = ["adaptation_page", "turns"]

DRAWN = 6
"""strategies in a drawing at most: those that were played or likely"""


def turns(steps: Sequence[Step]) -> list[tuple[int, Step]]:
    """When another strategy was turned to: the hand from which on it was played, and what was thought then."""
    found, before = [], 0
    for playing, run in groupby(steps, key=lambda step: step.playing):
        first = next(run)
        if playing != before:
            found.append((first.hands + 1, first))
        before = playing
    return found


def adaptation_page(title: str, agents: Sequence[Adaptive]) -> str:
    """The whole page."""
    parts = []
    for number, agent in enumerate(agents):
        names, steps = agent.holdings.names, agent.steps
        if not steps:
            inside = f"<p>The match was over before {agent.interval} hands were looked back at.</p>"
            parts.append(section(f"agent-{number}", agent.name, inside))
            continue
        x = [float(step.hands) for step in steps]
        most = [max(step.weights[i] + (step.playing == i) for step in steps) for i in range(len(names))]
        shown = sorted(sorted(range(len(names)), key=lambda i: -most[i])[:DRAWN])
        weights = [Curve(names[i], x, [step.weights[i] for step in steps]) for i in shown]
        gains = [Curve(names[i], x, [step.gains[i] for step in steps]) for i in shown]
        rows = [
            [f"{hand:,}", names[step.playing], step.opponent, f"{step.gains[step.playing]:+.0f}"]
            for hand, step in turns(steps)
        ]
        parts.append(
            section(
                f"agent-{number}",
                agent.name,
                columns(
                    curves("Chance to be the strategy that wins most", weights, y_label="weight", x_label="hands"),
                    curves("Thought to win more than the equilibrium", gains, y_label="mbb/h", x_label="hands"),
                ),
                line_key([names[i] for i in shown]),
                "<p>It begins with the equilibrium. From hand:</p>" if rows else "<p>It kept to the equilibrium.</p>",
                table(["hand", "plays", "takes the opponent for", "gain, mbb/h"], rows) if rows else "",
            )
        )
    return page(title, "What was thought after every few hands of the match.", parts, "")
