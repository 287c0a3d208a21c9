"""`evaluate`: error tables per algorithm and street, with floors, intervals and baselines."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pipeline.commands._progress import bar


@click.command(epilog="Example: python -m pipeline evaluate --data out/rows out/slumbot --by situation")
@click.argument("models", nargs=-1, required=True)
@click.option(
    "--data", type=click.Path(path_type=Path), required=True, help="A dataset that `ingest` wrote, or text rows."
)
@click.option("--agent", "agents", multiple=True, help="Score on this agent's decisions (repeatable).")
@click.option("--game", help="The game's name, where the data holds several.")
@click.option("--all-rows", is_flag=True, help="Score on all rows: for data the models were not trained on.")
@click.option(
    "--probabilities",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Parquet file of the agents' true probabilities: exact floors, KL and TV (repeatable).",
)
@click.option("--details", is_flag=True, help="Every measure of every model.")
@click.option("--differences", is_flag=True, help="Each model beside the best, paired by deal.")
@click.option(
    "--by", "cuts", multiple=True, help="Where the best model fails: situation position hand strength opponent."
)
@click.option("--cross", is_flag=True, help="Each model on every agent's decisions.")
@click.option("--stationary", is_flag=True, help="Do the agents play the same early and late, against everyone?")
@click.option("--learning", is_flag=True, help="Train the first model again on parts of its data: a learning curve.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "csv"]), default="text", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.option("--json", "as_json", is_flag=True, help="One list of scores on stdout.")
def command(
    models: tuple[str, ...],
    data: Path,
    agents: tuple[str, ...],
    game: str | None,
    all_rows: bool,
    probabilities: tuple[Path, ...],
    details: bool,
    differences: bool,
    cuts: tuple[str, ...],
    cross: bool,
    stationary: bool,
    learning: bool,
    form: str,
    seed: int,
    as_json: bool,
) -> None:
    """Score MODELS (bundles, folders of bundles, @agents) on held-out decisions of the agents they imitate."""
    from pipeline.errors import PipelineError, nearest
    from pipeline.evaluate.inspection import CUTS, breakdown
    from pipeline.features.textrows import is_text
    from pipeline.measures import Bootstrap
    from pipeline.report import tables
    from pipeline.report.build import best
    from pipeline.report.gather import changes, curve_of, evaluate_models
    from pipeline.report.text import aligned, as_csv, markdown
    from pipeline.train import score_text

    if is_text(data):
        plain = score_text(data, [Path(model) for model in models])
        head = ["model", "algorithm", "rows", "error", "log_loss"]
        lines = [
            [one["model"], one["algorithm"], f"{one['rows']:,}", f"{one['error']:.2%}", f"{one['log_loss']:.4f}"]
            for one in plain
        ]
        click.echo(json.dumps(plain) if as_json else aligned(head, lines, left=2))
        return
    for cut in cuts:
        if cut not in CUTS:
            raise PipelineError(f"cannot cut by {cut!r}{nearest(cut, CUTS)}")
    with bar("evaluate", "agents") as progress:
        found = evaluate_models(
            data,
            models,
            agents=agents,
            all_rows=all_rows,
            probabilities=probabilities,
            game=game,
            cross=cross,
            seed=seed,
            progress=progress,
        )
    scores = [score for row in found.scored for one in row for score in one.scores]
    if as_json:
        click.echo(json.dumps([score.as_dict() for score in scores]))
        return
    if form == "csv":
        click.echo(as_csv(*tables.flat(scores)), nl=False)
        return
    shown: list[tuple[str, tables.Table]] = [
        ("Argmax error, %", tables.by_algorithm(scores, "error")),
        ("Log-loss, nats", tables.by_algorithm(scores, "log_loss")),
    ]
    if details:
        shown.append(("All measures", tables.details(scores)))
    if differences:
        shown.append(("Differences from the best model", tables.differences(found.pairs)))
    for row in found.scored:
        one = best(row)
        draws = Bootstrap(one.sample.deal, seed=seed)
        for cut in cuts:
            title = f"{one.candidate.name} on {one.sample.agent} by {cut}"
            shown.append((title, tables.parts(breakdown(one, cut, draws), cut)))
    if stationary:
        shown.append(("Do the agents change?", tables.stationary(changes(found))))
    if cross:
        last = [one.scores[-1] for row in found.scored for one in row if one.candidate.algorithm != "baseline"]
        shown.append(("Log-loss of each model on each agent", tables.cross(last)))
    if learning:
        with bar("learning curve", "models") as progress:
            curve = curve_of(found, progress)
        shown.append(("Log-loss by number of training rows", tables.learning(curve)))
    write = markdown if form == "markdown" else aligned
    for title, (head, rows) in shown:
        click.echo(f"### {title}\n" if form == "markdown" else title)
        click.echo(
            write(
                head,
                rows,
                left=sum(name in ("agent", "street", "between", "model", "measure", "best") for name in head),
            )
        )
        click.echo()
    for note in tables.notes(scores):
        click.echo(note)
