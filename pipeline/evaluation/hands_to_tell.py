"""Hands to tell: how many hands a perfect detector needs to see before it knows a copy from the player it imitates.

In go the decisions of a player (the *source*) with a number for each, and the hands that were dealt to it; out comes
the expected number of hands after which a sequential test that knows both strategies is 95 % certain, on both sides,
whether source or copy plays. It is the distance between two strategies in the unit that people care about.

**Where the source's probabilities are known.** Let a hand's evidence be L = sum ln q(a|o) / p(a|o) over the decisions
of one player in it: q is the source's probability of the action a it took where it saw o, p the copy's. Cards and the
other players' actions are as likely under both and cancel. The sequential probability ratio test (Wald 1945,
"Sequential Tests of Statistical Hypotheses") adds up L hand by hand and stops at +-ln 19, where one of two equally
likely explanations has a posterior of 95 %; it errs in at most one case of 19 on either side, and no test that errs so
seldom stops earlier on average. By Wald's identity E[stopping time] E[L] = E[sum at the stop], which is ln 19 but for
the overshoot (up to one hand's evidence more) and the errors (a tenth less). So

    hands to tell = ln 19 / KL per hand,     KL per hand = E[L] = E[sum over its decisions of KL(q(.|o) || p(.|o))]

where the second equality takes the expectation over the action at each decision, which is exact and has less variance.
The mean is over (hand, seat): a hand in which the player had nothing to decide counts as one without evidence. Hands
are those of the data, as they were played there, on all streets; the definition asks for the source against itself in
all seats, which the log of a match of an agent with itself gives. In no-limit games q and p are probabilities of the
classes of raises; a detector that also looks at amounts needs no more hands than this.

The 95 % interval draws whole deals (`Bootstrap`), and its ends change places when the quotient is taken. Where the
lower end of KL per hand is 0 the number of hands has no upper end.

**Where they are not known.** Let A and C be copies trained on disjoint halves of the training deals, and

    B = -ln sum_a sqrt(A(a|o) C(a|o))          (the Bhattacharyya distance of their mixes)

For G(a|o) = sqrt(A(a|o) C(a|o)) e^B, their normalised geometric mean, ln G = (ln A + ln C) / 2 + B, so that for any q

    (KL(q || A) + KL(q || C)) / 2 = KL(q || G) + B >= B.

This is the decomposition into bias and variance of Heskes (1998, "Bias/Variance Decompositions for Likelihood-Based
Estimators") for a mean of two, and an identity: nothing is assumed of q, of the training or of the halves. Only the
expectation over o needs decisions of the source that neither copy was trained on, and it needs no actions, hence the
small variance. So `hands_to_tell_at_most` = ln 19 / (sum of B per hand) is at least as many hands as

    ln 19 / (mean KL per hand of the two copies from half of the deals):

an upper bound of the hands to tell, so that the copies are no better than this, and no promise that they are as good.
It takes the lower end of B's 95 % interval. It is about copies from half of the deals, two of them on average; a copy
from all deals may be closer. B counts only what differs between copies from different deals (to second order half of
the variance of one), nothing of the bias that both share: two copies that are wrong in the same way give no bound.
What is known of the actions can only show that one copy is better than the other: E_q[ln A - ln C] = KL(q || C) -
KL(q || A) is at most KL(q || C), and has mean 0 over the choice of the halves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import hand_batches, translate_parquet_errors
from pipeline.models.measures import LEAST_PROBABILITY, Bootstrap, Interval
from pipeline.runtime.array_types import Array, Bools, Floats, Ints
from pipeline.runtime.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.evaluation.samples import DecisionSample

EVIDENCE = math.log(19.0)
"""log-likelihood ratio at which one of two equally likely explanations has a posterior of 95 %"""
LEAST_EVIDENCE = 10 * LEAST_PROBABILITY
"""nats per decision that count as none: a perfect copy has `LEAST_PROBABILITY` for each action that it never takes"""


class HandsToTell(NamedTuple):
    """An expected number of hands until the source is told from its copy, with its 95 % interval."""

    hands: float | None
    """None where there is no evidence (see `LEAST_EVIDENCE`): then no number of hands is enough"""
    low: float | None
    high: float | None
    """None where the interval has no upper end"""
    kl_per_hand: Interval
    """nats of evidence per hand and seat"""
    seats: int
    """how many (hand, seat) the mean is over"""


@dataclass(frozen=True)
class DealtHands:
    """Hands that were dealt to a player, each seat of a hand as one entry, and the entry of each of its decisions."""

    deal: Array
    """(entries,) uint64: the hash of the deal"""
    file: Ints
    """(entries,) number of the log in the sample's `files`, -1 where the sample has no decision of that log"""
    entry: Ints
    """(decisions,) the entry that each decision of the sample belongs to"""

    def __len__(self) -> int:
        return len(self.deal)

    def take(self, which: Array) -> DealtHands:
        """Return the same hands for some of the decisions, or for the decisions in another order."""
        return replace(self, entry=self.entry[which])

    def sums(self, values: Floats) -> Floats:
        """Return the sum of a number per decision over each entry's decisions; 0 where there was none."""
        return np.bincount(self.entry, weights=values, minlength=len(self)).astype(np.float64)

    def complete(self, is_known: Bools) -> Bools:
        """Return the entries whose decisions are all known, in logs of which some decision is known."""
        files = np.unique(self.file[self.entry[is_known]])
        has_gaps = np.bincount(self.entry, weights=~is_known, minlength=len(self)) > 0
        return np.asarray(np.isin(self.file, files) & ~has_gaps)


def dealt_hands(folder: Path, sample: DecisionSample, *, side: str | None = "validation") -> DealtHands:
    """Find the hands of a dataset that were dealt to a sample's agent, those without any decision of it included.

    Parameters: the dataset's folder, `side` the side of the split that the sample was read from (None for both).
    """
    manifest = read_manifest(folder)
    numbers = {name: number for number, name in enumerate(sample.files)}
    line = sample.hand if sample.line is None else sample.line
    place = "hand" if sample.line is None else "line"
    players = manifest.options.hold_out == "players"  # then the table of hands says nothing about the side
    files: list[Array] = []
    keys: list[Array] = []
    deals: list[Array] = []
    columns = ("file", place, "game", "names", "deal", "validation")
    with translate_parquet_errors(folder / "hands"):
        for batch in hand_batches(folder, columns):
            column = {name: batch.column(name) for name in columns}
            chosen = _equals(column["game"], sample.game.name)
            if side is not None and not players:
                chosen &= column["validation"].to_numpy(zero_copy_only=False) == (side == "validation")
            file = _codes(column["file"], numbers)
            lines = column[place].to_numpy().astype(np.int64)
            deal = column["deal"].to_numpy()
            for position, seated in enumerate(_seated(column["names"], sample.agent, manifest.options.alias)):
                hands = np.flatnonzero(chosen & seated)
                files.append(file[hands])
                keys.append(_pack(file[hands], lines[hands], position))
                deals.append(deal[hands])
    key, deal, file = (np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in (keys, deals, files))
    own = _pack(sample.file.astype(np.int64), line.astype(np.int64), sample.rows["position"].astype(np.int64))
    if players:  # one side of the players is on one side as a whole: logs without decisions belong to the other
        inside = np.isin(file, np.unique(sample.file))
        key, deal, file = key[inside], deal[inside], file[inside]
    order = np.argsort(key, kind="stable")
    entry = order[np.searchsorted(key[order], own).clip(0, len(key) - 1)] if len(key) else np.zeros(0, np.int64)
    if len(entry) != len(own) or (key[entry] != own).any():
        raise PipelineError(f"{folder} lists other hands than its decisions are of: ingest into a new folder")
    return DealtHands(deal.astype(np.uint64), file.astype(np.int64), entry)


def join_dealt(parts: Sequence[DealtHands], file_numbers: Sequence[Ints]) -> DealtHands:
    """Join the hands dealt to several agents; `file_numbers` has for each part the new numbers of its logs."""
    firsts = np.cumsum([0, *map(len, parts)])
    return DealtHands(
        np.concatenate([part.deal for part in parts]),
        np.concatenate([np.append(numbers, -1)[part.file] for part, numbers in zip(parts, file_numbers, strict=True)]),
        np.concatenate([part.entry + first for part, first in zip(parts, firsts[:-1], strict=True)]),
    )


def _pack(file: Array, line: Array, position: Array | int) -> Array:
    """Pack a log's number, a line and a seat in one number."""
    return (file + 1 << 40) + (line << 4) + position


def _equals(column: object, text: str) -> Bools:
    """Return which rows of a dictionary column are a text."""
    return _codes(column, {text: 0}) == 0


def _codes(column: object, numbers: dict[str, int]) -> Ints:
    """Return the number of each row's text, -1 where it has none."""
    table = np.array([numbers.get(text, -1) for text in column.dictionary.to_pylist()] or [-1])  # type: ignore[attr-defined]
    codes: Ints = table[column.indices.to_numpy()]  # type: ignore[attr-defined]
    return codes


def _seated(column: object, agent: str, alias: dict[str, str]) -> list[Bools]:
    """Return for each position in which rows the agent sits there."""
    texts = [[alias.get(name, name) == agent for name in text.split("|")] for text in column.dictionary.to_pylist()]  # type: ignore[attr-defined]
    table = np.zeros((max(len(texts), 1), max(map(len, texts), default=0)), bool)
    for number, seats in enumerate(texts):
        table[number, : len(seats)] = seats
    return list(table[column.indices.to_numpy()].T)  # type: ignore[attr-defined]


def hands_to_tell(kl: Floats, dealt: DealtHands, is_known: Bools | None = None, *, seed: int = 0) -> HandsToTell | None:
    """Return the hands to tell of a copy with KL `kl` (decisions,) from the source at each decision.

    Parameters: `dealt` the hands and the entries of the decisions; `is_known` the decisions at which the source's
    probabilities are known, all by default: hands with another one do not count; `seed` of the bootstrap. None where
    no hand counts.
    """
    counted = np.ones(len(dealt), bool) if is_known is None else dealt.complete(is_known)
    if not counted.any():
        return None
    values = dealt.sums(kl if is_known is None else np.where(is_known, kl, 0.0))[counted]
    decisions = counted[dealt.entry].sum() / len(values)
    evidence = Bootstrap(dealt.deal[counted], seed=seed).interval(values)
    hands, low, high = (_hands(nats, decisions) for nats in (evidence.value, evidence.high, evidence.low))
    return HandsToTell(hands, low, high, evidence, len(values))


def _hands(evidence: float, decisions: float) -> float | None:
    """Return the hands that are enough with so much evidence and so many decisions per hand, None if it is none."""
    return EVIDENCE / evidence if evidence > LEAST_EVIDENCE * decisions else None


def bhattacharyya(first: Floats, other: Floats) -> Floats:
    """Return -ln sum sqrt(p q) of mixes (rows, labels): the mean of KL(s || p) and KL(s || q) is no less.

    >>> bhattacharyya(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.5, 0.5]])).round(4).tolist()
    [0.0, 0.3466]
    """
    return np.maximum(-np.log(np.sqrt(first * other).sum(axis=1)), 0.0)


def hands_to_tell_at_most(first: Floats, other: Floats, dealt: DealtHands, *, seed: int = 0) -> float | None:
    """Return the bound on the hands to tell of two copies, from what they would play (decisions, labels).

    See the module's docstring for what it bounds. None where the copies differ too little to bound anything.
    """
    evidence = Bootstrap(dealt.deal, seed=seed).interval(dealt.sums(bhattacharyya(first, other)))
    return _hands(evidence.low, len(dealt.entry) / len(dealt))
