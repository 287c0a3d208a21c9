"""Rows to models: `train`, and bundles to ask, play and ship."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.agents.predictions import Mix, row_and_model
from pipeline.agents.protocol import Agent
from pipeline.api._arguments import AnyPath, Paths, Texts, seat, texts
from pipeline.dataset.decisions import STREETS
from pipeline.models.bundle import Bundle
from pipeline.models.bundle import load_bundle as _load_bundle
from pipeline.models.policy import Policy, load_policy, masked
from pipeline.models.sizes import Amounts
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Array
from pipeline.runtime.bundled import locate
from pipeline.runtime.tabular import Tabular

if TYPE_CHECKING:
    from pipeline.runtime.progress import Step
    from pipeline.training.requests import Result


@dataclasses.dataclass(frozen=True, repr=False)
class Training(Tabular):
    """The results of `train`, one per model, and the folders of its bundles."""

    results: tuple[Result, ...]

    @property
    def paths(self) -> list[Path]:
        """Return the bundles' folders, in the order of the algorithms."""
        return list(dict.fromkeys(result.path for result in self.results))

    def bundle(self) -> OpenBundle:
        """Open the first bundle."""
        return load_bundle(self.paths[0])

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per model: street, algorithm, rows, error, log-loss, iterations, seconds, path."""
        return [result.to_json() for result in self.results]

    def __repr__(self) -> str:
        streets = ", ".join(dict.fromkeys(result.street for result in self.results))
        return f"<Training of {streets}: {', '.join(map(str, self.paths))}>"


def train(
    data: AnyPath,
    out: AnyPath,
    *,
    agent: Texts = (),
    without: Texts = (),
    street: Texts = (),
    algorithm: Texts = "default",
    pattern: AnyPath = "default",
    game: str | None = None,
    chart: AnyPath | None = None,
    prior: Paths = (),
    watch: Callable[[str, str, Step], None] | None = None,
    rho1: float = 0.5,
    rho2: float = 1e-4,
    max_iterations: int | None = None,
    rounds: int | None = None,
    passes: int | None = None,
    tolerance: float = 1e-6,
    patience: int | None = None,
    min_weight: float = 0.02,
    seed: int = 0,
    workers: int = 2,
    part_rows: int = 1 << 20,
) -> Training:
    """Train models per street from decision rows and write a bundle (with several algorithms, one in a folder each).

    Parameters
    ----------
    data : path
        A dataset's folder.
    out : path
        The bundle's folder.
    agent : str or sequence of str
        Whom to imitate; several are pooled, everyone by default.
    without : str or sequence of str
        Agents to leave out of these, such as the one whose model will start from this bundle as its prior.
    street : str or sequence of str
        `flop`, `turn`, `river`, `preflop`, or `all` for one model after the flop.
    algorithm : str or sequence of str
        As `pipeline train --help` lists them; `default` chooses by the game.
    pattern : str or path
        A pattern file, or the name of a bundled one (`default`, `thesis`).
    game : str, optional
        The game's name, where the dataset holds several.
    chart : path, optional
        Another starting-hand chart than the counted one.
    prior : str or sequence of str
        What others play and the models start from: bundles, or built-in agents such as `@teacher`.
    watch : callable, optional
        Called with street, algorithm and a `Step` after each iteration.
    rho1, rho2 : float
        Strengths of the L1 and the L2 penalty of max-ent, unless the pattern sets them.
    max_iterations : int, optional
        Iterations of an optimiser at most; each algorithm has its default.
    rounds : int, optional
        Trees of each label at most, of boosting.
    passes : int, optional
        Passes over the rows, of classes.
    tolerance : float
        Stop when the objective has fallen by less than this part of itself in ten iterations.
    patience : int, optional
        Stop when log-loss on inner rows has not improved for so many iterations; 0 never stops so.
    min_weight : float
        Features whose weights are all smaller are left out; 0 keeps all.
    seed : int
        The same seed gives the same models.
    workers : int
        Threads; they change no result.
    part_rows : int
        Rows from which max-ent is trained in parts, of about so many each.

    Returns
    -------
    Training
        `bundle()` opens what was made; `frame()` has a row per model.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@chump:maniac", hands=200, log=f"{folder}/logs/call.maniac")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False)
    >>> p.train(f"{folder}/rows", f"{folder}/copy", agent="chump-maniac", algorithm="majority").bundle()
    <Bundle ...copy: imitates chump-maniac in holdem.limit.2p.reverse_blinds on preflop, flop, turn, river>
    """
    from pipeline.features.patterns import find_pattern
    from pipeline.runtime.progress import Callbacks
    from pipeline.training.config import TrainConfig
    from pipeline.training.requests import Request
    from pipeline.training.run import train_bundles

    config = TrainConfig(
        rho1=rho1,
        rho2=rho2,
        max_iterations=max_iterations,
        rounds=rounds,
        passes=passes,
        tolerance=tolerance,
        patience=patience,
        min_weight=min_weight,
        seed=seed,
        workers=workers,
        part_rows=part_rows,
    )
    request = Request(
        data=Path(data),
        out=Path(out),
        agents=texts(agent),
        without=texts(without),
        streets=texts(street),
        algorithms=texts(algorithm),
        pattern=find_pattern(str(pattern)),
        game=game,
        chart=None if chart is None else locate(Path(chart)),
        config=config,
        priors=texts(prior),
    )
    callbacks = Callbacks() if watch is None else Callbacks(watch)
    return Training(tuple(train_bundles(request, callbacks)))


@dataclasses.dataclass(frozen=True, repr=False)
class OpenBundle(Bundle, Tabular):
    """A bundle with the path it was opened from: a starting-hand chart and models, ready to be asked and to play."""

    game: Game  # None in a bundle of text rows, which has no game and is refused as a player
    path: Path = Path()

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """Return the bundle's name as a player in logs."""
        return self._policy.name

    @cached_property
    def _policy(self) -> Policy:
        return load_policy(self.path, {}, game=self.game)

    def probabilities(self, rows: Array) -> Array:
        """Return the mix (rows, labels) that the bundle plays, as an agent."""
        return self._policy.probabilities(rows)

    def amounts(self, rows: Array, labels: Array) -> Amounts | None:
        """Return the amounts bet with each row's label, where the bundle knows."""
        return self._policy.amounts(rows, labels)

    def predict(self, state: str) -> Mix:
        """Return the mix at a `MATCHSTATE:` line: a probability per label, illegal labels 0, nothing else dropped."""
        row, model = row_and_model(self, self.path, state)
        mix = masked(model.predict(row), row["legal"])[0]
        return Mix(zip(self.labels, mix.tolist(), strict=True))

    def agent(self, **options: str | float) -> Agent:
        """Return the bundle as a player, with options such as `mode="argmax"` or `threshold=0`."""
        text = ",".join(f"{name}={value}" for name, value in options.items())
        return seat(f"{self.path}:{text}" if text else str(self.path), self.game)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per model: streets, algorithm, rows and its scores on the held-out rows."""
        from pipeline.api.overview import describe

        return list(describe(self.path)["models"])

    def __repr__(self) -> str:
        streets = [STREETS[street] for street in sorted(self.models)]
        game = self.game.name if self.game else "text rows"
        return f"<Bundle {self.path}: imitates {', '.join(self.agents)} in {game} on {', '.join(streets)}>"


def load_bundle(path: AnyPath) -> OpenBundle:
    """Open a bundle; every file is checked against the manifest first.

    Parameters
    ----------
    path : path
        A bundle's folder or zip file.

    Returns
    -------
    OpenBundle
        `predict(state)`, `agent(**options)`, `models`, `chart`, `labels`, `frame()`.

    Examples
    --------
    >>> import pipeline as p
    >>> p.load_bundle("tests/fixtures/bundles/loglinear.zip").predict("MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")["f"]
    0.0
    """
    bundle = _load_bundle(Path(path))
    values = {field.name: getattr(bundle, field.name) for field in dataclasses.fields(Bundle)}
    return OpenBundle(**values, path=locate(Path(path)))


def ship(bundle: AnyPath, out: AnyPath) -> Path:
    """Copy a bundle with what it needs to start as a player on an ACPC dealer's socket.

    Parameters
    ----------
    bundle : path
        A bundle's folder or zip file.
    out : path
        A folder, or a file whose name ends in `.zip`.

    Returns
    -------
    Path
        `out`.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> p.ship("tests/fixtures/bundles/loglinear.zip", f"{tempfile.mkdtemp()}/bot.zip").name
    'bot.zip'
    """
    from pipeline.models.artifacts import start_script
    from pipeline.models.shipping import ship as run

    run(locate(Path(bundle)), Path(out), {"start.sh": start_script()})
    return Path(out)
