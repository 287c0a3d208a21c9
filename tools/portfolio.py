"""Make the portfolio of the adaptive agent: counters to typical opponents, and sketches of those and of others.

    python -m tools.portfolio --out out/portfolio --workers 1

In: the names of typical opponents. Out: a folder with one small file (see `pipeline.solving.portfolio`): a restricted
Nash response to each of `COUNTERED`, sketches of these and of `KNOWN`, and what every strategy wins from every opponent
over the same deals. Heads-up limit hold'em, over groups of the teacher's buckets. It takes some twenty minutes; what is
finished is kept in a folder beside, so that a run that was interrupted goes on.

@bearl changes its manner in the match: each of its manners is an opponent of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.agents.bearl import PROFILES, Bearl
from pipeline.agents.names import plain_name, resolve
from pipeline.agents.protocol import Agent
from pipeline.agents.teacher import Teacher
from pipeline.cli._output import table_text
from pipeline.cli._progress import bar
from pipeline.poker.game import builtin
from pipeline.runtime.array_types import Array, Bytes
from pipeline.runtime.arrays import expect, read_npy
from pipeline.runtime.files import replacing
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.buckets import deal_hands, dealer_of, with_rivers
from pipeline.solving.counter import Belief, respond_in_buckets
from pipeline.solving.groups import HandGroups
from pipeline.solving.holdem import SharedLearning
from pipeline.solving.layout import Layout, versus
from pipeline.solving.portfolio import Portfolio
from pipeline.solving.strategy import LEVELS, check_strategy_target, dequantise, quantise, transposed, write_checked

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
class Plan:
    """How a portfolio is made."""

    countered: tuple[str, ...] = COUNTERED
    known: tuple[str, ...] = KNOWN
    """others that are recognised"""
    deals: int = 400_000
    """traversed for each seat of a counter"""
    share: float = 0.95
    """how far each opponent is trusted to stay as it is, see `solving.counter`"""
    compared: int = 6_000
    """deals over which strategies meet opponents, each from both seats"""
    seed: int = 1
    workers: int = 2


def make_portfolio(out: Path, plan: Plan, *, command: str = "", progress: Progress = no_progress) -> Portfolio:
    """Make a portfolio and store it in `out`; finished parts are kept in `out` with `.work` at its end.

    Nothing but an empty folder or a portfolio is replaced.
    """
    check_strategy_target(out, portfolio=True)
    teacher = resolve("@teacher", GAME)
    assert isinstance(teacher, Teacher)
    groups = HandGroups(teacher.stored, with_rivers(teacher.tables))
    work = out.with_name(f"{out.name}.work")
    opponents = ["@teacher", *dict.fromkeys((*plan.countered, *plan.known))]
    finished, total = 0, len(opponents) * 2 + len(plan.countered)

    def part(kind: str, text: str, find: Callable[[], Array], settings: str = "") -> Array:
        nonlocal finished
        strategy = _stored_part(work / f"{kind}-{plain_name(text)}{settings}.npy", groups.layout.rows, find)
        finished += 1
        progress(finished, total)
        return strategy

    models = {
        text: part("opponent", text, lambda text=text: _projected(text, groups))  # type: ignore[misc]
        for text in opponents
    }

    def respond(text: str) -> Array:
        belief = Belief(models[text], hand_share=plan.share)
        alone = tuple(np.arange(size) for size in groups.layout.sizes)
        learning = SharedLearning(alone, models["@teacher"])
        return respond_in_buckets(
            groups.layout,
            dealer_of(groups.grouped),
            belief,
            deals=plan.deals,
            learning=learning,
            seed=plan.seed,
            workers=plan.workers,
        ).strategy

    settings = f"-{plan.deals}-{plan.share:g}-{plan.seed}"  # what a counter depends on besides its opponent
    counters = [
        part("counter", text, lambda text=text: respond(text), settings)  # type: ignore[misc]
        for text in plan.countered
    ]
    steps = [quantise(counter) for counter in counters]
    strategies = [models["@teacher"], *(dequantise(part) for part in steps)]
    compared = deal_hands(groups.grouped, plan.seed + 1, plan.compared)
    values = np.empty((len(strategies), len(opponents)))
    for j, text in enumerate(opponents):
        for i, strategy in enumerate(strategies):
            values[i, j] = versus(groups.layout, compared, strategy, models[text]).mbb
        finished += 1
        progress(finished, total)
    made = Portfolio(
        ("teacher", *(f"counter-{plain_name(text)}" for text in plan.countered)),
        tuple(plain_name(text) for text in opponents),
        tuple(steps),
        tuple(groups.sketch_strategy(models[text]) for text in opponents),
        values,
        {"deals": plan.deals, "share": plan.share, "compared": plan.compared, "seed": plan.seed, "command": command},
    )
    with replacing(out) as beside:
        save_portfolio(beside, groups, made)
    return made


def save_portfolio(folder: Path, groups: HandGroups, portfolio: Portfolio) -> None:
    """Write a portfolio's file and its manifest."""
    layout, bands = groups.layout, groups.bands
    arrays: dict[str, Array] = {
        "counters": _stacked(layout, portfolio.steps),
        "opponents": _stacked(bands, tuple(quantise(sketch) for sketch in portfolio.sketches)),
        "values": np.asarray(portfolio.values, np.float32),
    }
    about = {
        "game": layout.game.name,
        "sizes": list(layout.sizes),
        "levels": LEVELS,
        "strategy": groups.stored.digest,
        "members": list(portfolio.members),
        "opponents": list(portfolio.opponents),
    }
    write_checked(folder, arrays, about, portfolio.facts)


def _stacked(layout: Layout, steps: tuple[Bytes, ...]) -> Bytes:
    """Stack quantised strategies as (strategies, 2, rows), node by node, where neighbouring rows agree."""
    return np.ascontiguousarray(np.stack([transposed(layout, table, back=False).T for table in steps]))


def _projected(text: str, groups: HandGroups) -> Array:
    """Project an opponent's play on groups; the equilibrium, from which the others start, is asked for more hands."""
    return groups.project(_agent(text).probabilities, samples=6 if text == "@teacher" else 4)


def _agent(text: str) -> Agent:
    """Return an opponent; `@bearl:PROFILE` is @bearl in one of its manners."""
    name, _, profile = text.partition(":")
    if name == "@bearl":
        return Bearl(plain_name(text), GAME, profile=PROFILES.index(profile))
    return resolve(text, GAME)


def _stored_part(file: Path, rows: int, make: Callable[[], Array]) -> Array:
    """Return a strategy (rows, 3) from its file, if a run before has come so far; else make it and store it there.

    A file that holds no probabilities is damaged and made again.
    """
    if file.is_file():
        with suppress(ValueError):
            stored = expect({"strategy": read_npy(file)}, "strategy", np.float32, (rows, 3), 0, 1)
            if np.abs(stored.sum(axis=1) - 1).max(initial=0) < 1e-4:
                return np.ascontiguousarray(stored)
    made = np.asarray(make(), np.float32)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as beside, beside.open("wb") as stream:
        np.save(stream, made)
    return made


def main() -> None:
    """Make a portfolio as the arguments say and print what its strategies win from whom."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the portfolio")
    parser.add_argument("--deals", type=int, default=Plan.deals, help="deals for each seat of a counter")
    parser.add_argument("--seed", type=int, default=Plan.seed, help="decides the deals")
    parser.add_argument("--workers", type=int, default=Plan.workers, help="threads; 1: the same seed, the same bytes")
    words = parser.parse_args()
    command = f"python -m tools.portfolio --deals {words.deals} --seed {words.seed} --workers {words.workers}"
    plan = Plan(deals=words.deals, seed=words.seed, workers=words.workers)
    with bar("portfolio", "parts") as progress:
        made = make_portfolio(words.out, plan, command=command, progress=progress)
    rows = [[name, *(f"{value:+.0f}" for value in made.values[:, j])] for j, name in enumerate(made.opponents)]
    print(table_text(["wins from, mbb/h", *made.members], rows))


if __name__ == "__main__":
    main()
