"""The tables and drawings of each section of the page, from the findings that it shows.

In go `Findings`, out come tables, drawings and words for resources/sections.html, which holds the sentences between
them. Everything was computed by `pipeline.evaluation`; here it is chosen, put in order and drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.agents.adaptive import Assessment
from pipeline.agents.names import is_bundle, plain_name
from pipeline.arena import rankings
from pipeline.dataset.decisions import STREETS, betting_text
from pipeline.evaluation.evaluation import trained_models
from pipeline.evaluation.findings import (
    AdaptationCourse,
    AgentFindings,
    ClassColumns,
    CounterChoice,
    Findings,
    StrongestFeatures,
)
from pipeline.evaluation.inspection import CUTS, Stationarity, Subset
from pipeline.evaluation.learning import LearningCurve
from pipeline.evaluation.samples import ALL
from pipeline.evaluation.scoring import ModelScore, PairedDifference, Scored
from pipeline.evaluation.sizing import SIZE_EDGES
from pipeline.poker.cards import NO_CARD
from pipeline.report import grids, plots, tables
from pipeline.report.markup import escape, percent, tag
from pipeline.report.text import Table
from pipeline.report.words import (
    SHORT,
    WORDS,
    betting_words,
    column_words,
    feature_words,
    looks_words,
    position_words,
    situation_words,
)

CUT_TITLES = {
    "situation": "Betting so far on the street",
    "position": "Position",
    "hand": "Hand class",
    "strength": "Expected hand strength",
    "opponent": "Opponent",
}
MOST_PARTS = 24
"""rows of one table of parts"""
MOST_BARS = 8
"""bars of what tells hands apart on a street"""
CURVE = "Winnings from the model against own exploitability"
MOST_STRATEGIES = 6
"""strategies in a drawing: those that were played or likely"""
MOST_MARKS = 24
"""looks back in a drawing, evenly spread; the last is among them"""


def played(about: AgentFindings, findings: Findings) -> tuple[str, list[tuple[str, float, float]]]:
    """Return the model that played, and what it won of whom in mbb/h with half the interval, its original first.

    The best model if it played, else the first that did; a model without any match has an empty list.
    """
    original = about.sample.agent
    for scored in (about.best, *trained_models(about.scored)):
        results = _results(scored.candidate.name, findings)
        if results:
            return scored.candidate.name, sorted(results, key=lambda result: result[0] != original)
    return "", []


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
        table, half_widths = rankings.cross_table(results)
        own_row = results.names.index(name)
        for j, other in enumerate(results.names):
            if j != own_row:
                found.setdefault(other, (float(table[own_row, j]), float(half_widths[own_row, j])))
    return [(other, won, half) for other, (won, half) in found.items()]


def scores(scored: Sequence[Scored]) -> list[ModelScore]:
    """Return the scores of all candidates, one after the other."""
    return [score for one in scored for score in one.scores]


def overall(pairs: Sequence[PairedDifference]) -> Sequence[PairedDifference]:
    """Return the comparisons over all streets together; where there is only one street, those of it."""
    return [pair for pair in pairs if pair.street == ALL] or pairs


def main_table(scores: Sequence[ModelScore], measure: str) -> Table:
    """Return the main table of one agent with street and floor first, which stay in sight on a narrow screen."""
    made = tables.by_model(scores, measure)
    floor = made.head.index("floor")
    return made.select([1, floor, *(i for i in range(3, len(made.head)) if i != floor), 2])


def loss_intervals(models: Sequence[Scored]) -> list[str]:
    """Draw the log-loss of each model with its interval and the floor, street by street."""
    drawings = []
    for i, score in enumerate(models[0].scores):
        values = [(one.candidate.name, one.scores[i].measures["log_loss"]) for one in models if i < len(one.scores)]
        if len({interval.value for _, interval in values}) < 2:
            continue  # the same chart plays before the flop in all of them
        floor, title = score.floors.get("log_loss"), f"{score.street}: log-loss, nats"
        drawings.append(plots.intervals(title, values, floor=floor, scale=1.0, unit=""))
    return drawings


def line_key(labels: str) -> str:
    """Draw which line is which action."""
    return plots.line_key([WORDS[label] for label in labels])


def calibration_curves(scored: Scored) -> list[str]:
    """Draw the calibration curves of a model, street by street."""
    drawings = []
    for score in scored.scores:
        bins = scored.calibration[score.street]
        lines = [plots.Curve("", one_bin.predicted, one_bin.taken) for one_bin in bins]
        title = f"{score.street} {percent(score.measures['calibration'].value)} ({percent(score.perfect_calibration)})"
        sizes, styles = [one_bin.size for one_bin in bins], [one_bin.label for one_bin in bins]
        drawings.append(plots.calibration(title, lines, sizes, styles))
    return drawings


def confusions(about: AgentFindings) -> list[str]:
    """Draw the confusion of the best model, street by street."""
    return [plots.confusion(street, counts, about.sample.labels) for street, counts in about.confusion.items()]


def size_curves(about: AgentFindings) -> list[str]:
    """Draw which share of raises is at most how large, of the agent and of each model, street by street."""
    drawings = []
    for street in dict.fromkeys(curve.street for curves in about.sizes.values() for curve in curves):
        mine = [next((one for one in curves if one.street == street), None) for curves in about.sizes.values()]
        first = next(one for one in mine if one is not None)
        lines = [plots.Curve(about.sample.agent, SIZE_EDGES, 100 * first.taken)]
        for name, curve in zip(about.sizes, mine, strict=True):
            lines.append(plots.Curve(name, SIZE_EDGES, 100 * curve.played) if curve else plots.Curve(name, [], []))
        title = f"{street}: {first.raises:,} raises"
        drawings.append(plots.curves(title, lines, log_x=True, x_label="raise / pot", y_label="raises up to it, %"))
    return drawings


def costliest(about: AgentFindings) -> list[Subset]:
    """Return the three betting situations in which the best model loses most beyond the agent's own dice, in nats."""

    def excess(part: Subset) -> float:
        return part.rows * (part.log_loss.value - (part.floor_log_loss or 0.0))

    return sorted(about.parts.get("situation", ()), key=excess, reverse=True)[:3]


def situation(part: Subset) -> str:
    """Return a betting situation in words."""
    return situation_words(part.part, preflop=part.street == STREETS[0])


def part_tables(about: AgentFindings) -> Iterator[tuple[str, Table]]:
    """Yield a title and a table of the costliest parts for each cut, with betting and actions in words."""
    labels = about.sample.labels
    letters, words = "/".join(labels), " / ".join(SHORT[label] for label in labels)
    for cut in CUTS:
        costly = sorted(about.parts.get(cut, ()), key=lambda part: -part.share)[:MOST_PARTS]
        if not costly:
            continue
        order = {part.street: i for i, part in enumerate(about.parts[cut])}
        costly.sort(key=lambda part: (order[part.street], -part.share))
        if cut == "situation":
            costly = [replace(part, part=situation(part)) for part in costly]
        made = tables.parts(costly, cut, labels)
        head = [name.replace(f" {letters}", ", %") for name in made.head]
        yield CUT_TITLES[cut], replace(made, head=head, notes=dict.fromkeys(("played, %", "taken, %"), words))


def learning_curves(learning: Sequence[LearningCurve]) -> tuple[list[str], list[str]]:
    """Return the models, and the drawing of each street: log-loss by the number of training rows."""
    models = list(dict.fromkeys(one.model for one in learning))
    drawings = []
    for street in dict.fromkeys(one.street for one in learning):
        lines = []
        for model in models:
            one = next((one for one in learning if (one.model, one.street) == (model, street)), None)
            values = list(zip(*one.log_loss, strict=True)) if one is not None and one.log_loss else [(), (), ()]
            lines.append(plots.Curve(model, one.rows if one is not None else [], *values))
        floor = next((one.floor for one in learning if one.street == street), None)
        drawings.append(
            plots.curves(street, lines, floor=floor, log_x=True, x_label="training rows", y_label="log-loss, nats")
        )
    return models, drawings


def chart_pairs(about: AgentFindings) -> Iterator[tuple[str, list[str]]]:
    """Yield for each situation before the flop a sentence, and the charts of the agent and of the best model."""
    labels = about.sample.labels
    for chart in about.charts:
        first = situation_words(chart.situation)
        pair = [
            grids.chart(mix, labels, f"{name}, {first}", count=chart.seen)
            for name, mix in ((about.sample.agent, chart.agent), (about.best.candidate.name, chart.model))
        ]
        apart = float((abs(chart.agent - chart.model).sum(axis=1) / 2 * chart.seen).sum() / max(chart.rows, 1))
        yield f"{first}: {chart.rows:,} decision{'s' * (chart.rows != 1)}, {percent(apart)} apart", pair


def looks(found: Sequence[ClassColumns]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield for each model a sentence and a drawing per street: by which columns it tells hands apart."""
    for model in dict.fromkeys(one.model for one in found):
        mine = [one for one in found if one.model == model]
        sentences = [f"{model}: {looks_words(one.weights, one.street)}" for one in mine]
        yield sentences, [_bars(one) for one in mine]


def _bars(one: ClassColumns) -> str:
    """A bar for each of the heaviest columns, its words above it."""
    drawn, weights = "", one.weights[:MOST_BARS]
    for place, (name, share) in enumerate(weights):
        y = 26.0 * place
        drawn += tag("text", escape(column_words(name, one.street)), x=0, y=y + 10, class_="ink")
        drawn += tag("rect", x=0, y=y + 14, width=round(300 * share, 1), height=6, fill="var(--m0)")
    return plots.figure(one.street, 320.0, 26.0 * len(weights), drawn)


def by_street(features: Sequence[StrongestFeatures]) -> list[tuple[tuple[str, str], list[StrongestFeatures]]]:
    """Group features by model and street, model by model."""
    groups: dict[tuple[str, str], list[StrongestFeatures]] = {}
    models = list(dict.fromkeys(one.model for one in features))
    for one in sorted(features, key=lambda one: models.index(one.model)):
        groups.setdefault((one.model, one.street), []).append(one)
    return list(groups.items())


def weights(features: StrongestFeatures) -> Table:
    """Return a table of the strongest features of an action, in words."""
    rows = [[feature_words(name), f"{weight:+.2f}"] for name, weight in features.weights]
    return Table([WORDS.get(features.label, features.label), "weight"], rows)


class Disagreement(NamedTuple):
    """One decision in words and numbers: who against whom, the cards, the betting, what was done and what is said."""

    title: str
    log: str
    labels: str
    cards: list[tuple[str, list[int]]]
    """by street"""
    betting: list[str]
    """a line per street"""
    pot: int
    to_call: int
    action: str
    mixes: list[tuple[str, Any]]
    """the true mix, where it is known, and the model's"""


def disagreement(row: int, about: AgentFindings) -> Disagreement:
    """Describe the decision in one row of the sample that the best model was scored on."""
    best, sample = about.best, about.sample
    mixes = [(f"{best.candidate.name} (model)", best.played[row])]
    if sample.truth is not None and not math.isnan(sample.truth[row].sum()):
        mixes.insert(0, (f"{sample.agent} (true mix)", sample.truth[row] / sample.truth[row].sum()))
    seen, nolimit = sample.rows[row], sample.game.nolimit
    street = int(seen["street"])
    betting = []
    played = about.bettings.get(row, "").split("/")
    for i in range(street + 1):
        text = betting_text(int(seen["betting_codes"][i]), nolimit)
        totals = [int(total) for total in re.findall(r"r(\d+)", played[i])] if i < len(played) else []
        betting.append(f"{STREETS[i]}: {betting_words(text, preflop=i == 0, totals=totals) or 'first to act'}")
    board = [(STREETS[i], seen["board"][first:last]) for i, (first, last) in enumerate(((0, 3), (3, 4), (4, 5)), 1)]
    cards = [(name, [int(card) for card in dealt if card != NO_CARD]) for name, dealt in board[:street]]
    where = position_words(int(seen["position"]), int(seen["players"]), sample.game.is_holdem)
    amount = int(sample.amount[row]) if sample.amount is not None and nolimit else 0
    taken = sample.labels[int(sample.taken[row])]
    return Disagreement(
        title=f"{STREETS[street]}, {where} against {sample.opponents[int(sample.opponent[row])]}",
        log=f"{Path(sample.files[int(sample.file[row])]).name}, hand {int(sample.hand[row])}",
        labels=sample.labels,
        cards=[("hole", [int(card) for card in seen["hole"] if card != NO_CARD]), *(part for part in cards if part[1])],
        betting=betting,
        pot=int(seen["pot"]),
        to_call=int(seen["to_call"]),
        action=WORDS.get(taken, taken) + (f" to {amount:,}" if amount else ""),
        mixes=mixes,
    )


def cross_table(scored: Sequence[Scored]) -> Table:
    """Return the table of each model on each agent's decisions."""
    return tables.cross([one.scores[-1] for one in scored])


def stationarity(findings: Findings) -> list[Stationarity]:
    """Return the comparisons of all agents with themselves."""
    return [one for about in findings.agents for one in about.stationarity]


def tournament(results: rankings.Results) -> tuple[str, Table, list[Table]]:
    """Return the title and the table of what was won of whom, and both rankings, as `tournament` prints them."""
    bankroll, runoff = rankings.total_bankroll(results, results.cap), rankings.instant_runoff(results, results.cap)
    ranked = []
    for ranking in (bankroll, runoff):
        made = tables.ranking(ranking)
        rows = [[f"{row[0]} {row[1]}", *row[2:]] for row in made.rows]
        ranked.append(Table([made.head[0], "mbb/h", *made.head[3:]], rows))
    if results.lineups.shape[1] == 2:
        return "Cross table", tables.cross_results(results, bankroll), ranked
    return "Line-ups", Table(*rankings.lineup_rows(results)), ranked


def _panel(tried: CounterChoice) -> plots.Panel:
    """The curve of what was tried with the point that was kept."""
    points = sorted(tried.curve, key=lambda one: one.exploitability)
    lines = [
        plots.Curve("tried", [one.exploitability for one in points], [one.winnings for one in points]),
        plots.Curve(f"kept: trust {tried.kept.share:g}", [tried.kept.exploitability], [tried.kept.winnings]),
    ]
    drawn = plots.draw_curves(lines, x_label=f"exploitable for, {tried.unit}", y_label=f"wins, {tried.unit}")
    return plots.Panel(CURVE, drawn, [line.name for line in lines])


def counter_picture(title: str, tried: CounterChoice) -> str:
    """Draw one counter-strategy's curve as a file."""
    return plots.picture(title, [_panel(tried)])


def counter_curve(tried: CounterChoice) -> str:
    """Draw one counter-strategy's curve for a page."""
    panel = _panel(tried)
    return plots.figure(panel.title, *plots.CURVES, panel.drawn) + plots.line_key(panel.names)


def counter_table(tried: CounterChoice) -> Table:
    """Return a table of the shares that were tried."""
    rows = [
        [
            f"{one.share:g}" + " *" * (one.share == tried.kept.share),
            f"{one.winnings:+.1f}{_interval(one.winnings_ci95)}",
            f"{one.exploitability:.1f}{_interval(one.exploitability_ci95)}",
        ]
        for one in tried.curve
    ]
    return Table(["trust", f"wins, {tried.unit}", "exploitable for"], rows)


def _interval(half: float) -> str:
    """Half an interval beside its value; nothing where the value is exact."""
    return f"±{half:.1f}" if half else ""


def turns(steps: Sequence[Assessment]) -> list[tuple[int, Assessment]]:
    """Return when another strategy was turned to: the hand from which on it was played, and what was thought then."""
    found, before = [], 0
    for playing, run in groupby(steps, key=lambda step: step.playing):
        first = next(run)
        if playing != before:
            found.append((first.hands + 1, first))
        before = playing
    return found


def adaptation(thoughts: AdaptationCourse) -> tuple[list[str], list[str], Table]:
    """Return the strategies that are drawn, the two drawings over the hands and a table of turns."""
    names, steps = thoughts.members, thoughts.steps
    drawn_at = steps[:: -math.ceil(len(steps) / MOST_MARKS)][::-1]
    x = [float(step.hands) for step in drawn_at]
    most = [max(step.weights[i] + (step.playing == i) for step in steps) for i in range(len(names))]
    drawn = sorted(sorted(range(len(names)), key=lambda i: -most[i])[:MOST_STRATEGIES])
    weights = [plots.Curve(names[i], x, [step.weights[i] for step in drawn_at]) for i in drawn]
    gains = [plots.Curve(names[i], x, [step.gains[i] for step in drawn_at]) for i in drawn]
    drawings = [
        plots.curves("Chance to be the strategy that wins most", weights, y_label="weight", x_label="hands"),
        plots.curves("Thought to win more than the equilibrium", gains, y_label="mbb/h", x_label="hands"),
    ]
    rows = [
        [f"{hand:,}", names[step.playing], step.opponent, f"{step.gains[step.playing]:+.0f}"]
        for hand, step in turns(steps)
    ]
    table = Table(["hand", "plays", "takes the opponent for", "gain, mbb/h"], rows, left=range(3))
    return [names[i] for i in drawn], drawings, table
