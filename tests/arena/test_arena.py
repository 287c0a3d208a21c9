"""The arena against an independent implementation of the rules, its own logs, and what must come out of a match."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspiel
import pytest
from click.testing import CliRunner

from pipeline.agents.names import resolve
from pipeline.agents.protocol import FinishedHands, Learner
from pipeline.arena.duplicate import seatings
from pipeline.arena.match import play_match
from pipeline.cli.match import command
from pipeline.dataset.decisions import observation
from pipeline.evaluation.truth import read_truth
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.cards import NO_CARD
from pipeline.poker.game import Game, find_game
from pipeline.poker.rules import S_SPENT
from pipeline.runtime.errors import PipelineError

LIMIT, NOLIMIT = "holdem.limit.2p.reverse_blinds", "holdem.nolimit.2p.reverse_blinds"
HOLDEM = (LIMIT, NOLIMIT, "holdem.limit.3p", "holdem.nolimit.3p")
SMALL = ("kuhn.limit.2p", "kuhn.limit.3p", "leduc.limit.2p")


def agents(names: str, game: Game) -> list[Any]:
    return [resolve(name, game) for name in names.split()[: game.players]]


def states(path: Path) -> Iterator[list[str]]:
    for line in path.read_text().splitlines():
        if line.startswith("STATE:"):
            yield line.split(":")[1:]


def check(game: Game, path: Path, legality_of: int) -> int:
    """Replay a log with open_spiel's copy of the ACPC rules: legality of the first hands, payoffs of all."""
    oracle = pyspiel.universal_poker.load_universal_poker_from_acpc_gamedef(game.text)
    if game.nolimit:
        oracle = pyspiel.load_game("universal_poker", {**oracle.get_parameters(), "bettingAbstraction": "fullgame"})

    def numbers(text: str) -> list[int]:
        found = re.findall("[2-9TJQKA][cdhs]", text)
        return [
            ("23456789TJQKA".index(r) - 13 + game.ranks) * game.suits + "cdhs".index(s) - 4 + game.suits
            for r, s in found
        ]

    count = 0
    for hand, betting, cards, payoffs, _ in states(path):
        hole, _, board = cards.partition("/")
        coming = iter(numbers(board))
        state = oracle.new_initial_state()
        for card in numbers(hole):
            state.apply_action(card)
        for letter in re.findall(r"[fc]|r\d*", betting):
            while state.is_chance_node():
                state.apply_action(next(coming))
            action = "fc".index(letter) if letter in "fc" else int(letter[1:] or 2)
            if int(hand) < legality_of:
                assert action in state.legal_actions(), (hand, betting)
            state.apply_action(action)
        while state.is_chance_node():
            state.apply_action(next(coming))
        assert state.is_terminal()
        assert next(coming, None) is None
        assert [float(x) for x in payoffs.split("|")] == pytest.approx(state.returns(), abs=1e-5)
        count += 1
    return count


@pytest.mark.parametrize("name", HOLDEM + SMALL)
def test_an_independent_implementation_finds_every_hand_legal_and_rightly_paid(name: str, tmp_path: Path) -> None:
    game = find_game(name)
    match = play_match(agents("@random @chump:maniac @random", game), game, hands=900, seed=3, log=tmp_path / "x")
    assert sum(check(game, path, 60) for path in match.logs) == match.hands >= 900


@pytest.mark.long
@pytest.mark.parametrize("name", HOLDEM)
def test_a_hundred_thousand_hands_are_legal_and_rightly_paid(name: str, tmp_path: Path) -> None:
    game = find_game(name)
    names = "@random @chump:gambler @chump:maniac"
    match = play_match(agents(names, game), game, hands=100_000, seed=4, log=tmp_path / "x")
    assert sum(check(game, path, 5_000) for path in match.logs) == match.hands >= 100_000


@pytest.mark.parametrize("name", HOLDEM + SMALL)
def test_chips_are_conserved(name: str) -> None:
    game = find_game(name)
    match = play_match(agents("@random @chump:gambler @raise", game), game, hands=3_000)
    assert np.abs(match.payoffs.sum(axis=2)).max() < 1e-6


def test_the_same_seed_gives_the_same_match_whatever_the_blocks_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = find_game(LIMIT)
    players = agents("@random @chump:20,40,40", game)
    for name, threads, block in (("a", 1, 2048), ("b", 2, 64), ("c", 3, 6)):
        monkeypatch.setattr("pipeline.arena.match.BLOCK_HANDS", block)
        play_match(
            players,
            game,
            hands=1_000,
            seed=8,
            log=tmp_path / name / "x",
            probabilities=True,
            workers=threads,
        )
    for file in ("x.0.log", "x.1.log"):
        texts = {(tmp_path / name / file).read_bytes() for name in "abc"}
        assert len(texts) == 1
    tables = [pq.read_table(tmp_path / name / "x.probs.parquet") for name in "abc"]
    sorts = [table.sort_by([(key, "ascending") for key in ("file", "hand", "k")]) for table in tables]
    assert sorts[0].equals(sorts[1])
    assert sorts[0].equals(sorts[2])


def test_another_seed_gives_another_match() -> None:
    game = find_game(LIMIT)
    matches = [play_match(agents("@random @random", game), game, hands=200, seed=seed) for seed in (1, 2)]
    assert not np.array_equal(matches[0].payoffs, matches[1].payoffs)


@pytest.mark.parametrize("name", ["@call", "@fold", "@raise"])
@pytest.mark.parametrize("game_name", HOLDEM)
def test_a_deterministic_agent_against_itself_comes_out_at_exactly_zero(name: str, game_name: str) -> None:
    game = find_game(game_name)
    match = play_match(agents(f"{name} {name} {name}", game), game, hands=600)
    assert np.abs(match.samples_mbb).max() < 1e-9


def test_a_mixing_agent_against_itself_comes_out_at_zero_within_the_interval() -> None:
    game = find_game(LIMIT)
    match = play_match(agents("@random @random", game), game, hands=20_000, seed=5)
    assert match.ci95() > 0
    assert abs(match.mbb_per_hand()) < 1.5 * match.ci95()


def test_shared_luck_narrows_the_interval_of_similar_agents_and_keeps_its_centre() -> None:
    game = find_game(LIMIT)
    players = agents("@chump:10,50,40 @chump:12,48,40", game)
    apart = play_match(players, game, hands=20_000, seed=1)
    together = play_match(players, game, hands=20_000, seed=1, shared_luck=True)
    assert together.ci95() < apart.ci95() / 2
    assert abs(together.mbb_per_hand() - apart.mbb_per_hand()) < 1.5 * apart.ci95()
    itself = play_match(agents("@random @random", game), game, hands=2_000, shared_luck=True)
    assert not itself.samples_mbb.any()


def test_always_folding_loses_750_thousandths_of_a_big_blind() -> None:
    game = find_game(LIMIT)
    match = play_match(agents("@fold @raise", game), game, hands=400)
    assert match.mbb_per_hand() == -750.0
    assert match.ci95() == 0.0


def test_every_card_is_dealt_about_equally_often(tmp_path: Path) -> None:
    game = find_game(LIMIT)
    play_match(agents("@call @call", game), game, hands=40_000, log=tmp_path / "x")
    counts: dict[str, int] = {}
    for _, _, cards, _, _ in states(tmp_path / "x.0.log"):
        dealt = re.findall("..", re.sub(r"[|/]", "", cards))
        assert len(set(dealt)) == 9
        for card in dealt:
            counts[card] = counts.get(card, 0) + 1
    expected = 20_000 * 9 / 52
    assert len(counts) == 52
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 100  # chi-square, 51 degrees of freedom


def test_three_players_play_every_deal_in_all_six_orders(tmp_path: Path) -> None:
    game = find_game("holdem.limit.3p")
    match = play_match(agents("@call @call @call", game), game, hands=60, log=tmp_path / "x.log")
    assert match.payoffs.shape == (10, 6, 3)
    assert [path.name for path in match.logs] == [f"x.{seating}.log" for seating in range(6)]
    played = [list(states(path)) for path in match.logs]
    assert all([hand[2] for hand in one] == [hand[2] for hand in played[0]] for one in played)
    short = {"call": "A", "call.2": "B", "call.3": "C"}
    orders = [["".join(short[name] for name in hand[4].split("|")) for hand in one[:3]] for one in played]
    assert orders[0] == ["ABC", "BCA", "CAB"]  # everybody moves one position with each hand
    assert [one[0] for one in orders] == ["ABC", "BCA", "CAB", "ACB", "CBA", "BAC"]


def test_two_players_change_seats_once_and_more_than_three_only_move_round() -> None:
    assert seatings(2).tolist() == [[0, 1], [1, 0]]
    assert seatings(4).tolist() == [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]


@pytest.mark.parametrize("name", [LIMIT, "holdem.nolimit.3p"])
def test_a_log_reads_as_the_dealer_writes_it_and_its_score_is_the_sum_of_its_hands(name: str, tmp_path: Path) -> None:
    game = find_game(name)
    match = play_match(agents("@random @raise @chump", game), game, hands=300, seed=6, log=tmp_path / "demo")
    totals = np.zeros(game.players)
    for seating, path in enumerate(match.logs):
        lines = path.read_text().splitlines()
        count = match.hands // len(match.logs)
        assert lines[:4] == [
            f"# name/game/hands/seed demo.{seating} {name}.game {count} 6",
            "#--t_response 600000",
            "#--t_hand 600000",
            "#--t_per_hand 7000",
        ]
        assert [int(hand[0]) for hand in states(path)] == list(range(count))
        sums = dict.fromkeys(match.names, 0.0)
        for _, _, _, payoffs, names in states(path):
            for won, player in zip(payoffs.split("|"), names.split("|"), strict=True):
                sums[player] += float(won)
        scores, players = (part.split("|") for part in lines[-1].removeprefix("SCORE:").split(":"))
        assert players == [match.names[agent] for agent in seatings(game.players)[seating]]
        assert [float(x) for x in scores] == pytest.approx([sums[player] for player in players], abs=1e-3)
        totals += [sums[player] for player in match.names]
    assert totals == pytest.approx(match.payoffs.sum(axis=(0, 1)), abs=1e-3)


def test_probabilities_are_those_of_each_logged_decision_and_what_was_played_has_one(tmp_path: Path) -> None:
    game = find_game(NOLIMIT)
    players = agents("@chump:20,50,30 @random", game)
    match = play_match(players, game, hands=100, seed=2, log=tmp_path / "x", probabilities=True)
    table = pq.read_table(tmp_path / "x.probs.parquet").to_pylist()
    known = {(row["file"], row["hand"], row["k"]): [row[label] for label in game.labels] for row in table}
    assert len(known) == len(table)
    seen = 0
    for path in match.logs:
        for hand, betting, cards, _, names in states(path):
            hole, _, board = cards.partition("/")
            letters = re.findall(r"[fc/]|r\d+", betting)
            state, k = game.start(), 0
            for i, letter in enumerate(letters):
                if letter == "/":
                    continue
                held = hole.split("|")[state.actor]
                row = observation(
                    game,
                    "".join(letters[:i]),
                    state.actor,
                    [acpc_card(held[j : j + 2]) for j in (0, 2)],
                    [acpc_card(card) for card in re.findall("..", board.replace("/", ""))][: game.visible(state.round)],
                )
                player = players[match.names.index(names.split("|")[state.actor])]
                assert known[path.name, int(hand), k] == pytest.approx(player.probabilities(row)[0].tolist(), abs=1e-6)
                action = "fcr".index(letter[0]), int(letter[1:] or 0)
                assert known[path.name, int(hand), k][state.label_of(*action)] > 0
                state = state.apply(*action)
                k += 1
                seen += 1
    assert seen == len(table)


def acpc_card(text: str) -> int:
    return "23456789TJQKA".index(text[0]) * 4 + "cdhs".index(text[1])


@dataclass
class Watcher:
    """Calls, and remembers what it was shown."""

    game: Game
    name: str = "watcher"
    interval: int = 10
    begun: int = 0
    hands: list[FinishedHands] = field(default_factory=list)

    def probabilities(self, rows: Any) -> Any:
        return resolve("@call", self.game).probabilities(rows)

    def begin(self) -> None:
        self.begun += 1

    def seen(self, hands: FinishedHands) -> None:
        self.hands.append(hands)


def test_a_learner_sees_hands_in_order_and_only_the_cards_that_a_showdown_shows() -> None:
    game = find_game("holdem.limit.3p")
    watcher = Watcher(game)
    assert isinstance(watcher, Learner)
    match = play_match([watcher, *agents("@random @chump", game)[:2]], game, hands=300, seed=7)
    assert watcher.begun == 1
    assert [len(hands.position) for hands in watcher.hands] == [6] * 50
    mine = np.concatenate([hands.payoffs[np.arange(len(hands.position)), hands.position] for hands in watcher.hands])
    assert np.array_equal(mine, match.payoffs[:, :, 0].ravel())
    for hands in watcher.hands:
        shown = hands.hole[:, :, 0] != NO_CARD
        folded = hands.states[:, [7]] >> np.arange(3) & 1 == 1
        own = hands.seats == 0
        assert (own.argmax(axis=1) == hands.position).all()
        assert shown[own].all()
        assert not shown[folded & ~own].any()
        showdown = (~folded).sum(axis=1) > 1
        assert (shown[showdown] >= ~folded[showdown]).all()
        assert not (shown & ~own)[~showdown].any()
        spent = hands.states[:, S_SPENT : S_SPENT + 3]
        assert (hands.payoffs >= -spent).all()


def test_an_agent_that_plays_what_is_illegal_is_caught() -> None:
    game = find_game(LIMIT)
    wrong = Watcher(game, interval=2048)
    wrong.probabilities = lambda rows: np.tile([0.0, 0.0, 1.0], (len(rows), 1))  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="watcher gives"):
        play_match([wrong, wrong], game, hands=10)


def test_what_cannot_be_played_is_refused_with_a_sentence(tmp_path: Path) -> None:
    game = find_game(LIMIT)
    for names, text in (
        ("@cal @call", "did you mean @call"),
        ("@raise:h @call", "raises of holdem.limit"),
        ("@call:3 @call", "no arguments"),
        ("@chump:manic @call", "did you mean maniac"),
        ("@chump:1,2 @call", "3 numbers"),
    ):
        with pytest.raises(PipelineError, match=text):
            agents(names, game)
    with pytest.raises(PipelineError, match="for 2 players, not 1"):
        play_match(agents("@call", game), game, hands=2)
    with pytest.raises(PipelineError, match=r"plays holdem\.nolimit"):
        play_match(agents("@call @call", find_game(NOLIMIT)), game, hands=2)
    with pytest.raises(PipelineError, match="--log"):
        play_match(agents("@call @call", game), game, hands=2, probabilities=True)


def test_an_interrupted_match_leaves_no_log(tmp_path: Path) -> None:
    game = find_game(LIMIT)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_match(agents("@call @call", game), game, hands=10, log=tmp_path / "x", probabilities=True, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_one_object(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        command, ["@call", "@raise", "--hands", "100", "--json", "--log", str(tmp_path / "x")], catch_exceptions=False
    )
    found = json.loads(run.stdout)
    assert found["a"] == "@call"
    assert found["b"] == "@raise"
    assert found["hands"] == 100
    assert {"mbb_per_hand", "ci95", "seconds"} <= set(found)
    assert [Path(path).name for path in found["logs"]] == ["x.0.log", "x.1.log"]
    single = CliRunner().invoke(command, ["@call", "@raise", "--hands", "2", "--json"], catch_exceptions=False)
    assert json.loads(single.stdout, parse_constant=pytest.fail)["ci95"] is None  # one deal has no interval
    text = CliRunner().invoke(command, ["@call", "@call", "@call", "--hands", "12"], catch_exceptions=False).output
    assert "12 hands of holdem.limit.3p" in text


@pytest.mark.parametrize("name", [LIMIT, "holdem.nolimit.3p", "leduc.limit.2p"])
def test_a_log_written_is_a_log_ingested_with_the_same_payoffs_and_probabilities(name: str, tmp_path: Path) -> None:
    game = find_game(name)
    names = agents("@random @chump:gambler @random", game)
    match = play_match(names, game, hands=600, seed=9, log=tmp_path / "logs" / "x", probabilities=True)
    summary = ingest(match.logs, tmp_path / "rows", options(strength=False))
    assert summary.hands == match.hands
    assert summary.rejected == 0
    totals = np.zeros(match.payoffs.shape)
    for row in ds.dataset(tmp_path / "rows" / "hands").to_table().to_pylist():
        seating = int(row["file"].split(".")[-2])
        for player, won in zip(row["names"].split("|"), row["payoffs"].split("|"), strict=True):
            totals[row["hand"], seating, match.names.index(player)] = float(won)
    assert totals == pytest.approx(match.payoffs, abs=1e-5)
    truth = read_truth(tmp_path / "logs" / "x.probs.parquet", game.labels)
    rows = ds.dataset(tmp_path / "rows" / "decisions").to_table(["file", "hand", "k", "action"]).to_pydict()
    files = sorted(set(rows["file"]))
    found = truth.find(
        files, np.array([files.index(f) for f in rows["file"]]), *map(np.array, (rows["hand"], rows["k"]))
    )
    assert len(found) == summary.decisions == len(truth.keys)
    assert not np.isnan(found).any()


def test_the_seconds_of_a_match_leave_out_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([10.0, 4000.0])
    monkeypatch.setattr("pipeline.arena.match.seconds_compiling", lambda: next(told))
    game = find_game("kuhn.limit.2p")
    assert play_match([resolve("@call", game), resolve("@fold", game)], game, hands=10).seconds == 1e-6
