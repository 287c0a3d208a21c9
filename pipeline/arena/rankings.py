"""Rank agents by the results of all line-ups of them: total bankroll and bankroll instant run-off.

In goes `Results`: for each line-up (a pair, or three agents) each member's mean win in mbb/h, with bootstrap
replicates; rankings with confidence come out, and tables as text. The rules are those of the ACPC 2013:

- *total bankroll* ranks by the mean over all line-ups;
- *instant run-off* removes the agent with the lowest mean, counts again among those left, and so on; the order of
  removal, read backwards, is the ranking;
- a loss counts at most `cap` mbb/h (750 in limit hold'em: what always folding loses), so that the weakest agent
  does not decide who wins (heads-up only: with three, who takes the rest of a loss is not defined).

Confidence is by bootstrap over deals: all line-ups play the same deals, so a replicate draws the same deals for
all. `points`, as the ACPC printed it, is the mean number of remaining agents that an agent beats in a replicate.
How matches are played is a function passed in.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.models.measures import (
    BATCHES,
    STANDARD_ERRORS_95,
    Bootstrap,
    Estimate,
    Interval,
    Winnings,
    batch_numbers,
    few_batches,
    percentile,
    plot_winnings,
)
from pipeline.poker.game import Game
from pipeline.runtime.array_types import Floats, Ints
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.tabular import Tabular

if TYPE_CHECKING:
    from pipeline.runtime.pictures import Picture


class LineUpSamples(NamedTuple):
    """Winnings of each member of a line-up per deal in mbb/h, all seats played."""

    plain: npt.NDArray[np.floating]
    """(deals, members)"""
    adjusted: npt.NDArray[np.floating] | None = None
    """the same with the luck taken out; then these are ranked"""

    @property
    def ranked(self) -> npt.NDArray[np.floating]:
        """Return the samples that agents are ranked by: the adjusted ones, where there are any."""
        return self.plain if self.adjusted is None else self.adjusted


Play = Callable[[Sequence[str]], LineUpSamples]
"""Plays the named agents and gives what each won."""


@dataclass(frozen=True)
class Results:
    """Wins of each member of each line-up, in mbb/h."""

    names: tuple[str, ...]
    lineups: Ints
    won: Floats
    draws: Floats
    """Bootstrap replicates of `won`, shape (replicates, line-ups, members)."""
    cap: float | None = 750.0
    """The largest loss that counts, in mbb/h, unless the caller says otherwise."""
    adjusted: bool = False
    """whether the luck has been taken out of `won` and `draws`"""
    plain: tuple[Floats, Floats] | None = None
    """`won` and `draws` with the luck left in, where these were adjusted in a match that was played"""
    batches: int | None = None
    """how many batches of deals the replicates draw from, because an agent was learning; None where they draw deals"""

    def capped(self, cap: float | None) -> Results:
        """Return the same results with losses limited to `cap` mbb/h, and the gains of the others with them."""
        if cap is None:
            return self
        # no player can win more than the others can lose
        most = cap * (self.lineups.shape[1] - 1)
        return replace(self, won=np.clip(self.won, -cap, most), draws=np.clip(self.draws, -cap, most))

    def scores(self, values: Floats, alive: Sequence[int]) -> Floats:
        """Return the mean of `values` (..., line-ups, members) by agent of `alive`, over line-ups of these alone."""
        inside = np.isin(self.lineups, alive).all(axis=1)
        members = self.lineups[inside].ravel()
        incidence = (members[:, None] == np.asarray(alive)[None, :]).astype(np.float64)
        incidence /= np.maximum(incidence.sum(axis=0), 1.0)
        picked = values[..., inside, :]
        return np.asarray(picked.reshape(*picked.shape[:-2], -1) @ incidence)

    def by_lineup(self) -> Iterator[tuple[list[int], Floats, Floats]]:
        """Yield each line-up's members, what they won and half of their 95% intervals, in mbb/h."""
        for lineup, won, drawn in zip(self.lineups, self.won, self.draws.transpose(1, 0, 2), strict=True):
            yield lineup.tolist(), won, STANDARD_ERRORS_95 * np.array([values.std() for values in drawn.T])

    def ranked_by(self, cap: float | None) -> str:
        """Return the key of the winnings by which a ranking orders agents."""
        return f"{'capped_' if cap is not None else 'adjusted_' if self.adjusted else ''}mbb_per_hand"


class Standing(NamedTuple):
    """One agent in a count: the mean it won, and how many of the others it beats, averaged over the replicates."""

    name: str
    won: Interval
    """what ranks it"""
    points: float
    winnings: Winnings
    """the same line-ups by each way of counting"""

    def json(self) -> dict[str, Any]:
        return {"agent": self.name, **self.winnings.json(), "points": self.points}


class Round(NamedTuple):
    """One count of the run-off: the agents still in it, best first, and the one that leaves."""

    standings: list[Standing]
    eliminated: str
    confidence: float
    """the share of replicates in which the same agent comes last"""


class AgentRanking(NamedTuple):
    """A final order, best first, with the share of replicates in which each agent comes at each place."""

    rule: str
    standings: list[Standing]
    places: Floats
    rounds: list[Round]
    ranked_by: str
    """the key of the winnings that order it"""

    @property
    def confidence(self) -> float:
        """Return the share of replicates that name the same winner."""
        return float(self.places[0, 0])


def folding_loss(game: Game) -> float | None:
    """Return the loss of a player who always folds heads-up, mbb/h: the competition's cap; None for more players."""
    return 1000.0 * sum(game.blinds) / game.players / game.big_blind if game.players == 2 else None


def _standings(results: Results, cap: float | None, alive: Sequence[int]) -> list[Standing]:
    """Return one count among `alive`, best first; ties go to the agent named first."""
    counted = results.capped(cap)
    won = counted.scores(counted.won, alive)
    drawn = counted.scores(counted.draws, alive)
    beaten = (drawn[:, :, None] > drawn[:, None, :]).sum(axis=2).mean(axis=0)
    order = np.argsort(-won, kind="stable")
    ranked = _intervals(won, drawn)
    capped = ranked if cap is not None else None
    uncapped = _intervals(results.scores(results.won, alive), results.scores(results.draws, alive))
    plain = uncapped if not results.adjusted else None
    if results.plain is not None:
        plain = _intervals(*(results.scores(values, alive) for values in results.plain))
    columns = (plain, uncapped if results.adjusted else None, capped)
    return [
        Standing(
            results.names[alive[i]],
            ranked[i],
            float(beaten[i]),
            Winnings(*(None if column is None else Estimate.of(column[i]) for column in columns)),
        )
        for i in order
    ]


def _intervals(won: Floats, drawn: Floats) -> list[Interval]:
    """Return the interval of each mean (agents,) from its replicates (replicates, agents)."""
    return [percentile(float(value), replicates) for value, replicates in zip(won, drawn.T, strict=True)]


def _places(orders: Ints, final: Sequence[int]) -> Floats:
    """Return the share of replicates (rows of `orders`, best first) with agent `final[i]` at each place."""
    return np.array([(orders == agent).mean(axis=0) for agent in final])


def total_bankroll(results: Results, cap: float | None = 750.0) -> AgentRanking:
    """Rank agents by the mean they won over all line-ups; a loss counts at most `cap` mbb/h."""
    counted = results.capped(cap)
    everyone = range(len(counted.names))
    standings = _standings(results, cap, everyone)
    orders = np.argsort(-counted.scores(counted.draws, everyone), axis=1, kind="stable")
    final = [counted.names.index(standing.name) for standing in standings]
    return AgentRanking("total bankroll", standings, _places(orders, final), [], results.ranked_by(cap))


def instant_runoff(results: Results, cap: float | None = 750.0) -> AgentRanking:
    """Rank agents by removing the one with the lowest mean until one line-up is left, which is ranked by its result."""
    counted = results.capped(cap)
    everyone = tuple(range(len(counted.names)))
    rounds: list[Round] = []
    eliminated: list[int] = []
    alive = everyone
    while len(alive) > 1:
        standings = _standings(results, cap, alive)
        last = standings[-1].name
        lowest = counted.scores(counted.draws, alive).argmin(axis=1)
        sure = float((lowest == alive.index(counted.names.index(last))).mean())
        rounds.append(Round(standings, last, sure))
        if len(alive) <= counted.lineups.shape[1]:
            break
        eliminated.append(counted.names.index(last))
        alive = tuple(agent for agent in alive if agent != eliminated[-1])
    final = [counted.names.index(standing.name) for standing in rounds[-1].standings] + eliminated[::-1]
    at_exit = {count.eliminated: count.standings[-1] for count in rounds}
    at_exit.update({standing.name: standing for standing in rounds[-1].standings})
    ranked = [at_exit[counted.names[agent]] for agent in final]
    places = _places(_runoff_orders(counted), final)
    return AgentRanking("instant run-off", ranked, places, rounds, results.ranked_by(cap))


def _runoff_orders(results: Results) -> Ints:
    """Return the run-off's order in every replicate, best first, shape (replicates, agents).

    Replicates that have the same agents left are counted together: there are far fewer such sets than replicates.
    """
    count, members = len(results.names), results.lineups.shape[1]
    orders = np.zeros((len(results.draws), count), dtype=np.int64)
    pending = {tuple(range(count)): np.arange(len(results.draws))}
    while pending:
        alive, rows = pending.popitem()
        scores = results.scores(results.draws[rows], alive)
        if len(alive) <= members:
            orders[rows[:, None], np.arange(len(alive))] = np.array(alive)[np.argsort(-scores, axis=1, kind="stable")]
            continue
        # searched from behind, because of equals the one named last leaves
        last = np.array(alive)[len(alive) - 1 - scores[:, ::-1].argmin(axis=1)]
        orders[rows, len(alive) - 1] = last
        for agent in np.unique(last):
            rest = tuple(other for other in alive if other != agent)
            again = pending.get(rest, np.zeros(0, dtype=np.int64))
            pending[rest] = np.concatenate([again, rows[last == agent]])
    return orders


def cross_table(results: Results) -> tuple[Floats, Floats]:
    """Return for pairs the row's win from the column's agent, and half the 95% interval; NaN where not played."""
    if results.lineups.shape[1] != 2:
        raise PipelineError("a cross table needs matches of two agents; ask for the rankings alone with three")
    count = len(results.names)
    won, half = np.full((count, count), np.nan), np.full((count, count), np.nan)
    for (a, b), mean, widths in results.by_lineup():
        won[a, b], won[b, a] = mean
        half[a, b] = half[b, a] = widths[0]
    return won, half


def from_table(
    names: Sequence[str], won: Floats, half: Floats | None = None, *, replicates: int = 1000, seed: int = 0
) -> Results:
    """Return results from a published cross table; `half` are 95% half widths, replicates are then normal draws."""
    lineups = np.array(list(itertools.combinations(range(len(names)), 2)))
    above = won[lineups[:, 0], lineups[:, 1]]
    spread = np.zeros(len(above)) if half is None else half[lineups[:, 0], lineups[:, 1]] / STANDARD_ERRORS_95
    noise = np.random.default_rng(seed).normal(size=(replicates, len(above)))
    drawn = above + spread * (noise - noise.mean(axis=0)) / noise.std(axis=0)
    return Results(tuple(names), lineups, np.stack([above, -above], axis=1), np.stack([drawn, -drawn], axis=2))


def play_all(
    names: Sequence[str],
    play: Play,
    *,
    members: int = 2,
    replicates: int = 1000,
    seed: int = 0,
    learning: bool = False,
    progress: Progress = no_progress,
) -> Results:
    """Let every line-up of `members` agents play the same deals.

    Parameters: `learning`, whether some agent learns from hand to hand; all replicates are then of batches of
    consecutive deals (`pipeline.models.measures.half_width`), the same ones in all line-ups.
    """
    if len(names) < members:
        raise PipelineError(f"a tournament needs at least {members} agents, {len(names)} given; name more")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PipelineError(f"agent {twice[0]} is entered twice; give each agent once")
    lineups = np.array(list(itertools.combinations(range(len(names)), members)))

    @cache
    def draws_of(deals: int) -> Bootstrap:
        return Bootstrap(batch_numbers(deals) if learning else np.arange(deals), replicates=replicates, seed=seed)

    def draw(deals: npt.NDArray[np.floating]) -> tuple[Floats, Floats]:
        draws = draws_of(len(deals))
        mean, replicate = draws.mean(np.asarray(deals, dtype=np.float64).T)
        return mean, mean + few_batches(draws.groups) * (replicate - mean) if learning else replicate

    ranked: list[tuple[Floats, Floats]] = []
    plain: list[tuple[Floats, Floats]] = []
    for done, lineup in enumerate(lineups):
        progress(done, len(lineups))
        samples = play([names[agent] for agent in lineup])
        ranked.append(draw(samples.ranked))
        if samples.adjusted is not None:
            plain.append(draw(samples.plain))
    progress(len(lineups), len(lineups))
    won, drawn = _by_lineup(ranked)
    return Results(
        tuple(names),
        lineups,
        won,
        drawn,
        adjusted=bool(plain),
        plain=_by_lineup(plain) if plain else None,
        batches=min(BATCHES, len(samples.plain)) if learning else None,
    )


def _by_lineup(drawn: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return (line-ups, members) the means and (replicates, line-ups, members) their replicates."""
    return np.array([mean for mean, _ in drawn]), np.stack([replicate for _, replicate in drawn], axis=1)


FIRST_MEMBER = "agent 1"
"""the first cell of a table of line-ups"""
DRAWS = "draws"
"""the first cell of the block that follows a cross table in a file that `table_csv` wrote"""
KIND, ADJUSTED = "winnings", "adjusted_mbb_per_hand"
"""the line of that block that names the winnings of the table; without it they are `mbb_per_hand`"""


def read_table(path: Path, *, replicates: int = 1000, seed: int = 0) -> Results:
    """Read results from a CSV cross table: names in the first row and column, cells `-15.2±5.7` or `-15.2`.

    A file that `table_csv` wrote has the bootstrap draws too, so that every interval and share is the one of the
    tournament itself; for a published table without them, draws are made from the half widths. A table of line-ups, as
    games for three have it, is read with its draws only.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    end = next((i for i, row in enumerate(rows) if row[0].strip() == DRAWS), len(rows))
    rows, block = rows[:end], rows[end:]
    if rows and rows[0][0] == FIRST_MEMBER:
        return _lineup_table(path, rows, block)
    names = [row[0].strip() for row in rows[1:]]
    if not rows or [cell.strip() for cell in rows[0][1:]] != names or len(names) < 2:
        raise PipelineError(f"{path}: not a cross table; the first row must name the same agents as the first column")
    won, half = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for i, j in itertools.permutations(range(len(names)), 2):
        cell = rows[i + 1][j + 1] if j + 1 < len(rows[i + 1]) else ""
        number, _, spread = cell.partition("±")
        try:
            won[i, j], half[i, j] = float(number), float(spread or 0)
        except ValueError:
            raise PipelineError(
                f"{path}: {names[i]} against {names[j]} is {cell!r}; write mbb/h as -15.2±5.7 or -15.2"
            ) from None
    worst = np.unravel_index(np.abs(won + won.T).argmax(), won.shape)
    if abs(won[worst] + won.T[worst]) > 1.0:
        a, b = (names[int(i)] for i in worst)
        raise PipelineError(f"{path}: {a} against {b} is not minus {b} against {a}; mend one of the cells")
    if block:
        lineups = np.array(list(itertools.combinations(range(len(names)), 2)))
        results = _with_draws(names, lineups, won[lineups[:, :1], lineups[:, 1:]], block)
        if results is None:
            raise PipelineError(
                f"{path}: the draws below the cross table do not belong to it; remove the lines from `{DRAWS}` on to "
                "rank the table alone"
            )
        return results
    return from_table(names, won, half, replicates=replicates, seed=seed)


def _lineup_table(path: Path, rows: Sequence[Sequence[str]], block: Sequence[Sequence[str]]) -> Results:
    """Return the results that `table_csv` wrote for line-ups of more than two."""
    members, results = len(rows[0]) // 2, None
    names = list(dict.fromkeys(name for row in rows[1:] for name in row[:members]))
    lineups = [tuple(names.index(name) for name in row[:members]) for row in rows[1:]]
    with suppress(ValueError):
        won = np.array([[float(cell.partition("±")[0]) for cell in row[members:]] for row in rows[1:]])
        if sorted(lineups) == list(itertools.combinations(range(len(names)), members)):
            results = _with_draws(names, np.array(lineups), won, block)
    if results is None:
        raise PipelineError(
            f"{path}: a table of line-ups is ranked by the draws that `tournament --out` writes below it, a column for "
            "each of its members; these are missing or do not belong to it"
        )
    return results


def _with_draws(names: Sequence[str], lineups: Ints, won: Floats, block: Sequence[Sequence[str]]) -> Results | None:
    """Return the results in the block below a table: cap, means and draws; None where it does not belong to the table.

    `won` (line-ups, columns) is the table: for pairs the first member's wins, else a column for each member.
    """
    adjusted, block = _without_kind(block)
    try:
        cap = float(block[1][1]) or None
        values = np.array([[float(cell) for cell in row[1:]] for row in block[2:]])
    except (ValueError, IndexError):
        return None
    if len(values) < 2 or values.shape[1:] != (won.size,) or not np.isfinite(values).all():
        return None
    values = values.reshape(-1, *won.shape)
    if (np.abs(values[0] - won) > 0.051).any():
        return None
    if won.shape[1] == 1:
        values = np.concatenate([values, -values], axis=2)
    return Results(tuple(names), lineups, values[0], values[1:], cap, adjusted)


def _without_kind(block: Sequence[Sequence[str]]) -> tuple[bool, list[Sequence[str]]]:
    """Return whether the winnings of a table are adjusted, and its block of draws without the line that says so."""
    lines = [row for row in block if row[:1] != [KIND]]
    return [KIND, ADJUSTED] in [list(row) for row in block], lines


def lineup_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table: each member's win in each line-up, in mbb/h with half its 95% interval."""
    members = range(1, results.lineups.shape[1] + 1)
    rows = []
    for lineup, mean, half in results.by_lineup():
        cells = [f"{value:+.1f}±{width:.1f}" for value, width in zip(mean, half, strict=True)]
        rows.append([*(results.names[agent] for agent in lineup), *cells])
    return [*(f"agent {i}" for i in members), *(f"mbb/h of {i}" for i in members)], rows


def table_csv(results: Results) -> str:
    """Return the cross table as `read_table` reads it; below it the cap, the means and the draws of every pair.

    With three players in a line-up: a row per line-up, and below them the draws of every member.
    """
    lineups = [[results.names[i] for i in lineup] for lineup in results.lineups]
    if results.lineups.shape[1] == 2:
        won, half = cross_table(results)
        table = [["", *results.names]]
        for i, name in enumerate(results.names):
            cells = (f"{value:.1f}±{width:.1f}" for value, width in zip(won[i], half[i], strict=True))
            table.append([name, *("" if i == j else cell for j, cell in enumerate(cells))])
        titles, columns = [":".join(names) for names in lineups], slice(1)
    else:
        head, rows = lineup_rows(results)
        table = [head, *rows]
        titles = [f"{':'.join(names)} {i}" for names in lineups for i in range(1, len(names) + 1)]
        columns = slice(None)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([*table, [], [DRAWS, *titles], *_settings(results)])
    for number, values in enumerate([results.won, *results.draws]):
        writer.writerow([number or "mean", *(f"{value:.6f}" for value in values[:, columns].ravel())])
    return out.getvalue()


def _settings(results: Results) -> list[list[str]]:
    """Return the lines below the titles of draws: the cap, and the kind of winnings where they are not as played."""
    return [["cap", f"{results.cap or 0:g}"], *([[KIND, ADJUSTED]] if results.adjusted else [])]


@dataclass(frozen=True, repr=False)
class Tournament(Tabular):
    """Results of a tournament, ranked by both of the competition's rules."""

    results: Results
    total_bankroll: AgentRanking
    instant_runoff: AgentRanking
    lineups: Sequence[Sequence[Winnings]]
    """by line-up and member: what was won in its match"""

    @classmethod
    def rank(cls, results: Results, cap: float | None, lineups: Sequence[Sequence[Winnings]] = ()) -> Tournament:
        """Rank results by both rules.

        Parameters: `cap` is the largest loss that counts, None or 0 for none; `lineups` the winnings of each match by
        member, where matches were played: otherwise they are those of the results' draws.
        """
        capped = replace(results, cap=cap or None)
        return cls(
            capped,
            total_bankroll(capped, cap or None),
            instant_runoff(capped, cap or None),
            lineups or [_drawn_winnings(results, won, half) for _, won, half in results.by_lineup()],
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per agent: its place by each rule, its mean winnings, and the key of those that rank."""
        runoff = [standing.name for standing in self.instant_runoff.standings]
        return [
            {
                "agent": standing.name,
                "bankroll_place": place,
                "runoff_place": runoff.index(standing.name) + 1,
                **standing.winnings.row(),
                "ranked_by": self.total_bankroll.ranked_by,
            }
            for place, standing in enumerate(self.total_bankroll.standings, start=1)
        ]

    def json(self) -> dict[str, Any]:
        """Return the object that `tournament --json` prints."""
        results = self.results
        names = [[results.names[i] for i in lineup] for lineup in results.lineups.tolist()]
        return {
            "agents": list(results.names),
            "cap_mbb": results.cap,
            "interval_batches": results.batches,
            "lineups": [
                {
                    "agents": members,
                    "results": [{"agent": name, **won.json()} for name, won in zip(members, winnings, strict=True)],
                }
                for members, winnings in zip(names, self.lineups, strict=True)
            ],
            "total_bankroll": _ranking_json(self.total_bankroll),
            "instant_runoff": _ranking_json(self.instant_runoff),
        }

    def plot(self) -> Picture:
        """Return a picture of the winnings with their intervals, the first by total bankroll on the left."""
        standings = self.total_bankroll.standings
        return plot_winnings([standing.name for standing in standings], [standing.winnings for standing in standings])

    def __repr__(self) -> str:
        order = ", ".join(standing.name for standing in self.total_bankroll.standings)
        return f"<Tournament by total bankroll: {order}>"


def _drawn_winnings(results: Results, won: Floats, half: Floats) -> list[Winnings]:
    """Return the winnings of a line-up's members from the spread of their draws."""
    members = [Estimate.around(float(mean), float(width)) for mean, width in zip(won, half, strict=True)]
    return [Winnings(adjusted=estimate) if results.adjusted else Winnings(estimate) for estimate in members]


def _ranking_json(ranking: AgentRanking) -> dict[str, Any]:
    return {
        "ranked_by": ranking.ranked_by,
        "standings": [
            {**row.json(), "first_in": float(share)}
            for row, share in zip(ranking.standings, ranking.places[:, 0], strict=True)
        ],
        "rounds": [
            {
                "eliminated": count.eliminated,
                "confidence": count.confidence,
                "standings": [row.json() for row in count.standings],
            }
            for count in ranking.rounds
        ],
    }
