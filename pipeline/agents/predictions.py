"""What agents would do in one situation, which is given as the line that a dealer sends.

In go agents, as they are named everywhere (`@teacher`, a bundle's path), and a `MATCHSTATE:` line; out comes each
agent's mix: a probability per action, and in no-limit games the amounts it bets. A room of its own because the command,
the Python interface and the pages ask this same question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.names import default_game, is_bundle, resolve
from pipeline.agents.protocol import Agent, amounts_of
from pipeline.dataset.decisions import observation
from pipeline.formats.acpc import parse_match_state
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import RAISE
from pipeline.runtime.errors import PipelineError

SIZES = {"s": "a quarter pot", "h": "half the pot", "p": "the pot", "o": "twice the pot", "a": "all-in"}


class Prediction(NamedTuple):
    """An agent's mix in one situation."""

    agent: str
    """as it was named"""
    name: str
    """what the agent calls itself in logs"""
    probabilities: dict[str, float]
    """by label; 0 where the label is illegal; they sum to 1"""
    amounts: list[int]
    """the total that each label bets or raises to most often, in the labels' order; empty in limit games, 0 where there
    is none"""
    sizes: list[dict[str, Any]]
    """in no-limit games every total that the agent may raise to: its label, the amount, and how likely it is that the
    agent raises to it; those of a label sum to the label's probability"""


def decision_row(game: Game, state: str) -> Any:
    """The OBSERVATION row (one record) of the player to act in a `MATCHSTATE:` line.

    >>> from pipeline.poker.game import builtin
    >>> row = decision_row(builtin("holdem.limit.2p.reverse_blinds"), "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")
    >>> int(row["street"][0]), int(row["pot"][0])
    (1, 40)
    """
    seen = parse_match_state(state)
    if seen.position >= game.players:
        raise PipelineError(f"{state!r} is for position {seen.position}; {game.name} has {game.players} players")
    if seen.position >= len(seen.holes) or not seen.holes[seen.position]:
        raise PipelineError(f"{state!r} has no cards for position {seen.position}")
    hole, board = parse_cards(seen.holes[seen.position]), parse_cards("".join(seen.board))
    held = [*hole.tolist(), *board.tolist()]
    if len(set(held)) < len(held):
        raise PipelineError(f"{state!r} has a card twice")
    return observation(game, seen.betting, seen.position, hole, board)


def game_of(agents: Sequence[str | Agent], state: str) -> Game:
    """The game of the first agent that plays only one; else limit hold'em for as many players as the line has.

    >>> game_of(["@call"], "MATCHSTATE:0:0::AsKs|").name
    'holdem.limit.2p.reverse_blinds'
    """
    for agent in agents:
        if not isinstance(agent, str):
            return agent.game
    bundles = [agent for agent in agents if isinstance(agent, str) and is_bundle(agent)]
    return default_game(bundles or ["@call"] * len(parse_match_state(state).holes))


def predict(
    agents: Sequence[str | Agent], state: str, *, game: Game | None = None, trusted: bool = False
) -> list[Prediction]:
    """Ask agents what they would do.

    Parameters
    ----------
    agents : sequence of str or Agent
        `@name`, a bundle's folder or zip file with its options, or an agent object.
    state : str
        The line a dealer sends the player to act: `MATCHSTATE:position:hand:betting:cards`.
    game : Game, optional
        Otherwise the first bundle's, or limit hold'em for as many players as the line has.
    trusted : bool
        Whether `python:` agents, which run code, may be named: only what a user typed is trusted.

    Returns
    -------
    list of Prediction
        In the order of `agents`.

    Examples
    --------
    >>> [one] = predict(["@call"], "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")
    >>> one.probabilities
    {'f': 0.0, 'c': 1.0, 'r': 0.0}
    """
    if not agents:
        raise PipelineError("name at least one agent to ask")
    game = game or game_of(agents, state)
    row = decision_row(game, state)
    resolved = [resolve(agent, game, trusted=trusted) if isinstance(agent, str) else agent for agent in agents]
    return [
        _ask(agent if isinstance(agent, str) else agent.name, found, row, state)
        for agent, found in zip(agents, resolved, strict=True)
    ]


def _ask(text: str, agent: Agent, row: Any, state: str) -> Prediction:
    """The mix of one agent, under the name it was given by."""
    game = agent.game
    mix = np.asarray(agent.probabilities(row))[0]
    amounts: list[int] = []
    sizes: list[dict[str, Any]] = []
    if game.nolimit:
        at = _state(game, parse_match_state(state).betting)
        for label, letter in enumerate(game.labels):
            totals = raise_totals(agent, row, at, label) if (at.legal_labels >> label) & 1 and label >= RAISE else {}
            amounts.append(max(totals, key=totals.__getitem__, default=0))
            sizes += [
                {"label": letter, "amount": total, "probability": float(mix[label]) * share}
                for total, share in sorted(totals.items())
                if mix[label] > 0
            ]
    return Prediction(text, agent.name, dict(zip(game.labels, mix.tolist(), strict=True)), amounts, sizes)


def raise_totals(agent: Agent, row: Any, state: State, label: int) -> dict[int, float]:
    """The totals that an agent raises to with a label, and how often."""
    found = amounts_of(agent, row, np.array([label]))
    if found is None or len(found.by) == 0:
        return {state.choose(label)[1]: 1.0}
    totals: dict[int, float] = {}
    for by, share in zip(found.by.tolist(), found.share.tolist(), strict=True):
        total = state.choose(label, by)[1]
        totals[total] = totals.get(total, 0.0) + share
    return totals


def _state(game: Game, betting: str) -> State:
    """The state after a betting string."""
    state = game.start()
    for action, size in actions(betting):
        state = state.apply(action, size)
    return state


def label_word(label: str, game: Game, to_call: int) -> str:
    """A label in words, for a player who has `to_call` chips to call.

    >>> from pipeline.poker.game import builtin
    >>> [label_word(label, builtin("leduc.limit.2p"), 0) for label in "fcr"]
    ['fold', 'check', 'bet']
    """
    if label in SIZES and game.nolimit:
        return SIZES[label]
    return {"f": "fold", "c": "call" if to_call else "check", "r": "raise" if to_call else "bet"}[label]
