"""Pages as self-contained HTML files: that of an evaluation, and smaller ones of a counter, a match or a few curves.

In go `Findings` (or what the small pages are about), out comes the text of the page. What is said stands in the
templates of resources/, which escape whatever is not a drawing; tables and drawings come from `sections`. Nothing here
computes a score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from pipeline.evaluation.evaluation import trained_models
from pipeline.evaluation.findings import AdaptationCourse, CounterChoice, Findings
from pipeline.evaluation.repeat_floor import floor_bounds
from pipeline.report import grids, plots, sections, tables, words
from pipeline.report.markup import RESOURCES, percent, style_sheet
from pipeline.report.plots import CURVES, Panel, figure, line_key
from pipeline.runtime.extras import import_extra
from pipeline.runtime.version import __version__

SECTIONS = {
    "errors": "Errors",
    "calibration": "Calibration and confusion",
    "sizes": "Amounts of raises",
    "failures": "Where it fails",
    "learning": "Learning curves",
    "charts": "Starting hands",
    "looks": "What it looks at",
    "features": "Strongest features",
    "worst": "Worst disagreements",
    "agents": "Other agents, other times",
    "matches": "Matches",
    "opponents": "Opponents",
}
"""titles by anchor, in the order of the page; an anchor is also the name of a macro"""


class _Section(NamedTuple):
    """A part of a page."""

    anchor: str
    title: str
    body: Any
    """markup"""


def _source(name: str) -> str:
    """A template without its layout: a line break beside a tag is none, one between words is a space."""
    text = (RESOURCES / name).read_text(encoding="utf-8")
    return re.sub(r"\n\s*", "", re.sub(r"(?<=[^>}\n])\n\s*(?=[^<{\s])", " ", text))


@cache
def _environment() -> Any:
    """The templates; jinja2 is a package of the extra [data]."""
    jinja2 = import_extra("jinja2")
    environment = jinja2.Environment(
        autoescape=True, loader=jinja2.FunctionLoader(_source), undefined=jinja2.StrictUndefined
    )
    environment.globals |= {"grids": grids, "plots": plots, "sections": sections, "tables": tables, "words": words}
    environment.globals |= {"floor_bounds": floor_bounds, "percent": percent, "trained": trained_models}
    return environment


def _macros(name: str) -> Any:
    """The macros of a template, to be called."""
    return _environment().get_template(name).module


def _page(title: str, lead: str, parts: Sequence[_Section], facts: Sequence[str] = (), definitions: str = "") -> str:
    """The whole document around its parts."""
    return str(
        _environment()
        .get_template("page.html")
        .render(title=title, lead=lead, sections=parts, facts=facts, definitions=definitions, style=style_sheet())
    )


def build(findings: Findings) -> str:
    """Return the page of an evaluation: the lead, a section for everything there is data for, the facts."""
    macros = _macros("sections.html")
    parts = [_Section(anchor, title, getattr(macros, anchor)(findings)) for anchor, title in SECTIONS.items()]
    return _page(
        findings.title,
        _macros("lead.html").lead(findings),
        [part for part in parts if part.body],
        facts=[*findings.facts, f"Made by pipeline {__version__}."],
        definitions=grids.names_once(),
    )


def panels_page(title: str, lead: str, panels: Sequence[Panel]) -> str:
    """Return a page with a section for each drawing of curves."""
    environment = _environment()
    columns = _macros("parts.html").columns
    parts = []
    for number, panel in enumerate(panels):
        drawings = [figure("", *CURVES, panel.drawn)]
        key = environment.filters["safe"](line_key(panel.names)) if panel.names else ""
        parts.append(_Section(f"curves-{number}", panel.title, columns(drawings=drawings) + key))
    return _page(title, lead, parts)


def counter_page(title: str, tried: CounterChoice) -> str:
    """Return a page about one counter-strategy."""
    parts = [_Section("curve", sections.CURVE, _macros("sections.html").counter(tried))]
    return _page(title, "Each point trusts the model of the opponent to another share.", parts)


def adaptation_page(title: str, thoughts: Sequence[AdaptationCourse]) -> str:
    """Return a page about the adaptive agents of one match."""
    draw = _macros("sections.html").adaptation
    parts = [_Section(f"agent-{number}", one.name, draw(one)) for number, one in enumerate(thoughts)]
    return _page(title, "What was thought after every few hands of the match.", parts)
