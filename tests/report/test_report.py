"""The page: complete, self-contained, small, and laid out without overflow at desktop and phone width."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from decision_rows import Known, made_up
from test_grids import contrast

from pipeline.agents.adaptive import Assessment
from pipeline.agents.names import resolve
from pipeline.arena import rankings
from pipeline.cli.main import main
from pipeline.evaluation.baselines import baselines
from pipeline.evaluation.findings import (
    AdaptationCourse,
    ClassColumns,
    CounterChoice,
    Findings,
    StrongestFeatures,
    agent_findings,
    read_adaptation,
    read_counter_choice,
    read_match,
)
from pipeline.evaluation.inspection import stationarity
from pipeline.evaluation.retraining import LearningCurve
from pipeline.evaluation.scoring import Candidate, paired_differences, pool_scores, score_all
from pipeline.evaluation.sizing import SIZE_EDGES, SizeCurve
from pipeline.models.measures import Interval
from pipeline.poker.cards import NO_CARD, parse_card
from pipeline.poker.game import builtin
from pipeline.report import grids, plots
from pipeline.report.pages import adaptation_page, build_page
from pipeline.runtime.errors import PipelineError
from pipeline.solving.counter import Tradeoff
from pipeline.solving.lookup import tabulate
from pipeline.solving.strategy import save_small_strategy

TABLES = Path(__file__).parents[2] / "data" / "acpc2013"
SECTIONS = [
    "errors",
    "calibration",
    "failures",
    "learning",
    "charts",
    "looks",
    "features",
    "worst",
    "agents",
    "matches",
    "opponents",
]
VOID = {"meta", "link"}
TRADEOFFS = (
    Tradeoff(0.0, 300.0, 10.0, 40.0, 5.0),
    Tradeoff(0.5, 800.0, 10.0, 120.0, 5.0),
    Tradeoff(1.0, 900.0, 9.0, 2000.0, 20.0),
)
STEPS = (
    Assessment(20, 0, (0.9, 0.1), (0.0, -20.0), "teacher", 0.9),
    Assessment(40, 1, (0.2, 0.8), (0.0, 900.0), "<b>", 0.8),
)
STEP = {"hands": 20, "playing": 0, "weights": [1.0], "gains": [0.0], "opponent": "call", "likelihood": 0.5}


@pytest.fixture(scope="module")
def page() -> str:
    """A page with every section, from made-up decisions; a name holds what markup must escape."""
    sample = made_up()
    models = [
        Candidate(n, n, ("teacher",), Known(sample.truth, bend)) for n, bend in (("rprop<b>", 0.1), ("l-bfgs", 0.3))
    ]
    scored = score_all([*models, *baselines("teacher", "fcr", sample.rows, sample.taken)], sample)
    return build_page(
        Findings(
            title="Copies of teacher & co",
            agents=[agent_findings(scored, pairs=paired_differences(scored), stationary=stationarity(sample))],
            cross=scored,
            learning=[
                LearningCurve("rprop", "teacher", "flop", [100, 1000, 9000], *[[Interval(0.5, 0.4, 0.6)] * 3] * 2, 0.2)
            ],
            features=[StrongestFeatures("rprop", "flop", "r", [("pattern=egaa", 1.5), ("name=<pair>", -0.5)])],
            class_columns=[
                ClassColumns(
                    "rprop",
                    "flop",
                    [
                        ("river_quantile(flop, 3)", 1.0),
                        ("ehs(flop)", 0.6),
                        ("river_quantile(flop, 2)", 0.5),
                        ("ihs(flop)", 0.1),
                    ],
                )
            ],
            matches=[{"a": "out/rprop", "b": "@call", "hands": 1000, "mbb_per_hand": 12.5, "ci95": 3.0}],
            results=rankings.read_table(TABLES / "runoff.csv"),
            counter_choices=[CounterChoice("a & b", "dbr", "mbb/h", TRADEOFFS[1], TRADEOFFS)],
            adaptations=[AdaptationCourse("adaptive", "a<b>", ("teacher", "counter-<b>"), STEPS)],
            facts=["6,000 decisions."],
        )
    )


class Reader(HTMLParser):
    """Collects ids, links and text, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [value or "" for key, value in attrs if key == "id"]
        self.links += [value or "" for key, value in attrs if key in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for key, value in attrs if key in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_well_formed_complete_and_self_contained(page: str) -> None:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert [anchor for anchor in reader.ids if anchor in SECTIONS] == SECTIONS
    assert len(reader.ids) == len(set(reader.ids))
    assert all(link.startswith("#") or link == "data:," for link in reader.links)
    assert {link[1:] for link in reader.links if link.startswith("#")} <= set(reader.ids)
    assert "script" not in reader.tags
    assert "url(http" not in page
    assert "prefers-color-scheme:dark" in page
    assert len(page.encode()) < 2_000_000
    assert "rprop<b>" in "".join(reader.text)


def test_parts_without_data_are_left_out() -> None:
    sample = made_up()
    scored = score_all([Candidate("m", "m", (), Known(sample.truth))], sample)
    reader = Reader()
    reader.feed(build_page(Findings("t", [agent_findings(scored)])))
    assert [anchor for anchor in reader.ids if anchor in SECTIONS] == [
        "errors",
        "calibration",
        "failures",
        "charts",
        "worst",
    ]


def test_a_chart_cell_is_as_wide_as_each_action_is_frequent() -> None:
    mix = np.zeros((169, 3))
    mix[0] = [0.25, 0.25, 0.5]
    drawn = grids.chart(mix, "fcr", "t")
    widths = {label: re.search(rf'class="f{label}" d="M([\d.]+) 0h([\d.]+)v20', drawn) for label in range(3)}
    assert {label: (found[1], found[2]) for label, found in widths.items()} == {
        2: ("0", "10"),
        1: ("10", "5"),
        0: ("15", "5"),
    }
    assert "AA: f 25 c 25 r 50" in drawn
    assert drawn.count("never seen") == 168


def test_cards_are_drawn_with_rank_and_suit() -> None:
    assert "T♥" in plots.card(parse_card("Th"))
    assert "red" in plots.card(parse_card("Th"))
    assert "red" not in plots.card(parse_card("As"))
    assert "?" in plots.card(NO_CARD)


def test_tables_mark_the_best_cell() -> None:
    results = rankings.from_table(["copy", "call"], np.array([[0.0, 3.0], [-3.0, 0.0]]), np.full((2, 2), 1.0))
    page = build_page(
        Findings(
            "t", [], results=results, counter_choices=[CounterChoice("call", "dbr", "mbb/h", TRADEOFFS[1], TRADEOFFS)]
        )
    )
    assert '<td class="best">0.5</td><td>+800.0<small>±10.0</small></td>' in page
    assert "<td>0</td><td>+300.0<small>±10.0</small></td>" in page


def test_drawings_of_nothing_are_still_drawings() -> None:
    unknown = Interval(float("nan"), float("nan"), float("nan"))
    for drawn in (
        plots.interval_plot("t", [("a", unknown)]),
        plots.curve_plot("t", [plots.Curve("a", [], [])]),
        plots.confusion_plot("t", np.zeros((3, 3), dtype=int), "fcr"),
        plots.interval_plot("t", [("a", Interval(0.5, 0.5, 0.5))], floor=0.5),
    ):
        assert "nan" not in drawn
        assert drawn.startswith("<figure>")


def said(page: str) -> str:
    """The text of a page without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def test_a_single_model_of_an_agent_whose_mix_is_unknown_reads_well() -> None:
    sample = replace(made_up(), truth=None)
    only = Candidate("copy", "l-bfgs", ("teacher",), Known(made_up().truth, 0.1), pattern="thesis")
    scored = score_all([only, *baselines("teacher", "fcr", sample.rows, sample.taken)], sample)
    page = build_page(Findings("t", [agent_findings(scored)]))
    told = re.sub(r"\s+", " ", said(page))
    assert "The model copy (thesis pattern, l-bfgs) copies teacher : its likeliest action is not the agent's in" in told
    assert "In the situations that came more than once (" in told
    assert "counting by betting, without the cards" in told
    errors = page[page.index('<section id="errors">') : page.index('<section id="calibration">')]
    assert "<figure>" not in errors  # one model alone is nothing to compare
    assert "thesis pattern, l-bfgs</small>" in errors
    assert "(betting) how often it takes each action after the same betting" in told


def test_the_lead_says_what_the_copy_wins_and_loses() -> None:
    sample = made_up()
    scored = score_all([Candidate("copy", "l-bfgs", ("teacher",), Known(sample.truth))], sample)
    match = {"a": "out/copy", "b": "@teacher", "hands": 1000, "mbb_per_hand": -8.2, "ci95": 1.1}
    won = np.array([[0.0, 300.0, 2.0], [-300.0, 0.0, -40.0], [-2.0, 40.0, 0.0]])
    results = rankings.from_table(["copy", "call", "equity"], won, np.full((3, 3), 10.0))
    told = re.sub(
        r"\s+", " ", said(build_page(Findings("t", [agent_findings(scored)], matches=[match], results=results)))
    )
    assert "copy loses 8.2 ± 1.1 to teacher , its original, wins 300 ± 10 from call" in told
    assert "and is even with equity within ± 10.0" in told


def test_a_copy_with_the_name_of_its_original_is_told_apart_from_it() -> None:
    """The bundle `teacher` and the built-in agent `@teacher` are both called teacher in play."""
    sample = made_up()
    scored = score_all([Candidate("teacher", "l-bfgs", ("teacher",), Known(sample.truth))], sample)
    facts = {"hands": 1000, "mbb_per_hand": -8.2, "ci95": 1.1}
    matches = [{"a": "@teacher", "b": "@call", **facts}, {"a": "out/teacher", "b": "@teacher", **facts}]
    found = Findings("t", [agent_findings(scored)], played_as={"teacher": "out/teacher"}, matches=matches)
    told = re.sub(r"\s+", " ", said(build_page(found)))
    assert "teacher loses 8.2 ± 1.1 to teacher , its original" in told
    assert "1.1 to call" not in told


def test_the_page_shows_how_counters_were_chosen_and_what_an_adaptive_agent_thought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = "kuhn.limit.2p"
    words = ["--against", "@chump:maniac", "--game", game, "--risk", "200"]
    main(["counter", *words, "--out", str(tmp_path / "counter")])
    capsys.readouterr()
    main(["match", "@adaptive", "@call", "--game", game, "--hands", "200", "--json"])
    (tmp_path / "match.json").write_text(capsys.readouterr().out)
    match = read_match(tmp_path / "match.json")
    sample = made_up()
    scored = score_all([Candidate("copy", "l-bfgs", ("teacher",), Known(sample.truth))], sample)
    tried, thoughts = read_counter_choice(tmp_path / "counter"), read_adaptation(match)
    page = build_page(
        Findings("t", [agent_findings(scored)], matches=[match], counter_choices=[tried], adaptations=thoughts)
    )
    part = page[page.index('<section id="opponents">') :]
    told = re.sub(r"\s+", " ", said(part[: part.index("</section>")]))
    assert "Counter to chump-maniac (rnr)" in told
    assert f"kept: trust {tried.kept.share:g}" in told
    assert f"{tried.kept.winnings:+.1f}" in told
    assert "adaptive against call, hand by hand" in told
    assert "counter-call" in told
    assert part.count("<figure>") == 3


@pytest.mark.parametrize(
    "change",
    [
        {"adaptation": 3},
        {"adaptation": [{"name": "a", "members": ["a"], "steps": [{"hands": 20}]}]},
        {"adaptation": [{"name": "a", "members": [], "steps": [STEP]}]},
        {"adaptation": [{"name": "a", "members": ["a"], "steps": [{**STEP, "gains": [float("nan")]}]}]},
        {"adaptation": [{"name": "a", "members": ["a"], "steps": [{**STEP, "hands": 10**400}]}]},
        {"agents": 4},
    ],
)
def test_a_match_whose_adaptation_is_damaged_is_a_sentence(change: dict[str, object], tmp_path: Path) -> None:
    sound = {"a": "@adaptive", "b": "@call", "hands": 200, "mbb_per_hand": 3.0, "ci95": 1.0, "agents": []}
    file = tmp_path / "match.json"
    file.write_text(json.dumps({**sound, "adaptation": [{"name": "a", "members": ["a"], "steps": [STEP]}]}))
    assert read_adaptation(read_match(file))[0].steps[0].gains == (0.0,)
    file.write_text(json.dumps({**sound, **change}))
    with pytest.raises(PipelineError, match="not what `match --json` prints"):
        read_match(file)


def test_a_strategy_that_counter_did_not_find_has_no_curve(tmp_path: Path) -> None:
    game = builtin("kuhn.limit.2p")
    save_small_strategy(tmp_path / "plain", game, tabulate(resolve("@call", game).probabilities, game), {})
    with pytest.raises(PipelineError, match="not one that `counter` found"):
        read_counter_choice(tmp_path / "plain")


def test_matches_show_plain_and_adjusted_results() -> None:
    sample = made_up()
    scored = score_all([Candidate("copy", "l-bfgs", ("teacher",), Known(sample.truth))], sample)
    plain = {"a": "out/copy", "b": "@call", "hands": 1000, "mbb_per_hand": -8.2, "ci95": 1.1}
    adjusted = {**plain, "b": "@teacher", "adjusted_mbb_per_hand": -7.5, "adjusted_ci95": 0.4}
    page = build_page(Findings("t", [agent_findings(scored)], matches=[plain, adjusted]))
    assert "-8.2<small>±1.1</small>" in page
    assert "-7.5<small>±0.4</small>" in page
    assert "copy loses 7.5 ± 0.4 to teacher" in re.sub(r"\s+", " ", said(page))


def test_decisions_of_several_agents_are_also_shown_together() -> None:
    samples = [made_up(), replace(made_up(), agent="other")]
    scored = [score_all([Candidate("copy", "l-bfgs", (s.agent,), Known(s.truth))], s) for s in samples]
    page = build_page(Findings("t", [agent_findings(each) for each in scored], pooled=pool_scores(scored)))
    together = page[page.index("<h3>All agents together</h3>") : page.index('<section id="calibration">')]
    assert together.count("<table") == 2
    assert "12,000" in together


def test_without_true_probabilities_and_twins_the_floor_is_said_to_be_unknown() -> None:
    sample = replace(made_up(), truth=None, hand=np.arange(6000), strength=None)
    scored = score_all([Candidate("copy", "l-bfgs", ("teacher",), Known(made_up().truth))], sample)
    scored = [replace(model, scores=[replace(score, pairs=None) for score in model.scores]) for model in scored]
    page = said(build_page(Findings("t", [agent_findings(scored)])))
    assert "How much of this is the agent's own mixing is not known" in page


def test_amounts_of_raises_have_a_table_and_curves() -> None:
    sample = made_up()
    scored = score_all([Candidate("copy", "l-bfgs", ("teacher",), Known(sample.truth))], sample)
    sizes = {name: Interval(0.25, 0.2, 0.3) for name in ("size_hit", "size_error", "size_crps")}
    scored = [
        replace(model, scores=[replace(score, raises=1234, sizes=sizes) for score in model.scores]) for model in scored
    ]
    shares = np.linspace(0.0, 1.0, len(SIZE_EDGES))
    about = replace(agent_findings(scored), sizes={"copy": [SizeCurve("flop", 1234, shares, shares**2)], "other": []})
    page = build_page(Findings("t", [about]))
    part = page[page.index('<section id="sizes">') : page.index('<section id="failures">')]
    assert "flop: 1,234 raises" in part
    assert "25.00 <small>±5.00</small>" in part
    assert part.count("<figure>") == 1


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [(STEPS[:1], "It kept to the equilibrium."), ((), "The match was over before its hands were looked back at.")],
)
def test_an_adaptive_agent_that_never_switched_is_told_in_a_sentence(
    steps: tuple[Assessment, ...], sentence: str
) -> None:
    course = AdaptationCourse("adaptive", "call", ("teacher", "counter"), steps)
    assert sentence in adaptation_page("t", [course])
    assert "It begins with the equilibrium" in adaptation_page("t", [replace(course, steps=STEPS)])


def test_drawings_have_titles_on_their_axes(page: str) -> None:
    for title in ("the model says, %", "the agent does, %", "training rows", "log-loss, nats"):
        assert f">{title}</text>" in page


def test_features_betting_and_seats_are_told_in_words(page: str) -> None:
    told = said(page)
    assert "suits: 2 board cards of the suited hole cards’ suit" in told
    assert "pattern=egaa" not in told
    assert "flop: bet" in told
    assert re.search(r"flop, (big blind|button) against (left|right)", told)
    assert "played, % fold / call / raise" in re.sub(r"\s+", " ", told)


def test_positions_of_more_than_two_players_are_numbered_in_features() -> None:
    sample = made_up()
    scored = score_all([Candidate("copy", "l-bfgs", ("teacher",), Known(sample.truth))], sample)
    strongest = StrongestFeatures(
        "copy", "flop", "r", [("position=2 betting=-/-", 1.5), ("position=0", 0.5)], players=3
    )
    told = said(build_page(Findings("t", [agent_findings(scored)], features=[strongest])))
    assert "position 3" in told
    assert "position 1" in told


def test_what_an_agent_looks_at_is_told_in_a_sentence(page: str) -> None:
    said = "On the flop it tells hands apart by 30 % and 50 % quantile of river strength; expected strength."
    assert f"rprop: {said}" in page


def test_the_costliest_situations_are_open(page: str) -> None:
    failures = page[page.index('<section id="failures">') : page.index('<section id="learning">')]
    before = failures[: failures.index("<details>")]
    assert before.count('<div class="hand">') == 3
    assert "of the street&#x27;s loss" in before or "of the street's loss" in before


def test_nothing_on_the_page_is_minus_zero(page: str) -> None:
    assert re.search(r"[>\[ ][-−]0\.?0*[<,\] ]", page) is None


def test_seven_actions_have_seven_looks() -> None:
    drawn = plots.line_key(["fold", "call", "small", "half", "pot", "over", "all in"])
    marks = re.findall(r"<svg[^>]*>(.*?)</svg>", drawn)
    assert len({re.sub(r'class="[kl]\d"', "", mark) for mark in marks}) == 7
    assert len(set(re.findall(r'class="k(\d)"', drawn))) == 7


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_in_a_confusion_are_readable_on_the_darkest_cell(page: str, dark: bool) -> None:
    blocks = re.findall(r":root{([^}]*)}", page)
    colours = dict(re.findall(r"(--\w+):(#\w+)", blocks[0]))
    colours |= dict(re.findall(r"(--\w+):(#\w+)", blocks[1])) if dark else {}
    shares = [float(found) for found in re.findall(r'fill-opacity="([\d.]+)"', page)]

    def channels(colour: str) -> list[int]:
        full = colour if len(colour) == 7 else "#" + "".join(2 * letter for letter in colour[1:])
        return [int(full[i : i + 2], 16) for i in (1, 3, 5)]

    for cell in ("--m0", "--m1"):
        both = zip(channels(colours[cell]), channels(colours["--paper"]), strict=True)
        mixed = [round(max(shares) * a + (1 - max(shares)) * b) for a, b in both]
        assert contrast(colours["--ink"], "#" + "".join(f"{value:02x}" for value in mixed)) >= 4.5


def test_the_facts_are_at_the_foot(page: str) -> None:
    foot = page[page.index("<footer>") :]
    assert "<li>6,000 decisions.</li>" in foot
    assert "Made by pipeline" in foot


BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
MEASURE = """<body style="margin:0"><pre id="result"></pre>
<iframe id="f" style="border:0;width:WIDTHpx;height:900px"></iframe><script>
const f = document.getElementById("f");
f.onload = () => {
  const d = f.contentDocument;
  d.querySelectorAll("details").forEach(x => { x.open = true });
  const boxes = [...d.querySelectorAll("main *")].filter(e => !e.closest(".scroll") && !e.closest("svg"));
  const wide = boxes.filter(e => e.getBoundingClientRect().right > WIDTH + 1).map(e => e.tagName + "." + e.className);
  const small = [...d.querySelectorAll("figure svg")].filter(e => e.getBoundingClientRect().width < 100).length;
  const [sections, charts] = ["section", "svg.chart"].map(name => d.querySelectorAll(name).length);
  const found = {scroll: d.documentElement.scrollWidth, wide, small, sections, charts};
  document.getElementById("result").textContent = JSON.stringify(found);
};
f.srcdoc = document.getElementById("p").textContent;
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_overflows_in_a_browser(page: str, width: int, tmp_path: Path) -> None:
    inner = f'<script type="text/plain" id="p">{page}</script>'
    outer = tmp_path / "outer.html"
    outer.write_text(f'<meta charset="utf-8">{inner}{MEASURE.replace("WIDTH", str(width))}', encoding="utf-8")
    command = [
        str(BROWSER),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={max(width, 500)},900",
        "--virtual-time-budget=20000",
        "--dump-dom",
        outer.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result = re.search(r'<pre id="result">({.*?})</pre>', done.stdout)
    assert result is not None, done.stderr[-500:]
    found = json.loads(html.unescape(result[1]))
    assert found["scroll"] <= width
    assert found["wide"] == []
    assert found["small"] == 0
    assert found["sections"] == len(SECTIONS)
    assert found["charts"] == 6
