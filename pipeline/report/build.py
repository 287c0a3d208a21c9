"""The page: what `evaluate` found, as one self-contained HTML file.

Sections whose data was not given are left out. Everything is drawn from arrays; nothing here computes a score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pipeline import rankings
from pipeline.decisions import STREETS
from pipeline.evaluate.evaluation import trained
from pipeline.evaluate.findings import Findings
from pipeline.evaluate.inspection import CUTS
from pipeline.evaluate.samples import ALL
from pipeline.report import grids, hands, plots, tables
from pipeline.report.markup import columns, escape, fold_away, page, percent, section, table
from pipeline.report.words import WORDS, situation_words
from pipeline.version import __version__

__all__ = ["build"]

Section = tuple[str, str, str]


def build(findings: Findings) -> str:
    """The whole page."""
    sections = [
        _errors(findings),
        _calibration(findings),
        _failures(findings),
        _learning(findings),
        _charts(findings),
        _features(findings),
        _worst(findings),
        _others(findings),
        _matches(findings),
    ]
    foot = " ".join(escape(fact) for fact in (*findings.facts, f"Made by pipeline {__version__}."))
    made = page(findings.title, _lead(findings), [one for one in sections if one is not None], foot)
    return made.replace("<main>", "<main>" + grids.names_once(), 1)


def _html(made: tables.Table, caption: str = "", drop: Sequence[str] = ()) -> str:
    """A table of text cells as markup: intervals small, the best cell marked."""
    head, rows = made
    kept = [i for i, name in enumerate(head) if name not in drop]
    marked = set()
    out = []
    for i, row in enumerate(rows):
        cells = []
        for j, column in enumerate(kept):
            cell = row[column]
            if cell.endswith(" *"):
                marked.add((i, j))
                cell = cell[:-2]
            value, sign, spread = escape(cell).partition("±")
            cells.append(f"{value}<small>±{spread}</small>" if sign else value)
        out.append(cells)
    return table([escape(head[i]) for i in kept], out, caption, marked)


def _lead(findings: Findings) -> str:
    """The answer first: how close, and how much of the rest is the agent's own dice."""
    said = []
    for about in findings.agents:
        score = about.best.scores[-1]
        error = score.measures["error"].value
        text = (
            f"The closest copy of <b>{escape(score.agent)}</b> is <b>{escape(score.model)}</b>: its likeliest action "
            f"differs from the agent's in {percent(error)} of {score.rows:,} decisions"
        )
        floor = score.floors.get("error")
        if floor is not None and error > 0:
            text += (
                f". The agent itself rolls dice: nobody could do better than {percent(floor)}, so "
                f"{percent(min(floor / error, 1.0), 0)} of these differences are not the model's fault"
            )
        said.append(f"<p>{text}.</p>")
    return "".join(said)


def _errors(findings: Findings) -> Section:
    inside = [
        "<p>Differences between what each model finds most likely and what the agent did (error), and how much "
        "probability it gave to what the agent did (log-loss, in nats; lower is better). ± is half a 95% interval "
        "over deals; the best trained model of a row is shaded.</p>"
    ]
    for about in findings.agents:
        scored = about.scored
        scores = [score for one in scored for score in one.scores]
        agent = scored[0].sample.agent
        inside.append(f"<h3>{escape(agent)}</h3>")
        for measure, said in (("error", "Argmax error, %"), ("log_loss", "Log-loss, nats")):
            inside.append(_html(tables.by_model(scores, measure), said, drop=("agent",)))
        models = trained(scored)
        drawn = []
        for i, score in enumerate(models[0].scores if models else []):
            values = [(one.candidate.name, one.scores[i].measures["log_loss"]) for one in models]
            floor = score.floors.get("log_loss")
            drawn.append(plots.intervals(f"{score.street}: log-loss", values, floor=floor, scale=1.0, unit=""))
        inside.append(columns(*drawn, least="17rem", most="26rem"))
        mine = [pair for pair in about.pairs if pair.street == ALL] or about.pairs
        if mine:
            compared = _html(tables.differences(mine), "Each model beside the best, on the same deals", ("agent",))
            inside.append(fold_away("Are the differences between models real?", compared))
        inside.append(fold_away("Every measure", _html(tables.details(scores), drop=("agent",))))
        inside.append("".join(f'<p class="soft">{escape(note)}</p>' for note in tables.notes(scores)))
    return section("errors", "Errors", *inside)


def _calibration(findings: Findings) -> Section:
    inside = [
        "<p>When a model says 30 %, does the agent do it 30 % of the time? On the dashed line it does. Each point "
        "holds as many decisions as the others of its line. The caption gives the mean distance from the line, and in "
        "brackets what chance alone would give.</p>"
    ]
    for about in findings.agents:
        scored = about.scored
        models = sorted(trained(scored), key=lambda one: one is not about.best)
        labels = scored[0].sample.labels
        inside.append(f"<h3>{escape(scored[0].sample.agent)}</h3>")
        inside.append(plots.line_key([WORDS[label] for label in labels]))
        for number, one in enumerate(models):
            drawn = []
            for score in one.scores:
                bins = one.calibration[score.street]
                lines = [plots.Curve("", one_bin.predicted, one_bin.taken) for one_bin in bins]
                styles = [one_bin.label for one_bin in bins]
                found = score.measures["calibration"].value
                title = f"{score.street} {percent(found)} ({percent(score.perfect_calibration)})"
                drawn.append(plots.calibration(title, lines, [one_bin.size for one_bin in bins], styles))
            shown = columns(*drawn, least="10rem", most="16rem")
            name = escape(one.candidate.name)
            inside.append(f"<p><b>{name}</b></p>{shown}" if number == 0 else fold_away(name, shown))
        confusions = []
        one = about.best
        for street, counts in about.confusion.items():
            confusions.append(plots.confusion(street, counts, labels))
        inside.append(
            f"<h3>Confusion of {escape(one.candidate.name)}</h3><p>Rows: what the agent did. Columns: what the model "
            "finds most likely. Shares of the row.</p>" + columns(*confusions, least="10rem", most="15rem")
        )
    return section("calibration", "Calibration and confusion", *inside)


def _failures(findings: Findings) -> Section | None:
    about = findings.agents[0]
    if not any(about.parts.values()):
        return None
    inside = [
        "<p>The best model's decisions cut by situation. <i>Share of loss</i> is the part of the street's distance "
        "from the agent (KL where its probabilities are known, else log-loss). <i>Played</i> and <i>taken</i> are the "
        "percentages of " + ", ".join(WORDS[label] for label in about.sample.labels) + ".</p>"
    ]
    said = {
        "situation": "Betting so far on the street",
        "position": "Position",
        "hand": "Hand class",
        "strength": "Expected hand strength",
        "opponent": "Opponent",
    }
    for cut in CUTS:
        found = sorted(about.parts.get(cut, ()), key=lambda part: -part.share)[:24]
        if found:
            order = {part.street: i for i, part in enumerate(about.parts[cut])}
            found.sort(key=lambda part: (order[part.street], -part.share))
            inside.append(fold_away(said[cut], _html(tables.parts(found, cut, about.sample.labels))))
    return section("failures", "Where it fails", *inside)


def _learning(findings: Findings) -> Section | None:
    if not findings.learning:
        return None
    streets = list(dict.fromkeys(one.street for one in findings.learning))
    models = list(dict.fromkeys(one.model for one in findings.learning))
    drawn = []
    for street in streets:
        lines = []
        for model in models:
            one = next((one for one in findings.learning if (one.model, one.street) == (model, street)), None)
            points = one.log_loss if one is not None else []
            lines.append(
                plots.Curve(
                    model,
                    one.rows if one is not None else [],
                    [point.value for point in points],
                    [point.low for point in points],
                    [point.high for point in points],
                )
            )
        floor = next((one.floor for one in findings.learning if one.street == street), None)
        drawn.append(plots.curves(f"{street}: log-loss", lines, floor=floor, log_x=True, x_label="training rows"))
    inside = "<p>What more logs would bring: log-loss on the same decisions by size of the training corpus.</p>"
    shown = columns(*drawn, least="17rem", most="26rem")
    return section("learning", "Learning curves", inside, plots.line_key(models), shown)


def _charts(findings: Findings) -> Section | None:
    inside = []
    for about in findings.agents:
        one, found = about.best, about.charts
        labels = one.sample.labels
        if not found:
            continue
        inside.append(f"<h3>{escape(one.sample.agent)}</h3>{grids.key(labels, never=True)}")
        for number, chart in enumerate(found):
            first = situation_words(chart.situation)
            pair = columns(
                grids.chart(chart.agent, labels, f"{one.sample.agent}, {first}", count=chart.seen),
                grids.chart(chart.model, labels, f"{one.candidate.name}, {first}", count=chart.seen),
                least="19rem",
                most="34rem",
            )
            apart = float((abs(chart.agent - chart.model).sum(axis=1) / 2 * chart.seen).sum() / max(chart.rows, 1))
            said = f"{first}: {chart.rows:,} decisions, {percent(apart)} apart"
            inside.append(f"<p>{said}</p>{pair}" if number == 0 else fold_away(said, pair))
    if not inside:
        return None
    text = (
        "<p>Pairs on the diagonal, suited hands above it. The width of a colour in a cell is how often the action is "
        "taken, the most aggressive on the left; hatched hands never came up.</p>"
    )
    return section("charts", "Starting hands", text, *inside)


def _features(findings: Findings) -> Section | None:
    if not findings.features:
        return None
    inside = []
    for model in dict.fromkeys(one.model for one in findings.features):
        for street in dict.fromkeys(one.street for one in findings.features if one.model == model):
            mine = [one for one in findings.features if (one.model, one.street) == (model, street)]
            lists = [
                table(
                    [escape(WORDS.get(one.label, one.label)), "weight"],
                    [[escape(name), f"{weight:+.2f}"] for name, weight in one.weights],
                    wrap=True,
                )
                for one in mine
            ]
            shown = columns(*lists, least="17rem", most="30rem")
            inside.append(fold_away(f"{escape(model)}, {escape(street)}", shown))
    text = "<p>What speaks loudest for each action.</p>"
    return section("features", "Strongest features", text, *inside)


def _worst(findings: Findings) -> Section:
    inside = []
    for about in findings.agents:
        one, sample = about.best, about.sample
        drawn = []
        for row in about.worst:
            mixes = [(one.candidate.name, one.played[row])]
            if sample.truth is not None and not math.isnan(sample.truth[row].sum()):
                mixes.insert(0, (f"{sample.agent} (true mix)", sample.truth[row] / sample.truth[row].sum()))
            drawn.append(
                hands.hand(
                    sample.rows[row],
                    sample.labels,
                    title=STREETS[int(sample.rows["street"][row])],
                    note=f"{Path(sample.files[int(sample.file[row])]).name}, hand {int(sample.hand[row])}",
                    taken=int(sample.taken[row]),
                    mixes=mixes,
                )
            )
        inside.append(f"<h3>{escape(sample.agent)}</h3>{columns(*drawn, least='17rem', most='24rem')}")
    text = (
        "<p>Where the best model is furthest from the agent, weighted by the pot: one hand for each of the costliest "
        "betting lines of every street.</p>"
    )
    return section("worst", "Worst disagreements", text, *inside)


def _others(findings: Findings) -> Section | None:
    inside = []
    if findings.cross:
        last = [one.scores[-1] for one in findings.cross]
        inside.append(_html(tables.cross(last), "Log-loss of each model on each agent's decisions, all streets"))
    stationary = [one for about in findings.agents for one in about.stationarity]
    if stationary:
        text = (
            "<p>Does the agent play the same information sets the same way? <i>Differ</i> is how often two of its "
            "decisions there differ, within a side and across sides; <i>distance</i> is across minus within, 0 for an "
            "agent that does not change.</p>"
        )
        inside.append(text + _html(tables.stationary(stationary)))
    return section("agents", "Other agents, other times", *inside) if inside else None


def _matches(findings: Findings) -> Section | None:
    inside = []
    if findings.matches:
        rows = [
            [
                escape(match["a"]),
                escape(match["b"]),
                f"{int(str(match['hands'])):,}",
                f"{float(str(match['mbb_per_hand'])):+.1f}<small>±{float(str(match['ci95'])):.1f}</small>",
            ]
            for match in findings.matches
        ]
        inside.append(table(["agent", "against", "hands", "mbb/h"], rows, "Duplicate matches"))
    if findings.results is not None:
        inside.append(_tournament(findings.results, findings.cap_mbb))
    return section("matches", "Matches", *inside) if inside else None


def _tournament(results: rankings.Results, cap: float | None) -> str:
    """Cross table and both rankings."""
    bankroll, runoff = rankings.total_bankroll(results, cap), rankings.instant_runoff(results, cap)
    cross = ""
    if results.lineups.shape[1] == 2:
        won, half = rankings.cross_table(results)
        order = [results.names.index(standing.name) for standing in bankroll.standings]
        rows = [
            [
                escape(results.names[i]),
                *("" if i == j else f"{won[i, j]:+.0f}<small>±{half[i, j]:.0f}</small>" for j in order),
            ]
            for i in order
        ]
        cross = table(["mbb/h of row", *(escape(results.names[i]) for i in order)], rows, "Cross table")
    inside = []
    for ranking in (bankroll, runoff):
        rows = [
            [
                f"{place}. {escape(standing.name)}",
                f"{standing.won.value:+.1f}<small>±{(standing.won.high - standing.won.low) / 2:.1f}</small>",
                percent(float(ranking.places[place - 1, 0])),
            ]
            for place, standing in enumerate(ranking.standings, start=1)
        ]
        inside.append(table([ranking.rule, "mbb/h", "first in"], rows))
    limit = f" Losses count at most {cap:.0f} mbb/h." if cap else ""
    text = (
        "<p>In the run-off the last of each count leaves, and the rest are counted again without it; mbb/h is that of "
        f"an agent's last count. <i>First in</i>: share of bootstrap draws of the deals.{limit}</p>"
    )
    return "<h3>Tournament</h3>" + text + cross + columns(*inside, least="20rem", most="34rem")
