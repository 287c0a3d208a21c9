"""The leaks view: where a player of the dataset loses chips compared with a loaded agent, with hands to replay.

In go a game, a player and an agent, out come the spots of `pipeline.evaluation.leaks`, found in the background, with
the numbers under which the list of hands has their examples.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pipeline.agents.predictions import label_word
from pipeline.evaluation.leaks import Leak, Leaks, find_leaks
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.web.archive import Archive
from pipeline.web.hands import HandBrowser

MAX_SPOTS = 40
"""spots that the page shows"""


def answer_leaks(hands: HandBrowser, players: list[str], game_name: str, player: str, agent: str) -> dict[str, Any]:
    """Return the worst spots of a player, or the state of the work while they are being found."""
    game, archive, reading = hands.open_game(game_name)
    player = player or players[0]
    if player not in players:
        raise PipelineError(f"the dataset has no player {player[:80]!r}{nearest(player[:80], players)}")
    entry = hands.roster.entry(agent, game)
    asked = {"game": game.name, "player": player, "agent": entry.name}
    if archive is None or reading:
        return {**asked, "working": reading}
    reference = hands.roster.agent(entry.name, game)
    job = hands.jobs.start(
        f"leaks {game.name} {player} {entry.name}",
        f"comparing the choices of {player} with those of {entry.name}",
        partial(_find, hands, player, reference),
    )
    if job.state == "failed":
        raise PipelineError(job.error)
    if job.state != "ready":
        return {**asked, "working": job.as_dict()}
    leaks: Leaks = job.result
    whole = leaks.json()
    spots = [{**leak.json(), **_drawn(leak, game, archive)} for leak in leaks.spots[:MAX_SPOTS]]
    return {**asked, "working": None, **whole, **asked, "listed": len(leaks), "spots": spots}


def _find(hands: HandBrowser, player: str, reference: Any, progress: Any) -> Leaks:
    return find_leaks(hands.data, player, reference, progress=progress)


def _drawn(leak: Leak, game: Game, archive: Archive) -> dict[str, Any]:
    """Return what the page draws of a spot: both mixes, the words of the actions and the numbers of the examples."""
    facing = int(leak.played.get("f", 0.0) + leak.reference.get("f", 0.0) > 0)
    files = [file for file, _, _ in leak.examples]
    lines = np.array([line for _, line, _ in leak.examples])
    numbers = archive.place(files, np.arange(len(files)), lines)
    return {
        "words": [label_word(letter, game, facing) for letter in game.labels],
        "mixes": [[shares[letter] for letter in game.labels] for shares in (leak.played, leak.reference)],
        "examples": [int(number) for number in numbers if number >= 0],
    }
