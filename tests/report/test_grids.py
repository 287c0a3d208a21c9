"""The grid of starting hands: the same cells, colours and legend on the page, in picture files and in the terminal."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from training_rows import decisions

from pipeline.cli.main import main
from pipeline.dataset.decisions import betting_code
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.charts import Chart, count_chart
from pipeline.poker.cards import class_text
from pipeline.report import grids, plots
from pipeline.report.plots import ACTION_COLOURS, style_sheet


def chart() -> Chart:
    _, rows, labels, _ = decisions(300)
    return count_chart(rows, labels, "fcr")


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", [*ACTION_COLOURS, "#c3c8d1", "#eef0f3"])
def test_the_names_of_hands_are_readable_on_every_colour_and_on_the_hatching(background: str) -> None:
    assert contrast("#111111", background) >= 4.5


def test_a_picture_file_has_the_cells_and_colours_of_the_page() -> None:
    counts = np.zeros((1, 169, 3))
    counts[0, 0] = 1, 1, 2
    on_page = grids.chart(counts[0], "fcr", "t", count=counts[0].sum(axis=1).astype(int))
    in_file = grids.chart_picture(Chart(np.array([0]), counts, "fcr"))
    cells = re.compile(r'<path class="f\d" d="[^"]+"/>')
    assert cells.findall(on_page) == cells.findall(in_file) != []
    style = style_sheet()
    for i, colour in enumerate(ACTION_COLOURS):
        assert f"--a{i}:{colour}" in style
        assert f".f{i}{{fill:{colour}}}" in in_file


def test_a_picture_file_is_complete_and_stays_inside_its_frame() -> None:
    for counted in (chart(), count_chart(*decisions(200, "kuhn.limit.2p")[1:3], "fcr")):
        drawing = ElementTree.fromstring(grids.chart_picture(counted, title="Teacher & co"))
        width, height = float(drawing.get("width")), float(drawing.get("height"))
        texts = [text for text in drawing.iter() if text.tag.endswith("text")]
        said = [text.text for text in texts]
        assert "Teacher & co" in said
        assert {"fold", "call or check", "raise or bet"} <= set(said)
        assert sum("decisions" in (text or "") for text in said) == len(counted.words)
        for text in texts:
            assert 0 < float(text.get("x")) < width
            assert 0 < float(text.get("y")) < height
        frame = next(part for part in drawing if part.tag.endswith("rect"))
        assert (frame.get("fill"), float(frame.get("width"))) == ("#fff", width - 1)


def test_a_one_card_game_is_drawn_with_the_ace_on_the_left() -> None:
    counts = np.zeros((1, 13, 3))
    counts[0, 12] = 0, 0, 1
    drawn = grids.chart_picture(Chart(np.array([0]), counts, "fcr"))
    assert '<path class="f2" d="M0 0h20v20h-20z"/>' in drawn
    assert grids.chart_text(Chart(np.array([0]), counts, "fcr"), 0).splitlines()[2].split()[:2] == ["r100", ".."]


def test_a_narrow_terminal_is_shown_letters_alone() -> None:
    shown = grids.chart_text(chart(), 0, columns=60).splitlines()[1:]
    assert max(len(line) for line in shown) < 60
    assert len(shown) == 14


def test_colours_do_not_move_the_columns_of_a_terminal() -> None:
    counted = chart()
    for drawn in (grids.chart_text(counted, 0, colour=True), grids.numbers_text(np.arange(169) % 9, colour=True)):
        assert "\x1b[" in drawn
    plain = re.sub(r"\x1b\[\d+m", "", grids.chart_text(counted, 0, colour=True))
    assert plain == grids.chart_text(counted, 0)


def test_numbers_lie_where_their_class_is() -> None:
    numbers = np.arange(169)
    lines = grids.numbers_text(numbers).splitlines()
    names = {class_text(i): i for i in range(169)}
    assert lines[1].split() == ["A", *(str(i) for i in range(13))]
    assert lines[2].split()[1] == str(names["AKo"])


def test_a_situation_that_nobody_reaches_says_so() -> None:
    counts = np.ones((1, 169, 3))
    shown = grids.chart_text(Chart(np.array([betting_code("rrr")]), counts, "fcr"), 0, reached=False)
    assert shown.splitlines()[0].endswith("(never reached)")


def test_the_picture_of_the_readme_is_what_its_command_makes(tmp_path: Path) -> None:
    """pipeline ingest data/sample --out out/rows --no-strength
    pipeline show chart --data out/rows --agent teacher --situations 2 --out docs/pictures/chart.svg"""
    root = Path(__file__).parents[2]
    ingest([root / "data" / "sample"], tmp_path / "rows", options(strength=False))
    out = tmp_path / "chart.svg"
    main(
        [
            "show",
            "chart",
            "--data",
            str(tmp_path / "rows"),
            "--agent",
            "teacher",
            "--situations",
            "2",
            "--out",
            str(out),
        ]
    )
    assert out.read_bytes() == (root / "docs" / "pictures" / "chart.svg").read_bytes()


def test_intervals_of_a_calibration_with_few_rows_stay_inside_its_frame() -> None:
    lines = [plots.Curve("fold", [0.1, 0.5, 0.9], [0.0, 0.5, 1.0])]
    drawn = plots.calibration_plot("river", lines, [np.array([20, 20, 20])], [0])
    bars = [tuple(map(float, ends)) for ends in re.findall(r'd="M[\d.]+ ([\d.-]+)V([\d.-]+)"', drawn)]
    assert len(bars) == 3
    assert all(4 <= top < bottom <= 174 for top, bottom in bars)


def test_the_legend_of_a_no_limit_chart_stays_inside_the_picture() -> None:
    picture = grids.chart_picture(Chart(np.ones(1, np.int64), np.ones((1, 169, 7)), "fcshpoa"))
    width, height = (float(number) for number in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)[0])
    places = re.findall(r'<text class="head ink" x="([\d.]+)" y="([\d.]+)">([^<]*)<', picture)
    assert len({y for _, y, _ in places[:7]}) > 1
    assert all(float(x) + 6.6 * len(word) <= width and float(y) < height for x, y, word in places[:7])
