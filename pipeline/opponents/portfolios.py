"""Making the portfolio of the adaptive agent: counters to typical opponents, and sketches of those and of others.

In: the names of typical opponents. Out: a folder with one small file (see `solve.portfolio`): a restricted Nash
response to each of `COUNTERED`, sketches of these and of `KNOWN`, and what every strategy wins from every opponent over
the same deals. Heads-up limit hold'em, over groups of the teacher's buckets (`solve.coarse_hands`). What is finished is
kept in a folder beside, so that a run that was interrupted goes on.

@bearl changes its manner in the match: each of its manners is an opponent of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.agents.bearl import PROFILES, Bearl
from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent
from pipeline.agents.teacher import Teacher
from pipeline.poker.game import builtin
from pipeline.runtime.array_types import Array
from pipeline.runtime.arrays import expect, read_npy
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.bucket_counter import respond_in_buckets
from pipeline.solving.buckets import dealer_of, with_rivers
from pipeline.solving.coarse_hands import Groups
from pipeline.solving.layout import versus
from pipeline.solving.portfolio import Portfolio, save_portfolio
from pipeline.solving.shared_learning import Learning
from pipeline.solving.shipping import check_place
from pipeline.solving.small_counter import Belief
from pipeline.solving.strategy import probabilities, quantise
from pipeline.solving.teacher import deal_hands

GAME = builtin("holdem.limit.2p.reverse_blinds")
COUNTERED = (
    "@equity",
    "@calibrated:70,70",
    "@calibrated:20,80",
    "@chump:rock",
    "@chump:maniac",
    "@bearl:neutral",
    "@chump:station",
    "@chump:gambler",
)
"""opponents to which counters are found"""
KNOWN = (
    *(f"@bearl:{profile}" for profile in PROFILES if profile != "neutral"),
    *(f"@calibrated:{aggression},{rationality}" for aggression in (20, 50, 80) for rationality in (20, 50, 80)),
)
"""opponents that are recognised as well; `@calibrated:20,80` has a counter of its own"""


@dataclass(frozen=True)
class Making:
    """How a portfolio is made."""

    countered: tuple[str, ...] = COUNTERED
    known: tuple[str, ...] = KNOWN
    """others that are recognised"""
    deals: int = 400_000
    """traversed for each seat of a counter"""
    share: float = 0.95
    """how far each opponent is trusted to stay as it is, see `solve.counter`"""
    compared: int = 6_000
    """deals over which strategies meet opponents, each from both seats"""
    seed: int = 1
    workers: int = 2


def make_portfolio(out: Path, how: Making, *, command: str = "", progress: Progress = no_progress) -> Portfolio:
    """Make a portfolio and store it in `out`; finished parts are kept in `out` with `.work` at its end.

    Nothing but an empty folder or a portfolio is replaced.
    """
    check_place(out, portfolio=True)
    teacher = resolve("@teacher", GAME)
    assert isinstance(teacher, Teacher)
    groups = Groups(teacher.stored, with_rivers(teacher.tables))
    work = out.with_name(f"{out.name}.work")
    known = ["@teacher", *dict.fromkeys((*how.countered, *how.known))]
    done, total = 0, len(known) * 2 + len(how.countered)

    def part(kind: str, text: str, find: Callable[[], Array], made_by: str = "") -> Array:
        nonlocal done
        found = _kept(work / f"{kind}-{plain_name(text)}{made_by}.npy", groups.layout.rows, find)
        done += 1
        progress(done, total)
        return found

    models = {
        text: part("opponent", text, lambda text=text: _projected(text, groups))  # type: ignore[misc]
        for text in known
    }

    def respond(text: str) -> Array:
        belief = Belief(models[text], hands=how.share)
        alone = tuple(np.arange(size) for size in groups.layout.sizes)
        learning = Learning(alone, models["@teacher"])
        return respond_in_buckets(
            groups.layout,
            dealer_of(groups.grouped),
            belief,
            deals=how.deals,
            learning=learning,
            seed=how.seed,
            workers=how.workers,
        ).strategy

    made_by = f"-{how.deals}-{how.share:g}-{how.seed}"  # what a counter depends on besides its opponent
    counters = [
        part("counter", text, lambda text=text: respond(text), made_by)  # type: ignore[misc]
        for text in how.countered
    ]
    steps = [quantise(one) for one in counters]
    strategies = [models["@teacher"], *(probabilities(one) for one in steps)]
    compared = deal_hands(groups.grouped, how.seed + 1, how.compared)
    values = np.empty((len(strategies), len(known)))
    for j, text in enumerate(known):
        for i, strategy in enumerate(strategies):
            values[i, j] = versus(groups.layout, compared, strategy, models[text]).mbb
        done += 1
        progress(done, total)
    made = Portfolio(
        ("teacher", *(f"counter-{plain_name(text)}" for text in how.countered)),
        tuple(plain_name(text) for text in known),
        tuple(steps),
        tuple(groups.outline(models[text]) for text in known),
        values,
        {"deals": how.deals, "share": how.share, "compared": how.compared, "seed": how.seed, "command": command},
    )
    with replacing(out) as beside:
        save_portfolio(beside, groups, made)
    return made


def _projected(text: str, groups: Groups) -> Array:
    """An opponent's play over groups; the equilibrium, from which the others start, is asked about more hands."""
    return groups.project(_agent(text).probabilities, each=6 if text == "@teacher" else 4)


def _agent(text: str) -> Agent:
    """An opponent; `@bearl:PROFILE` is @bearl in one of its manners."""
    name, _, profile = text.partition(":")
    if name == "@bearl":
        return Bearl(plain_name(text), GAME, profile=PROFILES.index(profile))
    return resolve(text, GAME)


def _kept(file: Path, rows: int, find: Callable[[], Array]) -> Array:
    """A strategy (rows, 3) from its file, if a run before has come so far; else found now and kept.

    A file that holds no probabilities is damaged and made again.
    """
    if file.is_file():
        with suppress(ValueError):
            found = expect({"strategy": read_npy(file)}, "strategy", np.float32, (rows, 3), 0, 1)
            if np.abs(found.sum(axis=1) - 1).max(initial=0) < 1e-4:
                return np.ascontiguousarray(found)
    made = np.asarray(find(), np.float32)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as beside, beside.open("wb") as stream:
        np.save(stream, made)
    return made
