"""`evaluate`: error tables per model and street, with floors, intervals and baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    FILE,
    also_option,
    cluster_option,
    connected,
    data_option,
    format_option,
    json_option,
    scope_options,
    seed_option,
)
from pipeline.cli._output import file_kind, print_json, sentence_text, table_text, terminal_table
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra

if TYPE_CHECKING:
    from pipeline.evaluation.evaluation import Evaluation
    from pipeline.report.text import TextTable


PLAYER = "player"
"""the cut that has rows for the largest of many players"""


@click.command(epilog="Example: pipeline evaluate --data out/rows out/slumbot --by situation")
@click.argument("models", nargs=-1, required=True)
@data_option("A dataset that `ingest` wrote, or text rows.")
@scope_options
@click.option(
    "--by",
    "cuts",
    multiple=True,
    help="Where the best model fails: situation position hand strength opponent. Of many players: player.",
)
@also_option()
@click.option("--picture", type=FILE, help="Draw scores, calibration and learning curves to FILE.svg, .pdf or .png.")
@click.option("--record", is_flag=True, help="Write the scores of the one bundle into its folder.")
@format_option("text", "markdown", "csv")
@seed_option
@cluster_option
@json_option
def command(
    models: tuple[str, ...], data: Path, form: str, as_json: bool, picture: Path | None, **options: Any
) -> None:
    """Print how close MODELS come to the agents that they imitate, on decisions that were held out of training.

    MODELS are bundles, folders of bundles or @agents. The tables have each model's error and log-loss per agent and
    street, with 95 % intervals, and the floor, below which no model could come.
    """
    from pipeline.features.textrows import is_text
    from pipeline.report import tables
    from pipeline.report.text import TextTable

    if picture is not None:
        file_kind(picture, ".svg", ".pdf", ".png", option="--picture")
        import_extra("matplotlib")  # a missing extra is named before anything is computed
    if is_text(data):
        if picture is not None or options["record"]:
            option = "--record" if picture is None else "--picture"
            raise PipelineError(f"{option}: {data} holds text rows, whose scores have no streets")
        _score_text(data, models, as_json, options["allow_overlap"])
        return
    cuts, also = options.pop("cuts"), options.pop("also")
    evaluation = _evaluate(data, models, cuts, also, **options)
    if picture is not None:
        from pipeline.runtime.pictures import save

        save(evaluation.plot(), picture)
    scores = [score for row in evaluation.shown(PLAYER in cuts) for model in row for score in model.scores]
    if as_json:
        print_json(evaluation.json())
    elif form == "csv":
        click.echo(TextTable.of(evaluation.rows()).csv(), nl=False)
    else:
        main = [
            ("Argmax error, %", tables.by_model(scores, "error")),
            ("Log-loss, nats", tables.by_model(scores, "log_loss")),
        ]
        if any(score.sizes for score in scores):
            main.append(
                ("Amounts of raises", tables.sizes([score for score in scores if score.algorithm != "baseline"]))
            )
        tell = tables.detection(scores)
        if tell is not None:
            main.append(("Hands that a perfect detector needs (hands as played in the data)", tell))
        notes = [*evaluation.notes, *tables.model_notes(scores), *tables.notes(scores)]
        if evaluation.is_population and PLAYER not in cuts:
            notes.append(
                f"{evaluation.players:,} players; --by player has rows for the {len(evaluation.scored)} largest."
            )
        _print_tables(
            [*main, *_further_tables(evaluation, cuts, also, options["seed"])], notes, markdown=form == "markdown"
        )


def _score_text(data: Path, models: tuple[str, ...], as_json: bool, allow_overlap: bool) -> None:
    """Score models of text rows and print one table: they have no streets and no floors."""
    from pipeline.training.run import score_text

    scores = score_text(data, [Path(model) for model in models], allow_overlap=allow_overlap)
    head = ["model", "algorithm", "rows", "error", "log_loss"]
    lines = [
        [score["model"], score["algorithm"], f"{score['rows']:,}", f"{score['error']:.2%}", f"{score['log_loss']:.4f}"]
        for score in scores
    ]
    if as_json:
        print_json(scores)
    else:
        click.echo(table_text(head, lines, words=2))
        for model in dict.fromkeys(score["model"] for score in scores if score["overlap"] != 0):
            known = {score["overlap"] for score in scores if score["model"] == model}
            note = "It is unknown whether {} was trained on {}." if None in known else "{} was trained on {}."
            click.echo(sentence_text(note.format(model, data)))


def _evaluate(
    data: Path,
    models: tuple[str, ...],
    cuts: tuple[str, ...],
    also: tuple[str, ...],
    seed: int,
    cluster: str | None,
    record: bool,
    **options: Any,
) -> Evaluation:
    """Score the models on the chosen decisions; a wrong cut is refused before anything is computed."""
    from pipeline.evaluation.evaluation import Scope, evaluate_models, trained_models
    from pipeline.evaluation.inspection import CUTS
    from pipeline.evaluation.retraining import train_again
    from pipeline.models.bundle import record_scores
    from pipeline.runtime.bundled import locate
    from pipeline.runtime.errors import PipelineError, nearest

    for cut in cuts:
        if cut not in (*CUTS, PLAYER):
            raise PipelineError(f"cannot cut by {cut!r}{nearest(cut, [*CUTS, PLAYER])}")
    scope = Scope(**options)
    folder = locate(models[0])
    if record and (len(models) > 1 or not (folder / "manifest.json").is_file() or scope.allow_overlap):
        raise PipelineError("--record is for the folder of one bundle, without options and --allow-overlap")
    with connected(cluster) as dask, bar("evaluate", "agents") as progress:
        evaluation = evaluate_models(
            *(data, models, scope),
            cross="cross" in also,
            seed=seed,
            trusted=True,
            cluster=dask,
            progress=progress,
        )
    with bar("training again", "models") as progress:
        halves, learning = "halves" in also, "learning" in also
        evaluation = train_again(evaluation, halves=halves, learning=learning, seed=seed, progress=progress)
    if record:
        rows = [score.row() for model in trained_models(evaluation.shown()[0]) for score in model.scores]
        record_scores(folder, rows, evaluation.fingerprint)
    return evaluation


def _further_tables(
    evaluation: Evaluation, cuts: tuple[str, ...], also: tuple[str, ...], seed: int
) -> list[tuple[str, TextTable]]:
    """Make the tables that options ask for, each with its title."""
    from pipeline.evaluation.evaluation import best_model, trained_models
    from pipeline.evaluation.findings import stationarity_of_agents
    from pipeline.evaluation.inspection import breakdown
    from pipeline.models.measures import Bootstrap
    from pipeline.report import tables

    titled: list[tuple[str, TextTable]] = []
    shown = evaluation.shown(PLAYER in cuts)
    if "details" in also:
        titled.append(("All measures", tables.details([one for row in shown for model in row for one in model.scores])))
    if "differences" in also:
        agents = {row[0].sample.agent for row in shown}
        pairs = [pair for pair in evaluation.pairs if pair.agent in agents]
        titled.append(("Differences from the best model", tables.differences(pairs)))
    for row in shown:
        best_scored = best_model(row)
        draws = Bootstrap(best_scored.sample.deal, seed=seed)
        for cut in (cut for cut in cuts if cut != PLAYER):
            title = f"{best_scored.candidate.name} on {best_scored.sample.agent} by {cut}"
            titled.append((title, tables.parts(breakdown(best_scored, cut, draws), cut, best_scored.sample.labels)))
    if "stationary" in also:
        titled.append(("Do the agents change?", tables.stationary(stationarity_of_agents(evaluation))))
    if "cross" in also:
        last = [best_scored.scores[-1] for row in evaluation.scored for best_scored in trained_models(row)]
        titled.append(("Log-loss of each model on each agent", tables.cross(last)))
    if "learning" in also:
        titled.append(("Log-loss by number of training rows", tables.learning(evaluation.learning)))
    return titled


def _print_tables(titled: list[tuple[str, TextTable]], notes: list[str], *, markdown: bool) -> None:
    """Print tables with their titles, then the notes."""
    for title, table in titled:
        click.echo(f"### {title}\n" if markdown else title)
        click.echo(table.markdown() if markdown else terminal_table(table))
        click.echo()
    for note in notes:
        click.echo(sentence_text(note))
