"""Pattern files in both forms."""

from __future__ import annotations

import pytest

from pipeline.features.columns import BEFORE, Column
from pipeline.features.patterns import Cell, Term, find_pattern, parse_pattern, pattern_names
from pipeline.runtime.errors import PipelineError


def names(source: str) -> list[str]:
    return [template.name for template in parse_pattern(source).templates]


def test_the_thesis_pattern_has_its_eight_templates():
    pattern = find_pattern("thesis")
    assert len(pattern.templates) == 8
    assert pattern.templates[1].terms == tuple(Term(Cell(0, column)) for column in (2, 3, 4, 5))


def test_bundled_patterns_parse():
    assert {"thesis", "default"} <= set(pattern_names())
    for name in pattern_names():
        assert find_pattern(name).templates


def test_wapiti_prefixes_say_whether_the_previous_action_counts():
    pattern = parse_pattern("# comment\n\nu1:%x[0,0]\nb\n*3:%x[-1,2]/%x[0,2]\n")
    assert [(t.unigram, t.bigram) for t in pattern.templates] == [(True, False), (False, True), (True, True)]
    assert pattern.templates[2].terms[0] == Term(Cell(-1, 2))
    assert len(pattern.of_rows().templates) == 2
    assert [t.name for t in pattern.with_previous().templates] == [
        "u1:%x[0,0]",
        "*3:%x[-1,2]/%x[0,2]",
        "b * previous",
        "*3:%x[-1,2]/%x[0,2] * previous",
    ]
    assert parse_pattern("u:%x[0,0]").with_previous().templates[-1].name == "previous"


def test_readable_templates_join_columns_and_multiply_choices():
    assert names("betting * high*low  # cards") == ["betting * high * low"]
    assert names("cluster(10, 30) * eighth(1, 8)") == [
        "cluster(10) * eighth(1)",
        "cluster(10) * eighth(8)",
        "cluster(30) * eighth(1)",
        "cluster(30) * eighth(8)",
    ]
    assert names("ehs(turn, quantiles=20) * word(before)") == ["ehs(turn, quantiles=20) * word(before)"]
    term = parse_pattern("ehs(before, bins=5)").templates[0].terms[0]
    assert term == Term(Column("ehs", BEFORE), 5, False)


def test_a_percent_sign_in_a_comment_makes_no_pattern_of_wapiti():
    assert names("betting * high  # 95% of rows have it\nlow # %x[0,1]") == ["betting * high", "low"]
    assert parse_pattern("u:a#%x[0,2]\nb").templates[0].terms == (Term(Cell(0, 2)),)


def test_sections_set_strengths_for_what_follows():
    pattern = parse_pattern("street\n[rho1 = 0, rho2=2.5]\nbetting\n[minimum = 3, streets = turn river]\nname")
    assert [(t.rho1, t.rho2, t.minimum, t.streets) for t in pattern.templates] == [
        (None, None, 1, ()),
        (0.0, 2.5, 1, ()),
        (None, None, 3, (2, 3)),
    ]
    assert [t.name for t in pattern.on((1,)).templates] == ["street", "betting"]
    assert pattern.on((2,)).templates[2].streets == ()
    assert pattern.on((1, 2, 3)).templates[2].streets == (2, 3)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("betting * hihg", r"pattern:1: 'hihg' is not a column \(did you mean high\?\)"),
        ("street\nehs(trun)", r"pattern:2: 'trun' is not a street \(did you mean turn\?\)"),
        ("high(bins=1)", "bins = 1 is not a whole number from 2"),
        ("name(bins=4)", "name does not take 'bins'"),
        ("ehs(bins=4, quantiles=3)", "either bins or quantiles"),
        ("eighth(9)", "needs a number from 1 to 8"),
        ("cluster", "needs a number from 2"),
        ("high + low", "joined by"),
        ("high *", "is not columns joined"),
        ("[rho3 = 1]\nhigh", "'rho3' is no setting"),
        ("[rho2 = -1]\nhigh", "not a number of zero or more"),
        ("high\nhigh", "twice"),
        ("# nothing", "no template"),
        ("u:%m[0,1]", "only %x"),
        ("x:%x[0,1]", "does not start with"),
    ],
)
def test_a_mistake_is_named_with_its_line(source, message):
    with pytest.raises(PipelineError, match=message):
        parse_pattern(source)


def test_a_pattern_that_is_not_there_is_named_with_the_nearest(tmp_path):
    with pytest.raises(PipelineError, match="did you mean thesis"):
        find_pattern("thesys")
    binary = tmp_path / "x.pattern"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PipelineError, match="not text"):
        find_pattern(binary)
