"""The explorer in a real browser: what is on the page is what the policies and the logs say.

Needs the Debian packages `chromium` and `chromium-driver`; `make test-web` names them where they are missing.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pipeline as p
from pipeline.agents.names import resolve
from pipeline.dataset.decisions import observation
from pipeline.evaluation.hand_story import replay_hand
from pipeline.formats.acpc import parse_hand
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import builtin
from pipeline.web.app import open_explorer
from pipeline.web.server import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="no browser here: install the Debian packages chromium and chromium-driver",
    ),
]

LIMIT = builtin("holdem.limit.2p.reverse_blinds")
NOLIMIT = builtin("holdem.nolimit.2p.reverse_blinds")
TURN = "document.querySelector('[data-key=enter]') ? 'over' : document.querySelector('[data-key=c]') && 'act'"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("explorer")
    p.ingest("data/sample", folder / "rows", strength=False)
    explorer = open_explorer(
        ["models/teacher", "@call", "@random"],
        token="of-the-browser-tests",
        data=folder / "rows",
        games=[NOLIMIT.name, "holdem.limit.3p"],
        save=folder / "played",
    )
    made = Server(explorer, port=0, needs_token=False)
    thread = made.run_in_thread()
    yield made.address, folder, explorer
    made.stop()
    thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


def width(browser: Any, pixels: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )


def until(browser: Any, script: str) -> Any:
    """What a script gives, once it gives something."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 90, 0.05).until(lambda driver: driver.execute_script(f"return {script}"))


def click(browser: Any, selector: str) -> None:
    until(browser, f"document.querySelector({json.dumps(selector)})")
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def press(browser: Any, key: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.switch_to.active_element.send_keys(getattr(Keys, key, key))


def complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def cells(browser: Any) -> dict[str, str]:
    """What each cell of the first grid says."""
    return dict(
        browser.execute_script(
            "return [...document.querySelector('.range').querySelectorAll('.cell')]"
            ".map((one) => one.getAttribute('aria-label').split(': '))"
        )
    )


def test_walking_the_tree_shows_the_policys_own_numbers(browser: Any, server: Any) -> None:
    address, _, _ = server
    width(browser, 1400)
    browser.get(f"{address}strategy?game={LIMIT.name}&agent=teacher")
    until(browser, "document.querySelector('.range')")
    click(browser, "[data-action=r]")
    until(browser, "location.search.includes('betting=r')")
    until(browser, "document.querySelector('.trail').textContent.includes('raises to 20')")
    agent = resolve("models/teacher", LIMIT)
    shown = cells(browser)
    assert len(shown) == 169
    for name, cards in (("AA", "AsAh"), ("T9s", "Ts9s"), ("72o", "7s2h")):
        mix = agent.probabilities(observation(LIMIT, "r", 0, parse_cards(cards)))[0]
        for word, share in zip(("fold", "call", "raise"), mix, strict=True):
            found = re.search(rf"{word} (\d+)", shown[name])
            assert abs(int(found[1] if found else 0) - 100 * share) <= 0.51, (name, word, shown[name])
    click(browser, "[data-action=c]")
    until(browser, "document.querySelectorAll('.slot .card').length === 3")
    until(browser, "document.querySelector('.groups')")
    board = "".join(until(browser, "new URLSearchParams(location.search).get('board')"))
    click(browser, "[data-cell='1']")
    hand, said = until(
        browser,
        "(() => { const row = document.querySelector('.suits tbody tr');"
        "return row && [[...row.querySelectorAll('.card')]"
        ".map((one) => one.ariaLabel), row.querySelector('.mix').ariaLabel]; })()",
    )
    suits = {"clubs": "c", "diamonds": "d", "hearts": "h", "spades": "s"}
    ranks = {"ace": "A", "king": "K"}
    cards = "".join(ranks[words.split(" of ")[0]] + suits[words.split(" of ")[1]] for words in hand)
    mix = agent.probabilities(observation(LIMIT, "rc/", 0, parse_cards(cards), parse_cards(board)))[0]
    for word, share in zip(("fold", "check", "bet"), mix, strict=True):
        found = re.search(rf"{word} (\d+)", said)
        assert abs(int(found[1] if found else 0) - 100 * share) <= 0.51
    browser.back()
    browser.back()
    until(browser, "document.querySelector('.trail').textContent === 'Start'")
    assert complaints(browser) == []


def test_arrow_keys_move_in_the_grid_and_enter_opens_a_cell(browser: Any, server: Any) -> None:
    browser.get(f"{server[0]}strategy?game={LIMIT.name}&agent=teacher")
    until(browser, "document.querySelector('.range')")
    browser.execute_script("document.querySelector('[data-cell=\"0\"]').focus()")
    press(browser, "ARROW_RIGHT")
    press(browser, "ARROW_DOWN")
    assert browser.execute_script("return document.activeElement.dataset.cell") == "14"
    press(browser, "ENTER")
    assert until(browser, "document.querySelector('.suits') && document.querySelector('.side h2').textContent") == "KK"


def test_a_replayed_hand_is_that_of_the_log(browser: Any, server: Any) -> None:
    address, _, explorer = server
    browser.get(f"{address}hands?game={LIMIT.name}&player=teacher&street=3")
    click(browser, ".list tbody a")
    line = until(browser, "document.querySelector('.logline')?.textContent")
    story = replay_hand(parse_hand(line), LIMIT, [("teacher", explorer.roster.agent("teacher", LIMIT))])
    for number, decision in enumerate(story.decisions):
        text = until(
            browser, f"location.search.includes('step={number}') && document.querySelector('.over').textContent"
        )
        assert text == f"{decision.player} {decision.action}"
        open_cards = browser.execute_script("return document.querySelectorAll('.shared .card:not(.slot-empty)').length")
        assert open_cards == len(decision.board) // 2
        said = browser.execute_script("return document.querySelector('[data-agent=teacher]').textContent")
        for word, share in zip(("fold", "call|check", "raise|bet"), decision.mixes["teacher"].values(), strict=True):
            found = re.search(rf"(?:{word}) ([\d.]+)", said)
            assert abs(float(found[1] if found else 0) - 100 * share) <= 0.06
        browser.execute_script("document.activeElement.blur()")
        press(browser, "ARROW_RIGHT")
    won = until(
        browser,
        f"location.search.includes('step={len(story.decisions)}') && document.querySelector('.over').textContent",
    )
    assert won == (", ".join(f"{seat.name} wins {seat.won:,g}" for seat in story.winners) or "the pot is split")
    assert complaints(browser) == []


@pytest.mark.parametrize("game", [LIMIT.name, NOLIMIT.name])
def test_ten_hands_by_keyboard_are_saved_and_can_be_ingested(browser: Any, server: Any, game: str) -> None:
    address, folder, _ = server
    browser.get(f"{address}play")
    until(browser, "document.querySelector('.lobby select')")
    browser.execute_script(
        "const one = document.querySelector('.lobby select'); one.value = arguments[0];"
        "one.dispatchEvent(new Event('change'))",
        game,
    )
    browser.execute_script(
        "const one = document.querySelectorAll('.lobby select')[1]; one.value = '@random';"
        "one.dispatchEvent(new Event('change'))"
    )
    before = set((folder / "played").glob("*.log"))
    click(browser, ".lobby .primary")
    keys = iter("crchcrcccrc" * 40)
    for number in range(10):
        while until(browser, TURN) != "over":
            moves = browser.execute_script("return document.querySelectorAll('.moves li').length")
            key = next(keys)
            if browser.execute_script("return document.querySelector(`[data-key=${arguments[0]}]`).disabled", key):
                key = "c"
            press(browser, key)
            if key == "h":
                until(browser, "document.querySelector('.hint')")
            else:
                more = f"document.querySelectorAll('.moves li').length > {moves}"
                until(browser, f"{more} || document.querySelector('[data-key=enter]')")
        assert (
            until(browser, "document.querySelector('.score b').textContent") == f"{number + 1} hand{'s' * (number > 0)}"
        )
        if number < 9:
            press(browser, "ENTER")
            until(browser, f"document.querySelector('.side h2').textContent === 'Hand {number + 2}'")
    [log] = set((folder / "played").glob("*.log")) - before
    done = p.ingest(log, folder / f"again-{game}", strength=False)
    assert (done.hands, done.rejected) == (10, 0)
    assert complaints(browser) == []


@pytest.mark.parametrize("pixels", [360, 400, 1400])
def test_no_view_scrolls_sideways(browser: Any, server: Any, pixels: int) -> None:
    width(browser, pixels)
    spot = f"strategy?game={LIMIT.name}&agent=teacher&betting=rc/cr&board=6dJs5c&other=@random&source=teacher"
    for path, ready in (
        (spot, ".groups"),
        (f"strategy?game={NOLIMIT.name}&agent=@random", ".range"),
        ("hands?player=teacher&hand=3&step=2", ".felt"),
        ("play", ".lobby"),
        ("results", "iframe.report, .empty"),
    ):
        browser.get(server[0] + path)
        until(browser, f"document.querySelector({json.dumps(ready)})")
        wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, (path, pixels, wide)
    assert complaints(browser) == []


def test_no_request_leaves_the_host(browser: Any, server: Any) -> None:
    width(browser, 1400)
    browser.get_log("performance")
    for path in ("", "hands", "play", "results"):
        browser.get(server[0] + path)
        until(
            browser, "document.querySelector('#view *') && !document.querySelector('#view').hasAttribute('aria-busy')"
        )
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    assert len(asked) > 10
    assert all(url.startswith((server[0], "data:")) for url in asked), asked


def test_pages_have_labels_and_readable_colours(browser: Any, server: Any) -> None:
    """Every control has a name, and text on its background a contrast of at least 4.5 (3 for what is large)."""
    script = (Path(__file__).parents[1] / "fixtures" / "contrast.js").read_text()
    spot = f"strategy?game={LIMIT.name}&agent=teacher&betting=rc/cr&board=6dJs5c"
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        for path, ready in ((spot, ".groups"), ("hands?player=teacher&hand=3&step=2", ".felt"), ("play", ".lobby")):
            browser.get(server[0] + path)
            until(browser, f"document.querySelector({json.dumps(ready)})")
            assert browser.execute_script(script) == [], (scheme, path)
