"""Play tournaments: agents, a game and a seed go in, a ranked `Tournament` comes out.

`LineUps` plays the matches, for tournaments and for the selection of models alike: every line-up gets the same deals,
and rankings are given adjusted results, where these are possible. The plain results are kept too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.agents.protocol import Agent, Learner
from pipeline.arena.match import THREADS, ClusterTable, play_match, rehearse
from pipeline.arena.rankings import LineUpSamples, Tournament, folding_loss, play_all
from pipeline.models.measures import Winnings
from pipeline.poker.game import Game
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.progress import Progress, no_progress


@dataclass
class LineUps:
    """A function that plays the match of a line-up, given by the names of its agents."""

    game: Game
    find_agent: Callable[[str], Agent]
    """returns the agent of a name"""
    hands: int
    seed: int = 0
    adjusted: bool = True
    cluster: Cluster | None = None
    typed: Mapping[str, str] = field(default_factory=dict)
    """by name: the text from which a cluster's workers open an agent; other names are such texts themselves"""
    trusted: bool = False
    """whether a person wrote these texts on the command line (see `agents.names.resolve`)"""
    winnings: list[list[Winnings]] = field(default_factory=list)
    """by line-up, in the order they were played: the winnings of each member"""

    def learning(self, names: Sequence[str]) -> bool:
        """Return whether some of the agents learns from hand to hand."""
        return any(isinstance(self.find_agent(name), Learner) for name in names)

    def __call__(self, names: Sequence[str]) -> LineUpSamples:
        """Play a line-up; return what each agent won per deal."""
        players = [self.find_agent(name) for name in names]
        texts = [self.typed.get(name, name) for name in names]
        rehearse(players, self.game, adjusted=self.adjusted)
        match = play_match(
            players,
            self.game,
            hands=self.hands,
            seed=self.seed,
            adjusted=self.adjusted,
            workers=ClusterTable.of(self.cluster, texts, self.trusted) or THREADS,
        )
        self.winnings.append([match.winnings(i) for i in range(len(names))])
        return LineUpSamples(match.samples_mbb, match.adjusted_samples_mbb)


def play_tournament(
    players: Mapping[str, Agent],
    game: Game,
    *,
    hands: int,
    seed: int = 0,
    cap: float | None = None,
    adjusted: bool = True,
    cluster: Cluster | None = None,
    typed: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
) -> Tournament:
    """Let every line-up of the game's size play the same deals, and rank the agents by both rules.

    Parameters: `players` by name; `cap` the largest loss that counts in mbb/h, 0 for none, by default what always
    folding loses heads-up; `cluster` whose workers play, who open the agents from the texts `typed` on the command
    line, by name.
    """
    line_ups = LineUps(
        game, players.__getitem__, hands, seed, adjusted, cluster, typed or {}, trusted=typed is not None
    )
    learning = line_ups.learning(tuple(players))
    results = play_all(tuple(players), line_ups, members=game.players, seed=seed, learning=learning, progress=progress)
    return Tournament.rank(results, folding_loss(game) if cap is None else cap, line_ups.winnings)
