"""Random hands in the form of histories, made by playing the rules themselves, for the tests of histories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.formats.histories.history import Action, History
from pipeline.formats.histories.packing import Outcome, outcome, pack
from pipeline.formats.histories.replay import play
from pipeline.poker.cards import card_text, ranking
from pipeline.poker.rules import S_ACTOR, S_FINISHED, S_FOLDED, S_MAX_SPENT, S_ROUND, is_showdown, raise_range, to_call


def played(history: History) -> Outcome:
    """The outcome of the entries so far, which must be legal."""
    out = outcome()
    assert play(pack(history), out, ranking()) == 0
    return out


def random_start(draw: np.random.Generator) -> History:
    """A hand before its first entry: any variant, players, blinds, antes and stacks."""
    n = int(draw.integers(2, 11))
    big = int(draw.choice([2, 10, 100]))
    blinds = [0] * n
    blinds[0], blinds[1] = big // 2, big
    if n > 3 and draw.random() < 0.3:
        blinds[2] = 2 * big  # a straddle
    if n > 4 and draw.random() < 0.3:
        blinds[int(draw.integers(3, n))] = -int(draw.choice([big, big // 2, big + big // 2]))
    if draw.random() < 0.2:
        draw.shuffle(blinds)
    antes = [0] * n
    if draw.random() < 0.4:
        antes = [big // 2] * n if draw.random() < 0.5 else [int(draw.integers(0, big + 1)) for _ in range(n)]
    small = draw.random() < 0.5
    stacks = [int(draw.integers(1, 8 * big if small else 200 * big)) for _ in range(n)]
    nolimit = draw.random() < 0.7
    return History(
        variant="NT" if nolimit else "FT",
        antes=tuple(antes),
        blinds=tuple(blinds),
        stacks=tuple(None if draw.random() < 0.05 else stack for stack in stacks),
        actions=(),
        min_bet=big if nolimit else 0,
        small_bet=0 if nolimit else big,
        big_bet=0 if nolimit else 2 * big,
        trimmed=len(set(antes)) == 1 and bool(draw.random() < 0.5),  # PokerKit fails on some unequal ones
        players=tuple(f"player {p}" for p in range(n)),
    )


def random_history(seed: int, known: float = 1.0) -> History:
    """A whole hand; each player's cards are known with probability `known`."""
    draw = np.random.default_rng(seed)
    history = random_start(draw)
    deck = iter(draw.permutation(52).tolist())
    entries: list[Action] = []

    def cards(count: int) -> str:
        return "".join(card_text(next(deck)) for _ in range(count))

    holes = [cards(2) for _ in range(history.count)]
    entries += [Action("dh", p, cards=hole if draw.random() < known else "????") for p, hole in enumerate(holes)]
    base, street = 0, 0
    while True:
        out = played(replace(history, actions=tuple(entries)))
        state, opened = out.state, int(out.facts[0]["opened"])
        showdown = bool(state[S_FINISHED]) and bool(is_showdown(out.rules, state))
        if showdown and not any(entry.kind == "sm" for entry in entries):
            live = [p for p in range(history.count) if not state[S_FOLDED] >> p & 1]
            entries += [Action("sm", p, cards=entries[p].cards) for p in live]
        if state[S_FINISHED] and (opened == 5 or not showdown):
            break
        if state[S_FINISHED] or opened < (0, 3, 4, 5)[int(state[S_ROUND])]:
            if not state[S_FINISHED] and state[S_ROUND] != street:
                street, base = int(state[S_ROUND]), int(state[S_MAX_SPENT])
            entries.append(Action("db", cards=cards(3 if opened == 0 else 1)))
            continue
        actor = int(state[S_ACTOR])
        low, high = (int(x) for x in raise_range(out.rules, state))
        choice = draw.random()
        if high and choice < 0.35:
            total = low if draw.random() < 0.4 else high if draw.random() < 0.3 else int(draw.integers(low, high + 1))
            total = min(total, low + 5000)
            entries.append(Action("cbr", actor, amount=total - base))
        else:
            faces = to_call(out.rules, state) > 0  # nobody folds for free: PokerKit loses chips then
            entries.append(Action("f" if choice > 0.8 and faces else "cc", actor))
    return replace(history, actions=tuple(entries))
