"""`cache`: what is kept on this machine (compiled code, tables, clusters), and the bundled preflop table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click

from pipeline.commands._progress import bar
from pipeline.files import replacing


def _sizes() -> dict[str, tuple[int, int]]:
    """How many files and bytes each kind of kept things has."""
    from pipeline.diskcache import KEPT, cache_root

    found = {}
    for name in KEPT:
        paths = [path for path in (cache_root() / name).rglob("*") if path.is_file()]
        found[name] = len(paths), sum(path.stat().st_size for path in paths)
    return found


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show what is kept on this machine and where; PIPELINE_CACHE moves it.

    Everything kept is made again when it is missing, damaged or of another version.

    Example: pipeline cache
    """
    from pipeline.diskcache import KEPT, cache_root

    if context.invoked_subcommand is not None:
        return
    if as_json:
        kept = [
            {"name": name, "what": KEPT[name], "files": files, "bytes": size}
            for name, (files, size) in _sizes().items()
        ]
        click.echo(json.dumps({"folder": str(cache_root()), "kept": kept}))
        return
    click.echo(cache_root())
    for name, (_, size) in _sizes().items():
        click.echo(f"  {name:<9} {size / 1e6:8.1f} MB  {KEPT[name]}")


@command.command()
def clear() -> None:
    """Delete what is kept; it is made again when needed.

    Example: pipeline cache clear
    """
    from pipeline.diskcache import KEPT, cache_root

    for name in KEPT:
        shutil.rmtree(cache_root() / name, ignore_errors=True)
    click.echo(f"cleared {cache_root()}")


@command.command()
def build() -> None:
    """Build the flop and turn strength tables now (290 MB, a minute on two cores).

    Example: pipeline cache build
    """
    from pipeline.strength import ensure_tables, table_folder

    with bar("strength tables") as progress:
        ensure_tables(progress)
    click.echo(f"strength tables are in {table_folder()}")


@command.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .npz file to write.")
def preflop(out: Path) -> None:
    """Compute the bundled preflop table again: 169 x 169 exact match-ups and strengths (half a minute).

    Example: pipeline cache preflop --out pipeline/resources/preflop.npz
    """
    import numpy as np

    from pipeline.strength.matchups import build as build_matchups

    with bar("match-ups") as progress:
        arrays = build_matchups(progress)
    with replacing(out) as beside, beside.open("wb") as file:
        np.savez_compressed(file, win=arrays["win"], tie=arrays["tie"], strength=arrays["strength"])
    click.echo(f"wrote {out}")
