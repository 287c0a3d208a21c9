"""`--log-format` of the commands that play: hands written as ACPC logs or as hand histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import check_name

if TYPE_CHECKING:
    from pipeline.poker.game import Game

F = TypeVar("F", bound=Callable[..., Any])


def log_format_option(function: F) -> F:
    """Add `--log-format acpc|phh`, the form of the hands of --log."""
    return click.option(
        "--log-format",
        type=click.Choice(["acpc", "phh"]),
        default="acpc",
        show_default=True,
        help="phh: write hand histories (.phhs) instead of ACPC logs.",
    )(function)


def check_log_format(form: str, game: Game) -> None:
    """Refuse hand histories of games that they cannot tell before anything is played."""
    if form == "phh" and not game.is_holdem:
        raise PipelineError(f"--log-format phh: hand histories tell hold'em, not {game.name}; leave it out")


def log_base(log: Path | None, form: str) -> Path | None:
    """Return the start of the names of a match's logs: hand histories get their `.phhs` once, behind the seating."""
    if log is not None:
        check_name(log)
    return log.with_suffix("") if log is not None and form == "phh" and log.suffix == ".phhs" else log


def written_logs(logs: Sequence[Path], form: str, game: Game) -> list[Path]:
    """Return the logs of a match in the chosen format: ACPC logs are turned into hand histories and removed."""
    if form == "acpc":
        return list(logs)
    from pipeline.formats.histories.convert import convert_log

    histories = []
    for log in logs:
        histories.append(log.with_suffix(".phhs"))
        convert_log(log, game, histories[-1])
        if histories[-1] != log:  # a log that is called .phhs has become its own history
            log.unlink()
    return histories
