"""`show hand`: a logged hand, street by street, with the mixes of agents."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: pipeline show hand data/sample/teacher.call.1.0.log 17 @call")
@click.argument("log")
@click.argument("words", nargs=-1, metavar="[NUMBER] [AGENT]...")
@click.option("--agent", "others", multiple=True, hidden=True)
@click.option("--game", help="A game file or its name; otherwise the log's header says, or limit hold'em.")
def command(log: str, words: tuple[str, ...], others: tuple[str, ...], game: str | None) -> None:
    """Show hand NUMBER of a LOG (the first by default), or a hand line given as LOG itself.

    Under each decision stands what every AGENT (a bundle or @name) would have played in its place.
    """
    from pipeline.acpc import parse_hand, parse_header
    from pipeline.agents import plain_name, resolve
    from pipeline.errors import PipelineError
    from pipeline.game import builtin, find_game
    from pipeline.report.terminal import hand_text

    number = int(words[0]) if words and words[0].isdigit() else None
    agents = (*words[0 if number is None else 1 :], *others)
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
