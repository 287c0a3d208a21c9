"""PokerKit as a second opinion on hand histories: the same entries, taken one by one in both."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from played_histories import played

from pipeline.formats.histories.history import History
from pipeline.formats.histories.notation import action_text
from pipeline.formats.histories.replay import replay
from pipeline.poker.rules import S_ACTOR, S_FINISHED, S_MAX_SPENT, S_ROUND, raise_range


def pokerkit_state(history: History):  # type: ignore[no-untyped-def]
    from pokerkit import HandHistory

    bets = {"min_bet": history.min_bet} if history.nolimit else {
        "small_bet": history.small_bet, "big_bet": history.big_bet
    }  # fmt: skip
    return HandHistory(
        variant=history.variant,
        ante_trimming_status=history.trimmed,
        antes=list(history.antes),
        blinds_or_straddles=list(history.blinds),
        starting_stacks=[inf if stack is None else stack for stack in history.stacks],
        actions=[],
        **bets,
    ).create_state()


def assert_agrees_with_pokerkit(history: History) -> None:
    """Take entry after entry in both: actors, legal raises, stacks and payoffs must be the same."""
    from pokerkit.notation import parse_action

    state = pokerkit_state(history)
    prefix = replace(history, actions=(), winnings=(), finishing_stacks=())
    base, street = 0, 0
    for entry in history.actions:
        if not entry.kind:
            continue
        while state.can_burn_card() or (entry.kind != "dh" and state.can_deal_hole()):
            state.burn_card("??") if state.can_burn_card() else state.deal_hole("??")
        ours = played(prefix)
        if ours.state[S_ROUND] != street and not ours.state[S_FINISHED]:
            street, base = int(ours.state[S_ROUND]), int(ours.state[S_MAX_SPENT])
        if entry.kind in ("f", "cc", "cbr"):
            assert state.actor_index == ours.state[S_ACTOR]
            low, high = (int(x) for x in raise_range(ours.rules, ours.state))
            theirs = state.min_completion_betting_or_raising_to_amount
            assert (low - base if high else None) == theirs
            if theirs is not None and history.stacks[state.actor_index] is not None:
                assert high - base == state.max_completion_betting_or_raising_to_amount
        parse_action(state, action_text(entry, 0))
        prefix = replace(prefix, actions=(*prefix.actions, entry))
        after = played(prefix)
        if not after.state[S_FINISHED]:
            spent = replay(prefix).spent
            left = [inf if stack is None else stack - put for stack, put in zip(history.stacks, spent, strict=True)]
            assert left == list(state.stacks)
    while state.can_burn_card():
        state.burn_card("??")
    result = replay(prefix)
    assert result.partial or state.actor_index is None
    assert state.status or not result.partial
    if result.result is not None and not state.status:
        # PokerKit gives odd chips to one player, here they are split: at most one per player and pot apart
        odd = history.count * (len(set(result.spent)) + 1) if result.showdown else 1e-6
        assert all(abs(a - b) < odd for a, b in zip(result.result, state.payoffs, strict=True))
        assert abs(sum(result.result)) < 1e-6
