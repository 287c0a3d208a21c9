"""`show`: a chart, the features of a row, or a hand; subcommands are imported when called."""

from __future__ import annotations

import importlib

import click

from pipeline.runtime.errors import nearest

SUBJECTS = {
    "chart": "Draw a bundle's starting-hand chart.",
    "features": "List what a decision fires, with the model's weights.",
    "hand": "Tell a logged hand, with the mixes of agents.",
}


class Subjects(click.Group):
    """A group whose subcommands live in `pipeline/commands/_show_<name>.py`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBJECTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBJECTS:
            ctx.fail(f"No such subject {cmd_name!r}{nearest(cmd_name, SUBJECTS)}.")
        found = importlib.import_module(f"pipeline.cli._show_{cmd_name}").command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Subjects"):
            formatter.write_dl(list(SUBJECTS.items()))


@click.group(cls=Subjects)
def command() -> None:
    """Show a chart, a row's features or a hand.

    Example: pipeline show chart out/slumbot
    """
