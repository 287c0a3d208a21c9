"""`report`: one HTML page with tables, curves, charts, hands and matches."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.commands._options import file_kind
from pipeline.commands._progress import bar


@click.command(epilog="Example: pipeline report --data out/rows out/slumbot --out out/slumbot.html")
@click.argument("models", nargs=-1, required=True)
@click.option("--data", type=click.Path(path_type=Path), required=True, help="A dataset that `ingest` wrote.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The page to write.")
@click.option("--agent", "agents", multiple=True, help="Score on this agent's decisions (repeatable).")
@click.option("--game", help="The game's name, where the data holds several.")
@click.option("--all-rows", is_flag=True, help="Score on all rows: for data the models were not trained on.")
@click.option(
    "--probabilities",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Parquet file of the agents' true probabilities (repeatable).",
)
@click.option("--cross", is_flag=True, help="Each model on every agent's decisions too.")
@click.option("--learning", is_flag=True, help="Train the first model again on parts of its data: a learning curve.")
@click.option(
    "--match",
    "matches",
    type=click.Path(path_type=Path),
    multiple=True,
    help="What `match --json` printed (repeatable).",
)
@click.option("--table", type=click.Path(path_type=Path), help="A cross table that `tournament --out` wrote.")
@click.option("--title", help="Title of the page.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
def command(
    models: tuple[str, ...],
    data: Path,
    out: Path,
    agents: tuple[str, ...],
    game: str | None,
    all_rows: bool,
    probabilities: tuple[Path, ...],
    cross: bool,
    learning: bool,
    matches: tuple[Path, ...],
    table: Path | None,
    title: str | None,
    seed: int,
) -> None:
    """Score MODELS as `evaluate` does and write one self-contained HTML page."""
    file_kind(out, ".html", ".htm")
    from pipeline.evaluate.evaluation import evaluate_models
    from pipeline.evaluate.findings import findings
    from pipeline.evaluate.learning import curve_of
    from pipeline.files import replacing
    from pipeline.rankings import read_table
    from pipeline.report.build import build

    with bar("evaluate", "agents") as progress:
        found = evaluate_models(
            data,
            models,
            agents=agents,
            all_rows=all_rows,
            probabilities=probabilities,
            game=game,
            seed=seed,
            progress=progress,
        )
        others = None
        if cross:
            others = evaluate_models(
                data,
                models,
                all_rows=all_rows,
                probabilities=probabilities,
                game=game,
                cross=True,
                with_baselines=False,
                seed=seed,
            )
    curve = []
    if learning:
        with bar("learning curve", "models") as progress:
            curve = curve_of(found, progress)
    results = None if table is None else read_table(table, seed=seed)
    page = build(
        findings(found, cross=others, learning=curve, matches=matches, results=results, title=title, seed=seed)
    )
    with replacing(out) as part:
        part.write_text(page, encoding="utf-8")
    click.echo(f"{out}  {len(page.encode()) / 1e6:.2f} MB")
