"""`solve spot`: two ranges on a board, solved, with locks; its table and files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import STEPS, Finite, game_option, json_option, workers_option
from pipeline.cli._output import print_json, table_text
from pipeline.cli._progress import ProgressText
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

if TYPE_CHECKING:
    from pipeline.solving.spot_solution import SpotNode, SpotSolution

SPOT_GAME = "The game of --after and of AGENTs.  [default: the AGENT's, or no-limit hold'em for two]"
PLAYERS = ("oop", "ip")
MIN_SHARE = 5e-4
"""a class of hands that is rarer than this in the range is left out of the table"""
POSITIVE = Finite(0, min_open=True)


@click.command("spot")
@click.option("--board", help="Open cards, like 2c7d9hTsJs; taken from --after where that is a MATCHSTATE: line.")
@click.option(
    "--range",
    "ranges",
    multiple=True,
    help="Give it twice: out of position, then in position. Text like 22+,A2s+,KTo+,QQ:0.5, or an AGENT, whose range "
    "at --after is taken.",
)
@click.option("--pot", type=POSITIVE, help="Chips in the pot.  [default: that of --after]")
@click.option("--stack", type=Finite(0), help="Chips behind, of the shorter player.  [default: likewise]")
@click.option(
    "--sizes",
    multiple=True,
    default=("0.33,0.75,1.5",),
    show_default=True,
    help="Bets in pots, a for all-in; after oop:, ip:, flop:, turn: or river: for these alone; repeatable.",
)
@click.option("--raise-sizes", multiple=True, help="Raises in pots after a call, likewise.  [default: --sizes]")
@click.option("--raises", type=click.IntRange(0, 20), default=2, show_default=True, help="Raises of a bet, per street.")
@click.option(
    "--all-in",
    type=Finite(0),
    default=0.15,
    show_default=True,
    help="A bet that leaves at most this share of the pot behind is all-in.",
)
@click.option(
    "--target",
    type=POSITIVE,
    default=0.005,
    show_default=True,
    help="Stop at this exploitability, in shares of the pot.",
)
@click.option("--iterations", type=STEPS, default=10_000, show_default=True, help="Iterations at most.")
@click.option(
    "--lock",
    "locks",
    multiple=True,
    metavar="oop=|ip=AGENT|FILE.json",
    help="Hold a player to an AGENT's play, or to mixes by line of betting; the other answers it best.",
)
@click.option("--after", help="The betting that led to the spot, like r300c/, or a dealer's MATCHSTATE: line of it.")
@game_option(SPOT_GAME)
@click.option(
    "--at",
    "line",
    default="",
    metavar="BETTING[:CARDS]",
    help="Show the table at this betting, like cr75, and the cards that came since, like cr75c/:Ts.  [default: none]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Save the solution to a folder, or the table to FILE.csv or FILE.json.",
)
@click.option(
    "--memory", type=POSITIVE, default=8.0, show_default=True, help="Gigabytes that the solve may take at most."
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file from which an interrupted run goes on.",
)
@workers_option
@json_option
def spot_command(**options: Any) -> None:
    """Solve a spot of no-limit hold'em from the flop, turn or river on: two ranges, a pot, stacks, sizes of bets.

    Nothing is sampled or abstracted. With --lock the answer is the best response to what a player does, with its risk.

    Example: pipeline solve spot --board 2c7d9hTsJs --range 22+,A2s+,KTo+ --range QQ+,AKs:0.5 --pot 100 --stack 300
    """
    out: Path | None = options["out"]
    if out is not None and out.suffix.lower() not in ("", ".csv", ".json"):
        raise PipelineError(f"--out {out}: name a folder, or a file that ends in .csv or .json")
    solution = _solve(**options)
    node = solution.node(*_line_and_cards(options["line"]))
    if out is not None:
        _write(out, solution, node)
    if options["as_json"]:
        print_json(_about(solution, node))
        return
    click.echo(_table(node))
    click.echo(_summary(solution) + (f"; written to {out}" if out is not None else ""))


def _solve(
    *,
    board: str | None,
    ranges: tuple[str, ...],
    pot: float | None,
    stack: float | None,
    target: float,
    locks: tuple[str, ...],
    after: str | None,
    game: str | None,
    **options: Any,
) -> SpotSolution:
    """Solve the spot that the options describe."""
    from pipeline.api.spots import prepare_spot
    from pipeline.poker.cards import parse_cards
    from pipeline.solving.spot_solution import check_solution_target, find_node, run_spot
    from pipeline.solving.spot_tree import parse_menu

    if len(ranges) != 2:
        raise PipelineError(f"--range is there {len(ranges)} times: name two, first that of the player out of position")
    if after is not None and after.startswith("MATCHSTATE:") and board is not None:
        raise PipelineError("the MATCHSTATE: line of --after has the board: leave out --board")
    fixed = {}
    for text in locks:
        who, equals, source = text.partition("=")
        if who not in PLAYERS or not equals or not source:
            raise PipelineError(f"--lock {text}: write oop=AGENT, ip=AGENT, oop=FILE.json or ip=FILE.json")
        if who in fixed:
            raise PipelineError(f"--lock {who} is there twice: one strategy is enough")
        fixed[who] = source
    spot, mixes = prepare_spot(
        board,
        ranges,
        pot=pot,
        stack=stack,
        menu=parse_menu(options["sizes"], options["raise_sizes"], options["raises"], options["all_in"]),
        locks=fixed,
        after=after,
        game=game,
        trusted=True,
    )
    line, cards = _line_and_cards(options["line"])
    find_node(spot, spot.tree(), line, parse_cards(cards).tolist())  # before the work, not after
    if options["out"] is not None and not options["out"].suffix:
        check_solution_target(options["out"])
    progress = ProgressText()
    try:
        return run_spot(
            spot,
            target=target,
            locks=mixes,
            workers=options["workers"],
            max_memory=options["memory"],
            max_iterations=options["iterations"],
            checkpoint=options["checkpoint"],
            report=lambda iteration, rest: progress.show(
                f"iteration {iteration:,}, exploitability {rest:.3%} of the pot"
            ),
        )
    finally:
        progress.close()


def _line_and_cards(text: str) -> tuple[str, str]:
    """Return the betting and the cards of `--at`."""
    line, _, cards = text.partition(":")
    return line, cards


def _about(solution: SpotSolution, node: SpotNode) -> dict[str, Any]:
    """Return what --json prints."""
    about = {"game": "spot", "players": 2, **solution.figures(), "line": node.line, "player": None, "actions": {}}
    if node.player is not None:
        about["player"] = PLAYERS[node.player]
        about["actions"] = dict(zip(node.names, node.frequencies().tolist(), strict=True))
    return about


def _hands(node: SpotNode) -> Iterator[dict[str, Any]]:
    """Yield a row per holding of the player to act, or of the one out of position where a card comes next."""
    from pipeline.solving.spot_solution import holding_text

    player = node.player or 0
    for place, number in enumerate(node.holdings[player].tolist()):
        row = {
            "hand": holding_text(number),
            "reach": float(node.reach[player][place]),
            "equity": _finite(node.equities[player][place]),
            "value": _finite(node.values[player][place]),
        }
        if node.player is not None:
            row |= {name: float(share) for name, share in zip(node.names, node.mix[place], strict=True)}
        yield row


def _finite(number: float) -> float | None:
    return None if number != number else float(number)


def _write(path: Path, solution: SpotSolution, node: SpotNode) -> None:
    """Write the solution to a folder, or the hands of a node to a file."""
    kind = path.suffix.lower()
    if kind == "":
        solution.save(path)
        return
    rows = list(_hands(node))
    with replacing(path) as beside:
        if kind == ".json":
            beside.write_text(json.dumps({**_about(solution, node), "hands": rows}, indent=1) + "\n", encoding="utf-8")
        else:
            with beside.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)


def _table(node: SpotNode) -> str:
    """Return a table of the node by class of hands: share of the range, equity, value and mix."""
    import numpy as np

    from pipeline.poker.cards import class_text, start_class
    from pipeline.solving.spot_cards import PAIRS
    from pipeline.solving.spot_solution import compatible

    player = node.player or 0
    weights = node.reach[player] * compatible(node, player)
    total = weights.sum()
    classes = np.array([start_class(int(high), int(low)) for high, low in PAIRS[node.holdings[player]]])
    rows = []
    for index in np.unique(classes).tolist():
        own = np.where(classes == index, weights, 0.0)
        if own.sum() <= MIN_SHARE * total:
            continue

        def mean(values: Any, own: Any = own) -> float:
            return float(np.where(own > 0, own * values, 0.0).sum() / own.sum())

        mixes = [f"{mean(node.mix[:, action]):.1%}" for action in range(len(node.names))]
        share, equity = f"{own.sum() / total:.1%}", f"{mean(node.equities[player]):.1%}"
        rows.append([class_text(index), share, equity, f"{mean(node.values[player]):.2f}", *mixes])
    return table_text(["hand", "of range", "equity", "value", *node.names], rows)


def _summary(solution: SpotSolution) -> str:
    """Return the figures of the whole spot in sentences."""
    pot = solution.spot.pot
    text = (
        f"out of position {solution.value[0] * pot:.2f} of {pot:g} chips (equity {solution.equity[0]:.1%}), in "
        f"position {solution.value[1] * pot:.2f}; exploitability {solution.exploitability:.3%} of the pot after "
        f"{solution.iterations:,} iterations in {solution.seconds:.1f} s"
    )
    for player, risk in enumerate(solution.risk):
        worst = solution.worst_case[player]
        if risk is not None and worst is not None:
            free = solution.free_value[player] if solution.free_value else 0.0
            who, other = ("out of position", "in position")[:: 1 - 2 * player]
            text += (
                f"\nagainst free play the answer {who} is worth {worst * pot:.2f} at least, where an equilibrium is "
                f"worth {free * pot:.2f}: it risks {risk:.2%} of the pot if the player {other} changes"
            )
    return text
