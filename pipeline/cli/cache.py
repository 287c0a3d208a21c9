"""`cache`: what is kept on this machine (compiled code, tables, clusters), and the bundled tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.cli._progress import bar
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress


def _sizes() -> dict[str, tuple[int, int]]:
    """How many files and bytes each kind of kept things has."""
    from pipeline.runtime.diskcache import KEPT, cache_root

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
    from pipeline.runtime.diskcache import KEPT, cache_root

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
    from pipeline.runtime.diskcache import KEPT, cache_root

    for name in KEPT:
        shutil.rmtree(cache_root() / name, ignore_errors=True)
    click.echo(f"cleared {cache_root()}")


@command.command()
def build() -> None:
    """Build the flop and turn strength tables now (290 MB, a minute on two cores).

    Example: pipeline cache build
    """
    from pipeline.poker.strength.board_tables import ensure_tables, table_folder

    with bar("strength tables") as progress:
        ensure_tables(progress)
    click.echo(f"strength tables are in {table_folder()}")


@command.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .npz file to write.")
def preflop(out: Path) -> None:
    """Compute the bundled preflop table again: 169 x 169 exact match-ups and strengths (half a minute).

    Example: pipeline cache preflop --out pipeline/poker/resources/preflop.npz
    """
    from pipeline.poker.strength.matchups import build as build_matchups

    _write_table(build_matchups, out)


@command.command(name="headsup")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .npz file to write.")
def headsup_table(out: Path) -> None:
    """Compute the bundled table of two starting hands against each other again (five minutes).

    Example: pipeline cache headsup --out pipeline/poker/resources/headsup.npz
    """
    from pipeline.poker.headsup import build as build_headsup

    _write_table(build_headsup, out)


def _write_table(compute: Callable[[Progress], dict[str, Any]], out: Path) -> None:
    """Compute a bundled table's arrays and write them."""
    import numpy as np

    with bar("table") as progress:
        arrays = compute(progress)
    with replacing(out) as beside, beside.open("wb") as file:
        np.savez_compressed(file, **arrays)
    click.echo(f"wrote {out}")


@command.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The .npz file to write.")
@click.option("--hands", type=click.IntRange(1000), default=150_000, show_default=True, help="Hands of each match.")
def luck(out: Path, hands: int) -> None:
    """Find again what luck is worth among typical agents, from which adjusted results start (a minute).

    Example: pipeline cache luck --out pipeline/arena/resources/luck.npz
    """
    from pipeline.arena.adjusting import typical_luck

    _write_table(partial(typical_luck, hands), out)
