"""Built-in agents: what each does where the answer is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pipeline.agents.calibrated import label_of_stake
from pipeline.agents.equity import equities, players_left
from pipeline.agents.names import BUILTIN, default_game, resolve
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import OBSERVATION, observation
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import find_game
from pipeline.runtime.errors import PipelineError

LIMIT, NOLIMIT = "holdem.limit.2p.reverse_blinds", "holdem.nolimit.2p.reverse_blinds"


def plays(agent: str, game_name: str, betting: str, position: int, hole: str, board: str = "") -> dict[str, float]:
    game = find_game(game_name)
    row = observation(game, betting, position, parse_cards(hole), parse_cards(board) if board else ())
    p = resolve(agent, game).probabilities(row)[0]
    return {label: round(float(value), 6) for label, value in zip(game.labels, p, strict=True) if value > 0}


def test_rule_agents_take_the_first_legal_of_their_preferences() -> None:
    assert plays("@fold", LIMIT, "", 1, "AsAh") == {"f": 1}
    assert plays("@fold", LIMIT, "c", 0, "AsAh") == {"c": 1}
    assert plays("@call", LIMIT, "r", 0, "AsAh") == {"c": 1}
    assert plays("@raise", LIMIT, "rr", 1, "7c2d") == {"r": 1}
    assert plays("@raise", LIMIT, "rrr", 0, "7c2d") == {"c": 1}
    assert plays("@random", LIMIT, "rrr", 0, "7c2d") == {"f": 0.5, "c": 0.5}
    assert plays("@raise", NOLIMIT, "", 1, "7c2d") == {"p": 1}
    assert plays("@raise:a", NOLIMIT, "", 1, "7c2d") == {"a": 1}
    assert plays("@raise", NOLIMIT, "r15000", 0, "7c2d") == {"a": 1}


def test_chumps_keep_their_shares_of_what_is_legal() -> None:
    assert plays("@chump:20,50,30", LIMIT, "r", 0, "7c2d") == {"f": 0.2, "c": 0.5, "r": 0.3}
    assert plays("@chump:20,50,30", LIMIT, "c", 0, "7c2d") == {"c": 0.625, "r": 0.375}
    assert plays("@chump:0,0,1", LIMIT, "rrr", 0, "7c2d") == {"c": 1}
    assert plays("@chump:50,0,50", NOLIMIT, "", 1, "7c2d") == {"f": 0.5, "h": 0.125, "p": 0.125, "o": 0.125, "a": 0.125}


def test_equity_raises_above_half_calls_by_pot_odds_and_folds_below() -> None:
    assert plays("@equity", LIMIT, "", 1, "AsAh") == {"r": 1}
    assert plays("@equity", LIMIT, "", 1, "3c2d") == {"c": 1}  # 32% for 5 into 15
    assert plays("@equity", LIMIT, "cc/r", 1, "3c2d", "AsKsQs") == {"f": 1}
    assert plays("@equity", LIMIT, "cc/", 0, "3c2d", "AsKsQs") == {"c": 1}
    assert plays("@equity", NOLIMIT, "cc/cc/cc/", 0, "AsKs", "QsJsTs2d2h") == {"a": 1}


def test_equity_in_small_games_is_counted_card_by_card() -> None:
    kuhn = find_game("kuhn.limit.3p")
    rows = np.concatenate([observation(kuhn, "", 0, parse_cards(card)) for card in ("Js", "Qs", "Ks", "As")])
    assert equities(kuhn, rows).tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    leduc = find_game("leduc.limit.2p")
    king = observation(leduc, "", 0, parse_cards("Ks"))
    # opponent K: always a tie; Q (2 of 5): loses only to a pair of queens (1 of 4 boards); A: wins only with a pair
    assert equities(leduc, king)[0] == pytest.approx(
        float(Fraction(1, 5) / 2 + Fraction(2, 5) * Fraction(3, 4) + Fraction(2, 5) * Fraction(1, 4))
    )
    paired = observation(leduc, "cc/", 0, parse_cards("Ks"), parse_cards("Kh"))
    assert equities(leduc, paired)[0] == 1


def test_players_left_are_those_who_have_not_folded() -> None:
    game = find_game("holdem.limit.3p")
    row = observation(game, "rfrc/", 1, parse_cards("AsAh"), parse_cards("2c7dJh"))
    assert players_left(row).tolist() == [2]


def test_equity_beats_those_who_do_not_look_at_their_cards() -> None:
    game = find_game("leduc.limit.2p")
    for other in ("@call", "@raise", "@random", "@chump:maniac"):
        match = play_match([resolve("@equity", game), resolve(other, game)], game, hands=4_000)
        assert match.mbb_per_hand() > 2 * match.ci95()


def test_an_unknown_agent_is_answered_with_the_nearest_name() -> None:
    game = find_game(LIMIT)
    with pytest.raises(PipelineError, match="did you mean @equity"):
        resolve("@equty", game)
    with pytest.raises(PipelineError, match="takes no arguments"):
        resolve("@equity:3", game)
    assert "call" in BUILTIN


def test_without_a_bundle_the_number_of_agents_chooses_the_game() -> None:
    assert default_game(["@call", "@call"]).name == LIMIT
    assert default_game(["@call", "@call", "@call"]).name == "holdem.limit.3p"
    with pytest.raises(PipelineError, match="--game"):
        default_game(["@call"])


@pytest.mark.parametrize(
    ("kind", "beyond", "legal", "label"),
    [
        ("f", 0, "fcshpoa", "f"),
        ("f", 0, "cshpoa", "c"),
        ("c", 0, "fcshpoa", "c"),
        ("r", 100, "fcshpoa", "s"),
        ("r", 160, "fcshpoa", "h"),
        ("r", 400, "fcshpoa", "p"),
        ("r", 700, "fcshpoa", "o"),
        ("r", 700, "fcshpa", "p"),
        ("r", 100, "fcoa", "o"),
        ("r", 5000, "fcshpoa", "a"),
        ("r", 5000, "fc", "c"),
    ],
)
def test_a_stake_is_the_nearest_legal_class_smaller_ones_first(
    kind: str, beyond: float, legal: str, label: str
) -> None:
    game = find_game("holdem.nolimit.2p.reverse_blinds")
    rows = np.zeros(1, OBSERVATION)
    rows["pot"], rows["to_call"], rows["stack"] = 300, 100, 5000
    rows["legal"] = sum(1 << game.labels.index(letter) for letter in legal)
    chosen = label_of_stake(rows[0], "fcr".index(kind), float(beyond), len(game.labels), True)
    assert game.labels[chosen] == label


@pytest.mark.parametrize("name", ["@call", "@equity", "@teacher", "@bearl", "models/teacher", "@lbr:models/teacher"])
def test_an_agent_is_shown_in_a_few_lines(name: str) -> None:
    shown = repr(resolve(name, find_game("holdem.limit.2p.reverse_blinds")))
    assert len(shown) < 800
    assert "\n" not in shown
