"""The adaptive agent: what finished hands say, what it turns to, and that it works wherever agents play."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from pipeline.agents.adaptive import SMOOTHING, Adaptive, small_portfolio
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Learner
from pipeline.api.overview import describe
from pipeline.arena.duplicate import seatings
from pipeline.arena.lockstep import HandBlock
from pipeline.arena.match import play_match
from pipeline.arena.table import Sitting
from pipeline.arena.wire.matches import play_over_sockets
from pipeline.cli.main import main
from pipeline.poker.cards import NO_CARD, parse_cards
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError
from pipeline.solving.counter import Belief, respond, winnings
from pipeline.solving.hindsight import ObservedHands
from pipeline.solving.lookup import tabulate
from pipeline.solving.strategy import save_small_strategy

KUHN = builtin("kuhn.limit.2p")
LEDUC = builtin("leduc.limit.2p")
LIMIT = builtin("holdem.limit.2p.reverse_blinds")


def adaptive(game: object = LEDUC, text: str = "@adaptive") -> Adaptive:
    found = resolve(text, game)  # type: ignore[arg-type]
    assert isinstance(found, Adaptive)
    return found


# What finished hands say


def kuhn_hand(mine: str, theirs: str, labels: list[int]) -> ObservedHands:
    """A hand of Kuhn poker seen from the first position."""
    hole = np.full((1, 2, 2), NO_CARD, np.uint8)
    hole[0, 0, 0] = parse_cards(mine)[0]
    if theirs:
        hole[0, 1, 0] = parse_cards(theirs)[0]
    moves = np.array([[label + 1 for label in labels]], np.uint8)
    return ObservedHands(np.zeros(1, np.uint8), moves, hole, np.full((1, 5), NO_CARD, np.uint8))


def test_shown_cards_count_as_they_are_and_hidden_ones_on_average() -> None:
    held = small_portfolio(KUHN)
    deck = sorted(KUHN.deck.tolist())
    low, middle, high = (("23456789TJQKA"[card >> 2] + "cdhs"[card & 3]) for card in deck)
    teacher = tabulate(resolve("@teacher", KUHN).probabilities, KUHN)
    at = held.opponents.index("teacher")
    from pipeline.solving.small import SmallGame, Spot

    small = SmallGame(KUHN)

    def bets(card: str) -> float:
        mix = teacher[small.row(Spot("c", card[0]))]
        return float((1 - SMOOTHING) * mix[2] + SMOOTHING / 2)

    shown, *_ = held.judge.estimate(kuhn_hand(middle, high, [1, 2, 1]), 0)
    assert shown[0, at] == pytest.approx(bets(high), abs=0.005)
    hidden, *_ = held.judge.estimate(kuhn_hand(middle, "", [1, 2, 0]), 0)
    assert hidden[0, at] == pytest.approx((bets(low) + bets(high)) / 2, abs=0.005)
    always = held.opponents.index("raise")
    assert hidden[0, always] == pytest.approx(1 - SMOOTHING / 2, abs=0.005)


@pytest.mark.parametrize(("played", "opponent"), [("@chump:20,50,30", "@chump:gambler"), ("@random", "@teacher")])
def test_what_strategies_would_have_won_is_right_on_average(played: str, opponent: str) -> None:
    table = tabulate(resolve(opponent, LEDUC).probabilities, LEDUC)
    agent = adaptive(text=f"@adaptive:{played},@call,@chump:maniac")
    held = agent.portfolio
    block = HandBlock.dealt(LEDUC, 5, 0, 20_000, seatings(2), False)
    block.play([held.members[1], resolve(opponent, LEDUC)])
    seen = block.seen_by(0)
    _, worth, covered = held.judge.estimate(ObservedHands.of(seen), 1)
    for number, member in enumerate(held.members):
        exact = winnings(LEDUC, tabulate(member.probabilities, LEDUC), table)
        error = worth[:, number].std() / np.sqrt(len(worth))
        assert worth[:, number].mean() == pytest.approx(exact, abs=4 * error + 0.01)
        assert covered[:, number].mean() == pytest.approx(1, abs=0.1)


def test_estimates_over_imagined_hands_vary_less_than_results() -> None:
    held = small_portfolio(LEDUC)
    block = HandBlock.dealt(LEDUC, 6, 0, 4_000, seatings(2), False)
    block.play([held.members[0], resolve("@call", LEDUC)])
    seen = block.seen_by(0)
    _, worth, _ = held.judge.estimate(ObservedHands.of(seen), 0)
    result = np.take_along_axis(seen.payoffs, seen.position[:, None].astype(int), axis=1)[:, 0]
    assert worth[:, 0].var() < 0.8 * result.var()


# What it turns to


@pytest.mark.parametrize("opponent", ["@call", "@raise", "@chump:rock", "@chump:maniac"])
def test_it_takes_nearly_all_that_a_best_response_takes(opponent: str) -> None:
    other = resolve(opponent, LEDUC)
    best = respond(LEDUC, Belief(tabulate(other.probabilities, LEDUC), hand_share=1.0)).winnings
    match = play_match([adaptive(), other], LEDUC, hands=3_000, seed=1)
    assert match.mbb_per_hand() / 1000 * LEDUC.big_blind > 0.9 * best - 0.05


def test_it_stays_with_the_equilibrium_against_the_equilibrium() -> None:
    agent = adaptive()
    for seed in range(4):
        play_match([agent, resolve("@teacher", LEDUC)], LEDUC, hands=3_000, seed=seed)
        assert np.mean([step.playing == 0 for step in agent.steps]) > 0.9


def test_the_same_seed_gives_the_same_match_because_it_forgets() -> None:
    agent = adaptive()
    first = play_match([agent, resolve("@call", LEDUC)], LEDUC, hands=600, seed=2)
    turned = agent.playing
    play_match([agent, resolve("@raise", LEDUC)], LEDUC, hands=600, seed=3)
    again = play_match([agent, resolve("@call", LEDUC)], LEDUC, hands=600, seed=2)
    assert turned == agent.playing > 0
    np.testing.assert_array_equal(first.payoffs, again.payoffs)


def test_it_begins_with_the_equilibrium() -> None:
    agent = adaptive()
    assert isinstance(agent, Learner)
    agent.begin()
    assert agent.playing == 0
    play_match([agent, resolve("@teacher", LEDUC)], LEDUC, hands=20, seed=2)
    assert agent.playing == 0


def test_it_chooses_among_strategies_of_ones_own(tmp_path: Path) -> None:
    model = tabulate(resolve("@call", LEDUC).probabilities, LEDUC)
    save_small_strategy(tmp_path / "mine", LEDUC, respond(LEDUC, Belief(model, hand_share=1.0)).strategy, {})
    agent = adaptive(text=f"@adaptive:{tmp_path / 'mine'},@chump:20,50,30")
    assert agent.portfolio.names == ("teacher", "mine", "chump-20-50-30")
    play_match([agent, resolve("@call", LEDUC)], LEDUC, hands=600)
    assert agent.playing == 1


# Wherever agents play


def test_it_adapts_on_the_wire_in_the_background() -> None:
    agent = adaptive()
    match = play_over_sockets([agent, resolve("@call", LEDUC)], LEDUC, hands=800)
    agent.wait()
    assert agent.background
    assert agent.steps[-1].opponent == "call"
    assert agent.steps[-1].hands >= 400 - agent.interval
    assert match.hands == 800


def test_it_adapts_at_a_table() -> None:
    agent = adaptive()
    table = Sitting(LEDUC, [agent], ("you", "adaptive"), seed=1)
    for _ in range(40):
        hand = table.next_hand()
        while not hand.state.finished:
            table.others_act()
            if not hand.state.finished:
                table.act(1, 0)
        table.others_act()
    agent.wait()
    assert agent.steps[-1].hands == 40
    assert agent.steps[-1].opponent == "call"


def test_it_plays_in_a_tournament_and_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    main(["tournament", "@adaptive", "@teacher", "@call", "@raise", "--game", LEDUC.name, "--hands", "2000", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["total_bankroll"]["standings"][0]["agent"] == "adaptive"


def test_a_match_tells_what_was_thought(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "match.html"
    main(["match", "@adaptive", "@call", "--game", LEDUC.name, "--hands", "200", "--json", "--page", str(page)])
    (told,) = json.loads(capsys.readouterr().out)["adaptation"]
    assert told["members"][0] == "teacher"
    assert [step["hands"] for step in told["steps"]] == list(range(20, 201, 20))
    assert all(sum(step["weights"]) == pytest.approx(1) for step in told["steps"])
    text = page.read_text()
    assert "counter-call" in text
    assert "takes the opponent for" in text


# Hold'em


def test_the_portfolio_of_the_package_knows_its_opponents() -> None:
    agent = adaptive(LIMIT)
    held = agent.portfolio
    assert held.values[0, held.opponents.index("teacher")] == pytest.approx(0, abs=0.03)
    play_match([agent, resolve("@calibrated:70,70", LIMIT)], LIMIT, hands=200, seed=1)
    assert held.names[agent.playing] == "counter-calibrated-70-70"
    play_match([agent, resolve("@teacher", LIMIT)], LIMIT, hands=200, seed=1)
    assert {step.playing for step in agent.steps} == {0}


def test_info_says_which_strategies_a_portfolio_has_and_whom_it_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(Path(str(files("pipeline.agents"))) / "resources" / "portfolio", tmp_path / "portfolio")
    found = describe(tmp_path / "portfolio", verify=True)
    assert found["kind"] == "portfolio"
    assert found["members"][:2] == ["teacher", "counter-equity"]
    assert len(found["opponents"]) == 20
    main(["info", str(tmp_path / "portfolio")])
    said = capsys.readouterr().out
    assert "a portfolio" in said
    assert "bearl-timid" in said
    (tmp_path / "portfolio" / "strategy.xz").write_bytes(b"otherwise")
    with pytest.raises(PipelineError, match="checksum differs"):
        describe(tmp_path / "portfolio", verify=True)


# Bad input


@pytest.mark.parametrize(
    ("text", "game", "error"),
    [
        ("@adaptive", "holdem.nolimit.2p.reverse_blinds", "plays limit hold'em, Kuhn and Leduc for two players"),
        ("@adaptive", "kuhn.limit.3p", "for two players"),
        ("@adaptive:,", "leduc.limit.2p", "separated by commas"),
        ("@adaptive:@adaptive", "leduc.limit.2p", "stay as they are"),
        ("@adaptive:no/such/folder", "leduc.limit.2p", "no/such/folder"),
        ("@adaptive:python:os:system", "leduc.limit.2p", "only be named on the command line"),
        ("@calibrated:auto", "leduc.limit.2p", "'auto' is not 2 numbers; write @calibrated:AGGRESSION,RATIONALITY"),
    ],
)
def test_what_cannot_be_played_is_a_sentence(text: str, game: str, error: str) -> None:
    with pytest.raises(PipelineError, match=error):
        resolve(text, builtin(game))


def test_a_page_needs_an_adaptive_agent(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["match", "@call", "@fold", "--hands", "2", "--page", "out/match.html"])
    assert "let it take part" in capsys.readouterr().err
