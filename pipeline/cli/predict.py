"""`predict`: the mixes of agents in one situation, side by side."""

from __future__ import annotations

import click

from pipeline.cli._options import game_option, json_option
from pipeline.cli._output import print_json, table_text


@click.command()
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@click.argument("state", metavar="MATCHSTATE")
@game_option()
@json_option
def command(agents: tuple[str, ...], state: str, game: str | None, as_json: bool) -> None:
    """Print with which probabilities each AGENT would fold, call or raise in one situation.

    AGENT is a bundle or @name. MATCHSTATE is the line that an ACPC dealer sends to the player who is to act.

    Example: pipeline predict @equity @chump:rock 'MATCHSTATE:0:0:rc/:9cKc|/6dJs5c'
    """
    from pipeline.agents.predictions import decision_row, game_of_agents, label_word, predict
    from pipeline.poker.game import find_game

    if not state.startswith("MATCHSTATE:"):
        raise click.UsageError(f"the last argument is a dealer's line, MATCHSTATE:..., not {state!r}")
    rules = game_of_agents(agents, state) if game is None else find_game(game)
    predictions = predict(agents, state, game=rules, trusted=True)
    if as_json:
        print_json([prediction._asdict() for prediction in predictions])
        return
    to_call = int(decision_row(rules, state)["to_call"][0])
    head = ["", *(label_word(label, rules, to_call) for label in rules.labels)]
    rows = []
    for prediction in predictions:
        rows.append([prediction.agent, *(f"{100 * share:.1f} %" for share in prediction.probabilities.values())])
        if prediction.amounts:
            rows.append(["  most often to", *(f"{amount:,}" if amount else "" for amount in prediction.amounts)])
    click.echo(table_text(head, rows))
