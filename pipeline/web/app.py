"""The addresses of the explorer: pages, their files, and the JSON behind them.

Every answer of `/api` is an object; an error is `{"error": sentence}`. What is asked for goes to the same functions
that the command line uses; here texts of requests become arguments, and nothing else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipeline.agents.ranges import state_after
from pipeline.arena.table import parse_action
from pipeline.poker.game import Game
from pipeline.poker.made_hands import MADE
from pipeline.report.plots import style_sheet
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress
from pipeline.runtime.version import __version__
from pipeline.web.hands import Hands
from pipeline.web.jobs import Jobs
from pipeline.web.results import Results
from pipeline.web.safety import FRAME_POLICY, App, Guard
from pipeline.web.shelf import Shelf
from pipeline.web.source import Source
from pipeline.web.spots import Spots
from pipeline.web.tables import Tables

log = logging.getLogger(__name__)

VIEWS = ("/", "/strategy", "/hands", "/play", "/results")
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
WRONG = "something went wrong here: the terminal where the server runs says what"


@dataclass
class Explorer:
    """What was loaded, and what answers about it."""

    shelf: Shelf
    token: str
    data: Path | None = None
    save: Path = Path("out/played")
    matches: Sequence[Path] = ()
    table: Path | None = None
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.source = Source(self.data) if self.data else None
        self.spots = Spots(self.shelf, self.source)
        self.hands = Hands(self.data, self.shelf, self.jobs) if self.data else None
        self.results = Results(self.shelf, self.jobs, self.hands, self.matches, self.table)
        self.tables = Tables(self.shelf, self.spots, self.save)

    def about(self) -> dict[str, Any]:
        """What pages need to know first."""
        return {
            "version": __version__,
            "games": [
                {
                    "name": game.name,
                    "title": self.shelf.title(game),
                    "players": game.players,
                    "nolimit": game.nolimit,
                    "holdem": game.is_holdem,
                    "labels": game.labels,
                    "deck": [f"{r}{s}" for r in "23456789TJQKA"[13 - game.ranks :] for s in "cdhs"[4 - game.suits :]],
                    "big_blind": game.big_blind,
                }
                for game in self.shelf.games.values()
            ],
            "agents": [entry.as_dict() for entry in self.shelf.entries.values()],
            "data": None
            if self.source is None or self.hands is None
            else {"players": self.source.players, "games": self.hands.games(), "made": list(MADE)},
            "save": str(self.save),
        }

    def spot(self, query: Callable[[str], str]) -> dict[str, Any]:
        """What an agent does at a spot; a player of the dataset is read in the background when first asked for."""
        whose = query("source")
        game = self.shelf.game(query("game"))
        if whose and self.source is not None and not self.source.is_read(game, whose):
            if whose not in self.source.players:
                raise PipelineError(f"the dataset has no player {whose[:80]!r}")
            job = self.jobs.start(
                f"counts {game.name} {whose}",
                f"reading the decisions of {whose}",
                partial(self._read_counts, self.source, game, whose),
                again=True,
            )
            if job.state == "failed":
                raise PipelineError(job.error)
        return self.spots.spot(game.name, query("agent"), query("betting"), query("board"), query("other"), whose)

    @staticmethod
    def _read_counts(source: Source, game: Game, whose: str, progress: Progress) -> None:
        """Read a player's decisions; the source keeps them, for some players, so a job must not."""
        source.read(game, whose, progress)

    def find_hands(self, query: dict[str, str]) -> dict[str, Any]:
        """A page of the list of hands."""
        return self._hands().find(query.pop("game", ""), query)

    def replay(self, at: str, query: Callable[[str], str]) -> dict[str, Any]:
        """One hand, step by step."""
        if not at.isascii() or not at.isdigit() or len(at) > 9:
            raise PipelineError(f"there is no hand {at[:20]!r}")
        return self._hands().replay(query("game"), int(at), query("player"))

    def _hands(self) -> Hands:
        if self.hands is None:
            raise PipelineError("no dataset is loaded: start the server with --data DIR")
        return self.hands

    def amount(self, query: Callable[[str], str]) -> dict[str, Any]:
        """The betting after a bet or raise to an amount of the street, in no-limit games."""
        state = state_after(self.shelf.game(query("game")), query("betting"))
        if state.finished:
            raise PipelineError("the hand is over here")
        return {"betting": state.apply(*parse_action(f"r{query('amount')[:12]}", state)).betting}

    def working(self) -> dict[str, Any]:
        """What goes on in the background."""
        return {"jobs": self.jobs.unfinished()}


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """The files of the pages, by name: their kind and content. Nothing else can be asked for."""
    folder = files("pipeline.web") / "static"
    found = {
        entry.name: (KINDS[Path(entry.name).suffix], entry.read_bytes())
        for entry in folder.iterdir()
        if Path(entry.name).suffix in KINDS
    }
    found["report.css"] = ("text/css", style_sheet().encode())
    return found


def _json(answer: Any, status: int = 200) -> Response:
    body = json.dumps(answer, separators=(",", ":"), allow_nan=False)
    return Response(body, status, media_type="application/json")


def _asked(work: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """An address that answers with an object, worked out in a thread; errors become sentences."""

    async def endpoint(request: Request) -> Response:
        try:
            return _json(await run_in_threadpool(work, request))
        except PipelineError as error:
            return _json({"error": str(error)}, 400)
        except Exception:
            log.exception("%s", request.url.path)
            return _json({"error": WRONG}, 500)

    return endpoint


def _told(work: Callable[[Request, dict[str, Any]], Any]) -> Callable[[Request], Any]:
    """An address that is told an object."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return _json({"error": "the request is not a JSON object"}, 400)
        answer: Response = await _asked(lambda asked: work(asked, body))(request)
        return answer

    return endpoint


def _texts(value: Any) -> list[str]:
    """A list of short texts from a request."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value) or len(value) > 9:
        raise PipelineError("agents are a list of at most nine names")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PipelineError("the number of the hand is missing")
    return value


def _query(request: Request) -> Callable[[str], str]:
    """A request's parameter as a text of its own length at most; empty where it is not given."""
    return lambda name: request.query_params.get(name, "")


def make_app(explorer: Explorer, host: str = "127.0.0.1") -> App:
    """The application with its checks."""
    page = assets()["index.html"][1].replace(b"{{token}}", explorer.token.encode())

    async def view(_: Request) -> Response:
        return Response(page, media_type="text/html")

    async def asset(request: Request) -> Response:
        kind, content = assets().get(request.path_params["name"], ("", b""))
        if not kind or kind == "text/html":
            return _json({"error": "there is no such file"}, 404)
        return Response(content, media_type=kind)

    async def report(request: Request) -> Response:
        try:
            made = await run_in_threadpool(explorer.results.page, _query(request)("game"))
        except PipelineError as error:
            return _json({"error": str(error)}, 400)
        return Response(made, media_type="text/html", headers={"Content-Security-Policy": FRAME_POLICY})

    async def nowhere(_: Request, __: Exception) -> Response:
        return _json({"error": "there is no such page"}, 404)

    routes = [
        *(Route(path, view) for path in VIEWS),
        Route("/assets/{name}", asset),
        Route("/api/about", _asked(lambda _: explorer.about())),
        Route("/api/jobs", _asked(lambda _: explorer.working())),
        Route("/api/amount", _asked(lambda request: explorer.amount(_query(request)))),
        Route("/api/spot", _asked(lambda request: explorer.spot(_query(request)))),
    ]
    routes += [
        Route("/report", report),
        Route("/api/results", _asked(lambda request: explorer.results.state(_query(request)("game")))),
        Route("/api/hands", _asked(lambda request: explorer.find_hands(dict(request.query_params)))),
        Route(
            "/api/hands/{hand}", _asked(lambda request: explorer.replay(request.path_params["hand"], _query(request)))
        ),
    ]
    tables = explorer.tables
    routes += [
        Route(
            "/api/tables",
            _told(lambda _, said: tables.sit_down(str(said.get("game", "")), _texts(said.get("agents")))),
            methods=["POST"],
        ),
        Route("/api/tables/{table}", _asked(lambda request: tables.view(request.path_params["table"]))),
        Route("/api/tables/{table}/hint", _asked(lambda request: tables.hint(request.path_params["table"]))),
        Route("/api/tables/{table}/luck", _asked(lambda request: tables.luck(request.path_params["table"]))),
        Route(
            "/api/tables/{table}/next",
            _told(lambda request, _: tables.next_hand(request.path_params["table"])),
            methods=["POST"],
        ),
        Route(
            "/api/tables/{table}/act",
            _told(
                lambda request, said: tables.act(
                    request.path_params["table"],
                    str(said.get("action", ""))[:12],
                    str(said.get("amount", ""))[:12],
                    _number(said.get("hand")),
                )
            ),
            methods=["POST"],
        ),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: nowhere}), explorer.token, host)
