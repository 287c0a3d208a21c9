"""The first lines of the page: how close the copy is, how much of the rest is the agent's own dice, how it plays.

In go the findings, out comes a paragraph per agent that can be read without the tables below it.
"""

from __future__ import annotations

from pipeline.agents.names import is_bundle, plain_name
from pipeline.arena.rankings import cross_table
from pipeline.evaluation.evaluation import trained
from pipeline.evaluation.findings import AgentFindings, Findings
from pipeline.evaluation.repeat_floor import floor_bounds
from pipeline.evaluation.scoring import Score
from pipeline.report.markup import escape, percent
from pipeline.report.tables import LEAST_COVERAGE, made_of


def lead(findings: Findings) -> str:
    """The answer first, a paragraph per agent."""
    return "".join(
        f"<p>{' '.join(filter(None, (_closeness(about), _dice(about), _play(about, findings))))}</p>"
        for about in findings.agents
    )


def _closeness(about: AgentFindings) -> str:
    """Which model comes closest and how often it is right, beside what counting gives."""
    score = about.best.scores[-1]
    models = trained(about.scored)
    made = made_of(score)
    name = f"<b>{escape(score.model)}</b>{f' ({escape(made)})' if made else ''}"
    agent = f"<b>{escape(score.agent)}</b>"
    who = f"Of {len(models)} copies of {agent} the closest is {name}"
    if len(models) == 1:
        who = f"The model {name} copies {agent}"
    error = score.measures["error"].value
    text = (
        f"{who}: its likeliest action is not the agent's in {percent(error)} of {score.rows:,} decisions that it was "
        "not trained on"
    )
    counting = [one.scores[-1] for one in about.scored if one.candidate.name == "(betting)" and one.scores]
    if counting:
        text += f" (counting by betting, without the cards: {percent(counting[0].measures['error'].value)})"
    return f"{text}."


def _dice(about: AgentFindings) -> str:
    """How much of the error is the agent's own mixing: known, bounded, or unknown."""
    score: Score = about.best.scores[-1]
    error, floor = score.measures["error"].value, score.floors.get("error")
    if floor is not None:
        share = (
            f": {percent(min(floor / error, 1.0), 0)} of these differences are the agent's own dice"
            if error > 0
            else ""
        )
        return f"The agent mixes its actions, so that no copy could be below {percent(floor)}{share}."
    pairs = score.pairs
    if pairs is None or pairs.coverage < LEAST_COVERAGE:
        return (
            "How much of this is the agent's own mixing is not known, since hardly any situation comes twice: anything "
            f"between nothing and {percent(score.at_most.get('error', error))}."
        )
    low, high = floor_bounds(pairs.brier.value)["error"]
    if high < 0.0005:
        return (
            f"Wherever a situation came more than once ({percent(pairs.coverage, 0)} of the decisions) the agent did "
            "the same again: there it does not mix."
        )
    return (
        f"In the situations that came more than once ({percent(pairs.coverage, 0)} of the decisions) the agent's own "
        f"mixing makes between {percent(low)} and {percent(high)} unavoidable."
    )


def _results(model: str, findings: Findings) -> list[tuple[str, float, float]]:
    """What a model won of whom in mbb/h, with half the interval: from matches, then from the tournament."""
    text = findings.played_as.get(model, model)
    name = plain_name(text)

    def is_model(other: str) -> bool:  # the bundle `teacher` and the built-in agent `@teacher` have one plain name
        return plain_name(other) == name and is_bundle(other) == is_bundle(text)

    found: dict[str, tuple[float, float]] = {}
    for match in findings.matches:
        kind = "adjusted_" if match.get("adjusted_ci95") is not None else ""
        value, half = float(str(match[f"{kind}mbb_per_hand"])), float(str(match[f"{kind}ci95"]))
        a, b = str(match["a"]), str(match["b"])
        for own, other, won in ((a, b, value), (b, a, -value)):
            if is_model(own) and not is_model(other):
                found.setdefault(plain_name(other), (won, half))
    results = findings.results
    if results is not None and name in results.names and results.lineups.shape[1] == 2:
        table, half_widths = cross_table(results)
        own_row = results.names.index(name)
        for j, other in enumerate(results.names):
            if j != own_row:
                found.setdefault(other, (float(table[own_row, j]), float(half_widths[own_row, j])))
    return [(other, won, half) for other, (won, half) in found.items()]


def _play(about: AgentFindings, findings: Findings) -> str:
    """What the copy wins or loses against its original and others: the best model, else the first that played."""
    order = [about.best, *(one for one in trained(about.scored) if one is not about.best)]
    played = ((one.candidate.name, _results(one.candidate.name, findings)) for one in order)
    model, results = next(((model, found) for model, found in played if found), ("", []))
    if not results:
        return ""
    said = []
    original = about.sample.agent
    for other, won, half in sorted(results, key=lambda result: result[0] != original):
        who = f"<b>{escape(other)}</b>{', its original' if other == original else ''}"
        amount = f"{abs(won):.0f} ± {half:.0f}" if abs(won) >= 100 else f"{abs(won):.1f} ± {half:.1f}"
        if abs(won) <= half:
            said.append(f"is even with {who} within ± {half:.1f}")
        else:
            said.append(f"{'wins' if won > 0 else 'loses'} {amount} {'from' if won > 0 else 'to'} {who}")
    last = said.pop()
    told = f"{', '.join(said)}{' and ' if said else ''}{last}"
    unit = "in thousandths of a big blind per hand, luck taken out where it can be"
    return f"In play, {unit}, <b>{escape(model)}</b> {told}."
