"""`show features`: what a decision fires, with the model's weights."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pipeline.runtime.errors import PipelineError


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("state", metavar="MATCHSTATE")
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
def command(bundle: Path, state: str, as_json: bool) -> None:
    """List the features that a decision fires in a bundle's model: template by template, with a weight per action.

    Example: pipeline show features out/slumbot 'MATCHSTATE:0:0:rc/:9cKc|/6dJs5c'
    """
    from pipeline.dataset.decisions import STREETS, observation
    from pipeline.formats.acpc import parse_match_state
    from pipeline.models.bundle import load_bundle
    from pipeline.models.loglinear import LogLinear
    from pipeline.models.prior import Tilted
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
    own = model.own if isinstance(model, Tilted) else model
    if isinstance(own, LogLinear):
        ids = own.vocabulary.find(own.features.hashes(row))[0]
        for text, feature in zip(own.features.describe(row, opened.game.nolimit), ids, strict=True):
            if text:
                fired.append((text, [float(weight) for weight in own.weights[feature]] if feature >= 0 else None))
    if isinstance(model, Tilted):
        fired += [(text, logs.tolist()) for text, logs in model.told(row)]
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
