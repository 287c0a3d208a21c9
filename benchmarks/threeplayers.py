"""Three players: how far a clone's winnings are from its original's in the same seats, and what @teacher wins.

100,000 hands of the agents of `TABLE` are logged in all six seatings, and a clone of each of `COPIED` is trained with
the defaults. Then the clone sits where its original sat, with the same others on the same deals: the figure is the
difference of their winnings, with half its 95% interval over deals beside it, for each of the two orders around the
table (A B C and A C B), so that a copy that only knows one of its right-hand neighbours is found out.

@teacher, the solved strategy of limit hold'em for three, sits with others in all seatings, and so does @equity with the
same others on the same deals: what each wins there is compared.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks._figures import Figure, Settings
from pipeline.agents.names import resolve
from pipeline.arena.duplicate import seatings
from pipeline.arena.match import play_match
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.measures import half_width
from pipeline.poker.game import Game, builtin
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

GAMES = {"holdem.limit.3p": 150.0, "holdem.nolimit.3p": 500.0}
"""the games, and the mbb/h by which clone and original may differ"""
TABLE = ("@calibrated:70,70", "@equity", "@calibrated:50,50")
COPIED = ("@calibrated:70,70", "@equity")
SOLVED = "holdem.limit.3p"
OTHERS = (
    ("@equity", "@equity"),
    ("@equity", "@calibrated:70,70"),
    ("@equity", "@calibrated:50,50"),
    ("@calibrated:70,70", "@calibrated:50,50"),
    ("@equity", "@bearl"),
    ("@bearl", "@calibrated:80,100"),
    ("@equity", "@calibrated:50,100"),
    ("@calibrated:50,100", "@chump"),
    ("@call", "@raise"),
    ("@random", "@call"),
)
"""whom the solved strategy sits with; of the first four and @call results were looked at while it was made"""
LOGGED = 100_000
COMPARED = 120_000
SEATED = 30_000


def run(_: Settings) -> list[Figure]:
    """Measure the solved strategy for three players, and clones of agents, limit and no-limit."""
    figures = _solved(builtin(SOLVED))
    for name, target in GAMES.items():
        with tempfile.TemporaryDirectory() as folder:
            figures += _game(builtin(name), target, Path(folder))
    return figures


def _solved(game: Game) -> list[Figure]:
    """Measure what @teacher wins beside others, and @equity in its place."""
    teacher, equity = resolve("@teacher", game), resolve("@equity", game)
    figures = []
    for others in OTHERS:
        beside = [resolve(text, game) for text in others]
        won = [play_match([one, *beside], game, hands=SEATED, seed=13).samples_mbb[:, 0] for one in (teacher, equity)]
        title = f"{game.name}: @teacher beside {' and '.join(others)}"
        figures.append(
            Figure(title, float(won[0].mean()), "mbb/h", "@equity there", float(won[1].mean()), target="more than it")
        )
        figures.append(Figure(f"{title}, half the interval of the difference", half_width(won[0] - won[1]), "mbb/h"))
    lost = play_match([equity, teacher, teacher], game, hands=SEATED, seed=13).samples_mbb[:, 0]
    title = f"{game.name}: @equity beside two @teacher, ± {half_width(lost):.0f}"
    figures.append(Figure(title, float(lost.mean()), "mbb/h", target="below 0"))
    return figures


def _game(game: Game, target: float, folder: Path) -> list[Figure]:
    agents = [resolve(text, game) for text in TABLE]
    match = play_match(agents, game, hands=LOGGED, seed=11, log=folder / "logs" / "three")
    ingest(match.logs, folder / "rows", options())
    original = play_match(agents, game, hands=COMPARED, seed=12)
    figures = []
    for text in COPIED:
        seat = TABLE.index(text)
        train_bundles(Request(folder / "rows", folder / f"clone{seat}", agents=(match.names[seat],)))
        seated = [*agents]
        seated[seat] = resolve(str(folder / f"clone{seat}"), game)
        cloned = play_match(seated, game, hands=COMPARED, seed=12)
        for order, rows in _orders(seatings(game.players)).items():
            won = [found.payoffs[:, rows, seat].mean(axis=1) * 1000 / game.big_blind for found in (cloned, original)]
            apart = won[0] - won[1]
            title = f"{game.name}: clone of {text}, order {order}, less the original"
            figures.append(
                Figure(title, float(apart.mean()), "mbb/h", "original", float(won[1].mean()), target=f"±{target:.0f}")
            )
            figures.append(Figure(f"{title}, half its interval", half_width(apart), "mbb/h"))
    return figures


def _orders(seats: np.ndarray) -> dict[str, list[int]]:
    """Return the seatings of each cyclic order around the table."""
    seatings: dict[str, list[int]] = {}
    for number, order in enumerate(seats.tolist()):
        first = order.index(0)
        name = " ".join("ABC"[agent] for agent in (*order[first:], *order[:first]))
        seatings.setdefault(name, []).append(number)
    return seatings
