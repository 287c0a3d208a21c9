"""Observations: all that the acting player may see at a decision, as one record of the type `OBSERVATION`.

The kernel `observe` fills a record from the rules' state, the betting so far, the player's own cards and the open
board, for the arena and the live client; ingest, which knows a hand's cards only after its betting, fills it in two
steps (`record_action`, `record_cards`) by the same kernels; features, models and agents take arrays of such records.
Nothing in a record depends on hidden cards.

A street's betting is one number, its *betting code*: labels packed in octal, first action most significant (f=1 c=2 r
or s=3 h=4 p=5 o=6 a=7; 0 is no action yet). It keeps the last 21 actions, more than any limit street has.

A deal is known by the hash of all players' hole cards in position order, never the board: logs show only the board
that was dealt, and the twins of a duplicate match often end on different streets. In games with few deals (Kuhn,
Leduc) the match's seed and the hand's number stand for it. One deal in ten is held out for validation
(`is_validation`; `split` has other ways).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import NO_CARD, Ranking, hand_name, patterns, ranking, start_class
from pipeline.poker.game import CACHED_STATES, Game, actions
from pipeline.poker.rules import (
    NO_STACK,
    R_BIG_BLIND,
    R_BOARD,
    R_FIRST,
    R_HOLE,
    R_NOLIMIT,
    R_PLAYERS,
    R_ROUNDS,
    R_STACK,
    RAISE,
    S_ACTOR,
    S_AGGRESSOR,
    S_FINISHED,
    S_FOLDED,
    S_RAISES,
    S_ROUND,
    S_SPENT,
    S_WAITING,
    STATE_SIZE,
    apply,
    is_legal,
    label_of,
    legal_labels,
    pot,
    start,
    to_call,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import hash64

STREETS = ("preflop", "flop", "turn", "river")
LETTERS_LIMIT = "-fcr"
LETTERS_NOLIMIT = "-fcshpoa"
MOST_ACTIONS = 256
"""actions in a hand; the official server keeps fewer"""

NO_START = 169
"""the starting class of unknown hole cards"""
NO_AGGRESSOR = 255
"""the aggressor before anybody has raised"""

OBSERVATION = np.dtype(
    [
        ("betting_codes", np.int64, (4,)),  # the betting code of each street so far
        ("to_call", np.int32),
        ("pot", np.int32),  # all chips in the middle, this street's bets included
        ("stack", np.int32),  # own chips left; 0 where the game sets no stack or nobody knows it
        ("pattern", np.uint16),  # packed suit pattern
        ("flush", np.uint16),  # the coarser one
        ("name", np.uint16),  # hand name id, 0 before the flop
        ("street", np.uint8),
        ("position", np.uint8),
        ("players", np.uint8),
        ("raises", np.uint8),  # on this street
        ("legal", np.uint8),  # a bit per label
        ("previous", np.uint8),  # own last action in this hand as in the words, 0 = none
        ("hole", np.uint8, (2,)),  # as dealt; NO_CARD where they are not known
        ("board", np.uint8, (5,)),  # open cards as dealt, NO_CARD beyond
        ("high", np.uint8),  # hole ranks
        ("low", np.uint8),
        ("start", np.uint8),  # one of the 169 starting classes; the rank in one-card games
        ("ranks", np.uint8, (5,)),  # board ranks, high first, NO_CARD beyond
        ("in_hand", np.uint8),  # players who have not folded, the actor included
        ("to_act", np.uint8),  # others with chips who still act on this street if the actor neither raises nor bets
        ("behind", np.uint8),  # others in the hand who act after the actor on the last street: 0 is best
        ("aggressor", np.uint8),  # position of the last player who raised in this hand, NO_AGGRESSOR before that
        ("effective", np.int32),  # chips the actor can still win or lose: its own or the others' most; 0 without stacks
        ("big_blind", np.int32),  # chips, to compare amounts of different stakes
    ],
    align=True,
)


@kernel(leaf=True)
def _observe_betting(rules: Array, state: Array, previous: int, rows: Array, index: int) -> None:
    """Fill the fields of `rows[index]` that follow from the rules' state: all but cards and betting codes."""
    row = rows[index]
    actor = state[S_ACTOR]
    row.street = state[S_ROUND]
    row.position = actor
    row.players = rules[R_PLAYERS]
    row.raises = state[S_RAISES]
    row.legal = legal_labels(rules, state)
    row.previous = previous
    row.to_call = to_call(rules, state)
    row.pot = pot(rules, state)
    row.big_blind = rules[R_BIG_BLIND]
    stack = rules[R_STACK + actor]
    row.stack = stack - state[S_SPENT + actor] if rules[R_NOLIMIT] != 0 and stack != NO_STACK else 0
    _observe_others(rules, state, rows, index)


@kernel(leaf=True)
def _observe_others(rules: Array, state: Array, rows: Array, index: int) -> None:
    """Fill in the number of opponents left, the actor's seat among them and the effective stack."""
    row = rows[index]
    n = rules[R_PLAYERS]
    actor = state[S_ACTOR]
    first = rules[R_FIRST + rules[R_ROUNDS] - 1]
    own_stack = rules[R_STACK + actor] - state[S_SPENT + actor]
    unknown = rules[R_STACK + actor] == NO_STACK
    in_hand = 1
    behind = 0
    own_order = actor - first if actor >= first else actor - first + n  # position in the last street's order
    to_act = 0
    largest = 0
    for p in range(n):
        if p == actor or (state[S_FOLDED] >> p) & 1 != 0:
            continue
        in_hand += 1
        if (p - first if p >= first else p - first + n) > own_order:
            behind += 1
        remaining = rules[R_STACK + p] - state[S_SPENT + p]
        unknown = unknown or rules[R_STACK + p] == NO_STACK
        to_act += (state[S_WAITING] >> p) & 1
        # the actor can win what another still has, and what that player has put in beyond the actor's own chips
        largest = max(largest, remaining + max(0, state[S_SPENT + p] - state[S_SPENT + actor]))
    row.in_hand = in_hand
    row.to_act = to_act
    row.behind = behind
    row.aggressor = state[S_AGGRESSOR] if state[S_AGGRESSOR] >= 0 else NO_AGGRESSOR
    row.effective = min(own_stack, largest) if rules[R_NOLIMIT] != 0 and not unknown else 0


@kernel(leaf=True)
def _observe_cards(rules: Array, hole: Array, board: Array, tables: Ranking, rows: Array, index: int) -> None:
    """Fill in the cards of a row whose street is set already."""
    row = rows[index]
    visible = rules[R_BOARD]
    for i in range(1, row.street + 1):
        visible += rules[R_BOARD + i]
    row.hole[0] = hole[0]
    row.hole[1] = hole[1]
    for i in range(5):
        row.board[i] = board[i] if i < visible else NO_CARD
        row.ranks[i] = NO_CARD
    for i in range(visible):  # insertion sort, highest first
        rank = board[i] >> 2
        j = i
        while j > 0 and row.ranks[j - 1] < rank:
            row.ranks[j] = row.ranks[j - 1]
            j -= 1
        row.ranks[j] = rank
    if hole[0] == NO_CARD:
        row.high = NO_CARD
        row.low = NO_CARD
        row.start = NO_START
        row.pattern = 0
        row.flush = 0
        row.name = 0
    elif rules[R_HOLE] == 2:
        row.high = max(hole[0] >> 2, hole[1] >> 2)
        row.low = min(hole[0] >> 2, hole[1] >> 2)
        row.start = start_class(hole[0], hole[1])
        row.pattern, row.flush = patterns(hole, board, visible)
        row.name = hand_name(hole, board, visible, tables)
    else:
        row.high = hole[0] >> 2
        row.low = NO_CARD
        row.start = hole[0] >> 2
        row.pattern = 0
        row.flush = 0
        row.name = 0


@kernel(leaf=True)
def fill_hole_cards(rules: Array, holes: Array, tables: Ranking, rows: Array) -> None:
    """Replace the hole cards of row i by `holes[i]`, and what follows from them and the row's own board."""
    for i in range(rows.shape[0]):
        _observe_cards(rules, holes[i], rows[i].board, tables, rows, i)


@kernel(leaf=True)
def _copy_cards(rows: Array, origin: int, index: int) -> None:
    """Copy the cards of `rows[origin]`, a row of the same player and street: cheaper than naming the hand again."""
    row, other = rows[index], rows[origin]
    for i in range(2):
        row.hole[i] = other.hole[i]
    for i in range(5):
        row.board[i] = other.board[i]
        row.ranks[i] = other.ranks[i]
    row.high = other.high
    row.low = other.low
    row.start = other.start
    row.pattern = other.pattern
    row.flush = other.flush
    row.name = other.name


@kernel(leaf=True)
def observe(
    rules: Array,
    state: Array,
    codes: Array,
    previous: int,
    hole: Array,
    board: Array,
    tables: Ranking,
    rows: Array,
    index: int,
) -> None:
    """Fill `rows[index]` with what the actor sees; of `board` only the cards open on this street are read."""
    for i in range(4):
        rows[index].betting_codes[i] = codes[i]
    _observe_betting(rules, state, previous, rows, index)
    _observe_cards(rules, hole, board, tables, rows, index)


@kernel(leaf=True)
def extend_betting(code: int, label: int) -> int:
    """Return a betting code with one more action; the oldest drops out when 63 bits are full."""
    return ((code << 3) | (label + 1)) & 0x7FFFFFFFFFFFFFFF


@kernel(leaf=True)
def record_action(rules: Array, state: Array, action: int, size: int, rows: Array, labels: Array, k: int) -> None:
    """Fill row k and label k of a hand with what the actor sees but for cards, and does; take the legal action.

    Rows and labels before k are those of the hand's actions so far.
    """
    row = rows[k]
    for i in range(4):
        row.betting_codes[i] = rows[k - 1].betting_codes[i] if k > 0 else 0
    if k > 0:
        street = rows[k - 1].street
        row.betting_codes[street] = extend_betting(row.betting_codes[street], labels[k - 1])
    own = k - 1  # the actor's previous decision
    while own >= 0 and rows[own].position != state[S_ACTOR]:
        own -= 1
    _observe_betting(rules, state, 0 if own < 0 else labels[own] + 1, rows, k)
    labels[k] = label_of(rules, state, action, size)
    apply(rules, state, action, size)


@kernel(leaf=True)
def record_cards(rules: Array, count: int, hole: Array, board: Array, tables: Ranking, rows: Array) -> None:
    """Fill in the cards of a hand's first `count` rows; `hole` is (players, 2)."""
    for k in range(count):
        own = k - 1  # the actor's previous decision: its cards are the same while the street is
        while own >= 0 and rows[own].position != rows[k].position:
            own -= 1
        if own >= 0 and rows[own].street == rows[k].street:
            _copy_cards(rows, own, k)
        else:
            _observe_cards(rules, hole[rows[k].position], board, tables, rows, k)


@kernel(leaf=True)
def observe_actions(
    rules: Array,
    moves: Array,
    sizes: Array,
    count: int,
    hole: Array,
    board: Array,
    tables: Ranking,
    state: Array,
    rows: Array,
    labels: Array,
) -> int:
    """Play `count` actions from the start and fill row k and label k with what the actor saw and did at action k.

    `hole` is (players, 2). Returns the number of legal actions; `state` stays after the last legal one. `sizes` of
    limit raises become the totals that they go to.
    """
    start(rules, state)
    legal = 0
    while legal < count:
        action = moves[legal] + 0  # int64: the rules are compiled for one type
        size = sizes[legal] + 0
        if not is_legal(rules, state, action, size):
            break
        actor = state[S_ACTOR]
        record_action(rules, state, action, size, rows, labels, legal)
        if action == RAISE:
            sizes[legal] = state[S_SPENT + actor]
        legal += 1
    record_cards(rules, legal, hole, board, tables, rows)
    return legal


@kernel
def observe_hands(
    rules: Array,
    moves: Array,
    sizes: Array,
    position: int,
    holes: Array,
    board: Array,
    tables: Ranking,
    state: Array,
    rows: Array,
    labels: Array,
) -> int:
    """Fill `rows[d, i]` with the d-th decision of the player at `position` if it holds `holes[i]`.

    `labels` gets the labels that it took, as far as it has room; with none, only the decision at the state reached is
    filled in. Returns the number of decisions, or -1 - k where action k is not legal. The last decision is at the state
    reached, if the player is to act there.
    """
    codes = np.zeros(4, dtype=np.int64)
    previous = 0
    count = 0
    last_only = len(labels) == 0
    start(rules, state)
    # the betting is walked once for all hands, as what is legal does not depend on cards
    for k in range(len(moves) + 1):
        if state[S_FINISHED] == 0 and state[S_ACTOR] == position and (k == len(moves) or not last_only):
            for i in range(len(holes)):
                observe(rules, state, codes, previous, holes[i], board, tables, rows[count], i)
            count += 1
        if k == len(moves):
            break
        action = moves[k] + 0  # int64: the rules are compiled for one type
        size = sizes[k] + 0
        if not is_legal(rules, state, action, size):
            return -1 - k
        street = state[S_ROUND]
        label = label_of(rules, state, action, size)
        codes[street] = extend_betting(codes[street], label)
        if state[S_ACTOR] == position:
            previous = label + 1
            if not last_only:
                labels[count - 1] = label
        apply(rules, state, action, size)
    return count


@lru_cache(maxsize=CACHED_STATES)
def _action_arrays(betting: str) -> tuple[Array, Array]:
    """Return the actions and sizes of a betting string as arrays."""
    played = list(actions(betting))
    if len(played) > MOST_ACTIONS:
        raise PipelineError(f"a hand of more than {MOST_ACTIONS} actions: {betting[:40]!r} ...")
    return np.array([a for a, _ in played], dtype=np.uint8), np.array([s for _, s in played], dtype=np.int64)


def _card_array(numbers: bytes, count: int) -> Array:
    """Return an array of `count` cards, NO_CARD beyond those given."""
    return np.frombuffer(bytearray(numbers.ljust(count, bytes((NO_CARD,)))), dtype=np.uint8)


def observation(game: Game, betting: str, position: int, hole: npt.ArrayLike, board: npt.ArrayLike = ()) -> Array:
    """Return the OBSERVATION row of a player to act after `betting` (in ACPC letters) with these cards."""
    moves, sizes = _action_arrays(betting)
    opened, mine = np.asarray(board, dtype=np.uint8).tobytes(), np.asarray(hole, dtype=np.uint8).tobytes()
    if len(mine) != game.hole_cards:
        raise PipelineError(f"player {position} holds {game.hole_cards} cards in {game.name}, not {len(mine)}")
    holes, board_array = _card_array(mine, 2).reshape(1, 2), _card_array(opened, 5)
    rows, labels = np.zeros((1, 1), dtype=OBSERVATION), np.empty(0, dtype=np.uint8)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    seen = observe_hands(game.rules, moves, sizes, position, holes, board_array, ranking(), state, rows, labels)
    if seen < 0:
        raise PipelineError(f"action {-seen} of {betting!r} is not legal in {game.name}")
    if state[S_FINISHED] or state[S_ACTOR] != position:
        raise PipelineError(f"after {betting!r} player {position} is not to act in {game.name}")
    if len(opened) < game.visible(int(state[S_ROUND])):
        raise PipelineError(
            f"after {betting!r} {game.visible(int(state[S_ROUND]))} board cards are open, not {len(opened)}"
        )
    return rows[0]


@kernel(leaf=True)
def deal_hash(rules: Array, hole: Array, seed: int, hand: int) -> Any:
    """Return the hash of all hole cards (players, 2) in position order, of seed and hand in one-card games."""
    if rules[R_HOLE] < 2:
        return hash64(hash64(np.uint64(seed)) ^ np.uint64(hand))
    value = np.uint64(0)
    for p in range(rules[R_PLAYERS]):
        low = min(hole[p, 0], hole[p, 1])  # the order in which a player's two cards were dealt does not matter
        high = max(hole[p, 0], hole[p, 1])
        value = hash64(value ^ np.uint64(low * 64 + high))
    return value


@kernel(leaf=True)
def is_validation(deal: Any) -> bool:
    """Return whether a deal is in the tenth that is held out for validation."""
    return np.uint64(deal) % np.uint64(10) == np.uint64(0)  # unsigned throughout: with int64 numba makes floats


def betting_text(code: int, nolimit: bool = False) -> str:
    """Return the letters of a betting code; `-` for none.

    >>> betting_text(0o233), betting_text(0o25, nolimit=True), betting_text(0)
    ('crr', 'cp', '-')
    """
    letters = LETTERS_NOLIMIT if nolimit else LETTERS_LIMIT
    return "".join(letters[int(digit)] for digit in f"{int(code):o}") if code else "-"


def betting_code(text: str, nolimit: bool = False) -> int:
    """Return the betting code that letters stand for.

    >>> betting_code("crr") == 0o233
    True
    """
    letters = LETTERS_NOLIMIT if nolimit else LETTERS_LIMIT
    code = 0
    for letter in text if text != "-" else "":
        code = extend_betting(code, letters.index(letter) - 1)
    return int(code)
