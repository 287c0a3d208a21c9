"""Tables where a person plays against loaded agents, as pages show them.

In go requests (sit down, act, next hand, a hint), out come views: only what the person may see while a hand is played,
everything once it is over. The hands themselves, the log and the result are those of `pipeline.arena.table`, legal
actions and amounts those of the terminal's table. At most `MOST_TABLES` are kept; the one that was left longest ago
goes first, its finished hands are in its log.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.arena.duplicate import distinct
from pipeline.arena.table import LiveHand, Sitting, parse_action, single_cards, sitting_result
from pipeline.dataset.decisions import observation
from pipeline.evaluation.hand_story import street_name
from pipeline.poker.allin import showdown_shares
from pipeline.poker.cards import NO_CARD, pair_index, parse_cards
from pipeline.poker.game import State
from pipeline.poker.rules import CALL, FOLD, RAISE
from pipeline.poker.spoken import (
    action_words,
    is_bet,
    name_with_kickers,
    on_street,
    position_words,
    sentence,
    spent_before,
)
from pipeline.poker.starting_hands import PREFLOP_BOARDS, headsup_counts, headsup_table
from pipeline.poker.strength.equity import outlook, simulate
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.web.roster import Roster
from pipeline.web.spots import Spots, board_row, button_text, labels_of, next_actions

MOST_TABLES = 32
SAMPLES = 20_000
"""deals of an equity against several opponents"""


def seats_of(
    state: State, names: Sequence[str], cards: Sequence[str], me: int, won: Sequence[float] = ()
) -> list[dict[str, Any]]:
    """Return everybody at the table: `cards` by position, empty where they are not to be seen."""
    game = state.game
    before = spent_before(state) if not state.finished else max(state.spent)
    return [
        {
            "name": names[p],
            "position": position_words(p, game.players, game.is_holdem),
            "cards": single_cards(cards[p]),
            "hidden": game.hole_cards if not cards[p] else 0,
            "bet": max(0, state.spent[p] - before) if not state.finished else 0,
            "spent": state.spent[p],
            "stack": game.stacks[p] - state.spent[p] if game.nolimit else None,
            "folded": state.folded[p],
            "me": p == me,
            "acting": state.actor == p and not state.finished,
            "won": float(won[p]) if won else None,
        }
        for p in range(game.players)
    ]


def equity_against(hole: Array, board: Array, weights: Array) -> float:
    """Return a hand's share of the pot against one opponent's weighted holdings, exact.

    Parameters: `weights` (1326,) in order of `cards.pair_index`; those that share a card with hole or board count 0.
    """
    if len(board) >= 3:
        return float(outlook(len(board) - 2, hole[None], board_row(board), weights=weights).equity[0])
    total = won = 0.0
    for high in range(1, 52):
        for low in range(high):
            weight = float(weights[high * (high - 1) // 2 + low])
            if weight > 0 and not {high, low} & set(hole.tolist()):
                wins, ties = headsup_counts(int(hole[0]), int(hole[1]), high, low, headsup_table())
                total += weight
                won += weight * (wins + ties / 2) / PREFLOP_BOARDS
    return won / total if total > 0 else 0.5


class OpenTable:
    """One table, with a lock because requests come in threads."""

    def __init__(self, sitting: Sitting, agents: Sequence[str]) -> None:
        self.sitting, self.agents = sitting, tuple(agents)
        self.lock = threading.Lock()
        self.failure = ""
        """why an agent could not act; the hand is as it was before, and need not be played to its end"""

    def others_act(self, moves: int) -> None:
        """Let the agents act; if one fails, take all moves back but the first `moves`, unless the hand is counted."""
        self.failure = ""
        try:
            self.sitting.others_act()
        except Exception as error:
            live = _live(self)
            if len(self.sitting.hands) <= live.number:
                live.take_back(moves)
            self.failure = str(error) or type(error).__name__
            if not isinstance(error, PipelineError):
                raise


class Tables:
    """All tables of a server."""

    def __init__(self, roster: Roster, spots: Spots, save: Path) -> None:
        self.roster, self.spots, self.save = roster, spots, save
        self._tables: OrderedDict[str, OpenTable] = OrderedDict()
        self._lock = threading.Lock()

    def sit_down(self, game_name: str, agents: Sequence[str]) -> dict[str, Any]:
        """Open a table; one agent takes all other seats, or each seat has its own."""
        game = self.roster.game(game_name)
        wanted = list(agents) * (game.players - 1) if len(agents) == 1 else list(agents)
        if len(wanted) != game.players - 1:
            raise PipelineError(f"{game.name} seats {game.players - 1} agents beside you, not {len(wanted)}")
        bots = [self.roster.opponent(name, game) for name in wanted]
        names = distinct(["you", *(self.roster.entry(name, game).log_name for name in wanted)])
        seed = secrets.randbits(32)
        when = datetime.now().strftime("%Y%m%d-%H%M%S")
        log_file = self.save / f"{'-'.join(names[1:])}.{when}.{seed}.log"
        seated = OpenTable(Sitting(game, bots, names, seed, log_file), wanted)
        key = secrets.token_hex(8)
        with self._lock:
            self._tables[key] = seated
            while len(self._tables) > MOST_TABLES:
                self._tables.popitem(last=False)
        with seated.lock:
            seated.sitting.next_hand()
            seated.others_act(0)
            return self._view(key, seated)

    def _seated(self, key: str) -> OpenTable:
        with self._lock:
            if key not in self._tables:
                raise PipelineError("this table is gone: sit down again; the hands that were finished are in its log")
            self._tables.move_to_end(key)
            return self._tables[key]

    def view(self, key: str) -> dict[str, Any]:
        """Return the table as it stands."""
        seated = self._seated(key)
        with seated.lock:
            return self._view(key, seated)

    def act(self, key: str, action: str, amount: str, hand: int) -> dict[str, Any]:
        """Take the person's action in hand number `hand`, so that one sent twice does not count in the next hand."""
        seated = self._seated(key)
        with seated.lock:
            live = _live(seated)
            if live.number != hand or live.state.finished:
                raise PipelineError("that hand is over")
            moves = len(live.moves)
            seated.sitting.act(*parse_action(f"{action} {amount}" if amount else action, live.state))
            seated.others_act(moves)
            return self._view(key, seated)

    def next_hand(self, key: str) -> dict[str, Any]:
        """Deal the next hand once this one is over, or cannot be played because an agent failed."""
        seated = self._seated(key)
        with seated.lock:
            if _live(seated).state.finished or seated.failure:
                seated.sitting.next_hand()
                seated.others_act(0)
            return self._view(key, seated)

    def luck(self, key: str) -> dict[str, Any]:
        """Return the result with variance reduction."""
        seated = self._seated(key)
        with seated.lock:
            result = sitting_result(seated.sitting)
        return {"hands": result.hands, **result.winnings.json()}

    def hint(self, key: str) -> dict[str, Any]:
        """Return the mix of each loaded agent in the person's place, and the equity of the person's cards."""
        seated = self._seated(key)
        with seated.lock:
            live = _live(seated)
            state, deal, me = live.state, live.deal, live.me
        game = state.game
        if state.finished or state.actor != me:
            raise PipelineError("it is not your turn")
        hole, board = parse_cards(deal.holes[me]), parse_cards("".join(deal.board[: state.round]))
        row = observation(game, state.betting, me, hole, board)
        answer: dict[str, Any] = {"labels": labels_of(state), "mixes": self.roster.mixes(game, row)}
        answer |= {"equity": None, "against_range": None}
        if not game.is_holdem:
            return answer
        others = [p for p in range(game.players) if p != me and not state.folded[p]]
        if len(others) == 1:
            answer["equity"] = round(equity_against(hole, board, np.ones(1326)), 4)
            name = seated.agents[live.seats[others[0]] - 1]
            opponent_range = self.spots.range_at(game, name, state.betting, board, others[0])
            weights = np.zeros(1326)
            for (high, low), reach in zip(opponent_range.holes.tolist(), opponent_range.reach, strict=True):
                weights[pair_index(high, low)] = reach
            if weights.sum() > 0:
                answer["against_range"] = round(equity_against(hole, board, weights), 4)
        else:
            holes = np.full((len(others) + 1, 2), NO_CARD, dtype=np.uint8)
            holes[0] = hole
            answer["equity"] = round(simulate(holes, board, samples=SAMPLES).equity, 4)
        return answer

    def _view(self, key: str, seated: OpenTable) -> dict[str, Any]:
        sitting, live = seated.sitting, _live(seated)
        state, deal, game = live.state, live.deal, sitting.game
        over = state.finished
        won = sitting_result(sitting, adjusted=False)
        board = single_cards("".join(deal.board[: state.round]))
        payoffs = sitting.hands[-1].payoffs if over else ()
        cards = [hole if over or p == live.me else "" for p, hole in enumerate(deal.holes)]
        mine = ""
        if game.is_holdem and len(board) >= 3:
            mine = name_with_kickers(parse_cards(deal.holes[live.me]), parse_cards("".join(board)))
        return {
            "table": key,
            "game": game.name,
            "agents": list(seated.agents),
            "log": str(sitting.log_file),
            "hand": live.number,
            "street": street_name(game, state.round),
            "board": board,
            "pot": state.pot,
            "finished": over,
            "failure": seated.failure,
            "showdown": state.showdown,
            "seats": seats_of(state, live.names, cards, live.me, payoffs),
            "holding": mine,
            "moves": [
                {
                    "street": street_name(game, move.state.round),
                    "text": sentence(move.name, *action_words(move.state, move.action, move.size)),
                    "mine": move.name == "you",
                }
                for move in live.moves
            ],
            "options": None if over or state.actor != live.me else _options(state),
            "result": {
                "hands": won.hands,
                "chips": sitting.totals[0],
                **won.winnings.json(),
                "unit": game.unit,
            },
            "review": _review(live) if over else None,
        }


def _live(seated: OpenTable) -> LiveHand:
    assert seated.sitting.hand is not None
    return seated.sitting.hand


def _options(state: State) -> dict[str, Any]:
    """Return the person's legal actions: buttons, and in no-limit games the range of amounts with usual ones."""
    low, high = state.raise_range
    can_raise = high > 0
    raises = [action for action in next_actions(state) if action["action"] == "fcr"[RAISE]]
    return {
        "fold": state.is_legal(FOLD) and state.to_call > 0,
        "call": button_text(state, CALL, 0),
        "to_call": state.to_call,
        "raise": {
            "bet": is_bet(state),
            "low": on_street(state, low),
            "high": on_street(state, high),
            "step": state.game.big_blind,
            "fixed": not state.game.nolimit,
            "sizes": [
                {"text": action["text"], "label": action["label"], "amount": action["amount"]} for action in raises
            ],
        }
        if can_raise
        else None,
        "labels": labels_of(state),
    }


def _review(live: LiveHand) -> dict[str, Any]:
    """Return the hand once it is over: each decision of the agents with its mix, and equities by street."""
    state, deal = live.state, live.deal
    game = state.game
    decisions = [
        {
            "name": move.name,
            "street": street_name(game, move.state.round),
            "board": single_cards("".join(deal.board[: move.state.round])),
            "cards": single_cards(deal.holes[move.state.actor]),
            "text": sentence(move.name, *action_words(move.state, move.action, move.size)),
            "taken": move.state.label_of(move.action, move.size),
            "labels": labels_of(move.state),
            "mix": [round(share, 5) for share in move.mix],
        }
        for move in live.moves
        if move.mix
    ]
    streets = [
        {
            "street": street_name(game, street),
            "equities": [
                round(share, 4)
                for share in showdown_shares(game, deal.holes, "".join(deal.board[:street]), [False] * game.players)
            ],
        }
        for street in range(state.round + 1)
    ]
    return {"decisions": decisions, "names": live.names, "equities": streets}
