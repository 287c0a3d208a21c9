"""Hands of the dataset as pages show them: a list behind filters, and one hand replayed step by step.

In go a filter's texts, out come rows of the list; in goes a hand's number, out come its steps: the table before each
action, what was done, what every loaded agent would have done, and the chances of everybody. How far an agent differs
from a player is worked out once in the background for each pair of them and kept on this machine: the *disagreement*
of a hand is 1 - p, p the agent's smallest probability of what the player did in it.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.agents.names import bundle_options, is_bundle
from pipeline.agents.protocol import Agent
from pipeline.arena.table import showdown_shares, single_cards
from pipeline.arena.wire.dealer import Deal
from pipeline.dataset.decisions import observation
from pipeline.dataset.load import decision_pieces, select_rows
from pipeline.dataset.manifest import read_manifest
from pipeline.evaluation.hand_story import replay_hand
from pipeline.features.reading import rated
from pipeline.formats.acpc import Hand
from pipeline.models.bundle import read_bundle_manifest
from pipeline.models.policy import Policy
from pipeline.poker.cards import class_text, parse_cards
from pipeline.poker.game import Game, State, actions
from pipeline.poker.made_hands import DRAWS, MADE, NO_CLASS, classify
from pipeline.runtime.array_types import Array
from pipeline.runtime.diskcache import cache_root, open_array, store_array
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress
from pipeline.runtime.version import __version__
from pipeline.web.archive import Archive, Filter, read_archive
from pipeline.web.jobs import Job, Jobs
from pipeline.web.shelf import Shelf
from pipeline.web.spots import labels_of, street_name
from pipeline.web.tables import seats_of

PAGE = 50
"""hands of the list at a time"""
SORTS = ("log", "pot", "won", "disagreement")
VERSION = 1
"""of kept disagreements"""
BATCH = 1 << 15


class Hands:
    """The hands of a dataset."""

    def __init__(self, data: Path, shelf: Shelf, jobs: Jobs) -> None:
        self.data, self.shelf, self.jobs = data, shelf, jobs
        self.manifest = read_manifest(data)
        self._orders: dict[tuple[str, str, str], Array] = {}

    def games(self) -> list[str]:
        """The games that have hands here."""
        return [name for name in self.manifest.games if name in self.shelf.games]

    def archive(self, game: Game) -> Job:
        """The hands of a game, being read in the background."""
        return self.jobs.start(
            f"hands {game.name}", f"reading the hands of {game.name}", partial(read_archive, self.data, game)
        )

    def disagreement(self, game: Game, agent: str, player: str, archive: Archive) -> Job:
        """How far an agent differs from a player in each hand, being worked out in the background."""
        return self.jobs.start(
            f"disagreement {game.name} {agent} {player}",
            f"comparing {agent} with {player}",
            partial(self._disagreement, game, agent, player, archive),
        )

    def find(self, game_name: str, query: dict[str, str]) -> dict[str, Any]:
        """A page of the list: hands that fit the filter, in the order that is wanted."""
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
        found = archive.find(wanted)
        far = None
        answer: dict[str, Any] = {"game": game.name, "players": archive.players, "hands": len(archive)}
        if query.get("agent"):
            entry = self.shelf.entry(query["agent"], game)
            if not wanted.player:
                raise PipelineError("name the player whose decisions the agent is compared with")
            work = self.disagreement(game, entry.name, wanted.player, archive)
            if work.state == "failed":
                raise PipelineError(work.error)
            answer["comparing"] = None if work.state == "ready" else work.as_dict()
            far = work.result
        found = self._sorted(archive, found, sort, wanted.player, far)
        first = max(0, _whole(query.get("from", "")) or 0)
        shown = found[first : first + PAGE]
        won = archive.won(wanted.player)[shown] if wanted.player else np.zeros(len(shown))
        rows = [self._row(archive, int(at), wanted.player, float(won[i]), far) for i, at in enumerate(shown)]
        return {**answer, "found": len(found), "from": first, "rows": rows}

    def _sorted(self, archive: Archive, found: Array, sort: str, player: str, far: Array | None) -> Array:
        if sort == "pot":
            return found[np.argsort(-archive.pots[archive.betting[found]], kind="stable")]
        if sort == "won" and player:
            return found[np.argsort(-archive.won(player)[found], kind="stable")]
        if sort == "disagreement" and far is not None:
            values = far[found]
            known = ~np.isnan(values)
            return found[known][np.argsort(-values[known], kind="stable")]
        return found

    def _row(self, archive: Archive, at: int, player: str, won: float, far: Array | None) -> dict[str, Any]:
        hand = archive.hand(at)
        place = hand.names.index(player) if player in hand.names else 0
        made = int(archive.made[at, place])
        return {
            "id": at,
            "number": hand.number,
            "file": Path(archive.files[archive.file[at]]).name,
            "names": list(hand.names),
            "betting": hand.betting,
            "hole": single_cards(hand.holes[place]),
            "board": single_cards("".join(hand.board)),
            "pot": int(archive.pots[archive.betting[at]]),
            "won": won if player else float(hand.payoffs[place]),
            "made": MADE[made] if made != NO_CLASS else "",
            "disagreement": None if far is None or np.isnan(far[at]) else round(float(far[at]), 4),
        }

    def replay(self, game_name: str, at: int, player: str) -> dict[str, Any]:
        """A hand step by step, with what every loaded agent would have done."""
        game = self._game(game_name)
        job = self.archive(game)
        if job.state != "ready":
            return {"reading": job.as_dict()}
        archive: Archive = job.result
        hand = archive.hand(at)
        me = hand.names.index(player) if player in hand.names else 0
        return {
            "id": at,
            "game": game.name,
            "file": Path(archive.files[archive.file[at]]).name,
            "line": int(archive.line[at]),
            "text": str(hand),
            "me": me,
            **steps_of(hand, game, self._asked(game), me),
        }

    def _asked(self, game: Game) -> list[tuple[str, Agent]]:
        return [(entry.name, self.shelf.agent(entry.name, game)) for entry in self.shelf.playing(game)]

    def _game(self, name: str) -> Game:
        known = self.games()
        if not known:
            raise PipelineError("the dataset has no hands of a loaded game")
        return self.shelf.game(name if name in known else known[0])

    def _disagreement(self, game: Game, agent: str, player: str, archive: Archive, progress: Progress) -> Array:
        """1 - the smallest probability of what the player did, by hand; NaN where it did nothing."""
        text = self.shelf.entry(agent, game).text
        path = cache_root() / "explorer" / f"{_key(self.manifest.fingerprint, game, text, player)}.npy"
        kept = open_array(path, VERSION, lambda found: found.dtype == np.float32 and found.shape == (len(archive),))
        if kept is not None and kept.shape == (len(archive),):
            return np.array(kept)
        asked = self.shelf.agent(agent, game)
        stored = isinstance(asked, Policy) and self.manifest.options.strength
        total, done = select_rows(self.data, [player], game=game.name).size, 0
        far = np.full(len(archive), np.nan, dtype=np.float32)
        for piece in decision_pieces(self.data, [player], game=game.name, strength=stored):
            rows = rated(piece) if stored else piece.rows
            mix = asked.probabilities(rows)  # type: ignore[arg-type]
            apart = (1 - mix[np.arange(len(piece)), piece.action]).astype(np.float32)
            at = archive.place(piece.files, piece.file, piece.line)
            here = (at >= 0) & piece.known
            np.fmax.at(far, at[here], apart[here])
            done += len(piece)
            progress(done, total)
        path.parent.mkdir(parents=True, exist_ok=True)
        store_array(path, far, VERSION)
        return far


def _key(fingerprint: str, game: Game, text: str, player: str) -> str:
    """A name for what is kept of an agent and a player: another bundle, dataset or release gets another one."""
    about: Any = text
    if is_bundle(text):
        path, options = bundle_options(text)
        about = [read_bundle_manifest(path), options]
    said = json.dumps([__version__, fingerprint, game.text, about, player], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:24]


def _whole(text: str) -> int | None:
    """A whole number of a request; None for an empty text."""
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
    street = _whole(query.get("street", "")) or 0
    return Filter(
        player=query.get("player", ""),
        opponent=query.get("opponent", ""),
        street=min(street, 3),
        betting=query.get("betting", "")[:200],
        least_pot=_whole(query.get("least_pot", "")),
        most_pot=_whole(query.get("most_pot", "")),
        made=MADE.index(made) if made else None,
        start=starts[start] if start else None,
    )


def steps_of(hand: Hand, game: Game, agents: list[tuple[str, Agent]], me: int) -> dict[str, Any]:
    """The table before each action of a hand, and after the last."""
    story = replay_hand(hand, game)
    deal = Deal(hand.holes, hand.board)
    state = game.start()
    chances: dict[tuple[int, tuple[bool, ...]], list[float] | None] = {}
    known = all(len(hole) == 2 * game.hole_cards for hole in hand.holes)
    taken = list(actions(hand.betting))
    steps = []
    for number in range(len(taken) + 1):
        key = (state.round, state.folded)
        if key not in chances:
            chances[key] = showdown_shares(game, deal, state.round, state.folded) if known else None
        shares = chances[key]
        board = "".join(hand.board[: state.round])
        step: dict[str, Any] = {
            "street": street_name(game, state.round),
            "board": single_cards(board),
            "pot": state.pot,
            "betting": state.betting,
            "seats": seats_of(state, hand.names, hand.holes, me, hand.payoffs if state.finished else ()),
            "equities": None if shares is None else [round(share, 4) for share in shares],
            "kinds": [_kind(game, hole, board) for hole in hand.holes],
            "text": "",
            "mixes": [],
        }
        if number < len(taken):
            action, size = taken[number]
            decision = story.decisions[number]
            step["text"] = f"{decision.player} {decision.action}"
            step["taken"] = state.label_of(action, size)
            step["labels"] = labels_of(state)
            step["mixes"] = _mixes(game, state, hand, board, agents)
            steps.append(step)
            state = state.apply(action, size)
        else:
            won = [f"{seat.name} wins {seat.won:,g}" for seat in story.winners]
            step["text"] = ", ".join(won) or "the pot is split"
            steps.append(step)
    return {"steps": steps, "showdown": story.showdown, "names": list(hand.names)}


def _mixes(game: Game, state: State, hand: Hand, board: str, agents: list[tuple[str, Agent]]) -> list[dict[str, Any]]:
    """What each agent would do with the cards of the player who acts."""
    hole = hand.holes[state.actor]
    if len(hole) != 2 * game.hole_cards:
        return []
    row = observation(game, state.betting, state.actor, parse_cards(hole), parse_cards(board))
    return [{"agent": name, "mix": np.round(agent.probabilities(row)[0], 5).tolist()} for name, agent in agents]


def _kind(game: Game, hole: str, board: str) -> str:
    """What a player holds on a board, in words."""
    if not game.is_holdem or len(board) < 6 or len(hole) != 4:
        return ""
    shown = np.full((1, 5), 255, dtype=np.uint8)
    cards = parse_cards(board)
    shown[0, : len(cards)] = cards
    made, draw = classify(parse_cards(hole)[None], shown)
    drawn = DRAWS[draw[0]]
    return MADE[made[0]] + (f", {drawn}" if drawn != "no draw" else "")
