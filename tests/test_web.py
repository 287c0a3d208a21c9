"""The explorer's server: what it answers is what the policies say, and who may ask is checked."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from pipeline.agents import resolve
from pipeline.cards import parse_cards
from pipeline.decisions import observation
from pipeline.errors import PipelineError
from pipeline.game import builtin
from pipeline.web.app import Explorer, assets, make_app
from pipeline.web.safety import MOST_BODY, POLICY
from pipeline.web.server import Server
from pipeline.web.shelf import Shelf
from pipeline.web.start import prepare

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
HERE = "http://127.0.0.1:8017"
TOKEN = "a-token-of-the-tests"
BUNDLE = "models/teacher"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    save = tmp_path_factory.mktemp("played")
    games = ["holdem.limit.3p", NOLIMIT.name, LIMIT.name, "leduc.limit.2p"]
    return prepare([BUNDLE, "@random", "@call", "@equity"], token=TOKEN, games=games, save=save)


@pytest.fixture(scope="module")
def client(explorer: Explorer) -> TestClient:
    return TestClient(make_app(explorer), base_url=HERE)


def ask(client: TestClient, path: str, **parameters: Any) -> Any:
    answer = client.get(f"/api/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


# Spots


@pytest.mark.parametrize(
    ("betting", "board"),
    [("", ""), ("r", ""), ("rc/", "6dJs5c"), ("rrc/cr", "6dJs5c"), ("rc/rc/cc/r", "6dJs5c2hKd")],
)
def test_a_spot_has_the_policys_own_probabilities_for_every_hand(client: TestClient, betting: str, board: str) -> None:
    found = ask(client, "spot", game=LIMIT.name, agent="teacher", betting=betting, board=board)
    agent = resolve(BUNDLE, LIMIT)
    shown = parse_cards(board)
    rows = np.concatenate(
        [observation(LIMIT, betting, found["actor"], parse_cards(cards), shown) for cards in found["hands"]["cards"]]
    )
    assert len(rows) == (52 - len(shown)) * (51 - len(shown)) // 2
    np.testing.assert_allclose(found["hands"]["mix"], agent.probabilities(rows), atol=1e-5)


def test_reach_is_the_product_of_the_players_own_probabilities(client: TestClient) -> None:
    found = ask(client, "spot", game=LIMIT.name, agent="teacher", betting="crrc/cr", board="6dJs5c")
    agent = resolve(BUNDLE, LIMIT)
    for cards in ("AsAh", "Kd7d", "4c3h"):
        at = found["hands"]["cards"].index(cards)
        hole, board, expected = parse_cards(cards), parse_cards("6dJs5c"), 1.0
        for before, label in (("c", 2), ("crr", 1), ("crrc/", 1)):
            expected *= agent.probabilities(observation(LIMIT, before, 0, hole, board))[0, label]
        assert found["hands"]["reach"][at] == pytest.approx(expected, abs=1e-5)


def test_cells_are_sums_of_their_hands_weighted_by_reach(client: TestClient) -> None:
    found = ask(client, "spot", game=LIMIT.name, agent="teacher", betting="rc/", board="6dJs5c")
    cell = np.array(found["hands"]["cell"])
    reach, mix = np.array(found["hands"]["reach"]), np.array(found["hands"]["mix"])
    for name in ("A2s", "J6o", "K8s"):
        number = found["cells"]["names"].index(name)
        mine = cell == number
        assert found["cells"]["hands"][number] == mine.sum()
        expected = (mix[mine] * reach[mine, None]).sum(axis=0) / reach[mine].sum()
        np.testing.assert_allclose(found["cells"]["mix"][number], expected, atol=1e-3)
    assert sum(found["cells"]["combos"]) == pytest.approx(found["combos"], abs=0.01)
    assert sum(row["combos"] for row in found["groups"]["made"]) == pytest.approx(found["combos"], abs=0.05)
    assert sum(row["hands"] for row in found["groups"]["draws"]) == 1176


def test_two_agents_are_compared_by_total_variation_weighted_by_reach(client: TestClient) -> None:
    found = ask(client, "spot", game=LIMIT.name, agent="teacher", betting="rc/", board="6dJs5c", other="@random")
    mine, theirs = np.array(found["hands"]["mix"]), np.array(found["other"]["hands"]["mix"])
    apart = np.abs(mine - theirs).sum(axis=1) / 2
    reach = np.array(found["hands"]["reach"])
    assert found["other"]["difference"]["mean"] == pytest.approx((apart * reach).sum() / reach.sum(), abs=1e-4)
    same = ask(client, "spot", game=LIMIT.name, agent="@call", other="@call")
    assert same["other"]["difference"]["mean"] == 0


def test_actions_lead_to_the_next_spots(client: TestClient) -> None:
    start = ask(client, "spot", game=NOLIMIT.name, agent="@equity")
    assert [action["text"] for action in start["actions"]][:2] == ["fold", "call 50"]
    raised = next(action for action in start["actions"] if action["label"] == "p")
    then = ask(client, "spot", game=NOLIMIT.name, agent="@equity", betting=raised["betting"])
    assert then["path"][0]["text"] == f"button raises to {raised['amount']}"
    assert then["actor"] == 0
    other = ask(client, "amount", game=NOLIMIT.name, betting="", amount="333")
    assert other["betting"] == "r333"


def test_a_board_that_is_not_there_yet_is_asked_for(client: TestClient) -> None:
    found = ask(client, "spot", game=LIMIT.name, agent="teacher", betting="rc/", board="6d")
    assert (found["missing_cards"], found["board"], found.get("hands")) == (2, ["6d"], None)
    over = ask(client, "spot", game=LIMIT.name, agent="teacher", betting="f")
    assert over["finished"]
    assert over["actions"] == []


def test_three_players_and_games_of_one_card_have_their_grids(client: TestClient) -> None:
    three = ask(client, "spot", game="holdem.limit.3p", agent="@equity", betting="rc")
    assert (three["actor"], len(three["hands"]["cards"])) == (1, 1326)
    small = ask(client, "spot", game="leduc.limit.2p", agent="@random")
    assert small["cells"]["names"] == ["A", "K", "Q"]
    assert small["columns"] == 3


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"agent": "../../etc/passwd"}, "no agent"),
        ({"agent": "python:os:system"}, "no agent"),
        ({"agent": "exec:/bin/sh"}, "no agent"),
        ({"game": "/etc/passwd"}, "no game"),
        ({"betting": "rrrrrr"}, "not legal"),
        ({"betting": "rc"}, "not how a betting"),
        ({"betting": "<script>alert(1)</script>"}, "not how a betting"),
        ({"betting": "r" * 3000}, "not legal"),
        ({"betting": "fc"}, "after the hand is over"),
        ({"betting": "rc/", "board": "6d6d5c"}, "same card twice"),
        ({"betting": "rc/", "board": "ZZ"}, "not a card"),
        ({"betting": "rc/", "board": "2c" * 40}, "five cards"),
        ({"other": "nobody"}, "no agent"),
    ],
)
def test_bad_requests_get_a_sentence(client: TestClient, parameters: dict[str, str], words: str) -> None:
    answer = client.get("/api/spot", params={"game": LIMIT.name, "agent": "teacher", **parameters})
    assert answer.status_code == 400
    assert words in answer.json()["error"]


# Who may ask


def test_pages_and_their_files_are_served_with_a_strict_policy(client: TestClient) -> None:
    for path in ("/", "/strategy"):
        page = client.get(path)
        assert page.status_code == 200
        assert page.headers["content-security-policy"] == POLICY
        assert TOKEN in page.text
        assert "style=" not in page.text
    assert "unsafe" not in POLICY
    for name, (kind, content) in assets().items():
        if kind != "text/html":
            assert client.get(f"/assets/{name}").content == content
    assert sum(len(content) for _, content in assets().values()) < 200_000


def test_nothing_but_the_pages_files_can_be_fetched(client: TestClient) -> None:
    for path in (
        "/assets/../app.py",
        "/assets/%2e%2e%2fapp.py",
        "/assets/index.html",
        "/etc/passwd",
        "/assets/",
        "/api/",
    ):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert "error" in answer.json()


def test_a_foreign_host_header_is_refused(explorer: Explorer) -> None:
    for host in ("evil.example", "evil.example:8017", "127.0.0.1.evil.example", "", "[::1].evil"):
        answer = TestClient(make_app(explorer), base_url=HERE).get("/api/about", headers={"Host": host})
        assert answer.status_code == 421, host
    for host in ("localhost:8017", "127.0.0.1:9", "[::1]:8017"):
        assert (
            TestClient(make_app(explorer), base_url=HERE).get("/api/about", headers={"Host": host}).status_code == 200
        )


def test_what_changes_something_needs_the_pages_token(client: TestClient) -> None:
    assert client.post("/api/tables", json={}).status_code == 403
    assert client.post("/api/tables", json={}, headers={"X-Pipeline-Token": "guess"}).status_code == 403
    assert client.put("/api/tables", headers={"X-Pipeline-Token": TOKEN}).status_code == 405


def test_beyond_loopback_everything_needs_the_token(explorer: Explorer) -> None:
    far = TestClient(make_app(explorer, "0.0.0.0"), base_url="http://10.0.0.7:8017", follow_redirects=False)
    for path in ("/", "/api/about", "/assets/app.css", "/?token=wrong"):
        assert far.get(path).status_code == 401
    entered = far.get("/strategy?betting=r&token=" + TOKEN)
    assert entered.status_code == 303
    assert entered.headers["location"] == "/strategy?betting=r"
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert far.get("/api/about").status_code == 200
    assert far.get("/api/about", headers={"Host": "evil.example"}).status_code == 421


def test_requests_are_bounded(client: TestClient) -> None:
    long = client.get("/api/spot", params={"betting": "r" * 5000})
    assert long.status_code == 414
    large = client.post("/api/tables", content=b"x" * (MOST_BODY + 1), headers={"X-Pipeline-Token": TOKEN})
    assert large.status_code == 413


def test_names_cannot_be_markup(client: TestClient) -> None:
    for name, (kind, content) in assets().items():
        if kind == "text/javascript":
            for word in (
                b"innerHTML",
                b"outerHTML",
                b"insertAdjacentHTML",
                b"document.write",
                b"eval(",
                b"http://",
                b"https://",
            ):
                assert word not in content, (name, word)


def test_fifty_requests_at_once_are_answered(explorer: Explorer) -> None:
    server = Server(explorer, port=0)
    thread = server.run_in_thread()
    begin = threading.Barrier(50)

    def one(number: int) -> int:
        begin.wait()
        path = f"api/spot?game={LIMIT.name}&agent=teacher&betting=rc/cc/&board=6dJs5c{'23456789'[number % 8]}h"
        with urllib.request.urlopen(server.address + path, timeout=60) as answer:
            return len(json.loads(answer.read())["hands"]["cards"])

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(one, range(50))) == {1128}
    server.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_a_port_that_is_taken_is_said(explorer: Explorer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PipelineError, match="cannot listen"):
            Server(explorer, port=taken.getsockname()[1])


def test_agents_are_called_by_their_shortest_names() -> None:
    shelf = Shelf([BUNDLE, "@call"], [LIMIT, builtin("holdem.limit.3p")])
    assert shelf.entries["teacher"].games == (LIMIT.name,)
    assert shelf.entries["@call"].games == (LIMIT.name, "holdem.limit.3p")
    assert shelf.entries["teacher"].imitates == ("teacher",)
    with pytest.raises(PipelineError, match=r"no/such/bundle"):
        Shelf(["no/such/bundle"])


def test_paths_are_not_told(client: TestClient) -> None:
    assert str(Path.cwd()) not in json.dumps(ask(client, "about")["agents"])
