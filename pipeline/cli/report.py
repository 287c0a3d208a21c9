"""`report`: one HTML page with tables, curves, charts, hands and matches."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pipeline.cli._options import (
    FILE,
    PATH,
    also_option,
    data_option,
    open_option,
    open_written,
    out_option,
    saved_results_options,
    scope_options,
    seed_option,
)
from pipeline.cli._output import file_kind
from pipeline.cli._progress import bar


@click.command(epilog="Example: pipeline report --data out/rows out/slumbot --out out/slumbot.html")
@click.argument("models", nargs=-1, required=True)
@data_option()
@out_option("The page to write.", FILE)
@scope_options
@also_option("cross", "learning", "halves")
@saved_results_options
@click.option(
    "--counter",
    "counters",
    type=PATH,
    multiple=True,
    help="A strategy that `counter` wrote: draw how it was chosen (repeatable).",
)
@seed_option
@open_option
@click.pass_context
def command(context: click.Context, /, models: tuple[str, ...], data: Path, out: Path, **options: Any) -> None:
    """Score MODELS as `evaluate` does, and write one HTML page that opens without a network."""
    from pipeline.arena.rankings import read_table
    from pipeline.evaluation.evaluation import Scope, evaluate_models
    from pipeline.evaluation.findings import collect_findings, read_match
    from pipeline.evaluation.retraining import train_again
    from pipeline.report.pages import build_page
    from pipeline.runtime.files import write_text

    file_kind(out, ".html", ".htm")
    seed = options["seed"]
    scope = Scope(**{name: options[name] for name in ("agents", "all_rows", "allow_overlap", "probabilities", "game")})
    settings: dict[str, Any] = {"seed": seed, "trusted": True}  # a person typed the models' names
    table = options["table"]
    results = None if table is None else read_table(table, seed=seed)
    for path in options["matches"]:
        read_match(path)  # a file that is none is refused before anything is scored
    with bar("evaluate", "agents") as progress:
        evaluation = evaluate_models(data, models, scope, progress=progress, **settings)
        crossed = None
        if "cross" in options["also"]:
            crossed = evaluate_models(
                data, models, replace(scope, agents=()), cross=True, with_baselines=False, **settings
            )
    with bar("training again", "models") as progress:
        wanted = {name: name in options["also"] for name in ("halves", "learning")}
        evaluation = train_again(evaluation, **wanted, seed=seed, progress=progress)
    with bar("drawing the page"):
        page = build_page(
            collect_findings(
                evaluation,
                cross=crossed,
                matches=options["matches"],
                counters=options["counters"],
                results=results,
                settings=[f"Made on {_today()} by: {_typed(context)}"],
                seed=seed,
            )
        )
    write_text(out, page)
    click.echo(f"{out}  {out.stat().st_size / 1e6:.2f} MB")
    open_written(out)


def _today() -> str:
    """Return today's date, or that of SOURCE_DATE_EPOCH, with which the same input gives the same bytes on any day."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(given) if given.isdigit() else time.time(), UTC).date().isoformat()


def _typed(context: click.Context) -> str:
    """Return the command line with the arguments and options that were given."""
    words = ["pipeline", "report"]
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name not in context.params:  # --open changes nothing on the page
            continue
        value = context.params[name]
        option = parameter.opts[0] if isinstance(parameter, click.Option) else ""
        for word in value if isinstance(value, tuple) else (value,):
            words += [option] if word is True else [*([option] if option else []), str(word)]
    return shlex.join(words)
