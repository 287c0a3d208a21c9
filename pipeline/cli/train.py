"""`train`: models per street from decision rows, or one from text rows."""

from __future__ import annotations

import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    DATA_GAME,
    PATH,
    cluster_option,
    connected,
    data_option,
    game_option,
    json_option,
    out_option,
    seed_option,
    workers_option,
)
from pipeline.cli._progress import LINE, WORKING
from pipeline.cli._tables import print_json, sentence_text, table_text
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks, Progress, no_progress
from pipeline.training.config import TrainConfig

if TYPE_CHECKING:
    from pipeline.runtime.progress import Step
    from pipeline.training.requests import Result
    from pipeline.training.tasks import Trained

MAX_COLUMNS = 6
"""most columns that are printed as those by which classes of hands differ"""


@click.command()
@data_option("A dataset that `ingest` wrote, or text rows.")
@click.option("--agent", "agents", multiple=True, help="Whom to imitate; several are pooled.  [default: everyone]")
@click.option("--without", multiple=True, metavar="NAME", help="Leave this agent out of those pooled (repeatable).")
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
    help="Start from what others play: a bundle (of everybody, say) or a built-in agent; several are multiplied.",
)
@click.option("--chart", type=PATH, help="Another chart: a file, a bundle, or a bundled one.")
@click.option(
    "--rho1",
    type=click.FloatRange(0),
    default=TrainConfig.rho1,
    show_default=True,
    help="Strength of the L1 penalty, unless the pattern sets it.",
)
@click.option("--rho2", type=click.FloatRange(0), default=TrainConfig.rho2, show_default=True, help="The same for L2.")
@click.option(
    "--max-iterations",
    type=click.IntRange(1),
    help="Iterations at most, of max-ent (sgd-l1: passes over the rows), crf and logistic.  [default: by algorithm]",
)
@click.option("--rounds", type=click.IntRange(1), help="Trees of a label at most, of boosting.  [default: by rows]")
@click.option("--passes", type=click.IntRange(1), help="Passes over the rows, of classes.  [default: 8]")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=TrainConfig.tolerance,
    show_default=True,
    help="Stop when ten iterations lower the objective by less than this part of it.",
)
@click.option(
    "--patience",
    type=click.IntRange(0),
    help="Stop max-ent when log-loss on inner training rows has stalled for so long; 0: never, learn from all rows at "
    "once.  [default: 5; text rows 0]",
)
@click.option(
    "--min-weight",
    type=click.FloatRange(0),
    default=TrainConfig.min_weight,
    show_default=True,
    help="Leave out features whose weights are all smaller; 0: keep all.",
)
@seed_option
@workers_option
@cluster_option
@click.option("--quiet", is_flag=True, help="A line per street, none per iteration.")
@json_option
def command(
    data: Path,
    algorithms: tuple[str, ...],
    pattern: str,
    out: Path,
    cluster: str | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train models and write a bundle; with several algorithms, a bundle each under --out.

    Algorithms: l-bfgs rprop sgd-l1 bcd (max-ent), memm, crf, boosting, classes (of hands, learned), blend (several of
    them together), and the baselines majority frequency logistic. Each finished street is kept: after Ctrl-C or a kill
    the same command goes on from there.

    Example: pipeline train --data out/rows --agent teacher --algorithm rprop --out out/models
    """
    import pipeline.agents  # noqa: F401  (priors may be built-in agents)
    from pipeline.features.patterns import find_pattern
    from pipeline.features.textrows import is_text
    from pipeline.training.requests import Request
    from pipeline.training.run import train_bundles, train_text

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
    lines = _TrainingLines(quiet)
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
        _print_results(results)
    for remark in dict.fromkeys(remark for result in results for remark in result.remarks):
        click.echo(sentence_text(f"note: {remark}"), err=True)
    if results and results[-1].trained.interrupted:
        click.echo(f"{out} is not finished: the same command goes on where this one was interrupted", err=True)
        raise KeyboardInterrupt


class _TrainingLines:
    """Progress of a training on stderr: in a terminal one line that changes, elsewhere lines one after the other."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._terminal = quiet, sys.stderr.isatty()
        self._shown, self._street = 0.0, ""

    def step(self, street: str, algorithm: str, step: Step) -> None:
        """Write a line per iteration, none with --quiet."""
        text = f"{street} {algorithm} {step.iteration:4}  objective {step.objective:12.1f}  active {step.active:8}"
        if step.error is not None and step.log_loss is not None:
            text += f"  inner rows: error {step.error:7.2%}  log-loss {step.log_loss:.4f}"
        if not self._quiet:
            self._write(f"{text}  {step.seconds:.3f} s")

    def stage(self, street: str, name: str) -> Progress:
        """Write a line when a piece of work begins, then its share done and the time left (compiling aside)."""
        from pipeline.runtime.kernels import seconds_compiling

        if self._quiet and self._street == street:
            return no_progress
        self._street = street
        label = f"{street}: training" if self._quiet and name != "writing" else f"{street}: {name}"
        self._write(f"{label} ...")
        start = time.monotonic() - seconds_compiling()

        def progress(done: int, total: int) -> None:
            now = time.monotonic()
            if now - self._shown > (0.1 if self._terminal else 2.0) and 0 < done < total and not self._quiet:
                seconds_left = (now - seconds_compiling() - start) * (total - done) / done
                self._write(
                    f"{label}  {done / total:4.0%}  {int(seconds_left) // 60}:{int(seconds_left) % 60:02d} left"
                )

        return progress

    def close(self) -> None:
        """Leave an empty line to whatever follows."""
        if self._terminal:
            LINE.clear(WORKING)

    def _write(self, text: str) -> None:
        self._shown = time.monotonic()
        if self._terminal:
            LINE.show(WORKING, text)
        else:
            click.echo(text, err=True)


def _prior_words(prior: dict[str, Any]) -> str:
    """Return the use of a prior that training chose, in words."""
    if prior["by"] == "blend":
        return "blended in"
    by = {"fixed": "as it is", "street": "one strength", "betting": "a strength per betting"}[prior["by"]]
    scale = prior["penalties"]
    return f"{by}, {'no features' if scale is None else f'penalties of features times {scale:g}'}"


def _kept_words(trained: Trained) -> str:
    """Return which iteration of max-ent was kept, and which rows chose it."""
    words = f"the max-ent weights are those of iteration {trained.kept_iteration}"
    if trained.inner_rows == 0:
        return f"{words}, the last"
    scored = "" if trained.best_log_loss is None else f" (log-loss {trained.best_log_loss:.4f} on these)"
    return f"{words}, chosen on {trained.inner_rows:,} inner training rows{scored}"


def _print_results(results: list[Result]) -> None:
    def scores(result: Result) -> list[str]:
        trained = result.trained
        scored = trained.error is not None and trained.log_loss is not None
        return [f"{trained.error:.2%}", f"{trained.log_loss:.4f}"] if scored else ["-", "-"]

    head = ["street", "algorithm", "rows", "active", "iterations", "error", "log-loss", "seconds"]
    rows = [
        [
            result.street,
            result.algorithm,
            f"{result.rows:,}",
            f"{result.trained.active:,}",
            str(result.trained.iterations),
            *scores(result),
            f"{result.seconds:.1f}",
        ]
        for result in results
    ]
    click.echo(table_text(head, rows, words=2))
    for result in results:
        for prior in result.trained.priors:
            click.echo(
                f"{result.street}: {prior['prior']} with strength {prior['strength']:.2f}, {_prior_words(prior)}"
            )
    for result in results:
        if result.trained.kept_iteration is not None:
            click.echo(f"{result.street}: {_kept_words(result.trained)}")
        if result.trained.exponents:
            joined = ", ".join(f"{name} {power:.2f}" for name, power in result.trained.exponents)
            click.echo(f"{result.street}: powers of the parts: {joined}")
        if result.trained.forests:
            grown = ", ".join(f"{forest.columns} {forest.power:.2f}" for forest in result.trained.forests)
            click.echo(f"{result.street}: powers of trees by the columns they look at: {grown}")
        if result.trained.looks_at:
            seen = ", ".join(f"{name} {share:.2f}" for name, share in result.trained.looks_at[:MAX_COLUMNS])
            click.echo(f"{result.street}: classes of hands differ most by {seen}")
    for path in dict.fromkeys(result.path for result in results):
        click.echo(f"written to {path}")
