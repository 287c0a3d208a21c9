"""The hands of one game of a dataset as an index on disk: filtered in milliseconds, hardly any of it in memory.

In goes a dataset's table `hands`, out comes an `Archive`: a column per fact of a hand (players, cards, betting, pot,
results, made hands). The columns are files in the user's cache, mapped into memory, so the system loads what a filter
touches and drops it when it needs the room. `ArchiveReader` fills them piece by piece; the hands read so far can be
listed meanwhile, and the next start opens what is there.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import hand_batches, translate_parquet_errors
from pipeline.formats.acpc import Hand
from pipeline.formats.ascii import STREET_END, read_betting
from pipeline.poker.cards import NO_CARD, RANKS, SUITS, cards_text, start_class
from pipeline.poker.game import Game
from pipeline.poker.made_hands import NO_CLASS, classify
from pipeline.poker.rules import S_FINISHED, S_ROUND, STATE_SIZE, apply, is_legal, pot, start
from pipeline.runtime.array_types import Array
from pipeline.runtime.diskcache import cache_root, load_bytes, locked, open_array, store_bytes, writing_array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress

VERSION = 2
"""format version of the index"""
BATCH_HANDS = 65_536
"""hands that are read at a time"""
COLUMNS = ("file", "line", "hand", "game", "names", "betting", "cards", "payoffs", "validation")
NO_START = 169
"""starting class of cards that are not known"""


@kernel
def _play_out(
    rules: Array,
    text: Array,
    ends: Array,
    moves: Array,
    sizes: Array,
    state: Array,
    pots: Array,
    streets: Array,
) -> None:
    """Write the pot (-1 for a betting that is not legal) and the last street of each betting; all stand in `text`."""
    begin = 0
    for n in range(len(ends)):
        start(rules, state)
        count, after = read_betting(text, begin, ends[n], False, moves, sizes)
        good = after == ends[n]
        for token in range(count):
            if moves[token] == STREET_END or not good:
                continue
            size = max(0, sizes[token])
            good = state[S_FINISHED] == 0 and is_legal(rules, state, moves[token], size)
            if good:
                apply(rules, state, moves[token], size)
        pots[n] = pot(rules, state) if good else -1
        streets[n] = state[S_ROUND]
        begin = ends[n]


@kernel
def _begins_with(text: Array, ends: Array, prefix: Array, out: Array) -> None:
    """Write for each betting in `text` whether it begins with `prefix`."""
    begin = 0
    for n in range(len(ends)):
        fits = ends[n] - begin >= len(prefix)
        i = 0
        while fits and i < len(prefix):
            fits = text[begin + i] == prefix[i]
            i += 1
        out[n] = fits
        begin = ends[n]


@kernel
def _read_cards(
    text: Array, ends: Array, numbers: Array, players: int, hole_cards: int, hole: Array, board: Array
) -> None:
    """Read the cards of each text such as `4d6d|AdTd/4h9h5d`; a place that is empty stays NO_CARD."""
    begin = 0
    for n in range(len(ends)):
        player, place, dealt = 0, 0, 0
        on_board = False
        i = begin
        while i < ends[n]:
            letter = text[i]
            if letter == 124 and not on_board:  # |
                player += 1
                place = 0
                i += 1
            elif letter == 47:  # /
                on_board = True
                i += 1
            else:
                card = numbers[letter, text[i + 1]] if i + 1 < ends[n] else NO_CARD
                if on_board and dealt < 5:
                    board[n, dealt] = card
                    dealt += 1
                elif not on_board and player < players and place < hole_cards:
                    hole[n, player, place] = card
                    place += 1
                i += 2
        begin = ends[n]


@kernel
def _starts(hole: Array, out: Array) -> None:
    """Write the starting class of each player's cards, NO_START where they are not known."""
    for n in range(hole.shape[0]):
        for p in range(hole.shape[1]):
            known = hole[n, p, 0] < 52 and hole[n, p, 1] < 52
            out[n, p] = start_class(int(hole[n, p, 0]), int(hole[n, p, 1])) if known else NO_START


class Filter(NamedTuple):
    """The hands that are wanted; an empty text or None matches all."""

    player: str = ""
    opponent: str = ""
    street: int = 0
    """lowest street reached"""
    betting: str = ""
    """beginning of the betting"""
    least_pot: int | None = None
    most_pot: int | None = None
    made: int | None = None
    """the made hand of the player (of anybody, where none is named) in the end"""
    start: int | None = None
    """the player's starting class"""


@dataclass(frozen=True)
class Archive:
    """All hands of a game, or the first ones while the others are being read."""

    game: Game
    file: Array
    """number in `files`"""
    line: Array
    number: Array
    validation: Array
    seats: Array
    """(hands, players) numbers in `players`"""
    won: Array
    """(hands, players) net chips"""
    hole: Array
    """(hands, players, 2)"""
    board: Array
    """(hands, 5)"""
    made: Array
    """(hands, players): made hands in the end, NO_CLASS before the flop"""
    start: Array
    """(hands, players): starting classes"""
    pot: Array
    """-1 for a betting that is not legal"""
    street: Array
    """the last street"""
    ends: Array
    """where each hand's betting ends in `betting`"""
    betting: Array
    """the bytes of all betting, hand after hand"""
    files: Sequence[str]
    players: Sequence[str]

    def __len__(self) -> int:
        return len(self.line)

    def first(self, hands: int) -> Archive:
        """Return the archive of the first hands."""
        parts = {name: getattr(self, name)[:hands] for name in _columns(self.game) if name != "betting"}
        return replace(self, **parts)

    def find(self, wanted: Filter) -> Array:
        """Return the numbers of the hands that are wanted, in the order of the logs."""
        mask = np.ones(len(self), dtype=bool)
        if wanted.street:
            mask &= self.street >= wanted.street
        if wanted.least_pot is not None:
            mask &= self.pot >= wanted.least_pot
        if wanted.most_pot is not None:
            mask &= self.pot <= wanted.most_pot
        if wanted.betting:
            fits = np.empty(len(self), dtype=bool)
            prefix = np.frombuffer(wanted.betting.encode(), dtype=np.uint8)
            _begins_with(self.betting, self.ends, prefix, fits)
            mask &= fits
        for name in {wanted.player, wanted.opponent} - {""}:
            number, twice = self._number(name), wanted.player == wanted.opponent
            seated = np.zeros(len(self), dtype=np.uint8)
            for seat in range(self.game.players):
                seated += self.seats[:, seat] == number
            mask &= seated > (1 if twice else 0)
        for kinds, kind in ((self.made, wanted.made), (self.start, wanted.start)):
            if kind is None:
                continue
            mask &= self._is_kind(kinds, kind, wanted.player) if wanted.player else (kinds == kind).any(axis=1)
        return np.flatnonzero(mask)

    def winnings(self, player: str, hands: Array) -> Array:
        """Return a player's winnings in some hands, 0 where it does not play."""
        number, chips = self._number(player), np.zeros(len(hands))
        for seat in reversed(range(self.game.players)):
            chips = np.where(self.seats[hands, seat] == number, self.won[hands, seat], chips)
        return chips

    def hand(self, number: int) -> Hand:
        """Return one hand as its log tells it."""
        if not 0 <= number < len(self):
            raise PipelineError(f"there is no hand {number}: they go from 0 to {len(self) - 1}")
        streets, begin = [], 0
        for count in self.game.board_cards[1:]:
            text = cards_text(self.board[number][begin : begin + count])
            begin += count
            if text:
                streets.append(text)
        holes = tuple(cards_text(hole) for hole in self.hole[number])
        first = int(self.ends[number - 1]) if number else 0
        return Hand(
            int(self.number[number]),
            bytes(self.betting[first : int(self.ends[number])]).decode(),
            holes,
            tuple(streets),
            tuple(self.won[number].tolist()),
            tuple(self.players[player] for player in self.seats[number]),
        )

    def place(self, files: Sequence[str], file: Array, line: Array) -> Array:
        """Return the numbers of the hands at lines of files, -1 for one that is not here."""
        numbers = {name: number for number, name in enumerate(self.files)}
        codes = np.array([numbers.get(name, -1) for name in files], dtype=np.int64)[file]
        order, keys = self._by_place
        wanted = codes << 32 | line.astype(np.int64)
        # a key beyond the last one is compared with that, and is not equal to it
        nearest_key = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where((keys[nearest_key] == wanted) & (codes >= 0), order[nearest_key], -1)

    @cached_property
    def _by_place(self) -> tuple[Array, Array]:
        """Return the hands in the order of file and line, and these as sorted keys."""
        keys = self.file.astype(np.int64) << 32 | self.line
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def _number(self, player: str) -> int:
        """Return the number of a player."""
        if player not in self.players:
            close = nearest(player[:80], self.players)
            raise PipelineError(f"nobody is called {player[:80]!r} in these hands{close}")
        return self.players.index(player)

    def _is_kind(self, kinds: Array, kind: int, player: str) -> Array:
        """Return by hand whether what `kinds` has of a player's first seat is of a kind."""
        number, result = self._number(player), np.zeros(len(self), dtype=bool)
        for seat in reversed(range(self.game.players)):
            result = np.where(self.seats[:, seat] == number, kinds[:, seat] == kind, result)
        return result


def _columns(game: Game) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the shape behind the hands and the type of each column of an archive."""
    seats = (game.players,)
    return {
        "file": ((), np.int32),
        "line": ((), np.int32),
        "number": ((), np.int32),
        "validation": ((), np.bool_),
        "seats": (seats, np.int32),
        "won": (seats, np.float64),
        "hole": ((*seats, 2), np.uint8),
        "board": ((5,), np.uint8),
        "made": (seats, np.uint8),
        "start": (seats, np.uint8),
        "pot": ((), np.int64),
        "street": ((), np.uint8),
        "ends": ((), np.int64),
        "betting": ((), np.uint8),
    }


class ArchiveReader:
    """Reads the hands of a game: from the cache where they are, else from the dataset into the cache."""

    def __init__(self, data: Path, game: Game) -> None:
        self.data, self.game = data, game
        self.so_far: Archive | None = None
        """the hands read so far, while others are being read"""
        # the bytes of the hands: the manifest's fingerprint is the same for the same logs in another folder
        hands = [file.sha256 for file in read_manifest(data).files if file.path.startswith("hands/")]
        identity = json.dumps([VERSION, hands, game.name, game.text])
        self._name = hashlib.sha256(identity.encode()).hexdigest()[:24]
        self._folder = cache_root() / "explorer"

    def read(self, progress: Progress) -> Archive:
        """Return all hands."""
        archive = self._open()
        if archive is not None:
            return archive
        try:
            with locked(self._folder):
                return self._open() or self._build(progress)
        except OSError:
            # a cache that cannot be written or is full: files for this run alone, whose names may go once they are open
            with tempfile.TemporaryDirectory(prefix="acpc-pipeline-") as folder:
                self._folder = Path(folder)
                return self._build(progress)
        finally:
            self.so_far = None

    def _path(self, column: str) -> Path:
        return self._folder / f"{self._name}-{column}.npy"

    def _open(self) -> Archive | None:
        """Return the index of the cache; None where it is missing, damaged or of another version."""
        texts = load_bytes(self._folder / f"{self._name}.texts", VERSION)
        if texts is None:
            return None
        arrays = {}
        for name, (shape, kind) in _columns(self.game).items():
            array = open_array(self._path(name), VERSION, lambda _: True)
            if array is None or (array.shape[1:], array.dtype) != (shape, np.dtype(kind)):
                return None
            arrays[name] = array
        # shapes are compared at every opening: files of two interrupted runs may lie side by side
        stored = json.loads(texts)
        lengths = {name: stored["betting" if name == "betting" else "hands"] for name in arrays}
        if any(len(array) != lengths[name] for name, array in arrays.items()):
            return None
        return Archive(self.game, **arrays, files=stored["files"], players=stored["players"])

    def _build(self, progress: Progress) -> Archive:
        """Fill the columns piece by piece, and store the texts last: without them nothing is opened."""
        hands, letters = self._count()
        if hands == 0:
            raise PipelineError(f"{self.data} has no hands of {self.game.name}")
        files: dict[str, int] = {}
        players: dict[str, int] = {}
        with ExitStack() as stack:
            arrays = {
                name: stack.enter_context(
                    writing_array(
                        self._path(name), (letters if name == "betting" else hands, *shape), np.dtype(kind), VERSION
                    )
                )
                for name, (shape, kind) in _columns(self.game).items()
            }
            whole = Archive(self.game, **arrays, files=_Keys(files), players=_Keys(players))
            begin = 0
            for batch in self._batches(COLUMNS):
                progress(begin, hands)
                self._fill(whole, begin, batch, files, players)
                begin += batch.num_rows
                self.so_far = whole.first(begin)
            progress(hands, hands)
        texts = {"hands": hands, "betting": letters, "files": list(files), "players": list(players)}
        store_bytes(self._folder / f"{self._name}.texts", json.dumps(texts).encode(), VERSION)
        return self._open() or replace(whole, files=list(files), players=list(players))

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the hands of the game, some at a time."""
        for batch in hand_batches(self.data, columns, BATCH_HANDS):
            mine = _numbers(batch.column("game"), lambda name: name == self.game.name)
            if mine.any():
                yield batch if mine.all() else batch.filter(mine)

    def _count(self) -> tuple[int, int]:
        """Return the number of hands, and of the bytes of their betting."""
        hands = letters = 0
        for batch in self._batches(("game", "betting")):
            hands += batch.num_rows
            letters += len(_texts(batch.column("betting"))[0])
        return hands, letters

    def _fill(self, into: Archive, begin: int, batch: Any, files: dict[str, int], players: dict[str, int]) -> None:
        """Write one batch of hands from place `begin` on."""
        game, rows = self.game, slice(begin, begin + batch.num_rows)
        with translate_parquet_errors(self.data / "hands"):
            into.file[rows] = _numbers(batch.column("file"), lambda name: files.setdefault(name, len(files)))
            into.line[rows] = np.asarray(batch.column("line"))
            into.number[rows] = np.asarray(batch.column("hand"))
            into.validation[rows] = np.asarray(batch.column("validation").cast("uint8"))
            into.seats[rows] = _numbers(
                batch.column("names"),
                lambda text: _exactly(
                    game.players, [players.setdefault(name, len(players)) for name in text.split("|")]
                ),
            )
            into.won[rows] = _numbers(
                batch.column("payoffs"), lambda text: _exactly(game.players, [float(word) for word in text.split("|")])
            )
            if not np.isfinite(into.won[rows]).all():
                raise ValueError("results that are no numbers")
        hole, board = into.hole[rows], into.board[rows]
        hole[:], board[:] = NO_CARD, NO_CARD
        _read_cards(*_texts(batch.column("cards")), _card_numbers(), game.players, game.hole_cards, hole, board)
        into.made[rows], into.start[rows] = NO_CLASS, NO_START
        if game.is_holdem:
            for p in range(game.players):
                into.made[rows, p] = classify(hole[:, p], board)[0]
            _starts(hole, into.start[rows])
        text, ends = _texts(batch.column("betting"))
        longest = int(np.diff(ends, prepend=0).max(initial=0))
        work = np.empty(longest, np.uint8), np.empty(longest, np.int64), np.zeros(STATE_SIZE, np.int64)
        _play_out(game.rules, text, ends, *work, into.pot[rows], into.street[rows])
        first = int(into.ends[begin - 1]) if begin else 0
        into.betting[first : first + len(text)] = text
        into.ends[rows] = first + ends


class _Keys(Sequence[str]):
    """The keys of a dictionary that grows, by number."""

    def __init__(self, texts: dict[str, int]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: Any) -> Any:
        return list(self._texts)[index]

    def __contains__(self, text: object) -> bool:
        return text in self._texts

    def index(self, text: str, *_: Any) -> int:
        return self._texts[text]


def _numbers(column: Any, number: Any) -> Array:
    """Return what `number` makes of each text of a dictionary-encoded column; each distinct text is asked about once.

    Texts that this piece of the file does not use are left out: a file's dictionary has those of all its rows.
    """
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    used, inverse = np.unique(np.asarray(coded.indices), return_inverse=True)
    texts = coded.dictionary.take(used).to_pylist()
    return np.array([number(text) for text in texts])[inverse]


def _exactly(count: int, values: list[Any]) -> list[Any]:
    """Return the values of a hand's players, of whom there must be `count`."""
    if len(values) != count:
        raise ValueError(f"names or results that are not those of {count} players")
    return values


def _texts(column: Any) -> tuple[Array, Array]:
    """Return the bytes of a column of texts one after the other, and where each ends."""
    import pyarrow as pa

    plain = column.cast(pa.large_string())
    offsets = np.frombuffer(plain.buffers()[1], np.int64)[plain.offset : plain.offset + len(plain) + 1]
    if plain.buffers()[2] is None:
        return np.empty(0, np.uint8), offsets[1:] - offsets[0]
    return np.frombuffer(plain.buffers()[2], np.uint8)[offsets[0] : offsets[-1]], offsets[1:] - offsets[0]


def _card_numbers() -> Array:
    """Return the number of a card by its two letters."""
    numbers = np.full((256, 256), NO_CARD, dtype=np.uint8)
    for rank, r in enumerate(RANKS):
        for suit, s in enumerate(SUITS):
            numbers[ord(r), ord(s)] = 4 * rank + suit
    return numbers
