"""Make the report of the loaded bundles in the background, to be shown in a frame of the page.

In go the dataset and the loaded agents, matches and a tournament that were saved; out comes the very page that
`pipeline report` writes. It takes seconds to minutes, once.
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
from pipeline.web.hands import HandBrowser
from pipeline.web.jobs import Job, Jobs
from pipeline.web.roster import Roster


class ReportRunner:
    """The report of the loaded bundles and of saved results, one per game."""

    def __init__(
        self,
        roster: Roster,
        jobs: Jobs,
        hands: HandBrowser | None,
        matches: Sequence[Path] = (),
        table: Path | None = None,
    ) -> None:
        self.roster, self.jobs, self.hands = roster, jobs, hands
        self.matches = [*matches]
        for path in matches:
            read_match(path)  # a file that is none is refused at the start
        self.standings = None if table is None else read_table(table, seed=0)

    def state(self, game_name: str) -> dict[str, Any]:
        """Return the progress of the report, which is begun when first asked for."""
        if self.hands is None and not self.matches and self.standings is None:
            return {"state": "nothing"}
        return self._job(game_name).as_dict()

    def page(self, game_name: str) -> str:
        """Return the report, as one page."""
        job = self._job(game_name)
        if job.state != "ready":
            raise PipelineError(job.error or "the report is not ready yet")
        return str(job.result)

    def _job(self, game_name: str) -> Job:
        games = [] if self.hands is None else self.hands.games()
        if not games:
            return self.jobs.start("results", "drawing the matches", lambda _: self._only_matches())
        name = game_name if game_name in games else games[0]
        return self.jobs.start(f"results {name}", "scoring the agents", partial(self._report, name))

    def _report(self, game_name: str, progress: Progress) -> str:
        assert self.hands is not None
        players = list_agents(self.hands.data)
        player_names = set(players)
        playing = self.roster.playing(self.roster.games[game_name])
        imitators = [entry for entry in playing if player_names & set(entry.imitates)]
        scored = [entry.text for entry in playing if entry in imitators or not entry.imitates]
        if not scored:
            raise PipelineError(
                "none of the loaded agents imitates a player of the dataset, so there is nothing to score"
            )
        scope = Scope(agents=() if imitators else players[:1], game=game_name)
        evaluation = evaluate_models(self.hands.data, scored, scope, trusted=True, progress=progress)
        return build_page(collect_findings(evaluation, matches=self.matches, results=self.standings))

    def _only_matches(self) -> str:
        matches = Findings("Matches", [], matches=[read_match(path) for path in self.matches], results=self.standings)
        return build_page(matches)
