"""A bundle as a player: chart before the flop, a model per later street, masked to what is legal.

`masked` makes the output of a model or chart playable: illegal labels get 0, the rest is scaled to sum to 1, and an
unknown row (all 0, or not finite) checks or calls, which is always legal. So a policy is defined in every state that
can be reached, betting lines never seen in training included.

Labels below a threshold are dropped and the mix of the others is played: small probabilities are mostly an artefact
of smoothing. `mode=` names a threshold: `sample` a tenth of a percent, the default; `purify` 15 %; `argmax`
always the likeliest label, as the thesis's agent did. `threshold=` sets another; 0 plays the mix as it is.

In no-limit games `amounts` gives the chips that raise labels bet: as the imitated agents did (`pipeline.models.sizes`),
or None, which stands for the labels' fixed sizes, where a bundle has no such table. Raises that would leave less
than a big blind behind are played as all-in.

Options of a bundle: `mode=`, `threshold=` and `chart=`, which selects the source before the flop: `own` (the bundle's
chart, the default where it has one), `model` (its preflop model), a chart that comes with the package, a chart's
file, or another bundle, whose chart is taken; and `sizes=`: `own` (the default) or `fixed`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Protocol

import numpy as np

from pipeline.dataset.decisions import STREETS
from pipeline.models.bundle import Bundle, load_bundle
from pipeline.models.charts import Chart, parse_chart
from pipeline.models.sizes import Amounts, Sizes, has_amounts, move_to_all_in, no_sizes
from pipeline.models.trained_on import TrainedOn
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.kernels import kernel

HISTORY_GAMES = ("holdem.nolimit.histories", "holdem.limit.histories")
"""the games that stand for hand histories: a bundle plays any hold'em with players and stacks like those of its rows"""

MODES = {"sample": 0.001, "purify": 0.15, "argmax": 1.0}
"""the threshold of each mode"""
OPTIONS = ("mode", "threshold", "chart", "sizes")


class Predictor(Protocol):
    """A chart or a model: probabilities for decisions of the streets it knows."""

    def predict(self, rows: Array) -> Array:
        """Return probabilities (rows, labels), not yet masked."""


@dataclass(frozen=True)
class Policy:
    """A player of a game with one predictor per street."""

    name: str
    game: Game
    sources: tuple[Predictor, ...] = field(repr=False)
    threshold: float = 0.0
    sizes: Sizes | None = field(default=None, repr=False)
    """the amounts behind raise labels; none where labels have fixed sizes or the game has no choice of amounts"""
    all_in: Sizes | None = field(default=None, repr=False)
    """table by which raises that leave next to nothing behind become all-in; none plays every label as predicted"""

    def probabilities(self, rows: Array) -> Array:
        """Return the mix (rows, labels) to play."""
        mix = self._mix(rows)
        return mix if self.all_in is None else move_to_all_in(self.all_in, rows, mix)

    def amounts(self, rows: Array, labels: Array) -> Amounts | None:
        """Return the amounts bet with each row's label, where the bundle knows."""
        return None if self.sizes is None else self.sizes.amounts(rows, labels, whole_mix=self.all_in is None)

    def _mix(self, rows: Array) -> Array:
        """Return the predictors' probabilities, masked."""
        streets = rows["street"]
        first = int(streets[0]) if len(rows) else 0
        if (streets == first).all():
            return masked(self.sources[first].predict(rows), rows["legal"], self.threshold)
        values = np.zeros((len(rows), len(self.game.labels)))
        for street, source in enumerate(self.sources):
            chosen = np.flatnonzero(streets == street)
            if len(chosen) > 0:
                values[chosen] = source.predict(rows[chosen])
        return masked(values, rows["legal"], self.threshold)


@kernel(leaf=True)
def _mask(values: Array, legal: Array, threshold: float, out: Array) -> None:
    """Fill in the probabilities to play (see `masked`)."""
    for i in range(values.shape[0]):
        total = 0.0
        largest = 0.0
        for j in range(values.shape[1]):
            value = values[i, j]
            chance = value if value > 0 and (legal[i] >> j) & 1 == 1 else 0.0
            out[i, j] = chance
            total += chance
            largest = max(largest, chance)
        if total > 0 and total < np.inf:
            # the likeliest label stays, however high the threshold
            least = min(threshold * total, largest)
            total = 0.0
            for j in range(values.shape[1]):
                if out[i, j] < least or (threshold >= 1 and total > 0):  # of several likeliest the first
                    out[i, j] = 0.0
                total += out[i, j]
            for j in range(values.shape[1]):
                out[i, j] /= total
        else:
            out[i, :] = 0.0
            out[i, CALL] = 1.0


def masked(values: Array, legal: Array, threshold: float = 0.0) -> Array:
    """Return probabilities (rows, labels) to play: `values` where `legal` has the label's bit, scaled to sum to 1.

    Labels below `threshold`, a share of the whole, are dropped first, except the likeliest.

    >>> masked(np.array([[0.2, 0.2, 0.6], [0.5, np.nan, 0.0]]), np.array([3, 2])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    """
    if values.ndim != 2 or values.shape[1] <= CALL or len(values) != len(legal):
        raise ValueError(f"probabilities of shape {values.shape} for {len(legal)} rows: a column per label is needed")
    out = np.empty(values.shape)
    _mask(np.ascontiguousarray(values, np.float64), np.ascontiguousarray(legal, np.uint8), float(threshold), out)
    return out


def load_policy(path: Path, options: Mapping[str, str], *, game: Game) -> Policy:
    """Open a bundle's folder or zip file as a player of a game; the options are in the module's docstring."""
    for key in options:
        if key not in OPTIONS:
            raise PipelineError(f"{path}: no option {key}={options[key]}{nearest(key, OPTIONS)}")
    mode = options.get("mode", "sample")
    if mode not in MODES:
        raise PipelineError(f"{path}: no mode={mode}{nearest(mode, MODES)}")
    if options.get("sizes", "own") not in ("own", "fixed"):
        raise PipelineError(f"{path}: sizes={options['sizes']} is neither own nor fixed")
    threshold = _threshold(options["threshold"], path) if "threshold" in options else MODES[mode]
    bundle = load_bundle(path)
    if bundle.missing:
        raise PipelineError(bundle.describe_missing(path))
    check_game(bundle, path, game)
    sources: dict[int, Predictor] = dict(bundle.models)
    if "chart" in options:
        sources[0] = _choose_preflop(options["chart"], bundle, path, game)
    missing = [street for street in range(game.rounds) if street not in sources]
    if missing:
        present = ", ".join(STREETS[street] for street in sorted(sources)) or "nothing"
        street = STREETS[missing[0]]
        raise PipelineError(
            f"{path} has no model for the {street}, only for {present}: train one with --street {street}"
            + (" or take another's with chart=" if missing[0] == 0 else "")
        )
    sizes = bundle.sizes if options.get("sizes", "own") == "own" else None
    if sizes is not None and has_amounts(game):
        sizes = sizes.for_game(game)
    all_in = (sizes or no_sizes(game)) if has_amounts(game) else None
    order = tuple(sources[street] for street in range(game.rounds))
    return Policy(bundle_name(path, options), game, order, threshold, sizes, all_in)


def bundle_name(path: Path, options: Mapping[str, str]) -> str:
    """Return a bundle's name in logs and tables: its folder's, with its options.

    >>> bundle_name(Path("models/slumbot.zip"), {"mode": "argmax", "chart": "charts/selby.chart"})
    'slumbot-mode-argmax-chart-selby'
    >>> bundle_name(Path("models/slumbot"), {"threshold": "0.2"})
    'slumbot-threshold-0.2'
    """
    words = [Path(path).name.removesuffix(".zip")]
    for key, value in options.items():
        words += [key, re.sub(r"\.(zip|chart|txt)$", "", Path(value).name)]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(words)).strip("-") or "agent"


def check_game(bundle: Bundle, path: Path, game: Game) -> None:
    """Refuse a bundle of another game."""
    if bundle.game is None:
        raise PipelineError(f"{path} was trained on text rows: it labels rows, it cannot play")
    same = np.array_equal(bundle.game.rules, game.rules)
    if not same and bundle.game.name in HISTORY_GAMES and bundle.labels == tuple(game.labels):
        _check_range(bundle, path, game)
        return
    if not same or bundle.labels != tuple(game.labels):
        raise PipelineError(f"{path} was trained for {bundle.game.name} and cannot play {game.name}")


def _check_range(bundle: Bundle, path: Path, game: Game) -> None:
    """Refuse a game that a bundle of hand histories has seen nothing like: other players or stacks than its rows'."""
    seen = bundle.about.get("range")
    if not game.is_holdem or not isinstance(seen, dict):
        raise PipelineError(f"{path} was trained on hand histories of hold'em and cannot play {game.name}")
    low, high = seen["players"]
    if not low <= game.players <= high:
        players = f"{low}" if low == high else f"{low} to {high}"
        raise PipelineError(f"{path} knows hands of {players} players and cannot play {game.name}")
    stacks = seen["stacks_bb"]
    deep = min(game.stacks) / max(1, game.big_blind)
    if game.nolimit and stacks is not None and not stacks[0] <= deep <= stacks[1]:
        raise PipelineError(
            f"{path} knows stacks of {stacks[0]:g} to {stacks[1]:g} big blinds and cannot play {game.name},"
            f" whose stacks are {deep:g}"
        )


def _choose_preflop(text: str, bundle: Bundle, path: Path, game: Game) -> Predictor:
    """Return the source before the flop: `own` chart, `model`, a built-in chart, a chart's file or another bundle's."""
    if text in ("own", "model"):
        chosen = bundle.chart if text == "own" else bundle.preflop_model
        if chosen is None:
            what = "chart of its own" if text == "own" else "preflop model"
            raise PipelineError(f"{path} has no {what}: leave out chart={text} or name another's")
        return chosen
    other = Path(text)
    if other.is_dir() or other.suffix == ".zip":
        lender = load_bundle(other)
        check_game(lender, other, game)
        if lender.chart is None:
            raise PipelineError(f"{other} has no chart to lend")
        return lender.chart
    chart = find_chart(other)
    if not chart.fits(game):
        raise PipelineError(
            f"the chart {text} is for a game with actions {chart.labels} and {chart.counts.shape[1]} starting hands:"
            f" it does not fit {game.name}, whose actions are {game.labels}"
        )
    return chart


def chart_records(name: Path) -> tuple[TrainedOn, ...]:
    """Return the records of the rows behind a chart by its file or bundle; a file says nothing of them.

    Charts that come with the package have none: they were not counted from anybody's logs.
    """
    if name.is_dir() or name.suffix == ".zip":
        return load_bundle(name).trained_on
    return (TrainedOn("chart", str(name)),) if name.is_file() else ()


def find_chart(name: Path) -> Chart:
    """Read a chart by its file or by the name of one that comes with the package."""
    if name.is_file():
        try:
            return parse_chart(name.read_text(encoding="utf-8"), str(name))
        except UnicodeDecodeError:
            raise PipelineError(f"{name} is not a chart: it is not text in UTF-8") from None
    folder = files("pipeline.models") / "resources" / "charts"
    built_in = {entry.name.removesuffix(".chart"): entry for entry in folder.iterdir()} if folder.is_dir() else {}
    if str(name) not in built_in:
        raise PipelineError(
            f"no chart {str(name)!r}{nearest(str(name), built_in)}: name a file, a bundle or one of these"
        )
    return parse_chart(built_in[str(name)].read_text(encoding="utf-8"), str(name))


def _threshold(text: str, path: Path) -> float:
    """Parse the share below which a label is dropped."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise PipelineError(f"{path}: threshold={text} is not a number between 0 and 1")
    return value
