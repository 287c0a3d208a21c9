"""Cards that nobody saw: rows with other cards, and draws that settle on what the shown hands and the deal say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks._hidden_cards import KEPT_DRAWS, HandRows, draw_hidden, with_cards
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.features.patterns import parse_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.kinds import Model
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import builtin
from pipeline.training.tasks import Examples, Task
from pipeline.training.trainers import train_model

GAME = builtin("holdem.nolimit.2p.reverse_blinds")
TEN = 8
"""the rank of a ten"""


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> list[Decisions]:
    folder = tmp_path_factory.mktemp("match")
    agents = [resolve("@call", GAME), resolve("@random", GAME)]
    match = play_match(agents, GAME, hands=1500, seed=4, log=folder / "m")
    ingest(match.logs, folder / "rows", options(agents=[match.names[1]], strength=False))
    return [load_decisions(folder / "rows", None, [street]) for street in STREETS]


def numbered(found: Decisions) -> HandRows:
    """The rows of a street, the hands numbered as they come."""
    keys = np.stack([found.file.astype(np.int64), found.line.astype(np.int64)], axis=1)
    return HandRows(found.rows, found.action, np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1))


def test_rows_with_their_own_cards_are_what_ingest_wrote(streets: list[Decisions]) -> None:
    for found in streets:
        own = numbered(found)
        holes = np.full((own.hand.max() + 1, 2), NO_CARD, np.uint8)
        bare = own._replace(rows=with_cards(GAME.rules, own, holes))
        assert (bare.rows["hole"] == NO_CARD).all()
        assert (bare.rows["name"] == 0).all()
        assert np.array_equal(bare.rows["board"], own.rows["board"])
        holes[own.hand] = own.rows["hole"]
        assert np.array_equal(with_cards(GAME.rules, bare, holes), own.rows)


def test_hidden_hands_of_a_player_who_folds_low_cards_are_drawn_low(streets: list[Decisions]) -> None:
    whole = numbered(streets[0])
    first = np.unique(whole.hand, return_index=True)[1]
    rows = whole.rows[first]
    low = rows["high"] < TEN
    action = np.where(low, 0, 1).astype(np.uint8)
    rows["legal"] |= 1
    luck = np.random.default_rng(2)
    shown = ~low & (luck.random(len(low)) < 0.5)
    own = HandRows(rows, action, np.arange(len(rows)))
    blind = with_cards(GAME.rules, own, np.where(shown[:, None], rows["hole"], NO_CARD).astype(np.uint8))
    trained: list[Any] = []

    def fit(street: int, some: Any) -> Model:
        trained.append(some)
        pattern = parse_pattern("high\nbetting\n")
        task = Task(Examples(some, action), None, pattern, tuple(GAME.labels), (street,))
        return train_model("l-bfgs", task).model

    draws = draw_hidden([own._replace(rows=blind)], shown, GAME.rules, fit, rounds=10)
    assert len(draws) == KEPT_DRAWS
    assert len(trained) == 10
    assert not (trained[0]["hole"] == NO_CARD).any()
    for holes in draws:
        assert np.array_equal(holes[shown], rows["hole"][shown])
        assert (holes[:, 0] != holes[:, 1]).all()
    high = np.maximum(*(draws[-1] >> 2).T)
    before = (np.maximum(trained[0]["high"], 0) < TEN)[low].mean()
    assert before < 0.45
    assert (high < TEN)[low].mean() > 0.8
    assert (high < TEN)[~low & ~shown].mean() < 0.25
    again = draw_hidden([own._replace(rows=blind)], shown, GAME.rules, fit, rounds=10)
    assert np.array_equal(draws, again)


def test_no_hidden_hand_holds_a_card_of_the_board(streets: list[Decisions]) -> None:
    own = numbered(streets[3])
    shown = np.zeros(own.hand.max() + 1, np.bool_)

    def fit(street: int, some: Any) -> Model:
        task = Task(Examples(some, own.action), None, parse_pattern("betting\n"), tuple(GAME.labels), (3,))
        return train_model("frequency", task).model

    for holes in draw_hidden([own], shown, GAME.rules, fit, rounds=2):
        assert not (holes[own.hand][:, :, None] == own.rows["board"][:, None, :]).any()
