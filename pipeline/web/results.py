"""The report of the loaded bundles, made in the background and shown in a frame of the page.

In go the dataset and the loaded agents, matches and a tournament that were saved; out comes the very page that
`pipeline report` writes. A room of its own because it takes seconds to minutes, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.arena.rankings import read_table
from pipeline.dataset.opening import list_agents
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.evaluation.findings import Findings, collect_findings, read_match
from pipeline.report.pages import build_page
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress
from pipeline.web.hands import Hands
from pipeline.web.jobs import Job, Jobs
from pipeline.web.shelf import Shelf


class Results:
    """Tables and pictures of the loaded bundles."""

    def __init__(
        self, shelf: Shelf, jobs: Jobs, hands: Hands | None, matches: Sequence[Path] = (), table: Path | None = None
    ) -> None:
        self.shelf, self.jobs, self.hands = shelf, jobs, hands
        self.matches = [*matches]
        for path in matches:
            read_match(path)  # a file that is none is refused at the start
        self.standings = None if table is None else read_table(table, seed=0)

    def state(self, game_name: str) -> dict[str, Any]:
        """How far the report is; it is begun when first asked for."""
        if self.hands is None and not self.matches and self.standings is None:
            return {"state": "nothing"}
        return self._job(game_name).as_dict()

    def page(self, game_name: str) -> str:
        """The report, as one page."""
        job = self._job(game_name)
        if job.state != "ready":
            raise PipelineError(job.error or "the report is not ready yet")
        return str(job.result)

    def _job(self, game_name: str) -> Job:
        known = [] if self.hands is None else self.hands.games()
        if not known:
            return self.jobs.start("results", "drawing the matches", lambda _: self._only_matches())
        name = game_name if game_name in known else known[0]
        return self.jobs.start(f"results {name}", "scoring the agents", partial(self._report, name))

    def _report(self, game_name: str, progress: Progress) -> str:
        assert self.hands is not None
        players = list_agents(self.hands.data)
        known = set(players)
        playing = self.shelf.playing(self.shelf.games[game_name])
        copies = [entry for entry in playing if known & set(entry.imitates)]
        scored = [entry.text for entry in playing if entry in copies or not entry.imitates]
        if not scored:
            raise PipelineError(
                "none of the loaded agents imitates a player of the dataset, so there is nothing to score"
            )
        scope = Scope(agents=() if copies else players[:1], game=game_name)
        found = evaluate_models(self.hands.data, scored, scope, trusted=True, progress=progress)
        return build_page(collect_findings(found, matches=self.matches, results=self.standings))

    def _only_matches(self) -> str:
        shown = Findings("Matches", [], matches=[read_match(path) for path in self.matches], results=self.standings)
        return build_page(shown)
