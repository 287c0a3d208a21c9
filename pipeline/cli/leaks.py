"""`leaks`: where a player loses chips, compared with a reference agent."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli._options import data_option, game_option, json_option, program_name, workers_option
from pipeline.cli._output import print_json, sentence_text, table_text
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.evaluation.leaks import Leaks


@click.command(epilog="Example: pipeline leaks data/sample --agent equity --reference @teacher")
@click.argument("logs", nargs=-1)
@data_option("A dataset instead of logs.", required=False)
@click.option("--agent", required=True, metavar="NAME", help="The player's name in the logs.")
@click.option(
    "--reference", default="@teacher", show_default=True, metavar="AGENT", help="The agent to compare it with."
)
@click.option(
    "--min-decisions",
    type=click.IntRange(1, 10**9),
    default=100,
    show_default=True,
    help="Decisions that a spot needs to be listed.",
)
@click.option(
    "--spots", type=click.IntRange(1, 10_000), default=12, show_default=True, help="How many spots are printed."
)
@game_option()
@workers_option
@json_option
def command(
    logs: tuple[str, ...],
    data: Path | None,
    agent: str,
    reference: str,
    min_decisions: int,
    spots: int,
    game: str | None,
    workers: int,
    as_json: bool,
) -> None:
    """List the spots in which a player of LOGS loses chips, the worst first.

    LOGS are files, folders, patterns, URLs or archives. A spot is a street, a position, the raises before the street
    and the betting on it. In each, hands of the same strength are compared: how often the player and the reference
    choose each action, and what the player's actions earned. No solver is needed.
    """
    from pipeline.agents.names import resolve
    from pipeline.dataset.load import select_rows
    from pipeline.evaluation.leaks import find_leaks
    from pipeline.ingestion.options import options
    from pipeline.ingestion.run import ingest

    if bool(logs) == (data is not None):
        raise PipelineError("give either logs or --data DIR")
    with tempfile.TemporaryDirectory() as folder:
        if data is None:
            data = Path(folder) / "rows"
            with bar("leaks", "hands") as progress:
                ingest(logs, data, options(game=game), workers=workers, progress=progress)
        rules = select_rows(data, [agent], game=game).game
        with bar("leaks", "decisions") as progress:
            leaks = find_leaks(
                data, agent, resolve(reference, rules, trusted=True), min_decisions=min_decisions, progress=progress
            )
    if as_json:
        print_json(leaks.json())
    else:
        click.echo(_text(leaks, spots))


def _text(leaks: Leaks, count: int) -> str:
    """Return the summary, the table of the worst spots and the hands to replay."""
    from pipeline.report.text import percent, signed

    won, difference = leaks.won, leaks.difference
    more = "more" if difference.value <= 0 else "less"
    lines = [
        sentence_text(
            f"{leaks.agent} wins {signed(won.value, 1)} ± {won.ci95 or 0:.1f} mbb/h in {leaks.hands:,} hands with a "
            f"decision. With the choices of {leaks.reference}, one at a time, it would win "
            f"{abs(difference.value):.1f} ± {difference.ci95 or 0:.1f} mbb/h {more} in the spots below."
        )
    ]
    head = ["", "street", "position", "raises before", "betting", "decisions", "mbb/h", "±"]
    head += [leaks.agent, leaks.reference, "untried", "worst hands"]
    rows = []
    for number, leak in enumerate(leaks.spots[:count], 1):
        street, position, earlier, betting = leak.spot
        row = [f"{number}{' *' if leak.is_certain else ''}", street, position, str(earlier), betting]
        row += [f"{leak.decisions:,}", signed(leak.difference.value, 1), f"{leak.difference.ci95 or 0:.1f}"]
        row += [_mix(leak.played), _mix(leak.reference), percent(leak.untried, 0) + " %", leak.groups[0].hands]
        rows.append(row)
    lines += ["", table_text(head, rows, words=5), ""]
    lines.append(
        sentence_text(
            f"mbb/h: won more than with the other's choices there, per hand of all hands; * {leaks.certain} of "
            f"{len(leaks)} spots lose by more than chance."
        )
    )
    examples = [(number, leak.examples[0]) for number, leak in enumerate(leaks.spots[:count], 1) if leak.is_certain]
    if examples:
        lines += ["", "To replay a hand of each:"]
        lines += [
            f"  {number}  {program_name()} show hand {file} {hand}  (line {line})"
            for number, (file, line, hand) in examples
        ]
    if leaks.left_out:
        lines += ["", f"{leaks.left_out:,} decisions are left out: their cards or results are not known."]
    return "\n".join(lines)


def _mix(shares: dict[str, float]) -> str:
    """Return the shares of labels in percent.

    >>> _mix({"f": 0.25, "c": 0.5, "r": 0.25})
    'f25 c50 r25'
    """
    return " ".join(f"{label}{100 * share:.0f}" for label, share in shares.items() if share >= 0.005)
