"""Bots from outside the package: Python objects, and programs that speak the ACPC protocol.

`python:package.module:factory` imports a module (found as `import` finds it, the current folder included), and
`python:./file.py:factory` a file; `factory(game)` gives a bot, any object with one of two methods:

    probabilities(rows)   an array of `decisions.OBSERVATION`, one row per decision, gives (rows, labels): what is
                          played, 0 where a label is illegal, every row summing to 1. This is what `match` is fast with.
    act(situation)        a `Situation` gives one letter of `situation.legal`, or a dictionary from letters to
                          probabilities. The letters are the game's labels: f, c and r in limit games; f, c, s, h, p, o
                          and a (a quarter, half, one, two pots, all-in) in no-limit games. There `r300` also is an
                          answer: a raise to 300 chips in all, brought into the legal range as a dealer does.

A bot with `act` is taken to draw its actions, so that it may answer otherwise when it is asked again. `counter --judge`
and `@lbr:` then ask it repeatedly (`protocol.ASKED_TIMES`), and its results are not averaged over imagined hands. One
that always answers a situation alike, by a letter or by its probabilities, says so with an attribute `draws = False`;
the answers of `probabilities` are always taken for the mix itself.

A bot with `probabilities` may have a third method in no-limit games:

    amounts(rows, labels) for each row and its raise label (a number into `game.labels`) the total it raises to, or a
                          dictionary from totals to probabilities, or None for the size that the label stands for.

A bot keeps nothing between calls unless it is a `Learner` too (`interval`, `begin`, `seen`). It is called by one thread
at a time. A smallest bot:

    class Careful:
        def __init__(self, game):
            self.game = game

        def act(self, situation):
            return "c" if situation.to_call <= situation.pot / 4 else "f"

`exec:./start.sh` is a program, started with the dealer's HOST and PORT behind its own arguments, as the competition
starts its players; it speaks protocol 2.0.0 and plays through a dealer of ours (`pipeline.arena.wire.matches`). It
gives no probabilities, so it plays in `match` and `tournament` but cannot be evaluated.

An action that is not legal becomes a call, as with a dealer, and so does its share of a mix; the first one is a
warning. Any other mistake of a bot (an import that fails, an exception, an answer that is no mix of actions) becomes a
`PipelineError` of one sentence that names the bot.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import re
import shlex
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.names import plain_name
from pipeline.agents.protocol import Agent, FinishedHands
from pipeline.dataset.decisions import betting_text
from pipeline.models.sizes import Amounts, has_amounts, label_of_amount, raised_by
from pipeline.poker.cards import NO_CARD, card_text
from pipeline.poker.game import Game
from pipeline.poker.rules import CALL
from pipeline.runtime.array_types import Array
from pipeline.runtime.errors import PipelineError

log = logging.getLogger(__name__)


class Situation(NamedTuple):
    """Knowledge of the acting player at a decision."""

    hole: str
    """its hole cards as dealt, such as `AsKd`"""
    board: str
    """the open cards, empty before the flop"""
    betting: str
    """the labels of all actions so far, streets joined by `/`, such as `crc/c`"""
    street: int
    position: int
    players: int
    pot: int
    to_call: int
    stack: int
    """its chips left; 0 where the game sets no stack"""
    legal: str
    """the letters of the labels that may be taken"""
    spent: int = 0
    """its chips in the pot: a raise to `spent + to_call + n` raises by n; 0 where the game sets no stack"""


def _situation(game: Game, row: Any) -> Situation:
    street = int(row["street"])
    words = [betting_text(word, game.nolimit).strip("-") for word in row["betting_codes"][: street + 1]]
    cards = ["".join(card_text(int(card)) for card in row[key] if card != NO_CARD) for key in ("hole", "board")]
    return Situation(
        hole=cards[0],
        board=cards[1],
        betting="/".join(words),
        street=street,
        position=int(row["position"]),
        players=int(row["players"]),
        pot=int(row["pot"]),
        to_call=int(row["to_call"]),
        stack=int(row["stack"]),
        legal="".join(label for i, label in enumerate(game.labels) if int(row["legal"]) >> i & 1),
        spent=game.stacks[int(row["position"])] - int(row["stack"]) if has_amounts(game) else 0,
    )


@dataclass
class Guest:
    """A user's Python object as an agent."""

    name: str
    game: Game
    text: str
    """the name it was resolved from"""
    bot: Any = field(repr=False)
    illegal: int = 0
    """decisions at which an action that is not legal became a call"""

    def __post_init__(self) -> None:
        self._bot_lock = threading.Lock()
        self._answers = threading.local()

    @property
    def draws(self) -> bool:
        """Return whether the bot may answer otherwise when it is asked again."""
        return not hasattr(self.bot, "probabilities") and bool(getattr(self.bot, "draws", True))

    def probabilities(self, rows: Array) -> Array:
        """Ask the bot and check that it gives a mix of legal actions for every row."""
        with self._bot_lock:
            try:
                answer = self.bot.probabilities(rows) if hasattr(self.bot, "probabilities") else self._ask_actions(rows)
            except PipelineError:
                raise
            except Exception as error:
                raise PipelineError(f"{self.text} failed: {_error_line(error)}") from error
        try:
            mix = np.array(answer, dtype=np.float64)
        except (TypeError, ValueError):
            raise PipelineError(f"{self.text} gives {answer!r:.80}, no array of numbers") from None
        if mix.shape != (len(rows), len(self.game.labels)):
            wanted = f"{len(rows)} rows and {len(self.game.labels)} labels ({self.game.labels})"
            raise PipelineError(f"{self.text} gives an array of shape {mix.shape} for {wanted}")
        legal = rows["legal"][:, None] >> np.arange(mix.shape[1]) & 1 == 1
        right = (mix >= 0).all(axis=1) & (np.abs(mix.sum(axis=1) - 1) < 1e-6)
        if not right.all():
            row = int(np.flatnonzero(~right)[0])
            raise PipelineError(
                f"{self.text} gives {mix[row].tolist()} for {self.game.labels} {self._where(rows[row])}: "
                "a mix of actions sums to 1"
            )
        illegal = np.where(legal, 0.0, mix)
        if illegal.any():
            self._call_instead(mix, illegal, rows)
        return mix

    def _call_instead(self, mix: Array, illegal: Array, rows: Array) -> None:
        """Let the shares of illegal actions be calls; warn of the first."""
        row, label = np.argwhere(illegal > 0)[0]
        with self._bot_lock:
            if not self.illegal:
                log.warning(
                    "%s plays %s %s: an illegal action becomes a call (further ones are not named)",
                    *(self.text, self.game.labels[label], self._where(rows[row])),
                )
            self.illegal += int((illegal > 0).any(axis=1).sum())
        mix -= illegal
        mix[:, CALL] += illegal.sum(axis=1)

    def _where(self, row: Any) -> str:
        """Return in words where a bot decides, and what is legal there."""
        situation = _situation(self.game, row)
        cards = f"{situation.hole} {situation.board or '-'}"
        return f"where {situation.legal} are legal ({cards} after {situation.betting!r})"

    def _ask_actions(self, rows: Array) -> Array:
        """Ask the bot for an action at each row; return them as mixes and remember the totals it names."""
        mix = np.zeros((len(rows), len(self.game.labels)))
        amounts: list[dict[int, dict[int, float]]] = []
        for i, row in enumerate(rows):
            answer = self.bot.act(_situation(self.game, row))
            shares = answer if isinstance(answer, Mapping) else {answer: 1.0}
            amounts.append({})
            for action, share in shares.items():
                if not isinstance(action, str):
                    raise self._no_action(answer)
                if has_amounts(self.game) and re.fullmatch(r"r[0-9]{1,9}", action):
                    by = max(0, int(raised_by(self.game, row, int(action[1:]))))
                    label = label_of_amount(row, by)
                    by_label = amounts[i].setdefault(label, {})
                    by_label[by] = by_label.get(by, 0.0) + share
                elif len(action) == 1 and action in self.game.labels:
                    label = self.game.labels.index(action)
                else:
                    raise self._no_action(answer)
                mix[i, label] += share
        self._answers.last = rows.copy(), amounts
        return mix

    def _no_action(self, answer: object) -> PipelineError:
        letters = ", ".join(self.game.labels) + (" or r and a total" if has_amounts(self.game) else "")
        return PipelineError(f"{self.text} answers {answer!r:.80}; the actions are {letters}")

    def amounts(self, rows: Array, labels: Array) -> Amounts | None:
        """Return the totals that the bot named with its last answer, or names for these labels."""
        if not has_amounts(self.game):
            return None
        if not hasattr(self.bot, "probabilities"):
            answered_rows, amounts = getattr(self._answers, "last", (rows[:0], []))
            if len(answered_rows) != len(rows) or answered_rows.tobytes() != rows.tobytes():
                self.probabilities(rows)
                answered_rows, amounts = self._answers.last
            return _join_amounts(
                [by_label.get(int(label), {}) for by_label, label in zip(amounts, labels, strict=True)]
            )
        if not hasattr(self.bot, "amounts"):
            return None
        with self._bot_lock:
            try:
                totals = list(self.bot.amounts(rows, labels))
                return _join_amounts([self._raises(*pair) for pair in zip(totals, rows, strict=True)])
            except PipelineError:
                raise
            except Exception as error:
                raise PipelineError(f"{self.text} names no amounts: {_error_line(error)}") from error

    def _raises(self, answer: Any, row: Any) -> dict[int, float]:
        """Return the chips beyond the highest bet of the totals that a bot names for one row."""
        if answer is None:
            return {}
        totals = answer if isinstance(answer, Mapping) else {answer: 1.0}
        if not all(float(share) >= 0 for share in totals.values()) or not sum(totals.values()) > 0:
            raise PipelineError(f"{self.text} names the amounts {answer!r:.80}: their probabilities sum to 1")
        return {max(0, int(raised_by(self.game, row, int(total)))): float(share) for total, share in totals.items()}


def _join_amounts(rows: list[dict[int, float]]) -> Amounts:
    """Return the amounts of all rows in one array each, their shares of a row scaled to sum to 1."""
    starts = np.cumsum([0, *map(len, rows)])
    share = np.array([share / sum(row.values()) for row in rows for share in row.values()], dtype=np.float64)
    return Amounts(starts, np.array([by for row in rows for by in row], dtype=np.int64), share)


@dataclass
class GuestLearner(Guest):
    """A user's Python object that is told of finished hands."""

    @property
    def interval(self) -> int:
        return int(self.bot.interval)

    def begin(self) -> None:
        self.bot.begin()

    def seen(self, hands: FinishedHands) -> None:
        self.bot.seen(hands)


@dataclass(frozen=True)
class Program:
    """A program that speaks the ACPC protocol: `pipeline.arena.wire.matches` starts it and deals to it."""

    name: str
    game: Game
    text: str
    """the name it was resolved from"""
    command: tuple[str, ...]
    """the program and its arguments; HOST and PORT are appended"""
    draws: bool = True

    def probabilities(self, rows: Array) -> Array:
        raise PipelineError(f"{self.text} gives no probabilities: a program plays only in match and tournament")


def make(text: str, game: Game) -> Agent:
    """Return the bot of a `python:` or `exec:` name."""
    if text.startswith("exec:"):
        return _program(text, game)
    module, _, factory = text.removeprefix("python:").rpartition(":")
    if not module or not factory:
        raise PipelineError(f"{text!r}: write python:package.module:factory or python:./file.py:factory")
    make_bot = getattr(_module(module, text), factory, None)
    if not callable(make_bot):
        raise PipelineError(f"{text}: {module} has nothing to call named {factory}")
    try:
        bot = make_bot(game)
    except Exception as error:
        raise PipelineError(f"{text}: {factory}(game) failed: {_error_line(error)}") from error
    if not hasattr(bot, "probabilities") and not hasattr(bot, "act"):
        raise PipelineError(f"{text}: {factory}(game) gives a {type(bot).__name__} without probabilities or act")
    kind = GuestLearner if all(hasattr(bot, part) for part in ("interval", "begin", "seen")) else Guest
    return kind(plain_name(text), game, text, bot)


def _module(name: str, text: str) -> Any:
    """Import a module by its name or its file."""
    path = Path(name)
    try:
        if not name.endswith(".py"):
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.insert(0, str(Path.cwd()))
            return importlib.import_module(name)
        place = hashlib.sha256(bytes(path.resolve())).hexdigest()[:16]  # tells files of the same name apart
        spec = importlib.util.spec_from_file_location(f"{path.stem}_{place}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise PipelineError(f"{text}: no file {name}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module  # dataclasses and pickles look their module up there
        spec.loader.exec_module(module)
        return module
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineError(f"{text}: cannot import {name}: {_error_line(error)}") from error


def _program(text: str, game: Game) -> Program:
    try:
        words = shlex.split(text.removeprefix("exec:"))
    except ValueError as error:
        raise PipelineError(f"{text}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        remedy = "name an executable file, such as exec:./start.sh (chmod +x it)"
        raise PipelineError(f"{text}: no program {words[0] if words else ''!r} that can be started; {remedy}")
    return Program(plain_name(text), game, text, tuple(words))


def _error_line(error: BaseException) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(": ")
