"""`tournament`: rank agents by total bankroll and instant run-off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pipeline import rankings
from pipeline.agents import default_game, plain_name, resolve
from pipeline.arena import distinct, play_match
from pipeline.commands._progress import bar
from pipeline.errors import PipelineError
from pipeline.files import replacing
from pipeline.game import find_game
from pipeline.report.text import aligned


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--hands", type=click.IntRange(2), default=20_000, show_default=True, help="Hands of each line-up.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--game", help="A game file or its name; otherwise the bundles' game, or limit hold'em.")
@click.option(
    "--cap", type=float, help="Largest loss that counts, mbb/h; otherwise what always folding loses heads-up. 0: none."
)
@click.option(
    "--table",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rank a CSV cross table instead of playing.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the cross table as CSV.")
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
def command(
    agents: tuple[str, ...],
    hands: int,
    seed: int,
    game: str | None,
    cap: float | None,
    table: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Let every pair (or three, in games for three) of AGENTS play the same deals, and rank them by both rules.

    Example: python -m pipeline tournament @equity @call @raise @random --hands 20000

    Example: python -m pipeline tournament --table data/acpc2013/runoff.csv
    """
    if table is not None:
        if agents:
            raise PipelineError("give either agents or --table, not both")
        results = rankings.read_table(table, seed=seed)
        limit = 750.0 if cap is None else cap
    else:
        played = find_game(game) if game else default_game(agents[:2])
        limit = (rankings.folding_loss(played) or 0.0) if cap is None else cap

        seated = dict(zip(distinct(map(plain_name, agents)), (resolve(text, played) for text in agents), strict=True))

        def play(names: Sequence[str]) -> Any:
            match = play_match([seated[name] for name in names], played, hands=hands, seed=seed)
            return match.samples_mbb

        with bar("tournament", "line-ups") as progress:
            results = rankings.play_all(tuple(seated), play, members=played.players, seed=seed, progress=progress)
    bankroll = rankings.total_bankroll(results, limit or None)
    runoff = rankings.instant_runoff(results, limit or None)
    if out is not None:
        with replacing(out) as part:
            part.write_text(rankings.table_csv(results), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(rankings.as_dict(results, bankroll, runoff, limit or None)))
        return
    if results.lineups.shape[1] == 2:
        click.echo(_cross(results, [standing.name for standing in bankroll.standings]))
        click.echo()
    for ranking in (bankroll, runoff):
        click.echo(_ranking(ranking))
        click.echo()
    click.echo(_rounds(runoff))


def _cross(results: rankings.Results, order: list[str]) -> str:
    """The cross table in the order of the bankroll."""
    won, half = rankings.cross_table(results)
    index = [results.names.index(name) for name in order]
    rows = [[results.names[i], *("" if i == j else f"{won[i, j]:+.1f}±{half[i, j]:.1f}" for j in index)] for i in index]
    return aligned(["mbb/h of row", *(f"{results.names[i]}" for i in index)], rows)


def _ranking(ranking: rankings.Ranking) -> str:
    """Places, means with intervals, and the chance of the first place."""
    rows = [
        [
            f"{place}.",
            standing.name,
            f"{standing.won.value:+.1f}",
            f"[{standing.won.low:+.1f}, {standing.won.high:+.1f}]",
            f"{100 * ranking.places[place - 1, 0]:.1f} %",
        ]
        for place, standing in enumerate(ranking.standings, start=1)
    ]
    last = "mbb/h in its last count" if ranking.rounds else "mbb/h"
    return aligned([ranking.rule, "", last, "95% interval", "first in"], rows, left=2)


def _rounds(runoff: rankings.Ranking) -> str:
    """Who leaves when, and how sure that is."""
    rows = []
    for number, count in enumerate(runoff.rounds, start=1):
        last, best = count.standings[-1], count.standings[0]
        sure = f"{100 * count.confidence:.1f} %"
        rows.append([str(number), count.eliminated, f"{last.won.value:+.1f}", sure, best.name])
    return aligned(["round", "leaves", "mbb/h", "confidence", "leads"], rows, left=2)
