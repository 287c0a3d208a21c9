"""`cache`: what is kept on this machine (compiled code, strength tables, clusters), and the bundled preflop table."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import numpy as np

from pipeline.commands._progress import bar
from pipeline.files import replacing
from pipeline.kernels import cache_root

KEPT = {"kernels": "compiled code", "strength": "strength tables", "clusters": "clusters"}


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show what is kept on this machine and where; PIPELINE_CACHE moves it.

    Example: python -m pipeline cache
    """
    if context.invoked_subcommand is not None:
        return
    click.echo(cache_root())
    for name, what in KEPT.items():
        paths = [path for path in (cache_root() / name).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in paths)
        click.echo(f"  {name:<9} {size / 1e6:8.1f} MB  {what}")


@command.command()
def clear() -> None:
    """Delete what is kept; it is made again when needed.

    Example: python -m pipeline cache clear
    """
    for name in KEPT:
        shutil.rmtree(cache_root() / name, ignore_errors=True)
    click.echo(f"cleared {cache_root()}")


@command.command()
def build() -> None:
    """Build the flop and turn strength tables now (290 MB, a minute on two cores).

    Example: python -m pipeline cache build
    """
    from pipeline.strength import ensure_tables, table_folder

    with bar("strength tables") as progress:
        ensure_tables(progress)
    click.echo(f"strength tables are in {table_folder()}")


@command.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .npz file to write.")
def preflop(out: Path) -> None:
    """Compute the bundled preflop table again: 169 x 169 exact match-ups and strengths (half a minute).

    Example: python -m pipeline cache preflop --out pipeline/resources/preflop.npz
    """
    from pipeline.strength.matchups import build as build_matchups

    with bar("match-ups") as progress:
        arrays = build_matchups(progress)
    with replacing(out) as beside, beside.open("wb") as file:
        np.savez_compressed(file, win=arrays["win"], tie=arrays["tie"], strength=arrays["strength"])
    click.echo(f"wrote {out}")
