"""`web`: the explorer, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeline.cli._options import FOLDER, data_option, saved_results_options


@click.command()
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@data_option("A dataset that `ingest` wrote, to look at its hands.", required=False)
@click.option("--game", "games", multiple=True, help="Offer this game too: for built-in agents (repeatable).")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port to listen on.  [default: 8017, or a free one where that is taken]",
)
@click.option("--no-token", is_flag=True, help="Let in every user of this machine, without the token of the address.")
@click.option("--no-open", is_flag=True, help="Only print the address, do not open the browser.")
@click.option(
    "--save",
    type=FOLDER,
    default=Path("out/played"),
    show_default=True,
    help="Where hands that you play are kept, as ACPC logs.",
)
@saved_results_options
def command(
    agents: tuple[str, ...],
    data: Path | None,
    host: str,
    port: int | None,
    no_open: bool,
    no_token: bool,
    **options: Any,
) -> None:
    """Look at agents, replay hands and play against them in the browser.

    AGENT is a bundle's folder or zip, or @name[:arguments] of a built-in agent; without any, @teacher and @equity. The
    server runs until Ctrl-C. It answers browsers that open the address that it prints, on this machine unless --host
    names another address.

    Example: pipeline web models/teacher @teacher --data out/rows
    """
    from pipeline.web.app import open_explorer
    from pipeline.web.server import Server, new_token, open_browser

    explorer = open_explorer(agents, data=data, token=new_token(), **options)
    server = Server(explorer, host, port, needs_token=not no_token)
    click.echo(f"{server.entrance}\nStop with Ctrl-C.")

    def started() -> None:
        if not no_open and not open_browser(server.entrance):
            click.echo("no browser could be opened: open the address yourself", err=True)

    try:
        server.run(started)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
