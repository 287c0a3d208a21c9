"""The page: what `evaluate` found, as one self-contained HTML file.

In go `Findings`, out comes the text of the page: the lead, then a section for everything there is data for, then the
facts about data and settings. Nothing here computes a score.
"""

from __future__ import annotations

from pipeline.evaluation.findings import Findings
from pipeline.report import grids, sections
from pipeline.report.lead import lead
from pipeline.report.looks import looks
from pipeline.report.markup import escape, page
from pipeline.report.opponents import opponents
from pipeline.runtime.version import __version__


def build(findings: Findings) -> str:
    """The whole page."""
    wanted = [
        sections.errors(findings),
        sections.calibration(findings),
        sections.sizes(findings),
        sections.failures(findings),
        sections.learning(findings),
        sections.charts(findings),
        looks(findings),
        sections.features(findings),
        sections.worst(findings),
        sections.others(findings),
        sections.matches(findings),
        opponents(findings),
    ]
    facts = "".join(f"<li>{escape(fact)}</li>" for fact in (*findings.facts, f"Made by pipeline {__version__}."))
    made = page(findings.title, lead(findings), [one for one in wanted if one is not None], f"<ul>{facts}</ul>")
    return made.replace("<main>", "<main>" + grids.names_once(), 1)
