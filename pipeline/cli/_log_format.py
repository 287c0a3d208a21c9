"""`--log-format` of the commands that play: how the hands of a match are written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipeline.runtime.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.poker.game import Game

F = TypeVar("F", bound=Callable[..., Any])


def log_format_option(function: F) -> F:
    """`--log-format acpc|phh`: how the hands of --log are written."""
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
    """What the names of a match's logs begin with: hand histories get their `.phhs` once, behind the seating."""
    return log.with_suffix("") if log is not None and form == "phh" and log.suffix == ".phhs" else log


def written_logs(logs: Sequence[Path], form: str, game: Game) -> list[Path]:
    """The logs of a match in the format that was asked for: ACPC logs become hand histories and are removed."""
    if form == "acpc":
        return list(logs)
    from pipeline.formats.histories.convert import convert_log

    found = []
    for log in logs:
        found.append(log.with_suffix(".phhs"))
        convert_log(log, game, found[-1])
        if found[-1] != log:  # a log that is called .phhs has become its own history
            log.unlink()
    return found
