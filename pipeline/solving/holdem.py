"""Abstracted limit hold'em: external-sampling counterfactual regret minimisation over the full betting tree.

In: a `Layout` and a dealer, a function that fills rows of buckets (see `layout`). Out: an average strategy, one row
of (fold, call, raise) per decision. Each deal is traversed once for each player (Lanctot and others, 2009): all
actions of that player are tried, the others' are drawn from their current strategies, which regret matching gives;
the others' strategies at the nodes passed are added to their averages. Regrets and averages of iteration t weigh t
(linear CFR, Brown and Sandholm 2019). Actions with very negative regret are skipped in most traversals, as they
would be played again only after long.

Beyond two players nothing promises that the average is an equilibrium, nor that it loses nothing against any others: it
has to prove itself in matches. Left to themselves three players soon fold so much that situations after three calls or
raises are hardly ever learnt, and a player who always raises would win from the result. So in a share of the hands each
of the others is *careless*: it plays one mix of fold, call and raise, drawn anew for that hand, whatever its cards.

A traversal is a queue, not a recursion: nodes are visited breadth first, so that several cache misses are under way
at once, and values flow back from the end of the queue. Workers are threads that share the tables without locks;
with one worker the same seed gives the same bytes, also when interrupted and resumed.

Three things are built on it. `SharedLearning` keeps the regrets of a group of buckets once: of a million deals a river
bucket sees a few dozen at each node, too few to tell actions apart; a group of ten sees hundreds. Every bucket adds a
head start in proportion to the strategy that it starts from, which is played where nothing is learnt. `best_response`
trains the responder alone, the strategy held fixed, and takes the action with the largest regret; what it wins over
fresh deals is a lower bound of what the strategy can lose, as fewer deals of training only make it smaller.
`run_on_cluster` learns on a dask cluster, in rounds: a round is divided into a fixed number of lanes of consecutive
chunks, each walked by one thread from the tables as they were when the round began; then averages are the sum of what
the lanes have added. So are regrets against a player who keeps to its strategy. Where both players learn, the sum would
answer the same mistake once per lane and swing ever wider, so there a lane's regrets count one part in `LANES`. The
bytes do not depend on the number of workers, but they are not those of a run in one process, whose threads see each
other's regrets at once: in Leduc an equilibrium comes as near as by such a run on about half of the deals.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.runtime.array_types import Array, Singles
from pipeline.runtime.arrays import parse_json, read_npy, whole_number
from pipeline.runtime.dask_cluster import Cluster
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import recover, replacing, sha256
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bit_table, random_state, uniform
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.layout import T_ACTOR, T_FOLD, T_ROUND, T_SLOT, Layout, LayoutTables, bases, payoff, pot_shares

Dealer: TypeAlias = Callable[[Array, Array], None]
"""fills rows of deals (see `layout`) int16 from a random state (1,) uint64, without the interpreter's lock"""
CHUNK = 16_384
"""deals that draw from one random state and have one weight"""
PRUNE_BELOW = -3000.0
"""regret in chips, times the weight of the deal, under which an action is skipped, in `PRUNED_OF_20` deals of 20"""
PRUNED_OF_20 = 19


class Restriction(NamedTuple):
    """A mix that one player has to play part of the time (see `counter`); otherwise it is free and learns."""

    player: int
    """-1 for none"""
    mix: Singles
    """(rows, 3)"""
    hand_share: float
    """the share of hands in which it keeps to the model; in the others it is free from beginning to end"""
    decision_share: Singles
    """(rows,) in those hands, the share of times that it keeps to the model at a decision; empty is always"""


UNRESTRICTED = Restriction(-1, np.zeros((0, 3), np.float32), 0.0, np.zeros(0, np.float32))


class Sharing(NamedTuple):
    """Rows that learn together, and what each starts from; empty where each row learns by itself."""

    regret_row: Array
    """(rows,) the row of the regrets that a decision shares"""
    head_start: Singles
    """(rows, 3) regrets that are a row's own, added to those of its group"""


NO_SHARING = Sharing(np.zeros(0, np.int32), np.zeros((0, 3), np.float32))


class LearningTables(NamedTuple):
    """The tables that a run changes, one row of (fold, call, raise) per decision, and who is not free."""

    regret: Singles
    """(groups, 3)"""
    average: Singles
    """(rows, 3)"""
    model: Restriction
    sharing: Sharing


class TraversalScratch(NamedTuple):
    """Buffers of one traversal; those of nodes by place in the queue."""

    queue: Array
    """the nodes to visit"""
    parent: Array
    """4 * the place of the node above + the action that leads here"""
    rows: Array
    """where the decision's regrets are kept if the learning player acts, -1 where another does"""
    mix: Singles
    values: Singles
    """what each action of a node is worth; NaN where it was not tried"""
    share: Singles
    """(2 ** players,) the learning player's share of the pot by who has folded (see `layout.pot_shares`)"""
    styles: Singles
    """(players, 3) the mix of each player who ignores its cards in this traversal; the first of the others' is -1"""


@kernel(leaf=True)
def _match_regrets(
    regret: Singles, entry: int, row: int, head_start: Singles, fold_legal: bool, raise_legal: bool
) -> tuple[Any, Any, Any]:
    """Match regrets: legal actions in proportion to their positive regrets, equal shares where none is."""
    # called at every node visited, so three actions are written out, without an array to fill
    zero = np.float32(0.0)
    fold, call, raised = regret[entry, 0], regret[entry, 1], regret[entry, 2]
    if len(head_start) > 0:
        fold += head_start[row, 0]
        call += head_start[row, 1]
        raised += head_start[row, 2]
    fold, call, raised = max(fold, zero), max(call, zero), max(raised, zero)
    total = fold + call + raised
    if total > 0:
        scale = np.float32(1.0) / total
        return fold * scale, call * scale, raised * scale
    share = np.float32(1.0) / np.float32(1 + fold_legal + raise_legal)
    return share if fold_legal else zero, share, share if raise_legal else zero


@kernel(leaf=True)
def _value_back(count: int, weight: Any, regret: Singles, scratch: TraversalScratch) -> None:
    """Bring the values from the end of the queue to its start, and add what each action gained to its regret."""
    mix, values = scratch.mix, scratch.values
    for place in range(count - 1, -1, -1):
        row = scratch.rows[place]
        value = np.float32(0.0)
        if row < 0:
            value = values[place, 0]
        else:
            for action in range(3):
                if mix[place, action] > 0:
                    value += mix[place, action] * values[place, action]
            # the weight of the deal makes this linear CFR: early regrets, from bad opponents, are soon outweighed
            for action in range(3):
                gained = values[place, action]
                if gained == gained:  # not NaN: the action was tried
                    regret[row, action] += weight * (gained - value)
        above = scratch.parent[place]
        values[above >> 2, above & 3] = value


@kernel(leaf=True)
def _draw_styles(chance: float, random: Array, styles: Singles) -> None:
    """Draw who ignores its cards in this hand, and by which mix.

    The cubes of three exponential numbers: often nearly all is one action, at times it is a mixture.
    """
    for player in range(len(styles)):
        styles[player, 0] = np.float32(-1.0)
        if chance > 0 and uniform(random) < chance:
            total = 0.0
            for action in range(3):
                drawn = -(np.log(1.0 - uniform(random)) ** 3)
                styles[player, action] = drawn
                total += drawn
            for action in range(3):
                styles[player, action] /= np.float32(total)


@kernel(leaf=True)
def _traverse(
    layout: LayoutTables,
    player: int,
    base: Array,
    weight: Any,
    floor: Any,
    tables: LearningTables,
    random: Array,
    scratch: TraversalScratch,
) -> None:
    """Traverse a deal for `player` by external sampling; skip actions with regret under `floor`.

    Numbers are float32 throughout.
    """
    tree, payoffs = layout.tree, layout.payoffs
    regret, average, model, sharing = tables
    mix, values, share = scratch.mix, scratch.values, scratch.share
    # a player that plays the model throughout a hand learns in its free hands only
    learns = len(model.decision_share) > 0 or model.player != player
    bound = model.player >= 0 and learns and uniform(random) < model.hand_share
    zero, whole = np.float32(0.0), np.float32(1.0)
    scratch.queue[0] = 0
    scratch.parent[0] = 0
    count = 1
    place = 0
    while place < count:
        node = scratch.queue[place]
        actor = tree[node, T_ACTOR]
        # on a street a player's bucket is fixed, so the row of a decision is one sum away (see `layout.bases`)
        row = entry = base[tree[node, T_ROUND], actor] + tree[node, T_SLOT]
        fold_legal, raise_legal = tree[node, T_FOLD] >= 0, tree[node, T_FOLD + 2] >= 0
        follows = (
            bound
            and actor == model.player
            and (len(model.decision_share) == 0 or uniform(random) < model.decision_share[row])
        )
        careless = actor != player and scratch.styles[actor, 0] >= 0
        if follows:
            p0, p1, p2 = model.mix[row, 0], model.mix[row, 1], model.mix[row, 2]
        elif careless:
            p0 = scratch.styles[actor, 0] if fold_legal else zero
            p2 = scratch.styles[actor, 2] if raise_legal else zero
            p1 = whole - p0 - p2
        else:
            if len(sharing.regret_row) > 0:
                entry = np.int64(sharing.regret_row[row])
            p0, p1, p2 = _match_regrets(regret, entry, row, sharing.head_start, fold_legal, raise_legal)
        if actor == player and not follows:
            # own actions are all tried, so that each gets its regret in every deal
            scratch.rows[place] = entry
            mix[place, 0], mix[place, 1], mix[place, 2] = p0, p1, p2
            for action in range(3):
                child = tree[node, T_FOLD + action]
                values[place, action] = np.float32(np.nan)
                # pruning: an action far in the red is not played, and would not be for long whatever this deal shows
                if child < 0 or (regret[entry, action] < floor and mix[place, action] == 0):
                    continue
                if tree[child, T_ACTOR] < 0:
                    values[place, action] = payoff(payoffs[child], share, player)
                else:
                    scratch.queue[count] = child
                    scratch.parent[count] = place * 4 + action
                    count += 1
        else:
            scratch.rows[place] = -1
            # a player comes to a node as often as its own mix leads there, so the sampling itself weighs the average
            # by its reach probability; a mix that it was made to play is none of its own
            if not (follows or careless):
                average[row, 0] += weight * p0
                average[row, 1] += weight * p1
                average[row, 2] += weight * p2
            draw = uniform(random)
            action = 1
            if draw < p0:
                action = 0
            elif draw >= p0 + p1 and raise_legal:
                action = 2
            child = tree[node, T_FOLD + action]
            if tree[child, T_ACTOR] < 0:
                values[place, 0] = payoff(payoffs[child], share, player)
            else:
                scratch.queue[count] = child
                scratch.parent[count] = place * 4
                count += 1
        place += 1
    _value_back(count, weight, regret, scratch)


@kernel
def _traverse_all(
    layout: LayoutTables,
    deals: Array,
    learners: Array,
    weight: float,
    careless: float,
    queue_size: int,
    tables: LearningTables,
    random: Array,
) -> None:
    """Traverse each deal once for each of `learners`; none visits more than `queue_size` nodes."""
    rounds, players = layout.counts.shape
    scratch = TraversalScratch(
        np.empty(queue_size, dtype=np.int32),
        np.empty(queue_size, dtype=np.int32),
        np.empty(queue_size, dtype=np.int64),
        np.empty((queue_size, 3), dtype=np.float32),
        np.empty((queue_size, 4), dtype=np.float32),
        np.empty(1 << players, dtype=np.float32),
        np.empty((players, 3), dtype=np.float32),
    )
    base = np.empty(layout.counts.shape, dtype=np.int64)
    never = np.float32(-np.inf)
    for i in range(len(deals)):
        bases(deals[i], layout.offsets, layout.counts, base)
        # one deal in twenty tries everything, so that an action can come back
        floor = np.float32(PRUNE_BELOW * weight) if i % 20 < PRUNED_OF_20 else never
        for player in learners:
            pot_shares(deals[i, rounds * players :], player, scratch.share)
            _draw_styles(careless, random, scratch.styles)
            _traverse(layout, player, base, np.float32(weight), floor, tables, random, scratch)


@dataclass
class BucketSolver:
    """A run of the solver: its tables and how far it has come."""

    layout: Layout
    dealer: Dealer
    seed: int
    chunks: int = 0
    """chunks of `CHUNK` deals done"""
    regret: Singles = field(default_factory=lambda: np.empty((0, 3), dtype=np.float32))
    average: Singles = field(default_factory=lambda: np.empty((0, 3), dtype=np.float32))
    players: tuple[int, ...] = ()
    """who learns, all where none is named; the others play by the regrets they were given"""
    model: Restriction = UNRESTRICTED
    """who is not free, and what it has to play"""
    sharing: Sharing = NO_SHARING
    """which rows learn together"""
    careless: float = 0.0
    """the share of hands in which each of the others plays a random mix, whatever its cards"""

    def __post_init__(self) -> None:
        self.players = self.players or tuple(range(self.layout.game.players))
        if not len(self.regret):
            groups = int(self.sharing.regret_row.max()) + 1 if len(self.sharing.regret_row) else self.layout.rows
            self.regret = np.zeros((groups, 3), dtype=np.float32)
            self.average = np.zeros((self.layout.rows, 3), dtype=np.float32)

    def _chunk(self, index: int) -> None:
        """Traverse the deals of one chunk; which they are depends on the seed and the chunk's number only."""
        layout, random = self.layout, random_state(self.seed, index)
        deals = np.empty((CHUNK, layout.deal_size), dtype=np.int16)
        self.dealer(random, deals)
        _traverse_all(
            layout.tables,
            deals,
            np.array(self.players),
            float(index + 1),
            self.careless,
            layout.longest_queue,
            LearningTables(self.regret, self.average, self.model, self.sharing),
            random,
        )

    def run(self, chunks: int, *, workers: int = 2, progress: Progress = no_progress) -> None:
        """Go on until `chunks` chunks are done; an interruption leaves the chunks begun finished."""
        first = self.chunks
        with ThreadPoolExecutor(workers) as pool:
            running: deque[Future[None]] = deque()  # no more than one chunk a worker: an interruption waits for few
            for index in range(first, chunks):
                running.append(pool.submit(self._chunk, index))
                while len(running) > (workers if index + 1 < chunks else 0):
                    running.popleft().result()
                    self.chunks += 1
                    progress(self.chunks - first, chunks - first)

    def strategy(self) -> Singles:
        """Return the average strategy; equal shares of the legal actions where nothing was learnt."""
        total = self.average.sum(axis=1, keepdims=True)
        mix = np.where(total > 0, self.average / np.maximum(total, 1e-30), self.layout.equal_mix)
        return np.asarray(mix, dtype=np.float32)


# Checkpoints


CHECKPOINT = "checkpoint.json"
TABLES = ("regret.npy", "average.npy")


def save_checkpoint(solver: BucketSolver, folder: Path, about: dict[str, Any]) -> None:
    """Write a checkpoint: the tables and how far the run has come. `about` is what a resumed run must agree with."""
    with replacing(folder) as temporary:
        temporary.mkdir()
        np.save(temporary / "regret.npy", solver.regret)
        np.save(temporary / "average.npy", solver.average)
        settings = {"chunks": solver.chunks, "seed": solver.seed, "sizes": list(solver.layout.sizes), **about}
        settings["files"] = {name: sha256(temporary / name) for name in TABLES}
        (temporary / CHECKPOINT).write_text(json.dumps(settings) + "\n", encoding="utf-8")


def resume_checkpoint(solver: BucketSolver, folder: Path, about: dict[str, Any]) -> bool:
    """Load a checkpoint into the solver, if there is one; one of another run or a damaged one is refused."""
    recover(folder)
    if not (folder / CHECKPOINT).is_file():
        return False
    try:
        stored = parse_json((folder / CHECKPOINT).read_bytes())
        chunks = whole_number(stored["chunks"], "its number of chunks", 0, 1 << 40)
        for name in TABLES:
            if sha256(folder / name) != stored["files"][name]:
                raise ValueError(f"{name} is not as it was written")
        regret, average = (np.ascontiguousarray(read_npy(folder / name)) for name in TABLES)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise PipelineError(f"{folder} is a damaged checkpoint ({error}): remove it") from None
    wanted = {"seed": solver.seed, "sizes": list(solver.layout.sizes), **about}
    for key, value in wanted.items():
        if stored.get(key) != value:
            # of an opponent only the checksum is stored, which no reader knows
            difference = "another opponent" if key == "opponent" else f"{key} {stored.get(key)}, not {value}"
            raise PipelineError(f"{folder} is a checkpoint with {difference}: name another folder or remove it")
    if "deals" in about and chunks > -(-about["deals"] // CHUNK):
        raise PipelineError(f"{folder} is a damaged checkpoint (it is past the end of its run): remove it")
    for read, table in ((regret, solver.regret), (average, solver.average)):
        if (read.shape, read.dtype) != (table.shape, table.dtype) or not np.isfinite(read).all():
            raise PipelineError(f"{folder} is a damaged checkpoint (a table of another form): remove it")
    if average.min(initial=0) < 0:
        raise PipelineError(f"{folder} is a damaged checkpoint (an average below 0): remove it")
    solver.regret, solver.average, solver.chunks = regret, average, chunks
    return True


# Buckets that learn together

HEAD_START = 200.0
"""chips of regret, at the weight of the last deals, that the strategy at the start divides among its actions"""


@dataclass(frozen=True)
class SharedLearning:
    """Groups of buckets that learn together, and the strategy that is played until something is learnt."""

    groups: tuple[Array, ...]
    """for each street (buckets,): the group of each bucket"""
    start: Singles
    """(rows, 3) a strategy"""

    def sharing(self, layout: Layout, chunks: float) -> Sharing:
        """Give each group and node one row of regrets, for a run whose regrets grow by `chunks` chunks."""
        rows = np.empty(layout.rows, np.int32)
        used = 0
        for block in layout.blocks:
            group, nodes = self.groups[block.street], len(block.nodes)
            rows[block.rows] = (used + group[:, None] * nodes + np.arange(nodes)).ravel()
            used += (int(group.max()) + 1) * nodes
        return Sharing(rows, np.asarray(HEAD_START * chunks * self.start, np.float32))


# On a cluster

LANES = 8
"""of a round"""
LONGEST_LANE = 16
"""chunks of a lane, at most"""


@dataclass(frozen=True)
class ClusterWorkers:
    """A dask cluster and the function that makes the dealer on its workers, called with its arguments once in each."""

    cluster: Cluster
    make_dealer: Callable[..., Dealer]
    arguments: tuple[Any, ...]


def regret_depth(chunks: int, workers: int | ClusterWorkers) -> float:
    """Return by how many chunks regrets grow in a run of `chunks` in which both players learn, here or on a cluster."""
    return chunks / LANES if isinstance(workers, ClusterWorkers) else float(chunks)


def run_chunks(
    solver: BucketSolver, chunks: int, workers: int | ClusterWorkers, progress: Progress = no_progress
) -> None:
    """Run until `chunks` chunks are done, in `workers` threads here or on a cluster."""
    if isinstance(workers, ClusterWorkers):
        run_on_cluster(solver, chunks, workers, progress)
    else:
        solver.run(chunks, workers=workers, progress=progress)


def run_on_cluster(
    solver: BucketSolver, chunks: int, workers: ClusterWorkers, progress: Progress = no_progress
) -> None:
    """Run on a cluster until `chunks` chunks are done; an interruption leaves the rounds that ended."""
    first, cluster = solver.chunks, workers.cluster
    given = (
        workers.make_dealer,
        workers.arguments,
        solver.layout.game,
        solver.layout.sizes,
        solver.seed,
        solver.players,
    )
    fixed: list[Any] = []
    try:
        while solver.chunks < chunks:
            length = max(1, min(LONGEST_LANE, solver.chunks // (2 * LANES)))
            stop = min(chunks, solver.chunks + LANES * length)
            lanes = [range(low, min(low + length, stop)) for low in range(solver.chunks, stop, length)]

            def learn(lanes: list[range] = lanes) -> tuple[Singles, Singles]:
                if not fixed:  # sent once, as it does not change
                    fixed.append(cluster.broadcast((solver.model, solver.sharing)))
                return _round(solver, given, fixed[0], lanes, cluster)

            solver.regret, solver.average = cluster.retry_when_lost(learn, fixed.clear)
            solver.chunks = stop
            progress(stop - first, chunks - first)
    finally:
        cluster.release(fixed)


def _round(
    solver: BucketSolver, given: tuple[Any, ...], fixed: Any, lanes: list[range], cluster: Cluster
) -> tuple[Singles, Singles]:
    """Return regrets and averages after a round."""
    sent = cluster.broadcast(solver.regret)
    tasks = [cluster.submit(_run_lane, given, fixed, sent, lane) for lane in lanes]
    try:
        regret, average = solver.regret.copy(), solver.average.copy()
        share = np.float32(1.0 if len(solver.players) == 1 else 1.0 / LANES)
        for task in tasks:
            ((learnt, added),) = cluster.results([task])
            # every lane began from the same tables, so what it learnt is the difference to these
            regret += share * (learnt - solver.regret)
            if added is not None:
                average += added
        return regret, average
    finally:
        cluster.release([*tasks, sent])


@lru_cache(maxsize=1)
def _dealer(make: Callable[..., Dealer], arguments: tuple[Any, ...]) -> Dealer:
    return make(*arguments)


def _run_lane(
    given: Any, fixed: tuple[Restriction, Sharing], before: Singles, lane: range
) -> tuple[Singles, Singles | None]:
    """Run the chunks of a lane on a worker; return the regrets, and what to add to averages, None for nothing."""
    make, arguments, game, sizes, seed, players = given
    layout = Layout(game, sizes)
    added = np.zeros((layout.rows, 3), np.float32)
    solver = BucketSolver(layout, _dealer(make, arguments), seed, lane.start, before.copy(), added, players, *fixed)
    solver.run(lane.stop, workers=1)
    return solver.regret, added if added.any() else None


# Best responses


def best_response(
    layout: Layout,
    dealer: Dealer,
    strategy: Singles,
    *,
    deals: int,
    seed: int = 1,
    workers: int | ClusterWorkers = 2,
    learning: SharedLearning | None = None,
    otherwise: tuple[Singles, float] | None = None,
    progress: Progress = no_progress,
) -> Singles:
    """Train the best response to `strategy` on `deals` deals, for both seats.

    Parameters: `workers`, threads here or a cluster; `learning` says which buckets learn together and what is played
    where nothing was learnt; `otherwise` is another strategy, which the opponent plays in some hands from beginning to
    end, and the share of the hands in which it plays the first one.
    """
    out = np.zeros((layout.rows, 3), np.float32)
    chunks = -(-deals // CHUNK)
    sharing = NO_SHARING if learning is None else learning.sharing(layout, chunks)
    start = np.float32(0.0) if learning is None else sharing.head_start
    fixed = np.ascontiguousarray(strategy, np.float32)
    for player in range(2):
        mine = layout.seat_rows(player)
        restriction = Restriction(
            1 - player, fixed, 1.0 if otherwise is None else otherwise[1], np.zeros(0, np.float32)
        )
        if otherwise is not None:  # a player who does not learn plays by its head start
            sharing = sharing._replace(head_start=np.where(mine[:, None], start, otherwise[0]))
        solver = BucketSolver(layout, dealer, seed, players=(player,), model=restriction, sharing=sharing)
        run_chunks(solver, chunks, workers, _seat_progress(progress, player, chunks))
        out[mine] = _best_actions(solver)[mine]
    return out


def _best_actions(solver: BucketSolver) -> Singles:
    """Return (rows, 3) the action with the largest regret at each decision.

    Where nothing was learnt it is the likeliest of the strategy that the solver started from, or calling.
    """
    regret, sharing = solver.regret, solver.sharing
    if len(sharing.regret_row) > 0:
        regret = regret[sharing.regret_row] + sharing.head_start
    learnt = np.where(bit_table(solver.layout.legal, 3), regret, -np.inf)
    learnt[:, 1] += 1e-9  # calling wins ties
    return np.eye(3, dtype=np.float32)[learnt.argmax(axis=1)]


def _seat_progress(progress: Progress, seat: int, chunks: int) -> Progress:
    """Report progress in the run of one seat as a part of both."""
    return lambda done, total: progress((seat + 1) * chunks - total + done, 2 * chunks)
