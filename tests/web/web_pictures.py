"""Pictures of the explorer's views and of the report for the docs: `python tests/web/web_pictures.py` (`make pictures`)
makes them again.

Needs the Debian packages `chromium` and `chromium-driver`. The strategy is that of `models/teacher` beside its teacher,
the hands are those of the bundled sample, the game is played with a fixed seed.
"""

from __future__ import annotations

import base64
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

from test_web_browser import FLAGS, until

import pipeline as p
from pipeline.web.app import open_explorer
from pipeline.web.server import Server

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
VIEW = (1280, 800)
REPORT = (1000, 960)
"""what of the report is drawn: its first screen"""
GAME = "holdem.limit.2p.reverse_blinds"
STRATEGY = f"strategy?game={GAME}&agent=teacher&betting=rc/cr&board=6dJs5c&other=@teacher"
HANDS = "hands?player=teacher&street=3&hand=17&step=5"
CLICKS = (".lobby .primary", "[data-key=h]")


def open_page(driver: Any, address: str, size: tuple[int, int]) -> None:
    """Open a page in a window of this size."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(address)


def draw(driver: Any, name: str) -> None:
    """Write what the window shows."""
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})
    (PICTURES / f"{name}.webp").write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    """Write the four pictures."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    secrets.randbits = lambda bits: 20  # type: ignore[assignment]
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as folder:
        rows, page = Path(folder) / "rows", Path(folder) / "report.html"
        p.ingest("sample:", rows, strength=False)
        p.write_report(rows, "teacher:", out=page, probabilities="sample:/sample.probs.parquet")
        explorer = open_explorer(["teacher:", "@teacher"], token="pictures", data=rows, save=Path("out/played"))
        explorer.tables.save = Path(folder) / "played"
        server = Server(explorer, port=0, needs_token=False)
        server.run_in_thread()
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            open_page(driver, page.as_uri(), REPORT)
            draw(driver, "report")
            for name, path, ready in (
                ("strategy", STRATEGY, ".groups"),
                ("hands", HANDS, ".felt"),
                ("play", "play", ".lobby"),
            ):
                open_page(driver, server.address + path, VIEW)
                until(driver, f"document.querySelector('{ready}')")
                for selector in CLICKS if name == "play" else ():
                    until(driver, f"document.querySelector('{selector}')")
                    driver.execute_script(f"document.querySelector('{selector}').click()")
                if name == "play":
                    until(driver, "document.querySelector('.hint')")
                draw(driver, f"web-{name}")
        finally:
            driver.quit()
            server.stop()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
