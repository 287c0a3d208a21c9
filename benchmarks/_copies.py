"""Copies of a solved agent at the table: part of `bench fidelity`.

A copy learns from logs of its source, actions only: half of the hands are self-play, half against agents that look at
no or few cards. `judge` logs of other deals are held out. Then it plays its source, and others in the source's place on
the same deals, in duplicate and with the luck taken out. An equilibrium hardly punishes, so what players win who know
the copy is measured as well, in the source's own buckets, beside what they win from the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from benchmarks._figures import Figure
from benchmarks._stages import kept_rows
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.agents.teacher import Teacher
from pipeline.arena.match import half_width, play_match
from pipeline.poker.game import builtin
from pipeline.solving.buckets import dealer_of, with_rivers
from pipeline.solving.layout import versus
from pipeline.solving.response import best_response, bucketed
from pipeline.solving.strategy import probabilities
from pipeline.solving.teacher import deal_hands

Array = npt.NDArray[Any]

GAME = builtin("holdem.limit.2p.reverse_blinds")
OTHERS = ("@call", "@random", "@raise")
"""who else plays in the logs"""
JUDGE = "judge"
"""what the names of held-out logs begin with"""


def logged_rows(source: Agent, hands: int, judged: int, folder: Path) -> Path:
    """A dataset of the source's decisions in so many hands; `judged` hands of other deals are held out."""

    def play() -> Sequence[Path]:
        logs: list[Path] = []
        for name, count, seed in (("logs", hands, 1), (JUDGE, judged, 501)):
            shares = {None: count} | dict.fromkeys(OTHERS, count // 2 // len(OTHERS))
            for at, (other, share) in enumerate(shares.items()):
                opponent = source if other is None else resolve(other, GAME)
                file = folder / "logs" / f"{name}.{at}"
                match = play_match([source, opponent], GAME, hands=share, seed=seed + at, log=file)
                # in self-play the two seatings of a deal differ in the dice alone: one of them, of twice as many deals
                logs += match.logs[:1] if other is None else match.logs
        return logs

    names = [source.name, f"{source.name}.2"]  # in self-play the second of the name
    return kept_rows(folder / "rows", play, agents=names, validation=f"{JUDGE}*")


def _won(agent: Agent, other: Agent, hands: int) -> Any:
    """What an agent wins on each deal, in mbb/h, with the luck taken out."""
    return play_match([agent, other], GAME, hands=hands, seed=50, adjusted=True).best_samples_mbb[:, 0]


def table_figures(
    copy: Agent, source: Agent, title: str, hands: int, others: Sequence[str], targets: tuple[str, str]
) -> list[Figure]:
    """What the copy wins from its source, and from others less what the source wins from them on the same deals."""
    own = _won(copy, source, hands)
    unit = f"mbb/h ± {half_width(own):.1f}"
    figures = [Figure(f"{title} against its source", float(own.mean()), unit, target=targets[0])]
    for text in others:
        other = resolve(text, GAME)
        mine, theirs = (_won(one, other, hands // 2) for one in (copy, source))
        apart, base = mine - theirs, float(theirs.mean())
        unit = f"mbb/h ± {half_width(apart):.1f}"
        figures.append(
            Figure(
                f"{title} less its source against {text}", float(apart.mean()), unit, "source", base, None, targets[1]
            )
        )
    return figures


def responses(agents: Mapping[str, Callable[[Array], Array] | None], source: Teacher, deals: int) -> list[Figure]:
    """What best responses in the source's buckets win from agents (None: the source itself); lower bounds."""
    layout = source.stored.layout
    tables = with_rivers(source.tables)
    fresh, dealer = deal_hands(tables, 99, 100_000), dealer_of(tables)
    figures = []
    for name, ask in agents.items():
        known = probabilities(source.stored.steps) if ask is None else bucketed(ask, layout, tables, each=2)
        found = versus(layout, fresh, best_response(layout, dealer, known, deals=deals), known)
        title = f"best response in the source's buckets wins from {name}"
        figures.append(Figure(title, found.mbb, f"mbb/h ± {found.ci95:.0f}"))
    return figures
