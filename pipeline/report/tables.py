"""The tables of `evaluate` and `tournament` as rows of cells, for text, Markdown, CSV and the page alike.

`by_model` is the table that the thesis had as figure 14: a row per agent and street, a column per model, with the floor
beside: the exact one where the agent's probabilities are known, else the bounds that repeated situations give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.arena.rankings import AgentRanking, Results, cross_table, lineup_rows
from pipeline.evaluation.baselines import BASELINES
from pipeline.evaluation.inspection import Stationarity, Subset
from pipeline.evaluation.repeat_floor import floor_bounds
from pipeline.evaluation.retraining import LearningCurve
from pipeline.evaluation.scoring import BASELINE, ModelScore, PairedDifference
from pipeline.models.measures import LEAST_PROBABILITY, Interval
from pipeline.report.text import TextTable, half_interval, number, percent, signed

IN_PERCENT = {"error", "mismatch"}
LEAST_COVERAGE = 0.05
"""bounds of a floor are shown beside scores if at least this share of the rows has a repeated situation"""


def models(scores: Sequence[ModelScore]) -> list[str]:
    """Return the models in the order they came."""
    return list(dict.fromkeys(score.model for score in scores))


def _places(scores: Sequence[ModelScore]) -> list[tuple[str, str]]:
    """Return the (agent, street) rows in the order they came."""
    return list(dict.fromkeys((score.agent, score.street) for score in scores))


def cell(measure: str, interval: Interval) -> str:
    """Return a value with half its interval: percent for shares, nats otherwise."""
    if measure in IN_PERCENT:
        return f"{percent(interval.value)} {half_interval(interval, 100, 2)}".strip()
    return f"{number(interval.value)} {half_interval(interval)}".strip()


def floor_text(score: ModelScore, measure: str) -> str:
    """Return the floor of a measure: exact where probabilities are known, else its bounds from repeated situations.

    These hold for the rows whose situation occurs twice, so their share is said. Where hardly any does, the floor is at
    most what the best model reaches.
    """
    floor = score.floors.get(measure)
    covered = 0.0 if score.pairs is None else score.pairs.coverage
    if floor is not None or score.pairs is None or covered < LEAST_COVERAGE or measure not in ("error", "log_loss"):
        bound = score.floors_at_most.get(measure) if floor is None else None
        value = floor if bound is None else bound
        return ("≤ " if bound is not None else "") + (percent(value) if measure in IN_PERCENT else number(value))
    low, high = floor_bounds(score.pairs.brier.value)[measure]
    bounds = f"{percent(low)}–{percent(high)}" if measure == "error" else f"≥ {number(low)}"
    return bounds if covered == 1 else f"{bounds} ({covered:.0%} of rows)"


def made_of(score: ModelScore) -> str:
    """Return pattern and algorithm of a model, such as `thesis pattern, l-bfgs`; nothing for built-in agents."""
    pattern = score.pattern if not score.pattern or score.pattern.endswith("pattern") else f"{score.pattern} pattern"
    algorithm = "" if score.algorithm in (BASELINE, score.model) and not pattern else score.algorithm
    return ", ".join(word for word in (pattern, algorithm) if word)


def by_model(scores: Sequence[ModelScore], measure: str) -> TextTable:
    """Return a row per agent and street, a column per model, floor and baselines; * marks the best trained model."""
    plain = list(dict.fromkeys(score.model for score in scores if score.algorithm == BASELINE))
    columns = [model for model in models(scores) if model not in plain]
    by_place = {(score.agent, score.street, score.model): score for score in scores}
    rows = []
    for agent, street in _places(scores):
        at_place = {
            model: by_place[agent, street, model] for model in models(scores) if (agent, street, model) in by_place
        }
        values = [at_place[model].measures[measure].value for model in columns if model in at_place]
        cells = []
        for model in columns:
            best = (
                model in at_place
                and min(values) < max(values)
                and at_place[model].measures[measure].value == min(values)
            )
            cells.append((cell(measure, at_place[model].measures[measure]) if model in at_place else "-") + " *" * best)
        score = next(iter(at_place.values()))
        cells.append(floor_text(score, measure))
        cells += [cell(measure, at_place[model].measures[measure]) if model in at_place else "-" for model in plain]
        rows.append([agent, street, f"{score.rows:,}", *cells])
    made = {score.model: made_of(score) for score in scores if made_of(score)}
    return TextTable(["agent", "street", "rows", *columns, "floor", *plain], rows, left=range(2), notes=made)


def sizes(scores: Sequence[ModelScore]) -> TextTable:
    """Return the errors of raises' amounts: exact hits, mean error and CRPS in pots; only of games with amounts."""
    rows = [
        [
            *(score.agent, score.street, score.model, f"{score.raises:,}"),
            cell("error", score.sizes["size_hit"]),
            *(cell("", score.sizes[name]) for name in ("size_error", "size_crps")),
        ]
        for score in scores
        if score.sizes
    ]
    head = ["agent", "street", "model", "raises", "exact hits %", "mean error, pots", "CRPS, pots"]
    return TextTable(head, rows, left=range(3))


def detection(scores: Sequence[ModelScore]) -> TextTable | None:
    """Return a row per agent and model of all streets with its hands to tell, which are hands as they were played in
    the data; None where they are unknown."""
    rows = []
    for score in scores:
        if score.tell is None and score.tell_at_most is None:
            continue
        low, high = (None, None) if score.tell is None else (score.tell.low, score.tell.high)
        known = [] if score.tell is None else [hands_text(score.tell.hands), f"{hands_text(low)} to {hands_text(high)}"]
        at_most = "-" if score.tell_at_most is None else hands_text(score.tell_at_most)
        evidence = "-" if score.tell is None else number(score.tell.kl_per_hand.value)
        rows.append([score.agent, score.model, *(known or ["-", "-"]), evidence, at_most])
    head = ["agent", "model", "hands to tell", "95 % interval", "KL per hand", "half the deals, at most"]
    return TextTable(head, rows, left=range(2)) if rows else None


def hands_text(hands: float | None) -> str:
    """Return a number of hands with two or three digits that mean something; `any number` where none is enough.

    >>> hands_text(5.2547), hands_text(12.31), hands_text(1234.5), hands_text(None)
    ('5.3', '12', '1,230', 'any number')
    """
    if hands is None:
        return "any number"
    return f"{hands:.1f}" if hands < 10 else f"{round(hands):,}" if hands < 1000 else f"{round(hands, -1):,.0f}"


def details(scores: Sequence[ModelScore]) -> TextTable:
    """Return every measure of every model on every street."""
    head = ["agent", "street", "model", "error %", "mismatch %", "log-loss", "Brier", "calibration", "if perfect"]
    head += ["frequency gap", "KL", "KL by pot", "TV", "TV by pot"]
    rows = []
    for score in scores:
        measured = [cell(name, score.measures[name]) for name in ("error", "mismatch", "log_loss", "brier")]
        measured += [cell("", score.measures["calibration"]), number(score.perfect_calibration)]
        measured.append(cell("", score.measures["frequency_gap"]))
        far = [
            cell("", score.distance[name]) if name in score.distance else "-"
            for name in ("kl", "kl_by_pot", "tv", "tv_by_pot")
        ]
        rows.append([score.agent, score.street, score.model, *measured, *far])
    return TextTable(head, rows, left=range(3))


def differences(pairs: Sequence[PairedDifference]) -> TextTable:
    """Compare each model with the best one, paired by deal; the verdict says whether 0 is outside the interval."""
    rows = []
    for pair in pairs:
        scale, digits = (100.0, 2) if pair.measure in IN_PERCENT else (1.0, 4)
        low, high = pair.difference.low * scale, pair.difference.high * scale
        verdict = "worse" if low > 0 else "no clear difference"
        value = signed(pair.difference.value * scale, digits)
        between = f"{value} [{signed(low, digits)}, {signed(high, digits)}]"
        rows.append([pair.agent, pair.street, pair.measure, pair.model, pair.other, between, verdict])
    head = ["agent", "street", "measure", "model", "best", "difference", "verdict"]
    return TextTable(head, rows, left=(*range(5), 6))


def parts(subsets: Sequence[Subset], name: str, labels: str) -> TextTable:
    """Return the scores of one cut of the decisions; the last columns are shares of the `labels` in percent."""
    letters = "/".join(labels)
    floors = any(part.floor_error is not None for part in subsets)
    between = ["floor"] if floors else []
    head = ["street", name, "rows", "error %", *between, "log-loss", *between, "share of loss"]
    head += [f"played {letters}", f"taken {letters}"]
    rows = [
        [
            part.street,
            part.part,
            f"{part.rows:,}",
            cell("error", part.error),
            *([percent(part.floor_error)] if floors else []),
            cell("log_loss", part.log_loss),
            *([number(part.floor_log_loss)] if floors else []),
            f"{100 * part.share:.0f} %",
            "/".join(f"{100 * share:.0f}" for share in part.played),
            "/".join(f"{100 * share:.0f}" for share in part.taken),
        ]
        for part in subsets
    ]
    return TextTable(head, rows, left=range(2))


def cross(scores: Sequence[ModelScore], measure: str = "log_loss") -> TextTable:
    """Return a row per model, a column per agent whose decisions it was scored on, all streets together."""
    agents = list(dict.fromkeys(score.agent for score in scores))
    last = {(score.model, score.agent): score for score in scores}
    rows = []
    for model in models(scores):
        of_model = [last.get((model, agent)) for agent in agents]
        rows.append([model, *("-" if score is None else cell(measure, score.measures[measure]) for score in of_model)])
    return TextTable(["model", *agents], rows)


def stationary(comparisons: Sequence[Stationarity]) -> TextTable:
    """Return the comparisons of agents with themselves in the same information sets, with a verdict."""
    rows = []
    for comparison in comparisons:
        distance = comparison.change.distance
        rows.append(
            [
                comparison.agent,
                comparison.street,
                comparison.between,
                f"{comparison.change.rows:,}",
                f"{100 * comparison.change.coverage:.1f} %",
                percent(comparison.change.within),
                percent(comparison.change.across),
                f"{signed(distance.value)} [{signed(distance.low)}, {signed(distance.high)}]",
                "changes" if distance.low > 0 else "no sign of change",
            ]
        )
    head = ["agent", "street", "between", "rows", "covered", "differ within %", "across %", "distance", "verdict"]
    return TextTable(head, rows, left=(0, 1, 2, 8))


def learning(curves: Sequence[LearningCurve]) -> TextTable:
    """Return log-loss and error by size of the training corpus."""
    rows = [
        [curve.agent, curve.street, curve.model, f"{count:,}", cell("error", error), cell("log_loss", log_loss)]
        for curve in curves
        for count, error, log_loss in zip(curve.rows, curve.error, curve.log_loss, strict=True)
    ]
    return TextTable(["agent", "street", "model", "training rows", "error %", "log-loss"], rows, left=range(3))


def matches(results: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return results of `match --json` with half their intervals; a dash where there is none."""

    def won(match: Mapping[str, Any], kind: str) -> str:
        value, half = match.get(f"{kind}mbb_per_hand"), match.get(f"{kind}ci95")
        return "–" if value is None else f"{float(value):+.1f}" + ("" if half is None else f"±{float(half):.1f}")

    rows = [
        [match["a"], match["b"], f"{match['hands']:,}", won(match, ""), won(match, "adjusted_")] for match in results
    ]
    return TextTable(["agent", "against", "hands", "mbb/h", "adjusted"], rows)


def cross_results(results: Results, order: AgentRanking) -> TextTable:
    """Return a tournament's cross table in the order of a ranking: winnings of the row's agent from the column's."""
    won, half = cross_table(results)
    index = [results.names.index(standing.name) for standing in order.standings]
    rows = [
        [results.names[i], *("" if i == j else f"{signed(won[i, j], 1)} ±{half[i, j]:.1f}" for j in index)]
        for i in index
    ]
    return TextTable(["mbb/h of row", *(results.names[i] for i in index)], rows)


def results_table(results: Results, order: AgentRanking) -> TextTable:
    """Return what was won of whom: the cross table of pairs, or a row per line-up of more agents."""
    if results.lineups.shape[1] == 2:
        return cross_results(results, order)
    return TextTable(*lineup_rows(results), left=range(results.lineups.shape[1]))


def ranking_table(ranking: AgentRanking) -> TextTable:
    """Return places, means with their intervals, and how often each agent comes first in the draws."""
    rows = [
        [
            f"{place}.",
            standing.name,
            signed(standing.won.value, 1),
            f"[{signed(standing.won.low, 1)}, {signed(standing.won.high, 1)}]",
            f"{100 * ranking.places[place - 1, 0]:.1f} %",
        ]
        for place, standing in enumerate(ranking.standings, start=1)
    ]
    last = "mbb/h in its last count" if ranking.rounds else "mbb/h"
    return TextTable([ranking.rule, "", last, "95% interval", "first in"], rows, left=range(2))


def rounds(runoff: AgentRanking) -> TextTable:
    """Return the rounds of a run-off: who leaves, and how sure that is."""
    rows = []
    for place, count in enumerate(runoff.rounds, start=1):
        last, lead = count.standings[-1], count.standings[0]
        sure = f"{100 * count.confidence:.1f} %"
        rows.append([str(place), count.eliminated, signed(last.won.value, 1), sure, lead.name])
    return TextTable(["round", "leaves", "mbb/h", "confidence", "leads"], rows, left=range(2))


def model_notes(scores: Sequence[ModelScore]) -> list[str]:
    """Return a sentence per model on its pattern and algorithm."""
    last = {score.model: score for score in scores}
    return [f"{model}: {made_of(score)}." for model, score in last.items() if made_of(score)]


def notes(scores: Sequence[ModelScore]) -> list[str]:
    """Return sentences on what the tables leave out: baselines, floors and their coverage."""
    sentences = []
    plain = [f"{name} {text}" for name, text in BASELINES.items() if any(score.model == name for score in scores)]
    if plain:
        sentences.append(f"Baselines, which do not look at the cards: {'; '.join(plain)}.")
    sentences.append(f"Every legal action is given at least {LEAST_PROBABILITY:g} before a logarithm is taken.")
    seen = {(score.agent, score.street): score for score in scores}
    known = [score for score in seen.values() if score.known]
    if known and any(score.known < score.rows for score in known):
        parts_known = ", ".join(f"{score.agent} {score.street} {score.known:,} of {score.rows:,}" for score in known)
        sentences.append(f"Floors, KL and TV are over the rows whose true probabilities are known: {parts_known}.")
    for score in seen.values():
        if score.pairs is not None and score.pairs.coverage > 0:
            brier = score.pairs.brier
            bounds = score.json()["pair_floor_brier"]
            sentences.append(
                f"{score.agent} {score.street}: Brier floor {number(brier.value)} [{number(brier.low)}, "
                f"{number(brier.high)}] from pairs of decisions in the same information set "
                f"({100 * score.pairs.coverage:.1f} % of rows have a partner). Bounds on those rows, not estimates: "
                f"error floor {percent(bounds['error_bounds'][0])}–{percent(bounds['error_bounds'][1])} %, "
                f"log-loss floor at least {number(bounds['log_loss_at_least'])}."
            )
        if score.alike is not None and score.alike.coverage > 0 and not score.known:
            brier = score.alike.brier
            sentences.append(
                f"{score.agent} {score.street}: {100 * score.alike.coverage:.1f} % of rows have a partner in another "
                "deal with the same cards up to suits and the same betting in size classes. These pairs differ in "
                f"{percent(brier.value)} % [{percent(brier.low)}, {percent(brier.high)}], "
                "which is at least the Brier floor of these rows."
            )
    bounded = any(floor_text(score, "log_loss").startswith("≤") for score in seen.values())
    if bounded:
        sentences.append(
            "A floor after ≤ is a bound, not an estimate: true probabilities are not known (--probabilities) and "
            "hardly any situation comes twice, but who knows them scores no worse than the best model here, whose "
            "95% interval ends there."
        )
    return sentences
