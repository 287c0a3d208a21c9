"""`ship`: copy a bundle with all it needs to play."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.client import start_script
from pipeline.models.shipping import ship


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--to", "target", type=click.Path(path_type=Path), required=True, help="A folder, or a FILE.zip.")
def command(bundle: Path, target: Path) -> None:
    """Copy a bundle, checked, to a folder or a zip file that plays with numpy, numba and this package alone.

    Example: python -m pipeline ship models/sample --to out/bot.zip
    """
    shipped = ship(bundle, target, {"start.sh": start_script()})
    click.echo(
        f"{target}: {shipped.files} files, {shipped.size:,} bytes; play it with `connect HOST PORT --policy {target}`"
    )
