"""`tournament`: rank agents by total bankroll and instant run-off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    AGENTS_GAME,
    adjusted_option,
    cluster_option,
    connected,
    file_kind,
    game_option,
    hands_range,
    json_option,
    seed_option,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import table_text, terminal_width
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

if TYPE_CHECKING:
    from pipeline.arena import rankings


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--hands", type=hands_range(2), default=20_000, show_default=True, help="Hands of each line-up.")
@seed_option()
@game_option(AGENTS_GAME)
@click.option(
    "--cap", type=float, help="Largest loss that counts, mbb/h; otherwise what always folding loses heads-up. 0: none."
)
@click.option(
    "--table",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rank a CSV cross table instead of playing.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write FILE.csv: the cross table with its bootstrap draws, or for three players a row per line-up.",
)
@adjusted_option
@cluster_option
@json_option
def command(
    agents: tuple[str, ...],
    hands: int,
    seed: int,
    game: str | None,
    cap: float | None,
    table: Path | None,
    out: Path | None,
    adjusted: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Let every pair (or three, in games for three) of AGENTS play the same deals, and rank them by both rules.

    Ranks and intervals are those of adjusted results; --json has the plain ones of each line-up too.

    Example: pipeline tournament @equity @call @raise @random --hands 20000

    Example: pipeline tournament --table data/acpc2013/runoff.csv
    """
    from pipeline.agents.names import default_game, plain_name, resolve
    from pipeline.arena import rankings
    from pipeline.arena.duplicate import distinct
    from pipeline.arena.match import THREADS, ClusterTable, play_match, rehearse
    from pipeline.poker.game import find_game
    from pipeline.report import tables

    if out is not None:
        file_kind(out, ".csv")
    plain: list[list[tuple[float, float]]] = []
    if table is not None:
        if agents:
            raise PipelineError("give either agents or --table, not both")
        results = rankings.read_table(table, seed=seed)
        limit = (results.cap or 0.0) if cap is None else cap
    else:
        played = find_game(game) if game else default_game(agents[:2])
        limit = (rankings.folding_loss(played) or 0.0) if cap is None else cap

        players = [resolve(text, played, trusted=True) for text in agents]
        seated = dict(zip(distinct(map(plain_name, agents)), players, strict=True))

        typed = dict(zip(seated, agents, strict=True))

        def play(names: Sequence[str]) -> Any:
            line_up = [seated[name] for name in names]
            workers = ClusterTable.of(there, [typed[name] for name in names], trusted=True) or THREADS
            rehearse(line_up, played, adjusted=adjusted)
            match = play_match(line_up, played, hands=hands, seed=seed, adjusted=adjusted, workers=workers)
            plain.append([(match.mbb_per_hand(i), match.ci95(i)) for i in range(len(names))])
            return match.best_samples_mbb

        with connected(cluster) as there, bar("tournament", "line-ups") as progress:
            results = rankings.play_all(tuple(seated), play, members=played.players, seed=seed, progress=progress)
    ranked = rankings.Tournament.rank(results, limit)
    results, bankroll, runoff = ranked.results, ranked.total_bankroll, ranked.instant_runoff
    if out is not None:
        with replacing(out) as part:
            part.write_text(rankings.table_csv(results), encoding="utf-8")
    if as_json:
        written = ranked.json()
        for lineup, won in zip(written["lineups"], plain, strict=False):
            lineup["plain_mbb_per_hand"], lineup["plain_ci95"] = map(list, zip(*won, strict=True))
        click.echo(json.dumps(written))
        return
    pairs = results.lineups.shape[1] == 2
    click.echo(tables.cross_results(results, bankroll).text(terminal_width()) if pairs else _lineups(results))
    click.echo()
    for ranking in (bankroll, runoff):
        click.echo(tables.ranking_table(ranking).text(terminal_width()))
        click.echo()
    click.echo(tables.rounds(runoff).text(terminal_width()))


def _lineups(results: rankings.Results) -> str:
    """Return the winnings of each member of each line-up: the table of games for three."""
    from pipeline.arena import rankings

    head, rows = rankings.lineup_rows(results)
    return table_text(head, rows, left=results.lineups.shape[1])
