"""Hands of ACPC logs as hand histories and back.

`from_acpc` makes a `History` of a `STATE` line; `to_acpc` makes the line again. PHH knows no game files, so `game_of`
makes the ACPC game that a history was played in. Three things have no place in the other form and end in a sentence:
games that are not hold'em, histories with antes, unknown cards or without an end, and raises that one rule set allows
and the other does not (an all-in below the smallest raise reopens the betting only in ACPC games).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.formats.acpc import Hand, due_payoffs, parse_hand
from pipeline.formats.histories.history import MAX_AMOUNT, Action, History
from pipeline.formats.histories.notation import history_text
from pipeline.formats.histories.packing import pack
from pipeline.formats.histories.replay import history_rules, replay
from pipeline.poker.game import Game, actions, parse_game
from pipeline.poker.rules import (
    FOLD,
    RAISE,
    RULES_SIZE,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_MAX_SPENT,
    S_ROUND,
    STATE_SIZE,
    apply,
    is_legal,
    raise_range,
)
from pipeline.poker.rules import start as begin
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing

PAYOFFS = "_payoffs"
"""the field for payoffs that cards and betting do not give, such as all-in expectations"""


def from_acpc(hand: Hand, game: Game, venue: str = "", table: str = "") -> History:
    """Return a hand of an ACPC log as a history.

    Parameters: the hand and its game; what to write as the history's venue and table.

    >>> from pipeline.formats.acpc import parse_hand
    >>> from pipeline.poker.game import builtin
    >>> line = "STATE:5:r300f:2d3c|Js2s:-100|100:Bob|Alice"
    >>> from_acpc(parse_hand(line), builtin("holdem.nolimit.2p.reverse_blinds")).actions[2]
    Action(kind='cbr', player=1, amount=300, cards='', comment='')
    """
    if not game.is_holdem or game.players > 10:
        raise PipelineError(f"{game.name}: only hold'em of 2 to 10 players can be written as hand histories")
    if not game.nolimit and (game.raise_sizes[0] != game.raise_sizes[1] or game.raise_sizes[2] != game.raise_sizes[3]):
        raise PipelineError(f"{game.name}: hand histories have one small and one big bet")
    history = History(
        variant="NT" if game.nolimit else "FT",
        antes=(0,) * game.players,
        blinds=game.blinds[::-1] if game.players == 2 else game.blinds,
        stacks=tuple(None if stack > MAX_AMOUNT else stack for stack in game.stacks),
        actions=(),
        min_bet=game.big_blind if game.nolimit else 0,
        small_bet=0 if game.nolimit else game.raise_sizes[0],
        big_bet=0 if game.nolimit else game.raise_sizes[3],
        trimmed=True,
        players=hand.names,
        venue=venue,
        table=table,
        hand=str(hand.number),
    )
    state = game.start()
    highest, played = max(state.spent), []
    for action, size in actions(hand.betting):
        actor, street = state.actor, state.round
        state = state.apply(action, size)
        played.append(_Decision(street, actor, action, max(state.spent)))
    if not state.finished:
        raise PipelineError(f"hand {hand.number} has no end")
    shows = []
    if state.showdown:
        shows = [Action("sm", p, cards=hole) for p, hole in enumerate(hand.holes) if not state.folded[p]]
    due = due_payoffs(hand, state)
    history = replace(history, actions=_entries(hand.holes, hand.board, played, highest, shows))
    if any(abs(given - right) > 1e-5 for given, right in zip(hand.payoffs, due, strict=True)):
        history = replace(history, other=((PAYOFFS, [str(x) for x in hand.payoffs]),))
    elif None not in history.stacks and all(float(x).is_integer() for x in due):
        finishing = tuple(int((stack or 0) + x) for stack, x in zip(history.stacks, due, strict=True))
        history = replace(history, finishing_stacks=finishing)
    replay(history)
    return history


def rebuild(start: History, holes: tuple[str, ...], board: str, betting: str, shown_by: int) -> History:
    """Return the whole history of a hand from its start, the cards dealt, the betting and the cards shown.

    Parameters: the hand without actions; each player's cards (nothing where unknown); the open board; the betting in
    the letters of ACPC logs, raises as totals over the hand; a bit per player who showed.
    """
    rules, state = np.zeros(RULES_SIZE, dtype=np.int64), np.zeros(STATE_SIZE, dtype=np.int64)
    history_rules(pack(start), rules)
    begin(rules, state)
    highest, played = int(state[S_MAX_SPENT]), []
    for action, size in actions(betting):
        street, actor = int(state[S_ROUND]), int(state[S_ACTOR])
        total = size if start.nolimit or action != RAISE else int(raise_range(rules, state)[0])
        if not is_legal(rules, state, action, total):
            raise PipelineError(f"{betting!r} is not betting of this hand")
        apply(rules, state, action, total)
        played.append(_Decision(street, actor, action, total))
    shows = []
    if state[S_FINISHED]:
        live = [p for p in range(start.count) if not state[S_FOLDED] >> p & 1]
        shows = [
            Action("sm", p, cards=holes[p] if shown_by >> p & 1 else "????")
            for p in live
            if shown_by >> p & 1 or len(live) > 1
        ]
    streets = [cards for cards in (board[:6], board[6:8], board[8:10]) if cards]
    return replace(start, actions=_entries(holes, streets, played, highest, shows))


class _Decision(NamedTuple):
    """A decision of a hand; the total over the hand is read of raises alone."""

    street: int
    player: int
    action: int
    total: int


def _entries(
    holes: Sequence[str], streets: Sequence[str], played: Iterable[_Decision], highest: int, shows: list[Action]
) -> tuple[Action, ...]:
    """Return a hand's `actions`: deals, betting and shows in the order in which they happen at a table.

    Parameters: each player's cards, nothing where unknown; the cards of each street; the decisions; the highest bet
    before them; the shows, which come before board cards that are dealt when nobody can bet any more.
    """
    entries = [Action("dh", p, cards=hole or "????") for p, hole in enumerate(holes)]
    base = opened = 0  # PHH counts a raise from the highest total when its street began
    for street, player, action, total in played:
        if opened < street:
            entries.append(Action("db", cards=streets[opened]))
            opened, base = street, highest
        if action == RAISE:
            highest = total
            entries.append(Action("cbr", player, amount=total - base))
        else:
            entries.append(Action("f" if action == FOLD else "cc", player))
    return (*entries, *shows, *(Action("db", cards=cards) for cards in streets[opened:]))


def convert_log(log: Path, game: Game, out: Path) -> int:
    """Write the hands of an ACPC log as hand histories; return their number."""
    count = 0
    with replacing(out) as beside, log.open(encoding="utf-8") as lines, beside.open("w", encoding="utf-8") as file:
        for line in lines:
            if line.startswith("STATE:"):
                count += 1
                history = from_acpc(parse_hand(line.rstrip("\n")), game, table=log.stem)
                file.write(f"[{count}]\n{history_text(history)}\n")
    return count


def game_of(history: History) -> Game:
    """Return the ACPC game that a history was played in: its blinds and stacks as a `.game` file has them."""
    if any(history.antes):
        raise PipelineError("ACPC games have no antes")
    if min(history.blinds) < 0:
        raise PipelineError("ACPC games have no blinds posted out of turn")
    blinds = [blind for _, blind in history.posted]
    n = history.count
    opener = (max(range(n), key=lambda p: (blinds[p], p)) + 1) % n + 1
    lines = [
        "GAMEDEF",
        "nolimit" if history.nolimit else "limit",
        f"numPlayers = {n}",
        "numRounds = 4",
        f"blind = {' '.join(map(str, blinds))}",
        f"firstPlayer = {opener} 1 1 1",
        "numSuits = 4",
        "numRanks = 13",
        "numHoleCards = 2",
        "numBoardCards = 0 3 1 1",
    ]
    if None not in history.stacks:
        lines.append(f"stack = {' '.join(map(str, history.stacks))}")
    elif history.nolimit or any(history.stacks):
        raise PipelineError("ACPC games of no-limit name every stack, and some of this hand are not known")
    if not history.nolimit:
        small, big = history.small_bet, history.big_bet
        lines += [f"raiseSize = {small} {small} {big} {big}", "maxRaises = 4 4 4 4"]
    name = f"holdem.{'nolimit' if history.nolimit else 'limit'}.{n}p"
    return parse_game("\n".join([*lines, "END GAMEDEF", ""]), name)


def to_acpc(history: History, game: Game | None = None, number: int | None = None, *, hidden: bool = False) -> Hand:
    """Return a history as a hand of an ACPC log; every player's cards must be known and the hand must have an end.

    Parameters: the history, the game it was played in (default: `game_of`), the hand's number (default: the history's);
    `hidden` allows cards that are not known, which are empty then, with the results that the history gives.
    """
    played = replay(history)
    if played.partial:
        raise PipelineError("an ACPC log has only finished hands")
    if not all(played.hole) and not hidden:
        raise PipelineError("an ACPC log has every player's cards, and some of this hand are not known")
    if number is None:
        number = int(history.hand) if history.hand.isascii() and history.hand.isdigit() else 0
    game = game or game_of(history)
    state = game.start()
    for player, street, action, total in played.betting:
        legal = state.is_legal(action, total) and (state.actor, state.round) == (player, street)
        if not legal:
            raise PipelineError(f"after {state.betting!r} the next action of this hand is not one of ACPC rules")
        state = state.apply(action, total)
    if not state.finished:
        raise PipelineError("by ACPC rules this hand has no end")
    streets = (played.board[:6], played.board[6:8], played.board[8:10])
    board = tuple(cards for cards in streets[: state.round] if cards)
    if sum(map(len, board)) // 2 != game.visible(state.round) and not hidden:
        raise PipelineError("an ACPC log has the whole board, and some of this hand is not known")
    hand = Hand(number, state.betting, played.hole, board, (0.0,) * game.players, history.names)
    if hidden and played.result is not None:
        return replace(hand, payoffs=played.result)
    if not all(played.hole) and state.showdown:
        raise PipelineError("nobody knows who won this hand")
    given = dict(history.other).get(PAYOFFS)
    return replace(hand, payoffs=tuple(map(float, given)) if given else due_payoffs(hand, state))
