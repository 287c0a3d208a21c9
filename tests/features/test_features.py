"""Rows to features: the same in bulk and live, and what each column says."""

from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np
import pytest
from own_decisions import own_decisions
from phevaluator import evaluate_cards
from training_rows import decisions

from pipeline.dataset.decisions import STREETS, betting_text
from pipeline.features.columns import ABSENT, BEFORE, COLUMNS, Column
from pipeline.features.encoding import Features, fit_features, from_json, to_arrays, to_json
from pipeline.features.patterns import find_pattern, parse_pattern
from pipeline.features.reading import RatedRows, codes, cuts
from pipeline.features.textrows import read_rows
from pipeline.features.vocabulary import Numbering, Vocabulary
from pipeline.poker.cards import card_text, name_text, pattern_text, start_class
from pipeline.poker.strength import quantiles
from pipeline.poker.strength.hand_clusters import assign_clusters, load_clusters, ochs, starting_groups
from pipeline.poker.strength.queries import find_strengths
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.errors import PipelineError
from pipeline.training.tasks import find_rows, number_rows

EVERYTHING = """
street * position * players * legal
betting * bets * raises
word(flop) * act(2) * previous * previous(turn)
high * low * start * rank(1, 5)
ranks * pattern * flush * name
ehs(quantiles=7) * ehs(before, bins=5)
ihs(flop, bins=9) * ehs2(bins=4)
eighth(1, 8, bins=6)
to_call * pot(bins=4) * stack * odds(quantiles=3)
cluster(30) * street
[streets = river]
cluster(turn, 30) * ochs(3, bins=5)
"""


def read(rows: np.ndarray, *columns: Column) -> np.ndarray:
    """Values of columns that are not cut."""
    return codes(rows, columns, cuts(columns, [np.empty(0, np.int64)] * len(columns), {}))


def test_bulk_and_live_rows_fire_the_same_features():
    _, rows, _, _ = decisions(60)
    rows = rows[rows["street"] > 0]
    for pattern in (find_pattern("thesis"), parse_pattern(EVERYTHING)):
        features = fit_features(pattern, rows, (1, 2, 3))
        together = features.hashes(rows)
        alone = np.concatenate([features.hashes(rows[at : at + 1]) for at in range(len(rows))])
        assert (together == alone).all()


def test_text_rows_fire_like_the_decisions_they_were_written_from(tmp_path):
    _, rows, labels, _ = decisions(100)
    lines = []
    for row, label in zip(rows, labels, strict=True):
        ranks = ["-" if rank == 255 else "23456789TJQKA"[rank] for rank in (row["high"], row["low"], *row["ranks"])]
        words = [betting_text(word) for word in row["betting_codes"]]
        name = name_text(row["name"]).replace(" ", "_")
        place = ("blind", "button")[row["position"]]
        fields = [STREETS[row["street"]], place, *words, *ranks, pattern_text(row["pattern"]), name, "fcr"[label]]
        lines.append(" ".join(fields))
    (tmp_path / "rows.txt").write_text("\n\n".join(lines))
    text = read_rows(tmp_path / "rows.txt")
    pattern = find_pattern("thesis")
    found = [number_rows(fit_features(pattern, some), some)[0] for some in (rows, text)]
    assert (found[0] == found[1]).all()  # numbered by first appearance


def test_every_column_is_read_and_written():
    _, rows, _, _ = decisions(60)
    turn = rows[rows["street"] == 2]
    for name, kind in COLUMNS.items():
        if name == "ochs":  # of the river
            continue
        argument = 30 if name in ("cluster", "shape", "fifths") else 1 if kind.argument else 0
        column = Column(name, 1 if kind.street else -1, argument)
        term = column.written
        features = fit_features(parse_pattern(term), turn, (2,))
        absent = ("previous", "aggressor", "stack_to_pot", "effective_bb")  # before a raise, and without stacks
        assert features.describe(turn[:1])[0].startswith(f"{term}=") or name in absent


def test_older_words_of_a_pattern_name_the_same_features():
    """Bundles made before have these names, and features are hashed by them."""
    for older, newer in (
        ("word * fifths(5)", "word * river_quantiles(5)"),
        ("fifth(turn, 2, bins=4)", "river_quantile(turn, 2, bins=4)"),
        ("shape(before, 7)", "river_octiles(before, 7)"),
        ("eighth(3)", "river_octile(3)"),
    ):
        one, other = (parse_pattern(source).templates[0] for source in (older, newer))
        assert one == other
        assert one.seed == other.seed
        assert " * ".join(term.written for term in one.terms) == newer


def test_features_of_the_bundled_patterns_keep_their_hashes():
    _, rows, _, _ = decisions(300)
    rows = rows[rows["street"] > 0]
    for name, expected in (("default", "1b7a8b1009628615"), ("thesis", "475b2900b04f7cc0")):
        hashes = fit_features(find_pattern(name), rows, (1, 2, 3)).hashes(rows)
        assert hashlib.sha256(hashes.tobytes()).hexdigest()[:16] == expected


def test_stored_strengths_give_the_features_that_computing_them_gives():
    """Rows with a dataset's strengths fire the same features, and what is stored is really read."""
    _, rows, _, _ = decisions(120)
    rows = rows[rows["street"] > 0]
    strength = np.zeros((len(rows), 3), STRENGTH)
    for street in (1, 2, 3):
        at = rows["street"] >= street
        strength[at, street - 1] = find_strengths(street, rows["hole"][at], rows["board"][at])
    groups = np.zeros((len(rows), 8), np.uint8)
    river = rows["street"] == 3
    groups[river] = ochs(rows["hole"][river], rows["board"][river])
    kept = RatedRows(rows, strength, groups)
    for pattern in (parse_pattern(EVERYTHING), find_pattern("default")):
        features = fit_features(pattern, rows, (1, 2, 3))
        assert fit_features(pattern, kept, (1, 2, 3)).fingerprint == features.fingerprint
        assert (features.hashes(kept) == features.hashes(rows)).all()
        assert (features.hashes(kept[river]) == features.hashes(rows[river])).all()
    features = fit_features(parse_pattern("ehs"), rows, (1, 2, 3))
    strength["ehs"] ^= 1
    assert (features.hashes(kept) != features.hashes(rows)).all()


def test_a_shape_is_all_eighths_cut_alike():
    _, rows, _, _ = decisions(60)
    turn = rows[rows["street"] == 2]
    shapes = read(turn, Column("shape", argument=20))[:, 0]
    means = find_strengths(2, turn["hole"], turn["board"])["q"].astype(np.int64)
    assert shapes.tolist() == ((means * 20 // 256) << 7 * np.arange(7, -1, -1)).sum(axis=1).tolist()


def test_fifths_are_their_medians_cut_alike():
    _, rows, _, _ = decisions(60)
    turn = rows[rows["street"] == 2]
    found = read(turn, Column("fifths", argument=20), *(Column("fifth", argument=i) for i in range(1, 6)))
    medians = quantiles.find_quantiles(2, turn["hole"], turn["board"]).astype(np.int64)
    assert (found[:, 1:] == medians).all()
    assert found[:, 0].tolist() == ((medians * 20 // 256) << 7 * np.arange(4, -1, -1)).sum(axis=1).tolist()


def test_strength_columns_are_those_of_the_tables_rows():
    _, rows, _, _ = decisions(60)
    river = rows[rows["street"] == 3][:40]
    now, turn = (find_strengths(street, river["hole"], river["board"]) for street in (3, 2))
    found = read(
        river, Column("ihs"), Column("ehs", BEFORE), Column("ehs2", 2), Column("eighth", 2, 1), Column("eighth", 2, 8)
    )
    assert (found[:, 0] == now["ihs"]).all()
    assert (found[:, 1] == turn["ehs"]).all()
    assert (found[:, 2] == turn["ehs2"]).all()
    assert (found[:, 3:] == turn["q"][:, [0, 7]]).all()


def test_strength_against_groups_counts_the_hands_of_each_that_are_beaten():
    _, rows, _, _ = decisions(60)
    river = rows[rows["street"] == 3][:4]
    found = read(river, *(Column("ochs", argument=group) for group in range(1, 9)))
    for row, shares in zip(river, found, strict=True):
        board = [card_text(card) for card in row["board"]]
        mine = evaluate_cards(*(card_text(card) for card in row["hole"]), *board)
        won, met = np.zeros(8), np.zeros(8)
        for a, b in combinations(sorted(set(range(52)) - {*row["hole"].tolist(), *row["board"].tolist()}), 2):
            group = starting_groups()[start_class(a, b)]
            other = evaluate_cards(card_text(a), card_text(b), *board)
            won[group] += (mine < other) + (mine == other) / 2
            met[group] += 1
        assert np.abs(shares - 255 * won / met).max() < 0.51


def test_strength_against_groups_is_of_the_river():
    _, rows, _, _ = decisions(60)
    assert (read(rows[rows["street"] < 3], Column("ochs", argument=1)) == ABSENT).all()
    features = fit_features(
        parse_pattern("[streets = river]\nochs(1, 8, bins=10) * word"), rows[rows["street"] == 3], (3,)
    )
    assert len(features.pattern.templates) == 2
    with pytest.raises(PipelineError, match=r"ochs is a column of the river: put it under \[streets = river\]"):
        parse_pattern("betting * ochs(1)")


def test_cluster_columns_are_the_nearest_centroids():
    _, rows, _, _ = decisions(60)
    rows = rows[rows["street"] == 3][:40]
    features = fit_features(parse_pattern("cluster(30) * cluster(turn, 100)"), rows, (3,))
    assert sorted(features.centroids) == ["river-30-0", "turn-100-0"]
    found = features.codes(rows)
    assert (found[:, 0] == assign_clusters(load_clusters(3, 30), find_strengths(3, rows["hole"], rows["board"]))).all()
    assert (found[:, 1] == assign_clusters(load_clusters(2, 100), find_strengths(2, rows["hole"], rows["board"]))).all()


def test_quantile_bins_hold_equally_many_rows_and_width_bins_are_equally_wide():
    _, rows, _, _ = decisions(300)
    flop = rows[rows["street"] == 1]
    features = fit_features(parse_pattern("ehs(quantiles=4)\nehs(bins=4)"), flop, (1,))
    counts = np.bincount(features.codes(flop)[:, 0])
    assert len(counts) == 4
    assert counts.max() - counts.min() <= 0.15 * len(flop)
    assert features.edges["ehs(bins=4)"].tolist() == [16384, 32768, 49152]


def test_the_last_action_since_a_street_is_that_of_the_hands_history():
    for name in ("holdem.limit.2p.reverse_blinds", "holdem.limit.3p"):
        game, rows, _, _ = decisions(80, name)
        later = rows[rows["street"] > 0]
        found = read(later, Column("previous", 1), Column("previous"))
        for row, (since, last) in zip(np.split(later, len(later)), found, strict=True):
            seen, taken = own_decisions(game, row)
            mine = [int(label) + 1 for one, label in zip(seen, taken, strict=False) if one["street"] >= 1]
            assert since == (mine[-1] if mine else ABSENT)
            assert last == (taken[-1] + 1 if len(taken) else 0)


def test_actions_are_counted_and_found_by_place():
    _, rows, _, _ = decisions(60)
    found = read(rows, Column("bets"), Column("act", 0, 1), Column("act", 0, 3))
    for row, (bets, first, third) in zip(rows, found, strict=True):
        words = [betting_text(word) for word in row["betting_codes"]]
        assert bets == sum(word.count("r") for word in words)
        assert "-fcr"[first] == words[0][0]
        assert "-fcr"[third] == (words[0][2] if len(words[0]) > 2 else "-")


def test_a_template_for_other_streets_does_not_fire():
    _, rows, _, _ = decisions(60)
    features = fit_features(parse_pattern("street\n[streets = river]\nbetting").on((1, 2, 3)), rows, (1, 2, 3))
    fired = features.hashes(rows)[:, 1] != 0
    assert (fired == (rows["street"] == 3)).all()


def test_a_feature_unseen_in_training_is_absent():
    _, rows, _, _ = decisions(60)
    features = fit_features(find_pattern("thesis"), rows[:100])
    ids, keys = number_rows(features, rows[:100])
    assert (find_rows(features, keys, rows[:100]) == ids).all()
    later = find_rows(features, keys, rows[100:])
    assert (later == -1).any()
    assert (later[:, 0] >= 0).all()


def test_rare_features_are_left_out_where_a_section_says_so():
    _, rows, _, _ = decisions(60)
    features = fit_features(parse_pattern("start\n[minimum = 3]\nbetting"), rows)
    ids, keys = number_rows(features, rows)
    seen = np.bincount(ids[ids >= 0], minlength=len(keys))
    betting = np.unique(ids[:, 1][ids[:, 1] >= 0])
    assert seen[betting].min() >= 3
    assert seen.min() == 1
    assert (ids[:, 1] == -1).any()


def test_many_features_are_numbered_and_found():
    luck = np.random.default_rng(0)
    hashes = luck.integers(1, 2**64, (50_000, 4), dtype=np.uint64)
    hashes[25_000:] = hashes[:25_000]
    hashes[::7, 2] = 0
    numbering, ids = Numbering(), np.empty(hashes.shape, np.int32)
    numbering(hashes, ids)
    assert (ids[::7, 2] == -1).all()
    keys = numbering.keys()
    fired = hashes != 0
    assert (keys[ids[fired]] == hashes[fired]).all()
    vocabulary = Vocabulary(np.sort(keys))
    found = vocabulary.find(hashes)
    assert (vocabulary.keys[found[fired]] == hashes[fired]).all()
    assert (vocabulary.find(luck.integers(1, 2**64, (1000, 1), dtype=np.uint64)) == -1).all()


def test_features_survive_their_json():
    _, rows, _, _ = decisions(60)
    features = fit_features(parse_pattern(EVERYTHING), rows[rows["street"] > 0], (1, 2, 3))
    again = from_json(to_json(features), to_arrays(features))
    assert again.fingerprint == features.fingerprint
    assert (again.hashes(rows) == features.hashes(rows)).all()
    with pytest.raises(ValueError, match="are missing"):
        from_json(to_json(features), {})
    with pytest.raises(PipelineError, match="not those it was trained with"):
        from_json(to_json(features), to_arrays(features) | {"centroids flop-9-0": np.zeros((9, 8), np.uint8)})


def test_patterns_and_rows_must_fit():
    _, rows, _, _ = decisions(60)
    _, kuhn, _, _ = decisions(20, "kuhn.limit.2p")
    with pytest.raises(PipelineError, match="hold'em only"):
        fit_features(parse_pattern("ehs(bins=4)"), kuhn).hashes(kuhn)
    with pytest.raises(PipelineError, match=r"%x\[0,15\]"):
        fit_features(parse_pattern("u:%x[0,15]"), rows)
    with pytest.raises(PipelineError, match=r"%x\[-1,2\]"):
        fit_features(parse_pattern("u:%x[-1,2]"), rows)
    with pytest.raises(PipelineError, match="no training row has a value"):
        fit_features(parse_pattern("ehs(river, bins=4)"), rows[rows["street"] == 1])
    assert isinstance(fit_features(find_pattern("thesis"), kuhn), Features)
