"""Pages as self-contained HTML files: that of an evaluation, and smaller ones of a counter, a match or a few curves.

In go `Findings` (or the subject of a small page), out comes the text of the page. The sentences stand in the templates
of resources/, which escape whatever is not a drawing; the first half of this file chooses, orders and draws what the
templates ask for, the second half renders them. Nothing here computes a score.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
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
from pipeline.evaluation.repeat_floor import floor_bounds
from pipeline.evaluation.retraining import LearningCurve
from pipeline.evaluation.samples import ALL
from pipeline.evaluation.scoring import ModelScore, PairedDifference, Scored
from pipeline.evaluation.sizing import SIZE_EDGES
from pipeline.poker.cards import NO_CARD
from pipeline.poker.spoken import position_words
from pipeline.report import grids, plots, tables, words
from pipeline.report.plots import CURVES, RESOURCES, Panel, escape, figure, percent_with_sign, style_sheet, tag
from pipeline.report.text import TextTable
from pipeline.report.words import (
    SHORT,
    WORDS,
    betting_words,
    column_words,
    feature_words,
    looks_words,
    situation_words,
)
from pipeline.runtime.extras import import_extra
from pipeline.runtime.version import __version__
from pipeline.solving.cfr import Solution

CUT_TITLES = {
    "situation": "Betting so far on the street",
    "position": "Position",
    "hand": "Hand class",
    "strength": "Expected hand strength",
    "opponent": "Opponent",
}
MAX_PARTS = 24
"""rows of one table of parts"""
MAX_BARS = 8
"""bars of columns that tell hands apart on a street"""
CURVE_TITLE = "Winnings from the model against own exploitability"
EXPLOITABILITY = "Exploitability"
"""the title of a drawing of one line, which needs no key"""
MAX_STRATEGIES = 6
"""strategies in a drawing: those that were played or likely"""
MAX_MARKS = 24
"""assessments in a drawing, evenly spread; the last is among them"""


def played_results(about: AgentFindings, findings: Findings) -> tuple[str, list[tuple[str, float, float]]]:
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
    """Return the winnings of a model from each other agent in mbb/h with half the interval: of matches, then of the
    tournament.
    """
    text = findings.played_as.get(model, model)
    name = plain_name(text)

    def is_model(other: str) -> bool:  # the bundle `teacher` and the built-in agent `@teacher` have one plain name
        return plain_name(other) == name and is_bundle(other) == is_bundle(text)

    winnings: dict[str, tuple[float, float]] = {}
    for match in findings.matches:
        kind = "adjusted_" if match.get("adjusted_ci95") is not None else ""
        value, half = float(str(match[f"{kind}mbb_per_hand"])), float(str(match[f"{kind}ci95"]))
        a, b = str(match["a"]), str(match["b"])
        for own, other, won in ((a, b, value), (b, a, -value)):
            if is_model(own) and not is_model(other):
                winnings.setdefault(plain_name(other), (won, half))
    results = findings.results
    if results is not None and name in results.names and results.lineups.shape[1] == 2:
        table, half_widths = rankings.cross_table(results)
        own_row = results.names.index(name)
        for j, other in enumerate(results.names):
            if j != own_row:
                winnings.setdefault(other, (float(table[own_row, j]), float(half_widths[own_row, j])))
    return [(other, won, half) for other, (won, half) in winnings.items()]


def all_scores(scored: Sequence[Scored]) -> list[ModelScore]:
    """Return the scores of all candidates, one after the other."""
    return [score for model in scored for score in model.scores]


def overall(pairs: Sequence[PairedDifference]) -> Sequence[PairedDifference]:
    """Return the comparisons over all streets together; where there is only one street, those of it."""
    return [pair for pair in pairs if pair.street == ALL] or pairs


def main_table(scores: Sequence[ModelScore], measure: str) -> TextTable:
    """Return the main table of one agent with street and floor first, which stay in sight on a narrow screen."""
    made = tables.by_model(scores, measure)
    floor = made.head.index("floor")
    return made.select([1, floor, *(i for i in range(3, len(made.head)) if i != floor), 2])


def loss_plots(models: Sequence[Scored]) -> list[str]:
    """Draw the log-loss of each model with its interval and the floor, street by street."""
    drawings = []
    for i, score in enumerate(models[0].scores):
        values = [
            (model.candidate.name, model.scores[i].measures["log_loss"]) for model in models if i < len(model.scores)
        ]
        if len({interval.value for _, interval in values}) < 2:
            continue  # the same chart plays before the flop in all of them
        floor, title = score.floors.get("log_loss"), f"{score.street}: log-loss, nats"
        drawings.append(plots.interval_plot(title, values, floor=floor, scale=1.0, unit=""))
    return drawings


def action_key(labels: str) -> str:
    """Draw a key of lines by action."""
    return plots.line_key([WORDS[label] for label in labels])


def calibration_plots(scored: Scored) -> list[str]:
    """Draw the calibration curves of a model, street by street."""
    drawings = []
    for score in scored.scores:
        bins = scored.calibration[score.street]
        lines = [plots.Curve("", one_bin.predicted, one_bin.taken) for one_bin in bins]
        distance = percent_with_sign(score.measures["calibration"].value)
        title = f"{score.street} {distance} ({percent_with_sign(score.perfect_calibration)})"
        sizes, styles = [one_bin.size for one_bin in bins], [one_bin.label for one_bin in bins]
        drawings.append(plots.calibration_plot(title, lines, sizes, styles))
    return drawings


def confusion_plots(about: AgentFindings) -> list[str]:
    """Draw the confusion of the best model, street by street."""
    return [plots.confusion_plot(street, counts, about.sample.labels) for street, counts in about.confusion.items()]


def size_plots(about: AgentFindings) -> list[str]:
    """Draw which share of raises is at most how large, of the agent and of each model, street by street."""
    drawings = []
    for street in dict.fromkeys(curve.street for curves in about.sizes.values() for curve in curves):
        mine = [next((curve for curve in curves if curve.street == street), None) for curves in about.sizes.values()]
        first = next(curve for curve in mine if curve is not None)
        lines = [plots.Curve(about.sample.agent, SIZE_EDGES, 100 * first.taken)]
        for name, curve in zip(about.sizes, mine, strict=True):
            lines.append(plots.Curve(name, SIZE_EDGES, 100 * curve.played) if curve else plots.Curve(name, [], []))
        title = f"{street}: {first.raises:,} raises"
        drawings.append(plots.curve_plot(title, lines, log_x=True, x_label="raise / pot", y_label="raises up to it, %"))
    return drawings


def costliest_situations(about: AgentFindings) -> list[Subset]:
    """Return the three betting situations in which the best model loses most beyond the agent's own dice, in nats."""

    def excess(part: Subset) -> float:
        return part.rows * (part.log_loss.value - (part.floor_log_loss or 0.0))

    return sorted(about.parts.get("situation", ()), key=excess, reverse=True)[:3]


def situation_text(part: Subset) -> str:
    """Return a betting situation in words."""
    return situation_words(part.part, preflop=part.street == STREETS[0])


def part_tables(about: AgentFindings) -> Iterator[tuple[str, TextTable]]:
    """Yield a title and a table of the costliest parts for each cut, with betting and actions in words."""
    labels = about.sample.labels
    letters, words = "/".join(labels), " / ".join(SHORT[label] for label in labels)
    for cut in CUTS:
        costly = sorted(about.parts.get(cut, ()), key=lambda part: -part.share)[:MAX_PARTS]
        if not costly:
            continue
        order = {part.street: i for i, part in enumerate(about.parts[cut])}
        costly.sort(key=lambda part: (order[part.street], -part.share))
        if cut == "situation":
            costly = [replace(part, part=situation_text(part)) for part in costly]
        made = tables.parts(costly, cut, labels)
        head = [name.replace(f" {letters}", ", %") for name in made.head]
        yield CUT_TITLES[cut], replace(made, head=head, notes=dict.fromkeys(("played, %", "taken, %"), words))


def learning_plots(learning: Sequence[LearningCurve]) -> tuple[list[str], list[str]]:
    """Return the models, and the drawing of each street: log-loss by the number of training rows."""
    models = list(dict.fromkeys(curve.model for curve in learning))
    drawings = []
    for street in dict.fromkeys(curve.street for curve in learning):
        lines = []
        for model in models:
            curve = next((curve for curve in learning if (curve.model, curve.street) == (model, street)), None)
            values = list(zip(*curve.log_loss, strict=True)) if curve is not None and curve.log_loss else [(), (), ()]
            lines.append(plots.Curve(model, curve.rows if curve is not None else [], *values))
        floor = next((curve.floor for curve in learning if curve.street == street), None)
        drawings.append(
            plots.curve_plot(street, lines, floor=floor, log_x=True, x_label="training rows", y_label="log-loss, nats")
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
        yield (
            f"{first}: {chart.rows:,} decision{'s' * (chart.rows != 1)}, {percent_with_sign(chart.distance)} apart",
            pair,
        )


def column_plots(looks: Sequence[ClassColumns]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield for each model a sentence and a drawing per street: by which columns it tells hands apart."""
    for model in dict.fromkeys(look.model for look in looks):
        mine = [look for look in looks if look.model == model]
        sentences = [f"{model}: {looks_words(look.weights, look.street)}" for look in mine]
        yield sentences, [_weight_bars(look) for look in mine]


def _weight_bars(look: ClassColumns) -> str:
    """Draw a bar for each of the heaviest columns, its words above it."""
    drawn, weights = "", look.weights[:MAX_BARS]
    for place, (name, share) in enumerate(weights):
        y = 26.0 * place
        drawn += tag("text", escape(column_words(name, look.street)), x=0, y=y + 10, class_="ink")
        drawn += tag("rect", x=0, y=y + 14, width=round(300 * share, 1), height=6, fill="var(--m0)")
    return plots.figure(look.street, 320.0, 26.0 * len(weights), drawn)


def group_features(features: Sequence[StrongestFeatures]) -> list[tuple[tuple[str, str], list[StrongestFeatures]]]:
    """Group features by model and street, model by model."""
    groups: dict[tuple[str, str], list[StrongestFeatures]] = {}
    models = list(dict.fromkeys(strongest.model for strongest in features))
    for strongest in sorted(features, key=lambda strongest: models.index(strongest.model)):
        groups.setdefault((strongest.model, strongest.street), []).append(strongest)
    return list(groups.items())


def weight_table(features: StrongestFeatures) -> TextTable:
    """Return a table of the strongest features of an action, in words."""
    rows = [[feature_words(name, features.players), f"{weight:+.2f}"] for name, weight in features.weights]
    return TextTable([WORDS.get(features.label, features.label), "weight"], rows)


class WorstDecision(NamedTuple):
    """One decision in words and numbers: players, cards, betting, the action taken and the mixes of actions."""

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


def describe_decision(row: int, about: AgentFindings) -> WorstDecision:
    """Describe the decision in one row of the sample that the best model was scored on."""
    best, sample = about.best, about.sample
    mixes = [(f"{best.candidate.name} (model)", best.played[row])]
    if sample.truth is not None and not math.isnan(sample.truth[row].sum()):
        mixes.insert(0, (f"{sample.agent} (true mix)", sample.truth[row] / sample.truth[row].sum()))
    row_record, nolimit = sample.rows[row], sample.game.nolimit
    street = int(row_record["street"])
    betting = []
    streets = about.bettings.get(row, "").split("/")
    for i in range(street + 1):
        text = betting_text(int(row_record["betting_codes"][i]), nolimit)
        totals = [int(total) for total in re.findall(r"r(\d+)", streets[i])] if i < len(streets) else []
        betting.append(f"{STREETS[i]}: {betting_words(text, preflop=i == 0, totals=totals) or 'first to act'}")
    board = [
        (STREETS[i], row_record["board"][first:last]) for i, (first, last) in enumerate(((0, 3), (3, 4), (4, 5)), 1)
    ]
    cards = [(name, [int(card) for card in dealt if card != NO_CARD]) for name, dealt in board[:street]]
    where = position_words(int(row_record["position"]), int(row_record["players"]), sample.game.is_holdem)
    amount = int(sample.amount[row]) if sample.amount is not None and nolimit else 0
    taken = sample.labels[int(sample.taken[row])]
    return WorstDecision(
        title=f"{STREETS[street]}, {where} against {sample.opponents[int(sample.opponent[row])]}",
        log=f"{Path(sample.files[int(sample.file[row])]).name}, hand {int(sample.hand[row])}",
        labels=sample.labels,
        cards=[
            ("hole", [int(card) for card in row_record["hole"] if card != NO_CARD]),
            *(part for part in cards if part[1]),
        ],
        betting=betting,
        pot=int(row_record["pot"]),
        to_call=int(row_record["to_call"]),
        action=WORDS.get(taken, taken) + (f" to {amount:,}" if amount else ""),
        mixes=mixes,
    )


def model_by_agent(scored: Sequence[Scored]) -> TextTable:
    """Return the table of each model on each agent's decisions."""
    return tables.cross([model.scores[-1] for model in scored])


def changes_over_time(findings: Findings) -> list[Stationarity]:
    """Return the comparisons of all agents with themselves."""
    return [change for about in findings.agents for change in about.stationarity]


def tournament_tables(results: rankings.Results) -> tuple[str, TextTable, list[TextTable]]:
    """Return the title and the table of what was won of whom, and both rankings, as `tournament` prints them."""
    bankroll, runoff = rankings.total_bankroll(results, results.cap), rankings.instant_runoff(results, results.cap)
    rankings_shown = []
    for order in (bankroll, runoff):
        made = tables.ranking_table(order)
        rows = [[f"{row[0]} {row[1]}", *row[2:]] for row in made.rows]
        rankings_shown.append(TextTable([made.head[0], "mbb/h", *made.head[3:]], rows))
    title = "Cross table" if results.lineups.shape[1] == 2 else "Line-ups"
    return title, tables.results_table(results, bankroll), rankings_shown


def _panel(tried: CounterChoice) -> Panel:
    """Draw winnings by exploitability of all shares that were tried, and of the one that was kept."""
    points = sorted(tried.curve, key=lambda point: point.exploitability)
    lines = [
        plots.Curve("tried", [point.exploitability for point in points], [point.winnings for point in points]),
        plots.Curve(f"kept: trust {tried.kept.share:g}", [tried.kept.exploitability], [tried.kept.winnings]),
    ]
    drawn = plots.draw_curves(lines, x_label=f"exploitable for, {tried.unit}", y_label=f"wins, {tried.unit}")
    return Panel(CURVE_TITLE, drawn, [line.name for line in lines])


def counter_picture(title: str, tried: CounterChoice) -> str:
    """Draw one counter-strategy's curve as a file."""
    return plots.curves_picture(title, [_panel(tried)])


def counter_curve(tried: CounterChoice) -> str:
    """Draw one counter-strategy's curve for a page."""
    panel = _panel(tried)
    return plots.figure(panel.title, *plots.CURVES, panel.drawn) + plots.line_key(panel.names)


def counter_table(tried: CounterChoice) -> TextTable:
    """Return a table of the shares that were tried."""
    rows = [
        [
            f"{point.share:g}" + " *" * (point.share == tried.kept.share),
            f"{point.winnings:+.1f}{_interval(point.winnings_ci95)}",
            f"{point.exploitability:.1f}{_interval(point.exploitability_ci95)}",
        ]
        for point in tried.curve
    ]
    return TextTable(["trust", f"wins, {tried.unit}", "exploitable for"], rows)


def _interval(half: float) -> str:
    """Return half an interval to write beside its value; nothing where the value is exact."""
    return f"±{half:.1f}" if half else ""


def _solution_panels(solution: Solution, spots: Sequence[str]) -> list[Panel]:
    """Draw a small game's run by iteration: exploitability where it is known, value, chance to raise at `spots`."""
    curve = solution.curve
    x = [point.iteration for point in curve]
    players = range(solution.game.players)
    value = [plots.Curve(f"player {p + 1}", x, [point.value[p] for point in curve]) for p in players]
    raises = [plots.Curve(spot, x, [point.frequencies[i][2] for point in curve]) for i, spot in enumerate(spots)]
    wanted: list[tuple[str, list[plots.Curve], dict[str, Any]]] = [
        ("Value of the game", value, {"y_label": "chips per hand"}),
        ("Chance to raise, by betting:card", raises, {"y_label": "probability"}),
    ]
    exploitability = [point.exploitability for point in curve if point.exploitability is not None]
    if exploitability:
        line = plots.Curve(EXPLOITABILITY, x, exploitability)
        wanted.insert(0, (EXPLOITABILITY, [line], {"y_label": "chips per hand", "log_y": True}))
    return [
        Panel(
            name,
            plots.draw_curves(lines, log_x=True, x_label="iteration", **look),
            [line.name for line in lines] if name != EXPLOITABILITY else (),
        )
        for name, lines, look in wanted
    ]


def solution_picture(solution: Solution, spots: Sequence[str]) -> str:
    """Draw a small game's run as a file."""
    return plots.curves_picture(_solution_title(solution), _solution_panels(solution, spots))


def _solution_title(solution: Solution) -> str:
    return f"{solution.game.name}, {solution.method}"


def switches(steps: Sequence[Assessment]) -> list[tuple[int, Assessment]]:
    """Return each switch to another strategy: the first hand that it played, and the assessment that led to it."""
    result, before = [], 0
    for playing, run in groupby(steps, key=lambda step: step.playing):
        first = next(run)
        if playing != before:
            result.append((first.hands + 1, first))
        before = playing
    return result


def adaptation_plots(thoughts: AdaptationCourse) -> tuple[list[str], list[str], TextTable]:
    """Return the strategies that are drawn, the two drawings over the hands and a table of switches."""
    names, steps = thoughts.members, thoughts.steps
    # counted from the end, so that the last assessment is among those drawn
    drawn_at = steps[:: -math.ceil(len(steps) / MAX_MARKS)][::-1]
    x = [float(step.hands) for step in drawn_at]
    most = [max(step.weights[i] + (step.playing == i) for step in steps) for i in range(len(names))]
    drawn = sorted(sorted(range(len(names)), key=lambda i: -most[i])[:MAX_STRATEGIES])
    weights = [plots.Curve(names[i], x, [step.weights[i] for step in drawn_at]) for i in drawn]
    gains = [plots.Curve(names[i], x, [step.gains[i] for step in drawn_at]) for i in drawn]
    drawings = [
        plots.curve_plot("Chance to be the strategy that wins most", weights, y_label="weight", x_label="hands"),
        plots.curve_plot("Thought to win more than the equilibrium", gains, y_label="mbb/h", x_label="hands"),
    ]
    rows = [
        [f"{hand:,}", names[step.playing], step.opponent, f"{step.gains[step.playing]:+.0f}"]
        for hand, step in switches(steps)
    ]
    table = TextTable(["hand", "plays", "takes the opponent for", "gain, mbb/h"], rows, left=range(3))
    return [names[i] for i in drawn], drawings, table


# Rendering: everything above is called from the templates.

SECTIONS = {
    "errors": "Errors",
    "calibration": "Calibration and confusion",
    "sizes": "Amounts of raises",
    "failures": "Where it fails",
    "learning": "Learning curves",
    "charts": "Starting hands",
    "looks": "What it looks at",
    "features": "Strongest features",
    "worst": "Worst disagreements",
    "agents": "Other agents, other times",
    "matches": "Matches",
    "opponents": "Opponents",
}
"""titles by anchor, in the order of the page; an anchor is also the name of a macro"""


class _Section(NamedTuple):
    """A part of a page."""

    anchor: str
    title: str
    body: Any
    """markup"""


def _source(name: str) -> str:
    """Read a template without its layout: a line break beside a tag is dropped, one between words is a space."""
    text = (RESOURCES / name).read_text(encoding="utf-8")
    return re.sub(r"\n\s*", "", re.sub(r"(?<=[^>}\n])\n\s*(?=[^<{\s])", " ", text))


@cache
def _environment() -> Any:
    """Return the templates; jinja2 is a package of the extra [data]."""
    jinja2 = import_extra("jinja2")
    environment = jinja2.Environment(
        autoescape=True, loader=jinja2.FunctionLoader(_source), undefined=jinja2.StrictUndefined
    )
    environment.globals |= {
        "grids": grids,
        "plots": plots,
        "pages": sys.modules[__name__],
        "tables": tables,
        "words": words,
    }
    environment.globals |= {"floor_bounds": floor_bounds, "percent": percent_with_sign, "trained": trained_models}
    return environment


def _macros(name: str) -> Any:
    """Return the macros of a template, to be called."""
    return _environment().get_template(name).module


def _page(title: str, lead: str, sections: Sequence[_Section], facts: Sequence[str] = (), definitions: str = "") -> str:
    """Render the whole document around its sections."""
    return str(
        _environment()
        .get_template("page.html")
        .render(title=title, lead=lead, sections=sections, facts=facts, definitions=definitions, style=style_sheet())
    )


def build_page(findings: Findings) -> str:
    """Return the page of an evaluation: the lead, a section for everything there is data for, the facts."""
    macros = _macros("sections.html")
    sections = [_Section(anchor, title, getattr(macros, anchor)(findings)) for anchor, title in SECTIONS.items()]
    return _page(
        findings.title,
        _macros("lead.html").lead(findings),
        [part for part in sections if part.body],
        facts=[*findings.facts, f"Made by pipeline {__version__}."],
        definitions=grids.names_once(),
    )


def solution_page(solution: Solution, spots: Sequence[str]) -> str:
    """Return a page about a small game's run, with a section for each drawing."""
    environment = _environment()
    columns = _macros("parts.html").columns
    sections = []
    for i, panel in enumerate(_solution_panels(solution, spots)):
        drawings = [figure("", *CURVES, panel.drawn)]
        key = environment.filters["safe"](plots.line_key(panel.names)) if panel.names else ""
        sections.append(_Section(f"curves-{i}", panel.title, columns(drawings=drawings) + key))
    return _page(_solution_title(solution), "Average strategy by iteration.", sections)


def counter_page(title: str, tried: CounterChoice) -> str:
    """Return a page about one counter-strategy."""
    sections = [_Section("curve", CURVE_TITLE, _macros("sections.html").counter(tried))]
    return _page(title, "Each point trusts the model of the opponent to another share.", sections)


def adaptation_page(title: str, thoughts: Sequence[AdaptationCourse]) -> str:
    """Return a page about the adaptive agents of one match."""
    draw = _macros("sections.html").adaptation
    sections = [_Section(f"agent-{i}", agent.name, draw(agent)) for i, agent in enumerate(thoughts)]
    return _page(title, "What was thought after every few hands of the match.", sections)
