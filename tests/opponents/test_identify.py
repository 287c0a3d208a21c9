"""Who plays here: exact posteriors of small games by brute force, unknown cards summed out, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from mixing_agents import Copy, Hashed

import pipeline as p
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.arena.match import play_match
from pipeline.cli.main import group
from pipeline.dataset.decisions import observation
from pipeline.formats.acpc import Hand, parse_hand
from pipeline.opponents.identify import SMOOTHING, hand_likelihoods, identify_players, naming_rate, posterior_of
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import Game, actions, builtin
from pipeline.runtime.errors import PipelineError

TEACHER = str(Path(__file__).parents[2] / "models" / "teacher")


def log_of(folder: Path, first: Agent, other: Agent, hands: int, seed: int = 0) -> list[Path]:
    """The logs of a match."""
    return list(play_match([first, other], first.game, hands=hands, seed=seed, log=folder / "x").logs)


def hands_in(logs: list[Path]) -> list[Hand]:
    """The hands of logs."""
    lines = [line for log in logs for line in log.read_text().splitlines() if line.startswith("STATE:")]
    return [parse_hand(line) for line in lines]


def likelihood(agent: Agent, hand: Hand, position: int, hole: list[int], board: list[int]) -> float:
    """The smoothed probability of a player's actions with these hole cards; 1 without any decision."""
    state, product = agent.game.start(), 1.0
    for action, size in actions(hand.betting):
        if state.actor == position:
            row = observation(agent.game, state.betting, position, hole, board[: agent.game.visible(state.round)])
            legal = int(state.legal_labels).bit_count()
            mix = agent.probabilities(row)[0][state.label_of(action, size)]
            product *= (1 - SMOOTHING) * mix + SMOOTHING / legal
        state = state.apply(action, size)
    return product


def brute_force(game: Game, agents: list[Agent], hands: list[Hand], player: str, spectator: bool) -> np.ndarray:
    """The sum of ln P(hand | agent), every holding enumerated where the cards are not seen."""
    total = np.zeros(len(agents))
    for hand in hands:
        position = hand.names.index(player)
        board = parse_cards("".join(hand.board)).tolist()
        is_open = not spectator or "f" not in hand.betting
        holes = [parse_cards(text).tolist() for text in hand.holes]
        seen = board + (holes[1 - position] if is_open else [])
        own = [holes[position]] if is_open else [[card] for card in game.deck.tolist() if card not in seen]
        for column, agent in enumerate(agents):
            total[column] += np.log(np.mean([likelihood(agent, hand, position, hole, board) for hole in own]))
    return total


@pytest.mark.parametrize("name", ["kuhn.limit.2p", "leduc.limit.2p"])
@pytest.mark.parametrize("spectator", [False, True])
def test_the_posterior_is_that_of_all_holdings_enumerated(tmp_path: Path, name: str, spectator: bool) -> None:
    game = builtin(name)
    agents: list[Agent] = [Hashed(game, seed, f"hashed-{seed}") for seed in range(3)]
    logs = log_of(tmp_path, agents[1], agents[0], 60)
    [first, other] = identify_players(logs, agents, spectator=spectator)
    for found in (first, other):
        expected = brute_force(game, agents, hands_in(logs), found.player, spectator)
        np.testing.assert_allclose(list(found.log_likelihood.values()), expected, rtol=1e-9)
        np.testing.assert_allclose(list(found.posterior.values()), posterior_of(expected), rtol=1e-9)
        assert (found.summed_out > 0) == spectator
        assert found.likeliest == found.player


def test_holdings_of_holdem_are_those_that_the_seen_cards_leave(tmp_path: Path) -> None:
    game = builtin("holdem.limit.2p.reverse_blinds")
    agents: list[Agent] = [Hashed(game, seed, f"hashed-{seed}") for seed in range(2)]
    logs = log_of(tmp_path, *agents, 4)
    open_cards, hidden = (
        identify_players(logs, agents, players=["hashed-0"], spectator=flag)[0] for flag in (False, True)
    )
    folded = [hand for hand in hands_in(logs) if "f" in hand.betting]
    assert open_cards.summed_out == 0 < hidden.summed_out <= len(folded)
    nats = hand_likelihoods(logs, agents, players=["hashed-0"], spectator=True)["hashed-0"]
    assert nats.sum(axis=0) == pytest.approx(np.array(list(hidden.log_likelihood.values())))


def test_nobody_is_ruled_out_by_one_decision(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    logs = log_of(tmp_path, Hashed(game), Hashed(game, 1, "other"), 20)
    [found, _] = identify_players(logs, ["@fold", "@raise"])
    assert np.isfinite(list(found.log_likelihood.values())).all()


def test_an_agent_whose_answers_are_no_probabilities_is_refused(tmp_path: Path) -> None:
    class Broken(Hashed):
        def probabilities(self, rows: Any) -> Any:
            return np.full((len(rows), 3), self.seed)

    game = builtin("kuhn.limit.2p")
    logs = log_of(tmp_path, Hashed(game), Hashed(game, 1, "other"), 20)
    for answer in (float("nan"), -1.0, 2.0):
        with pytest.raises(PipelineError, match="gives no probability"):
            identify_players(logs, [Hashed(game), Broken(game, answer, "broken")])  # type: ignore[arg-type]


def test_more_hands_name_the_player_more_often(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    source = Hashed(game)
    agents: list[Agent] = [source, Copy(source, Hashed(game, 1), 0.5)]
    nats = hand_likelihoods(log_of(tmp_path, *agents, 4000), agents)
    for truth, agent in enumerate(agents):
        rates = [naming_rate(nats[agent.name], truth, hands) for hands in (1, 10, 100)]
        assert None not in rates
        assert rates == sorted(rates)
        assert rates[-1] > 0.9 > rates[0] > 0.4
    assert naming_rate(nats["copy"], 0, 10**6) is None


def test_posteriors_after_the_first_hands_are_listed(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    agents: list[Agent] = [Hashed(game), Hashed(game, 1, "other")]
    logs = log_of(tmp_path, *agents, 200)
    [found] = identify_players(logs, agents, players=["other"])
    nats = hand_likelihoods(logs, agents)["other"]
    assert list(found.after) == [1, 10, 100]
    assert list(found.after[10].values()) == pytest.approx(posterior_of(nats[:10].sum(axis=0)).tolist())


def test_a_dataset_does_as_well_as_its_logs(tmp_path: Path) -> None:
    from pipeline.ingestion.run import ingest

    game = builtin("kuhn.limit.2p")
    agents: list[Agent] = [Hashed(game), Hashed(game, 1, "other")]
    logs = log_of(tmp_path, *agents, 50)
    ingest(logs, tmp_path / "rows")
    assert identify_players([tmp_path / "rows"], agents) == identify_players(logs, agents)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--among", "@call"], "at least two agents"),
        (["--among", "@call", "--among", "@call"], "named twice"),
        (["--among", "@call", "--among", "@raise", "--agent", "other2"], "no player in these logs is called 'other2'"),
        (
            ["--among", "@call", "--among", TEACHER],
            "was trained for holdem.limit.2p.reverse_blinds and cannot play kuhn",
        ),
        (["--among", "@call", "--among", "exec:./bot.sh"], "bot.sh"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    game = builtin("kuhn.limit.2p")
    logs = log_of(tmp_path, Hashed(game), Hashed(game, 1, "other"), 10)
    with pytest.raises(PipelineError, match=sentence):
        CliRunner().invoke(group, ["identify", *map(str, logs), *arguments], catch_exceptions=False)


def test_logs_without_hands_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_text("# name/game/hands/seed x kuhn.limit.2p.game 0 1\n")
    with pytest.raises(PipelineError):
        identify_players([tmp_path / "empty.log"], ["@call", "@raise"])


def test_the_command_checks_players_by_their_names(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    logs = log_of(tmp_path, resolve("@raise", game), resolve("@random", game), 300)
    arguments = ["identify", *map(str, logs), "--among", "@raise", "--among", "@random", "--check"]
    printed = CliRunner().invoke(group, arguments, catch_exceptions=False)
    assert "named right after" in printed.output
    results = json.loads(CliRunner().invoke(group, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert [(result["player"], result["truth"]) for result in results] == [("raise", "@raise"), ("random", "@random")]
    for result in results:
        assert result["likeliest"] == result["truth"]
        assert sum(result["posterior"].values()) == pytest.approx(1.0)
        assert [one["hands"] for one in result["naming_rates"]] == [1, 10, 100]
        assert result["naming_rates"][-1]["rate"] == 1.0


def test_rates_of_a_copy_of_these_very_logs_are_refused(tmp_path: Path) -> None:
    p.match("@chump:maniac", "@chump:rock", hands=200, log=tmp_path / "logs" / "a")
    p.ingest(tmp_path / "logs", tmp_path / "rows", strength=False)
    p.train(tmp_path / "rows", tmp_path / "copy", agent="chump-maniac", algorithm="frequency")
    copy, other = str(tmp_path / "copy"), "@chump:rock"
    with pytest.raises(PipelineError, match=r"copy was trained on 2 of these logs.*--allow-overlap"):
        p.identify(tmp_path / "logs", copy, other, check=True)
    arguments = ["identify", str(tmp_path / "logs"), "--among", copy, "--among", other]
    assert "was trained on 2 of these logs" in " ".join(
        CliRunner().invoke(group, arguments, catch_exceptions=False).output.split()
    )
    allowed = p.identify(tmp_path / "logs", copy, other, check=True, allow_overlap=True)
    assert allowed[0].json()["overlap"] == {copy: 2, other: 0}
    p.match("@chump:maniac", "@chump:rock", hands=200, seed=9, log=tmp_path / "fresh" / "b")
    [fresh, *_] = p.identify(tmp_path / "fresh", copy, other, check=True)
    assert fresh.overlap == {copy: 0, other: 0}
