"""Group the hole cards of a street by their distribution of strength.

    python -m tools.clusters preflop 9

In go a street and a number of clusters; out comes a table of the starting hands, or the centroids in a file.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from pipeline.cli._options import FILE, json_option, out_option, seed_option
from pipeline.cli._output import echo_drawing, file_kind, print_json
from pipeline.cli._progress import bar
from pipeline.cli.main import main
from pipeline.poker.cards import class_text
from pipeline.poker.starting_hands import preflop_rows
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.poker.strength.hand_clusters import STREETS, assign_clusters, fit_clusters
from pipeline.poker.strength.rows import STRENGTH
from pipeline.report.grids import numbers_text


@click.command()
@click.argument("street", type=click.Choice(STREETS))
@click.argument("size", type=click.IntRange(1))
@seed_option
@out_option("Write the centroids to FILE.safetensors.", FILE, required=False)
@json_option
def command(street: str, size: int, seed: int, out: Path | None, as_json: bool) -> None:
    """Make SIZE clusters of all hole cards of a STREET (preflop, flop, turn, river) by k-means under the earth mover's
    distance; preflop they are drawn as the 13x13 matrix, suited hands above the diagonal.

    Flop and turn first build the strength tables, once (a minute).

    Example: python -m tools.clusters preflop 9
    """
    if out is not None:
        file_kind(out, ".safetensors")
    number = STREETS.index(street)
    if number in (1, 2):
        with bar("strength tables") as progress:
            ensure_tables(progress)
    start = time.monotonic()
    with bar(f"{size} {street} clusters") as progress:
        clusters = fit_clusters(number, size, seed=seed, progress=progress)
    seconds = time.monotonic() - start
    if out is not None:
        clusters.save(out)
    numbers = assign_clusters(clusters, preflop_rows().view(STRENGTH).ravel()) if number == 0 else None
    if as_json:
        about = {"street": street, "size": size, "seed": seed, "cost": clusters.cost, "seconds": seconds}
        if numbers is not None:
            about["clusters"] = {class_text(index): int(cluster) for index, cluster in enumerate(numbers)}
        print_json(about)
        return
    if numbers is not None:
        echo_drawing(numbers_text(numbers, colour=sys.stdout.isatty()))
    click.echo(f"{size} {street} clusters, mean distance {clusters.cost:.4f}{f', written to {out}' if out else ''}")


if __name__ == "__main__":
    main(command=command, name="python -m tools.clusters")
