"""`train`: models per street from decision rows, or one from text rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pipeline.features.patterns import find_pattern
from pipeline.features.textrows import is_text
from pipeline.train import Request, Result, train_bundles, train_text
from pipeline.training.loop import Settings, Step


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="A dataset's folder, or text rows.")
@click.option("--agent", "agents", multiple=True, help="Whom to imitate; several are pooled.  [default: everyone]")
@click.option("--street", "streets", multiple=True, help="preflop flop turn river, or all: one model after the flop.")
@click.option("--algorithm", "algorithms", multiple=True, default=("l-bfgs",), show_default=True)
@click.option("--pattern", default="default", show_default=True, help="A pattern file, or the name of a bundled one.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The bundle's folder.")
@click.option("--validation-file", type=click.Path(path_type=Path, exists=True), help="Text rows to score on.")
@click.option("--game", help="The game's name, where the data holds several.")
@click.option("--chart", type=click.Path(path_type=Path), help="Another chart: a file, a bundle, or a bundled one.")
@click.option(
    "--rho1", type=click.FloatRange(0), default=0.5, show_default=True, help="L1, unless the pattern sets it."
)
@click.option("--rho2", type=click.FloatRange(0), default=1e-4, show_default=True, help="L2, likewise.")
@click.option("--iterations", type=click.IntRange(1), help="At most so many.  [default: by algorithm]")
@click.option("--tolerance", type=click.FloatRange(0), default=Settings.tolerance, show_default=True)
@click.option(
    "--patience",
    type=click.IntRange(0),
    help="Stop, and keep the best, when validation has stalled for so long; 0: never.  [default: 5; text rows 0]",
)
@click.option(
    "--least",
    type=click.FloatRange(0),
    default=0.02,
    show_default=True,
    help="Leave out features whose weights are all smaller; 0: keep all.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True)
@click.option("--quiet", is_flag=True, help="No line per iteration.")
@click.option("--json", "as_json", is_flag=True, help="A list on stdout.")
def command(
    data: Path,
    agents: tuple[str, ...],
    streets: tuple[str, ...],
    algorithms: tuple[str, ...],
    pattern: str,
    out: Path,
    validation_file: Path | None,
    game: str | None,
    chart: Path | None,
    rho1: float,
    rho2: float,
    iterations: int | None,
    tolerance: float,
    patience: int | None,
    least: float,
    seed: int,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train models and write a bundle; with several algorithms, a bundle each under --out.

    Algorithms: l-bfgs rprop rprop- sgd-l1 bcd (max-ent), memm, crf crf-l2sgd crf-ap crf-pa crf-arow, boosting, net,
    and the baselines majority frequency logistic. Ctrl-C keeps the best weights so far.

    Example: python -m pipeline train --data out/rows --agent teacher --algorithm rprop --out out/models
    """
    text = is_text(data)
    if patience is None:
        patience = 0 if text else 5
    request = Request(
        data=data,
        out=out,
        agents=agents,
        streets=streets,
        algorithms=tuple(dict.fromkeys(algorithms)),
        pattern=find_pattern(pattern),
        game=game,
        chart=chart,
        validation_file=validation_file,
        rho1=rho1,
        rho2=rho2,
        threads=threads,
        settings=Settings(iterations=iterations, tolerance=tolerance, patience=patience, least=least, seed=seed),
    )
    work = train_text if text else train_bundles
    results = work(request, (lambda street, algorithm, step: None) if quiet else _line)
    if sys.stderr.isatty() and not quiet:
        click.echo("\r\x1b[K", nl=False, err=True)
    if as_json:
        click.echo(json.dumps([result.to_json() for result in results]))
    else:
        _table(results)
    if results and results[-1].trained.interrupted:
        raise KeyboardInterrupt


def _line(street: str, algorithm: str, step: Step) -> None:
    """A line per iteration on stderr; in a terminal each takes the place of the one before."""
    found = f"{street} {algorithm} {step.iteration:4}  objective {step.objective:12.1f}  active {step.active:8}"
    if step.error is not None and step.log_loss is not None:
        found += f"  error {step.error:7.2%}  log-loss {step.log_loss:.4f}"
    found += f"  {step.seconds:.3f} s"
    click.echo(f"\r\x1b[K{found}" if sys.stderr.isatty() else found, nl=not sys.stderr.isatty(), err=True)


def _table(results: list[Result]) -> None:
    click.echo(
        f"{'street':8} {'algorithm':10} {'rows':>9} {'active':>9} {'iterations':>10} {'error':>8} {'log-loss':>9}"
    )
    for one in results:
        found = one.trained
        scored = (
            f"{found.error:8.2%} {found.log_loss:9.4f}"
            if found.error is not None and found.log_loss is not None
            else f"{'-':>8} {'-':>9}"
        )
        click.echo(
            f"{one.street:8} {one.algorithm:10} {one.rows:9,} {found.active:9,} {found.iterations:10} {scored}"
            f"  {one.seconds:.1f} s  {one.path}"
        )
