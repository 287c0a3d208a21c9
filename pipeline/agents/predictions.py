"""Ask agents for their actions in one situation, given as the line that a dealer sends.

In go agents, as they are named everywhere (`@teacher`, a bundle's path), and a `MATCHSTATE:` line; out comes each
agent's mix: a probability per action, and in no-limit games the amounts it bets. The command, the Python interface and
the pages of the explorer share these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.names import default_game, is_bundle, resolve
from pipeline.agents.protocol import Agent, amounts_of
from pipeline.dataset.decisions import STREETS, observation
from pipeline.formats.acpc import parse_match_state
from pipeline.models.bundle import Bundle
from pipeline.models.kinds import Model
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import RAISE
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.tabular import html_table

SIZES = {"s": "about 25 %", "h": "about 50 %", "p": "about 100 %", "o": "about 200 %", "a": "all-in"}


class Mix(dict[str, float]):
    """Probabilities of actions by label (`f` fold, `c` check or call, `r` or sizes raise), 0 where illegal."""

    @property
    def fold(self) -> float:
        """Return the probability of folding."""
        return self["f"]

    @property
    def call(self) -> float:
        """Return the probability of checking or calling."""
        return self["c"]

    @property
    def aggressive(self) -> float:
        """Return the probability of betting or raising, by any amount."""
        return sum(share for label, share in self.items() if label not in "fc")

    @property
    def likeliest(self) -> str:
        """Return the label of the likeliest action."""
        return max(self, key=self.__getitem__)

    def _repr_html_(self) -> str:
        return html_table("Mix", [self])


class Prediction(NamedTuple):
    """An agent's mix in one situation."""

    agent: str
    """the name that was asked for"""
    name: str
    """the agent's own name in logs"""
    probabilities: Mix
    """by label; 0 where the label is illegal; they sum to 1"""
    amounts: list[int]
    """the total that each label bets or raises to most often, in the labels' order; empty in limit games, 0 where there
    is none"""
    sizes: list[dict[str, Any]]
    """in no-limit games every total that the agent may raise to: its label, the amount, and how likely it is that the
    agent raises to it; those of a label sum to the label's probability"""

    def row(self) -> dict[str, Any]:
        """Return the agent and the probability of each label."""
        return {"agent": self.agent, **self.probabilities}


def decision_row(game: Game, state: str) -> Any:
    """Return the OBSERVATION row (one record) of the player to act in a `MATCHSTATE:` line.

    >>> from pipeline.poker.game import builtin
    >>> row = decision_row(builtin("holdem.limit.2p.reverse_blinds"), "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")
    >>> int(row["street"][0]), int(row["pot"][0])
    (1, 40)
    """
    match_state = parse_match_state(state)
    if match_state.position >= game.players:
        raise PipelineError(f"{state!r} is for position {match_state.position}; {game.name} has {game.players} players")
    if match_state.position >= len(match_state.holes) or not match_state.holes[match_state.position]:
        raise PipelineError(f"{state!r} has no cards for position {match_state.position}")
    hole, board = parse_cards(match_state.holes[match_state.position]), parse_cards("".join(match_state.board))
    cards = [*hole.tolist(), *board.tolist()]
    if len(set(cards)) < len(cards):
        raise PipelineError(f"{state!r} has a card twice")
    return observation(game, match_state.betting, match_state.position, hole, board)


def row_and_model(bundle: Bundle, path: Path, state: str) -> tuple[Any, Model]:
    """Return the row of the player to act in a `MATCHSTATE:` line, and the bundle's model of its street.

    Parameters: `path` of the bundle, for the sentence that refuses a line it has no model for.
    """
    if bundle.game is None:
        raise PipelineError(f"{path} was trained on text rows: it has no game")
    row = decision_row(bundle.game, state)
    street = int(row["street"][0])
    if street not in bundle.models:
        raise PipelineError(f"{path} has no model for the {STREETS[street]}")
    return row, bundle.models[street]


def game_of_agents(agents: Sequence[str | Agent], state: str) -> Game:
    """Return the game of the first agent that plays only one; else limit hold'em for as many players as the line has.

    >>> game_of_agents(["@call"], "MATCHSTATE:0:0::AsKs|").name
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
    """Ask agents for their probabilities in one situation.

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
    >>> [prediction] = predict(["@call"], "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c")
    >>> prediction.probabilities
    {'f': 0.0, 'c': 1.0, 'r': 0.0}
    """
    if not agents:
        raise PipelineError("name at least one agent to ask")
    game = game or game_of_agents(agents, state)
    row = decision_row(game, state)
    resolved = [resolve(agent, game, trusted=trusted) if isinstance(agent, str) else agent for agent in agents]
    return [
        _ask(agent if isinstance(agent, str) else agent.name, player, row, state)
        for agent, player in zip(agents, resolved, strict=True)
    ]


def _ask(text: str, agent: Agent, row: Any, state: str) -> Prediction:
    """Return the mix of one agent, under the name it was given by."""
    game = agent.game
    mix = np.asarray(agent.probabilities(row))[0]
    amounts: list[int] = []
    sizes: list[dict[str, Any]] = []
    if game.nolimit:
        state_here = _state(game, parse_match_state(state).betting)
        for label, letter in enumerate(game.labels):
            totals = (
                raise_totals(agent, row, state_here, label)
                if (state_here.legal_labels >> label) & 1 and label >= RAISE
                else {}
            )
            amounts.append(max(totals, key=totals.__getitem__, default=0))
            sizes += [
                {"label": letter, "amount": total, "probability": float(mix[label]) * share}
                for total, share in sorted(totals.items())
                if mix[label] > 0
            ]
    return Prediction(text, agent.name, Mix(zip(game.labels, mix.tolist(), strict=True)), amounts, sizes)


def raise_totals(agent: Agent, row: Any, state: State, label: int) -> dict[int, float]:
    """Return the totals that an agent raises to with a label, and their shares."""
    amounts = amounts_of(agent, row, np.array([label]))
    if amounts is None or len(amounts.by) == 0:
        return {state.choose(label)[1]: 1.0}
    totals: dict[int, float] = {}
    for by, share in zip(amounts.by.tolist(), amounts.share.tolist(), strict=True):
        total = state.choose(label, by)[1]
        totals[total] = totals.get(total, 0.0) + share
    return totals


def _state(game: Game, betting: str) -> State:
    """Return the state after a betting string."""
    state = game.start()
    for action, size in actions(betting):
        state = state.apply(action, size)
    return state


def label_word(label: str, game: Game, to_call: int) -> str:
    """Return a label in words, for a player who has `to_call` chips to call.

    >>> from pipeline.poker.game import builtin
    >>> [label_word(label, builtin("leduc.limit.2p"), 0) for label in "fcr"]
    ['fold', 'check', 'bet']
    """
    if label in SIZES and game.nolimit:
        return SIZES[label]
    return {"f": "fold", "c": "call" if to_call else "check", "r": "raise" if to_call else "bet"}[label]
