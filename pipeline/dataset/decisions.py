"""What the acting player may see, one row per decision.

`OBSERVATION` separates what is known from what is hidden: one kernel, `observe`, fills it from the rules' state, the
betting so far, the player's own cards and the open board; ingest, the arena and the live client all use it, and
features, models and agents take arrays of it. Nothing in a row depends on hidden cards.

A street's betting is one number, its *betting code*: labels packed in octal, first action most significant (f=1 c=2 r
or s=3 h=4 p=5 o=6 a=7; 0 is no action yet). It keeps the last 21 actions, more than any limit street has.

A deal is known by the hash of all players' hole cards in position order, never the board: logs show only the board
that was dealt, and the twins of a duplicate match often end on different streets. In games with few deals (Kuhn,
Leduc) the match's seed and the hand's number stand for it. One deal in ten is held out for validation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.poker.cards import NO_CARD, Ranking, hand_name, patterns, ranking, start_class
from pipeline.poker.game import MOST_REMEMBERED, Game, actions
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
    size_of,
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
"""no hand has more actions: the official server keeps fewer"""

NO_START = 169
"""the starting class of cards that are not known"""
NOBODY = 255
"""the aggressor of a hand in which nobody has raised"""

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
        ("aggressor", np.uint8),  # position of the last player who raised in this hand, NOBODY before that
        ("effective", np.int32),  # chips the actor can still win or lose: its own or the others' most; 0 without stacks
        ("big_blind", np.int32),  # chips, to compare amounts of different stakes
    ],
    align=True,
)


@kernel(leaf=True)
def _observe_betting(rules: Array, state: Array, previous: int, rows: Array, at: int) -> None:
    """Fill `rows[at]` with what the actor sees, but for the cards and the betting codes."""
    row = rows[at]
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
    _observe_others(rules, state, rows, at)


@kernel(leaf=True)
def _observe_others(rules: Array, state: Array, rows: Array, at: int) -> None:
    """Fill in how many others are left, where the actor sits among them and for how much they can play."""
    row = rows[at]
    n = rules[R_PLAYERS]
    actor = state[S_ACTOR]
    first = rules[R_FIRST + rules[R_ROUNDS] - 1]
    mine = rules[R_STACK + actor] - state[S_SPENT + actor]
    unknown = rules[R_STACK + actor] == NO_STACK
    in_hand = 1
    behind = 0
    mine_in_turn = actor - first if actor >= first else actor - first + n  # place in the last street's order
    to_act = 0
    most = 0
    for p in range(n):
        if p == actor or (state[S_FOLDED] >> p) & 1 != 0:
            continue
        in_hand += 1
        if (p - first if p >= first else p - first + n) > mine_in_turn:
            behind += 1
        left = rules[R_STACK + p] - state[S_SPENT + p]
        unknown = unknown or rules[R_STACK + p] == NO_STACK
        to_act += (state[S_WAITING] >> p) & 1
        most = max(most, left + max(0, state[S_SPENT + p] - state[S_SPENT + actor]))
    row.in_hand = in_hand
    row.to_act = to_act
    row.behind = behind
    row.aggressor = state[S_AGGRESSOR] if state[S_AGGRESSOR] >= 0 else NOBODY
    row.effective = min(mine, most) if rules[R_NOLIMIT] != 0 and not unknown else 0


@kernel(leaf=True)
def _observe_cards(rules: Array, hole: Array, board: Array, tables: Ranking, rows: Array, at: int) -> None:
    """Fill in the cards of a row whose street is there."""
    row = rows[at]
    visible = rules[R_BOARD]
    for i in range(1, row.street + 1):
        visible += rules[R_BOARD + i]
    row.hole[0] = hole[0]
    row.hole[1] = hole[1]
    for i in range(5):
        row.board[i] = board[i] if i < visible else NO_CARD
        row.ranks[i] = NO_CARD
    for i in range(visible):
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
def hold(rules: Array, holes: Array, tables: Ranking, rows: Array) -> None:
    """Give the player of each row the cards `holes[i]`, beside the board that the row shows."""
    for i in range(rows.shape[0]):
        _observe_cards(rules, holes[i], rows[i].board, tables, rows, i)


@kernel(leaf=True)
def _copy_cards(rows: Array, origin: int, at: int) -> None:
    """Fill in the cards of a row from another of the same player and street."""
    row, other = rows[at], rows[origin]
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
    words: Array,
    previous: int,
    hole: Array,
    board: Array,
    tables: Ranking,
    rows: Array,
    at: int,
) -> None:
    """Fill `rows[at]` with what the actor sees; of `board` only the cards open in this round are read."""
    for i in range(4):
        rows[at].betting_codes[i] = words[i]
    _observe_betting(rules, state, previous, rows, at)
    _observe_cards(rules, hole, board, tables, rows, at)


@kernel(leaf=True)
def extend(word: int, label: int) -> int:
    """A betting code with one more action."""
    return ((word << 3) | (label + 1)) & 0x7FFFFFFFFFFFFFFF


@kernel(leaf=True)
def replay(
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
    """Play `count` actions from the start; row k and its label are those of action k.

    `hole` is (players, 2). Returns how many actions were legal; `state` is left after the last legal one. `sizes` of
    limit raises become the totals that they go to.
    """
    start(rules, state)
    for k in range(count):
        action = moves[k] + 0  # int64: the rules are compiled for one type
        size = sizes[k] + 0
        if not is_legal(rules, state, action, size):
            return k
        row = rows[k]
        for i in range(4):
            row.betting_codes[i] = rows[k - 1].betting_codes[i] if k > 0 else 0
        if k > 0:
            street = rows[k - 1].street
            row.betting_codes[street] = extend(row.betting_codes[street], labels[k - 1])
        mine = k - 1  # the player's decision before this one
        while mine >= 0 and rows[mine].position != state[S_ACTOR]:
            mine -= 1
        previous = 0 if mine < 0 else labels[mine] + 1
        _observe_betting(rules, state, previous, rows, k)
        if mine >= 0 and rows[mine].street == row.street:
            _copy_cards(rows, mine, k)
        else:
            _observe_cards(rules, hole[row.position], board, tables, rows, k)
        labels[k] = label_of(rules, state, action, size)
        apply(rules, state, action, size)
        if action == RAISE:
            sizes[k] = state[S_SPENT + row.position]
    return count


@kernel
def _replay_seen(
    rules: Array,
    moves: Array,
    sizes: Array,
    count: int,
    position: int,
    hole: Array,
    board: Array,
    tables: Ranking,
    state: Array,
    rows: Array,
) -> int:
    """As `replay`, for one player's view: fills `rows[0]` for the state reached, if that player is to act there."""
    words = np.zeros(4, dtype=np.int64)
    previous = 0
    start(rules, state)
    for k in range(count):
        action = moves[k] + 0  # int64: the rules are compiled for one type
        size = sizes[k] + 0
        if not is_legal(rules, state, action, size):
            return k
        street = state[S_ROUND]
        label = label_of(rules, state, action, size)
        words[street] = extend(words[street], label)
        if state[S_ACTOR] == position:
            previous = label + 1
        apply(rules, state, action, size)
    if state[S_FINISHED] == 0 and state[S_ACTOR] == position:
        observe(rules, state, words, previous, hole, board, tables, rows, 0)
    return count


@kernel
def _history(rules: Array, row: Array, tables: Ranking, state: Array, rows: Array, labels: Array) -> int:
    """The player's own decisions of the hand up to `row[0]`, into `rows`; the last one is `row[0]` again."""
    words = np.zeros(4, dtype=np.int64)
    position = int(row[0].position)
    previous = 0
    found = 0
    start(rules, state)
    for street in range(int(row[0].street) + 1):
        word = row[0].betting_codes[street]
        length = 0
        while length < 21 and (word >> (3 * length)) != 0:
            length += 1
        for i in range(length - 1, -1, -1):
            label = ((word >> (3 * i)) & 7) - 1
            action = min(label, RAISE)
            if state[S_ACTOR] == position:
                observe(rules, state, words, previous, row[0].hole, row[0].board, tables, rows, found)
                labels[found] = label
                found += 1
                previous = label + 1
            words[street] = extend(words[street], label)
            size = size_of(rules, state, label) if action == RAISE else 0
            if not is_legal(rules, state, action, size):
                return -1
            apply(rules, state, action, size)
    rows[found] = row[0]
    return found + 1


def history(game: Game, row: Array) -> tuple[Array, Array]:
    """A player's own decisions of a hand up to and with the one in `row` (one OBSERVATION row), and the labels taken.

    The labels are one fewer than the rows. In no-limit games earlier amounts are those that the labels stand for.
    """
    rows = np.zeros(MOST_ACTIONS, dtype=OBSERVATION)
    labels = np.zeros(MOST_ACTIONS, dtype=np.uint8)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    count = _history(game.rules, row, ranking(), state, rows, labels)
    if count < 0:  # amounts that the labels cannot reproduce: the decision stands alone
        return row.copy(), labels[:0]
    return rows[:count], labels[: count - 1]


@lru_cache(maxsize=MOST_REMEMBERED)
def _moves(betting: str) -> tuple[Array, Array]:
    """The actions and sizes of a betting string, as the kernels take them."""
    taken = list(actions(betting))
    if len(taken) > MOST_ACTIONS:
        raise PipelineError(f"a hand of more than {MOST_ACTIONS} actions: {betting[:40]!r} ...")
    return np.array([a for a, _ in taken], dtype=np.uint8), np.array([s for _, s in taken], dtype=np.int64)


def _cards(numbers: bytes, count: int) -> Array:
    """`count` cards for the kernels, the missing ones NO_CARD."""
    return np.frombuffer(bytearray(numbers.ljust(count, bytes((NO_CARD,)))), dtype=np.uint8)


def observation(game: Game, betting: str, position: int, hole: npt.ArrayLike, board: npt.ArrayLike = ()) -> Array:
    """One OBSERVATION row for a player to act after `betting` (as ACPC writes it), seeing `hole` and `board`."""
    moves, sizes = _moves(betting)
    count = len(moves)
    opened, mine = np.asarray(board, dtype=np.uint8).tobytes(), np.asarray(hole, dtype=np.uint8).tobytes()
    if len(mine) != game.hole_cards:
        raise PipelineError(f"player {position} holds {game.hole_cards} cards in {game.name}, not {len(mine)}")
    held, seen = _cards(mine, 2), _cards(opened, 5)
    rows = np.zeros(1, dtype=OBSERVATION)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    done = _replay_seen(game.rules, moves, sizes, count, position, held, seen, ranking(), state, rows)
    if done < count:
        raise PipelineError(f"action {done + 1} of {betting!r} is not legal in {game.name}")
    if state[S_FINISHED] or state[S_ACTOR] != position:
        raise PipelineError(f"after {betting!r} player {position} is not to act in {game.name}")
    if len(opened) < game.visible(int(state[S_ROUND])):
        raise PipelineError(
            f"after {betting!r} {game.visible(int(state[S_ROUND]))} board cards are open, not {len(opened)}"
        )
    return rows


@kernel(leaf=True)
def deal_hash(rules: Array, hole: Array, seed: int, hand: int) -> Any:
    """The deal's hash: of all hole cards (players, 2) in position order, or of seed and hand in one-card games."""
    if rules[R_HOLE] < 2:
        return hash64(hash64(np.uint64(seed)) ^ np.uint64(hand))
    value = np.uint64(0)
    for p in range(rules[R_PLAYERS]):
        low = min(hole[p, 0], hole[p, 1])
        high = max(hole[p, 0], hole[p, 1])
        value = hash64(value ^ np.uint64(low * 64 + high))
    return value


@kernel(leaf=True)
def is_validation(deal: Any) -> bool:
    """Whether a deal is among the tenth that is held out."""
    return np.uint64(deal) % np.uint64(10) == np.uint64(0)


def word_text(word: int, nolimit: bool = False) -> str:
    """The letters of a betting code; `-` for none.

    >>> word_text(0o233), word_text(0o25, nolimit=True), word_text(0)
    ('crr', 'cp', '-')
    """
    letters = LETTERS_NOLIMIT if nolimit else LETTERS_LIMIT
    return "".join(letters[int(digit)] for digit in f"{int(word):o}") if word else "-"


def word_code(text: str, nolimit: bool = False) -> int:
    """The betting code of its letters.

    >>> word_code("crr") == 0o233
    True
    """
    letters = LETTERS_NOLIMIT if nolimit else LETTERS_LIMIT
    code = 0
    for letter in text if text != "-" else "":
        code = extend(code, letters.index(letter) - 1)
    return int(code)
