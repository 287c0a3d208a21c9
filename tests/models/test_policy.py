"""Bundles at play: charts before the flop, models after, always legal; options and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.names import default_game, plain_name, resolve
from pipeline.arena.match import play_match
from pipeline.features.encoding import fit_features
from pipeline.features.patterns import find_pattern
from pipeline.features.vocabulary import Numbering
from pipeline.models.bundle import Bundle, StreetModel, save_bundle
from pipeline.models.charts import Chart, count_chart
from pipeline.models.loglinear import LogLinear
from pipeline.models.policy import masked
from pipeline.poker.game import Game, find_game
from pipeline.runtime.errors import PipelineError

LIMIT = "holdem.limit.2p.reverse_blinds"


@dataclass
class Recorder:
    """Plays at random and keeps what it saw."""

    game: Game
    name: str = "recorder"
    rows: list[Any] = field(default_factory=list)

    def probabilities(self, rows: Any) -> Any:
        self.rows.append(rows.copy())
        return resolve("@random", self.game).probabilities(rows)


def decisions(name: str, hands: int) -> tuple[Game, Any]:
    """A game and what random players see in some hands of it."""
    game = find_game(name)
    recorder = Recorder(game)
    others = [resolve("@random", game)] * (game.players - 1)
    play_match([recorder, *others], game, hands=hands, workers=1)
    return game, np.concatenate(recorder.rows)


def make_bundle(
    path: Path, name: str, streets: tuple[int, ...] | None = None, chart: bool = True, hands: int = 60
) -> Path:
    """A bundle of models with random weights on the features of few decisions, and a chart that always raises."""
    game, rows = decisions(name, hands)
    luck = np.random.default_rng(5)
    parts = []
    for street in range(game.rounds) if streets is None else streets:
        seen = rows[rows["street"] == street]
        features = fit_features(find_pattern("thesis"), seen, (street,))
        numbering, hashes = Numbering(), features.hashes(seen)
        numbering(hashes, np.empty(hashes.shape, np.int32))
        weights = luck.normal(0, 2, (numbering.size, len(game.labels)))
        parts.append(StreetModel(f"street{street}", (street,), LogLinear.of(features, numbering.keys(), weights)))
    if chart:
        labels = np.where(rows["legal"] >> 2 & 1, 2, 1).astype(np.uint8)
        parts.append(StreetModel("chart", (0,), count_chart(rows, labels, game.labels)))
    save_bundle(path, Bundle(game, tuple(game.labels), ("random",), tuple(parts)))
    return path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp("bundles") / "small", LIMIT, hands=4_000)


@pytest.mark.parametrize("name", [LIMIT, "holdem.nolimit.2p.reverse_blinds", "holdem.nolimit.3p", "leduc.limit.2p"])
@pytest.mark.parametrize("mode", ["sample", "argmax", "purify"])
def test_a_bundle_of_few_decisions_plays_every_state_that_can_be_reached(name: str, mode: str, tmp_path: Path) -> None:
    path = make_bundle(tmp_path / "few", name)
    game = find_game(name)
    players = [resolve(f"{path}:mode={mode}", game), *[resolve("@random", game)] * (game.players - 1)]
    match = play_match(players, game, hands=3_000, seed=2)  # the arena refuses NaN, what is illegal and sums beside 1
    assert np.isfinite(match.payoffs).all()


def test_the_chart_plays_before_the_flop_unless_told_otherwise(bundle: Path, tmp_path: Path) -> None:
    game, rows = decisions(LIMIT, 2_000)
    before = rows[(rows["street"] == 0) & (rows["legal"] == 7)]
    own = resolve(str(bundle), game).probabilities(before)
    assert (own.argmax(axis=1) == 2).all()  # as counted
    model = resolve(f"{bundle}:chart=model", game).probabilities(before)
    assert not np.allclose(own, model)
    calls = Chart(np.array([0]), np.tile([0.0, 1000.0, 0.0], (1, 169, 1)), "fcr")
    file = tmp_path / "calls.chart"
    file.write_text(calls.to_text())
    assert (resolve(f"{bundle}:chart={file}", game).probabilities(before).argmax(axis=1) == 1).all()
    other = make_bundle(tmp_path / "other", LIMIT, streets=(), hands=4_000)
    assert np.allclose(resolve(f"{bundle}:chart={other}", game).probabilities(before), own)
    aces = before[(before["start"] == 0) & (before["betting_codes"][:, 0] == 0)]
    selby = resolve(f"{bundle}:chart=selby", game).probabilities(aces)
    assert len(aces) > 0
    assert (selby[:, 0] < 0.01).all()  # nobody folds aces
    after = rows[rows["street"] > 0]
    same = [resolve(f"{bundle}:chart={chart}", game).probabilities(after) for chart in ("own", "model", str(file))]
    assert np.array_equal(same[0], same[1])
    assert np.array_equal(same[0], same[2])


def test_argmax_is_deterministic_and_against_itself_exactly_zero(bundle: Path) -> None:
    game = default_game([str(bundle), "@call"])
    assert game.name == LIMIT
    player = resolve(f"{bundle}:mode=argmax", game)
    match = play_match([player, player], game, hands=2_000, seed=3)
    assert not match.samples_mbb.any()
    assert match.names == ("small-mode-argmax", "small-mode-argmax.2")
    assert plain_name(f"{bundle}:mode=argmax") == "small-mode-argmax"  # what tables call it


def test_what_a_bundle_cannot_play_is_refused_with_a_sentence(bundle: Path, tmp_path: Path) -> None:
    game = find_game(LIMIT)
    gap = make_bundle(tmp_path / "gap", LIMIT, streets=(1, 3))
    bare = make_bundle(tmp_path / "bare", LIMIT, streets=(1, 2, 3), chart=False)
    for text, played, message in (
        (str(bundle), find_game("holdem.nolimit.3p"), r"trained for holdem\.limit.* cannot play holdem\.nolimit\.3p"),
        (str(gap), game, "no model for the turn, only for preflop, flop, river"),
        (str(bare), game, "no model for the preflop.*chart="),
        (f"{bare}:chart=own", game, "no chart of its own"),
        (f"{bare}:chart=model", game, "no preflop model"),
        (f"{bundle}:chart={bare}", game, "no chart to lend"),
        (f"{bundle}:chart=nobody", game, "no chart 'nobody'"),
        (f"{bundle}:mode=argmx", game, "did you mean argmax"),
        (f"{bundle}:mod=argmax", game, "did you mean mode"),
        (f"{bundle}:mode=purify,threshold=2", game, "between 0 and 1"),
        (f"{bundle}:mode=argmax,x", game, "'x' is not key=value"),
        (str(tmp_path / "nowhere"), game, "no bundle at"),
    ):
        with pytest.raises(PipelineError, match=message):
            resolve(text, played)


def test_a_bundle_plays_from_its_zip_file_as_from_its_folder(bundle: Path, tmp_path: Path) -> None:
    import shutil

    zipped = shutil.make_archive(str(tmp_path / "small"), "zip", bundle)
    game, rows = decisions(LIMIT, 60)
    both = [resolve(str(path), game).probabilities(rows) for path in (bundle, zipped)]
    assert np.array_equal(both[0], both[1])


values = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=7, max_size=7)


@given(values, st.integers(0, 127), st.floats(0, 1))
def test_whatever_a_model_says_what_is_played_is_a_mix_of_legal_labels(
    said: list[float], legal: int, threshold: float
) -> None:
    legal |= 2  # calling is always legal
    p = masked(np.array([said]), np.array([legal]), threshold)[0]
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1)
    assert (p >= 0).all()
    assert not any(value > 0 and not legal >> label & 1 for label, value in enumerate(p))
    assert all(value == 0 or value >= threshold * 0.999 or value == max(p) for value in p)


def test_purifying_drops_what_is_below_the_threshold_and_keeps_the_rest_in_proportion() -> None:
    p = masked(np.array([[0.1, 0.3, 0.6], [0.3, 0.3, 0.4]]), np.array([7, 7]), 0.2)
    assert p.tolist() == [pytest.approx([0, 1 / 3, 2 / 3]), pytest.approx([0.3, 0.3, 0.4])]
    assert masked(np.array([[0.3, 0.3, 0.4]]), np.array([7]), 1.0).tolist() == [[0, 0, 1]]
