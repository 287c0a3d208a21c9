"""Profiles: every rate beside a count written out by hand from the betting, and styles found back."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from played import hand

from pipeline.agents.calibrated import fit_style
from pipeline.agents.names import resolve
from pipeline.arena.match import play_match
from pipeline.cli.main import group, main
from pipeline.dataset.load import load_decisions
from pipeline.formats.acpc import Hand
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.opponents.profiles import STATISTICS, Events, Rate, profiles
from pipeline.poker.game import Game, actions, builtin

GAMES = ("holdem.limit.2p.reverse_blinds", "holdem.nolimit.2p.reverse_blinds", "holdem.limit.3p", "leduc.limit.2p")


def _dataset(folder: Path, game: Game, hands: list[Hand]) -> Path:
    log = folder / "played.log"
    log.write_text("".join(f"{one}\n" for one in hands))
    ingest([str(log)], folder / "rows", options(game=game.name, strength=False), workers=1)
    return folder / "rows"


def _hands(game: Game, count: int, seed: int) -> list[Hand]:
    rng = random.Random(seed)
    names = ("anna", "bob", "carl")[: game.players]
    return [hand(game, rng, i, tuple(rng.sample(names, game.players))) for i in range(count)]


def _counted(game: Game, hands: list[Hand], who: str) -> dict[str, list[float]]:
    """[happened, chances] of every rate, walked action by action: no code of the package but its rules."""
    found: dict[str, list[float]] = {name: [0, 0] for name in STATISTICS}

    def count(name: str, happened: float) -> None:
        found[name][0] += happened
        found[name][1] += 1

    for one in hands:
        me, state = one.names.index(who), game.start()
        acted = voluntary = raised_before = saw_flop = False
        raisers: list[int] = []
        raises = Counter[int]()
        before_flop = continuing = None
        for kind, size in actions(one.betting):
            street, actor = state.round, state.actor
            if street == 1 and before_flop is None:
                before_flop = raisers[-1] if raisers else -1
            if actor == me:
                acted = acted or street == 0
                free = state.to_call == 0
                saw_flop = saw_flop or street >= 1
                if street == 0:
                    voluntary = voluntary or kind == 2 or (kind == 1 and not free)
                    raised_before = raised_before or kind == 2
                    if raises[0] == 1:
                        count("three_bet", kind == 2)
                    if raises[0] == 2 and me in raisers:
                        count("fold_to_three_bet", kind == 0)
                else:
                    if kind != 1 or not free:
                        count("aggression_frequency", kind == 2)
                    if street == 1 and raises[1] == 0 and before_flop == me:
                        count("c_bet", kind == 2)
                    if street == 1 and raises[1] == 1 and continuing is not None and continuing != me:
                        count("fold_to_c_bet", kind == 0)
            if kind == 2:
                if street == 1 and raises[1] == 0:
                    continuing = actor if actor == before_flop else None
                raisers.append(actor)
                raises[street] += 1
            state = state.apply(kind, size)
        if not acted and not saw_flop:
            continue
        if acted:
            count("vpip", voluntary)
            count("pfr", raised_before)
        stays = state.showdown and not state.folded[me]
        if saw_flop or (stays and game.rounds > 1):
            count("wtsd", stays)
        if stays:
            count("wsd", 1 if one.payoffs[me] > 0 else 0.5 if one.payoffs[me] == 0 else 0)
    return found


@pytest.mark.parametrize("name", GAMES)
def test_every_rate_is_what_a_walk_through_the_betting_counts(name: str, tmp_path: Path) -> None:
    game = builtin(name)
    hands = _hands(game, 400, seed=len(name))
    found = {one.agent: one for one in profiles(_dataset(tmp_path, game, hands))}
    assert set(found) == set(hands[0].names)
    for who, profile in found.items():
        expected = _counted(game, hands, who)
        assert {key: [rate.happened, rate.chances] for key, rate in profile.rates.items()} == expected


def test_groups_share_the_hands_out(tmp_path: Path) -> None:
    game = builtin("holdem.limit.3p")
    rows = _dataset(tmp_path, game, _hands(game, 300, seed=3))
    found = [one for one in profiles(rows, ["anna"], by=["position", "opponent", "time"]) if one.agent == "anna"]
    whole, groups = found[0], found[1:]
    assert whole.group == "all"
    for word in ("position", "opponent", "part"):
        parts = [one for one in groups if one.group.startswith(word)]
        assert len(parts) > 1
        assert sum(one.hands for one in parts) == whole.hands
        for name, rate in whole.rates.items():
            assert sum(one.rates[name].chances for one in parts) == rate.chances


def test_play_that_changes_in_mid_match_is_noticed_and_steady_play_is_not(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    cards = _hands(game, 1, seed=1)[0]
    patient = Hand(0, "f", cards.holes, (), (5.0, -5.0), ("bob", "anna"))
    bold = Hand(0, "rf", cards.holes, (), (-10.0, 10.0), ("bob", "anna"))
    changed = [(patient if i % 4 else bold) if i < 100 else (bold if i % 4 else patient) for i in range(200)]
    steady = [bold if i % 3 else patient for i in range(200)]
    p_values = []
    for place, hands in (("changed", changed), ("steady", steady)):
        (tmp_path / place).mkdir()
        rows = _dataset(tmp_path / place, game, [replace(one, number=i) for i, one in enumerate(hands)])
        drift = {one.statistic: one for one in profiles(rows, ["anna"])[0].drift}
        p_values.append(drift["vpip"].p_value)
        assert drift["c_bet"].p_value is None
    assert p_values[0] is not None
    assert p_values[1] is not None
    assert p_values[0] < 1e-6 < 0.5 < p_values[1]


@pytest.mark.parametrize("style", [(70, 30), (20, 80), (90, 60)])
def test_a_calibrated_player_is_found_back(style: tuple[int, int], tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    log = tmp_path / "match.log"
    agents = [resolve(name, game) for name in (f"@calibrated:{style[0]},{style[1]}", "@random")]
    play_match(agents, game, hands=1_500, seed=5, log=log)
    ingest([str(tmp_path)], tmp_path / "rows", options(strength=False), workers=1)
    rows = load_decisions(tmp_path / "rows", [f"calibrated-{style[0]}-{style[1]}"])
    found = fit_style(game, rows.rows, rows.action)
    assert found is not None
    assert abs(found.aggression - style[0]) <= 10
    assert abs(found.rationality - style[1]) <= 10
    assert found.log_loss < 0.9 * found.guess


def test_the_command_prints_a_table_json_and_csv(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    rows = _dataset(tmp_path, game, _hands(game, 200, seed=9))
    words = ["profile", "--data", str(rows), "--agent", "bob", "--by", "position", "--by", "street"]
    text = CliRunner().invoke(group, words, catch_exceptions=False).output
    assert "VPIP" in text
    assert "position 1" in text
    assert "river" in text
    listed = json.loads(CliRunner().invoke(group, [*words, "--json"], catch_exceptions=False).stdout)
    assert listed[0]["agent"] == "bob"
    assert listed[0]["hands"] == listed[1]["hands"] + listed[2]["hands"]
    assert 0 <= listed[0]["aggression"] <= 100
    table = list(
        csv.DictReader(
            io.StringIO(CliRunner().invoke(group, [*words, "--format", "csv"], catch_exceptions=False).stdout)
        )
    )
    assert float(table[0]["vpip"]) == pytest.approx(listed[0]["vpip"])
    assert int(table[0]["vpip_chances"]) == listed[0]["rates"]["vpip"]["chances"]


def test_somebody_who_is_not_there_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    rows = _dataset(tmp_path, game, _hands(game, 20, seed=2))
    with pytest.raises(SystemExit) as ended:
        main(["profile", "--data", str(rows), "--agent", "bobb"])
    assert ended.value.code == 1
    assert "did you mean bob" in capsys.readouterr().err


def test_hands_of_one_deal_are_no_independent_chances(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    found = []
    for copies in (1, 2):
        place = tmp_path / str(copies)
        place.mkdir()
        hands = [replace(one, number=i) for i, one in enumerate(_hands(game, 200, seed=4))]
        hands = [one for one in hands for _ in range(copies)]
        rows = _dataset(place, game, [replace(one, number=i) for i, one in enumerate(hands)])
        (profile,) = profiles(rows, ["anna"])
        found.append(profile)
    once, twice = found
    for name, rate in once.rates.items():
        double = twice.rates[name]
        assert double.chances == 2 * rate.chances
        assert double.design >= rate.design
    assert twice.rates["vpip"].design > 1.2
    assert twice.rates["vpip"].interval[0] < Rate(*twice.rates["vpip"][:2]).interval[0]


def test_every_chance_twice_is_worth_it_once() -> None:
    happened, deal = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), np.arange(5)
    alone = Events(np.arange(5), happened, deal)
    twins = Events(np.arange(10), np.repeat(happened, 2), np.repeat(deal, 2))
    assert alone.design() == pytest.approx(1)
    assert twins.design() == pytest.approx(2)
    assert twins.rate(np.ones(10, bool)).interval == pytest.approx(alone.rate(np.ones(5, bool)).interval)


def test_p_values_of_a_player_are_adjusted_for_their_number(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    (profile,) = profiles(_dataset(tmp_path, game, _hands(game, 400, seed=6)), ["anna"])
    raw = [drift.p_value for drift in profile.drift if drift.p_value is not None]
    adjusted = [drift.adjusted_p_value for drift in profile.drift if drift.p_value is not None]
    assert len(raw) > 3
    assert min(adjusted) == min(1.0, len(raw) * min(raw))
    assert all(later >= first for first, later in zip(raw, adjusted, strict=True))
    assert "adjusted_p_value" in profile.json()["drift"][0]
