"""`show hand`: a logged hand, street by street, with the mixes of agents."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: python -m pipeline show hand data/sample/teacher.call.1.0.log 17 --agent @call")
@click.argument("log")
@click.argument("number", type=int, required=False)
@click.option("--agent", "agents", multiple=True, help="Show what this agent would play, in every seat (repeatable).")
@click.option("--game", help="A game file or its name; otherwise the log's header says, or limit hold'em.")
def command(log: str, number: int | None, agents: tuple[str, ...], game: str | None) -> None:
    """Show hand NUMBER of a LOG (the first by default), or a hand line given as LOG itself."""
    from pipeline.acpc import parse_hand, parse_header
    from pipeline.agents import plain_name, resolve
    from pipeline.errors import PipelineError
    from pipeline.game import builtin, find_game
    from pipeline.report.terminal import hand_text

    header, line = None, None
    if log.startswith("STATE:"):
        line = log
    else:
        for text in Path(log).read_text(errors="replace").splitlines():
            header = parse_header(text) or header
            if text.startswith("STATE:") and (number is None or text.split(":", 2)[1] == str(number)):
                line = text
                break
    if line is None:
        raise PipelineError(f"{log} has no {'hand' if number is None else f'hand {number}'}")
    named = game or (header.game if header else None)
    played = find_game(named) if named else builtin("holdem.limit.2p.reverse_blinds")
    click.echo(hand_text(parse_hand(line), played, [(plain_name(agent), resolve(agent, played)) for agent in agents]))
