"""A game as an ACPC `.game` file describes it, and a hand's betting as an immutable `State`.

The rules themselves are the kernels of `pipeline.poker.rules`; `Game.rules` is the vector they read. `State` is for
everything that need not be fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from pipeline.poker.betting_tree import BettingTree, grow_tree
from pipeline.poker.rules import (
    CALL,
    FOLD,
    LABELS_LIMIT,
    LABELS_NOLIMIT,
    MAX_PLAYERS,
    MAX_ROUNDS,
    MOST_CHIPS,
    NO_STACK,
    R_BIG_BLIND,
    R_BLIND,
    R_BOARD,
    R_FIRST,
    R_MAX_RAISES,
    R_RAISE,
    R_STACK,
    RAISE,
    RULES_SIZE,
    S_ACTOR,
    S_FINISHED,
    S_FOLDED,
    S_ROUND,
    S_SPENT,
    STATE_SIZE,
    amount_of,
    apply,
    is_legal,
    label_of,
    legal_labels,
    raise_range,
    settle,
    size_of,
    start,
    to_call,
)
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest


@dataclass(frozen=True)
class Game:
    """The settings of an ACPC `.game` file."""

    name: str
    nolimit: bool
    players: int
    rounds: int
    blinds: tuple[int, ...]
    stacks: tuple[int, ...]
    raise_sizes: tuple[int, ...]
    first: tuple[int, ...]
    max_raises: tuple[int, ...]
    suits: int
    ranks: int
    hole_cards: int
    board_cards: tuple[int, ...]
    text: str = field(compare=False, repr=False)

    @property
    def labels(self) -> str:
        """Return the letters of the actions that a model distinguishes."""
        return LABELS_NOLIMIT if self.nolimit else LABELS_LIMIT

    @property
    def big_blind(self) -> int:
        """Return the largest blind (an ante counts as one)."""
        return max(self.blinds)

    @property
    def is_holdem(self) -> bool:
        """Return whether two hole cards, a full deck and a board of 3, 1 and 1 cards are dealt."""
        return (self.hole_cards, self.suits, self.ranks, self.board_cards) == (2, 4, 13, (0, 3, 1, 1))

    @property
    def unit(self) -> str:
        """Return the unit of winnings: thousandths of a big blind per hand, in small games of an ante."""
        return "mbb/h" if self.is_holdem else "milli-antes/h"

    @property
    def deck(self) -> Array:
        """Return the cards of the game: the top ranks and the top suits."""
        return np.array(
            [r * 4 + s for r in range(13 - self.ranks, 13) for s in range(4 - self.suits, 4)], dtype=np.uint8
        )

    def visible(self, round_index: int) -> int:
        """Return how many board cards lie open in a round."""
        return sum(self.board_cards[: round_index + 1])

    @cached_property
    def rules(self) -> Array:
        """Return the rules as kernels read them."""
        vector = np.zeros(RULES_SIZE, dtype=np.int64)
        vector[:6] = self.nolimit, self.players, self.rounds, self.suits, self.ranks, self.hole_cards
        for offset, values in (
            (R_BOARD, self.board_cards),
            (R_RAISE, self.raise_sizes),
            (R_MAX_RAISES, self.max_raises),
            (R_FIRST, tuple(p - 1 for p in self.first)),
            (R_BLIND, self.blinds),
            (R_STACK, self.stacks),
        ):
            vector[offset : offset + len(values)] = values
        vector[R_BIG_BLIND] = max(1, self.big_blind)
        return vector

    def start(self) -> State:
        """Return the state of a new hand, blinds posted."""
        vector = np.zeros(STATE_SIZE, dtype=np.int64)
        start(self.rules, vector)
        return State(self, vector)

    def betting_tree(self, most: int = 2_000_000) -> BettingTree:
        """Write out the betting of a limit game, if it has at most `most` nodes."""
        if self.nolimit:
            raise PipelineError(f"{self.name}: only limit betting is small enough to write out")
        tree = grow_tree(self.rules, most)
        if tree is None:
            raise PipelineError(
                f"{self.name}: the betting has more than {most:,} situations, too many to write out; "
                "a smaller maxRaises makes fewer"
            )
        return tree


@dataclass(frozen=True, eq=False)
class State:
    """A hand's betting at one moment; never changed, `apply` gives the next."""

    game: Game
    vector: Array
    rounds: tuple[str, ...] = ("",)
    """the betting of each round so far, as ACPC writes it"""

    def __repr__(self) -> str:
        """Return the betting, the pot and who acts, in a line.

        >>> find_game("kuhn.limit.2p").start().apply(RAISE)
        <State of kuhn.limit.2p after 'r': round 1, pot 3, spent 2 and 1, position 1 to act, 1 to call>
        """
        spent = " and ".join(map(str, self.spent))
        folded = [str(position) for position, gone in enumerate(self.folded) if gone]
        turn = f"position {self.actor} to act, {self.to_call} to call"
        if self.finished:
            turn = "showdown" if self.showdown else "finished"
        gone = f", position {' and '.join(folded)} folded" if folded else ""
        betting = repr(self.betting) if self.betting else "the blinds"
        return (
            f"<State of {self.game.name} after {betting}: round {self.round + 1}, pot {self.pot}, spent {spent}{gone}, "
            f"{turn}>"
        )

    @cached_property
    def round(self) -> int:
        return int(self.vector[S_ROUND])

    @cached_property
    def actor(self) -> int:
        """Return the position to act; -1 when the hand is over."""
        return int(self.vector[S_ACTOR])

    @cached_property
    def finished(self) -> bool:
        return bool(self.vector[S_FINISHED])

    @property
    def spent(self) -> tuple[int, ...]:
        return tuple(int(x) for x in self.vector[S_SPENT : S_SPENT + self.game.players])

    @cached_property
    def folded(self) -> tuple[bool, ...]:
        return tuple(bool(self.vector[S_FOLDED] >> p & 1) for p in range(self.game.players))

    @cached_property
    def showdown(self) -> bool:
        """Return whether the hand is finished with at least two players left."""
        return self.finished and sum(self.folded) < self.game.players - 1

    @cached_property
    def betting(self) -> str:
        """Return the betting as ACPC writes it: rounds joined by `/`."""
        return "/".join(self.rounds)

    @cached_property
    def written(self) -> bytes:
        """Return the betting as bytes, for the wire."""
        return self.betting.encode()

    @property
    def to_call(self) -> int:
        return int(to_call(self.game.rules, self.vector))

    @property
    def pot(self) -> int:
        return sum(self.spent)

    @property
    def raise_range(self) -> tuple[int, int]:
        """Return the smallest and largest total the actor may raise to, (0, 0) when it may not."""
        low, high = raise_range(self.game.rules, self.vector)
        return int(low), int(high)

    @cached_property
    def legal_labels(self) -> int:
        """Return a bit per legal label of the game."""
        return 0 if self.finished else int(legal_labels(self.game.rules, self.vector))

    def is_legal(self, action: int, size: int = 0) -> bool:
        return bool(is_legal(self.game.rules, self.vector, action, size))

    def apply(self, action: int, size: int = 0) -> State:
        """Return the state after a legal action; an illegal one is an error."""
        if not self.is_legal(action, size):
            raise PipelineError(f"{'fcr'[action]}{size or ''} is not legal after {self.betting!r} in {self.game.name}")
        vector = self.vector.copy()
        apply(self.game.rules, vector, action, size)
        letter = f"r{size}" if action == RAISE and self.game.nolimit else "fcr"[action]
        rounds = (*self.rounds[:-1], self.rounds[-1] + letter)
        rounds += ("",) * (int(vector[S_ROUND]) - self.round)
        return State(self.game, vector, rounds)

    def label_of(self, action: int, size: int = 0) -> int:
        return int(label_of(self.game.rules, self.vector, action, size))

    def choose(self, label: int, by: int = -1) -> tuple[int, int]:
        """Return the action and total of a label, or of a raise by `by` chips over the highest bet in its class."""
        if label < RAISE:
            return label, 0
        rules, vector = self.game.rules, self.vector
        size = int(amount_of(rules, vector, label, by) if by >= 0 else size_of(rules, vector, label))
        return RAISE, size if self.game.nolimit else 0

    def payoffs(self, values: Sequence[int] | Array) -> tuple[float, ...]:
        """Return the net chips of each player; `values` rank the hands (any numbers when all but one folded)."""
        order = sorted(values)
        ranks = tuple(map(order.index, values))
        if ranks not in self._settled:
            result = np.zeros(self.game.players)
            settle(self.game.rules, self.vector, np.array(ranks, dtype=np.int64), result)
            self._settled[ranks] = tuple(float(x) for x in result)
        return self._settled[ranks]

    @cached_property
    def _settled(self) -> dict[tuple[int, ...], tuple[float, ...]]:
        """Return the payoffs computed so far, by who beats whom."""
        return {}


ACTION = re.compile(r"(?P<fold>f)|(?P<call>c)|r(?P<size>\d*)")


def actions(betting: str) -> Iterator[tuple[int, int]]:
    """Yield the actions of a betting string without its `/`, as (action, size) pairs.

    >>> list(actions("cr300f"))
    [(1, 0), (2, 300), (0, 0)]
    """
    for match in ACTION.finditer(betting):
        yield (FOLD, 0) if match["fold"] else (CALL, 0) if match["call"] else (RAISE, int(match["size"] or 0))


CACHED_STATES = 1 << 13
"""states of each kind that dealer and players cache in a match: all that are ever met in limit hold'em (fewer
than 6,000 in 1.6 million); more hardly helps in no-limit, where most bettings are new, and takes memory"""


class StateCache:
    """A cache of the states of a game's hands: most bettings are met again and again."""

    def __init__(self, game: Game, most: int = CACHED_STATES) -> None:
        self.start = game.start()
        self.after = lru_cache(maxsize=most)(State.apply)
        self.at = lru_cache(maxsize=most)(self._at)
        """the state after a betting string"""

    def labels(self, betting: str) -> tuple[list[int], list[int], State]:
        """Return the label and the total of each action of a betting string, and the state after them."""
        state, labels, sizes = self.start, [], []
        for action, size in actions(betting):
            labels.append(state.label_of(action, size))
            sizes.append(size)
            state = self.after(state, action, size)
        return labels, sizes, state

    def _at(self, betting: str) -> State:
        state = self.start
        for action, size in actions(betting):
            state = self.after(state, action, size)
        if state.betting != betting:
            raise PipelineError(f"{betting!r} has its streets in the wrong places for {state.game.name}")
        return state


MOST_RAISES = 255
"""the most raises of a round, and its limit where a game file names none (as in ACPC's server)"""

_KEYS = {
    "numplayers": "players",
    "numrounds": "rounds",
    "blind": "blinds",
    "stack": "stacks",
    "raisesize": "raise_sizes",
    "firstplayer": "first",
    "maxraises": "max_raises",
    "numsuits": "suits",
    "numranks": "ranks",
    "numholecards": "hole_cards",
    "numboardcards": "board_cards",
}


def parse_game(text: str, name: str = "game") -> Game:
    """Read an ACPC game definition."""
    settings: dict[str, list[int]] = {}
    betting = None
    inside = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        lower = line.lower()
        if not line:
            continue
        if lower == "gamedef":
            inside = True
        elif lower == "end gamedef":
            inside = False
        elif not inside:
            raise PipelineError(f"{name}, line {number}: {raw!r} stands outside GAMEDEF ... END GAMEDEF")
        elif lower in ("limit", "nolimit"):
            betting = lower
        else:
            key, equals, rest = lower.partition("=")
            if key.strip() not in _KEYS or not equals:
                raise PipelineError(f"{name}, line {number}: unknown setting {raw!r}{nearest(key.strip(), _KEYS)}")
            try:
                settings[_KEYS[key.strip()]] = [int(word) for word in rest.split()]
            except ValueError:
                raise PipelineError(f"{name}, line {number}: {raw!r} has a value that is not a number") from None
    if betting is None:
        raise PipelineError(f"{name}: neither 'limit' nor 'nolimit' is named")
    return _make_game(settings, betting == "nolimit", name, text)


def _make_game(settings: dict[str, list[int]], nolimit: bool, name: str, text: str) -> Game:
    """Make a `Game` of the settings of a file, completed with ACPC's defaults."""

    def numbers(key: str, count: int, default: int | None) -> tuple[int, ...]:
        values = settings.get(key, [] if default is None else [default] * count)
        if len(values) != count:
            raise PipelineError(f"{name}: {key} needs {count} numbers, has {len(values)}")
        return tuple(values)

    (players,), (rounds,) = numbers("players", 1, None), numbers("rounds", 1, None)
    (suits,), (ranks,), (hole,) = (numbers(key, 1, None) for key in ("suits", "ranks", "hole_cards"))
    if not (2 <= players <= MAX_PLAYERS and 1 <= rounds <= MAX_ROUNDS and 1 <= suits <= 4 and 1 <= ranks <= 13):
        raise PipelineError(
            f"{name}: 2-{MAX_PLAYERS} players, 1-{MAX_ROUNDS} rounds, 1-4 suits and 1-13 ranks are possible"
        )
    game = Game(
        name=name,
        nolimit=nolimit,
        players=players,
        rounds=rounds,
        blinds=numbers("blinds", players, None),
        stacks=numbers("stacks", players, MOST_CHIPS // players if nolimit else NO_STACK),
        raise_sizes=(0,) * rounds if nolimit else numbers("raise_sizes", rounds, None),
        first=numbers("first", rounds, 1),
        max_raises=numbers("max_raises", rounds, MOST_RAISES),
        suits=suits,
        ranks=ranks,
        hole_cards=hole,
        board_cards=numbers("board_cards", rounds, None),
        text=text,
    )
    if players * hole + sum(game.board_cards) > suits * ranks:
        raise PipelineError(f"{name}: {suits * ranks} cards are too few for {players} players and the board")
    if not 1 <= hole <= 2 or sum(game.board_cards) > 5:
        raise PipelineError(f"{name}: one or two hole cards and at most five board cards are possible")
    if not all(1 <= p <= players for p in game.first):
        raise PipelineError(f"{name}: firstPlayer must be between 1 and {players}")
    if game.board_cards[0] != 0:
        raise PipelineError(
            f"{name}: board cards before the first betting are not possible: numBoardCards begins with 0"
        )
    if min(game.board_cards) < 0 or not all(0 <= most <= MOST_RAISES for most in game.max_raises):
        raise PipelineError(f"{name}: numBoardCards must be 0 or more and maxRaises between 0 and {MOST_RAISES}")
    _check_amounts(game)
    return game


def _check_amounts(game: Game) -> None:
    """Refuse amounts that are no stakes or that the 32 bits of a dataset's columns cannot hold."""
    if min(game.blinds) < 0 or max(game.blinds) == 0:
        raise PipelineError(f"{game.name}: blinds must be 0 or more and one at least 1, or nothing is at stake")
    if min(game.stacks) < 1 or (not game.nolimit and min(game.raise_sizes) < 1):
        raise PipelineError(f"{game.name}: stacks and raise sizes must be at least 1")
    highest = max(game.blinds) + sum(n * size for n, size in zip(game.max_raises, game.raise_sizes, strict=True))
    pot = sum(stack if game.nolimit else min(stack, highest) for stack in game.stacks)
    if max(*game.blinds, *game.stacks, pot) > MOST_CHIPS:
        raise PipelineError(
            f"{game.name}: blinds, stacks or raise sizes are too large: a pot may reach {pot:,} chips, "
            f"and {MOST_CHIPS:,} is the most"
        )


def game_names() -> list[str]:
    """List the games that come with the package."""
    folder = files("pipeline.poker") / "resources" / "games"
    return sorted(entry.name.removesuffix(".game") for entry in folder.iterdir() if entry.name.endswith(".game"))


@cache
def builtin(name: str) -> Game:
    """Return a game that comes with the package, by its file's name."""
    text = (files("pipeline.poker") / "resources" / "games" / f"{name}.game").read_text(encoding="utf-8")
    return parse_game(text, name)


def find_game(name: str | Path) -> Game:
    """Return a game by the name of one that comes with the package, or by its `.game` file.

    Parameters
    ----------
    name : str or path
        `kuhn.limit.Np` gives Kuhn poker for N players. The beginning of a name is enough where only one built-in game
        begins so: `holdem.limit.2p` is `holdem.limit.2p.reverse_blinds`. Folders before it and `.game` are ignored.

    Returns
    -------
    Game
        Its rules; `start()` is the state before the first action.

    Examples
    --------
    >>> find_game("holdem.limit.2p.reverse_blinds").blinds
    (10, 5)
    """
    path = Path(name)
    if path.is_file():
        return parse_game(path.read_text(errors="replace", encoding="utf-8"), path.name.removesuffix(".game"))
    base = path.name.removesuffix(".game")
    if base in game_names():
        return builtin(base)
    players = re.fullmatch(r"kuhn\.limit\.(\d+)p", base)
    if players:
        return kuhn(int(players[1]))
    longer = [game for game in game_names() if game.startswith(f"{base}.")]
    if len(longer) == 1:
        return builtin(longer[0])
    raise PipelineError(f"no game file {str(name)!r}{nearest(base, game_names())}")


def kuhn(players: int) -> Game:
    """Return Kuhn poker for `players` players: one card each from a deck one card larger, one bet."""
    if not 2 <= players <= 12:
        raise PipelineError(
            f"Kuhn poker is dealt to 2 to 12 players, not {players}: it needs a rank more than players, and a deck "
            "has 13; `solve kuhn` takes 13 players too, for it deals no cards"
        )
    small = builtin("kuhn.limit.2p")
    ones = (1,) * players
    return replace(
        small,
        name=f"kuhn.limit.{players}p",
        players=players,
        blinds=ones,
        stacks=(NO_STACK,) * players,
        ranks=players + 1,
        text=re.sub(r"(?m)^numRanks = .*$", f"numRanks = {players + 1}", small.text)
        .replace("numPlayers = 2", f"numPlayers = {players}")
        .replace("blind = 1 1", "blind = " + " ".join("1" * players)),
    )
