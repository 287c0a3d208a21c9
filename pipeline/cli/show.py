"""`show`: a chart, the features of a row, or a logged hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli._charts import chart_dict, draw_situations
from pipeline.cli._options import LOGS_GAME, game_option, json_option
from pipeline.runtime.errors import PipelineError, nearest

if TYPE_CHECKING:
    from pipeline.models.charts import Chart


@click.group()
def command() -> None:
    """Show a chart, a row's features or a hand.

    Example: pipeline show chart out/slumbot
    """


@command.command("chart", short_help="Draw a bundle's starting-hand chart.")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--after", help="Only the situation after this betting, such as `cr`; `-` for none.")
@click.option("--situations", type=click.IntRange(1), default=4, show_default=True, help="Draw so many, largest first.")
@json_option
def chart_command(source: Path, after: str | None, situations: int, as_json: bool) -> None:
    """Draw the chart of a bundle, a chart's text file, or one that comes with the package.

    Each cell has the likeliest action and its share in percent; suited classes are above the diagonal.

    Example: pipeline show chart out/slumbot --after r
    """
    import numpy as np

    from pipeline.models.bundle import load_bundle
    from pipeline.models.charts import Chart
    from pipeline.models.policy import find_chart
    from pipeline.report.grids import largest

    chart = load_bundle(source).chart if source.is_dir() or source.suffix == ".zip" else find_chart(source)
    if not isinstance(chart, Chart):
        raise PipelineError(f"{source} has no chart: train it again without --chart, or name a chart's file")
    order = largest(chart, situations)
    if after is not None:
        order = np.flatnonzero(chart.words == _betting_code(after, chart)).tolist()
        if not order:
            raise PipelineError(f"the chart has no situation after {after!r}")
    click.echo(json.dumps(chart_dict(chart, order)) if as_json else draw_situations(chart, order))


def _betting_code(text: str, chart: Chart) -> int:
    """Return the code of a betting as typed; letters that are no action are refused."""
    from pipeline.dataset.decisions import betting_code

    unknown = [letter for letter in text if letter not in chart.labels and text != "-"]
    if unknown:
        raise PipelineError(f"{unknown[0]!r} in {text!r} is no action{nearest(unknown[0], chart.labels)}")
    return betting_code(text, len(chart.labels) > 3)


@command.command("features", short_help="List what a decision fires, with the model's weights.")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("state", metavar="MATCHSTATE")
@json_option
def features_command(bundle: Path, state: str, as_json: bool) -> None:
    """List the features that a decision fires in a bundle's model: template by template, with a weight per action.

    Example: pipeline show features out/slumbot 'MATCHSTATE:0:0:rc/:9cKc|/6dJs5c'
    """
    from pipeline.dataset.decisions import STREETS, observation
    from pipeline.formats.acpc import parse_match_state
    from pipeline.models.bundle import load_bundle
    from pipeline.models.loglinear import LogLinear
    from pipeline.models.prior import PriorTimesFeatures
    from pipeline.poker.cards import parse_cards

    opened = load_bundle(bundle)
    match_state = parse_match_state(state)
    if opened.game is None:
        raise PipelineError(f"{bundle} was trained on text rows: it has no game")
    if match_state.position >= len(match_state.holes):
        raise PipelineError(f"{state!r} has no cards for position {match_state.position}")
    hole, board = parse_cards(match_state.holes[match_state.position]), parse_cards("".join(match_state.board))
    row = observation(opened.game, match_state.betting, match_state.position, hole, board)
    street = int(row["street"][0])
    model = opened.models.get(street)
    if model is None:
        raise PipelineError(f"{bundle} has no model for the {STREETS[street]}")
    fired: list[tuple[str, list[float] | None]] = []
    own = model.own if isinstance(model, PriorTimesFeatures) else model
    if isinstance(own, LogLinear):
        ids = own.vocabulary.find(own.features.hashes(row))[0]
        for text, feature in zip(own.features.describe(row, opened.game.nolimit), ids, strict=True):
            if text:
                fired.append((text, [float(weight) for weight in own.weights[feature]] if feature >= 0 else None))
    if isinstance(model, PriorTimesFeatures):
        fired += [(text, logs.tolist()) for text, logs in model.prior_scores(row)]
    probabilities = model.predict(row)[0]
    if as_json:
        about = {
            "street": STREETS[street],
            "labels": list(opened.labels),
            "features": [{"feature": text, "weights": weights} for text, weights in fired],
            "probabilities": dict(zip(opened.labels, probabilities.tolist(), strict=True)),
        }
        click.echo(json.dumps(about))
        return
    click.echo(f"{'weights of the ' + STREETS[street]:60} " + " ".join(f"{label:>8}" for label in opened.labels))
    for text, weights in fired:
        cells = ["  unseen"] if weights is None else [f"{weight:z8.3f}" for weight in weights]
        click.echo(f"{text:60} " + " ".join(cells))
    click.echo(f"{'probabilities':60} " + " ".join(f"{chance:8.3f}" for chance in probabilities))


@command.command(
    "hand",
    short_help="Tell a logged hand, with the mixes of agents.",
    epilog="Example: pipeline show hand data/sample/teacher.call.1.0.log 17 @call",
)
@click.argument("log")
@click.argument("words", nargs=-1, metavar="[NUMBER] [AGENT]...")
@game_option(LOGS_GAME)
@json_option
def hand_command(log: str, words: tuple[str, ...], game: str | None, as_json: bool) -> None:
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
    agents = words[number is not None :]
    line, header_game = _find_hand(log, number)
    named = game or header_game
    played = find_game(named) if named else builtin("holdem.limit.2p.reverse_blinds")
    story = replay_hand(parse_hand(line), played, [(agent, resolve(agent, played, trusted=True)) for agent in agents])
    click.echo(json.dumps(story.json()) if as_json else hand_text(story))


def _find_hand(log: str, number: int | None) -> tuple[str, str | None]:
    """Find the line of a hand, and the game that the log's header names."""
    from pipeline.formats.acpc import parse_header

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
