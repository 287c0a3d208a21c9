"""Resolve agents' names.

An agent is written `@name[:arguments]` for those that come with the package, or as a bundle's folder or zip file with
options, `models/x:mode=argmax,chart=selby` (see `pipeline.models.policy`), or as the folder of a stored strategy that
`solve holdem` or `counter` wrote; `teacher:` is the bundle that comes with the package. A built-in agent's module has
`make(name, arguments, game)` and is imported only when it is named.

A user's own bot is written `python:package.module:factory`, `python:./file.py:factory` or `exec:./start.sh` (see
`pipeline.agents.guests`). Such a name runs code, so it is taken only where the person at the command line wrote it
(`trusted=True`): never from a file, a manifest or a web request.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.agents.protocol import Agent
from pipeline.models.bundle import bundle_game
from pipeline.models.policy import HISTORY_GAMES, bundle_name, load_policy
from pipeline.models.prior import offer_agents
from pipeline.poker.game import Game, builtin, find_game
from pipeline.runtime.bundled import locate
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.solving.strategy import is_strategy, strategy_game

STARTERS = ("start", "startme", "run", "play")
"""names of programs that only start the bot of their folder, whose name says more"""
GUESTS = ("python:", "exec:")
"""prefixes of the names of bots from outside the package"""
NESTED = ("lbr", "adaptive")
"""built-in agents whose arguments name another agent"""
OF_FOLDERS = ("teacher",)
"""built-in agents whose arguments name a folder"""
BUILTIN = {
    "fold": "rules",
    "call": "rules",
    "raise": "rules",
    "random": "rules",
    "chump": "rules",
    "equity": "equity",
    "teacher": "teacher",
    "calibrated": "calibrated",
    "bearl": "bearl",
    "lbr": "lbr",
    "adaptive": "adaptive",
}
"""module of each built-in agent"""


def default_game(texts: Iterable[str]) -> Game:
    """Return the game of the first bundle named; with none, limit hold'em for as many players."""
    agents = list(texts)
    for text in agents:
        if is_bundle(text):
            path = bundle_options(text)[0]
            game = strategy_game(path) if is_strategy(path) else bundle_game(path)
            if game.name in HISTORY_GAMES:
                raise PipelineError(
                    f"{text} was trained on hand histories, which are of many games: name the one to play with --game"
                )
            return game
    names = {2: "holdem.limit.2p.reverse_blinds", 3: "holdem.limit.3p"}
    if len(agents) not in names:
        raise PipelineError(f"{len(agents)} agents: hold'em here takes 2 or 3; name another game with --game")
    return builtin(names[len(agents)])


def choose_game(name: str | None, texts: Iterable[str]) -> Game:
    """Return the game of a name or a `.game` file; where None is named, the default game of some agents.

    >>> choose_game(None, ["@call", "@raise"]).name
    'holdem.limit.2p.reverse_blinds'
    """
    return default_game(texts) if name is None else find_game(name)


def is_bundle(text: str) -> bool:
    """Return whether a name is a path, of a bundle or a stored strategy: neither a built-in agent nor a user's bot."""
    return not text.startswith(("@", *GUESTS))


def resolve(text: str, game: Game, *, trusted: bool = False) -> Agent:
    """Return the agent that `text` names, for a game.

    Parameters: `trusted` says that a person wrote the name on the command line, so that it may start a user's own bot
    (`python:` or `exec:`), which runs code.
    """
    if text.startswith(GUESTS):
        if not trusted:
            raise PipelineError(f"{text} runs somebody's own code: it can only be named on the command line")
        agent: Agent = importlib.import_module("pipeline.agents.guests").make(text, game)
        return agent
    if text.startswith("@"):
        return built_in(text, game, trusted=trusted)
    path, options = bundle_options(text)
    if is_strategy(path):
        if options:
            raise PipelineError(f"{path} is a stored strategy, which takes no options")
        strategy: Agent = importlib.import_module("pipeline.agents.teacher").play_stored(path, game, plain_name(text))
        return strategy
    return load_policy(path, options, game=game)


def built_in(text: str, game: Game, *, trusted: bool = False) -> Agent:
    """Return the agent of an `@name[:arguments]`."""
    name, _, arguments = text.removeprefix("@").partition(":")
    if name not in BUILTIN:
        known = [f"@{other}" for other in BUILTIN]
        raise PipelineError(f"no built-in agent {text!r}{nearest(f'@{name}', known)}")
    make = importlib.import_module(f"pipeline.agents.{BUILTIN[name]}").make
    agent: Agent = make(name, arguments, game, trusted=trusted) if name in NESTED else make(name, arguments, game)
    return agent


def bundle_options(text: str) -> tuple[Path, dict[str, str]]:
    """Split `path[:key=value,...]` into the path and the options."""
    match = re.fullmatch(r"(?P<path>.*?)(?::(?P<options>\w+=[^:]*))?", text, re.DOTALL)
    assert match is not None
    options = {}
    for part in (match["options"] or "").split(","):
        key, equals, value = part.partition("=")
        if part and not equals:
            raise PipelineError(f"{text!r}: {part!r} is not key=value")
        if part:
            options[key.strip()] = value.strip()
    path = locate(match["path"])
    bundled = locate(f"{path}:")
    if options and bundled.exists() and not path.exists():
        path = bundled  # `teacher:mode=argmax`
    if str(path).partition(":")[0] in BUILTIN and not path.exists():
        raise PipelineError(f"there is no bundle {text!r} here (did you mean the built-in agent @{text}?)")
    return path, options


def parse_numbers(arguments: str, count: int, what: str) -> tuple[float, ...]:
    """Parse `count` numbers separated by commas; `what` shows the form in the error.

    >>> parse_numbers("70,20", 2, "@calibrated:AGGRESSION,RATIONALITY")
    (70.0, 20.0)
    """
    parts = arguments.split(",")
    try:
        values = tuple(float(part) for part in parts)
    except ValueError:
        values = ()
    if len(values) != count:
        problem = f"{arguments!r} is not {count} numbers" if arguments else f"{count} numbers are missing"
        raise PipelineError(f"{problem}; write {what}")
    return values


def plain_name(text: str) -> str:
    """Return an agent's text as a name that log lines can hold.

    >>> plain_name("@calibrated:70,20"), plain_name("models/slumbot.zip:mode=argmax")
    ('calibrated-70-20', 'slumbot-mode-argmax')
    >>> plain_name("python:./bots/mine.py:Careful"), plain_name("exec:./bot/start.sh --fast")
    ('mine-Careful', 'bot')
    """
    if text.startswith("exec:"):
        program = Path((text.removeprefix("exec:").split() or [""])[0])
        name = program.stem if program.stem not in STARTERS else program.absolute().parent.name or program.stem
    elif text.startswith("python:"):
        module, _, factory = text.removeprefix("python:").rpartition(":")
        name = f"{Path(module.replace('.', '/') if not module.endswith('.py') else module).stem}-{factory}"
    elif text.startswith("@"):
        name = text.removeprefix("@")
    else:
        return bundle_name(*bundle_options(text))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "agent"


def comes_with_package(text: str) -> bool:
    """Return whether an agent is built in and names no file, folder or program: it has learned from no logs.

    >>> comes_with_package("@teacher"), comes_with_package("@teacher:out/counter"), comes_with_package("@lbr:@call")
    (True, False, True)
    """
    name, _, arguments = text.removeprefix("@").partition(":")
    if not text.startswith("@") or (name in OF_FOLDERS and arguments):
        return False
    return name not in NESTED or comes_with_package(arguments)


def _as_prior(text: str, game: Game) -> Agent:
    """Return a built-in agent that a bundle may name: one that comes with the package and takes no path or name."""
    if text.removeprefix("@").partition(":")[0] in NESTED or not comes_with_package(text):
        raise PipelineError(f"{text} cannot be a prior: a bundle takes no other agent or folder along; name a bundle")
    return built_in(text, game)


offer_agents(_as_prior)  # models below this room may start from what a built-in agent plays
