"""A bundle that grows street by street and survives any interruption.

Each finished street is written at once to an unfinished bundle in the folder of the final path (`.NAME.training`), with
a hash of everything that decides the result. A later run with the same hash takes the finished streets from there. When
all streets are there, the whole bundle is written to the final path in one step and the unfinished one is deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.features.textrows import TextRows
from pipeline.models.artifacts import read_files
from pipeline.models.blend import Blend
from pipeline.models.bundle import Bundle, StreetModel, load_bundle, save_bundle
from pipeline.models.loglinear import LogLinear
from pipeline.models.prior import PriorTimesFeatures
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import discard
from pipeline.training.loop import discard_checkpoint
from pipeline.training.tasks import Task, Trained

STRONGEST = 300
"""most features in the file for people"""
RESUME = "resume"
"""the key of the mark in an unfinished bundle"""


def resume_mark(facts: Mapping[str, Any]) -> str:
    """Hash the facts that decide a training's result."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=repr).encode()).hexdigest()


class GrowingBundle:
    """The bundle of one algorithm while its streets are being trained."""

    def __init__(self, path: Path, head: Bundle, scopes: Sequence[str], mark: str) -> None:
        """`head` has all but the models of `scopes`, the names of the models to train; `mark` see `resume_mark`."""
        self.path, self.mark = path, mark
        self.unfinished = path.with_name(f".{path.name}.training")
        self.finished: dict[str, StreetModel] = {}
        self.head, self._scopes, self._texts = head, tuple(scopes), dict[str, str]()
        self._resume()

    def checkpoint(self, scope: str) -> Path:
        """Return the file in which the optimiser of a street may save its state."""
        return self.path.with_name(f".{self.path.name}.{scope}.checkpoint")

    def add(self, part: StreetModel, texts: Mapping[str, str]) -> None:
        """Keep a finished street, on disk."""
        self.finished[part.name] = part
        self._texts |= texts
        bundle = self._bundle()
        save_bundle(self.unfinished, replace(bundle, about=dict(bundle.about) | {RESUME: self.mark}), self._texts)
        discard_checkpoint(self.checkpoint(part.name))
        if bundle.missing:
            self.interrupt()  # however this run ends, the bundle at the final path names the missing streets

    def finish(self) -> None:
        """Write the whole bundle to its final path."""
        save_bundle(self.path, self._bundle(), self._texts)
        self._forget()

    def interrupt(self, part: StreetModel | None = None, texts: Mapping[str, str] | None = None) -> None:
        """Write the streets trained so far to the final path, unless a whole bundle is there; `part` is half-trained.

        The unfinished bundle stays too, for the run that goes on.
        """
        if part is not None or self.finished:
            try:
                is_whole = not load_bundle(self.path).missing
            except PipelineError:
                is_whole = False
            if not is_whole:
                save_bundle(self.path, self._bundle(part), self._texts | dict(texts or {}))

    def _bundle(self, more: StreetModel | None = None) -> Bundle:
        parts = [self.finished[scope] for scope in self._scopes if scope in self.finished]
        parts += [] if more is None else [more]
        missing = tuple(scope for scope in self._scopes if scope not in self.finished)
        return replace(self.head, parts=(*self.head.parts, *parts), missing=missing)

    def _resume(self) -> None:
        """Take over the finished streets of an earlier run with the same mark."""
        try:
            unfinished = load_bundle(self.unfinished) if self.unfinished.is_dir() else None
        except PipelineError:
            return
        if unfinished is None or unfinished.about.get(RESUME) != self.mark:
            return
        self.finished = {part.name: part for part in unfinished.parts if part.name in self._scopes}
        names = {f"{scope}.features.txt" for scope in self.finished}
        self._texts = {name: bytes(data).decode() for name, data in read_files(self.unfinished, names)}

    def _forget(self) -> None:
        discard(self.unfinished)
        for scope in self._scopes:
            discard_checkpoint(self.checkpoint(scope))


def strongest_features(scope: str, trained: Trained, task: Task) -> dict[str, str]:
    """Return a text file for people with the strongest features and their weights."""
    model, rows = trained.model, task.examples.sampled(20_000).rows
    if isinstance(model, Blend):
        model = next((part for part in model.parts if isinstance(part, LogLinear)), model)
    model = model.own if isinstance(model, PriorTimesFeatures) else model
    if not isinstance(model, LogLinear) or isinstance(rows, TextRows):
        return {}
    lines = ["\t".join(["feature", *task.labels])]
    for feature, row, template in model.strongest(rows, STRONGEST):
        description = model.features.describe(rows[row : row + 1], len(task.labels) > 3)[template]
        lines.append("\t".join([description, *(f"{weight:.4f}" for weight in model.weights[feature])]))
    return {f"{scope}.features.txt": "\n".join(lines) + "\n"}
