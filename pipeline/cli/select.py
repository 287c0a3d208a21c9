"""`select`: the thesis's three cycles over trained models, and which measure predicts who wins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click

from pipeline.cli._options import (
    adjusted_option,
    cluster_option,
    connected,
    data_option,
    hands_range,
    json_option,
    seed_option,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import table_text


@click.command(epilog="Example: pipeline select out/models --data out/rows --hands 20000")
@click.argument("models", nargs=-1, required=True)
@click.option("--hands", type=hands_range(2), default=20_000, show_default=True, help="Hands of each match.")
@data_option("A dataset: rank correlation of measures with winnings.", required=False)
@click.option("--all-rows", is_flag=True, help="Score on all rows: for data the models were not trained on.")
@click.option(
    "--probabilities", type=click.Path(path_type=Path), multiple=True, help="True probabilities (repeatable)."
)
@click.option(
    "--chart", "charts", multiple=True, help="Charts of cycle 3: own, a name, a file or a bundle (repeatable)."
)
@click.option("--weak", multiple=True, default=("@call", "@random"), show_default=True, help="Whom to exploit.")
@click.option("--cap", type=float, default=750.0, show_default=True, help="Largest loss that counts, mbb/h. 0: none.")
@seed_option()
@adjusted_option
@cluster_option
@json_option
def command(
    models: tuple[str, ...],
    hands: int,
    data: Path | None,
    charts: tuple[str, ...],
    weak: tuple[str, ...],
    cap: float,
    seed: int,
    adjusted: bool,
    cluster: str | None,
    as_json: bool,
    **scored: Any,
) -> None:
    """Play MODELS (bundles or folders of bundles) against each other in three cycles and name the ones to send.

    Cycle 1: one model for all streets or one per street. Cycle 2: algorithms. Cycle 3: corpus x starting-hand chart.
    """
    from pipeline.agents.names import default_game, resolve
    from pipeline.arena.match import THREADS, ClusterTable, play_match
    from pipeline.evaluation.selection import find_entrants, model_measures, rank_correlation, restrict_results, select

    entrants = find_entrants(models)
    game = default_game([entrants[0].agent])
    matches = 0
    played: list[dict[str, Any]] = []
    seated = cache(lambda name: resolve(name, game))

    with connected(cluster) as there, bar("select", "matches") as progress:

        def play(names: Sequence[str]) -> Any:
            nonlocal matches
            matches += 1
            total = max(len(entrants) * (len(entrants) + 2 * len(weak)), matches)
            progress(matches, total)
            players = [seated(name) for name in names]
            workers = ClusterTable.of(there, names) or THREADS
            match = play_match(players, game, hands=hands, seed=seed, adjusted=adjusted, workers=workers)
            played.append({"agents": list(names), **match.row()})
            return match.best_samples_mbb

        selection = select(entrants, play, charts=charts or ("own",), weak=weak, cap=cap or None, seed=seed)
    correlations = {}
    if data is not None:
        measured = model_measures(data, [entry.agent for entry in entrants], seed=seed, **scored)
        own = restrict_results(selection.field, [entry.spec for entry in entrants])
        correlations = {
            "each other": rank_correlation(measured, own, cap or None),
            "each other and the weak": rank_correlation(measured, selection.field, cap or None),
        }
    if as_json:
        click.echo(json.dumps({**selection.json(correlations), "matches": played}))
        return
    _print_selection(selection, correlations)


def _print_selection(selection: Any, correlations: dict[str, Any]) -> None:
    """Print the cycles, the winners and the correlations."""
    for cycle in selection.cycles:
        click.echo(f"cycle {cycle.number}, {cycle.group}")
        rows = [
            [
                row_.name,
                f"{row_.won.value:+.1f}",
                f"[{row_.won.low:+.1f}, {row_.won.high:+.1f}]",
                "stays" if row_.name in cycle.kept else "",
            ]
            for row_ in cycle.ranking.standings
        ]
        click.echo(table_text(["  model", "mbb/h", "95% interval", ""], [[f"  {row[0]}", *row[1:]] for row in rows]))
        click.echo()
    runoff, bankroll = selection.runoff, selection.bankroll
    click.echo(f"to instant run-off: {runoff.standings[0].name} (first in {100 * runoff.places[0, 0]:.0f} % of draws)")
    click.echo(
        f"to total bankroll:  {bankroll.standings[0].name} (first in {100 * bankroll.places[0, 0]:.0f} % of draws)"
    )
    for against, rows in correlations.items():
        if rows:
            click.echo(f"\nrank correlation with winnings against {against} ({rows[0].models} models; -1: foretells)")
            by_value = sorted(rows, key=lambda row_: row_.spearman.value)
            cells = [
                [row_.measure, f"{row_.spearman.value:+.2f}", f"[{row_.spearman.low:+.2f}, {row_.spearman.high:+.2f}]"]
                for row_ in by_value
            ]
            click.echo(table_text(["measure", "Spearman", "95% interval"], cells))
