"""Finished blocks of the arena as `HandRecords`, from which `pipeline.arena.variance` takes the luck out of results.

A block of hands goes in, records come out; the room is its own so that playing knows nothing of adjusting.
"""

from __future__ import annotations

import numpy as np

from pipeline.arena.lockstep import Block
from pipeline.arena.variance.records import HandRecords
from pipeline.runtime.array_types import Array
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

OWN_LUCK = 0x6C75636B
"""apart from the seeds that cards and actions come from"""


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
