"""The hands of a dataset: held in memory, filtered, listed, and replayed step by step.

In goes a dataset's table `hands` (ACPC logs of one game), out comes an `Archive`: arrays of cards, bettings, players,
results, pots and kinds of hands, a few bytes a hand, so that any filter over hundreds of thousands answers at once.
Texts that repeat (bettings, players, results) are stored once and numbered. `HandBrowser` turns requests into rows of
the list and into the steps of one hand: the table before each action, the action, the mixes of all loaded agents, and
everybody's equity. The *disagreement* of a hand is 1 - p, p the agent's smallest probability of what the player did in
it; it is computed once in the background for each agent and player, and cached on this machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.names import bundle_options, is_bundle
from pipeline.arena.table import single_cards
from pipeline.dataset.decisions import observation
from pipeline.dataset.load import select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import read_columns, translate_parquet_errors
from pipeline.evaluation.hand_story import replay_hand, street_name
from pipeline.features.reading import rated
from pipeline.formats.acpc import Hand
from pipeline.models.bundle import read_bundle_manifest
from pipeline.models.policy import Policy
from pipeline.poker.allin import showdown_shares
from pipeline.poker.cards import NO_CARD, RANKS, SUITS, cards_text, class_text, parse_cards, start_class
from pipeline.poker.game import Game, actions
from pipeline.poker.made_hands import DRAWS, MADE, NO_CLASS, classify
from pipeline.poker.rules import CALL, FOLD, RAISE, S_FINISHED, S_ROUND, STATE_SIZE, apply, is_legal, pot, start
from pipeline.runtime.array_types import Array
from pipeline.runtime.diskcache import cache_root, open_array, store_array
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.kernels import kernel
from pipeline.runtime.progress import Progress
from pipeline.runtime.version import __version__
from pipeline.web.jobs import Job, Jobs
from pipeline.web.roster import Roster
from pipeline.web.spots import board_row, labels_of
from pipeline.web.tables import seats_of

COLUMNS = ["file", "line", "hand", "game", "names", "betting", "cards", "payoffs", "validation"]


@kernel
def _play_out(rules: Array, text: Array, ends: Array, state: Array, pots: Array, streets: Array) -> None:
    """Write the pot (-1 for a betting that is not legal) and the last street of each betting; all stand in `text`."""
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
    for n in range(hole.shape[0]):
        for p in range(hole.shape[1]):
            shown_cards = hole[n, p, 0] < 52 and hole[n, p, 1] < 52
            out[n, p] = start_class(int(hole[n, p, 0]), int(hole[n, p, 1])) if shown_cards else 169


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
        """Return everybody who plays."""
        return sorted({name for names in self.lineups for name in names})

    def position(self, player: str) -> Array:
        """Return a player's position in each line-up; -1 where it does not play."""
        return np.array([names.index(player) if player in names else -1 for names in self.lineups], dtype=np.int64)

    def find(self, wanted: Filter) -> Array:
        """Return the numbers of the hands that are wanted, in the order of the logs."""
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
        """Return a player's winnings in each hand, 0 where it does not play."""
        place = self.position(player)[self.seats]
        winnings = self.results[self.result, np.maximum(place, 0)]
        return np.where(place >= 0, winnings, 0.0)

    def hand(self, number: int) -> Hand:
        """Return one hand as its log tells it."""
        if not 0 <= number < len(self):
            raise PipelineError(f"there is no hand {number}: they go from 0 to {len(self) - 1}")
        streets, cards, begin = [], self.board[number], 0
        for count in self.game.board_cards[1:]:
            text = cards_text(cards[begin : begin + count])
            begin += count
            if text:
                streets.append(text)
        holes = tuple(cards_text(hole) for hole in self.hole[number])
        payoffs = tuple(float(value) for value in self.results[self.result[number]])
        betting = self.bettings[self.betting[number]]
        names = self.lineups[self.seats[number]]
        return Hand(int(self.number[number]), betting, holes, tuple(streets), payoffs, names)

    def place(self, files: Sequence[str], file: Array, line: Array) -> Array:
        """Return the numbers of the hands at lines of files, -1 for one that is not here."""
        numbers = {name: number for number, name in enumerate(self.files)}
        codes = np.array([numbers.get(name, -1) for name in files], dtype=np.int64)[file]
        keys = self.file.astype(np.int64) << 32 | self.line
        order = np.argsort(keys, kind="stable")
        wanted = codes << 32 | line.astype(np.int64)
        # a key beyond the last one is compared with that, and is not equal to it
        nearest_key = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where((keys[order][nearest_key] == wanted) & (codes >= 0), order[nearest_key], -1)


class _TextNumbers:
    """Texts that repeat, numbered over several files."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def numbers(self, column: Any) -> Array:
        """Return the number of each text of a column."""
        chunk = column.combine_chunks()
        if not hasattr(chunk, "dictionary"):
            chunk = chunk.dictionary_encode()
        own = [self.texts.setdefault(text, len(self.texts)) for text in chunk.dictionary.to_pylist()]
        return np.array(own, dtype=np.int32)[np.asarray(chunk.indices)]


def _join_texts(column: Any) -> tuple[Array, Array]:
    """Return the bytes of a column of texts one after the other, and where each ends."""
    texts = column.combine_chunks().to_pylist()
    data = np.frombuffer("".join(texts).encode(), dtype=np.uint8)
    return data, np.cumsum([len(text) for text in texts], dtype=np.int64)


def _card_numbers() -> Array:
    """Return the number of a card by its two letters."""
    numbers = np.full((256, 256), NO_CARD, dtype=np.uint8)
    for rank, r in enumerate(RANKS):
        for suit, s in enumerate(SUITS):
            numbers[ord(r), ord(s)] = 4 * rank + suit
    return numbers


def read_archive(data: Path, game: Game, progress: Progress) -> Archive:
    """Read the hands of a game from a dataset."""
    manifest = read_manifest(data)
    sources = [file for file in manifest.files if file.path.startswith("hands/")]
    texts = {name: _TextNumbers() for name in ("file", "names", "betting", "payoffs")}
    parts: list[dict[str, Array]] = []
    numbers = _card_numbers()
    for i, source in enumerate(sources):
        progress(i, len(sources))
        table = read_columns(data, source, COLUMNS)
        with translate_parquet_errors(data / source.path):
            games = table.column("game").combine_chunks()
            mine = np.asarray(games.indices) == [*games.dictionary.to_pylist(), game.name].index(game.name)
            table = table.filter(mine)
            text, ends = _join_texts(table.column("cards"))
            hole = np.full((len(ends), game.players, 2), NO_CARD, dtype=np.uint8)
            board = np.full((len(ends), 5), NO_CARD, dtype=np.uint8)
            _read_cards(text, ends, numbers, game.players, game.hole_cards, hole, board)
            part = {name: texts[name].numbers(table.column(name)) for name in texts}
            for name in ("line", "hand"):
                part[name] = np.asarray(table.column(name).combine_chunks()).astype(np.int32)
            part["validation"] = np.asarray(table.column("validation").combine_chunks().cast("uint8")).astype(bool)
        parts.append({**part, "hole": hole, "board": board})
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    if not columns or len(columns["line"]) == 0:
        raise PipelineError(f"{data} has no hands of {game.name}")
    progress(len(sources), len(sources))
    with translate_parquet_errors(data / "hands"):
        return _build_archive(game, columns, {name: tuple(numbered.texts) for name, numbered in texts.items()})


def _build_archive(game: Game, columns: dict[str, Array], texts: dict[str, tuple[str, ...]]) -> Archive:
    """Return the archive of columns; raise `ValueError` where names or results are not of as many players."""
    lineups = tuple(tuple(names.split("|")) for names in texts["names"])
    bettings = texts["betting"]
    pots, streets = np.empty(len(bettings), np.int64), np.empty(len(bettings), np.int64)
    text = np.frombuffer("".join(bettings).encode(), dtype=np.uint8)
    ends = np.cumsum([len(betting) for betting in bettings], dtype=np.int64)
    _play_out(game.rules, text, ends, np.zeros(STATE_SIZE, dtype=np.int64), pots, streets)
    hole, board = columns["hole"], columns["board"]
    made = np.full(hole.shape[:2], NO_CLASS, dtype=np.uint8)
    starts = np.full(hole.shape[:2], 169, dtype=np.uint8)
    if game.is_holdem:
        for p in range(game.players):
            made[:, p] = classify(hole[:, p], board)[0]
        _starts(hole, starts)
    results = np.array([[float(value) for value in payoffs.split("|")] for payoffs in texts["payoffs"]])
    seated = {len(lineups[number]) for number in np.unique(columns["names"])}
    if seated != {game.players} or results.shape[1:] != (game.players,) or not np.isfinite(results).all():
        raise ValueError(f"names or results that are not those of {game.players} players")
    return Archive(
        game=game, file=columns["file"], line=columns["line"], number=columns["hand"], seats=columns["names"],
        betting=columns["betting"], result=columns["payoffs"], hole=hole, board=board, made=made, start=starts,
        validation=columns["validation"], files=texts["file"], lineups=lineups,
        bettings=bettings, pots=pots, streets=streets, results=results,
    )  # fmt: skip


PAGE = 50
"""hands of the list at a time"""
SORTS = ("log", "pot", "won", "disagreement")
VERSION = 1
"""format version of cached disagreements"""


class HandBrowser:
    """Answers about the hands of a dataset: the list behind filters, and one hand step by step."""

    def __init__(self, data: Path, roster: Roster, jobs: Jobs) -> None:
        self.data, self.roster, self.jobs = data, roster, jobs
        self.manifest = read_manifest(data)

    def games(self) -> list[str]:
        """Return the games that have hands here."""
        return [name for name in self.manifest.games if name in self.roster.games]

    def archive(self, game: Game) -> Job:
        """Return the job that reads the hands of a game in the background."""
        return self.jobs.start(
            f"hands {game.name}", f"reading the hands of {game.name}", partial(read_archive, self.data, game)
        )

    def disagreement(self, game: Game, agent: str, player: str, archive: Archive) -> Job:
        """Return the job that compares an agent with a player in each hand in the background."""
        return self.jobs.start(
            f"disagreement {game.name} {agent} {player}",
            f"comparing {agent} with {player}",
            partial(self._disagreement, game, agent, player, archive),
        )

    def find(self, game_name: str, query: dict[str, str]) -> dict[str, Any]:
        """Return a page of the list: hands that fit the filter, in the order that is wanted."""
        game = self._game(game_name)
        job = self.archive(game)
        if job.state != "ready":
            if job.state == "failed":
                raise PipelineError(job.error)
            return {"reading": job.as_dict()}
        archive: Archive = job.result
        wanted = _filter(query)
        sort = query.get("sort") or "log"
        if sort not in SORTS:
            raise PipelineError(f"hands are sorted by {', '.join(SORTS)}, not by {sort[:40]!r}")
        numbers = archive.find(wanted)
        disagreement = None
        answer: dict[str, Any] = {"game": game.name, "players": archive.players, "hands": len(archive)}
        if query.get("agent"):
            entry = self.roster.entry(query["agent"], game)
            if not wanted.player:
                raise PipelineError("name the player whose decisions the agent is compared with")
            work = self.disagreement(game, entry.name, wanted.player, archive)
            if work.state == "failed":
                raise PipelineError(work.error)
            answer["comparing"] = None if work.state == "ready" else work.as_dict()
            disagreement = work.result
        numbers = self._sort(archive, numbers, sort, wanted.player, disagreement)
        first = max(0, _parse_whole(query.get("from", "")) or 0)
        page = numbers[first : first + PAGE]
        won = archive.won(wanted.player)[page] if wanted.player else np.zeros(len(page))
        rows = [self._row(archive, int(n), wanted.player, float(won[i]), disagreement) for i, n in enumerate(page)]
        return {**answer, "found": len(numbers), "from": first, "rows": rows}

    def _sort(self, archive: Archive, numbers: Array, sort: str, player: str, disagreement: Array | None) -> Array:
        if sort == "pot":
            return numbers[np.argsort(-archive.pots[archive.betting[numbers]], kind="stable")]
        if sort == "won" and player:
            return numbers[np.argsort(-archive.won(player)[numbers], kind="stable")]
        if sort == "disagreement" and disagreement is not None:
            values = disagreement[numbers]
            compared = ~np.isnan(values)
            return numbers[compared][np.argsort(-values[compared], kind="stable")]
        return numbers

    def _row(
        self, archive: Archive, number: int, player: str, won: float, disagreement: Array | None
    ) -> dict[str, Any]:
        hand = archive.hand(number)
        place = hand.names.index(player) if player in hand.names else 0
        made = int(archive.made[number, place])
        return {
            "id": number,
            "number": hand.number,
            "file": Path(archive.files[archive.file[number]]).name,
            "names": list(hand.names),
            "betting": hand.betting,
            "hole": single_cards(hand.holes[place]),
            "board": single_cards("".join(hand.board)),
            "pot": int(archive.pots[archive.betting[number]]),
            "won": won if player else float(hand.payoffs[place]),
            "made": MADE[made] if made != NO_CLASS else "",
            "disagreement": None
            if disagreement is None or np.isnan(disagreement[number])
            else round(float(disagreement[number]), 4),
        }

    def replay(self, game_name: str, number: int, player: str) -> dict[str, Any]:
        """Return a hand step by step, with the mixes of every loaded agent."""
        game = self._game(game_name)
        job = self.archive(game)
        if job.state != "ready":
            return {"reading": job.as_dict()}
        archive: Archive = job.result
        hand = archive.hand(number)
        me = hand.names.index(player) if player in hand.names else 0
        return {
            "id": number,
            "game": game.name,
            "file": Path(archive.files[archive.file[number]]).name,
            "line": int(archive.line[number]),
            "text": str(hand),
            "me": me,
            **steps_of(hand, game, self.roster, me),
        }

    def _game(self, name: str) -> Game:
        games = self.games()
        if not games:
            raise PipelineError("the dataset has no hands of a loaded game")
        return self.roster.game(name if name in games else games[0])

    def _disagreement(self, game: Game, agent: str, player: str, archive: Archive, progress: Progress) -> Array:
        """Return 1 - the smallest probability of what the player did, by hand; NaN where it did nothing."""
        text = self.roster.entry(agent, game).text
        path = cache_root() / "explorer" / f"{_cache_key(self.manifest.fingerprint, game, text, player)}.npy"
        cached = open_array(path, VERSION, lambda array: array.dtype == np.float32)
        # the length is compared at every opening: another archive of the same dataset would be a defect, not damage
        if cached is not None and cached.shape == (len(archive),):
            return np.array(cached)
        imitator = self.roster.agent(agent, game)
        stored = isinstance(imitator, Policy) and self.manifest.options.strength
        selected, rows_read = select_rows(self.data, [player], game=game.name), 0
        disagreement = np.full(len(archive), np.nan, dtype=np.float32)
        for _, piece in selected.pieces(strength=stored):
            rows = rated(piece) if stored else piece.rows
            mix = imitator.probabilities(rows)  # type: ignore[arg-type]
            distances = (1 - mix[np.arange(len(piece)), piece.action]).astype(np.float32)
            numbers = archive.place(piece.files, piece.file, piece.line)
            comparable = (numbers >= 0) & piece.known
            # `fmax` prefers a number to NaN: a hand's first decision counts as its largest so far
            np.fmax.at(disagreement, numbers[comparable], distances[comparable])
            rows_read += len(piece)
            progress(rows_read, selected.size)
        path.parent.mkdir(parents=True, exist_ok=True)
        store_array(path, disagreement, VERSION)
        return disagreement


def _cache_key(fingerprint: str, game: Game, text: str, player: str) -> str:
    """Return the name of a cached disagreement: another bundle, dataset or release gets another one."""
    agent: Any = text
    if is_bundle(text):
        path, options = bundle_options(text)
        agent = [read_bundle_manifest(path), options]
    identity = json.dumps([__version__, fingerprint, game.text, agent, player], sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


def _parse_whole(text: str) -> int | None:
    """Parse a whole number of a request; None for an empty text."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise PipelineError(f"{text[:20]!r} is not a whole number")
    return int(text)


def _filter(query: dict[str, str]) -> Filter:
    starts = {class_text(number): number for number in range(169)}
    start = query.get("start", "")
    if start and start not in starts:
        raise PipelineError(f"{start[:10]!r} is not a starting hand; write AA, AKs or AKo")
    made = query.get("made", "")
    if made and made not in MADE:
        raise PipelineError(f"no made hand is called {made[:40]!r}")
    street = _parse_whole(query.get("street", "")) or 0
    return Filter(
        player=query.get("player", ""),
        opponent=query.get("opponent", ""),
        street=min(street, 3),
        betting=query.get("betting", "")[:200],
        least_pot=_parse_whole(query.get("least_pot", "")),
        most_pot=_parse_whole(query.get("most_pot", "")),
        made=MADE.index(made) if made else None,
        start=starts[start] if start else None,
    )


def steps_of(hand: Hand, game: Game, roster: Roster | None, me: int) -> dict[str, Any]:
    """Return the table before each action of a hand, and after the last; with a roster, its agents' mixes."""
    story = replay_hand(hand, game)
    state = game.start()
    chances: dict[tuple[int, tuple[bool, ...]], list[float] | None] = {}
    all_shown = all(len(hole) == 2 * game.hole_cards for hole in hand.holes)
    taken = list(actions(hand.betting))
    steps = []
    for number in range(len(taken) + 1):
        key = (state.round, state.folded)
        board = "".join(hand.board[: state.round])
        if key not in chances:
            chances[key] = showdown_shares(game, hand.holes, board, state.folded) if all_shown else None
        shares = chances[key]
        step: dict[str, Any] = {
            "street": street_name(game, state.round),
            "board": single_cards(board),
            "pot": state.pot,
            "betting": state.betting,
            "seats": seats_of(state, hand.names, hand.holes, me, hand.payoffs if state.finished else ()),
            "equities": None if shares is None else [round(share, 4) for share in shares],
            "kinds": [_hand_words(game, hole, board) for hole in hand.holes],
            "text": "",
            "mixes": [],
        }
        if number < len(taken):
            action, size = taken[number]
            decision = story.decisions[number]
            step["text"] = f"{decision.player} {decision.action}"
            step["taken"] = state.label_of(action, size)
            step["labels"] = labels_of(state)
            hole = hand.holes[state.actor]
            if roster is not None and len(hole) == 2 * game.hole_cards:
                row = observation(game, state.betting, state.actor, parse_cards(hole), parse_cards(board))
                step["mixes"] = roster.mixes(game, row)
            steps.append(step)
            state = state.apply(action, size)
        else:
            won = [f"{seat.name} wins {seat.won:,g}" for seat in story.winners]
            step["text"] = ", ".join(won) or "the pot is split"
            steps.append(step)
    return {"steps": steps, "showdown": story.showdown, "names": list(hand.names)}


def _hand_words(game: Game, hole: str, board: str) -> str:
    """Return a player's made hand and draw on a board, in words."""
    if not game.is_holdem or len(board) < 6 or len(hole) != 4:
        return ""
    made, draw = classify(parse_cards(hole)[None], board_row(parse_cards(board)))
    draw_name = DRAWS[draw[0]]
    return MADE[made[0]] + (f", {draw_name}" if draw_name != "no draw" else "")
