"""Odd answers to a dealer, and what it makes of them: asked of ours in a test, of the official one where it is built.

An answer is a template over a match state's parts. It is sent at a decision, with a plain answer right behind it, in
two hands that differ in the plain answer only: what the dealer passes over is what leaves the plain one in force. So
nothing here waits for a dealer that says nothing.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.arena.wire.dealer import MatchPlan, listen, run_match
from pipeline.arena.wire.sockets import Limits
from pipeline.poker.game import Game, StateCache, actions, builtin
from pipeline.poker.rules import FOLD, RAISE

RECORDED = Path(__file__).parents[1] / "fixtures" / "dealer_answers.json"
"""answers of the official dealer: {game: {betting: {template: result}}}"""
IGNORED = "ignored"
SITUATIONS = {
    "holdem.limit.2p.reverse_blinds": ("", "c", "rc", "crrc", "ccccr"),
    "holdem.nolimit.2p.reverse_blinds": ("", "c", "r300c", "r250r900c", "ccccr400"),
    "holdem.limit.3p": ("", "rrc", "rfcc", "ccccccr"),
}
"""bettings of the campaign, by game"""
HOURS = 3_600_000
NAMES = ("Alice", "Bob", "Carol")


class Asked(NamedTuple):
    """An odd answer to a betting, without `/`."""

    betting: str
    template: str


def is_beyond_32_bits(question: Asked) -> bool:
    """Whether an answer holds a number that the official dealer cannot, and wraps."""
    return any(int(digits) >= 1 << 31 for digits in re.findall(r"\d+", question.template))


def recorded() -> dict[str, dict[str, dict[str, str]]]:
    """What the official dealer made of the answers in the fixture."""
    return json.loads(RECORDED.read_text())


def written(template: str, line: str) -> str:
    """An answer to a match state by its template."""
    _, position, hand, betting, cards = line.split(":")
    holes, *board = cards.split("/")
    return template.format(
        position=position,
        hand=hand,
        betting=betting,
        cards=cards,
        holes=holes,
        own=holes.strip("|"),
        bare=holes.rstrip("|") + "".join(f"/{street}" for street in board),
        board="".join(f"/{street}" for street in board),
        joined=cards.replace("/", ""),
        swapped=cards.swapcase(),
    )


def results(game: Game, ports: Sequence[int], asked: Sequence[Asked]) -> list[str]:
    """Ask the dealer at these ports, in two hands for each answer."""
    walk = StateCache(game)
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for port in ports]
        files = [stack.enter_context(link.makefile("r", newline="\n")) for link in links]
        for link in links:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(b"VERSION:2.0.0\r\n")

        def hand(question: Asked, plain: int) -> str:
            """Play one hand with an odd answer and the `plain`-th of two plain ones; return the action taken."""
            prefix = list(actions(question.betting))
            taken = ""
            while True:
                lines = [file.readline().strip() for file in files]
                assert all(lines), f"the dealer left at {question}"
                betting = lines[0].split(":")[3]
                state, made = walk.at(betting), list(actions(betting))
                if len(made) == len(prefix) + 1 and not taken:
                    (action, size) = made[-1]
                    taken = "fcr"[action] + (str(size) if size else "")
                if state.finished:
                    return taken
                seat = next(i for i, line in enumerate(lines) if int(line.split(":")[1]) == state.actor)
                usual = [action for action in "fcr" if state.is_legal("fcr".index(action), state.raise_range[0])]
                text = usual[-1]
                if len(made) < len(prefix):
                    (action, size) = prefix[len(made)]
                    text = "fcr"[action] + (str(size) if size else "")
                elif len(made) == len(prefix):
                    text = (usual if usual[0] == "fcr"[FOLD] else usual[-2:])[plain]
                    text += str(state.raise_range[0] + 77) if text == "fcr"[RAISE] and game.nolimit else ""
                    links[seat].sendall((written(question.template, lines[seat]) + "\r\n").encode("latin-1"))
                else:
                    text = "c"
                links[seat].sendall(f"{lines[seat]}:{text}\r\n".encode())

        pairs = [(hand(question, 0), hand(question, 1)) for question in asked]
    return [first if first == second else IGNORED for first, second in pairs]


def ours(game: Game, asked: Sequence[Asked]) -> list[str]:
    """What our dealer makes of the answers."""
    listeners = listen([0] * game.players)
    ports = [listener.getsockname()[1] for listener in listeners]
    plan = MatchPlan(game, NAMES[: game.players], 2 * len(asked), 7, limits=Limits(HOURS, HOURS, HOURS, HOURS))
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(run_match, plan, listeners)
        found = results(game, ports, asked)
        outcome.result(60)
    return found


def official(dealer: Path, game: Game, asked: Sequence[Asked]) -> list[str]:
    """What the official dealer, a program at `dealer`, makes of the answers."""
    import pipeline.poker

    file = Path(pipeline.poker.__file__).parent / "resources" / "games" / f"{game.name}.game"
    times = [word for name in ("response", "hand", "per_hand") for word in (f"--t_{name}", str(HOURS))]
    words = [dealer, "match", file, str(2 * len(asked)), "7", *NAMES[: game.players], "-q", "-l", *times]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            ports = [int(port) for port in process.stdout.readline().split()]
            return results(game, ports, asked)
        finally:
            process.kill()


def record(dealer: Path) -> None:
    """Ask the official dealer again, and write its answers into the fixture."""
    table: dict[str, Any] = {}
    for name, by_betting in recorded().items():
        asked = [Asked(betting, template) for betting, rows in by_betting.items() for template in rows]
        for question, result in zip(asked, official(dealer, builtin(name), asked), strict=True):
            table.setdefault(name, {}).setdefault(question.betting, {})[question.template] = result
    RECORDED.write_text(json.dumps(table, indent=1) + "\n")


def made_up(luck: random.Random) -> str:
    """An answer with a few odd parts."""

    def odd(usual: str, *others: str) -> str:
        return luck.choice(others) if luck.random() < 0.25 else usual

    blank = partial(odd, "", " ", "\t", "+", "0", "00", "+0", "-", "x")
    betting = "{betting}"
    betting = odd(betting, *(betting + more for more in ("/", "c", "f", "x")), f"/{betting}", "{joined}")
    # the player's own cards are always there: without them the official dealer compares what was there before
    cards = odd("{cards}", "{bare}", "{joined}", "{swapped}", "2c{cards}", "AsAh{cards}", "{own}|{own}|{own}{board}")
    behind = odd("", "|", "/", "//", " ", "2c", "/2c", "|2c2d", "c", ":", "x")
    action = odd("f", "c", "r", "b", "k", "F", "C", "R", "B", "K", "", "x", "fold", "c5", "-", "|", "/")
    total = luck.choice([0, 1, 199, 300, 350, 900, 19999, 20001])
    size = odd("", *(f"{blank()}{sign}{total}" for sign in ("", "+", "-")))
    head = odd("MATCHSTATE:", "MATCHSTATE: ", " MATCHSTATE:", "STATE:", "MATCHSTATE", "MATCHSTATE::")
    line = f"{head}{blank()}{{position}}:{blank()}{{hand}}:{betting}:{cards}{behind}:{blank()}{action}{size}"
    return odd("", "#", ";", "\r\n", "hello\r\n", line + "\r\n") + line + odd("", " ", ".5", "\0", ":c", "\r\n" + line)


def campaign(count: int, seed: int, dealer: Path) -> dict[str, int]:
    """Ask ours and the official dealer, a program at `dealer`, `count` made-up answers; what they came to."""
    luck = random.Random(seed)
    outcomes: Counter[str] = Counter()
    while count > 0:
        name = luck.choice([*SITUATIONS])
        asked = [Asked(luck.choice(SITUATIONS[name]), made_up(luck)) for _ in range(min(count, 200))]
        count -= len(asked)
        both = zip(asked, ours(builtin(name), asked), official(dealer, builtin(name), asked), strict=True)
        for question, mine, theirs in both:
            assert mine == theirs, f"seed {seed}, {name}: {question} is {mine} here, {theirs} there"
            outcomes[f"answers: {mine[:1] if mine != IGNORED else mine}"] += 1
    return dict(sorted(outcomes.items()))
