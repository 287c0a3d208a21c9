"""The addresses of the explorer: pages, their files, and the JSON behind them.

Every answer of `/api` is an object; an error is `{"error": sentence}`. Requests go to the same functions that the
command line uses; here texts of requests become arguments, and nothing else. `open_explorer` opens what was named on
the command line, `make_app` puts it behind its addresses.
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

from pipeline.agents.names import is_bundle
from pipeline.agents.ranges import state_after
from pipeline.arena.table import parse_action
from pipeline.dataset.manifest import read_manifest
from pipeline.models.policy import HISTORY_GAMES
from pipeline.poker.game import Game, find_game, parse_game
from pipeline.poker.made_hands import MADE
from pipeline.poker.strength.board_tables import ensure_tables, open_tables
from pipeline.report.plots import style_sheet
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress
from pipeline.runtime.version import __version__
from pipeline.web.hands import HandBrowser
from pipeline.web.jobs import Jobs
from pipeline.web.leaks import answer_leaks
from pipeline.web.results import ReportRunner
from pipeline.web.roster import Roster
from pipeline.web.safety import FRAME_POLICY, App, Guard
from pipeline.web.spots import DecisionCounts, Spots
from pipeline.web.tables import Tables

log = logging.getLogger(__name__)

VIEWS = ("/", "/strategy", "/hands", "/leaks", "/play", "/results")
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
INTERNAL_ERROR = "something went wrong here: the terminal where the server runs says what"


@dataclass
class Explorer:
    """The loaded agents, dataset and results, and the objects that answer about them."""

    roster: Roster
    token: str
    data: Path | None = None
    save: Path = Path("out/played")
    matches: Sequence[Path] = ()
    table: Path | None = None
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.counts = DecisionCounts(self.data) if self.data else None
        self.spots = Spots(self.roster, self.counts)
        self.hands = HandBrowser(self.data, self.roster, self.jobs) if self.data else None
        self.results = ReportRunner(self.roster, self.jobs, self.hands, self.matches, self.table)
        self.tables = Tables(self.roster, self.spots, self.save)

    def about(self) -> dict[str, Any]:
        """Return what pages need first: games, agents and players."""
        return {
            "version": __version__,
            "games": [
                {
                    "name": game.name,
                    "title": self.roster.title(game),
                    "players": game.players,
                    "nolimit": game.nolimit,
                    "holdem": game.is_holdem,
                    "labels": game.labels,
                    "deck": [f"{r}{s}" for r in "23456789TJQKA"[13 - game.ranks :] for s in "cdhs"[4 - game.suits :]],
                    "big_blind": game.big_blind,
                }
                for game in self.roster.games.values()
            ],
            "agents": [entry.as_dict() for entry in self.roster.entries.values()],
            "data": None
            if self.counts is None or self.hands is None
            else {"players": self.counts.players, "games": self.hands.games(), "made": list(MADE)},
            "save": str(self.save),
        }

    def spot(self, query: Callable[[str], str]) -> dict[str, Any]:
        """Return a spot; a player of the dataset is read in the background when first asked for."""
        player = query("source")
        game = self.roster.game(query("game"))
        if player and self.counts is not None and not self.counts.is_read(game, player):
            if player not in self.counts.players:
                raise PipelineError(f"the dataset has no player {player[:80]!r}")
            job = self.jobs.start(
                f"counts {game.name} {player}",
                f"reading the decisions of {player}",
                partial(self._read_counts, self.counts, game, player),
                again=True,
            )
            if job.state == "failed":
                raise PipelineError(job.error)
        return self.spots.spot(game.name, query("agent"), query("betting"), query("board"), query("other"), player)

    @staticmethod
    def _read_counts(counts: DecisionCounts, game: Game, player: str, progress: Progress) -> None:
        """Read a player's decisions; `counts` caches them, for some players, so a job must not."""
        counts.read(game, player, progress)

    def find_hands(self, query: dict[str, str]) -> dict[str, Any]:
        """Return a page of the list of hands."""
        return self._hands().find(query.pop("game", ""), query)

    def leaks(self, query: Callable[[str], str]) -> dict[str, Any]:
        """Return where a player of the dataset loses compared with a loaded agent."""
        hands = self._hands()
        players = self.counts.players if self.counts is not None else []
        return answer_leaks(hands, players, query("game"), query("player"), query("agent"))

    def replay(self, number: str, query: Callable[[str], str]) -> dict[str, Any]:
        """Return one hand, step by step."""
        if not number.isascii() or not number.isdigit() or len(number) > 9:
            raise PipelineError(f"there is no hand {number[:20]!r}")
        return self._hands().replay(query("game"), int(number), query("player"))

    def _hands(self) -> HandBrowser:
        if self.hands is None:
            raise PipelineError("no dataset is loaded: start the server with --data DIR")
        return self.hands

    def amount(self, query: Callable[[str], str]) -> dict[str, Any]:
        """Return the betting after a bet or raise to an amount of the street, in no-limit games."""
        state = state_after(self.roster.game(query("game")), query("betting"))
        if state.finished:
            raise PipelineError("the hand is over here")
        return {"betting": state.apply(*parse_action(f"r{query('amount')[:12]}", state)).betting}


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """Read the files of the pages, by name: their media type and content. Nothing else can be asked for."""
    folder = files("pipeline.web") / "static"
    result = {
        entry.name: (MEDIA_TYPES[Path(entry.name).suffix], entry.read_bytes())
        for entry in folder.iterdir()
        if Path(entry.name).suffix in MEDIA_TYPES
    }
    result["report.css"] = ("text/css", style_sheet().encode())
    return result


def _json(answer: Any, status: int = 200) -> Response:
    body = json.dumps(answer, separators=(",", ":"), allow_nan=False)
    return Response(body, status, media_type="application/json")


def _endpoint(work: Callable[[Request], Any], respond: Callable[[Any], Response] = _json) -> Callable[[Request], Any]:
    """Return an endpoint that answers with an object, computed in a thread; errors become sentences."""

    async def endpoint(request: Request) -> Response:
        try:
            return respond(await run_in_threadpool(work, request))
        except PipelineError as error:
            return _json({"error": str(error)}, 400)
        except Exception:
            log.exception("%s", request.url.path)
            return _json({"error": INTERNAL_ERROR}, 500)

    return endpoint


def _json_endpoint(work: Callable[[Request, dict[str, Any]], Any]) -> Callable[[Request], Any]:
    """Return an endpoint that takes a JSON object."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return _json({"error": "the request is not a JSON object"}, 400)
        answer: Response = await _endpoint(lambda request: work(request, body))(request)
        return answer

    return endpoint


def _parse_agents(value: Any) -> list[str]:
    """Return a request's list of agents' names."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value) or len(value) > 9:
        raise PipelineError("agents are a list of at most nine names")
    return value


def _parse_hand_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PipelineError("the number of the hand is missing")
    return value


def _query(request: Request) -> Callable[[str], str]:
    """Return a function that gives a request's parameter; empty where it is not given."""
    return lambda name: request.query_params.get(name, "")


def make_app(explorer: Explorer, host: str = "127.0.0.1", *, needs_token: bool = True) -> App:
    """Return the application behind its addresses, with its checks."""
    page = assets()["index.html"][1].replace(b"{{token}}", explorer.token.encode())

    async def view(_: Request) -> Response:
        return Response(page, media_type="text/html")

    async def asset(request: Request) -> Response:
        kind, content = assets().get(request.path_params["name"], ("", b""))
        if not kind or kind == "text/html":
            return _json({"error": "there is no such file"}, 404)
        return Response(content, media_type=kind)

    def framed(page: str) -> Response:
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": FRAME_POLICY})

    async def nowhere(_: Request, __: Exception) -> Response:
        return _json({"error": "there is no such page"}, 404)

    def get(path: str, work: Callable[[Request], Any]) -> Route:
        return Route(f"/api/{path}", _endpoint(work))

    def post(path: str, work: Callable[[Request, dict[str, Any]], Any]) -> Route:
        return Route(f"/api/tables{path}", _json_endpoint(work), methods=["POST"])

    def id_of(request: Request) -> str:
        return str(request.path_params["table"])

    tables = explorer.tables
    routes = [
        *(Route(path, view) for path in VIEWS),
        Route("/assets/{name}", asset),
        Route("/report", _endpoint(lambda request: explorer.results.page(_query(request)("game")), framed)),
        get("about", lambda _: explorer.about()),
        get("jobs", lambda _: {"jobs": explorer.jobs.unfinished()}),
        get("amount", lambda request: explorer.amount(_query(request))),
        get("spot", lambda request: explorer.spot(_query(request))),
        get("results", lambda request: explorer.results.state(_query(request)("game"))),
        get("hands", lambda request: explorer.find_hands(dict(request.query_params))),
        get("leaks", lambda request: explorer.leaks(_query(request))),
        get("hands/{hand}", lambda request: explorer.replay(request.path_params["hand"], _query(request))),
        get("tables/{table}", lambda request: tables.view(id_of(request))),
        get("tables/{table}/hint", lambda request: tables.hint(id_of(request))),
        get("tables/{table}/luck", lambda request: tables.luck(id_of(request))),
        post("", lambda _, body: tables.sit_down(str(body.get("game", "")), _parse_agents(body.get("agents")))),
        post("/{table}/next", lambda request, _: tables.next_hand(id_of(request))),
        post(
            "/{table}/act",
            lambda request, body: tables.act(
                id_of(request),
                str(body.get("action", ""))[:12],
                str(body.get("amount", ""))[:12],
                _parse_hand_number(body.get("hand")),
            ),
        ),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: nowhere}), explorer.token, host, needs_token)


def open_explorer(
    agents: Sequence[str],
    *,
    token: str,
    data: Path | None = None,
    games: Sequence[str] = (),
    save: Path = Path("out/played"),
    matches: Sequence[Path] = (),
    table: Path | None = None,
) -> Explorer:
    """Open what was named; a bundle on a machine without strength tables has them built in the background."""
    offered: list[Game] = [find_game(name) for name in games]
    if data is not None:
        manifest = read_manifest(data)
        offered += [parse_game(text, name) for name, text in manifest.games.items() if name not in HISTORY_GAMES]
    roster = Roster(agents, offered)
    explorer = Explorer(roster, token, data, save, matches, table)
    holdem = any(game.is_holdem for game in roster.games.values())
    if holdem and any(is_bundle(entry.text) for entry in roster.entries.values()) and len(open_tables()[0]) == 0:
        explorer.jobs.start("tables", "building the strength tables (once on this machine)", ensure_tables)
    if explorer.hands is not None:
        for name in explorer.hands.games()[:1]:
            explorer.hands.archive(roster.games[name])
    return explorer
