"""Agents at the table: `agent`, `predict`, `match`, `tournament`, `sample`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.agents.predictions import Prediction
from pipeline.agents.predictions import predict as _predict
from pipeline.agents.protocol import Agent
from pipeline.api._arguments import AnyPath, agent_or_name, named_game, rules_for, seat, texts
from pipeline.arena.duplicate import MatchResult, distinct
from pipeline.arena.match import play_match
from pipeline.poker.game import Game
from pipeline.runtime.tabular import ResultList

if TYPE_CHECKING:
    from pipeline.arena.rankings import Tournament
    from pipeline.arena.sampling import SampleLogs


def agent(text: AnyPath, game: Game | str | None = None) -> Agent:
    """Return an agent by its name: `@teacher`, `@chump:maniac`, a bundle's folder or zip file with options.

    Parameters
    ----------
    text : str or path
        As on the command line.
    game : Game or str, optional
        What it plays; otherwise the bundle's game, or limit hold'em for two.

    Returns
    -------
    Agent
        `name`, `game` and `probabilities(rows)`: (rows, labels) float64.

    Examples
    --------
    >>> import pipeline as p
    >>> p.agent("@chump:20,50,30").name
    'chump-20-50-30'
    """
    return seat(text, rules_for(game, [], [text, text]))


def predict(
    agents: AnyPath | Agent | Sequence[AnyPath | Agent], state: str, game: Game | str | None = None
) -> ResultList[Prediction]:
    """Return what agents would do in one situation.

    Parameters
    ----------
    agents : str, path or Agent, or a sequence of them
        Names as on the command line, bundles, or agent objects.
    state : str
        The line a dealer sends the player to act.
    game : Game or str, optional
        Otherwise the first bundle's, or limit hold'em.

    Returns
    -------
    ResultList of Prediction
        For each agent `probabilities` (a `Mix`: by label, and `fold`, `call`, `aggressive`, `likeliest`), and in
        no-limit games `amounts` and `sizes`; `frame()` has a row per agent and a column per label.

    Examples
    --------
    >>> import pipeline as p
    >>> p.predict(["@call", "@raise"], "MATCHSTATE:0:0:rc/:9cKc|/6dJs5c").frame()["r"].tolist()
    [0.0, 1.0]
    """
    asked = agents if isinstance(agents, Sequence) and not isinstance(agents, str) else [agents]
    named = [agent_or_name(agent) for agent in asked]
    return ResultList(_predict(named, state, game=None if game is None else named_game(game)))


def match(
    *agents: AnyPath | Agent,
    hands: int = 10_000,
    seed: int = 0,
    game: Game | str | None = None,
    log: AnyPath | None = None,
    probabilities: bool = False,
    shared_luck: bool = False,
    adjusted: bool | int = True,
    workers: int = 2,
) -> MatchResult:
    """Play a duplicate match: every deal in all seatings.

    Parameters
    ----------
    *agents : str, path or Agent
        One per seat: names as on the command line, a bundle that is open, or any object with `name`, `game` and
        `probabilities(rows)`.
    hands : int
        All seatings counted.
    seed : int
        The same seed gives the same match.
    game : Game or str, optional
        Otherwise the first agent's that has one, or limit hold'em.
    log : path, optional
        Write `LOG.0.log`, `LOG.1.log` ..., one per seating.
    probabilities : bool
        Write the agents' true probabilities beside the logs.
    shared_luck : bool
        Share the agents' dice between the seatings of a deal.
    adjusted : bool or int
        Take the luck of cards and dice out of the results as well: same mean, shorter interval. A number averages them
        over so many hands that the last agent could have held: shorter still, and slower.
    workers : int
        Threads.

    Returns
    -------
    MatchResult
        `mbb_per_hand(i)` and `ci95(i)` of each agent, `adjusted_mbb_per_hand(i)` and `adjusted_ci95(i)`, `hands`,
        `seconds`, `logs`, `frame()`.

    Examples
    --------
    >>> import pipeline as p
    >>> p.match("@raise", "@fold", hands=10).mbb_per_hand()
    750.0
    """
    rules = rules_for(game, agents, agents)
    seated = [seat(given, rules) for given in agents]
    return play_match(
        seated,
        rules,
        hands=hands,
        seed=seed,
        log=None if log is None else Path(log),
        probabilities=probabilities,
        shared_luck=shared_luck,
        adjusted=adjusted,
        workers=workers,
    )


def tournament(
    *agents: AnyPath | Agent,
    hands: int = 20_000,
    seed: int = 0,
    game: Game | str | None = None,
    cap: float | None = None,
    adjusted: bool = True,
) -> Tournament:
    """Let every pair of agents (every three, in games for three) play the same deals, and rank them.

    Parameters
    ----------
    *agents : str, path or Agent
        At least two.
    hands : int
        Of each line-up.
    seed : int
        The same seed gives the same tournament.
    game : Game or str, optional
        Otherwise the first agent's that has one, or limit hold'em.
    cap : float, optional
        The largest loss that counts, mbb/h; by default what always folding loses heads-up. 0 counts every loss.
    adjusted : bool
        Whether to rank by results without the luck of cards and dice: the same means, shorter intervals.

    Returns
    -------
    Tournament
        `total_bankroll`, `instant_runoff` and `frame()`.

    Examples
    --------
    >>> import pipeline as p
    >>> p.tournament("@fold", "@call", hands=100).frame()["agent"].tolist()
    ['call', 'fold']
    """
    from pipeline.arena.tournament import play_tournament

    rules = rules_for(game, agents, agents[:2])
    players = [seat(given, rules) for given in agents]
    seated = dict(zip(distinct([player.name for player in players]), players, strict=True))
    return play_tournament(seated, rules, hands=hands, seed=seed, cap=cap, adjusted=adjusted)


def sample(
    out: AnyPath, *agents: AnyPath, hands: int, seed: int = 1, game: Game | str = "holdem.limit.2p.reverse_blinds"
) -> SampleLogs:
    """Play an agent against itself (half of the hands) and against opponents; write logs to learn from.

    Parameters
    ----------
    out : path
        Folder for the logs and `sample.probs.parquet`, the true probabilities of every decision.
    *agents : str or path
        The agent, then its opponents. With none the teacher, or `@equity` where it does not play the game, meets
        `@random`, `@equity`, `@call`, `@calibrated:70,70` and `@bearl`, or those of them that play it.
    hands : int
        In all, all seatings counted.
    seed : int
        The same seed gives the same logs.
    game : Game or str
        What is played.

    Returns
    -------
    SampleLogs
        `hands` that were played and `logs`, the files.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> p.sample(f"{tempfile.mkdtemp()}/logs", "@call", "@random", hands=40).hands
    40
    """
    from pipeline.arena.sampling import play_sample

    return play_sample(texts(agents), named_game(game), Path(out), hands=hands, seed=seed)
