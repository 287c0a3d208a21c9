"""`show`: a chart, the features of a row, or a logged hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli._charts import draw_situations, situations_option
from pipeline.cli._options import HOLDEM, LOGS_GAME, PATH, game_option, json_option
from pipeline.cli._tables import print_json
from pipeline.runtime.errors import PipelineError, nearest

if TYPE_CHECKING:
    from pipeline.models.charts import Chart


@click.group()
def command() -> None:
    """Show a chart, a row's features or a hand.

    Example: pipeline show chart out/slumbot
    """


@command.command("chart", short_help="Draw a bundle's starting-hand chart.")
@click.argument("source", type=PATH)
@click.option("--after", help="Only the situation after this betting, such as `cr`; `-` for none.")
@situations_option
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
    if as_json:
        print_json(chart.json(order))
    else:
        click.echo(draw_situations(chart, order))


def _betting_code(text: str, chart: Chart) -> int:
    """Return the code of a betting as typed; letters that are no action are refused."""
    from pipeline.dataset.decisions import betting_code

    unknown = [letter for letter in text if letter not in chart.labels and text != "-"]
    if unknown:
        raise PipelineError(f"{unknown[0]!r} in {text!r} is no action{nearest(unknown[0], chart.labels)}")
    return betting_code(text, len(chart.labels) > 3)


@command.command("features", short_help="List what a decision fires, with the model's weights.")
@click.argument("bundle", type=PATH)
@click.argument("state", metavar="MATCHSTATE")
@json_option
def features_command(bundle: Path, state: str, as_json: bool) -> None:
    """List the features that a decision fires in a bundle's model: template by template, with a weight per action.

    Example: pipeline show features out/slumbot 'MATCHSTATE:0:0:rc/:9cKc|/6dJs5c'
    """
    from pipeline.agents.predictions import row_and_model
    from pipeline.dataset.decisions import STREETS
    from pipeline.models.bundle import load_bundle
    from pipeline.models.prior import fired_features

    opened = load_bundle(bundle)
    row, model = row_and_model(opened, bundle, state)
    street = int(row["street"][0])
    fired = fired_features(model, row, opened.game is not None and opened.game.nolimit)
    probabilities = model.predict(row)[0]
    if as_json:
        print_json(
            {
                "street": STREETS[street],
                "labels": list(opened.labels),
                "features": [{"feature": text, "weights": weights} for text, weights in fired],
                "probabilities": dict(zip(opened.labels, probabilities.tolist(), strict=True)),
            }
        )
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
    from pipeline.evaluation.hand_story import find_hand, replay_hand
    from pipeline.formats.acpc import parse_hand
    from pipeline.poker.game import find_game
    from pipeline.report.terminal import hand_text

    number = int(words[0]) if words and words[0].isdigit() else None
    agents = words[number is not None :]
    line, header_game = find_hand(log, number)
    played = find_game(game if game is not None else header_game or HOLDEM)
    story = replay_hand(parse_hand(line), played, [(agent, resolve(agent, played, trusted=True)) for agent in agents])
    if as_json:
        print_json(story.json())
    else:
        click.echo(hand_text(story))
