"""The addresses of the explorer: pages, their files, and the JSON behind them.

Every answer of `/api` is an object; an error is `{"error": sentence}`. What is asked for goes to the same functions
that the command line uses; here texts of requests become arguments, and nothing else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
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

from pipeline.errors import PipelineError
from pipeline.ranges import state_after
from pipeline.report.markup import style_sheet
from pipeline.table import parse_action
from pipeline.version import __version__
from pipeline.web.jobs import Jobs
from pipeline.web.safety import App, Guard
from pipeline.web.shelf import Shelf
from pipeline.web.source import Source
from pipeline.web.spots import Spots

__all__ = ["Explorer", "assets", "make_app"]

log = logging.getLogger(__name__)

VIEWS = ("/", "/strategy")
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
WRONG = "something went wrong here: the terminal where the server runs says what"


@dataclass
class Explorer:
    """What was loaded, and what answers about it."""

    shelf: Shelf
    token: str
    data: Path | None = None
    save: Path = Path("out/played")
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.source = Source(self.data) if self.data else None
        self.spots = Spots(self.shelf, self.source)

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
            "data": None if self.source is None else {"players": self.source.players},
            "save": str(self.save),
        }

    def spot(self, query: Callable[[str], str]) -> dict[str, Any]:
        """What an agent does at a spot; a player of the dataset is read in the background when first asked for."""
        whose = query("source")
        game = self.shelf.game(query("game"))
        if whose and self.source is not None and not self.source.is_read(game, whose):
            if whose not in self.source.players:
                raise PipelineError(f"the dataset has no player {whose[:80]!r}")
            self.jobs.start(
                f"counts {game.name} {whose}",
                f"reading the decisions of {whose}",
                partial(self.source.read, game, whose),
            )
        return self.spots.spot(game.name, query("agent"), query("betting"), query("board"), query("other"), whose)

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
    folder = files("pipeline") / "web" / "static"
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
    return Guard(Starlette(routes=routes, exception_handlers={404: nowhere}), explorer.token, host)
