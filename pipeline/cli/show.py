"""`show`: a chart, the features of a row, or a logged hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import DATA_GAME, FILE, HOLDEM, PATH, data_option, game_option, json_option, out_option
from pipeline.cli._output import check_chart_file, draw_situations, one_line, print_json, write_chart
from pipeline.cli._progress import bar
from pipeline.runtime.errors import PipelineError, nearest

if TYPE_CHECKING:
    from pipeline.models.charts import Chart


@click.group()
def command() -> None:
    """Show a chart, a row's features or a hand.

    Example: pipeline show chart out/slumbot
    """


@command.command("chart", short_help="Draw a starting-hand chart.")
@click.argument("source", type=PATH, required=False)
@data_option("Count the chart in a dataset's training rows instead.", required=False)
@click.option("--agent", "agents", multiple=True, help="With --data: whose (repeatable, pooled).  [default: everyone]")
@game_option(DATA_GAME)
@click.option("--after", help="Draw only the situation after this betting, such as `cr`; `-` for none.")
@click.option(
    "--situations",
    type=click.IntRange(1, 10**6),
    default=4,
    show_default=True,
    help="Situations to draw, largest first.",
)
@out_option("Write a picture (FILE.svg), the counts (.txt, .chart) or both (.json).", FILE, required=False)
@json_option
def chart_command(
    source: Path | None,
    data: Path | None,
    agents: tuple[str, ...],
    game: str | None,
    after: str | None,
    situations: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Draw what an agent does before the flop, for each betting situation and class of starting hands.

    SOURCE is a bundle, a chart's text file, or the name of a chart that comes with the package. With --data the chart
    is counted in the training rows of a dataset, as `train` counts it. A cell has the likeliest action and its share
    in percent; suited classes are above the diagonal.

    Example: pipeline show chart models/teacher --after r

    Example: pipeline show chart --data out/rows --agent teacher --out out/teacher.svg
    """
    import numpy as np

    from pipeline.report.grids import largest

    check_chart_file(out)
    if (source is None) == (data is None):
        raise PipelineError("name either a chart (a bundle, a file or a bundled one), or --data DIR to count one")
    if data is None and (agents or game is not None):
        raise PipelineError("--agent and --game are those of --data: a stored chart is shown as it is")
    about: dict[str, Any] = {}
    title = str(source)
    if data is not None:
        from pipeline.models.charts import read_chart_counts

        with bar("chart"):
            chart, decisions = read_chart_counts(data, agents, game=game)
        about = {"agents": decisions.agents, "game": decisions.game.name}
        verb = "does" if len(decisions.agents) == 1 else "do"
        title = f"What {' and '.join(decisions.agents)} {verb} before the flop"
    elif source is not None:
        chart = _stored_chart(source)
    order = largest(chart, situations)
    if after is not None:
        order = np.flatnonzero(chart.words == _betting_code(after, chart)).tolist()
        if not order:
            raise PipelineError(f"the chart has no situation after {after!r}")
    if out is not None:
        write_chart(chart, out, order, title=title)
    if as_json:
        print_json({**about, **chart.json(order)})
        return
    draw_situations(chart, order)
    if out is not None:
        click.echo(f"\nwritten to {out}")


def _stored_chart(source: Path) -> Chart:
    """Return the chart of a bundle, a file or a name."""
    from pipeline.models.bundle import load_bundle
    from pipeline.models.charts import Chart
    from pipeline.models.policy import find_chart

    chart = load_bundle(source).chart if source.is_dir() or source.suffix == ".zip" else find_chart(source)
    if not isinstance(chart, Chart):
        raise PipelineError(f"{source} has no chart: train it again without --chart, or name a chart's file")
    return chart


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
        click.echo(f"{one_line(text):60} " + " ".join(cells))
    click.echo(f"{'probabilities':60} " + " ".join(f"{chance:8.3f}" for chance in probabilities))


@command.command(
    "hand",
    short_help="Tell a logged hand, with the mixes of agents.",
    epilog="Example: pipeline show hand data/sample/teacher.call.1.0.log 17 @call",
)
@click.argument("log")
@click.argument("words", nargs=-1, metavar="[NUMBER] [AGENT]...")
@game_option()
@json_option
def hand_command(log: str, words: tuple[str, ...], game: str | None, as_json: bool) -> None:
    """Show hand NUMBER of a LOG (the first by default), or a hand line given as LOG itself.

    Under each decision stands what every AGENT (a bundle, @name or python:module:factory) would have played in its
    place, with the cards of the player who acts.
    """
    from pipeline.agents.names import resolve
    from pipeline.evaluation.hand_story import find_hand, replay_hand
    from pipeline.poker.game import Game, find_game
    from pipeline.report.terminal import hand_text

    number = int(words[0]) if words and words[0].isdigit() else None
    agents = words[number is not None :]
    hand, own_game = find_hand(log, number)
    played = own_game if isinstance(own_game, Game) else find_game(game if game is not None else own_game or HOLDEM)
    story = replay_hand(hand, played, [(agent, resolve(agent, played, trusted=True)) for agent in agents])
    if as_json:
        print_json(story.json())
    else:
        click.echo(hand_text(story))
