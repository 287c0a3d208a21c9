"""Options that commands share, and names that options had before.

One word for one thing: `--out` is what a command writes, `--workers` how many threads or processes work, `--agent`
the name of a player in logs, `--data` a dataset, `--probabilities` a file with true probabilities. An AGENT that plays
(a bundle or `@name`) is a positional argument. Names from before still work and are not shown in `--help`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.runtime.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.runtime.dask_cluster import Cluster

SEED = click.IntRange(0, 2**32 - 1)
"""seeds that cards can be dealt by"""
DEALS_RANGE = click.IntRange(1, 10**12)
"""deals that a strategy can be learnt from"""
OPEN_FLAG = "pipeline.open"
"""where a command's context keeps whether `--open` was given"""

F = TypeVar("F", bound=Callable[..., Any])


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


class RenamedOption(click.Option):
    """An option that is also read under older names, which `--help` does not show."""

    def __init__(self, *args: Any, old: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.old = tuple(old)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        names = self.opts
        self.opts = [*names, *self.old]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = names


def renamed(*names: str, old: Sequence[str], **settings: Any) -> Callable[[F], F]:
    """`click.option` with older names that still work."""
    return click.option(*names, cls=RenamedOption, old=old, **settings)


def file_kind(path: Path, *kinds: str, option: str = "--out") -> str:
    """Return the extension of a file to write, in small letters; one that the command cannot write is refused.

    >>> file_kind(Path("out/x.SVG"), ".svg", ".txt")
    '.svg'
    """
    kind = path.suffix.lower()
    if kind not in kinds:
        endings = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        problem = f"{kind} is not a kind of file that this command writes" if kind else "the name has no extension"
        raise PipelineError(f"{option} {path}: {problem}; end the name in {endings}")
    return kind


def workers_option(function: F) -> F:
    """`--workers N`: how many threads work; all processors by default."""
    return renamed(
        "--workers", old=["--threads"], type=click.IntRange(1), help="Threads to use.  [default: all processors]"
    )(function)


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

    with connect(where, lambda text: click.echo(text, err=True)) as cluster:
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


def one_agent(agent: str | None, old: str | None) -> str:
    """The AGENT of a command, which may still be given by the option that it had before."""
    if agent is not None and old is not None:
        raise click.UsageError(f"the agent is named twice: {agent} and {old}.")
    if agent is None and old is None:
        raise click.UsageError("Missing argument 'AGENT'.")
    return str(old if agent is None else agent)


def adjusted_option(function: F) -> F:
    """Add `--adjusted/--no-adjusted`: whether results are also adjusted by variance reduction."""
    return click.option(
        "--adjusted/--no-adjusted",
        default=True,
        show_default=True,
        help="Take the luck of cards and dice out of the results: same mean, shorter interval.",
    )(function)


def scope_options(function: F) -> F:
    """Add the options of the decisions to score on: `--agent`, `--game`, `--all-rows` and `--probabilities`."""
    for option in reversed(
        (
            click.option("--agent", "agents", multiple=True, help="Score on this agent's decisions (repeatable)."),
            click.option("--game", help="The game's name, where the data holds several."),
            click.option(
                "--all-rows", is_flag=True, help="Score on all rows: for data the models were not trained on."
            ),
            click.option(
                "--probabilities",
                type=click.Path(path_type=Path),
                multiple=True,
                help="Parquet file of the agents' true probabilities: exact floors, KL and TV (repeatable).",
            ),
        )
    ):
        function = option(function)
    return function
