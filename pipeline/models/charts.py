"""Starting-hand charts: counts of an agent's actions before the flop.

A chart has a 13x13 matrix per betting situation: for each of the 169 classes (in one-card games: each rank) how
often each action was taken. Play mixes with these frequencies, smoothed: a cell counts as if it had also seen
`SMOOTHING` decisions at the frequencies of classes of like strength (neighbours in the order of the chance against a
random hand, nearer ones more). A situation never seen plays what its class does over all situations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipeline.dataset.decisions import STREETS, betting_text
from pipeline.poker.cards import NO_CARD, RANKS, class_text
from pipeline.poker.game import Game
from pipeline.runtime.arrays import expect, expect_ascending
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.runtime.kernels import kernel
from pipeline.runtime.numeric import lower_bound
from pipeline.runtime.tabular import Tabular

if TYPE_CHECKING:  # playing needs no datasets
    from pipeline.dataset.load import Decisions
    from pipeline.runtime.pictures import Picture

SMOOTHING = 2.0
REACH = 8
"""places in the order of strength that a neighbour may be away"""
CLASSES = 169
MOST_COUNT = 1e15
"""no count is larger: sums of counts stay exact"""


@dataclass(frozen=True, repr=False)
class Chart(Tabular):
    """Counts (situations, classes, labels); a situation is the betting before the flop."""

    words: NDArray[np.int64]
    counts: NDArray[np.float64]
    labels: str

    def __repr__(self) -> str:
        return f"<Chart of {len(self.words)} situations, {self.counts.sum():,.0f} decisions>"

    @cached_property
    def mixes(self) -> NDArray[np.float64]:
        """Frequencies to play (situations + 1, classes, labels); the last is for a situation never seen."""
        together = np.concatenate([self.counts, self.counts.sum(axis=0, keepdims=True)])
        order = _order(self.counts.shape[1])
        near = np.abs(np.subtract.outer(np.argsort(order), np.argsort(order)))
        share = np.maximum(0, REACH + 1 - near) if len(order) == CLASSES else np.ones(near.shape)
        prior = share @ (together + 1e-9)
        smoothed = together + SMOOTHING * prior / prior.sum(axis=2, keepdims=True)
        return np.asarray(smoothed / smoothed.sum(axis=2, keepdims=True))

    def predict(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return frequencies (rows, labels) for preflop rows, 0 for illegal labels and unknown cards."""
        out = np.empty((len(rows), len(self.labels)))
        _play(rows, self.words, self.mixes, out)
        return out

    def to_json(self) -> dict[str, Any]:
        return {"labels": self.labels}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"words": self.words, "counts": self.counts}

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Chart:
        labels = entry["labels"]
        if not isinstance(labels, str) or not 2 <= len(labels) <= 8:
            raise ValueError(f"{str(labels)[:40]!r} are no labels of a chart")
        words = expect(arrays, "words", np.int64, (None,), 0)
        expect_ascending(words, "words")
        counts = expect(arrays, "counts", np.float64, (len(words), None, len(labels)), 0, MOST_COUNT)
        if len(words) == 0 or counts.shape[1] not in (CLASSES, len(RANKS)):
            raise ValueError(f"a chart of {len(words)} situations and {counts.shape[1]} classes cannot be played")
        return cls(words.copy(), counts.copy(), labels)

    @property
    def width(self) -> int:
        return len(self.labels)

    def fits(self, game: Game) -> bool:
        """Return whether the chart has the game's labels and starting hands: classes of two cards, or ranks of one."""
        classes = CLASSES if game.hole_cards == 2 else len(RANKS)
        return self.labels == game.labels and self.counts.shape[1] == classes

    def to_text(self) -> str:
        """Return the counts as a table for people and `parse_chart`: situation, class, a count per label."""
        nolimit = len(self.labels) > 3
        lines = [f"# situation class {' '.join(self.labels)}"]
        for word, counts in zip(self.words, self.counts, strict=True):
            for index in np.flatnonzero(counts.sum(axis=1)):
                numbers = " ".join(f"{count:g}" for count in counts[index])
                lines.append(f"{betting_text(word, nolimit)} {self.class_name(int(index))} {numbers}")
        return "\n".join(lines) + "\n"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per situation and class that was seen: how often, and the count of each action."""
        for word, counts in zip(self.words, self.counts, strict=True):
            after = betting_text(word, len(self.labels) > 3)
            for index in np.flatnonzero(counts.sum(axis=1)).tolist():
                by_label = dict(zip(self.labels, counts[index].tolist(), strict=True))
                yield {"after": after, "class": self.class_name(index), "seen": counts[index].sum(), **by_label}

    def plot(self, most: int = 6) -> Picture:
        """Return a picture: a grid of the starting hands for each of the situations met most often."""
        import_extra("matplotlib")
        from pipeline.runtime.pictures import draw_grid, new_picture

        met = np.argsort(-self.counts.sum(axis=(1, 2)), kind="stable")[:most]
        picture, axes = new_picture(min(3, len(met)), -(-len(met) // 3), height=4.2)
        classes = self.counts.shape[1]
        order = np.arange(classes) if classes == CLASSES else np.arange(classes)[::-1]
        for panel in axes.flat[len(met) :]:
            panel.set_axis_off()
        for panel, situation in zip(axes.flat, met, strict=False):
            counts = self.counts[situation][order]
            shares = counts / np.maximum(1e-300, counts.sum(axis=1, keepdims=True))
            draw_grid(panel, shares, [self.class_name(int(index)) for index in order], self.labels)
            after = betting_text(self.words[situation], len(self.labels) > 3)
            panel.set_title("first to act" if after == "-" else f"after {after}")
        axes.flat[0].legend(fontsize=7, ncols=len(self.labels), loc="upper left", bbox_to_anchor=(0, 0), frameon=False)
        return picture

    def json(self, situations: Iterable[int]) -> dict[str, Any]:
        """Return the object that `show chart --json` prints: for each situation the count of each action by class."""
        return {
            "labels": list(self.labels),
            "situations": [
                {
                    "after": betting_text(self.words[situation], len(self.labels) > 3),
                    "decisions": float(self.counts[situation].sum()),
                    "classes": {
                        self.class_name(int(index)): self.counts[situation][index].tolist()
                        for index in np.flatnonzero(self.counts[situation].sum(axis=1))
                    },
                }
                for situation in situations
            ],
        }

    def class_name(self, index: int) -> str:
        """Return a class as people write it: `AKs`, or a rank in one-card games."""
        return class_text(index) if self.counts.shape[1] == CLASSES else RANKS[index]


def _order(classes: int) -> NDArray[np.int64]:
    """Return the classes from weak to strong."""
    if classes != CLASSES:
        return np.arange(classes)
    from pipeline.poker.starting_hands import preflop_rows

    return np.argsort(preflop_rows()[:, 1], kind="stable")


def count_chart(rows: NDArray[Any], labels: NDArray[np.uint8], letters: str) -> Chart:
    """Count the decisions of preflop rows (others are left out)."""
    before = (rows["street"] == 0) & (rows["hole"][:, 0] != NO_CARD)
    rows, labels = rows[before], labels[before]
    if len(rows) == 0:
        raise PipelineError("there are no preflop decisions with known cards to count: check the agent and the data")
    classes = CLASSES if (rows["low"] != 255).all() else len(RANKS)
    words, situation = np.unique(rows["betting_codes"][:, 0], return_inverse=True)
    counts = np.zeros((len(words), classes, len(letters)))
    np.add.at(counts, (situation, rows["start"], labels), 1.0)
    return Chart(words, counts, letters)


def read_chart_counts(
    data: Path | str, agents: Sequence[str] | None = None, *, game: str | None = None
) -> tuple[Chart, Decisions]:
    """Count the chart of agents (all by default) on a dataset's training rows; return it and the rows counted."""
    from pipeline.dataset.load import load_decisions

    decisions = load_decisions(data, agents or None, [STREETS[0]], "train", game=game)
    return count_chart(decisions.rows, decisions.action, decisions.game.labels), decisions


def parse_chart(text: str, where: str = "chart") -> Chart:
    """Read a chart's text form."""
    from pipeline.dataset.decisions import betting_code

    header, *lines = text.splitlines() or [""]
    labels = "".join(header.split()[3:])
    if not header.startswith("# situation class") or len(labels) < 2:
        raise PipelineError(f"{where} is not a chart: its first line is not `# situation class` and the labels")
    names = {class_text(index): index for index in range(CLASSES)}
    cells: dict[int, NDArray[np.float64]] = {}
    single = all(len(line.split()[1]) == 1 for line in lines if len(line.split()) > 1)
    names = {rank: index for index, rank in enumerate(RANKS)} if single else names
    for number, line in enumerate(lines, start=2):
        try:
            situation, name, *counts = line.split()
            word = betting_code(situation, len(labels) > 3)
            values = np.array([float(count) for count in counts])
            if len(values) != len(labels) or not ((values >= 0) & (values <= MOST_COUNT)).all():
                raise ValueError
            cells.setdefault(word, np.zeros((len(names), len(labels))))[names[name]] = values
        except (ValueError, KeyError):
            raise PipelineError(
                f"{where}:{number}: {line[:60]!r} is not a situation, a class and {len(labels)} counts"
            ) from None
    if not cells:
        raise PipelineError(f"{where} has no situation")
    words = np.array(sorted(cells), np.int64)
    return Chart(words, np.stack([cells[int(word)] for word in words]), labels)


@kernel
def _play(rows: NDArray[Any], words: NDArray[np.int64], mixes: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    for i in range(len(rows)):
        situation = lower_bound(words, rows[i].betting_codes[0])
        if situation < len(words) and words[situation] != rows[i].betting_codes[0]:
            situation = len(words)  # never seen
        total = 0.0
        for j in range(out.shape[1]):
            has_cards = rows[i].start < mixes.shape[1]
            chance = mixes[situation, rows[i].start, j] if has_cards and (rows[i].legal >> j) & 1 == 1 else 0.0
            out[i, j] = chance
            total += chance
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] / total if total > 0 else 0.0
