"""The hands of a dataset in memory, a few bytes each, so that any filter over hundreds of thousands answers at once.

In goes a dataset's table `hands` (ACPC logs of one game), out comes an `Archive`: arrays of cards, bettings, players,
results, pots and kinds of hands. Texts that repeat (bettings, players, results) are kept once and numbered. `find`
answers a filter with the numbers of hands; `hand` gives one back as a log tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import read_columns, translate_parquet_errors
from pipeline.formats.acpc import Hand
from pipeline.poker.cards import NO_CARD, RANKS, SUITS, cards_text, start_class
from pipeline.poker.game import Game
from pipeline.poker.made_hands import NO_CLASS, classify
from pipeline.poker.rules import CALL, FOLD, RAISE, S_FINISHED, S_ROUND, STATE_SIZE, apply, is_legal, pot, start
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress

COLUMNS = ["file", "line", "hand", "game", "names", "betting", "cards", "payoffs", "validation"]


@kernel
def _play_out(rules: Array, text: Array, ends: Array, state: Array, pots: Array, streets: Array) -> None:
    """The pot (-1 for a betting that is not legal) and the last street of each betting; all stand in `text`."""
    begin = 0
    for n in range(len(ends)):
        start(rules, state)
        i = begin
        good = True
        while i < ends[n] and good:
            letter = text[i]
            i += 1
            if letter == 47:  # /
                continue
            action = int(FOLD if letter == 102 else CALL if letter == 99 else RAISE)
            size = 0
            while i < ends[n] and 48 <= text[i] <= 57:
                size = size * 10 + int(text[i]) - 48
                i += 1
            good = state[S_FINISHED] == 0 and is_legal(rules, state, action, size)
            if good:
                apply(rules, state, action, size)
        pots[n] = pot(rules, state) if good else -1
        streets[n] = state[S_ROUND]
        begin = ends[n]


@kernel
def _read_cards(text: Array, ends: Array, numbers: Array, players: int, held: int, hole: Array, board: Array) -> None:
    """The cards of each text such as `4d6d|AdTd/4h9h5d`; a place that is empty stays NO_CARD."""
    begin = 0
    for n in range(len(ends)):
        player, place, at = 0, 0, 0
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
                if on_board and at < 5:
                    board[n, at] = card
                    at += 1
                elif not on_board and player < players and place < held:
                    hole[n, player, place] = card
                    place += 1
                i += 2
        begin = ends[n]


@kernel
def _starts(hole: Array, out: Array) -> None:
    for n in range(hole.shape[0]):
        for p in range(hole.shape[1]):
            known = hole[n, p, 0] < 52 and hole[n, p, 1] < 52
            out[n, p] = start_class(int(hole[n, p, 0]), int(hole[n, p, 1])) if known else 169


class Filter(NamedTuple):
    """Which hands are wanted; what is empty or None does not matter."""

    player: str = ""
    opponent: str = ""
    street: int = 0
    """the least street reached"""
    betting: str = ""
    """how the betting begins"""
    least_pot: int | None = None
    most_pot: int | None = None
    made: int | None = None
    """the made hand of the player (of anybody, where none is named) in the end"""
    start: int | None = None
    """the player's starting class"""


@dataclass(frozen=True)
class Archive:
    """All hands of a game."""

    game: Game
    file: Array
    line: Array
    number: Array
    seats: Array
    """number of the players' names in `lineups`"""
    betting: Array
    """number in `bettings`"""
    result: Array
    """number in `results`"""
    hole: Array
    """(hands, players, 2)"""
    board: Array
    """(hands, 5)"""
    made: Array
    """(hands, players): made hands in the end, NO_CLASS before the flop"""
    start: Array
    """(hands, players): starting classes"""
    validation: Array
    files: tuple[str, ...]
    lineups: tuple[tuple[str, ...], ...]
    bettings: tuple[str, ...]
    pots: Array
    """of each betting"""
    streets: Array
    """the last street of each betting"""
    results: Array
    """(results, players) net chips"""

    def __len__(self) -> int:
        return len(self.line)

    @property
    def players(self) -> list[str]:
        """Everybody who plays."""
        return sorted({name for names in self.lineups for name in names})

    def position(self, player: str) -> Array:
        """Where a player sits in each line-up; -1 where it does not."""
        return np.array([names.index(player) if player in names else -1 for names in self.lineups], dtype=np.int64)

    def find(self, wanted: Filter) -> Array:
        """The numbers of the hands that are wanted, in the order of the logs."""
        for name in (wanted.player, wanted.opponent):
            if name and name not in self.players:
                raise PipelineError(f"nobody is called {name[:80]!r} in these hands{nearest(name[:80], self.players)}")
        fits = np.ones(len(self.bettings), dtype=bool)
        if wanted.street:
            fits &= self.streets >= wanted.street
        if wanted.least_pot is not None:
            fits &= self.pots >= wanted.least_pot
        if wanted.most_pot is not None:
            fits &= self.pots <= wanted.most_pot
        if wanted.betting:
            fits &= np.array([betting.startswith(wanted.betting) for betting in self.bettings], dtype=bool)
        seated = np.ones(len(self.lineups), dtype=bool)
        for name in (wanted.player, wanted.opponent):
            seated &= (self.position(name) >= 0) | (not name)
        if wanted.player and wanted.player == wanted.opponent:
            seated &= np.array([names.count(wanted.player) > 1 for names in self.lineups], dtype=bool)
        mask = np.ones(len(self), dtype=bool)
        if not fits.all():
            mask &= fits[self.betting]
        if not seated.all():
            mask &= seated[self.seats]
        for kinds, kind in ((self.made, wanted.made), (self.start, wanted.start)):
            if kind is None:
                continue
            if wanted.player:
                place = np.maximum(self.position(wanted.player), 0)[self.seats]
                mask &= kinds[np.arange(len(self)), place] == kind
            else:
                mask &= (kinds == kind).any(axis=1)
        return np.flatnonzero(mask)

    def won(self, player: str) -> Array:
        """What a player won in each hand, 0 where it does not play."""
        place = self.position(player)[self.seats]
        found = self.results[self.result, np.maximum(place, 0)]
        return np.where(place >= 0, found, 0.0)

    def hand(self, at: int) -> Hand:
        """One hand as its log tells it."""
        if not 0 <= at < len(self):
            raise PipelineError(f"there is no hand {at}: they go from 0 to {len(self) - 1}")
        streets, cards, begin = [], self.board[at], 0
        for count in self.game.board_cards[1:]:
            text = cards_text(cards[begin : begin + count])
            begin += count
            if text:
                streets.append(text)
        holes = tuple(cards_text(hole) for hole in self.hole[at])
        payoffs = tuple(float(value) for value in self.results[self.result[at]])
        betting = self.bettings[self.betting[at]]
        names = self.lineups[self.seats[at]]
        return Hand(int(self.number[at]), betting, holes, tuple(streets), payoffs, names)

    def place(self, files: Sequence[str], file: Array, line: Array) -> Array:
        """The numbers of the hands at lines of files, -1 for one that is not here."""
        numbers = {name: number for number, name in enumerate(self.files)}
        codes = np.array([numbers.get(name, -1) for name in files], dtype=np.int64)[file]
        keys = self.file.astype(np.int64) << 32 | self.line
        order = np.argsort(keys, kind="stable")
        wanted = codes << 32 | line.astype(np.int64)
        at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where((keys[order][at] == wanted) & (codes >= 0), order[at], -1)


class _Words:
    """Texts that repeat, numbered over several files."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def numbers(self, column: Any) -> Array:
        """The number of each text of a column."""
        found = column.combine_chunks()
        if not hasattr(found, "dictionary"):
            found = found.dictionary_encode()
        own = [self.known.setdefault(text, len(self.known)) for text in found.dictionary.to_pylist()]
        return np.array(own, dtype=np.int32)[np.asarray(found.indices)]


def _joined(column: Any) -> tuple[Array, Array]:
    """The bytes of a column of texts one after the other, and where each ends."""
    texts = column.combine_chunks().to_pylist()
    data = np.frombuffer("".join(texts).encode(), dtype=np.uint8)
    return data, np.cumsum([len(text) for text in texts], dtype=np.int64)


def _card_numbers() -> Array:
    """The number of a card by its two letters."""
    found = np.full((256, 256), NO_CARD, dtype=np.uint8)
    for rank, r in enumerate(RANKS):
        for suit, s in enumerate(SUITS):
            found[ord(r), ord(s)] = 4 * rank + suit
    return found


def read_archive(data: Path, game: Game, progress: Progress) -> Archive:
    """Read the hands of a game from a dataset."""
    manifest = read_manifest(data)
    sources = [file for file in manifest.files if file.path.startswith("hands/")]
    words = {name: _Words() for name in ("file", "names", "betting", "payoffs")}
    parts: list[dict[str, Array]] = []
    numbers = _card_numbers()
    for done, source in enumerate(sources):
        progress(done, len(sources))
        table = read_columns(data, source, COLUMNS)
        with translate_parquet_errors(data / source.path):
            games = table.column("game").combine_chunks()
            mine = np.asarray(games.indices) == [*games.dictionary.to_pylist(), game.name].index(game.name)
            table = table.filter(mine)
            text, ends = _joined(table.column("cards"))
            hole = np.full((len(ends), game.players, 2), NO_CARD, dtype=np.uint8)
            board = np.full((len(ends), 5), NO_CARD, dtype=np.uint8)
            _read_cards(text, ends, numbers, game.players, game.hole_cards, hole, board)
            part = {name: words[name].numbers(table.column(name)) for name in words}
            for name in ("line", "hand"):
                part[name] = np.asarray(table.column(name).combine_chunks()).astype(np.int32)
            part["validation"] = np.asarray(table.column("validation").combine_chunks().cast("uint8")).astype(bool)
        parts.append({**part, "hole": hole, "board": board})
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    if not found or len(found["line"]) == 0:
        raise PipelineError(f"{data} has no hands of {game.name}")
    progress(len(sources), len(sources))
    with translate_parquet_errors(data / "hands"):
        return _finished(game, found, {name: tuple(one.known) for name, one in words.items()})


def _finished(game: Game, found: dict[str, Array], words: dict[str, tuple[str, ...]]) -> Archive:
    """The archive of the columns that were read; names or results of other players than the game's: `ValueError`."""
    lineups = tuple(tuple(one.split("|")) for one in words["names"])
    bettings = words["betting"]
    pots, streets = np.empty(len(bettings), np.int64), np.empty(len(bettings), np.int64)
    text = np.frombuffer("".join(bettings).encode(), dtype=np.uint8)
    ends = np.cumsum([len(one) for one in bettings], dtype=np.int64)
    _play_out(game.rules, text, ends, np.zeros(STATE_SIZE, dtype=np.int64), pots, streets)
    hole, board = found["hole"], found["board"]
    made = np.full(hole.shape[:2], NO_CLASS, dtype=np.uint8)
    starts = np.full(hole.shape[:2], 169, dtype=np.uint8)
    if game.is_holdem:
        for p in range(game.players):
            made[:, p] = classify(hole[:, p], board)[0]
        _starts(hole, starts)
    results = np.array([[float(value) for value in one.split("|")] for one in words["payoffs"]])
    seated = {len(lineups[number]) for number in np.unique(found["names"])}
    if seated != {game.players} or results.shape[1:] != (game.players,) or not np.isfinite(results).all():
        raise ValueError(f"names or results that are not those of {game.players} players")
    return Archive(
        game=game, file=found["file"], line=found["line"], number=found["hand"], seats=found["names"],
        betting=found["betting"], result=found["payoffs"], hole=hole, board=board, made=made, start=starts,
        validation=found["validation"], files=words["file"],
        lineups=lineups,
        bettings=bettings, pots=pots, streets=streets, results=results,
    )  # fmt: skip
