"""An evaluation as a picture for papers: error and log-loss with floors, calibration, learning curves.

In goes an `Evaluation`, out comes a `Picture` with a row of panels for each agent. Baselines are left out, but for the
best, which shows what a guess from counts reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.evaluation.scoring import BASELINE, ModelScore, Scored
from pipeline.runtime.pictures import COLOURS, Picture, Point, draw_points, new_picture

if TYPE_CHECKING:
    from pipeline.evaluation.evaluation import Evaluation

PANELS = {"error": "argmax error, %", "log_loss": "log-loss, nats"}
MOST_AGENTS = 8
"""agents that have a row of panels; the first ones of an evaluation"""


def draw_evaluation(evaluation: Evaluation) -> Picture:
    """Draw an evaluation: per agent error and log-loss by street, calibration, and learning curves if it has them."""
    by_agent = evaluation.scored[:MOST_AGENTS]
    curves = bool(evaluation.learning)
    picture, axes = new_picture(3 + curves, len(by_agent))
    for row, scored in zip(axes, by_agent, strict=True):
        models = _models_to_draw(scored)
        for panel, (measure, label) in zip(row, PANELS.items(), strict=False):
            _draw_measure(panel, models, measure, label)
        _draw_calibration(row[2], models)
        row[0].set_title(scored[0].sample.agent, loc="left", fontweight="bold")
        if curves:
            _draw_learning(row[3], [curve for curve in evaluation.learning if curve.agent == scored[0].sample.agent])
    legend = {label: handle for row in axes for handle, label in zip(*row[0].get_legend_handles_labels(), strict=True)}
    picture.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return picture


def _models_to_draw(scored: Sequence[Scored]) -> list[Scored]:
    """Return the models, and the best of the baselines."""
    guesses = [model for model in scored if model.candidate.algorithm == BASELINE]
    best = min(guesses, key=lambda model: model.scores[-1].measures["log_loss"].value, default=None)
    return [*(model for model in scored if model.candidate.algorithm != BASELINE), *([best] if best else [])]


def _name(model: Scored) -> str:
    """Return a model's name with the algorithm behind it."""
    name, algorithm = model.candidate.name, model.candidate.algorithm
    return name if algorithm in (name, name.lstrip("@"), BASELINE) else f"{name} ({algorithm})"


def _draw_measure(axes: Any, models: Sequence[Scored], measure: str, label: str) -> None:
    """Draw a measure by street with its 95 % intervals, and the floor under which no model can be."""
    scale = 100 if measure == "error" else 1
    streets = list(dict.fromkeys(score.street for model in models for score in model.scores))
    by_model: list[dict[str, ModelScore]] = [{score.street: score for score in model.scores} for model in models]
    series = {
        _name(model): [
            Point(*(scale * end for end in scores[street].measures[measure][:3])) if street in scores else None
            for street in streets
        ]
        for model, scores in zip(models, by_model, strict=True)
    }
    draw_points(axes, streets, series, label)
    floors = {street: scores[street].floors.get(measure) for scores in by_model for street in scores}
    drawn = [(streets.index(street), scale * floor) for street, floor in floors.items() if floor is not None]
    for number, (place, floor) in enumerate(drawn):
        axes.hlines(floor, place - 0.4, place + 0.4, color="black", linewidth=1, label=None if number else "floor")


def _draw_calibration(axes: Any, models: Sequence[Scored]) -> None:
    """Draw how often actions were taken by the probability that the models gave them, over all streets."""
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
    for number, model in enumerate(models):
        bins = model.calibration[model.scores[-1].street] if model.candidate.algorithm != BASELINE else []
        colour = COLOURS[number % len(COLOURS)]
        for label in bins:
            axes.plot(label.predicted, label.taken, "os^Dv<>"[label.label % 7], color=colour, markersize=3, alpha=0.7)
    axes.set(xlabel="probability played", ylabel="share taken", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.set_title("calibration, a marker per action", fontsize=8)


def _draw_learning(axes: Any, curves: Sequence[Any]) -> None:
    """Draw log-loss by the number of training rows, with the floors that are known."""
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        values = [interval.value for interval in curve.log_loss]
        axes.plot(curve.rows, values, "o-", color=colour, markersize=3, linewidth=1, label=curve.street)
        ends = zip(*((interval.low, interval.high) for interval in curve.log_loss), strict=True)
        axes.fill_between(curve.rows, *ends, color=colour, alpha=0.15, linewidth=0)
        if curve.floor is not None:
            axes.axhline(curve.floor, color=colour, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="training rows", ylabel="log-loss, nats")
    axes.set_title("learning curve; dotted: floor", fontsize=8)
    if curves:
        axes.legend(fontsize=7, frameon=False)
