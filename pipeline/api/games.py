"""Hands and games by computation: `hand_strength`, `solve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipeline.api._arguments import named_game
from pipeline.poker.cards import parse_cards, start_class
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.solving.cfr import Solution


class HandStrength(NamedTuple):
    """The strength of a hand against one opponent with random cards."""

    now: float
    """the share of opponents' hands beaten if no card came, ties half"""
    equity: float
    """the same at the river"""
    positive_potential: float | None = None
    """how often a hand that is behind gets ahead, on flop and turn"""
    negative_potential: float | None = None
    """how often a hand that is ahead falls behind, on flop and turn"""


def hand_strength(hole: str, board: str = "") -> HandStrength:
    """Compute the strength of a hold'em hand against one opponent with random cards, exactly, by enumeration.

    Parameters
    ----------
    hole : str
        Two cards, such as `TcJc`.
    board : str
        No, three, four or five cards.

    Returns
    -------
    HandStrength
        `now`, `equity`, and on flop and turn `positive_potential` and `negative_potential`.

    Examples
    --------
    >>> import pipeline as p
    >>> [round(value, 3) for value in p.hand_strength("TcJc", "2dTsKh")]
    [0.834, 0.77, 0.178, 0.112]
    """
    own, opened = parse_cards(hole), parse_cards(board)
    streets = {0: 0, 3: 1, 4: 2, 5: 3}
    if len(own) != 2 or len(opened) not in streets or len({*own.tolist(), *opened.tolist()}) < len(own) + len(opened):
        raise PipelineError(f"{hole!r} and {board!r} are not two hole cards and 0, 3, 4 or 5 other board cards")
    if len(opened) == 0:
        from pipeline.poker.starting_hands import class_matchups

        win, tie, _ = class_matchups().against_random()[start_class(int(own[0]), int(own[1]))].tolist()
        return HandStrength(win + tie / 2, win + tie / 2)
    from pipeline.poker.strength.equity import outlook

    strength = outlook(streets[len(opened)], own[None], opened[None])
    potentials = (float(strength.ppot[0]), float(strength.npot[0])) if len(opened) < 5 else ()
    return HandStrength(float(strength.ihs[0]), float(strength.equity[0]), *potentials)


def solve(game: Game | str, *, iterations: int = 1000, method: str | None = None, seed: int = 0) -> Solution:
    """Solve a small game (Kuhn, Leduc, or a `.game` file as small) by counterfactual regret minimisation.

    Parameters
    ----------
    game : Game or str
        Such as `kuhn.limit.2p` or `leduc.limit.2p`.
    iterations : int
        How many.
    method : {"vanilla", "plus", "chance", "external"}, optional
        `plus` unless the game is too large to enumerate.
    seed : int
        For the sampled methods.

    Returns
    -------
    Solution
        `value` (chips per hand, by player), `exploitability`, `mix(spot)`.

    Examples
    --------
    >>> import pipeline as p
    >>> round(p.solve("kuhn.limit.2p").value[0], 3)
    -0.056
    """
    from pipeline.solving.cfr import ExactSolver

    return ExactSolver(named_game(game), method or "", seed).solve(iterations)
