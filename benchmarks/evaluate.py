"""Evaluation: a million rows by three max-ent models with all intervals, and the page in a browser.

The rows are the built-in teacher's, with its true probabilities; the models have the thesis's pattern and were trained
on other hands. The baseline draws deals again for one measure of one model the plain way, by indices of rows: two
draws, extrapolated to a thousand.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._figures import Figure, Settings
from benchmarks._play import teacher_rows
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.evaluation.findings import collect_findings
from pipeline.evaluation.scoring import Scored
from pipeline.features.patterns import find_pattern
from pipeline.poker.game import builtin
from pipeline.report.pages import build_page
from pipeline.training.config import TrainConfig
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

GAME = builtin("holdem.limit.2p.reverse_blinds")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ROWS = 1_000_000

LOAD = """<pre id="result"></pre><iframe id="f" style="width:1280px;height:900px"></iframe><script>
const f = document.getElementById("f"), text = document.getElementById("p").textContent, begun = performance.now();
f.onload = () => {
  f.contentDocument.body.getBoundingClientRect();
  document.getElementById("result").textContent = performance.now() - begun;
};
f.srcdoc = text;
</script>"""


def _plain_bootstrap(scored: Scored, draws: int = 2) -> float:
    """Return seconds for 1,000 draws of deals for one measure, extrapolated from a few."""
    values, deals = scored.by_row["log_loss"], scored.sample.deal
    order = np.argsort(deals, kind="stable")
    starts = np.flatnonzero(np.diff(deals[order], prepend=deals[order][0] + np.uint64(1)))
    clusters = np.split(order, starts[1:])
    random = np.random.default_rng(0)
    began = time.perf_counter()
    for _ in range(draws):
        drawn = random.integers(0, len(clusters), len(clusters))
        values[np.concatenate([clusters[i] for i in drawn])].mean()
    return (time.perf_counter() - began) / draws * 1000


def browser_ms(page: str) -> float | None:
    """Milliseconds from a page's text to its finished layout in headless Chromium; None where there is no browser."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outer = Path(folder) / "outer.html"
        inner = f'<meta charset="utf-8"><body><script type="text/plain" id="p">{page}</script>'
        outer.write_text(inner + LOAD, encoding="utf-8")
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command = [browser, *options, "--dump-dom", outer.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    result = re.search(r'<pre id="result">([\d.]+)</pre>', html.unescape(done.stdout))
    return float(result[1]) if result else None


def run(_: Settings) -> list[Figure]:
    """Measure the evaluation of a million rows by three models, and the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = teacher_rows(folder / "train", 30_000, seed=1, strength=False)
        request = Request(
            data=train,
            out=folder / "models",
            algorithms=("rprop", "sgd-l1", "l-bfgs"),
            pattern=find_pattern("thesis"),
            config=TrainConfig(max_iterations=10, patience=0, min_weight=0),
        )
        train_bundles(request)
        held_out = teacher_rows(folder / "held", 340_000, seed=2, strength=False)
        truth = folder / "held" / "logs" / "teacher.probs.parquet"
        figures = []
        for kind, truths in (("pairs for a floor", ()), ("true probabilities", (truth,))):
            began, spent = time.perf_counter(), time.process_time()
            evaluation = evaluate_models(held_out, [str(folder / "models")], Scope(all_rows=True, probabilities=truths))
            wall, spent = time.perf_counter() - began, time.process_time() - spent
            rows = len(evaluation.samples[0])
            scale = ROWS / rows
            title = f"evaluate 3 models on 1 M rows, intervals, {kind}"
            plain = _plain_bootstrap(evaluation.scored[0][0]) * scale
            figures += [
                Figure(title, wall * scale, "s", "plain bootstrap of 1 measure", plain, plain / (wall * scale), "20 s"),
                Figure(f"{title}, CPU", spent * scale, "CPU s"),
            ]
        small = evaluate_models(train, [str(folder / "models")])
        began = time.perf_counter()
        page = build_page(collect_findings(small))
        figures.append(Figure("page: drawn", time.perf_counter() - began, "s"))
        figures.append(Figure("page: size", len(page.encode()) / 1e6, "MB", target="2 MB"))
        drawn_ms = browser_ms(page)
        if drawn_ms is not None:
            figures.append(Figure("page: complete in Chromium", drawn_ms / 1000, "s", target="1 s"))
        return figures
