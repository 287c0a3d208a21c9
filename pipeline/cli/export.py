"""`export`: the hands of a dataset as logs again."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli._options import FILE, data_option, json_option, out_option
from pipeline.cli._output import print_json


@click.command(epilog="Example: pipeline export --data out/rows --format phh --out out/hands.phhs")
@data_option()
@click.option(
    "--format",
    "form",
    type=click.Choice(["phh", "acpc"]),
    required=True,
    help="phh: hand histories; acpc: lines of ACPC logs.",
)
@out_option("The file to write.", FILE)
@json_option
def command(data: Path, form: str, out: Path, as_json: bool) -> None:
    """Write the hands of a dataset as hand histories (PHH) or as lines of ACPC logs.

    Hands that the form has no place for, such as those with unknown cards in ACPC logs, are left out and counted.
    """
    from pipeline.dataset.export import export_hands

    exported = export_hands(data, form, out)
    if as_json:
        print_json(exported.json())
        return
    click.echo(f"{exported.hands:,} hands to {', '.join(exported.files)}")
    for reason, count in sorted(exported.left_out.items(), key=lambda item: (-item[1], item[0])):
        click.echo(f"  left out {count:,}: {reason}")
