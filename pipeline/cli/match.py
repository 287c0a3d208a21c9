"""`match`: play a duplicate match between two or more agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._log_format import check_log_format, log_base, log_format_option, written_logs
from pipeline.cli._options import (
    AGENTS_GAME,
    FILE,
    PATH,
    adjusted_option,
    cluster_option,
    connected,
    file_kind,
    game_option,
    hands_range,
    json_option,
    seed_option,
    workers_option,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import write_text

if TYPE_CHECKING:
    from pipeline.arena.duplicate import MatchResult


@click.command()
@click.argument("agents", nargs=-1, required=True, metavar="A B [C]...")
@click.option("--hands", type=hands_range(), default=10_000, show_default=True, help="Hands, all seatings counted.")
@seed_option()
@game_option(AGENTS_GAME)
@click.option("--log", type=PATH, help="Write FILE.0.log, FILE.1.log ..., one per seating.")
@click.option(
    "--probabilities",
    type=FILE,
    help="Write the agents' true probabilities to FILE.parquet; needs --log.",
    metavar="FILE",
)
@log_format_option
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
    help="Draw what @adaptive thought in the course of the match to FILE.html.",
    metavar="FILE",
)
@workers_option(2)
@cluster_option
@json_option
def command(
    agents: tuple[str, ...],
    game: str | None,
    log_format: str,
    probabilities: Path | None,
    page: Path | None,
    cluster: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Play every deal in all seatings; print what each agent wins, in thousandths of a big blind per hand.

    An agent is @name (@fold @call @raise @random @equity @chump:maniac @teacher ...) or a bundle's folder or zip, with
    options: models/teacher:mode=argmax,chart=selby. A bot of your own is python:module:factory or
    python:./file.py:factory (an object with probabilities or act), or exec:./start.sh, a program that is started with
    HOST PORT and plays on the ACPC dealer there.

    Example: pipeline match @equity @call --hands 100000 --seed 1
    """
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
    check_log_format(log_format, played)
    options["log"] = log_base(options["log"], log_format)
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
    logs = written_logs(match.logs, log_format, played)
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
        click.echo(f"{name:<30} {match.winnings(i).text(match.game.unit, width=12)}")
    if note := batches_note(match.batches):
        click.echo(note)
    click.echo(f"{match.hands:,} hands of {match.game.name} in {match.seconds:.1f} s")
