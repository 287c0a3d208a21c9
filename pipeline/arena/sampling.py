"""Samples of an agent's play to learn from: matches against itself and against several opponents.

In go a game, an agent and its opponents, or none of them; out come ACPC logs in a folder and one file with the true
probabilities of every decision. Self-play alone never shows an agent's answers to mistakes: an imitator needs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.agents.names import plain_name, resolve
from pipeline.arena.duplicate import seatings
from pipeline.arena.match import THREADS, ClusterTable, play_match
from pipeline.poker.game import Game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress

AGAINST = ("@random", "@equity", "@call", "@calibrated:70,70", "@bearl")
AGAINST_ANYWHERE = ("@random", "@call")
"""opponents that play every game"""
DEFAULT_AGENTS = ("@teacher", "@equity", "@call")
"""agents to sample where none is named: the first that plays the game"""


class SampleLogs(NamedTuple):
    """The logs of a sample, and the number of hands in them."""

    hands: int
    logs: list[Path]


def able_to_play(names: Sequence[str], game: Game) -> tuple[str, ...]:
    """Return those built-in agents that play a game."""
    players = []
    for name in names:
        with suppress(PipelineError):
            resolve(name, game)
            players.append(name)
    return tuple(players)


def line_ups(agent: str, opponents: Sequence[str], players: int) -> list[tuple[str, ...]]:
    """Return the line-ups of `agent`: with each opponent in turn, in games for three also the one named after it.

    >>> line_ups("@teacher", ["@call", "@raise"], 2)
    [('@teacher', '@call'), ('@teacher', '@raise')]
    >>> line_ups("@teacher", ["@call", "@raise"], 3)
    [('@teacher', '@call', '@raise'), ('@teacher', '@raise', '@call')]
    """
    count = len(opponents)
    others = range(players - 1)
    return [(agent, *(opponents[(first + i) % count] for i in others)) for first in range(count)]


def play_sample(
    agents: Sequence[str],
    game: Game,
    out: Path,
    *,
    hands: int,
    seed: int = 1,
    cluster: Cluster | None = None,
    progress: Progress = no_progress,
) -> SampleLogs:
    """Play half of the hands among copies of an agent and half against its opponents; write logs and probabilities.

    Parameters: `agents` the agent and its opponents; without opponents those of `AGAINST`, without any agent the first
    of `DEFAULT_AGENTS` that plays the game. `out` is the folder to write to.
    """
    if game.players > 3:
        raise PipelineError(f"a sample is made of matches of two or three; {game.name} has {game.players} players")
    agent = agents[0] if agents else able_to_play(DEFAULT_AGENTS, game)[0]
    opponents = agents[1:] or able_to_play(AGAINST if game.is_holdem else AGAINST_ANYWHERE, game)
    matches = [(line_up, hands // 2 // len(opponents)) for line_up in line_ups(agent, opponents, game.players)]
    matches.insert(0, ((agent,) * game.players, hands // 2))
    fewest = len(seatings(game.players))
    total = sum(count for _, count in matches)
    logs: list[Path] = []
    hands_played = 0
    for number, (line_up, count) in enumerate(matches):
        if count < fewest:
            continue
        before = hands_played
        match = play_match(
            [resolve(text, game) for text in line_up],
            game,
            hands=count,
            seed=1000 * seed + number,
            log=out / ".".join([*map(plain_name, line_up), str(seed)]),
            probabilities=True,
            workers=ClusterTable.of(cluster, line_up) or THREADS,
            progress=lambda done, _, before=before: progress(before + done, total),  # type: ignore[misc]
        )
        logs += match.logs
        hands_played += match.hands
    if not logs:
        raise PipelineError(
            f"{hands} hands are too few for {len(matches)} matches; make at least {2 * fewest * len(matches)}"
        )
    _join_probabilities(sorted(out.glob(f"*.{seed}.probs.parquet")), out / "sample.probs.parquet")
    return SampleLogs(hands_played, logs)


def _join_probabilities(parts: list[Path], whole: Path) -> None:
    """Join the true probabilities of all matches in one file; rows of logs made before are kept."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def read(path: Path) -> Any:
        with path.open("rb") as file:  # by a path Arrow would refuse names that are not UTF-8
            return pq.read_table(file)

    tables = [read(part) for part in parts]
    if whole.is_file():
        made = pa.array(sorted({name for table in tables for name in table["file"].to_pylist()}))
        before = read(whole)
        tables.insert(0, before.filter(pc.invert(pc.is_in(before["file"].cast(pa.string()), value_set=made))))
    with replacing(whole) as unfinished, unfinished.open("wb") as file:
        pq.write_table(pa.concat_tables(tables, promote_options="permissive"), file, compression="zstd")
    for part in parts:
        part.unlink()
