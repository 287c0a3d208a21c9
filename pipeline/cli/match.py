"""`match`: play a match between agents, make logs of an agent to learn from, or score matches that were played."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    FILE,
    FOLDER,
    PATH,
    adjusted_option,
    cluster_option,
    connected,
    data_option,
    game_option,
    hands_range,
    json_option,
    only_with,
    seed_option,
    workers_option,
)
from pipeline.cli._output import file_kind, log_base, one_line, print_json, written_logs
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import write_text

if TYPE_CHECKING:
    from pipeline.arena.duplicate import MatchResult


@click.command()
@click.argument("agents", nargs=-1, metavar="A B [C]...")
@click.option("--hands", type=hands_range(), default=10_000, show_default=True, help="Hands, all seatings counted.")
@seed_option
@game_option()
@click.option(
    "--log",
    type=PATH,
    help="Write the hands to FILE.0.log, FILE.1.log ..., one per seating; FILE.phhs writes hand histories.",
    metavar="FILE",
)
@click.option(
    "--probabilities",
    type=FILE,
    help="True probabilities of the agents' decisions: written with --log, read with --from and --data.",
    metavar="FILE",
)
@click.option(
    "--sample",
    type=FOLDER,
    help="Write logs of A to learn from: half of the hands against itself, half against the others.",
    metavar="DIR",
)
@click.option("--from", "logs", multiple=True, help="Score the players of these logs (repeatable).", metavar="LOGS")
@data_option("Score the players of a dataset.", required=False)
@click.option("--shared-luck", is_flag=True, help="Share the agents' dice too: a closer comparison of similar agents.")
@adjusted_option
@click.option(
    "--imagined",
    type=click.IntRange(2, 2000),
    help="Average adjusted results over N hands that the last agent could have held (with @lbr: its opponent, 16).",
    metavar="N",
)
@click.option(
    "--page",
    type=FILE,
    help="Draw to FILE.html how the estimates of @adaptive change in the course of the match.",
    metavar="FILE",
)
@workers_option
@cluster_option
@json_option
def command(
    agents: tuple[str, ...],
    sample: Path | None,
    logs: tuple[str, ...],
    data: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Play a match in which every deal is played in all seatings; print what each agent wins per hand, in mbb.

    1 mbb is a thousandth of a big blind. An agent is @name (@fold @call @raise @random @equity @chump:maniac @teacher
    ...) or a bundle's folder or zip, with options: models/teacher:mode=argmax,chart=selby. A bot of your own is
    python:module:factory or python:./file.py:factory (an object with probabilities or act), or exec:./start.sh, a
    program that is started with HOST PORT and plays on the ACPC dealer there.

    With --sample, DIR gets ACPC logs of A and a file with the true probabilities of every decision: logs of A against
    itself never show how it answers mistakes, so a copy needs both. Without other agents it meets @random, @equity,
    @call, @calibrated:70,70 and @bearl, or those of them that play the game; A is @teacher unless named.

    With --from or --data nothing is played: the players of logs are scored, plain and, where all hole cards are known,
    with the luck of the cards taken out. More logs may follow as arguments: --from out/logs/*.log works.

    Example: pipeline match @equity @call --hands 100000 --seed 1

    Example: pipeline match @teacher --sample out/logs --hands 20000

    Example: pipeline match --from data/sample --probabilities data/sample/sample.probs.parquet
    """
    if sample is not None:
        only_with("--sample", "sample", "hands", "seed", "game", "cluster", "as_json")
        _sample(agents, sample, as_json, **{name: options[name] for name in ("hands", "seed", "game", "cluster")})
    elif logs or data is not None:
        mode = "--from" if logs else "--data"
        only_with(mode, "logs" if logs else "data", "game", "probabilities", "workers", "as_json")
        if data is not None and agents:
            raise PipelineError(f"--data scores the players of a dataset: leave out {' '.join(agents)}")
        _score((*logs, *agents), data, as_json, *(options[name] for name in ("game", "probabilities", "workers")))
    elif not agents:
        raise click.UsageError("Missing argument 'A B [C]...': name the agents, like @equity @call.")
    else:
        _play(agents, as_json, **options)


def _play(
    agents: tuple[str, ...],
    as_json: bool,
    game: str | None,
    probabilities: Path | None,
    page: Path | None,
    cluster: str | None,
    **options: Any,
) -> None:
    """Play a match, write its files and print the results."""
    from pipeline.agents.adaptive import Adaptive
    from pipeline.agents.names import choose_game, resolve
    from pipeline.arena.match import ClusterTable, play_match, rehearse

    if probabilities is not None and probabilities.suffix != ".parquet":
        raise PipelineError(f"--probabilities {probabilities}: name the file to write, ending in .parquet")
    if page is not None:
        file_kind(page, ".html", option="--page")
    imagined = options.pop("imagined")
    if imagined is not None and not options["adjusted"]:
        raise PipelineError("--imagined is about adjusted results: leave out --no-adjusted")
    options["adjusted"] = imagined or options["adjusted"]
    played = choose_game(game, agents)
    log = options.pop("log")
    options["log"] = log_base(log, played)
    seated = [resolve(agent, played, trusted=True) for agent in agents]
    adaptive_agents = [adaptive for adaptive in seated if isinstance(adaptive, Adaptive)]
    if page is not None and not adaptive_agents:
        raise PipelineError("--page draws what @adaptive thought: let it take part")
    with connected(cluster) as there, bar("match", "hands") as progress:
        rehearse(seated, played, adjusted=options["adjusted"], logged=options["log"] is not None)
        workers = options.pop("workers")
        match = play_match(
            seated,
            played,
            probabilities=probabilities or False,
            workers=ClusterTable.of(there, agents, trusted=True) or workers,
            progress=progress,
            **options,
        )
    logs = written_logs(match.logs, log, played)
    for adaptive in adaptive_agents:
        adaptive.wait()
    courses = []
    if adaptive_agents:
        from pipeline.evaluation.findings import adaptation_course

        courses = [adaptation_course(adaptive, match.names) for adaptive in adaptive_agents]
    if page is not None:
        from pipeline.report.pages import adaptation_page

        write_text(page, adaptation_page(" against ".join(match.names), courses))
    if as_json:
        settings = {"game": played.name, "seed": options["seed"], "logs": [str(path) for path in logs]}
        print_json(match.json(agents) | settings | {"adaptation": [course.json() for course in courses]})
        return
    _print_results(match)
    for path in [*logs, *([page] if page is not None else [])]:
        click.echo(str(path))


def _print_results(match: MatchResult) -> None:
    """Print the winnings of each agent, a line each, and the hands played."""
    from pipeline.models.measures import batches_note

    for i, name in enumerate(match.names):
        click.echo(f"{one_line(name):<30} {match.winnings(i).text(match.game.unit, width=12)}")
    if note := batches_note(match.batches):
        click.echo(note)
    click.echo(f"{match.hands:,} hands of {match.game.name} in {match.seconds:.1f} s")


def _sample(
    agents: tuple[str, ...], out: Path, as_json: bool, hands: int, seed: int, game: str | None, cluster: str | None
) -> None:
    """Write logs of the first agent against itself and against the others, and their true probabilities."""
    from pipeline.agents.names import choose_game
    from pipeline.arena.sampling import play_sample

    began = time.monotonic()
    rules = choose_game(game, (agents[0] if agents else "@teacher",) * 2)
    with connected(cluster) as workers, bar("sample", "hands") as progress:
        sample = play_sample(agents, rules, out, hands=hands, seed=seed, cluster=workers, progress=progress)
    seconds = time.monotonic() - began
    if as_json:
        print_json({"hands": sample.hands, "files": list(map(str, sample.logs)), "seconds": seconds})
    else:
        click.echo(f"{sample.hands:,} hands in {len(sample.logs)} logs in {out}, {seconds:.1f} s")


def _score(
    logs: tuple[str, ...], data: Path | None, as_json: bool, game: str | None, probabilities: Path | None, workers: int
) -> None:
    """Print what the players of logs, or of a dataset, won: plain and without the luck."""
    from pipeline.evaluation.winnings import score_dataset
    from pipeline.ingestion.options import options
    from pipeline.ingestion.run import ingest

    with tempfile.TemporaryDirectory() as folder:
        if data is None:
            data = Path(folder) / "rows"
            with bar("score", "hands") as progress:
                ingest(logs, data, options(game=game, strength=False), workers=workers, progress=progress)
        results = score_dataset(data, probabilities, threads=workers)
    for result in results:
        if result.doubtful:
            warning = (
                f"warning: {result.agent} did not play by these probabilities (its actions are {result.misfit:.1f} "
                "standard errors from them): the adjusted results are wrong; check that the file belongs to these logs"
            )
            click.echo(one_line(warning), err=True)
    if as_json:
        print_json([result.json() for result in results])
        return
    for result in results:
        click.echo(f"{one_line(result.agent):<30} {result.hands:>9,} hands {result.winnings.text(width=12)}")
