"""Pictures of the explorer's views for the docs: `python tests/web/web_pictures.py` (`make pictures`) makes them
again.

Needs the Debian packages `chromium` and `chromium-driver`. The strategy is that of `models/teacher` beside its teacher,
the hands are those of the bundled sample, the game is played with a fixed seed.
"""

from __future__ import annotations

import base64
import secrets
import sys
import tempfile
from pathlib import Path

from test_web_browser import FLAGS, until

import pipeline as p
from pipeline.web.app import open_explorer
from pipeline.web.server import Server

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
GAME = "holdem.limit.2p.reverse_blinds"
STRATEGY = f"strategy?game={GAME}&agent=teacher&betting=rc/cr&board=6dJs5c&other=@teacher"
HANDS = "hands?player=teacher&street=3&hand=17&step=5"
CLICKS = (".lobby .primary", "[data-key=h]")


def main() -> None:
    """Write the three pictures."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    secrets.randbits = lambda bits: 20  # type: ignore[assignment]
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as folder:
        p.ingest("data/sample", Path(folder) / "rows", strength=False)
        explorer = open_explorer(
            ["models/teacher", "@teacher"], token="pictures", data=Path(folder) / "rows", save=Path("out/played")
        )
        explorer.tables.save = Path(folder) / "played"
        server = Server(explorer, port=0, needs_token=False)
        server.run_in_thread()
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        try:
            for name, path, ready in (
                ("strategy", STRATEGY, ".groups"),
                ("hands", HANDS, ".felt"),
                ("play", "play", ".lobby"),
            ):
                driver.get(server.address + path)
                until(driver, f"document.querySelector('{ready}')")
                for selector in CLICKS if name == "play" else ():
                    until(driver, f"document.querySelector('{selector}')")
                    driver.execute_script(f"document.querySelector('{selector}').click()")
                if name == "play":
                    until(driver, "document.querySelector('.hint')")
                shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})
                (PICTURES / f"web-{name}.webp").write_bytes(base64.b64decode(shot["data"]))
        finally:
            driver.quit()
            server.stop()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
