"""Bots from outside: Python objects and programs, what they may do and what is said when they fail."""

from __future__ import annotations

import json
import pickle
import re
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from line_verdict import verdict

from pipeline.agents.guests import GuestLearner, Situation
from pipeline.agents.names import resolve
from pipeline.agents.protocol import draws_actions, estimated_mixes
from pipeline.arena.match import play_match
from pipeline.arena.wire.client import connect_agent
from pipeline.arena.wire.matches import play_over_sockets
from pipeline.arena.wire.sockets import Limits
from pipeline.cli.evaluate import command as evaluate_command
from pipeline.cli.main import main
from pipeline.cli.match import command as match_command
from pipeline.cli.tournament import command as tournament_command
from pipeline.dataset.decisions import OBSERVATION, observation
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.formats.acpc import VALID
from pipeline.opponents.counters import exploitability
from pipeline.poker.game import builtin
from pipeline.runtime.errors import PipelineError

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
KUHN = builtin("kuhn.limit.2p")
KUHN3 = builtin("kuhn.limit.3p")
QUICK = Limits(response_ms=300, hand_ms=20_000, per_hand_ms=20_000, start_ms=20_000)

BOTS = """
import random
import numpy as np

class Caller:
    def __init__(self, game):
        self.game = game
    def probabilities(self, rows):
        return np.eye(len(self.game.labels))[np.ones(len(rows), int)]

class Careful:
    seen = []
    def __init__(self, game):
        pass
    def act(self, situation):
        self.seen.append(situation)
        return "c" if situation.to_call == 0 else "f"

class Mixer:
    def __init__(self, game):
        self.game = game
    def act(self, situation):
        return {label: 1 / len(situation.legal) for label in situation.legal}

class Drawer:
    def __init__(self, game):
        self.random = random.Random(5)
    def act(self, situation):
        return self.random.choice(situation.legal)

class Listener(Caller):
    interval = 10
    def begin(self):
        self.told = 0
    def seen(self, hands):
        self.told += len(hands.position)

class Raises(Caller):
    def probabilities(self, rows):
        raise RuntimeError("my bot is broken")

class Illegal(Caller):
    def probabilities(self, rows):
        return np.tile([0.0, 0.0, 1.0], (len(rows), 1))

class Folds:
    def __init__(self, game):
        pass
    def act(self, situation):
        return "f" if situation.to_call == 0 else "c"

class Half(Caller):
    def probabilities(self, rows):
        return super().probabilities(rows) / 2

class NotNumbers(Caller):
    def probabilities(self, rows):
        return ["call"] * len(rows)

class Narrow(Caller):
    def probabilities(self, rows):
        return np.ones((len(rows), 1))

class NaN(Caller):
    def probabilities(self, rows):
        return np.full((len(rows), len(self.game.labels)), np.nan)

class Shouts:
    def __init__(self, game):
        pass
    def act(self, situation):
        return "call"

def nothing(game):
    return object()

def broken(game):
    raise KeyError("oops")

number = 3
"""


@pytest.fixture(scope="module")
def bots(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("bots") / "somebodys_bots.py"
    path.write_text(BOTS)
    return f"python:{path}"


def named(text: str, game: Any = LIMIT) -> Any:
    return resolve(text, game, trusted=True)


# Python objects


def test_a_python_bot_with_probabilities_plays_as_the_built_in_agent_does(bots: str) -> None:
    ours = play_match([resolve("@call", LIMIT), resolve("@random", LIMIT)], LIMIT, hands=200, seed=3)
    theirs = play_match([named(f"{bots}:Caller"), resolve("@random", LIMIT)], LIMIT, hands=200, seed=3)
    assert np.array_equal(ours.payoffs, theirs.payoffs)
    assert theirs.names == ("somebodys_bots-Caller", "random")


def test_a_python_bot_that_acts_is_shown_the_situation(bots: str) -> None:
    careful = named(f"{bots}:Careful", NOLIMIT)
    rows = observation(NOLIMIT, "r300c/cr600", 0, [51, 46], [0, 5, 10])
    assert careful.probabilities(rows)[0].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert careful.bot.seen[-1] == Situation(
        hole="AsKh",
        board="2c3d4h",
        betting="pc/ch",
        street=1,
        position=0,
        players=2,
        pot=900,
        to_call=300,
        stack=19700,
        legal="fcshpoa",
        spent=300,
    )


def test_the_page_on_playing_has_all_that_a_bot_sees_and_the_whole_example() -> None:
    root = Path(__file__).parents[2]
    page, example = (root / "docs/playing.md").read_text(), (root / "examples/careful.py").read_text()
    table = page.partition("a `Situation`:\n\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \| ", table, re.M)) == set(Situation._fields)
    assert example[example.index("class Careful") :] in page


def test_a_python_bot_may_give_a_dictionary_of_probabilities(bots: str) -> None:
    ours = play_match([resolve("@random", KUHN)] * 2, KUHN, hands=100, seed=3)
    theirs = play_match([named(f"{bots}:Mixer", KUHN)] * 2, KUHN, hands=100, seed=3)
    assert np.array_equal(ours.payoffs, theirs.payoffs)


def test_a_python_bot_that_learns_is_told_of_finished_hands(bots: str) -> None:
    listener = named(f"{bots}:Listener", KUHN)
    assert isinstance(listener, GuestLearner)
    play_match([listener, resolve("@call", KUHN)], KUHN, hands=60)
    assert listener.bot.told == 60


def test_a_module_is_found_by_its_name(bots: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(bots.removeprefix("python:")).parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert named("python:somebodys_bots:Caller").name == "somebodys_bots-Caller"


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        ("Raises", "failed: RuntimeError: my bot is broken"),
        ("Half", "sums to 1"),
        ("NaN", "sums to 1"),
        ("NotNumbers", "no array of numbers"),
        ("Narrow", r"shape \(\d+, 1\) for \d+ rows and 3 labels \(fcr\)"),
        ("Shouts", "answers 'call'; the actions are f, c, r"),
        ("nothing", "a object without probabilities or act"),
        ("broken", r"broken\(game\) failed: KeyError: 'oops'"),
        ("number", "nothing to call named number"),
        ("missing", "nothing to call named missing"),
    ],
)
def test_what_a_python_bot_does_wrong_is_a_sentence_that_names_it(bots: str, factory: str, sentence: str) -> None:
    def play() -> None:
        play_match([named(f"{bots}:{factory}"), resolve("@raise", LIMIT)], LIMIT, hands=10)

    with pytest.raises(PipelineError, match=sentence) as error:
        play()
    assert f"{bots}:{factory}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("factory", ["Illegal", "Folds"])
def test_an_illegal_action_of_a_python_bot_becomes_a_call_with_one_warning(
    bots: str, factory: str, caplog: pytest.LogCaptureFixture
) -> None:
    bot = named(f"{bots}:{factory}")
    letter, legal = {"Illegal": ("r", "fc"), "Folds": ("f", "cr")}[factory]
    assert play_match([bot, resolve("@raise", LIMIT)], LIMIT, hands=40).hands == 40
    (warning,) = [record.getMessage() for record in caplog.records]
    where = rf"where {legal} are legal \([2-9TJQKAcdhs]{{4}} (-|[2-9TJQKAcdhs]+) after '[cr/]*'\)"
    assert re.fullmatch(
        rf"{re.escape(bots)}:{factory} plays {letter} {where}: an illegal action becomes a call .*", warning
    )
    assert bot.illegal > 1
    rows = np.array([observation(LIMIT, "rrr", 0, np.array([0, 1]), np.array([], dtype=np.uint8))[0]])
    assert named(f"{bots}:Illegal").probabilities(rows).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("python:no.such.module:Bot", "cannot import no.such.module: ModuleNotFoundError"),
        ("python:./no_such_file.py:Bot", "no file ./no_such_file.py"),
        ("python:Bot", "write python:package.module:factory"),
        ("python:", "write python:package.module:factory"),
        ("exec:", "no program ''"),
        ("exec:./no_such_program", "no program './no_such_program' that can be started"),
        ("exec:'unclosed", "No closing quotation"),
    ],
)
def test_a_bot_that_is_not_there_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        named(text)


def test_a_file_with_an_error_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def broken(:\n")
    with pytest.raises(PipelineError, match=r"cannot import .*bad\.py: SyntaxError"):
        named(f"python:{tmp_path}/bad.py:Bot")


def test_files_of_the_same_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}").mkdir()
        source = (
            f"class Bot:\n    number = {number}\n    def __init__(self, game): pass\n    def act(self, s): return 'c'\n"
        )
        (tmp_path / f"{number}" / "bot.py").write_text(source)
    bots = [named(f"python:{tmp_path}/{number}/bot.py:Bot").bot for number in (1, 2)]
    assert [pickle.loads(pickle.dumps(bot)).number for bot in bots] == [1, 2]


@pytest.mark.parametrize("text", ["python:os:system", "exec:true", "@lbr:python:os:system", "@lbr:exec:true"])
def test_names_that_run_code_are_taken_only_from_the_command_line(text: str) -> None:
    with pytest.raises(PipelineError, match="can only be named on the command line"):
        resolve(text, LIMIT)


# Programs

CALLER = """#!{python}
import socket, sys
link = socket.create_connection((sys.argv[-2], int(sys.argv[-1])))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
file = link.makefile("rwb")
file.write(b"VERSION:2.0.0\\r\\n"); file.flush()
for number, line in enumerate(file):
    line = line.strip()
    {body}
    file.write(line + b":c\\r\\n"); file.flush()
"""


def program(folder: Path, body: str = "pass", text: str = CALLER) -> str:
    """A program that calls whatever it is sent, unless `body` does something else."""
    path = folder / "caller" / "start.sh"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.format(python=sys.executable, body=body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"exec:{path}"


def test_a_program_plays_both_seats_of_the_same_cards(tmp_path: Path) -> None:
    agents = [named(program(tmp_path), KUHN), resolve("@call", KUHN)]
    match = play_over_sockets(agents, KUHN, hands=40, seed=5, log=tmp_path / "logs" / "x.log")
    assert match.names == ("caller", "call")
    assert match.payoffs.shape == (20, 2, 2)
    assert match.mbb_per_hand() == 0  # two callers share the luck of the cards exactly
    assert match.payoffs[:, 0].any()
    assert [path.name for path in match.logs] == ["x.0.log", "x.1.log"]
    for path in match.logs:
        lines = path.read_text().splitlines()[4:-1]
        assert [verdict(line, KUHN).code for line in lines] == [VALID] * 20


def test_the_luck_of_the_cards_is_taken_out_of_what_a_program_won(tmp_path: Path) -> None:
    leduc = builtin("leduc.limit.2p")  # in Kuhn the two seatings of a deal leave hardly any luck of the cards
    agents = [named(program(tmp_path), leduc), resolve("@random", leduc)]
    match = play_over_sockets(agents, leduc, hands=400, seed=5, adjusted=True)
    assert match.adjusted is not None
    assert match.adjusted.shape == match.payoffs.shape
    np.testing.assert_allclose(match.adjusted.sum(axis=2), 0.0, atol=1e-8)
    plain, adjusted = (chips.sum(axis=1)[:, 0] for chips in (match.payoffs, match.adjusted))
    assert adjusted.std() < 0.95 * plain.std()
    assert play_over_sockets(agents, leduc, hands=2, seed=5).adjusted is None


def test_three_programs_play_all_six_seatings(tmp_path: Path) -> None:
    agents = [named(program(tmp_path), KUHN3), resolve("@call", KUHN3), resolve("@call", KUHN3)]
    match = play_over_sockets(agents, KUHN3, hands=12, seed=5)
    assert match.payoffs.shape == (2, 6, 3)
    assert np.allclose(match.payoffs.sum(axis=2), 0)
    assert np.allclose(match.payoffs.mean(axis=1), 0)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("sys.exit(3)", r"seat 1 \(caller\) .* after 0 of \d+ hands.*start\.sh ended with status 3"),
        ("number > 20 and sys.exit('out of luck')", r"ended with status 1\); the last it said: 'out of luck'"),
        ("file.read()", r"seat 1 \(caller\) did not answer within 0\.3 s"),
        ("line = b'rubbish'", r"seat 1 \(caller\) did not answer within 0\.3 s"),
        ("link.close(); file.close(); file.read()", r"seat 1 \(caller\) (left|is gone)"),
    ],
)
def test_what_a_program_does_wrong_is_a_sentence_that_names_it(tmp_path: Path, body: str, sentence: str) -> None:
    agents = [named(program(tmp_path, body), KUHN), resolve("@call", KUHN)]
    with pytest.raises(PipelineError, match=sentence) as error:
        play_over_sockets(agents, KUHN, hands=400, limits=QUICK)
    assert "\n" not in str(error.value)


def test_a_program_that_ends_before_it_connects_is_noticed_at_once(tmp_path: Path) -> None:
    text = "#!/bin/sh\necho no licence >&2\nexit 7\n"
    agents = [named(program(tmp_path, text=text), KUHN), resolve("@call", KUHN)]
    with pytest.raises(PipelineError, match=r"start\.sh ended with status 7 before .* said: 'no licence'$") as error:
        play_over_sockets(agents, KUHN, hands=4, limits=QUICK)
    assert str(error.value).count("no licence") == 1


def test_a_script_without_an_interpreter_is_a_sentence(tmp_path: Path) -> None:
    agents = [named(program(tmp_path, text="\0\1\2"), KUHN), resolve("@call", KUHN)]
    with pytest.raises(PipelineError, match=r"cannot start .* its first line names its interpreter"):
        play_over_sockets(agents, KUHN, hands=4, limits=QUICK)


def test_a_program_gives_no_probabilities(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="plays only in match and tournament"):
        named(program(tmp_path), KUHN).probabilities(np.zeros(1, OBSERVATION))


# The commands


def test_match_and_tournament_take_bots_of_ones_own(bots: str, tmp_path: Path) -> None:
    options = ["--game", "kuhn.limit.2p", "--hands", "20", "--json"]
    run = CliRunner().invoke(match_command, [program(tmp_path), f"{bots}:Caller", *options], catch_exceptions=False)
    found = json.loads(run.stdout)
    assert [one["name"] for one in found["agents"]] == ["caller", "somebodys_bots-Caller"]
    assert (found["hands"], found["mbb_per_hand"]) == (20, 0)
    run = CliRunner().invoke(
        tournament_command, [program(tmp_path), f"{bots}:Caller", "@fold", *options], catch_exceptions=False
    )
    assert json.loads(run.stdout)["agents"] == ["caller", "somebodys_bots-Caller", "fold"]


def test_a_tournament_of_three_writes_a_row_per_line_up(tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    agents = ["@call", "@raise", "@random", "@fold"]
    arguments = [*agents, "--game", "kuhn.limit.3p", "--hands", "60", "--out", str(out)]
    run = CliRunner().invoke(tournament_command, arguments, catch_exceptions=False)
    lines = out.read_text().split("\n\n")[0].splitlines()  # the draws of the intervals come after a blank line
    assert lines[0] == "agent 1,agent 2,agent 3,mbb/h of 1,mbb/h of 2,mbb/h of 3"
    assert len(lines) == 1 + 4
    assert "mbb/h of 3" in run.output


def test_match_suggests_a_built_in_agent(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["match", "equity", "@call"])
    assert "did you mean the built-in agent @equity?" in capsys.readouterr().err


def test_deal_duplicate_deals_both_seatings_and_prints_the_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipeline.arena.wire.dealer import listen

    listeners = listen([0, 0])
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()

    def play(agent: str, port: int) -> None:
        for _ in range(2):
            connect_agent(resolve(agent, KUHN), "127.0.0.1", port, reconnect_ms=20_000)

    with ThreadPoolExecutor(2) as pool:
        players = [pool.submit(play, agent, port) for agent, port in zip(("@raise", "@call"), ports, strict=True)]
        main(
            ["deal", KUHN.name, "Ann", "Ben", "--hands", "10", "--seed", "3", "--duplicate"]
            + [word for port in ports for word in ("--port", str(port))]
            + ["--log", str(tmp_path / "x.log")]
        )
        for player in players:
            player.result()
    first, score, second, again, ann, ben = capsys.readouterr().out.splitlines()
    assert first == second == " ".join(map(str, ports))
    assert score.endswith(":Ann|Ben")
    assert again.endswith(":Ben|Ann")
    # a deal's two seatings leave no luck of the cards between two agents that never fold and never choose
    assert ann == "Ann +0.0 ± 0.0 milli-antes/h   adjusting does not help"
    assert ben == "Ben +0.0 ± 0.0 milli-antes/h   adjusting does not help"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["x.0.log", "x.1.log"]


def test_a_python_bot_is_evaluated_as_the_built_in_agent_is(bots: str, tmp_path: Path) -> None:
    kuhn = ["--game", "kuhn.limit.2p"]
    main(["match", "@random", "@call", *kuhn, "--hands", "200", "--log", str(tmp_path / "logs" / "x"), "--json"])
    main(["ingest", str(tmp_path / "logs"), "--out", str(tmp_path / "rows"), "--no-strength", "--json"])
    data = ["--data", str(tmp_path / "rows"), "--agent", "random", "--all-rows", "--json"]
    run = CliRunner().invoke(evaluate_command, [f"{bots}:Mixer", "@random", *data], catch_exceptions=False)
    scores = {one["model"]: one["log_loss"] for one in json.loads(run.stdout) if one["street"] == "preflop"}
    assert scores[f"{bots}:Mixer"] == scores["@random"]
    with pytest.raises(PipelineError, match="gives no probabilities"):
        CliRunner().invoke(evaluate_command, [program(tmp_path), *data], catch_exceptions=False)
    with pytest.raises(PipelineError, match="can only be named on the command line"):
        evaluate_models(tmp_path / "rows", [f"{bots}:Mixer"], Scope(all_rows=True))


def test_the_local_best_response_answers_a_python_bot(bots: str) -> None:
    assert resolve(f"@lbr:{bots}:Caller", LIMIT, trusted=True).name.startswith("lbr")


def test_the_hands_of_a_bot_that_draws_its_actions_are_not_imagined(
    bots: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = "somebodys_bots-Drawer gives no probabilities: its results are not averaged over imagined hands"
    for first, adjusted in ((resolve("@random", LIMIT), 8), (named(f"@lbr:{bots}:Caller"), True)):
        match = play_match([first, named(f"{bots}:Drawer")], LIMIT, hands=40, adjusted=adjusted)
        assert np.isfinite(match.best_samples_mbb).all()
        assert caplog.messages.count(said) == 1
        caplog.clear()
    play_match([resolve("@random", LIMIT), named(f"{bots}:Caller")], LIMIT, hands=40, adjusted=8)
    assert said.replace("Drawer", "Caller") not in caplog.messages


def test_a_bot_says_whether_it_draws_its_actions(bots: str) -> None:
    assert draws_actions(named(f"{bots}:Drawer"))
    assert draws_actions(named(f"@lbr:{bots}:Drawer"))
    assert not draws_actions(named(f"{bots}:Caller"))
    assert not draws_actions(named(f"@lbr:{bots}:Caller"))
    fixed = named(f"{bots}:Mixer")
    assert draws_actions(fixed)
    fixed.bot.draws = False
    assert not draws_actions(fixed)


def test_the_probabilities_of_a_bot_that_draws_are_its_frequencies(bots: str) -> None:
    rows = np.repeat(observation(KUHN, "", 0, [KUHN.deck[0]]), 3)
    asked = estimated_mixes(named(f"{bots}:Drawer", KUHN), 400).probabilities(rows)
    assert np.abs(asked - resolve("@random", KUHN).probabilities(rows)).max() < 0.12
    caller = named(f"{bots}:Caller", KUHN)
    assert estimated_mixes(caller) is caller


def test_a_bot_that_draws_is_answered_by_its_frequencies_and_judged_in_a_match(bots: str) -> None:
    exact = exploitability(resolve("@random", KUHN))
    found = exploitability(named(f"{bots}:Drawer", KUHN), table_hands=20_000)
    assert (found.exact, found.method) == (False, "best response to its frequencies")
    assert found.unit == exact.unit
    assert found.at_least < exact.exploitability < found.exploitability + 2 * found.ci95
    assert found.at_least > 0.8 * exact.exploitability


def test_an_agent_that_contradicts_what_it_did_is_not_imagined(bots: str) -> None:
    pretender = named(f"{bots}:Drawer")
    pretender.bot.draws = False
    with pytest.raises(PipelineError, match="gives other probabilities when it is asked again"):
        play_match([resolve("@random", LIMIT), pretender], LIMIT, hands=400, adjusted=4)
