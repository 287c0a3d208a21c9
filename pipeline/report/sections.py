"""The sections of the page, each from the findings it shows; a section without data is None and is left out.

In go `Findings`, out come (anchor, title, markup). Everything is drawn from arrays and tables that
`pipeline.evaluation` made; a drawing appears only where there is something to compare.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.arena import rankings
from pipeline.dataset.decisions import STREETS, word_text
from pipeline.evaluation.evaluation import trained
from pipeline.evaluation.findings import AgentFindings, Findings
from pipeline.evaluation.inspection import CUTS, Subset
from pipeline.evaluation.samples import ALL
from pipeline.evaluation.scoring import Score
from pipeline.evaluation.sizing import SIZE_EDGES
from pipeline.report import grids, hands, plots, tables
from pipeline.report.markup import columns, escape, fold_away, percent, section, table
from pipeline.report.text import Table
from pipeline.report.words import SHORT, WORDS, betting_words, feature_words, position_words, situation_words

Section = tuple[str, str, str]


def _html(made: Table, caption: str = "", **look: bool) -> str:
    """A table of text cells as markup: intervals small, the best cell marked."""
    marked = set()
    out = []
    for i, row in enumerate(made.rows):
        cells = []
        for j, cell in enumerate(row):
            if cell.endswith(" *"):
                marked.add((i, j))
            value, sign, spread = escape(cell.removesuffix(" *")).partition("±")
            cells.append(f"{value}<small>±{spread}</small>" if sign else value)
        out.append(cells)
    heads = [
        escape(name) + (f"<small>{escape(made.notes[name])}</small>" if name in made.notes else "")
        for name in made.head
    ]
    return table(heads, out, caption, marked, made.left, **look)


def _by_model(scores: Sequence[Score], measure: str, caption: str) -> str:
    """The main table: street and floor stay in sight on a narrow screen; a model's column says what it is made of."""
    made = tables.by_model(scores, measure)
    floor = made.head.index("floor")
    order = [1, floor, *(i for i in range(3, len(made.head)) if i != floor), 2]
    return _html(made.select(order), caption, pinned=True)


def errors(findings: Findings) -> Section | None:
    """Error and log-loss of every model by street, beside floor and baselines."""
    if not findings.agents:
        return None
    inside = [
        "<p>How often each model's likeliest action is not the one the agent took (error), and how much probability it "
        "gave to that action (log-loss, in nats; lower is better). ± is half a 95% interval over deals. The floor is "
        "what a perfect copy of the agent would score, because the agent itself mixes; where only bounds are known, "
        "they are shown. The best trained model of a row is shaded.</p>"
    ]
    for about in findings.agents:
        scores = [score for one in about.scored for score in one.scores]
        inside.append(f"<h3>{escape(about.sample.agent)}</h3>")
        for measure, said in (("error", "Argmax error, %"), ("log_loss", "Log-loss, nats")):
            inside.append(_by_model(scores, measure, said))
        models = trained(about.scored)
        if len(models) > 1:
            drawn = []
            for i, score in enumerate(models[0].scores):
                values = [
                    (one.candidate.name, one.scores[i].measures["log_loss"]) for one in models if i < len(one.scores)
                ]
                if len({interval.value for _, interval in values}) < 2:
                    continue  # the same chart plays before the flop in all of them
                floor = score.floors.get("log_loss")
                drawn.append(
                    plots.intervals(f"{score.street}: log-loss, nats", values, floor=floor, scale=1.0, unit="")
                )
            inside.append(columns(*drawn, least="17rem", most="26rem"))
        mine = [pair for pair in about.pairs if pair.street == ALL] or about.pairs
        if mine:
            compared = _html(tables.differences(mine).without("agent"), "Each model beside the best, on the same deals")
            inside.append(fold_away("Are the differences between models real?", compared))
        inside.append(fold_away("Every measure", _html(tables.details(scores).without("agent"))))
        notes = [f'<p class="soft">{escape(note)}</p>' for note in tables.notes(scores)]
        inside.append("".join(notes[:2]) + (fold_away("About the floors", *notes[2:]) if notes[2:] else ""))
    if findings.together:
        scores = [score for one in findings.together for score in one.scores]
        inside.append("<h3>All agents together</h3>")
        for measure, said in (("error", "Argmax error, %"), ("log_loss", "Log-loss, nats")):
            inside.append(_by_model(scores, measure, said))
    return section("errors", "Errors", *inside)


def calibration(findings: Findings) -> Section | None:
    """Calibration curves of every model and the confusion of the best."""
    if not findings.agents:
        return None
    inside = [
        "<p>When a model says 30 %, does the agent do it 30 % of the time? On the dashed line it does. Each point "
        "holds as many decisions as the others of its line, and at least 20 where there are so many. The caption gives "
        "the mean distance from the line, and in brackets what chance alone would give.</p>"
    ]
    for about in findings.agents:
        models = sorted(trained(about.scored), key=lambda one: one is not about.best)
        labels = about.sample.labels
        inside.append(f"<h3>{escape(about.sample.agent)}</h3>")
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
        least, most = ("10rem", "15rem") if len(labels) <= 4 else ("17rem", "22rem")
        confusions = [plots.confusion(street, counts, labels) for street, counts in about.confusion.items()]
        words = ", ".join(f"{label} {WORDS[label]}" for label in labels)
        inside.append(
            f"<h3>Confusion of {escape(about.best.candidate.name)}</h3><p>Rows: what the agent did. Columns: what the "
            f"model finds most likely. Shares of the row; {words}.</p>" + columns(*confusions, least=least, most=most)
        )
    return section("calibration", "Calibration and confusion", *inside)


def sizes(findings: Findings) -> Section | None:
    """How close the amounts of raises are, and the sizes that agent and models bet."""
    inside = []
    for about in findings.agents:
        if not about.sizes:
            continue
        scores = [score for one in trained(about.scored) for score in one.scores]
        inside.append(f"<h3>{escape(about.sample.agent)}</h3>{_html(tables.sizes(scores).without('agent'))}")
        names = [about.sample.agent, *about.sizes]
        inside.append(plots.line_key(names))
        drawn = []
        for street in dict.fromkeys(curve.street for curves in about.sizes.values() for curve in curves):
            mine = [next((one for one in curves if one.street == street), None) for curves in about.sizes.values()]
            known = next(one for one in mine if one is not None)
            lines = [plots.Curve(about.sample.agent, SIZE_EDGES, 100 * known.taken)]
            for name, one in zip(about.sizes, mine, strict=True):
                lines.append(plots.Curve(name, SIZE_EDGES, 100 * one.played) if one else plots.Curve(name, [], []))
            title = f"{street}: {known.raises:,} raises"
            drawn.append(plots.curves(title, lines, log_x=True, x_label="raise / pot", y_label="raises up to it, %"))
        inside.append(columns(*drawn, least="17rem", most="26rem"))
    if not inside:
        return None
    text = (
        "<p>Given the class of a raise that the agent made: how often the model's likeliest amount is the very one, "
        "how far its middle amount is away, in pots after calling, and the CRPS, which scores all its amounts. "
        "The curves show which share of all raises, all-in included, is at most so large beside the pot, "
        "in the same situations.</p>"
    )
    return section("sizes", "Amounts of raises", text, *inside)


CUT_TITLES = {
    "situation": "Betting so far on the street",
    "position": "Position",
    "hand": "Hand class",
    "strength": "Expected hand strength",
    "opponent": "Opponent",
}
MOST_PARTS = 24
"""rows of one table of parts"""


def failures(findings: Findings) -> Section | None:
    """Where the best model of each agent loses most: the three costliest situations drawn, all cuts as tables."""
    inside = []
    for about in findings.agents:
        if not any(about.parts.values()):
            continue
        inside.append(f"<h3>{escape(about.best.candidate.name)} as {escape(about.sample.agent)}</h3>")
        largest = sorted(about.parts.get("situation", ()), key=_excess, reverse=True)[:3]
        if largest:
            inside.append(columns(*(_costly(part, about) for part in largest), least="17rem", most="24rem"))
        for cut in CUTS:
            found = sorted(about.parts.get(cut, ()), key=lambda part: -part.share)[:MOST_PARTS]
            if found:
                order = {part.street: i for i, part in enumerate(about.parts[cut])}
                found.sort(key=lambda part: (order[part.street], -part.share))
                inside.append(fold_away(CUT_TITLES[cut], _parts(found, cut, about.sample.labels)))
    if not inside:
        return None
    text = (
        "<p>The best model's decisions cut by situation. <i>Share of loss</i> is the part of the street's distance "
        "from the agent: of the KL divergence where its probabilities are known, else of the log-loss.</p>"
    )
    return section("failures", "Where it fails", text, *inside)


def _excess(part: Subset) -> float:
    """What the model loses in a part beyond the agent's own dice, summed over its rows, in nats."""
    return part.rows * (part.log_loss.value - (part.floor_log_loss or 0.0))


def _costly(part: Subset, about: AgentFindings) -> str:
    """One situation as a panel: what it costs, what the agent did and what the model plays."""
    labels = about.sample.labels
    situation = situation_words(part.part, preflop=part.street == STREETS[0])
    bars = "".join(
        f'<div class="said">{escape(whose)}</div>{plots.mix_bar(mix, labels, WORDS)}'
        for whose, mix in (
            (f"{about.sample.agent} did", part.taken),
            (f"{about.best.candidate.name} (model) plays", part.played),
        )
    )
    floor = "" if part.floor_error is None else f" (floor {percent(part.floor_error)})"
    return (
        f'<div class="hand"><h4>{escape(part.street)}, {escape(situation)}</h4><div class="said">'
        f"{percent(part.share, 0)} of the street's loss in {part.rows:,} decisions; error "
        f"{percent(part.error.value)}{floor}</div>{bars}</div>"
    )


def _parts(found: Sequence[Subset], cut: str, labels: str) -> str:
    """The table of one cut, with betting and actions in words."""
    made = tables.parts(found, cut, labels)
    letters, words = "/".join(labels), " / ".join(SHORT[label] for label in labels)
    head = [name.replace(f" {letters}", ", %") for name in made.head]
    rows = [list(row) for row in made.rows]
    if cut == "situation":
        for row, part in zip(rows, found, strict=True):
            row[1] = situation_words(part.part, preflop=part.street == STREETS[0])
    return _html(replace(made, head=head, rows=rows, notes=dict.fromkeys(("played, %", "taken, %"), words)))


def learning(findings: Findings) -> Section | None:
    """What more logs would bring."""
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
        drawn.append(
            plots.curves(street, lines, floor=floor, log_x=True, x_label="training rows", y_label="log-loss, nats")
        )
    inside = "<p>What more logs would bring: log-loss on the same decisions by size of the training corpus.</p>"
    shown = columns(*drawn, least="17rem", most="26rem")
    return section("learning", "Learning curves", inside, plots.line_key(models), shown)


def charts(findings: Findings) -> Section | None:
    """Starting hands of agent and best model side by side, by situation."""
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
            said = f"{first}: {chart.rows:,} decision{'s' * (chart.rows != 1)}, {percent(apart)} apart"
            inside.append(f"<p>{said}</p>{pair}" if number == 0 else fold_away(said, pair))
    if not inside:
        return None
    text = (
        "<p>Pairs on the diagonal, suited hands above it. The width of a colour in a cell is how often the action is "
        "taken, the most aggressive on the left; hatched hands never came up.</p>"
    )
    return section("charts", "Starting hands", text, *inside)


def features(findings: Findings) -> Section | None:
    """The strongest features of every model, in words."""
    if not findings.features:
        return None
    inside = []
    for model in dict.fromkeys(one.model for one in findings.features):
        for street in dict.fromkeys(one.street for one in findings.features if one.model == model):
            mine = [one for one in findings.features if (one.model, one.street) == (model, street)]
            lists = [
                table(
                    [escape(WORDS.get(one.label, one.label)), "weight"],
                    [[escape(feature_words(name)), f"{weight:+.2f}"] for name, weight in one.weights],
                    wrap=True,
                )
                for one in mine
            ]
            shown = columns(*lists, least="17rem", most="30rem")
            inside.append(fold_away(f"{escape(model)}, {escape(street)}", shown))
    text = (
        "<p>What speaks loudest for each action: how far a feature's weight for it is above the mean of its weights. "
        "Strengths are shares of the opponent's hands that are beaten at the river.</p>"
    )
    return section("features", "Strongest features", text, *inside)


def worst(findings: Findings) -> Section | None:
    """The decisions where the best model is furthest from the agent, drawn."""
    inside = []
    for about in findings.agents:
        drawn = [_disagreement(row, about) for row in about.worst]
        inside.append(f"<h3>{escape(about.sample.agent)}</h3>{columns(*drawn, least='17rem', most='24rem')}")
    if not inside:
        return None
    text = (
        "<p>Where the best model is furthest from the agent, weighted by the pot: one hand for each of the costliest "
        "betting lines of every street.</p>"
    )
    return section("worst", "Worst disagreements", text, *inside)


def _disagreement(row: int, about: AgentFindings) -> str:
    """One decision as a panel: who against whom, the cards, the betting in words, what was done and what is said."""
    one, sample = about.best, about.sample
    mixes = [(f"{one.candidate.name} (model)", one.played[row])]
    if sample.truth is not None and not math.isnan(sample.truth[row].sum()):
        mixes.insert(0, (f"{sample.agent} (true mix)", sample.truth[row] / sample.truth[row].sum()))
    seen, nolimit = sample.rows[row], sample.game.nolimit
    street = int(seen["street"])
    betting = []
    played = about.bettings.get(row, "").split("/")
    for i in range(street + 1):
        text = word_text(int(seen["betting_codes"][i]), nolimit)
        totals = [int(total) for total in re.findall(r"r(\d+)", played[i])] if i < len(played) else []
        betting.append(f"{STREETS[i]}: {betting_words(text, preflop=i == 0, totals=totals) or 'first to act'}")
    where = position_words(int(seen["position"]), int(seen["players"]), sample.game.is_holdem)
    return hands.hand(
        seen,
        sample.labels,
        title=f"{STREETS[street]}, {where} against {sample.opponents[int(sample.opponent[row])]}",
        note=f"{Path(sample.files[int(sample.file[row])]).name}, hand {int(sample.hand[row])}",
        betting=betting,
        taken=int(sample.taken[row]),
        mixes=mixes,
        amount=int(sample.amount[row]) if sample.amount is not None and nolimit else 0,
    )


def others(findings: Findings) -> Section | None:
    """Every model on every agent, and whether the agents themselves change."""
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


def matches(findings: Findings) -> Section | None:
    """Matches and a tournament."""
    inside = []
    if findings.matches:
        rows = [
            [
                escape(match["a"]),
                escape(match["b"]),
                f"{int(str(match['hands'])):,}",
                _won(match, "mbb_per_hand", "ci95"),
                _won(match, "adjusted_mbb_per_hand", "adjusted_ci95"),
            ]
            for match in findings.matches
        ]
        inside.append(table(["agent", "against", "hands", "mbb/h", "adjusted"], rows, "Duplicate matches"))
        inside.append("<p><i>Adjusted</i>: the luck of cards and dice taken out. Same mean, shorter interval.</p>")
    if findings.results is not None:
        inside.append(_tournament(findings.results))
    return section("matches", "Matches", *inside) if inside else None


def _won(match: Mapping[str, object], value: str, half: str) -> str:
    """A result of `match --json` with half its interval; a dash where it has none."""
    if match.get(value) is None:
        return "–"
    width = match.get(half)
    return f"{float(str(match[value])):+.1f}" + (
        f"<small>±{float(str(width)):.1f}</small>" if width is not None else ""
    )


def _tournament(results: rankings.Results) -> str:
    """Cross table and both rankings, with the numbers that `tournament` printed."""
    cap = results.cap
    bankroll, runoff = rankings.total_bankroll(results, cap), rankings.instant_runoff(results, cap)
    if results.lineups.shape[1] == 2:
        cross = _html(tables.cross_results(results, bankroll), "Cross table")
    else:
        cross = _html(Table(*rankings.lineup_table(results)), "Line-ups")
    inside = []
    for ranking in (bankroll, runoff):
        made = tables.ranking(ranking)
        joined = [[f"{row[0]} {row[1]}", *row[2:]] for row in made.rows]
        inside.append(_html(Table([made.head[0], "mbb/h", *made.head[3:]], joined)))
    limit = f" Losses count at most {cap:.0f} mbb/h." if cap else ""
    text = (
        "<p>In the run-off the last of each count leaves, and the rest are counted again without it; mbb/h is that of "
        f"an agent's last count. <i>First in</i>: share of bootstrap draws of the deals.{limit}</p>"
    )
    return "<h3>Tournament</h3>" + text + cross + columns(*inside, least="20rem", most="34rem")
