"""Abstracted limit hold'em: external-sampling counterfactual regret minimisation over the full betting tree.

In: a `Layout` and a dealer, a function that fills rows of buckets (see `layout`). Out: an average strategy, one row
of (fold, call, raise) per decision. Each deal is traversed once for each player (Lanctot and others, 2009): all
actions of that player are tried, the others' are drawn from their current strategies, which regret matching gives;
the others' strategies at the nodes passed are added to their averages. Regrets and averages of iteration t weigh t
(linear CFR, Brown and Sandholm 2019). Actions with very negative regret are skipped in most traversals, as they
would be played again only after long.

Beyond two players nothing promises that the average is an equilibrium, nor that it loses nothing against any others:
it has to prove itself in matches. Left to themselves three players soon fold so much that situations after three calls
or raises are hardly ever learnt, and whoever always raises would win from the result. So in a share of the hands each
of the others is *careless*: it plays one mix of fold, call and raise, drawn anew for that hand, whatever its cards.

A traversal is a queue, not a recursion: nodes are visited breadth first, so that several cache misses are under way
at once, and values flow back from the end of the queue. Workers are threads that share the tables without locks;
with one worker the same seed gives the same bytes, also when interrupted and resumed.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import parse_json, read_npy, whole_number
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import recover, replacing, sha256
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import bit_table, random_state, uniform
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.layout import T_ACTOR, T_FOLD, T_ROUND, T_SLOT, Floats, Layout, bases, payoff, pot_shares

Dealer: TypeAlias = Callable[[Array, Array], None]
"""Fills rows of deals (see `layout`) int16 from a random state (1,) uint64; runs without the interpreter's lock."""

CHUNK = 16_384
"""Deals that draw from one random state and have one weight."""
HOPELESS = -3000.0
"""Regret in chips, at the weight of the day, under which an action is skipped ..."""
PRUNED = 19
"""... in so many of 20 deals."""


class Restriction(NamedTuple):
    """What one player is made to play part of the time (see `counter`); the rest of the time it is free and learns."""

    player: int
    """-1: nobody"""
    mix: Floats
    """(rows, 3)"""
    hands: float
    """the share of hands in which it keeps to the model; in the others it is free from beginning to end"""
    sure: Floats
    """(rows,) in those hands, the share of times that it keeps to the model at a decision; empty is always"""


NOBODY = Restriction(-1, np.zeros((0, 3), np.float32), 0.0, np.zeros(0, np.float32))


class Sharing(NamedTuple):
    """Rows that learn together, and what each starts from (see `shared_learning`); empty: each row learns by itself."""

    group: Array
    """(rows,) where the regrets of a row are kept"""
    head_start: Floats
    """(rows, 3) regrets that are a row's own, added to those of its group"""


ALONE = Sharing(np.zeros(0, np.int32), np.zeros((0, 3), np.float32))


class NodeTables(NamedTuple):
    """The betting tree as a traversal reads it (see `Layout`)."""

    tree: Array
    payoffs: Array


class LearningTables(NamedTuple):
    """What is learnt, one row of (fold, call, raise) per decision, and who is not free."""

    regret: Floats
    """(groups, 3)"""
    average: Floats
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
    mix: Floats
    values: Floats
    """what each action of a node is worth; NaN where it was not tried"""
    share: Floats
    """(2 ** players,) the learning player's share of the pot by who has folded (see `layout.pot_shares`)"""
    styles: Floats
    """(players, 3) the mix of each player who ignores its cards in this traversal; the first of the others' is -1"""


@kernel(leaf=True)
def _matched(
    regret: Floats, entry: int, row: int, head_start: Floats, fold_legal: bool, raise_legal: bool
) -> tuple[Any, Any, Any]:
    """Regret matching: the legal actions in proportion to their positive regrets, equal shares where none is."""
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
def _value_back(count: int, weight: Any, regret: Floats, scratch: TraversalScratch) -> None:
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
            for action in range(3):
                gained = values[place, action]
                if gained == gained:  # not NaN: the action was tried
                    regret[row, action] += weight * (gained - value)
        above = scratch.parent[place]
        values[above >> 2, above & 3] = value


@kernel(leaf=True)
def _draw_styles(chance: float, random: Array, styles: Floats) -> None:
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
    nodes: NodeTables,
    player: int,
    base: Array,
    weight: Any,
    floor: Any,
    tables: LearningTables,
    random: Array,
    s: TraversalScratch,
) -> None:
    """One external-sampling traversal for `player`; actions with regret under `floor` are skipped.

    Numbers are float32 throughout.
    """
    tree, payoffs = nodes
    regret, average, model, sharing = tables
    mix, values, share = s.mix, s.values, s.share
    # where it keeps to the model throughout, the player that is held to it learns in its free hands only
    learns = len(model.sure) > 0 or model.player != player
    bound = model.player >= 0 and learns and uniform(random) < model.hands
    zero, one = np.float32(0.0), np.float32(1.0)
    s.queue[0] = 0
    s.parent[0] = 0
    count = 1
    place = 0
    while place < count:
        node = s.queue[place]
        actor = tree[node, T_ACTOR]
        row = entry = base[tree[node, T_ROUND], actor] + tree[node, T_SLOT]
        fold_legal, raise_legal = tree[node, T_FOLD] >= 0, tree[node, T_FOLD + 2] >= 0
        follows = bound and actor == model.player and (len(model.sure) == 0 or uniform(random) < model.sure[row])
        careless = actor != player and s.styles[actor, 0] >= 0
        if follows:
            p0, p1, p2 = model.mix[row, 0], model.mix[row, 1], model.mix[row, 2]
        elif careless:
            p0 = s.styles[actor, 0] if fold_legal else zero
            p2 = s.styles[actor, 2] if raise_legal else zero
            p1 = one - p0 - p2
        else:
            if len(sharing.group) > 0:
                entry = np.int64(sharing.group[row])
            p0, p1, p2 = _matched(regret, entry, row, sharing.head_start, fold_legal, raise_legal)
        if actor == player and not follows:
            s.rows[place] = entry
            mix[place, 0], mix[place, 1], mix[place, 2] = p0, p1, p2
            for action in range(3):
                child = tree[node, T_FOLD + action]
                values[place, action] = np.float32(np.nan)
                if child < 0 or (regret[entry, action] < floor and mix[place, action] == 0):
                    continue
                if tree[child, T_ACTOR] < 0:
                    values[place, action] = payoff(payoffs[child], share, player)
                else:
                    s.queue[count] = child
                    s.parent[count] = place * 4 + action
                    count += 1
        else:
            s.rows[place] = -1
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
                s.queue[count] = child
                s.parent[count] = place * 4
                count += 1
        place += 1
    _value_back(count, weight, regret, s)


@kernel
def _traverse_all(
    nodes: NodeTables,
    offsets: Array,
    counts: Array,
    deals: Array,
    learners: Array,
    weight: float,
    careless: float,
    queue_size: int,
    tables: LearningTables,
    random: Array,
) -> None:
    """The traversals of each deal, one for each of `learners`; none visits more than `queue_size` nodes."""
    rounds, players = counts.shape
    scratch = TraversalScratch(
        np.empty(queue_size, dtype=np.int32),
        np.empty(queue_size, dtype=np.int32),
        np.empty(queue_size, dtype=np.int64),
        np.empty((queue_size, 3), dtype=np.float32),
        np.empty((queue_size, 4), dtype=np.float32),
        np.empty(1 << players, dtype=np.float32),
        np.empty((players, 3), dtype=np.float32),
    )
    base = np.empty(counts.shape, dtype=np.int64)
    never = np.float32(-np.inf)
    for i in range(len(deals)):
        bases(deals[i], offsets, counts, base)
        floor = np.float32(HOPELESS * weight) if i % 20 < PRUNED else never
        for player in learners:
            pot_shares(deals[i, rounds * players :], player, scratch.share)
            _draw_styles(careless, random, scratch.styles)
            _traverse(nodes, player, base, np.float32(weight), floor, tables, random, scratch)


@dataclass
class BucketSolver:
    """A run of the solver: its tables and how far it has come."""

    layout: Layout
    dealer: Dealer
    seed: int
    chunks: int = 0
    """chunks of `CHUNK` deals done"""
    regret: Floats = field(default_factory=lambda: np.empty((0, 3), dtype=np.float32))
    average: Floats = field(default_factory=lambda: np.empty((0, 3), dtype=np.float32))
    players: tuple[int, ...] = ()
    """who learns, all where none is named; the others play by the regrets they were given"""
    model: Restriction = NOBODY
    """who is not free, and what it plays instead"""
    sharing: Sharing = ALONE
    """which rows learn together"""
    careless: float = 0.0
    """the share of hands in which each of the others plays a random mix, whatever its cards"""

    def __post_init__(self) -> None:
        self.players = self.players or tuple(range(self.layout.game.players))
        if not len(self.regret):
            groups = int(self.sharing.group.max()) + 1 if len(self.sharing.group) else self.layout.rows
            self.regret = np.zeros((groups, 3), dtype=np.float32)
            self.average = np.zeros((self.layout.rows, 3), dtype=np.float32)

    def _chunk(self, index: int) -> None:
        """The deals of one chunk; which they are depends on the seed and the chunk's number only."""
        layout, random = self.layout, random_state(self.seed, index)
        deals = np.empty((CHUNK, layout.deal_size), dtype=np.int16)
        self.dealer(random, deals)
        _traverse_all(
            NodeTables(layout.tree, layout.payoffs),
            layout.offsets,
            layout.counts,
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
            running: deque[Future[None]] = deque()
            for index in range(first, chunks):
                running.append(pool.submit(self._chunk, index))
                while len(running) > (workers if index + 1 < chunks else 0):
                    running.popleft().result()
                    self.chunks += 1
                    progress(self.chunks - first, chunks - first)

    def strategy(self) -> Floats:
        """The average strategy; equal shares of the legal actions where nothing was learnt."""
        total = self.average.sum(axis=1, keepdims=True)
        equal = bit_table(self.layout.legal, 3)
        equal = equal / equal.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, self.average / np.maximum(total, 1e-30), equal), dtype=np.float32)


CHECKPOINT = "checkpoint.json"
TABLES = ("regret.npy", "average.npy")


def save(solver: BucketSolver, folder: Path, about: dict[str, Any]) -> None:
    """Write a checkpoint: the tables and how far the run has come. `about` is what a resumed run must agree with."""
    with replacing(folder) as beside:
        beside.mkdir()
        np.save(beside / "regret.npy", solver.regret)
        np.save(beside / "average.npy", solver.average)
        known = {"chunks": solver.chunks, "seed": solver.seed, "sizes": list(solver.layout.sizes), **about}
        known["files"] = {name: sha256(beside / name) for name in TABLES}
        (beside / CHECKPOINT).write_text(json.dumps(known) + "\n")


def resume(solver: BucketSolver, folder: Path, about: dict[str, Any]) -> bool:
    """Go on from a checkpoint, if there is one; one of another run or a damaged one is refused."""
    recover(folder)
    if not (folder / CHECKPOINT).is_file():
        return False
    try:
        found = parse_json((folder / CHECKPOINT).read_bytes())
        chunks = whole_number(found["chunks"], "its number of chunks", 0, 1 << 40)
        for name in TABLES:
            if sha256(folder / name) != found["files"][name]:
                raise ValueError(f"{name} is not as it was written")
        regret, average = (np.ascontiguousarray(read_npy(folder / name)) for name in TABLES)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise PipelineError(f"{folder} is a damaged checkpoint ({error}): remove it") from None
    wanted = {"seed": solver.seed, "sizes": list(solver.layout.sizes), **about}
    for key, value in wanted.items():
        if found.get(key) != value:
            # an opponent is known by its checksum only, which tells nobody anything
            said = "another opponent" if key == "opponent" else f"{key} {found.get(key)}, not {value}"
            raise PipelineError(f"{folder} is a checkpoint with {said}: name another folder or remove it")
    if "deals" in about and chunks > -(-about["deals"] // CHUNK):
        raise PipelineError(f"{folder} is a damaged checkpoint (it is past the end of its run): remove it")
    for found_table, table in ((regret, solver.regret), (average, solver.average)):
        if (found_table.shape, found_table.dtype) != (table.shape, table.dtype) or not np.isfinite(found_table).all():
            raise PipelineError(f"{folder} is a damaged checkpoint (a table of another form): remove it")
    if average.min(initial=0) < 0:
        raise PipelineError(f"{folder} is a damaged checkpoint (an average below 0): remove it")
    solver.regret, solver.average, solver.chunks = regret, average, chunks
    return True
