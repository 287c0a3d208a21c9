"""The golden run: the small demo goes from bundled logs to models, tables, matches and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipeline.cli.main import main


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside the clone, where the demo finds its logs in the package."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out" / "demo"


def test_the_small_demo_tells_the_whole_story(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path = elsewhere
    main(["demo", "--size", "small"])
    shown = capsys.readouterr().out
    assert re.findall(r"^(\d)\. ", shown, re.M)[:3] == ["1", "2", "3"]
    assert "ingest sample: --out out/demo/rows" in shown
    assert str(Path.cwd()) not in shown
    assert "20,000 hands + 0 rejected" in shown
    assert re.search(r"teacher +preflop +2,223 +5\.94 ±0\.99", shown)  # the same logs and seed give the same table
    for algorithm in ("l-bfgs", "sgd-l1", "rprop"):
        models = json.loads((tmp_path / "thesis" / algorithm / "manifest.json").read_text())["models"]
        assert [model["name"] for model in models] == ["chart", "flop", "turn", "river"]
    assert "instant run-off" in shown
    assert "Copies of teacher" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "demo.json").read_text())["page"].endswith("report.html")
    assert "Type next:" in shown
    assert "pipeline play " in shown
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")
    page = re.sub(r"<[^>]+>", "", (tmp_path / "report.html").read_text())
    for opponent in ("equity", "bearl"):
        match = json.loads((tmp_path / f"match-{opponent}.json").read_text())
        verb = "wins" if match["adjusted_mbb_per_hand"] > 0 else "loses"
        amount = abs(match["adjusted_mbb_per_hand"])
        assert f"{verb} {amount:.0f} ±" in page or f"{verb} {amount:.1f} ±" in page or f"even with {opponent}" in page
