"""Where a copy's distance to its source lies: part of `bench fidelity`.

The source is a solved agent, so its probabilities and its groups of hands (buckets) are known. Held-out log-loss of
the copy is set beside three others: the floor, which is the source's own dice; counts of what was done in each line
of betting with each true bucket, leaning on the street's betting with that bucket and on the line; and max-ent whose
features are these same pairs. What a model loses although it is told the true buckets is *estimation*: too few rows.
What the copy loses beyond the better of these two is *representation*: it does not know which hands are treated alike.
How well learned classes match the true buckets is told by their adjusted mutual information, 0 by chance, 1 if equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure
from pipeline.agents.teacher import Teacher
from pipeline.dataset.decisions import STREETS
from pipeline.dataset.load import load_decisions
from pipeline.features.columns import Column
from pipeline.models.blend import learned_classes
from pipeline.models.bundle import load_bundle
from pipeline.models.classes import read_hands
from pipeline.runtime.extras import needed
from pipeline.runtime.numeric import bit_table, hash_rows
from pipeline.solving.buckets import find_buckets
from pipeline.training.loop import scores

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LEANING = 3.0
"""decisions that the coarser counts are worth beside a pair's own"""
PENALTY = 5.0
"""L2 of max-ent by true buckets, as in the default pattern"""


def gap_figures(rows: Path, copy: Path, source: Teacher, title: str) -> list[Figure]:
    """The losses of a copy, of models that are told the true buckets, and of the source itself, by street."""
    models = {part.name: part.model for part in load_bundle(copy).parts}
    figures = []
    for street in (1, 2, 3):
        name = STREETS[street]
        found = load_decisions(rows, streets=[name])
        held, taken = found.validation, found.action[found.validation]
        seen: Any = found.rows
        floor = scores(source.probabilities(seen[held]), taken)[1]
        bucket = find_buckets(street, seen["hole"][:, :2], seen["board"], source.tables)
        pairs = _pairs(seen, street, bucket)
        told = {
            "counts by true buckets": scores(_counted(pairs, found.action, held, seen["legal"]), taken)[1],
            "max-ent by true buckets": scores(_fitted(pairs, found.action, held, seen["legal"]), taken)[1],
        }
        loss = scores(models[name].predict(seen[held]), taken)[1]
        where = f"{title}, {name}"
        figures.append(Figure(f"{where}: log-loss", loss, "nats", "floor", floor, loss / floor))
        figures += [
            Figure(f"{where}: {one}", value, "nats", "floor", floor, value / floor) for one, value in told.items()
        ]
        best = min(told.values())
        figures.append(Figure(f"{where}: gap by estimation", best - floor, "nats"))
        figures.append(Figure(f"{where}: gap by representation", loss - best, "nats"))
        classes = learned_classes(models[name])
        if classes is not None:
            agree = needed("sklearn.metrics").adjusted_mutual_info_score(
                bucket[held], classes.nearest_class(seen[held])
            )
            figures.append(Figure(f"{where}: classes against true buckets", float(agree), "AMI"))
    return figures


def _pairs(rows: Array, street: int, bucket: Array) -> npt.NDArray[np.int64]:
    """(rows, 3) numbers: of the line of betting, of the street's betting with the bucket, of the line with it."""
    contexts = read_hands(rows, (), ((Column("betting"),), (Column("word", street),))).contexts
    own = bucket.astype(np.uint64)
    keys = [contexts[:, 0], *(hash_rows(np.column_stack([contexts[:, at], own])) for at in (1, 0))]
    return np.column_stack([np.unique(key, return_inverse=True)[1].ravel() for key in keys])


def _counted(pairs: npt.NDArray[np.int64], action: Array, held: Array, legal: Array) -> Floats:
    """Probabilities of the held-out rows by counts, from coarse to exact, each leaning on the one before."""
    allowed = bit_table(legal, 3).astype(np.float64)
    chances: Floats = allowed / allowed.sum(axis=1, keepdims=True)
    for key in pairs.T:
        counts = np.zeros((int(key.max()) + 1, 3))
        np.add.at(counts, (key[~held], action[~held]), 1.0)
        mine = counts[key]
        chances = (mine + LEANING * chances) / (mine.sum(axis=1, keepdims=True) + LEANING)
    return chances[held]


def _fitted(pairs: npt.NDArray[np.int64], action: Array, held: Array, legal: Array) -> Floats:
    """Probabilities of the held-out rows by max-ent whose features are the pairs."""
    from pipeline.training.sklearn import MaxEntClassifier

    model = MaxEntClassifier(rho1=0.0, rho2=PENALTY, max_iter=60, n_jobs=2).fit(pairs[~held], action[~held])
    out = np.zeros((int(held.sum()), 3))
    out[:, model.classes_] = model.predict_proba(pairs[held])
    out *= bit_table(legal[held], 3)
    return np.asarray(out / out.sum(axis=1, keepdims=True))
