"""`select`: the thesis's three cycles over trained models, and which measure predicts who wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import click

from pipeline.cli._options import (
    Finite,
    adjusted_option,
    cluster_option,
    connected,
    data_option,
    hands_range,
    json_option,
    seed_option,
    truth_options,
)
from pipeline.cli._progress import bar
from pipeline.cli._tables import print_json, sentence_text, table_text


@click.command(epilog="Example: pipeline select out/models --data out/rows --hands 20000")
@click.argument("models", nargs=-1, required=True)
@click.option("--hands", type=hands_range(2), default=20_000, show_default=True, help="Hands of each match.")
@data_option("A dataset: rank correlation of measures with winnings.", required=False)
@truth_options
@click.option(
    "--chart", "charts", multiple=True, help="Charts of cycle 3: own, a name, a file or a bundle (repeatable)."
)
@click.option("--weak", multiple=True, default=("@call", "@random"), show_default=True, help="Whom to exploit.")
@click.option(
    "--cap", type=Finite(0), default=750.0, show_default=True, help="Largest loss that counts, mbb/h; 0: none."
)
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
    from pipeline.arena.tournament import LineUps
    from pipeline.evaluation.selection import find_entrants, model_measures, rank_correlation, restrict_results, select
    from pipeline.models.measures import batches_note

    entrants = find_entrants(models)
    game = default_game([entrants[0].agent])
    played: list[list[str]] = []
    resolved = cache(lambda name: resolve(name, game))
    for name in (*weak, *(replace(entry, chart=chart).spec for entry, chart in product(entrants, charts))):
        resolved(name)  # one that cannot play is refused before anything is played
    with connected(cluster) as workers, bar("select", "matches") as progress:
        line_ups = LineUps(game, resolved, hands, seed, adjusted, workers)

        def play(names: Sequence[str]) -> Any:
            # how many pairs will meet is known only as the cycles go on: at least all of the first
            played.append(list(names))
            progress(len(played), max(len(entrants) * (len(entrants) + 2 * len(weak)), len(played)))
            return line_ups(names)

        selection = select(
            *(entrants, play),
            charts=charts or ("own",),
            weak=weak,
            cap=cap or None,
            seed=seed,
            learning=line_ups.learning(weak),
        )
    correlations = {}
    notes: list[str] = []
    if data is not None:
        measured, notes = model_measures(data, [entry.agent for entry in entrants], seed=seed, **scored)
        own = restrict_results(selection.field, [entry.spec for entry in entrants])
        correlations = {
            "each other": rank_correlation(measured, own, cap or None),
            "each other and the weak": rank_correlation(measured, selection.field, cap or None),
        }
    if as_json:
        matches = [
            {"agents": names, **members[0].json()} for names, members in zip(played, line_ups.winnings, strict=True)
        ]
        print_json({**selection.json(correlations), "matches": matches, "notes": notes})
        return
    _print_selection(selection, correlations)
    for note in filter(None, [batches_note(selection.field.batches), *notes]):
        click.echo(sentence_text(note))


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
