"""Shipping of stored strategies: a checked copy with a README and start scripts, as a folder or a zip file.

The strategy is opened and checked before it is copied (`models.shipping` does the same for bundles). The README says
what the bot is, what it was made against, what it wins and risks, and how it is started. The same strategy under the
same name gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.models.artifacts import MANIFEST, README, Shipped, check_replaceable, describe_start, write_copy
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.version import __version__
from pipeline.solving.strategy import (
    STRATEGY,
    counter_facts,
    is_portfolio,
    is_strategy,
    load_small_strategy,
    load_strategy,
    strategy_facts,
    strategy_files,
    strategy_game,
)

OWN_FILES = {MANIFEST, STRATEGY, README, "start.sh"}
"""files of a stored or shipped strategy's folder"""


def check_strategy_target(target: Path, *inputs: Path, portfolio: bool = False) -> None:
    """Refuse to write a strategy, or a portfolio, over anything but an empty folder or a folder of its own kind.

    Parameters: `inputs`, what it is made from; none of them may be `target` or inside it.
    """
    kind = "portfolio" if portfolio else "stored strategy"

    def is_kind(path: Path) -> bool:
        return path.is_dir() and is_strategy(path) and is_portfolio(path) == portfolio

    check_replaceable(target, kind, is_kind, *inputs)
    others = {file.name for file in target.iterdir()} - OWN_FILES if target.is_dir() else set()
    if others:
        raise PipelineError(f"{target} holds more than a {kind}, {min(others)} for one: name another place")


def check_strategy(folder: Path) -> None:
    """Open a stored strategy and check all of it; what is damaged raises `PipelineError`."""
    game = strategy_game(folder)
    if game.hole_cards == 1:
        load_small_strategy(folder, game)
    else:
        load_strategy(folder, game)


def ship_strategy(folder: Path, target: Path, scripts: Mapping[str, str]) -> Shipped:
    """Copy a stored strategy to a folder, or to a zip file by its name; `scripts` are put beside it and can be run."""
    check_strategy(folder)
    if target.exists() and target.resolve() == folder.resolve():
        raise PipelineError(f"{folder} cannot be shipped onto itself: name another place with --out")
    if not (target.is_file() and is_strategy(target)):
        check_strategy_target(target, folder)
    facts = strategy_facts(folder)
    try:
        readme = _readme(facts, counter_facts(facts), target.stem)
    except ValueError as error:
        raise PipelineError(f"{folder} has a damaged {MANIFEST}, {error}: find the counter again") from None
    files = strategy_files(folder) | {README: readme.encode()}
    return write_copy(target, files, scripts)


def _readme(facts: dict[str, Any], counter: dict[str, Any] | None, name: str) -> str:
    """Write the text that goes with a shipped strategy."""
    unit = facts.get("unit", "mbb/h")
    lines = [
        f"# {name}",
        "",
        f"A bot that plays {facts['game']} by a stored strategy. It was made with acpc-pipeline {__version__}"
        + (f" to win from {facts.get('against', 'one opponent')}." if counter else "."),
        "",
        *describe_start(name),
    ]
    if counter:
        base = counter.get("equilibrium") or {}
        rows = [("this strategy", counter), ("the equilibrium that it started from", base)]
        lines += [
            "## What it wins and risks",
            "",
            f"In {unit}: what it wins from the model of its opponent, and what a player who knows it won from it.",
            "",
            "| | wins | exploitable for |",
            "|---|---:|---:|",
            *(f"| {name} | {row['winnings']:.1f} | {row['exploitability']:.1f} |" for name, row in rows if row),
        ]
    return "\n".join(lines).rstrip() + "\n"
