"""Options that several commands share, each with one name, type and wording.

One word for one thing: `--out` is what a command writes, `--workers` how many threads or processes work, `--agent`
the name of a player in logs, `--data` a dataset, `--probabilities` a file with true probabilities. An AGENT that plays
(a bundle or `@name`) is a positional argument.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from pipeline.cli._progress import LINE
from pipeline.runtime.bundled import check_writable, locate
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors

if TYPE_CHECKING:
    from pipeline.runtime.dask_cluster import Cluster


class NamedPath(click.Path):
    """A path, or the name of what comes with the package: `sample:` or `teacher:`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(locate(value), param, ctx)))
        if param is not None and param.name == "out":
            check_writable(path)
        return path


PATH = NamedPath(path_type=Path)
FILE = NamedPath(dir_okay=False, path_type=Path)
FOLDER = NamedPath(file_okay=False, path_type=Path)
SEED = click.IntRange(0, 2**32 - 1)
"""seeds that cards can be dealt by"""
STEPS = click.IntRange(1, 10**9)
"""iterations, trees or passes of a method"""
MAX_WORKERS = 1024
"""threads of a run, whatever is typed"""
DEALS_RANGE = click.IntRange(1, 10**12)
"""deals that a strategy can be learnt from"""
OPEN_FLAG = "pipeline.open"
"""where a command's context keeps whether `--open` was given"""

HOLDEM = "holdem.limit.2p.reverse_blinds"
"""the name of limit hold'em for two, the ACPC's game"""
GAME = "A game's name or file.  [default: the game of the bundles or logs, else limit hold'em]"
DATA_GAME = "The game's name, where the dataset holds several."

PROGRAMS = ("pipeline", "acpc")
"""names that the command line is installed under"""

F = TypeVar("F", bound=Callable[..., Any])


def program_name() -> str:
    """Return the words that start this program as the user typed them, such as `acpc` or `python -m pipeline`."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py" and program.parent.name == "pipeline":
        return f"{sys.orig_argv[0]} -m pipeline"
    if program.name not in PROGRAMS:
        return PROGRAMS[0]  # called from Python
    return program.name if shutil.which(program.name) == sys.argv[0] else str(program)


def time_option(name: str, text: str, default: int, least: int = 1) -> Callable[[F], F]:
    """Add `--NAME-ms`, a time in milliseconds of at most a day."""
    kind = click.IntRange(least, 24 * 3600 * 1000)
    return click.option(f"--{name}-ms", type=kind, default=default, show_default=True, help=f"{text}, in milliseconds.")


def hands_range(least: int = 1) -> click.IntRange:
    """Return the range of numbers of hands of a match; the results of all of them are in memory."""
    return click.IntRange(least, 10**9)


class Finite(click.FloatRange):
    """A number within bounds, neither nan nor infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def only_with(mode: str, *allowed: str) -> None:
    """Refuse options that were given together with the option `mode` but do nothing then; `allowed` are parameters."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        # --quiet and --help, which a command does not see, go with everything
        given = parameter.expose_value and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in allowed and isinstance(parameter, click.Option) and parameter.opts[0] != mode:
            raise PipelineError(f"{parameter.opts[0]} does nothing with {mode}: leave out one of them")


def workers_option(function: F) -> F:
    """Add `--workers N`, the number of threads: all processors unless it is given."""

    def count(context: click.Context, parameter: click.Parameter, value: int | None) -> int:
        return value or processors()

    text = "Threads to use.  [default: all processors]"
    return click.option("--workers", type=click.IntRange(1, MAX_WORKERS), callback=count, help=text)(function)


def seed_option(function: F) -> F:
    """Add `--seed N`, 0 unless it is given."""
    text = "Seed of the random numbers: the same seed gives the same result."
    return click.option("--seed", type=SEED, default=0, show_default=True, help=text)(function)


def own_seed_option(function: F) -> F:
    """Add `--seed N` to a command that plays people or programs, who must not foresee it: another each time."""
    text = "Seed of the random numbers: the same seed gives the same result.  [default: another each time]"
    return click.option("--seed", type=SEED, help=text)(function)


def game_option(text: str = GAME) -> Callable[[F], F]:
    """Add `--game`, the game of agents and logs (`GAME`) or of the rows of a dataset (`DATA_GAME`)."""
    return click.option("--game", help=text)


def out_option(text: str, kind: click.Path = PATH, *, required: bool = True) -> Callable[[F], F]:
    """Add `--out`, the file or folder that the command writes."""
    return click.option("--out", type=kind, required=required, help=text)


def data_option(text: str = "A dataset that `ingest` wrote.", *, required: bool = True) -> Callable[[F], F]:
    """Add `--data DIR`."""
    return click.option("--data", type=PATH, required=required, help=text)


def format_option(*choices: str) -> Callable[[F], F]:
    """Add `--format`, passed as `form`: the first choice is the default."""
    kind = click.Choice(choices)
    return click.option(
        "--format", "form", type=kind, default=choices[0], show_default=True, help="How tables are written."
    )


def json_option(function: F) -> F:
    """Add `--json`: the command prints JSON alone, as docs/commands.md says."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout instead of text.")(function)


def cluster_option(function: F) -> F:
    """Add `--cluster ADDRESS|local[:N]`, the place of the work, which `connected` turns into a cluster."""
    return click.option(
        "--cluster",
        metavar="ADDRESS|local[:N]",
        help="Work on a dask cluster: a scheduler's address, or N workers on this machine.  [default: this process]",
    )(function)


@contextmanager
def connected(where: str | None) -> Iterator[Cluster | None]:
    """Yield the cluster that `--cluster` names, None without one; print its size and dashboard on stderr."""
    from pipeline.runtime.dask_cluster import connect

    with connect(where, lambda text: None if LINE.quiet else click.echo(text, err=True)) as cluster:
        yield cluster


def open_option(function: F) -> F:
    """Add `--open`: show the written page in the browser; the command calls `open_written` when it is there."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[OPEN_FLAG] = value

    return click.option(
        "--open", is_flag=True, expose_value=False, callback=remember, help="Show it in the browser when it is written."
    )(function)


def open_written(path: Path) -> None:
    """Show a page or picture in the browser, or in whatever opens such files, if `--open` was given."""
    if click.get_current_context().meta.get(OPEN_FLAG) and click.launch(path.resolve().as_uri()) != 0:
        click.echo(f"nothing here can show {path}: open it yourself", err=True)


def adjusted_option(function: F) -> F:
    """Add `--adjusted/--no-adjusted`: whether results are also adjusted by variance reduction."""
    return click.option(
        "--adjusted/--no-adjusted",
        default=True,
        show_default=True,
        help="Take the luck of cards and dice out of the results: same mean, shorter interval.",
    )(function)


def add_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that adds several options, listed by `--help` in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


truth_options = add_options(
    click.option("--all-rows", is_flag=True, help="Score on all rows: for data the models were not trained on."),
    click.option("--allow-overlap", is_flag=True, help="Score also on logs that a model was trained on, and say so."),
    click.option(
        "--probabilities",
        type=PATH,
        multiple=True,
        help="Parquet file of the agents' true probabilities: exact floors, KL and TV (repeatable).",
    ),
)
"""`--all-rows`, `--allow-overlap` and `--probabilities`: which rows to score on, and beside which floors"""

scope_options = add_options(
    click.option(
        "--agent", "agents", multiple=True, metavar="NAME", help="Score on this player's decisions (repeatable)."
    ),
    game_option(DATA_GAME),
    truth_options,
)
"""the decisions to score on: `--agent`, `--game` and the options above"""

ALSO = {
    "details": "every measure of every model",
    "differences": "each model less the best, paired by deal",
    "cross": "each model on every agent's decisions",
    "stationary": "whether agents play the same early and late, and against everyone",
    "learning": "the first model trained again on parts of its data",
    "halves": "the first model trained on two halves of its deals, which bounds the hands needed to tell it",
}
"""tables and figures of `evaluate` and `report` besides those they always have"""


def also_option(*names: str) -> Callable[[F], F]:
    """Add `--also NAME`, repeatable: which of `ALSO` the command shows besides, all of them unless named."""
    offered = names or tuple(ALSO)
    text = "; ".join(f"{name}: {ALSO[name]}" for name in offered)
    kind = click.Choice(offered)
    return click.option("--also", type=kind, multiple=True, help=f"Show more (repeatable). {text}.", metavar="NAME")


saved_results_options = add_options(
    click.option("--match", "matches", type=PATH, multiple=True, help="What `match --json` printed (repeatable)."),
    click.option("--table", type=PATH, help="A cross table that `tournament --out` wrote."),
)
"""`--match` and `--table`: results of earlier commands, to be shown"""

picture_option = click.option("--picture", type=FILE, help="Draw the curves to FILE.html or FILE.svg.")
"""`--picture`, whose extension `file_kind` checks"""
