"""Spots of real hands: the pot, stacks and ranges after a line of betting, and agents' play as locks.

In go a heads-up hold'em game, a betting as ACPC writes it (or a `MATCHSTATE:` line), the open board and agents; out
come the parts of a `PostflopSpot`, the range of an agent after that betting, and a lock that holds a player to what an
agent does at every decision of the spot's tree. A spot begins with a street: of a betting that ends within one, the
actions on that street are put on the menu, so that the line that was played is in the tree.

An agent answers with labels (fold, call, classes of raises). Its fold and call are those of the tree; a raise goes to
the action of the tree whose amount is nearest, as a ratio, to the amount that the agent bets with that label, and to
the call where the tree has no raise.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from pipeline.agents.protocol import Agent, amounts_of
from pipeline.agents.ranges import own_rows, range_at, state_after
from pipeline.formats.acpc import parse_match_state
from pipeline.poker.cards import cards_text, parse_cards
from pipeline.poker.game import Game, State, actions
from pipeline.poker.rules import CALL, FOLD, RAISE, size_of
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.solving.spot import LockedMix
from pipeline.solving.spot_cards import PAIRS
from pipeline.solving.spot_tree import DECISION, SpotTree

MAX_ROWS = 20_000_000
"""rows that an agent is asked for a lock"""


class RealSpot(NamedTuple):
    """A spot as a betting of a game leads to it."""

    game: Game
    before: str
    """the betting until the street begins"""
    board: Array
    pot: float
    stack: float
    spent: int
    """chips of each player before the street"""
    positions: tuple[int, int]
    """positions in the game of the player out of position and of the one in position"""
    played: dict[str, float]
    """amounts bet on the street so far, by the line before them; chips since the street began"""


def real_spot(game: Game, betting: str, board: Array) -> RealSpot:
    """Return the spot at the beginning of the street that a betting has come to.

    >>> from pipeline.poker.game import builtin
    >>> spot = real_spot(builtin("holdem.nolimit.2p.reverse_blinds"), "r300c/cr600", parse_cards("2c7d9h"))
    >>> spot.pot, spot.stack, spot.positions, spot.played
    (600.0, 19700.0, (0, 1), {'c': 300.0})
    """
    if not game.is_holdem or game.players != 2:
        raise PipelineError(f"{game.name}: spots are solved in heads-up hold'em")
    before = betting[: betting.rfind("/") + 1]
    state, last = state_after(game, before), state_after(game, betting)
    if state.round == 0 or last.finished:
        raise PipelineError(f"after {betting!r} no street after the flop is being played: name a betting like r300c/")
    open_cards = game.visible(state.round)
    if len(board) != open_cards:
        raise PipelineError(f"after {betting!r} {open_cards} board cards are open, not {cards_text(board) or 'none'}")
    spent, played, line = state.spent[0], {}, ""
    for action, size in actions(betting[len(before) :]):
        text = f"r{size - spent}" if action == RAISE else "fc"[action]
        if action == RAISE and game.nolimit:
            played[line] = float(size - spent)
        line += text
    stack = min(game.stacks) - spent if game.nolimit else 0
    return RealSpot(game, before, board, float(state.pot), float(stack), spent, (state.actor, 1 - state.actor), played)


def spot_of_state(game: Game, text: str) -> RealSpot:
    """Return the spot of a `MATCHSTATE:` line."""
    match_state = parse_match_state(text)
    return real_spot(game, match_state.betting, parse_cards("".join(match_state.board)))


def range_of(agent: Agent, spot: RealSpot, player: int) -> Floats:
    """Return the weight of each of the 1,326 holdings with which an agent gets to a spot, the likeliest 1.

    Parameters: `player` 0 out of position, 1 in position.
    """
    own = range_at(agent, spot.before, spot.board, spot.positions[player])
    weights = np.zeros(len(PAIRS))
    high, low = own.holes[:, 0].astype(np.int64), own.holes[:, 1].astype(np.int64)
    weights[high * (high - 1) // 2 + low] = own.reach
    if weights.max() <= 0:
        raise PipelineError(f"{agent.name} never plays {spot.before!r} from position {spot.positions[player]}")
    return np.asarray(weights / weights.max())


def lock_agent(agent: Agent, spot: RealSpot, player: int) -> LockedMix:
    """Return a lock that holds a player to an agent's mix at every decision."""
    if not agent.game.nolimit:
        raise PipelineError(f"{agent.name} plays {agent.game.name}: a lock is an agent of a no-limit game")
    counts: dict[int, int] = {}

    def locked(tree: SpotTree, node: int, board: tuple[int, ...], holdings: Array) -> Array:
        if not counts:
            counts.update(_decisions_by_street(tree, player))
            _check_rows(agent, counts, len(spot.board), len(holdings))
        betting = spot.before + in_game(tree.lines[node], spot.spent)
        rows, labels = own_rows(agent.game, betting, spot.positions[player], PAIRS[holdings], np.array(board, np.uint8))
        mix = np.asarray(agent.probabilities(rows[len(labels)]))
        return _to_actions(agent, rows[len(labels)], mix, state_after(agent.game, betting), tree, node, spot.spent)

    return locked


def in_game(line: str, spent: int) -> str:
    """Return a spot's line with the amounts of the whole hand.

    >>> in_game("cr150c/r300", 100)
    'cr250c/r400'
    """
    return re.sub(r"r(\d+)", lambda match: f"r{int(match[1]) + spent}", line)


def _decisions_by_street(tree: SpotTree, player: int) -> dict[int, int]:
    """Return how many decisions a player has on each street."""
    own = (tree.nodes.kind == DECISION) & (tree.nodes.player == player)
    streets = tree.segments.street[tree.segment_of[own]]
    return {int(street): int((streets == street).sum()) for street in np.unique(streets)}


def _check_rows(agent: Agent, decisions: dict[int, int], opened: int, holdings: int) -> None:
    """Refuse a lock for which an agent would be asked too much."""
    rows = 0
    for street, count in decisions.items():
        boards = 1
        for dealt in range(opened, street + 2):
            boards *= 52 - dealt
        rows += boards * count * holdings
    if rows > MAX_ROWS:
        raise PipelineError(
            f"locking a player to {agent.name} here asks for {rows:,} mixes and {MAX_ROWS:,} are allowed: name fewer "
            "sizes or narrower ranges, or begin on a later street"
        )


def _to_actions(agent: Agent, rows: Array, mix: Array, state: State, tree: SpotTree, node: int, spent: int) -> Array:
    """Return an agent's mix over labels as one over the actions of a decision."""
    names = tree.actions(node)
    level = max(state.spent)
    raises = [place for place, name in enumerate(names) if name[0] == "r"]
    by = np.array([float(names[place][1:]) + spent - level for place in raises])
    out = np.zeros((len(rows), len(names)))
    for label in range(mix.shape[1]):
        share = mix[:, label]
        if not share.any():
            continue
        if label == FOLD and "f" in names:
            out[:, names.index("f")] += share
        elif label in (FOLD, CALL) or not raises:
            out[:, names.index("c")] += share
        else:
            _add_raises(agent, rows, label, share, state, by, raises, out)
    return out / out.sum(axis=1, keepdims=True)


def _add_raises(
    agent: Agent, rows: Array, label: int, share: Array, state: State, by: Floats, raises: list[int], out: Array
) -> None:
    """Add the probability of a raise label to the actions with the nearest amounts."""
    places = np.array(raises)

    def nearest(chips: Array) -> Array:
        return np.asarray(places[np.abs(np.log(np.maximum(chips, 1)[:, None] / by)).argmin(axis=1)])

    amounts = amounts_of(agent, rows, np.full(len(rows), label, np.uint8))
    counts = np.zeros(len(rows), np.int64) if amounts is None else np.diff(amounts.starts)
    if amounts is not None:
        owners = np.repeat(np.arange(len(rows)), counts)
        np.add.at(out, (owners, nearest(amounts.by)), share[owners] * amounts.share)
    usual = size_of(state.game.rules, state.vector, label) - max(state.spent)
    out[counts == 0, nearest(np.array([usual]))[0]] += share[counts == 0]
