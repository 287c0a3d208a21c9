"""Finished blocks of the arena as `HandRecords`, from which `pipeline.arena.variance` takes the luck out of results.

A block of hands goes in, records come out; the room is its own so that playing knows nothing of adjusting.
"""

from __future__ import annotations

import numpy as np

from pipeline.agents.names import resolve
from pipeline.arena.lockstep import Block
from pipeline.arena.seatings import seatings
from pipeline.arena.variance.records import HandRecords
from pipeline.arena.variance.regression import cross_fit
from pipeline.arena.variance.terms import join, terms
from pipeline.poker.game import builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64
from pipeline.runtime.progress import Progress, no_progress

OWN_LUCK = 0x6C75636B
"""apart from the seeds that cards and actions come from"""
TYPICAL = (
    ("@teacher", "@teacher"),
    ("@equity", "@equity"),
    ("@teacher", "@random"),
    ("@equity", "@calibrated:50,50"),
)
"""who plays for the weights that adjusted results start from"""


@kernel(leaf=True)
def _streams(seed: int, deals: Array, out: Array) -> None:
    for i in range(deals.shape[0]):
        out[i] = hash64(hash64(hash64(seed) ^ np.uint64(OWN_LUCK)) + deals[i])


def block_records(block: Block, seed: int) -> HandRecords:
    """The hands of a block that has been played; with the agents' probabilities where the block kept them."""
    hands, count = block.hands, len(block)
    mixes = None
    if block.answers:
        mixes = np.full((count, hands.labels.shape[1], len(block.game.labels)), np.nan)
        for rows, numbers, played in block.answers:
            mixes[rows, numbers] = played
    deals = (block.first + np.arange(count) // len(block.order)).astype(np.uint64)
    streams = np.empty(count, np.uint64)
    _streams(seed, deals, streams)
    return HandRecords(
        game=block.game,
        hole=hands.hole,
        board=hands.board,
        labels=hands.labels,
        sizes=hands.sizes,
        payoffs=hands.payoffs,
        seats=np.argsort(block.positions, axis=1),
        deals=deals,
        streams=streams,
        probabilities=mixes,
    )


def typical_luck(hands: int, progress: Progress = no_progress) -> dict[str, Array]:
    """The arrays of resources/luck.npz: weights of terms from `hands` hands of each pair of `TYPICAL`."""
    game = builtin("holdem.limit.2p.reverse_blinds")
    order, pieces = seatings(2), []
    for seed, pair in enumerate(TYPICAL):
        progress(seed, len(TYPICAL))
        block = Block.dealt(game, 1000 + seed, 0, hands // 2, order, False)
        block.play([resolve(text, game) for text in pair], keep=True)
        pieces.append(terms(block_records(block, 1000 + seed), np.zeros(len(block), np.int64), typical=False))
    joined = join(pieces)
    weights = cross_fit(joined, np.arange(joined.hands, dtype=np.uint64))
    progress(len(TYPICAL), len(TYPICAL))
    widths = np.diff([*weights.places, weights.values.shape[1]])
    columns = np.repeat(weights.groups - weights.places, widths) + np.arange(weights.values.shape[1])
    return {"columns": columns.astype(np.int32), "weights": weights.values[-1].astype(np.float32)}
