"""`train`: models per street from decision rows, or one from text rows."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    DATA_GAME,
    PATH,
    STEPS,
    Finite,
    cluster_option,
    connected,
    data_option,
    game_option,
    json_option,
    out_option,
    seed_option,
    workers_option,
)
from pipeline.cli._output import print_json, sentence_text, table_text
from pipeline.cli._progress import ProgressText, share_text
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks, Progress
from pipeline.training.config import TrainConfig

if TYPE_CHECKING:
    from pipeline.runtime.progress import Step


@click.command()
@data_option("A dataset that `ingest` wrote, or text rows.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME",
    help="The player to imitate (repeatable, pooled).  [default: all]",
)
@click.option("--without", multiple=True, metavar="NAME", help="Leave this player out of those pooled (repeatable).")
@click.option("--street", "streets", multiple=True, help="preflop flop turn river, or all: one model after the flop.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    default=("default",),
    show_default=True,
    help="See above; default: blend in hold'em unless a pattern is named, else l-bfgs.",
)
@click.option(
    "--pattern",
    default="default",
    show_default=True,
    help="A pattern file, or the name of a bundled one; default: the one made for the game.",
)
@out_option("The bundle's folder.")
@click.option("--validation-file", type=click.Path(path_type=Path, exists=True), help="Text rows to score on.")
@game_option(DATA_GAME)
@click.option(
    "--prior",
    "priors",
    multiple=True,
    metavar="AGENT|BUNDLE|none",
    help="Start from what others play: a bundle (of all players, say) or a built-in agent; several are multiplied.",
)
@click.option("--chart", type=PATH, help="Another chart: a file, a bundle, or a bundled one.")
@click.option(
    "--rho1",
    type=Finite(0),
    default=TrainConfig.rho1,
    show_default=True,
    help="Strength of the L1 penalty, unless the pattern sets it.",
)
@click.option("--rho2", type=Finite(0), default=TrainConfig.rho2, show_default=True, help="The same for L2.")
@click.option(
    "--max-iterations",
    type=STEPS,
    help="Iterations at most, of max-ent (sgd-l1: passes over the rows), crf and logistic.  [default: by algorithm]",
)
@click.option("--rounds", type=STEPS, help="Trees of a label at most, of boosting.  [default: by rows]")
@click.option("--passes", type=STEPS, help="Passes over the rows, of classes.  [default: 8]")
@click.option(
    "--patience",
    type=click.IntRange(0, 10**9),
    help="Stop max-ent when log-loss on inner training rows has stalled for this many "
    "iterations; 0: never, learn from all rows at once.  [default: 5; text rows 0]",
)
@click.option(
    "--tolerance",
    type=Finite(0),
    default=TrainConfig.tolerance,
    show_default=True,
    help="Stop when ten iterations lower the objective by less than this part of it.",
)
@click.option(
    "--min-weight",
    type=Finite(0),
    default=TrainConfig.min_weight,
    show_default=True,
    help="Leave out features whose weights are all smaller; 0: keep all.",
)
@seed_option
@workers_option
@cluster_option
@click.option("--verbose", is_flag=True, help="Write a line per iteration and per piece of work on stderr.")
@json_option
def command(
    data: Path,
    algorithms: tuple[str, ...],
    pattern: str,
    out: Path,
    cluster: str | None,
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a copy of a player from its decisions, and write it as a bundle: a folder that plays.

    Algorithms: l-bfgs, rprop, sgd-l1 and bcd (optimisers of a maximum-entropy model), memm, crf, boosting, classes
    (learned classes of hands), blend (several of them together), and the baselines majority, frequency and logistic.
    Several algorithms write a bundle each under --out. Finished streets are kept: after Ctrl-C or a kill the same
    command goes on from there.

    Example: pipeline train --data out/rows --agent teacher --algorithm rprop --out out/models
    """
    import pipeline.agents  # noqa: F401  (priors may be built-in agents)
    from pipeline.features.patterns import find_pattern
    from pipeline.features.textrows import is_text
    from pipeline.training.requests import Request
    from pipeline.training.run import train_bundles, train_text
    from pipeline.training.summary import HEAD, choice_sentences, summary_rows

    config = TrainConfig(
        **{field.name: options.pop(field.name) for field in fields(TrainConfig) if field.name in options}
    )
    request = Request(
        data=data,
        out=out,
        algorithms=tuple(dict.fromkeys(algorithms)),
        pattern=find_pattern(pattern),
        config=config,
        **options,
    )
    if cluster is not None and is_text(data):
        raise PipelineError("text rows are trained in one place: leave out --cluster")
    lines = _TrainingLines(verbose)
    callbacks = Callbacks(lines.step, lines.stage)
    try:
        with connected(cluster) as dask:
            if is_text(data):
                results = train_text(request, callbacks)
            else:
                results = train_bundles(request, callbacks, dask)
    except PipelineError:
        lines.close()
        raise
    except KeyboardInterrupt:
        lines.close()
        click.echo(f"interrupted: what was finished is kept; the same command goes on from there ({out})", err=True)
        raise
    lines.close()
    if as_json:
        print_json([result.to_json() for result in results])
    else:
        click.echo(table_text(HEAD, summary_rows(results), words=2))
        for line in choice_sentences(results):
            click.echo(sentence_text(line))
        for path in dict.fromkeys(result.path for result in results):
            click.echo(f"written to {path}")
    for remark in dict.fromkeys(remark for result in results for remark in result.remarks):
        click.echo(sentence_text(f"note: {remark}"), err=True)
    if results and results[-1].trained.interrupted:
        click.echo(f"{out} is not finished: the same command goes on where this one was interrupted", err=True)
        raise KeyboardInterrupt


class _TrainingLines(ProgressText):
    """Progress of a training on stderr: a line per street and now and then the share done, with --verbose all."""

    def __init__(self, verbose: bool) -> None:
        super().__init__()
        self._verbose, self._street = verbose, ""

    def step(self, street: str, algorithm: str, step: Step) -> None:
        """Show an iteration."""
        text = f"{street} {algorithm} {step.iteration:4}  objective {step.objective:12.1f}  active {step.active:8}"
        if step.error is not None and step.log_loss is not None:
            text += f"  inner rows: error {step.error:7.2%}  log-loss {step.log_loss:.4f}"
        self.show(f"{text}  {step.seconds:.3f} s", now=self._verbose)

    def stage(self, street: str, name: str) -> Progress:
        """Show that a piece of work begins, then its share done and the time left (compiling aside)."""
        from pipeline.runtime.kernels import seconds_compiling

        self.show(f"{street}: {name} ...", now=self._verbose or street != self._street)
        self._street = street
        start = time.monotonic() - seconds_compiling()

        def progress(count: int, total: int) -> None:
            nonlocal start
            if count == 0:  # what went before, such as sorting columns into bins, says nothing about the work to come
                start = time.monotonic() - seconds_compiling()
            if 0 < count < total:
                seconds = time.monotonic() - seconds_compiling() - start
                self.show(share_text(f"{street}: {name}", count, total, seconds))

        return progress
