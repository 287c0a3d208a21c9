"""`show hand`: a logged hand, street by street, with the mixes of agents."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(epilog="Example: pipeline show hand data/sample/teacher.call.1.0.log 17 @call")
@click.argument("log")
@click.argument("words", nargs=-1, metavar="[NUMBER] [AGENT]...")
@click.option("--agent", "others", multiple=True, hidden=True)
@click.option("--game", help="A game file or its name; otherwise the log's header says, or limit hold'em.")
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
def command(log: str, words: tuple[str, ...], others: tuple[str, ...], game: str | None, as_json: bool) -> None:
    """Show hand NUMBER of a LOG (the first by default), or a hand line given as LOG itself.

    Under each decision stands what every AGENT (a bundle, @name or python:module:factory) would have played in its
    place, with the cards of the player who acts.
    """
    from pipeline.agents.names import resolve
    from pipeline.evaluation.hand_story import replay_hand
    from pipeline.formats.acpc import parse_hand
    from pipeline.poker.game import builtin, find_game
    from pipeline.report.terminal import hand_text

    number = int(words[0]) if words and words[0].isdigit() else None
    agents = [*words[number is not None :], *others]
    line, header_game = _find(log, number)
    named = game or header_game
    played = find_game(named) if named else builtin("holdem.limit.2p.reverse_blinds")
    story = replay_hand(parse_hand(line), played, [(agent, resolve(agent, played, trusted=True)) for agent in agents])
    click.echo(json.dumps(story.json()) if as_json else hand_text(story))


def _find(log: str, number: int | None) -> tuple[str, str | None]:
    """Find the line of a hand, and the game that the log's header names."""
    from pipeline.formats.acpc import parse_header
    from pipeline.runtime.errors import PipelineError

    if log.startswith("STATE:"):
        return log, None
    path = Path(log)
    if not path.is_file():
        raise PipelineError(f"{log} is neither a log file nor a line that begins with STATE:")
    game = None
    with path.open(encoding="utf-8", errors="replace") as lines:
        for text in lines:
            text = text.rstrip("\r\n")
            header = parse_header(text)
            game = header.game if header else game
            if text.startswith("STATE:") and (number is None or text.split(":", 2)[1] == str(number)):
                return text, game
    raise PipelineError(f"{log} has no {'hand' if number is None else f'hand {number}'}")
