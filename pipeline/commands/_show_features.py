"""`show features`: what a decision fires, with the model's weights."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.acpc import parse_match_state
from pipeline.cards import parse_cards
from pipeline.decisions import STREETS, observation
from pipeline.errors import PipelineError
from pipeline.models.bundle import load_bundle
from pipeline.models.loglinear import LogLinear


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("state", metavar="MATCHSTATE")
def command(bundle: Path, state: str) -> None:
    """List the features that a decision fires in a bundle's model: template by template, with a weight per action.

    Example: python -m pipeline show features models/sample 'MATCHSTATE:0:0:rc/:9cKc|/6dJs5c'
    """
    found = load_bundle(bundle)
    seen = parse_match_state(state)
    if found.game is None:
        raise PipelineError(f"{bundle} was trained on text rows: it has no game")
    if seen.position >= len(seen.holes):
        raise PipelineError(f"{state!r} has no cards for position {seen.position}")
    hole, board = parse_cards(seen.holes[seen.position]), parse_cards("".join(seen.board))
    row = observation(found.game, seen.betting, seen.position, hole, board)
    street = int(row["street"][0])
    model = found.models.get(street)
    if model is None:
        raise PipelineError(f"{bundle} has no model for the {STREETS[street]}")
    click.echo(f"{'weights of the ' + STREETS[street]:60} " + " ".join(f"{label:>8}" for label in found.labels))
    if isinstance(model, LogLinear):
        ids = model.vocabulary.find(model.features.hashes(row))[0]
        for text, feature in zip(model.features.describe(row, found.game.nolimit), ids, strict=True):
            if text:
                shown = [f"{weight:8.3f}" for weight in model.weights[feature]] if feature >= 0 else ["  unseen"]
                click.echo(f"{text:60} " + " ".join(shown))
    chances = model.predict(row)[0]
    click.echo(f"{'probabilities':60} " + " ".join(f"{chance:8.3f}" for chance in chances))
