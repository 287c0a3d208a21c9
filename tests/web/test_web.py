"""The explorer's server: what it answers is what the policies say, and who may ask is checked."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import pipeline as p
from pipeline.agents.names import resolve
from pipeline.agents.predictions import predict
from pipeline.arena.table import Sitting
from pipeline.dataset.decisions import betting_code, observation
from pipeline.evaluation.hand_story import replay_hand as tell_story
from pipeline.formats.acpc import parse_hand
from pipeline.poker.cards import class_text, pair_index, parse_cards, start_class
from pipeline.poker.game import actions, builtin
from pipeline.poker.made_hands import MADE, classify
from pipeline.runtime.errors import PipelineError
from pipeline.web import spots
from pipeline.web.app import Explorer, assets, make_app, open_explorer
from pipeline.web.jobs import MOST_READY, MOST_WAITING, Jobs
from pipeline.web.roster import Roster
from pipeline.web.safety import MOST_BODY, POLICY
from pipeline.web.server import MOST_CONNECTIONS, Server
from pipeline.web.tables import MOST_TABLES, equity_against

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
HERE = "http://127.0.0.1:8017"
TOKEN = "a-token-of-the-tests"
BUNDLE = "models/teacher"
EVIL = "<img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    save = tmp_path_factory.mktemp("played")
    games = ["holdem.limit.3p", NOLIMIT.name, LIMIT.name, "leduc.limit.2p"]
    return open_explorer([BUNDLE, "@random", "@call", "@equity"], token=TOKEN, games=games, save=save)


@pytest.fixture(scope="module")
def client(explorer: Explorer) -> TestClient:
    return entered(make_app(explorer))


def entered(app: Any) -> TestClient:
    """A browser that has opened the address that the server printed."""
    client = TestClient(app, base_url=HERE)
    assert client.get("/api/about").status_code == 401
    assert client.get(f"/?token={TOKEN}").status_code == 200
    return client


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


def test_raises_go_to_the_amounts_that_the_agent_bets(client: TestClient, explorer: Explorer) -> None:
    found = ask(client, "spot", game=NOLIMIT.name, agent="@equity", betting="r300c/", board="6dJs5c")
    [said] = predict([explorer.roster.agent("@equity", NOLIMIT)], "MATCHSTATE:0:0:r300c/:AsAh|/6dJs5c")
    raises = {action["number"]: action["amount"] + 300 for action in found["actions"] if action["action"] == "r"}
    assert raises
    assert raises == {number: said.amounts[number] for number in raises}


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
        ({"game": NOLIMIT.name, "agent": "@call", "betting": "r99999999999999999999999"}, "chips"),
        ({"betting": "r\x00c/"}, "not how a betting"),
    ],
)
def test_bad_requests_get_a_sentence(client: TestClient, parameters: dict[str, str], words: str) -> None:
    answer = client.get("/api/spot", params={"game": LIMIT.name, "agent": "teacher", **parameters})
    assert answer.status_code == 400
    assert words in answer.json()["error"]


# Who may ask


def test_pages_and_their_files_are_served_with_a_strict_policy(client: TestClient) -> None:
    for path in ("/", "/strategy", "/hands", "/play", "/results"):
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
        answer = TestClient(make_app(explorer, needs_token=False), base_url=HERE).get(
            "/api/about", headers={"Host": host}
        )
        assert answer.status_code == 421, host
    for host in ("localhost:8017", "127.0.0.1:9", "[::1]:8017"):
        assert (
            TestClient(make_app(explorer, needs_token=False), base_url=HERE)
            .get("/api/about", headers={"Host": host})
            .status_code
            == 200
        )


def test_what_changes_something_needs_the_pages_token(client: TestClient) -> None:
    assert client.post("/api/tables", json={}).status_code == 403
    assert client.post("/api/tables", json={}, headers={"X-Pipeline-Token": "guess"}).status_code == 403
    assert client.put("/api/tables", headers={"X-Pipeline-Token": TOKEN}).status_code == 405


@pytest.mark.parametrize(("host", "base"), [("0.0.0.0", "http://10.0.0.7:8017"), ("127.0.0.1", HERE)])
def test_everything_needs_the_token_on_this_machine_too(explorer: Explorer, host: str, base: str) -> None:
    far = TestClient(make_app(explorer, host), base_url=base, follow_redirects=False)
    for path in ("/", "/api/about", "/assets/app.css", "/?token=wrong"):
        assert far.get(path).status_code == 401
        assert TOKEN not in far.get(path).text
    entered = far.get("/strategy?betting=r&token=" + TOKEN)
    assert entered.status_code == 303
    assert entered.headers["location"] == "/strategy?betting=r"
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert far.get("/api/about").status_code == 200
    assert far.get("/api/about", headers={"Host": "evil.example"}).status_code == 421


def test_servers_at_several_ports_do_not_take_each_others_cookies(explorer: Explorer) -> None:
    for port in (8017, 9999):
        client = TestClient(make_app(explorer), base_url=f"http://127.0.0.1:{port}", follow_redirects=False)
        assert client.get(f"/?token={TOKEN}").headers["set-cookie"].startswith(f"pipeline_token_{port}={TOKEN};")


def test_without_a_token_whoever_has_an_account_here_may_look_and_nobody_else(explorer: Explorer) -> None:
    server = Server(explorer, port=0, needs_token=False)
    thread = server.run_in_thread()
    assert server.entrance == server.address
    with urllib.request.urlopen(server.entrance, timeout=60) as answer:
        assert answer.status == 200
    server.stop()
    thread.join(10)
    with pytest.raises(PipelineError, match="leave --no-token out"):
        Server(explorer, "0.0.0.0", port=0, needs_token=False)


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
    server = Server(explorer, port=0, needs_token=False)
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


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /api/about HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"POST /api/tables HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Pipeline-Token: %s\r\nContent-Length: 9\r\n\r\n{"
        % TOKEN.encode(),
        b"GET /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /api/jobs HT",
    ],
)
def test_whoever_does_not_finish_a_request_is_left(explorer: Explorer, sent: bytes) -> None:
    server = Server(explorer, port=0, needs_token=False, timeout_s=0.2)
    thread = server.run_in_thread()
    tables = len(explorer.tables._tables)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as link:
        link.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            while link.recv(1 << 16):
                pass
    assert len(explorer.tables._tables) == tables
    server.stop()
    thread.join(10)


def test_more_connections_than_anybody_needs_are_closed_and_the_others_go_on(explorer: Explorer) -> None:
    server = Server(explorer, port=0, needs_token=False)
    thread = server.run_in_thread()
    with contextlib.ExitStack() as stack:
        links = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            for _ in range(MOST_CONNECTIONS + 1)
        ]
        with contextlib.suppress(ConnectionResetError):
            assert links[-1].recv(1) == b""
        links[0].sendall(b"GET /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert links[0].recv(12) == b"HTTP/1.1 200"
    server.stop()
    thread.join(10)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/about", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ("/api/about", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403),
        ("/api/results", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ("/api/about", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("/", {"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_what_another_page_asks_for_is_refused(
    client: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    assert client.get(path, headers=headers).status_code == status


@pytest.mark.parametrize("path", ["/%5Cevil.example/", "//evil.example/", "/%0d%0aX-Evil:%20yes", "/%E2%88%9E"])
def test_the_entrance_leads_nowhere_else(explorer: Explorer, path: str) -> None:
    far = TestClient(make_app(explorer, "0.0.0.0"), base_url="http://10.0.0.7:8017", follow_redirects=False)
    entered = far.get(f"http://10.0.0.7:8017{path}?token={TOKEN}")
    assert entered.status_code == 303
    assert re.fullmatch(r"/[A-Za-z0-9%.:/-]*", entered.headers["location"])
    assert not entered.headers["location"].startswith("//")


def test_work_for_one_player_after_the_other_neither_fills_the_memory_nor_waits_without_end() -> None:
    jobs, begin = Jobs(), threading.Event()
    jobs.start("first", "first", lambda _: begin.wait(20))
    for number in range(MOST_WAITING - 1):
        jobs.start(str(number), "more", lambda _: bytes(1))
    with pytest.raises(PipelineError, match="too much is waiting"):
        jobs.start("one more", "more", lambda _: bytes(1))
    begin.set()
    jobs.start("first", "first", lambda _: None).ended.wait(20)
    for number in range(3 * MOST_READY):
        jobs.start(f"player {number}", "more", lambda _: bytes(1)).ended.wait(20)
    assert len(jobs._jobs) <= MOST_READY + 1


def test_a_port_that_is_taken_is_said(explorer: Explorer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PipelineError, match="cannot listen"):
            Server(explorer, port=taken.getsockname()[1])


def test_agents_are_called_by_their_shortest_names() -> None:
    roster = Roster([BUNDLE, "@call"], [LIMIT, builtin("holdem.limit.3p")])
    assert roster.entries["teacher"].games == (LIMIT.name,)
    assert roster.entries["@call"].games == (LIMIT.name, "holdem.limit.3p")
    assert roster.entries["teacher"].imitates == ("teacher",)
    with pytest.raises(PipelineError, match=r"no/such/bundle"):
        Roster(["no/such/bundle"])


def test_paths_are_not_told(client: TestClient) -> None:
    assert str(Path.cwd()) not in json.dumps(ask(client, "about")["agents"])


# Playing


def tell(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/{path}", json=body, headers={"X-Pipeline-Token": TOKEN})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("game", "agents"),
    [(LIMIT.name, ["teacher"]), (NOLIMIT.name, ["@random"]), ("holdem.limit.3p", ["@call", "@random"])],
)
def test_hands_are_played_to_the_end_and_the_log_can_be_ingested(
    client: TestClient, tmp_path: Path, game: str, agents: list[str]
) -> None:
    table = tell(client, "tables", game=game, agents=agents)
    words = iter(np.random.default_rng(3).choice(["c", "c", "r", "f"], 2000))
    for number in range(12):
        assert table["hand"] == number
        while not table["finished"]:
            others = [seat for seat in table["seats"] if not seat["me"]]
            assert all(seat["cards"] == [] for seat in others), "cards of others are not shown before the end"
            assert table["review"] is None
            options = table["options"]
            word = str(next(words))
            if (word == "f" and not options["fold"]) or (word == "r" and options["raise"] is None):
                word = "c"
            amount = str(options["raise"]["low"]) if word == "r" and not options["raise"]["fixed"] else ""
            path = f"tables/{table['table']}"
            table = tell(client, f"{path}/act", action=word, amount=amount, hand=table["hand"])
        assert all(seat["cards"] for seat in table["seats"])
        assert sum(seat["won"] for seat in table["seats"]) == 0
        for decision in table["review"]["decisions"]:
            assert sum(decision["mix"]) == pytest.approx(1, abs=1e-4)
            assert decision["mix"][decision["taken"]] > 0
        if number < 11:
            table = tell(client, f"tables/{table['table']}/next")
    assert table["result"]["hands"] == 12
    assert table["result"]["ci95"] > 0
    done = p.ingest(Path(table["log"]), tmp_path / "rows", strength=False)
    assert (done.hands, done.rejected) == (12, 0)


def test_a_hint_knows_no_hidden_cards(client: TestClient, explorer: Explorer) -> None:
    table = tell(client, "tables", game=LIMIT.name, agents=["@call"])
    while table["finished"]:
        table = tell(client, f"tables/{table['table']}/next")
    hint = ask(client, f"tables/{table['table']}/hint")
    assert {one["agent"] for one in hint["mixes"]} == {"teacher", "@random", "@call", "@equity"}
    live = explorer.tables._seated(table["table"]).sitting.hand
    mine = parse_cards(live.deal.holes[live.me])
    live.deal = live.deal._replace(
        holes=tuple("" if at != live.me else hole for at, hole in enumerate(live.deal.holes))
    )
    assert ask(client, f"tables/{table['table']}/hint") == hint
    assert hint["equity"] == pytest.approx(equity_against(mine, parse_cards(""), np.ones(1326)), abs=1e-4)


def test_equity_against_a_range_is_a_share_of_the_pot() -> None:
    aces, weights = parse_cards("AsAh"), np.zeros(1326)
    weights[pair_index(*parse_cards("KsKh").tolist())] = 1
    assert equity_against(aces, parse_cards(""), weights) == pytest.approx(0.8264, abs=0.0001)
    assert equity_against(aces, parse_cards("KdKc2h3s4s"), weights) == 0
    assert equity_against(aces, parse_cards(""), np.ones(1326)) == pytest.approx(0.852, abs=0.001)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"action": "r", "amount": "99999999"}, "not possible"),
        ({"action": "<b>"}, "not an action"),
        ({"action": "f", "hand": 7}, "over"),
        ({"action": "c", "hand": "0"}, "number of the hand"),
        ({"action": {"x": 1}}, "not an action"),
    ],
)
def test_wrong_actions_get_a_sentence_and_change_nothing(client: TestClient, said: dict[str, Any], words: str) -> None:
    table = tell(client, "tables", game=NOLIMIT.name, agents=["@call"])
    answer = client.post(
        f"/api/tables/{table['table']}/act", json={"hand": 0, **said}, headers={"X-Pipeline-Token": TOKEN}
    )
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert ask(client, f"tables/{table['table']}") == table


class Unwell:
    """Calls; while unwell it fails."""

    name = "unwell"
    game = LIMIT
    is_unwell = False

    def probabilities(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.is_unwell:
            raise PipelineError("unwell failed: a headache")
        return np.tile([0.0, 1.0, 0.0], (len(rows), 1))


def test_a_hand_in_which_an_agent_fails_is_taken_back_and_can_be_left(explorer: Explorer) -> None:
    tables, bot = explorer.tables, Unwell()
    key = tables.sit_down(LIMIT.name, ["@call"])["table"]
    tables._seated(key).sitting = Sitting(LIMIT, [bot], ("you", "unwell"), 7)
    tables._seated(key).sitting.next_hand()
    tables._seated(key).others_act(0)
    before = tables.view(key)
    assert (before["failure"], before["options"] is not None) == ("", True)

    bot.is_unwell = True
    failed = tables.act(key, "r", "", 0)
    assert failed == before | {"failure": "unwell failed: a headache"}
    left = tables.next_hand(key)
    assert (left["hand"], left["result"]["hands"], left["failure"]) == (0, 0, failed["failure"])
    assert (left["moves"], left["options"]) == ([], None)  # the agent is to act, and could not

    bot.is_unwell = False
    played = tables.next_hand(key)
    while not played["finished"]:
        played = tables.act(key, "c", "", 0)
    assert (played["failure"], played["result"]["hands"]) == ("", 1)
    assert tables.next_hand(key)["hand"] == 1


def test_tables_that_are_gone_or_cannot_be_are_refused(client: TestClient) -> None:
    headers = {"X-Pipeline-Token": TOKEN}
    for body in (
        {"game": LIMIT.name, "agents": ["@call", "@call"]},
        {"agents": "x"},
        {"game": "x", "agents": ["@call"]},
    ):
        assert client.post("/api/tables", json=body, headers=headers).status_code == 400
    assert client.post("/api/tables", content=b"[[[", headers=headers).status_code == 400
    assert "gone" in client.get("/api/tables/0123456789abcdef").json()["error"]


def test_the_table_left_longest_ago_goes_first(client: TestClient) -> None:
    first = tell(client, "tables", game="leduc.limit.2p", agents=["@random"])
    for _ in range(MOST_TABLES):
        tell(client, "tables", game="leduc.limit.2p", agents=["@random"])
    assert client.get(f"/api/tables/{first['table']}").status_code == 400


# Hands and results


@pytest.fixture(scope="module")
def with_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, Explorer, list[Any]]:
    folder = tmp_path_factory.mktemp("data")
    agents = [resolve(name, LIMIT) for name in ("@equity", "@random")]
    p.match(*agents, hands=300, seed=4, log=folder / "logs" / "played.log")
    hands = []
    for log in sorted((folder / "logs").glob("*.log")):
        text = re.sub(r"(?<=[:|])equity(?=[|\n])", EVIL, log.read_text())
        log.write_text(text)
        hands += [parse_hand(line) for line in text.splitlines() if line.startswith("STATE:")]
    p.ingest(folder / "logs", folder / "rows", strength=False)
    made = open_explorer(["@call", "@random"], token=TOKEN, data=folder / "rows", save=folder / "played")
    made.hands.archive(LIMIT).ended.wait(60)
    return entered(make_app(made)), made, hands


def ids(client: TestClient, **query: Any) -> set[tuple[int, str]]:
    found, rows = [], {}
    while not found or len(rows) < found[-1]["found"]:
        found.append(ask(client, "hands", **query, **{"from": len(rows)}))
        rows |= {(row["number"], "|".join(row["names"])): row for row in found[-1]["rows"]}
        if not found[-1]["rows"]:
            break
    return set(rows)


def test_filters_find_the_hands_of_the_log(with_data: Any) -> None:
    client, _, hands = with_data

    def expected(fits: Any) -> set[tuple[int, str]]:
        return {(hand.number, "|".join(hand.names)) for hand in hands if fits(hand)}

    assert ask(client, "hands")["hands"] == len(hands)
    assert ids(client, street=3) == expected(lambda hand: hand.betting.count("/") == 3)
    assert ids(client, betting="rc/") == expected(lambda hand: hand.betting.startswith("rc/"))
    assert ids(client, least_pot=100, most_pot=140) == expected(lambda hand: 100 <= state_of(hand).pot <= 140)
    wanted = start_of(hands[0].holes[0])
    assert ids(client, start=wanted) == expected(lambda hand: wanted in map(start_of, hand.holes))
    flush = ids(client, made="flush", player="random")
    assert flush == expected(lambda hand: kind_of(hand, "random") == "flush")
    biggest = ask(client, "hands", sort="pot")["rows"]
    assert [row["pot"] for row in biggest] == sorted((row["pot"] for row in biggest), reverse=True)
    won = ask(client, "hands", sort="won", player="random")["rows"][0]
    assert won["won"] == max(hand.payoffs[hand.names.index("random")] for hand in hands)


def start_of(hole: str) -> str:
    return class_text(start_class(*parse_cards(hole).tolist()))


def state_of(hand: Any) -> Any:
    state = LIMIT.start()
    for action, size in actions(hand.betting):
        state = state.apply(action, size)
    return state


def kind_of(hand: Any, player: str) -> str:
    board = parse_cards("".join(hand.board))
    shown = np.full((1, 5), 255, dtype=np.uint8)
    shown[0, : len(board)] = board
    made, _ = classify(parse_cards(hand.holes[hand.names.index(player)])[None], shown)
    return "" if made[0] == 255 else MADE[made[0]]


def test_a_replay_has_the_steps_of_the_log(with_data: Any) -> None:
    client, made, hands = with_data
    row = next(row for row in ask(client, "hands", street=3)["rows"])
    found = ask(client, f"hands/{row['id']}", player="random")
    hand = parse_hand(found["text"])
    assert hand in hands
    story = tell_story(hand, LIMIT, [("@random", made.roster.agent("@random", LIMIT))])
    assert len(found["steps"]) == len(story.decisions) + 1
    for step, decision in zip(found["steps"], story.decisions, strict=False):
        assert step["text"] == f"{decision.player} {decision.action}"
        assert "".join(step["board"]) == decision.board
        [mix] = [one["mix"] for one in step["mixes"] if one["agent"] == "@random"]
        np.testing.assert_allclose(mix, list(decision.mixes["@random"].values()), atol=1e-5)
        assert sum(step["equities"]) == pytest.approx(1, abs=0.001)
    assert [seat["won"] for seat in found["steps"][-1]["seats"]] == list(hand.payoffs)


def test_disagreement_is_the_least_likely_action_and_is_kept(with_data: Any) -> None:
    client, made, _ = with_data
    query = {"player": "random", "agent": "@call", "sort": "disagreement"}
    ask(client, "hands", **query)
    archive = made.hands.archive(LIMIT).result
    work = made.hands.disagreement(LIMIT, "@call", "random", archive)
    assert work.ended.wait(60)
    assert work.state == "ready", work.error
    for at, value in enumerate(work.result):
        hand = archive.hand(at)
        mine = hand.names.index("random")
        state, acted = LIMIT.start(), []
        for action, size in actions(hand.betting):
            acted += [action] if state.actor == mine else []
            state = state.apply(action, size)
        assert (value == 1) == any(action != 1 for action in acted) or (np.isnan(value) and not acted)
    rows = ask(client, "hands", **query)["rows"]
    assert rows[0]["disagreement"] == 1
    again = made.hands._disagreement(LIMIT, "@call", "random", archive, lambda *_: pytest.fail("worked out again"))
    np.testing.assert_array_equal(again, work.result)


def test_leaks_are_found_and_their_examples_can_be_replayed(with_strength: Any) -> None:
    client, made = with_strength
    client.get("/api/hands")
    made.jobs.start("hands leduc.limit.2p", "", lambda _: None).ended.wait(60)
    ask(client, "leaks", player="random", agent="@call")
    made.jobs.start("leaks leduc.limit.2p random @call", "", lambda _: None).ended.wait(60)
    leaks = ask(client, "leaks", player="random", agent="@call")
    values = [spot["difference_mbb_per_hand"] for spot in leaks["spots"]]
    assert values == sorted(values)
    assert leaks["spots"]
    for spot in leaks["spots"]:
        assert len(spot["examples"]) == 3
        hand = ask(client, f"hands/{spot['examples'][0]}", player="random")
        assert "random" in hand["names"]
        assert all(sum(mix) == pytest.approx(1) for mix in spot["mixes"])
    assert client.get("/api/leaks", params={"player": "x"}).status_code == 400
    assert client.get("/api/leaks", params={"player": "random", "agent": "x"}).status_code == 400


@pytest.fixture(scope="module")
def with_strength(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, Explorer]:
    """An explorer of a dataset of Leduc, where spots have hundreds of decisions after few hands."""
    folder = tmp_path_factory.mktemp("leduc")
    p.match("@random", "@call", game="leduc.limit.2p", hands=3000, seed=4, log=folder / "logs" / "played.log")
    p.ingest(folder / "logs", folder / "rows")
    made = open_explorer(["@call", "@random"], token=TOKEN, data=folder / "rows", save=folder / "played")
    return entered(make_app(made)), made


def test_no_two_lines_of_betting_and_no_two_boards_share_their_counts() -> None:
    codes = [betting_code(text) for text in ("cc", "rc", "crc", "rrc", "crrc")]
    lines = np.array([[first, second, 0, 0] for first in codes for second in codes])
    assert len(set(spots._line_hash(lines, 0, 2).tolist())) == len(lines)
    flops = np.array(list(combinations(range(12), 3)), np.uint8)
    assert len(set(spots._board_hash(flops).tolist())) == len(flops)


def test_counts_of_the_logs_are_shown_at_a_spot(with_data: Any) -> None:
    client, made, hands = with_data
    first = ask(client, "spot", agent="@random", betting="r", source="random")
    assert first["source"]["reading"] or first["source"]["counts"]
    made.jobs.start(f"counts {LIMIT.name} random", "", lambda _: None).ended.wait(60)
    found = ask(client, "spot", agent="@random", betting="r", source="random")["source"]
    seen = [hand.betting[1:2] for hand in hands if hand.betting.startswith("r") and hand.names.index("random") == 0]
    assert found["counts"] == [seen.count(letter) for letter in "fcr"]
    assert sum(map(sum, found["cells"])) == len(seen)


def test_names_from_logs_reach_the_page_as_text_alone(with_data: Any) -> None:
    client, _, _ = with_data
    assert EVIL in ask(client, "about")["data"]["players"]
    answer = client.get("/api/hands", params={"player": EVIL})
    assert answer.headers["content-type"] == "application/json"
    assert EVIL not in client.get("/hands").text


def test_the_report_is_shown_without_any_script(with_data: Any) -> None:
    client, made, _ = with_data
    ask(client, "results")
    job = made.results._job("")
    assert job.ended.wait(120)
    assert job.state == "ready", job.error
    shown = client.get("/report")
    assert "script" not in shown.headers["content-security-policy"]
    assert "sandbox" in shown.headers["content-security-policy"]
    assert "<script" not in shown.text
    assert EVIL not in shown.text
    assert "Log-loss" in shown.text


def test_without_data_the_views_say_so(client: TestClient) -> None:
    assert "--data" in client.get("/api/hands").json()["error"]
    assert ask(client, "results")["state"] == "nothing"
    for path in ("hands/x", "hands/-1", "hands/999999999999"):
        assert client.get(f"/api/{path}").status_code == 400
