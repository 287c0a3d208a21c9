"""The `play` command: hands against an agent in the terminal."""

from __future__ import annotations

import secrets
import shutil
import sys
from pathlib import Path

import click

from pipeline.cli._options import FILE, game_option, hands_range, own_seed_option
from pipeline.cli._output import echo_drawing, one_line


@click.command()
@click.argument("agent")
@game_option()
@own_seed_option
@click.option("--hands", type=hands_range(), help="Stop after this many hands.")
@click.option("--name", default="you", show_default=True, help="Your name in the log.")
@click.option("--log", "log_file", type=FILE, help="Keep the hands as an ACPC log.")
def command(
    agent: str,
    game: str | None,
    seed: int | None,
    hands: int | None,
    name: str,
    log_file: Path | None,
) -> None:
    """Play against AGENT in the terminal; in games for three it takes both other seats.

    AGENT is a bundle's folder or zip, or @name[:arguments] of a built-in agent. Type ? for help. After a hand you can
    look at the agent's probabilities and at the equity of all players.

    Example: pipeline play @teacher --log mine.log
    """
    from pipeline.agents.names import choose_game, resolve
    from pipeline.arena.duplicate import distinct
    from pipeline.arena.match import rehearse
    from pipeline.arena.table import WIDTH, TerminalTable, sitting_result
    from pipeline.formats.acpc import check_player_names

    if log_file is not None:
        check_player_names([name])
    rules = choose_game(game, [agent, agent])
    bots = [resolve(agent, rules, trusted=True) for _ in range(rules.players - 1)]
    rehearse([resolve("@random", rules), *bots], rules, adjusted=True)
    table = TerminalTable(
        game=rules,
        bots=bots,
        names=distinct([one_line(name), *(one_line(bot.name) for bot in bots)]),
        seed=secrets.randbits(32) if seed is None else seed,
        show=echo_drawing,
        ask=input,
        log_file=log_file,
        colour=sys.stdout.isatty(),  # the command line drops colours where NO_COLOR is set
        width=shutil.get_terminal_size((WIDTH, 24)).columns,
    )
    score = table.play(hands)
    logged = f"; {len(table.hands)} hands in {log_file}" if log_file and table.hands else ""
    totals = "   ".join(f"{player} {total:+,g}" for player, total in zip(score.names, score.totals, strict=True))
    click.echo(f"\n{len(table.hands)} hands: {totals}{logged}")
    won = sitting_result(table.sitting).winnings
    if won.adjusted is not None:
        adjusted = f"without the luck of the cards {won.adjusted.value:+,.0f} ± {won.adjusted.ci95:,.0f}"
        click.echo(f"{table.names[0]}: {won.value:+,.0f} {rules.unit}; {adjusted}")
