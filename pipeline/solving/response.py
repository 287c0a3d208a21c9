"""What a player who knows a strategy can win from it, in buckets: a strategy projected on them, and the best response.

`tabulated` asks any agent for its play at every decision of a small game. `bucketed` asks any agent for its play with a
few hands of every bucket at every node of the betting and takes their mean, so that agents that see cards can be
written as a bucketed strategy (see `layout`). `best_response` trains the responder alone by the solver's traversals,
the strategy held fixed, and keeps the action with the largest regret; it needs far fewer deals where buckets learn
together (see `shared_learning`). What the response wins over fresh deals is a
lower bound of what the strategy can be made to lose to a player with these buckets: fewer deals of training make it
smaller, not larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pipeline.dataset.decisions import OBSERVATION, extend_betting, observation, observe
from pipeline.poker.cards import RANKS, Ranking, ranking
from pipeline.poker.game import Game
from pipeline.poker.rules import S_ACTOR, S_FINISHED, S_ROUND
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bit_table
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import Buckets, find_buckets
from pipeline.solving.holdem import ALONE, CHUNK, BucketSolver, Dealer, Restriction
from pipeline.solving.layout import T_ACTOR, T_ROUND, T_SLOT, Floats, Layout
from pipeline.solving.shared_learning import Learning
from pipeline.solving.small import SmallGame
from pipeline.solving.spread import Spread, go_on

SAMPLED = 200_000
"""hands among which those of each bucket are found"""
AT_ONCE = 1 << 18
"""rows asked for together"""


@kernel
def _seen(
    rules: Array, states: Array, words: Array, previous: Array, hole: Array, board: Array, ranks: Ranking, rows: Array
) -> None:
    """What the actor of each node sees with each hand, node by node."""
    at = 0
    for node in range(len(states)):
        for i in range(len(hole)):
            observe(rules, states[node], words[node], int(previous[node]), hole[i], board[i], ranks, rows, at)
            at += 1


def paths(layout: Layout) -> tuple[Array, Array, Array]:
    """The state, the betting codes and the actor's last action (as in the codes, 0 for none) at each node."""
    betting = layout.game.betting_tree()
    words = np.zeros((len(betting.states), 4), np.int64)
    last = np.zeros((len(betting.states), 2), np.int64)
    for node in range(len(betting.states)):  # parents come first
        street, actor = int(betting.states[node, S_ROUND]), int(betting.states[node, S_ACTOR])
        for label, child in enumerate(betting.child[node].tolist()):
            if child >= 0:
                words[child], last[child] = words[node], last[node]
                words[child, street] = extend_betting(int(words[node, street]), label)
                last[child, actor] = label + 1
    actors = np.where(betting.states[:, S_FINISHED] == 0, betting.states[:, S_ACTOR], 0)
    return betting.states, words, last[np.arange(len(last)), actors]


def _hands(layout: Layout, tables: Buckets, each: Sequence[int], seed: int) -> list[tuple[Array, Array]]:
    """For each street the hole cards and boards of so many hands of every bucket, bucket by bucket."""
    dealt = np.random.default_rng(seed).random((SAMPLED, 52)).argsort(axis=1)[:, :7].astype(np.uint8)
    hole, board = np.ascontiguousarray(dealt[:, :2]), np.ascontiguousarray(dealt[:, 2:])
    found = []
    for street, size in enumerate(layout.sizes):
        member = find_buckets(street, hole, board, tables)
        order = np.argsort(member, kind="stable")
        first, past = (np.searchsorted(member[order], np.arange(size), side) for side in ("left", "right"))
        # a bucket with fewer hands repeats them; one with none borrows its neighbour's
        pick = first[:, None] + np.arange(each[street]) % np.maximum(past - first, 1)[:, None]
        chosen = order[np.minimum(pick, SAMPLED - 1)].ravel()
        found.append((hole[chosen], board[chosen]))
    return found


def bucketed(
    probabilities: Callable[[Array], Array],
    layout: Layout,
    tables: Buckets,
    *,
    each: int | Sequence[int] = 4,
    seed: int = 1,
    progress: Progress = no_progress,
) -> Floats:
    """An agent's play as a bucketed strategy: the mean over `each` hands of every bucket, or so many by street."""
    states, words, previous = paths(layout)
    counts = [each] * layout.game.rounds if isinstance(each, int) else each
    hands = _hands(layout, tables, counts, seed)
    out = np.zeros((layout.rows, 3), np.float32)
    tree = layout.tree

    def ask(nodes: Array) -> None:
        street, player = int(tree[nodes[0], T_ROUND]), int(tree[nodes[0], T_ACTOR])
        hole, board = hands[street]
        rows = np.zeros(len(nodes) * len(hole), OBSERVATION)
        _seen(layout.game.rules, states[nodes], words[nodes], previous[nodes], hole, board, ranking(), rows)
        mixes = probabilities(rows).reshape(len(nodes), layout.sizes[street], counts[street], 3).mean(axis=2)
        start, step = int(layout.offsets[street, player]), int(layout.counts[street, player])
        at = start + np.arange(layout.sizes[street]) * step + tree[nodes, T_SLOT][:, None]
        out[at] = mixes

    jobs = []
    for street in range(layout.game.rounds):
        for player in range(2):
            nodes = np.flatnonzero((tree[:, T_ROUND] == street) & (tree[:, T_ACTOR] == player))
            size = max(1, AT_ONCE // len(hands[street][0]))
            jobs += [nodes[a : a + size] for a in range(0, len(nodes), size)]
    with ThreadPoolExecutor(2) as pool:
        for done, _ in enumerate(pool.map(ask, jobs)):
            progress(done + 1, len(jobs))
    return out


def tabulated(probabilities: Callable[[Array], Array], game: Game) -> Array:
    """An agent's play in a small game as a strategy: (rows, 3), see `small`."""
    small = SmallGame(game)
    places, asked = [], []
    for spot in small.spots():
        at = small.row(spot)
        actor = int(small.tree.states[at // small.infos, S_ACTOR])
        hole, board = (_card(game, name, copy) for copy, name in enumerate((spot.card, spot.board)))
        places.append(at)
        asked.append(observation(game, spot.betting, actor, hole, board))
    out = np.zeros((len(small.tree.states) * small.infos, 3))
    out[np.array(places)] = probabilities(np.concatenate(asked))
    return out


def _card(game: Game, name: str, copy: int) -> list[int]:
    """A card of a rank, the first or second of its suits; none for no name."""
    if not name:
        return []
    alike = [int(card) for card in game.deck if RANKS[int(card) >> 2] == name]
    return alike[copy % len(alike) :][:1]


def rows_of(layout: Layout, player: int) -> Array:
    """(rows,) whether a decision is that player's."""
    mine = np.zeros(layout.rows, bool)
    for street in range(layout.game.rounds):
        start = int(layout.offsets[street, player])
        mine[start : start + int(layout.counts[street, player]) * layout.sizes[street]] = True
    return mine


def best_response(
    layout: Layout,
    dealer: Dealer,
    strategy: Floats,
    *,
    deals: int,
    seed: int = 1,
    workers: int | Spread = 2,
    learning: Learning | None = None,
    otherwise: tuple[Floats, float] | None = None,
    progress: Progress = no_progress,
) -> Floats:
    """What to play against `strategy`, from both seats; trained on so many deals.

    Parameters: `workers`, threads here or a cluster; `learning` says which buckets learn together and what is played
    where nothing was learnt; `otherwise` is another strategy, which the opponent plays in some hands from beginning to
    end, and the share of the hands in which it plays the first one.
    """
    out = np.zeros((layout.rows, 3), np.float32)
    chunks = -(-deals // CHUNK)
    sharing = ALONE if learning is None else learning.sharing(layout, chunks)
    start = np.float32(0.0) if learning is None else sharing.head_start
    fixed = np.ascontiguousarray(strategy, np.float32)
    for player in range(2):
        mine = rows_of(layout, player)
        bound = Restriction(1 - player, fixed, 1.0 if otherwise is None else otherwise[1], np.zeros(0, np.float32))
        if otherwise is not None:  # a player who does not learn plays by its head start
            sharing = sharing._replace(head_start=np.where(mine[:, None], start, otherwise[0]))
        solver = BucketSolver(layout, dealer, seed, players=(player,), model=bound, sharing=sharing)
        go_on(solver, chunks, workers, _part_of(progress, player, chunks))
        out[mine] = _best_actions(solver)[mine]
    return out


def _best_actions(solver: BucketSolver) -> Floats:
    """(rows, 3) the action with the largest regret at each decision; where nothing was learnt, the likeliest of the
    strategy that the solver started from, or calling."""
    regret, sharing = solver.regret, solver.sharing
    if len(sharing.group) > 0:
        regret = regret[sharing.group] + sharing.head_start
    learnt = np.where(bit_table(solver.layout.legal, 3), regret, -np.inf)
    learnt[:, 1] += 1e-9
    return np.eye(3, dtype=np.float32)[learnt.argmax(axis=1)]


def _part_of(progress: Progress, seat: int, chunks: int) -> Progress:
    """Progress in the run of one seat, as that of both."""
    return lambda done, total: progress((seat + 1) * chunks - total + done, 2 * chunks)
