"""`cache`: what is kept on this machine (compiled code, tables, clusters)."""

from __future__ import annotations

import click

from pipeline.cli._options import json_option
from pipeline.cli._output import print_json
from pipeline.cli._progress import bar


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show what is kept on this machine and where; PIPELINE_CACHE moves it.

    Everything kept is made again when it is missing, damaged or of another version.

    Example: pipeline cache
    """
    from pipeline.runtime.diskcache import CACHE_FOLDERS, cache_root, cache_sizes

    if context.invoked_subcommand is not None:
        return
    if as_json:
        entries = [
            {"name": name, "what": CACHE_FOLDERS[name], "files": files, "bytes": size}
            for name, (files, size) in cache_sizes().items()
        ]
        print_json({"folder": str(cache_root()), "kept": entries})
        return
    click.echo(cache_root())
    for name, (_, size) in cache_sizes().items():
        click.echo(f"  {name:<9} {size / 1e6:8.1f} MB  {CACHE_FOLDERS[name]}")


@command.command()
def clear() -> None:
    """Delete what is kept, and nothing else; it is made again when needed.

    Files that this program did not make stay, and a folder of PIPELINE_CACHE that had other files before is refused.

    Example: pipeline cache clear
    """
    from pipeline.runtime.diskcache import cache_root, clear_cache

    cleared = clear_cache()
    click.echo(f"cleared {cache_root()}")
    for name, (files, size) in cleared.removed.items():
        if files:
            click.echo(f"  removed {files:,} file{'' if files == 1 else 's'} of {name}, {size / 1e6:.1f} MB")
    for path in cleared.foreign:
        click.echo(f"  left, because it is not of this program: {str(path)!r}", err=True)


@command.command("build")
def build_tables() -> None:
    """Build the flop and turn strength tables now (290 MB, a minute on two cores).

    Example: pipeline cache build
    """
    from pipeline.poker.strength.board_tables import ensure_tables, table_folder

    with bar("strength tables") as progress:
        ensure_tables(progress)
    click.echo(f"strength tables are in {table_folder()}")
