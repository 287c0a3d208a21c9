"""Kernels of the spot solver: one walk over the betting tree with a vector entry for each holding.

A *pass* has a player whose values are computed (the hero) and a mode: `UPDATE` plays the current strategies and updates
the hero's regrets and averages; `BEST` lets the hero answer the other's average as well as it can; `AVERAGE` lets both
play their averages. The value of a holding is its expected winnings in pots, half of the pot counting as each player's
own, times the probability that the other player and the cards get there (a counterfactual value); summed with the
hero's weights and divided by the weight of all pairs of holdings, it is the hero's share of the pot minus a half.

A batch of segments (the betting of one street, see `spot_tree`) is walked on one board at a time: forward, reach
probabilities; then at terminals values by the other player's reach; then backward, values and updates. A showdown goes
once through both players' lists, which are sorted by value: sums over the weaker holdings, in all and per card, give
for each holding the reach of those it beats, less those that share a card with it (inclusion and exclusion). The order
is the same at all terminals, so many are summed side by side in vector instructions. In place of regret
sums and strategy sums the tables hold discounted ones (Brown and Sandholm 2019): regrets are multiplied by one factor
where they are positive and by another where they are not, sums of strategies by a third, before an iteration adds to
them. CFR+ is the case of factors 1, 0 and (for linear averages) (t - 1) / t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.solving.spot_cards import BoardArrays
from pipeline.solving.spot_tree import DEAL, DECISION, FOLD, SHOWDOWN, NodeArrays, SegmentArrays

UPDATE, BEST, AVERAGE, BEST_FREE = range(4)
"""modes of a pass; BEST_FREE is BEST by a hero whose locks are taken off"""


LANES, VECTOR = 64, 32
"""terminals that are valued at a time, and the multiple to which they are filled up: whole vector instructions"""


class SpotTables(NamedTuple):
    """Regrets and sums of strategies: an entry per player, segment, board, action and holding."""

    regret: Array
    """float32"""
    average: Array
    """float32: sums of strategies; at locked nodes the strategy itself"""
    base: Array
    """(nodes,) int64: where the entries begin of the player who acts, for the segment that the node is in"""
    nodes: NodeArrays
    segments: SegmentArrays


class PassRule(NamedTuple):
    """Who is the hero of a pass, its mode, and the factors by which tables are discounted."""

    hero: int
    mode: int
    positive: float
    negative: float
    average: float


class Buffers(NamedTuple):
    """Arrays that one thread works in, for the batches of one street."""

    reach: Array
    """(2, slots, holdings) float32"""
    value: Array
    """(nodes, holdings) float32"""
    share: Array
    """(2, holdings) float32"""
    columns: Array
    """(holdings, LANES) float32: reach at several terminals, holding by holding"""
    payoffs: Array
    """(holdings, LANES) float32: values at several terminals"""
    sums: Array
    """(53, LANES) float32: reach summed per card, and in all"""
    lanes: Array
    """(2, LANES) int32: slot and node of each of several terminals"""


def make_buffers(slots: int, nodes: int, holdings: int) -> Buffers:
    """Return buffers for batches and boards of at most this size."""
    return Buffers(
        np.zeros((2, slots, holdings), np.float32),
        np.zeros((nodes, holdings), np.float32),
        np.zeros((2, holdings), np.float32),
        np.zeros((holdings, LANES), np.float32),
        np.zeros((holdings, LANES), np.float32),
        np.zeros((53, LANES), np.float32),
        np.zeros((2, LANES), np.int32),
    )


@kernel(leaf=True)
def entries_at(tables: SpotTables, boards: BoardArrays, node: int, board: int) -> int:
    """Return where the entries of a decision on a board begin."""
    nodes = tables.nodes
    player = nodes.player[node]
    before = boards.start[player, board] - boards.start[player, 0]
    size = boards.start[player, board + 1] - boards.start[player, board]
    return int(tables.base[node] + nodes.vectors[node] * before + nodes.vector[node] * size)


@kernel(leaf=True)
def node_range(segments: SegmentArrays, batch: int) -> tuple[int, int]:
    """Return the first node of a batch and the one after the last."""
    return int(segments.first[segments.batches[batch]]), int(segments.first[segments.batches[batch + 1]])


@kernel(leaf=True)
def _shares(table: Array, first: int, count: int, size: int, scale: Array, even: Array) -> None:
    """Write to `scale` and `even` such that positive part x scale + even is the probability of an action."""
    for h in range(size):
        scale[h] = 0.0
    for action in range(count):
        row = table[first + action * size : first + (action + 1) * size]
        for h in range(size):
            scale[h] += max(row[h], np.float32(0.0))
    uniform = np.float32(1.0 / count)
    for h in range(size):
        total = scale[h]
        positive = total > np.float32(0.0)
        scale[h] = np.float32(1.0) / total if positive else np.float32(0.0)
        even[h] = np.float32(0.0) if positive else uniform


@kernel(leaf=True)
def forward(tables: SpotTables, boards: BoardArrays, batch: int, board: int, rule: PassRule, buffers: Buffers) -> None:
    """Write the reach probabilities behind every decision of a batch; those of its roots must be in their slots."""
    nodes = tables.nodes
    scale, even = buffers.share[0], buffers.share[1]
    begin, end = node_range(tables.segments, batch)
    for node in range(begin, end):
        player = nodes.player[node]
        if nodes.kind[node] != DECISION or (player == rule.hero and rule.mode != UPDATE):
            continue
        size = boards.start[player, board + 1] - boards.start[player, board]
        count = int(nodes.branches[node])
        first = entries_at(tables, boards, node, board)
        table = tables.regret if rule.mode == UPDATE and nodes.locked[node] == 0 else tables.average
        _shares(table, first, count, size, scale, even)
        source = buffers.reach[player, nodes.slot[node, player]]
        for action in range(count):
            target = buffers.reach[player, nodes.slot[nodes.first[node] + action, player]]
            row = table[first + action * size : first + (action + 1) * size]
            for h in range(size):
                target[h] = source[h] * (max(row[h], np.float32(0.0)) * scale[h] + even[h])


@kernel(leaf=True, inline=True)
def _add_reach(columns: Array, place: int, high: int, low: int, lanes: int, sums: Array) -> None:
    """Add the reach of a holding at several terminals to the sums of its two cards and of all."""
    for k in range(lanes):
        reach = columns[place, k]
        sums[high, k] += reach
        sums[low, k] += reach
        sums[52, k] += reach


@kernel(leaf=True, inline=True)
def _add_compatible(payoffs: Array, place: int, high: int, low: int, lanes: int, sums: Array) -> None:
    """Add to a row the summed reach of holdings without two cards; one with both cards is taken off twice."""
    for k in range(lanes):
        payoffs[place, k] += sums[52, k] - sums[high, k] - sums[low, k]


@kernel(leaf=True)
def _value_folds(boards: BoardArrays, board: int, hero: int, lanes: int, buffers: Buffers) -> None:
    """Write the reach of all the other player's holdings that share no card with the hero's, per terminal."""
    columns, payoffs, sums, high, low = buffers.columns, buffers.payoffs, buffers.sums, boards.high, boards.low
    mine, theirs = boards.start[hero, board], boards.start[1 - hero, board]
    for i in range(boards.start[1 - hero, board + 1] - theirs):
        _add_reach(columns, i, high[theirs + i], low[theirs + i], lanes, sums)
    for h in range(boards.start[hero, board + 1] - mine):
        same = boards.same[mine + h]
        if same >= 0:
            for k in range(lanes):
                payoffs[h, k] = columns[same, k]
        else:
            for k in range(lanes):
                payoffs[h, k] = np.float32(0.0)
        _add_compatible(payoffs, h, high[mine + h], low[mine + h], lanes, sums)


@kernel(leaf=True)
def _value_showdowns(boards: BoardArrays, board: int, hero: int, lanes: int, buffers: Buffers) -> None:
    """Write the reach of weaker holdings less that of stronger ones, without a common card, per terminal.

    It is the reach of weaker ones, plus that of weaker or equal ones, less that of all: one walk in ascending order
    gives the first two, and its end the last. The same holding of the other player is in the last two and cancels out.
    """
    columns, payoffs, sums, high, low = buffers.columns, buffers.payoffs, buffers.sums, boards.high, boards.low
    mine, theirs = boards.start[hero, board], boards.start[1 - hero, board]
    size, others = boards.start[hero, board + 1] - mine, boards.start[1 - hero, board + 1] - theirs
    h = i = 0
    while h < size:
        strength = boards.value[mine + h]
        while i < others and boards.value[theirs + i] < strength:
            _add_reach(columns, i, high[theirs + i], low[theirs + i], lanes, sums)
            i += 1
        end = h
        while end < size and boards.value[mine + end] == strength:
            for k in range(lanes):
                payoffs[end, k] = np.float32(0.0)
            _add_compatible(payoffs, end, high[mine + end], low[mine + end], lanes, sums)
            end += 1
        while i < others and boards.value[theirs + i] == strength:
            _add_reach(columns, i, high[theirs + i], low[theirs + i], lanes, sums)
            i += 1
        while h < end:
            _add_compatible(payoffs, h, high[mine + h], low[mine + h], lanes, sums)
            h += 1
    while i < others:
        _add_reach(columns, i, high[theirs + i], low[theirs + i], lanes, sums)
        i += 1
    for h in range(size):
        first, second = high[mine + h], low[mine + h]
        for k in range(lanes):
            payoffs[h, k] -= sums[52, k] - sums[first, k] - sums[second, k]


@kernel(leaf=True)
def _value_lanes(
    tables: SpotTables,
    boards: BoardArrays,
    board: int,
    begin: int,
    rule: PassRule,
    kind: int,
    count: int,
    buffers: Buffers,
) -> None:
    """Write the values of `count` terminals of a kind, which the buffers' lanes name."""
    hero, nodes, lanes = rule.hero, tables.nodes, buffers.lanes
    width = (count + VECTOR - 1) // VECTOR * VECTOR
    for k in range(count, width):
        lanes[0, k] = lanes[0, count - 1]
    for card in range(53):
        for k in range(width):
            buffers.sums[card, k] = np.float32(0.0)
    for i in range(boards.start[1 - hero, board + 1] - boards.start[1 - hero, board]):
        for k in range(width):
            buffers.columns[i, k] = buffers.reach[1 - hero, lanes[0, k], i]
    if kind == FOLD:
        _value_folds(boards, board, hero, width, buffers)
    else:
        _value_showdowns(boards, board, hero, width, buffers)
    size = boards.start[hero, board + 1] - boards.start[hero, board]
    for k in range(count):
        node = lanes[1, k]
        stake = -nodes.stake[node] if kind == FOLD and nodes.player[node] == hero else nodes.stake[node]
        value = buffers.value[node - begin]
        for h in range(size):
            value[h] = stake * buffers.payoffs[h, k]


@kernel(leaf=True)
def terminals(
    tables: SpotTables, boards: BoardArrays, batch: int, board: int, rule: PassRule, buffers: Buffers
) -> None:
    """Write the values of all folds and showdowns of a batch, many at a time, and 0 for its deals."""
    nodes, hero = tables.nodes, rule.hero
    begin, end = node_range(tables.segments, batch)
    size = boards.start[hero, board + 1] - boards.start[hero, board]
    for kind in (FOLD, SHOWDOWN):
        count = 0
        for node in range(begin, end):
            if nodes.kind[node] == kind:
                buffers.lanes[0, count] = nodes.slot[node, 1 - hero]
                buffers.lanes[1, count] = node
                count += 1
                if count == LANES:
                    _value_lanes(tables, boards, board, begin, rule, kind, count, buffers)
                    count = 0
        if count > 0:
            _value_lanes(tables, boards, board, begin, rule, kind, count, buffers)
    for node in range(begin, end):
        if nodes.kind[node] == DEAL:
            for h in range(size):
                buffers.value[node - begin, h] = np.float32(0.0)


@kernel(leaf=True)
def backward(tables: SpotTables, boards: BoardArrays, batch: int, board: int, rule: PassRule, buffers: Buffers) -> None:
    """Write the hero's values at all decisions of a batch, from the last to the first, and update its tables."""
    nodes, hero = tables.nodes, rule.hero
    begin, end = node_range(tables.segments, batch)
    size = boards.start[hero, board + 1] - boards.start[hero, board]
    for node in range(end - 1, begin - 1, -1):
        if nodes.kind[node] != DECISION:
            continue
        child, count = int(nodes.first[node]) - begin, int(nodes.branches[node])
        value = buffers.value[node - begin]
        if nodes.player[node] != hero:
            for h in range(size):
                value[h] = buffers.value[child, h]
            for action in range(1, count):
                row = buffers.value[child + action]
                for h in range(size):
                    value[h] += row[h]
        elif rule.mode == BEST_FREE or (rule.mode == BEST and nodes.locked[node] == 0):
            for h in range(size):
                value[h] = buffers.value[child, h]
            for action in range(1, count):
                row = buffers.value[child + action]
                for h in range(size):
                    value[h] = max(value[h], row[h])
        else:
            learns = rule.mode == UPDATE and nodes.locked[node] == 0
            table = tables.regret if learns else tables.average
            first = entries_at(tables, boards, node, board)
            _own_values(table, first, count, size, child, buffers, value)
            if learns:
                reach = buffers.reach[hero, nodes.slot[node, hero]]
                _learn(tables, first, count, size, child, rule, buffers, reach, value)


@kernel(leaf=True)
def _own_values(table: Array, first: int, count: int, size: int, child: int, buffers: Buffers, value: Array) -> None:
    """Write the values of a hero's decision under the strategy of a table; leave its shares in the buffers."""
    scale, even = buffers.share[0], buffers.share[1]
    _shares(table, first, count, size, scale, even)
    for h in range(size):
        value[h] = 0.0
    for action in range(count):
        row = table[first + action * size : first + (action + 1) * size]
        gains = buffers.value[child + action]
        for h in range(size):
            value[h] += (max(row[h], np.float32(0.0)) * scale[h] + even[h]) * gains[h]


@kernel(leaf=True)
def _learn(
    tables: SpotTables,
    first: int,
    count: int,
    size: int,
    child: int,
    rule: PassRule,
    buffers: Buffers,
    reach: Array,
    value: Array,
) -> None:
    """Discount the tables of a decision and add an iteration to them."""
    scale, even = buffers.share[0], buffers.share[1]
    positive, negative, fade = np.float32(rule.positive), np.float32(rule.negative), np.float32(rule.average)
    for action in range(count):
        regret = tables.regret[first + action * size : first + (action + 1) * size]
        average = tables.average[first + action * size : first + (action + 1) * size]
        gains = buffers.value[child + action]
        for h in range(size):
            old = regret[h]
            gained = max(old, np.float32(0.0))
            average[h] = average[h] * fade + reach[h] * (gained * scale[h] + even[h])
            regret[h] = gained * positive + min(old, np.float32(0.0)) * negative + (gains[h] - value[h])


@kernel(leaf=True)
def walk_river(
    tables: SpotTables, boards: BoardArrays, batch: int, board: int, rule: PassRule, buffers: Buffers
) -> None:
    """Walk a batch that no deal follows."""
    forward(tables, boards, batch, board, rule, buffers)
    terminals(tables, boards, batch, board, rule, buffers)
    backward(tables, boards, batch, board, rule, buffers)


@kernel(leaf=True)
def deal_reach(
    tables: SpotTables, before: BoardArrays, boards: BoardArrays, batch: int, board: int, reach: Array, buffers: Buffers
) -> None:
    """Write both players' reach at the deals that a batch follows to the roots of its segments, on a board."""
    segments, nodes, deal, parent = tables.segments, tables.nodes, boards.deals[board], boards.parent[board]
    for segment in range(segments.batches[batch], segments.batches[batch + 1]):
        for player in range(2):
            source = reach[player, nodes.slot[segments.deal[segment], player]]
            target = buffers.reach[player, nodes.slot[segments.first[segment], player]]
            begin = boards.maps_at[deal, player]
            for h in range(before.start[player, parent + 1] - before.start[player, parent]):
                place = boards.maps[begin + h]
                if place >= 0:
                    target[place] = source[h]


@kernel(leaf=True)
def add_deals(
    before: BoardArrays, boards: BoardArrays, board: int, hero: int, chance: float, values: Array, out: Array
) -> None:
    """Add the values on a board, times the chance of a card, to those of a deal, for all cards that lead there."""
    parent, weight = boards.parent[board], np.float32(chance)
    size = before.start[hero, parent + 1] - before.start[hero, parent]
    for deal in range(boards.deals[board], boards.deals[board + 1]):
        begin = boards.maps_at[deal, hero]
        for h in range(size):
            place = boards.maps[begin + h]
            if place >= 0:
                out[h] += weight * values[place]


@kernel(leaf=True)
def walk_turn(
    tables: SpotTables,
    turns: BoardArrays,
    rivers: BoardArrays,
    river_range: Array,
    batch: int,
    board: int,
    rule: PassRule,
    chance: float,
    buffers: Buffers,
    river_buffers: Buffers,
) -> None:
    """Walk a batch and all that follows deals from it; `river_range` has each turn's first river board."""
    segments = tables.segments
    forward(tables, turns, batch, board, rule, buffers)
    terminals(tables, turns, batch, board, rule, buffers)
    begin = node_range(segments, batch)[0]
    for river in range(river_range[board], river_range[board + 1]):
        for later in range(segments.children[batch, 0], segments.children[batch, 1]):
            deal_reach(tables, turns, rivers, later, river, buffers.reach, river_buffers)
            walk_river(tables, rivers, later, river, rule, river_buffers)
            first = segments.first[segments.batches[later]]
            for segment in range(segments.batches[later], segments.batches[later + 1]):
                values = river_buffers.value[segments.first[segment] - first]
                out = buffers.value[segments.deal[segment] - begin]
                add_deals(turns, rivers, river, rule.hero, chance, values, out)
    backward(tables, turns, batch, board, rule, buffers)


@kernel(leaf=True)
def _store_values(
    tables: SpotTables, boards: BoardArrays, batch: int, board: int, hero: int, buffers: Buffers, out: Array
) -> None:
    """Write the values of the roots of a batch to rows of `out`."""
    segments = tables.segments
    begin, size = segments.batches[batch], boards.start[hero, board + 1] - boards.start[hero, board]
    for segment in range(begin, segments.batches[batch + 1]):
        values, row = buffers.value[segments.first[segment] - segments.first[begin]], out[segment - begin]
        for h in range(size):
            row[h] = values[h]


@kernel(leaf=True)
def walk_deals_river(
    tables: SpotTables,
    roots: BoardArrays,
    boards: BoardArrays,
    tasks: Array,
    first: int,
    last: int,
    rule: PassRule,
    reach: Array,
    buffers: Buffers,
    out: Array,
) -> None:
    """Walk what follows deals of the river, tasks `first` to before `last`; write the values to rows of `out`.

    Parameters: `tasks` (n, 3) batch, board, first row.
    """
    for task in range(first, last):
        batch, board, row = int(tasks[task, 0]), int(tasks[task, 1]), tasks[task, 2]
        deal_reach(tables, roots, boards, batch, board, reach, buffers)
        walk_river(tables, boards, batch, board, rule, buffers)
        _store_values(tables, boards, batch, board, rule.hero, buffers, out[row:])


@kernel(leaf=True)
def walk_deals_turn(
    tables: SpotTables,
    roots: BoardArrays,
    turns: BoardArrays,
    rivers: BoardArrays,
    river_range: Array,
    tasks: Array,
    first: int,
    last: int,
    rule: PassRule,
    chance: float,
    reach: Array,
    buffers: Buffers,
    river_buffers: Buffers,
    out: Array,
) -> None:
    """Walk what follows deals of the turn, as `walk_deals_river` does for the river."""
    for task in range(first, last):
        batch, board, row = int(tasks[task, 0]), int(tasks[task, 1]), tasks[task, 2]
        deal_reach(tables, roots, turns, batch, board, reach, buffers)
        walk_turn(tables, turns, rivers, river_range, batch, board, rule, chance, buffers, river_buffers)
        _store_values(tables, turns, batch, board, rule.hero, buffers, out[row:])


@kernel(leaf=True)
def collect_deals(
    tables: SpotTables,
    roots: BoardArrays,
    boards: BoardArrays,
    tasks: Array,
    rule: PassRule,
    chance: float,
    results: Array,
    buffers: Buffers,
) -> None:
    """Add the rows of all tasks, in their order, to the values of the first segment's deals."""
    segments = tables.segments
    for task in range(tasks.shape[0]):
        batch, board, row = int(tasks[task, 0]), int(tasks[task, 1]), tasks[task, 2]
        begin = segments.batches[batch]
        for segment in range(begin, segments.batches[batch + 1]):
            out = buffers.value[segments.deal[segment]]
            add_deals(roots, boards, board, rule.hero, chance, results[row + segment - begin], out)


@kernel(leaf=True)
def write_steps(tables: SpotTables, boards: BoardArrays, batch: int, board: int, steps: int, out: Array) -> None:
    """Write the average strategies of a batch on a board as whole numbers of `steps` parts."""
    nodes = tables.nodes
    begin, end = node_range(tables.segments, batch)
    for node in range(begin, end):
        if nodes.kind[node] != DECISION:
            continue
        player, count = nodes.player[node], int(nodes.branches[node])
        size = boards.start[player, board + 1] - boards.start[player, board]
        first = entries_at(tables, boards, node, board)
        for h in range(size):
            total = 0.0
            for action in range(count):
                total += tables.average[first + action * size + h]
            for action in range(count):
                place = first + action * size + h
                share = tables.average[place] / total if total > 0.0 else 1.0 / count
                out[place] = int(share * steps + 0.5)
