"""`cache`: what is kept on this machine (compiled code, tables, clusters)."""

from __future__ import annotations

import json
import shutil

import click

from pipeline.cli._options import json_option
from pipeline.cli._progress import bar


def _cache_sizes() -> dict[str, tuple[int, int]]:
    """Return the number of files and bytes of each part of the cache."""
    from pipeline.runtime.diskcache import CACHE_FOLDERS, cache_root

    sizes = {}
    for name in CACHE_FOLDERS:
        paths = [path for path in (cache_root() / name).rglob("*") if path.is_file()]
        sizes[name] = len(paths), sum(path.stat().st_size for path in paths)
    return sizes


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show what is kept on this machine and where; PIPELINE_CACHE moves it.

    Everything kept is made again when it is missing, damaged or of another version.

    Example: pipeline cache
    """
    from pipeline.runtime.diskcache import CACHE_FOLDERS, cache_root

    if context.invoked_subcommand is not None:
        return
    if as_json:
        entries = [
            {"name": name, "what": CACHE_FOLDERS[name], "files": files, "bytes": size}
            for name, (files, size) in _cache_sizes().items()
        ]
        click.echo(json.dumps({"folder": str(cache_root()), "kept": entries}))
        return
    click.echo(cache_root())
    for name, (_, size) in _cache_sizes().items():
        click.echo(f"  {name:<9} {size / 1e6:8.1f} MB  {CACHE_FOLDERS[name]}")


@command.command()
def clear() -> None:
    """Delete what is kept; it is made again when needed.

    Example: pipeline cache clear
    """
    from pipeline.runtime.diskcache import CACHE_FOLDERS, cache_root

    for name in CACHE_FOLDERS:
        shutil.rmtree(cache_root() / name, ignore_errors=True)
    click.echo(f"cleared {cache_root()}")


@command.command("build")
def build_tables() -> None:
    """Build the flop and turn strength tables now (290 MB, a minute on two cores).

    Example: pipeline cache build
    """
    from pipeline.poker.strength.board_tables import ensure_tables, table_folder

    with bar("strength tables") as progress:
        ensure_tables(progress)
    click.echo(f"strength tables are in {table_folder()}")
