"""`score`: winnings of the players of logs, plain and with the luck taken out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from pipeline.cli._options import FILE, LOGS_GAME, data_option, game_option, json_option, workers_option
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors


@click.command()
@click.argument("logs", nargs=-1)
@data_option("A dataset that was ingested, instead of logs.", required=False)
@game_option(LOGS_GAME)
@click.option(
    "--probabilities",
    type=FILE,
    help="True probabilities (Parquet): takes the luck of the players' own dice out too.",
)
@workers_option()
@json_option
def command(
    logs: tuple[str, ...],
    data: Path | None,
    game: str | None,
    probabilities: Path | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Rate the players of LOGS: thousandths of a big blind per hand, plain and with the luck taken out.

    The luck is taken out where all hole cards are known: the mean stays the same, the interval gets shorter.

    Example: pipeline score data/sample --probabilities data/sample/sample.probs.parquet
    """
    from pipeline.evaluation.winnings import score_dataset
    from pipeline.ingestion.options import options
    from pipeline.ingestion.run import ingest

    if bool(logs) == (data is not None):
        raise PipelineError("give either logs or --data DIR")
    threads = workers or processors()
    with tempfile.TemporaryDirectory() as folder:
        if data is None:
            data = Path(folder) / "rows"
            with bar("score", "hands") as progress:
                ingest(logs, data, options(game=game, strength=False), workers=threads, progress=progress)
        results = score_dataset(data, probabilities, threads=threads)
    for result in results:
        if result.doubtful:
            click.echo(
                f"warning: {result.agent} did not play by these probabilities (its actions are {result.misfit:.1f} "
                "standard errors from them): the adjusted results are wrong; check that the file belongs to these logs",
                err=True,
            )
    if as_json:
        print_json([result.json() for result in results])
        return
    for result in results:
        click.echo(f"{result.agent:<30} {result.hands:>9,} hands {result.winnings.text(width=12)}")
