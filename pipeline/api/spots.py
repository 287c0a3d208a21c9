"""Spots of no-limit hold'em: `solve_spot`, `load_spot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pipeline.agents.names import GUESTS, default_game, is_bundle, resolve
from pipeline.agents.protocol import Agent
from pipeline.agents.spots import RealSpot, lock_agent, range_of, real_spot, spot_of_state
from pipeline.api._arguments import AnyPath, Texts, agent_or_name, named_game, texts
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import Game, find_game
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.errors import PipelineError
from pipeline.solving.ranges_text import parse_range
from pipeline.solving.spot import LockedMix, PostflopSpot, check_lines, lock_numbers, read_lock
from pipeline.solving.spot_tree import PLAYERS, Menu, parse_menu

if TYPE_CHECKING:
    from pipeline.solving.spot_solution import SpotSolution

NOLIMIT = "holdem.nolimit.2p.reverse_blinds"
AnyRange = AnyPath | Agent | Array
AnyLock = AnyPath | Agent | Mapping[str, Any]


def solve_spot(
    board: str | None = None,
    ranges: Sequence[AnyRange] = ("random", "random"),
    *,
    pot: float | None = None,
    stack: float | None = None,
    menu: Menu | Texts = "0.33,0.75,1.5",
    target: float = 0.005,
    locks: Mapping[str, AnyLock] | None = None,
    after: str | None = None,
    game: Game | str | None = None,
    trusted: bool = True,
    **run: Any,
) -> SpotSolution:
    """Solve a heads-up spot from the flop, turn or river on, exactly, to a chosen exploitability.

    Parameters
    ----------
    board : str, optional
        Three to five cards; left out where `after` is a `MATCHSTATE:` line.
    ranges : two of str, Agent or array
        First out of position, then in position: text such as `22+,A2s+,QQ:0.5`, an agent or its name (its range after
        the betting `after`), or (1326,) weights by `pair_index`.
    pot, stack : float, optional
        Chips; otherwise those after the betting.
    menu : str, sequence of str or Menu
        Sizes of bets and raises in pots, such as `0.5,1` or `["0.5", "ip:river:a"]`.
    target : float
        Exploitability at which the run stops, as a share of the pot.
    locks : mapping, optional
        `oop`, `ip`: an agent or its name, mixes by line of betting, or a JSON file of them.
    after : str, optional
        The betting that led to the spot, as ACPC writes it, or a `MATCHSTATE:` line.
    game : Game or str, optional
        The game of that betting; otherwise a bundle's, or no-limit hold'em for two.
    trusted : bool
        Whether names may start a user's own bot.
    **run
        `workers`, `max_memory` (gigabytes), `max_iterations`, `checkpoint` (path), `report(iteration, exploitability)`.

    Returns
    -------
    SpotSolution
        `value`, `equity` and `exploitability` in shares of the pot, `node(line, cards)`, `frame(line, cards)`, `save`.

    Examples
    --------
    >>> import pipeline as p
    >>> solution = p.solve_spot("2c7d9hTsJs", ["AA,72o", "KK"], pot=100, stack=100, menu="1", target=0.001)
    >>> solution.node().names, solution.exploitability < 0.001
    (['check', 'bet 100'], True)
    """
    from pipeline.solving.spot_solution import run_spot

    spot, fixed = prepare_spot(
        board, ranges, pot=pot, stack=stack, menu=menu, locks=locks, after=after, game=game, trusted=trusted
    )
    return run_spot(spot, target=target, locks=fixed, **run)


def prepare_spot(
    board: str | None,
    ranges: Sequence[AnyRange],
    *,
    pot: float | None,
    stack: float | None,
    menu: Menu | Texts,
    locks: Mapping[str, AnyLock] | None,
    after: str | None,
    game: Game | str | None,
    trusted: bool,
) -> tuple[PostflopSpot, tuple[LockedMix | None, LockedMix | None]]:
    """Return the spot and the locks that `solve_spot` solves; its parameters are the same."""
    if len(ranges) != 2:
        raise PipelineError(f"a spot has two ranges, not {len(ranges)}: first that of the player out of position")
    sources = [*ranges, *(locks or {}).values()]
    real = _real_spot(board, after, game, [source for source in sources if _is_agent(source)])
    spot = _spot(
        board, real, pot, stack, menu, [_weights(own, real, player, trusted) for player, own in enumerate(ranges)]
    )
    fixed = {_player(who): _lock(who, lock, spot, real, trusted) for who, lock in (locks or {}).items()}
    return spot, (fixed.get(0), fixed.get(1))


def load_spot(path: AnyPath) -> SpotSolution:
    """Open a solution of a spot that `SpotSolution.save` or `solve spot --out` wrote.

    Parameters
    ----------
    path : str or path
        Its folder.

    Returns
    -------
    SpotSolution
        With the nodes of the streets that were stored.

    Examples
    --------
    >>> import pipeline as p
    >>> p.load_spot("out/spot").frame("c")  # doctest: +SKIP
    """
    from pipeline.solving.spot_solution import load_solution

    return load_solution(Path(path))


def _is_agent(source: AnyRange | AnyLock) -> bool:
    """Return whether a range or a lock is an agent, or names one: by a prefix, or by a path that is there."""
    if isinstance(source, np.ndarray | Mapping):
        return False
    if not isinstance(source, str | Path):
        return True
    text = str(source)
    if text.startswith(("@", *GUESTS)):
        return True
    path = text.partition(":")[0]
    return not path.endswith(".json") and ("/" in path or path.endswith(".zip") or Path(path).exists())


def _agent(source: AnyRange | AnyLock, game: Game, trusted: bool) -> Agent:
    """Return an agent itself, or the one of this name."""
    named = agent_or_name(cast("AnyPath | Agent", source))
    return resolve(named, game, trusted=trusted) if isinstance(named, str) else named


def _real_spot(board: str | None, after: str | None, game: Game | str | None, agents: list[Any]) -> RealSpot | None:
    """Return the spot that a betting led to, if there is one."""
    if after is None:
        if agents:
            raise PipelineError(
                f"{getattr(agents[0], 'name', agents[0])} is an AGENT, whose play depends on the betting before the "
                "spot: name that, or a MATCHSTATE: line"
            )
        return None
    if game is not None:
        played = named_game(game)
    else:
        bundles = [str(agent) for agent in agents if isinstance(agent, str | Path) and is_bundle(str(agent))]
        objects = [agent for agent in agents if not isinstance(agent, str | Path)]
        played = objects[0].game if objects else default_game(bundles) if bundles else find_game(NOLIMIT)
    if not after.startswith("MATCHSTATE"):
        return real_spot(played, after, parse_cards(board or ""))
    if board is not None:
        raise PipelineError("a MATCHSTATE: line has the board: leave the other one out")
    return spot_of_state(played, after)


def _weights(own: AnyRange, real: RealSpot | None, player: int, trusted: bool) -> Floats:
    """Return the weight of each holding."""
    if isinstance(own, np.ndarray):
        if own.shape != (1326,):
            raise PipelineError(f"a range is 1,326 weights, not an array of shape {own.shape}")
        return np.asarray(own, np.float64)
    if not _is_agent(own) or real is None:
        return parse_range(str(own))
    return range_of(_agent(own, real.game, trusted), real, player)


def _spot(
    board: str | None,
    real: RealSpot | None,
    pot: float | None,
    stack: float | None,
    menu: Menu | Texts,
    weights: list[Floats],
) -> PostflopSpot:
    """Return the spot, with what was not named taken from the betting that led to it."""
    sizes = menu if isinstance(menu, Menu) else parse_menu(texts(menu))
    if real is None:
        if board is None or pot is None or stack is None:
            raise PipelineError("a spot needs a board, a pot and a stack, or the betting that led to it")
        return PostflopSpot(parse_cards(board), np.stack(weights), pot, stack, sizes)
    if not real.game.nolimit and stack is None:
        raise PipelineError(f"{real.game.name} has no stacks that a no-limit spot could take: name the stack")
    return PostflopSpot(
        real.board,
        np.stack(weights),
        real.pot if pot is None else pot,
        real.stack if stack is None else stack,
        sizes,
        chip=1.0,
        min_bet=float(real.game.big_blind),
        played=real.played,
    )


def _player(name: str) -> int:
    """Return the number of a player."""
    if name not in PLAYERS:
        raise PipelineError(f"{name!r} is no player of a spot: write oop (out of position) or ip (in position)")
    return PLAYERS.index(name)


def _lock(who: str, lock: AnyLock, spot: PostflopSpot, real: RealSpot | None, trusted: bool) -> LockedMix:
    """Return what a player is held to."""
    if _is_agent(lock):
        assert real is not None
        if (real.pot, real.stack) != (spot.pot, spot.stack):
            raise PipelineError(
                f"{who} is locked to an AGENT, which plays the pot and the stacks of the hand: leave them out"
            )
        return lock_agent(_agent(lock, real.game, trusted), real, _player(who))
    mixes = lock if isinstance(lock, Mapping) else read_lock(Path(str(lock)))
    check_lines(mixes, spot.tree(), _player(who))
    return lock_numbers(mixes)
