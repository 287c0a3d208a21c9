"""`ship`: copy a bundle with all it needs to play."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli._options import PATH, out_option


@click.command()
@click.argument("bundle", type=PATH)
@out_option("A folder or a FILE.zip.")
def command(bundle: Path, out: Path) -> None:
    """Copy a bundle, checked, to a folder or a zip file that plays on any machine with Python.

    A stored strategy, as `counter` and `solve holdem` write it, is shipped the same way. A wheel of this package goes
    with it, and a README says how to start it: two commands. A bundle whose training was interrupted is refused.

    Example: pipeline ship models/teacher --out out/bot.zip
    """
    from pipeline.models.artifacts import start_script
    from pipeline.models.shipping import ship
    from pipeline.solving.strategy import is_strategy, ship_strategy

    copy = ship_strategy if is_strategy(bundle) else ship
    shipped = copy(bundle, out, {"start.sh": start_script()})
    click.echo(f"{out}: {shipped.files} files, {shipped.size:,} bytes; play it with `connect HOST PORT {out}`")
