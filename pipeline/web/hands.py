"""The hands of a dataset: listed behind filters, and replayed step by step.

`HandBrowser` turns requests into rows of the list, over the hands of an `Archive`, and into the steps of one hand: the
table before each action, the action, the mixes of all loaded agents, and everybody's equity. While a dataset is read
for the first time, the list has the hands read so far. The *disagreement* of a hand is 1 - p, p the agent's smallest
probability of what the player did in it; it is computed once in the background for each agent and player, and cached on
this machine.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents.names import bundle_options, is_bundle
from pipeline.arena.table import single_cards
from pipeline.dataset.decisions import observation
from pipeline.dataset.load import select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.evaluation.hand_story import replay_hand, street_name
from pipeline.features.reading import rated
from pipeline.formats.acpc import Hand
from pipeline.models.bundle import read_bundle_manifest
from pipeline.models.policy import Policy
from pipeline.poker.allin import showdown_shares
from pipeline.poker.cards import class_text, parse_cards
from pipeline.poker.game import Game, actions
from pipeline.poker.made_hands import DRAWS, MADE, NO_CLASS, classify
from pipeline.runtime.array_types import Array
from pipeline.runtime.diskcache import cache_root, open_array, store_array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress
from pipeline.runtime.version import __version__
from pipeline.web.archive import Archive, ArchiveReader, Filter
from pipeline.web.jobs import Job, Jobs
from pipeline.web.roster import Roster
from pipeline.web.spots import board_row, labels_of
from pipeline.web.tables import seats_of

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
        self._readers: dict[str, ArchiveReader] = {}

    def games(self) -> list[str]:
        """Return the games that have hands here."""
        return [name for name in self.manifest.games if name in self.roster.games]

    def archive(self, game: Game) -> Job:
        """Return the job that reads the hands of a game in the background."""
        reader = self._readers.setdefault(game.name, ArchiveReader(self.data, game))
        return self.jobs.start(f"hands {game.name}", f"reading the hands of {game.name}", reader.read)

    def _hands(self, game: Game) -> tuple[Archive | None, dict[str, Any] | None]:
        """Return the hands of a game; while they are being read, those read so far, and the state of the reading."""
        job = self.archive(game)
        if job.state == "ready":
            return job.result, None
        if job.state == "failed":
            raise PipelineError(job.error)
        return self._readers[game.name].so_far, job.as_dict()

    def open_game(self, name: str) -> tuple[Game, Archive | None, dict[str, Any] | None]:
        """Return a game that has hands, the first without a name, and its hands as `_hands` does."""
        game = self._game(name)
        return (game, *self._hands(game))

    def disagreement(self, game: Game, agent: str, player: str, archive: Archive) -> Job:
        """Return the job that compares an agent with a player in each hand in the background."""
        return self.jobs.start(
            f"disagreement {game.name} {agent} {player}",
            f"comparing {agent} with {player}",
            partial(self._disagreement, game, agent, player, archive),
        )

    def find(self, game_name: str, query: dict[str, str]) -> dict[str, Any]:
        """Return a page of the list: hands that fit the filter, in the order that is wanted."""
        game, archive, reading = self.open_game(game_name)
        if archive is None or (reading and query.get("agent")):
            return {"reading": reading}
        wanted = _filter(query)
        sort = query.get("sort") or "log"
        if sort not in SORTS:
            raise PipelineError(f"hands are sorted by {', '.join(SORTS)}, not by {sort[:40]!r}")
        numbers = archive.find(wanted)
        disagreement = None
        answer: dict[str, Any] = {"game": game.name, "players": sorted(archive.players), "hands": len(archive)}
        answer["reading"] = reading
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
        won = archive.winnings(wanted.player, page) if wanted.player else np.zeros(len(page))
        rows = [self._row(archive, int(n), wanted.player, float(won[i]), disagreement) for i, n in enumerate(page)]
        return {**answer, "found": len(numbers), "from": first, "rows": rows}

    def _sort(self, archive: Archive, numbers: Array, sort: str, player: str, disagreement: Array | None) -> Array:
        if sort == "pot":
            return numbers[np.argsort(-archive.pot[numbers], kind="stable")]
        if sort == "won" and player:
            return numbers[np.argsort(-archive.winnings(player, numbers), kind="stable")]
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
            "pot": int(archive.pot[number]),
            "won": won if player else float(hand.payoffs[place]),
            "made": MADE[made] if made != NO_CLASS else "",
            "disagreement": None
            if disagreement is None or np.isnan(disagreement[number])
            else round(float(disagreement[number]), 4),
        }

    def replay(self, game_name: str, number: int, player: str) -> dict[str, Any]:
        """Return a hand step by step, with the mixes of every loaded agent."""
        game, archive, reading = self.open_game(game_name)
        if archive is None:
            return {"reading": reading}
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
