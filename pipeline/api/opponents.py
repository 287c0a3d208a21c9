"""Opponents: `profile` describes players, `leaks` says where one loses chips, `counter` beats one, and `exploit` says
what could be won from an agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.agents.names import choose_game, resolve
from pipeline.agents.protocol import Agent
from pipeline.api._arguments import AnyPath, Texts, rules_for, seat, texts
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.parallel import processors
from pipeline.runtime.tabular import ResultList, Tabular

if TYPE_CHECKING:
    from pipeline.evaluation.leaks import Leaks
    from pipeline.opponents.counters import Exploitability
    from pipeline.opponents.profiles import Profile
    from pipeline.solving.counter import Counter


@dataclass(frozen=True, repr=False)
class CounterStrategy(Tabular):
    """A counter-strategy in a folder, which plays wherever an agent's name does, and how it was chosen."""

    path: Path
    against: str
    game: Game
    counter: Counter
    """`method`, `tradeoff` (of the chosen trust: winnings, exploitability), `equilibrium`, `curve`"""

    def __fspath__(self) -> str:
        return str(self.path)

    def agent(self) -> Agent:
        """Return the strategy as a player."""
        return resolve(str(self.path), self.game)

    def rows(self) -> Iterable[dict[str, Any]]:
        """Return a row per trust that was tried: what it wins and how exploitable it is."""
        chosen = self.counter.tradeoff.share
        return [{**point._asdict(), "chosen": point.share == chosen} for point in self.counter.curve]

    def __repr__(self) -> str:
        won = self.counter.tradeoff.winnings
        return f"<Counter to {self.against}: {self.path}, wins {won:+.1f} {self.game.unit}>"


def counter(
    out: AnyPath,
    *,
    against: AnyPath | Agent | None = None,
    data: AnyPath | None = None,
    agent: str | None = None,
    method: str | None = None,
    share: float | None = None,
    risk: float = 100.0,
    half: float = 1.0,
    game: Game | str | None = None,
    deals: int = 4_000_000,
    table_hands: int = 60_000,
    seed: int = 1,
    workers: int | None = None,
) -> CounterStrategy:
    """Find a strategy that wins more from an opponent than an equilibrium does, at a risk that is named.

    Parameters
    ----------
    out : path
        Folder of the strategy; it plays.
    against : path, str or Agent, optional
        The agent to exploit; otherwise name `data` and `agent`.
    data, agent : path and str, optional
        A dataset, and whom of its players to exploit.
    method : {"best", "rnr", "dbr"}, optional
        Best response, restricted Nash response (the default against an agent), data-biased response (of logs).
    share : float, optional
        How far the model is trusted, 0 to 1; chosen by `risk` if not given.
    risk : float
        How much more exploitable than an equilibrium it may be, in mbb/h or milli-antes.
    half : float
        With `dbr`: a decision that logs show so often is trusted half as much as one shown without end.
    game : Game or str, optional
        What is played; otherwise the agent's game, or limit hold'em. With `data` the name of one of its games.
    deals : int
        In hold'em: how many deals each answer is trained on, for each seat.
    table_hands : int
        In hold'em: hands of each match that measures winnings.
    seed : int
        Same seed, same result, with one worker in hold'em.
    workers : int, optional
        Threads; all processors by default.

    Returns
    -------
    CounterStrategy
        It plays (`p.match(counter, ...)`); `counter.tradeoff` has its winnings; `frame()` a row per trust tried.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> out = f"{tempfile.mkdtemp()}/counter"
    >>> found = p.counter(out, against="@call", game="leduc.limit.2p", method="best")
    >>> found.counter.tradeoff.winnings > 300, p.match(found, "@call", hands=2_000).hands
    (True, 2000)
    """
    from pipeline.opponents.counters import Search, against_agent, against_player, find_counter

    if (against is None) == (data is None) or (data is None) != (agent is None):
        raise PipelineError("name the opponent: either against=AGENT, or data=DIR and agent=NAME")
    target = Path(out)
    work = target.with_name(target.name + ".work")
    chosen = method or ("rnr" if data is None else "dbr")
    search = Search(chosen, share, risk, half, deals, seed, workers or processors(), table_hands)
    if against is not None:
        rules = rules_for(game, [against], [against, "@call"])
        opponent = seat(against, rules)
        name, setting = opponent.name, against_agent(opponent, search, folder=work)
    else:
        assert data is not None
        assert agent is not None
        named = game.name if isinstance(game, Game) else game
        name, setting = agent, against_player(Path(data), agent, search, folder=work, game=named)
    counter_strategy = find_counter(setting, search, target, facts={"against": name, "method": chosen})
    return CounterStrategy(target, name, choose_game(None, [str(target)]), counter_strategy)


def exploit(
    agent: AnyPath | Agent,
    *,
    game: Game | str | None = None,
    hands: int = 2_000,
    deals: int = 16_000_000,
    table_hands: int = 60_000,
    seed: int = 1,
    workers: int | None = None,
) -> Exploitability:
    """Compute what a player who knows an agent can win from it: exactly in small games, a lower bound in hold'em.

    Parameters
    ----------
    agent : path, str or Agent
        Whom.
    game : Game or str, optional
        What it plays; otherwise the agent's game, or limit hold'em for two.
    hands : int
        That the local best response plays.
    deals : int
        On which the best response over buckets is trained, in limit hold'em.
    table_hands : int
        That it plays against an agent that does not play over these buckets.
    seed : int
        Same seed, same result, with one worker in hold'em.
    workers : int, optional
        Threads; all processors by default.

    Returns
    -------
    Exploitability
        `exploitability` and `at_least` in `unit`, `exact`, `ci95`, `method`, `response` (who won it).

    Examples
    --------
    >>> import pipeline as p
    >>> p.exploit("@call", game="kuhn.limit.2p").exploitability.__round__()
    333
    """
    from pipeline.opponents.counters import exploitability

    rules = rules_for(game, [agent], [agent, "@call"])
    threads = workers or processors()
    return exploitability(
        seat(agent, rules), deals=deals, hands=hands, table_hands=table_hands, seed=seed, workers=threads
    )


def profile(
    data: AnyPath, agent: Texts = (), *, by: Texts = (), game: str | None = None, style: bool = True
) -> ResultList[Profile]:
    """Describe players of a dataset: VPIP, PFR, 3-bet, c-bet, aggression, showdowns, with counts and intervals.

    Parameters
    ----------
    data : path
        A dataset's folder.
    agent : str or sequence of str
        Whose profile; everybody's by default, the most decisions first.
    by : str or sequence of str
        Also divide the hands: `position`, `opponent`, `time`.
    game : str, optional
        The game's name, where the dataset holds several.
    style : bool
        Whether to fit aggression and rationality, the calibrated player that plays most alike.

    Returns
    -------
    ResultList of Profile
        For each player the profile of all hands, then those of the groups; `frame()` has a row for each.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@raise", hands=20, log=f"{folder}/logs/call.raise")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False)
    >>> p.profile(f"{folder}/rows", "raise", style=False)[0].rates["pfr"].value
    1.0
    """
    from pipeline.opponents.profiles import profiles, with_styles

    described = profiles(Path(data), texts(agent) or None, by=texts(by), game=game)
    return ResultList(with_styles(described, Path(data), game=game) if style else described)


def leaks(
    data: AnyPath,
    agent: str,
    *,
    reference: AnyPath | Agent = "@teacher",
    game: str | None = None,
    min_decisions: int = 100,
) -> Leaks:
    """List the spots in which a player of a dataset loses chips compared with a reference, the worst first.

    Parameters
    ----------
    data : path
        A dataset's folder, of hands whose cards are known.
    agent : str
        The player's name in it.
    reference : str, path or Agent
        The agent to compare it with.
    game : str, optional
        The game's name, where the dataset holds several.
    min_decisions : int
        Decisions that a spot needs to be listed.

    Returns
    -------
    Leaks
        `spots`, each with `spot`, `difference`, `played`, `reference`, `groups` and `examples`; `frame()` has a row for
        each, `difference` is that of all together.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@raise", "@call", game="kuhn.limit.2p", hands=400, log=f"{folder}/logs/raise.call")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows")
    >>> p.leaks(f"{folder}/rows", "raise", reference="@call").spots[0].played
    {'f': 0.0, 'c': 0.0, 'r': 1.0}
    """
    from pipeline.dataset.load import select_rows
    from pipeline.evaluation.leaks import find_leaks

    rules = select_rows(Path(data), [agent], game=game).game
    return find_leaks(Path(data), agent, seat(reference, rules), min_decisions=min_decisions)
