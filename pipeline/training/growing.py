"""A bundle that grows street by street and survives any interruption.

Each finished street is written at once to a bundle of its own beside the place where the whole will stand
(`.NAME.training`), together with a mark of everything that decides the result. A later run with the same mark takes the
finished streets from there. When all are there the whole bundle takes its place in one step and the other is deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.models.bundle import Bundle, StreetModel, contents, load_bundle, save_bundle
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import discard

RESUME = "resume"
"""the key of the mark in an unfinished bundle"""


def mark_of(facts: Mapping[str, Any]) -> str:
    """A hash of what decides a training's result."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=repr).encode()).hexdigest()


class GrowingBundle:
    """The bundle of one algorithm while its streets are being trained."""

    def __init__(self, path: Path, head: Bundle, scopes: Sequence[str], mark: str) -> None:
        """`head` has all but the models of `scopes`, the names of what will be trained; `mark` see `mark_of`."""
        self.path, self.mark = path, mark
        self.beside = path.with_name(f".{path.name}.training")
        self.finished: dict[str, StreetModel] = {}
        self.head, self._scopes, self._texts = head, tuple(scopes), dict[str, str]()
        self._resume()

    def checkpoint(self, scope: str) -> Path:
        """Where the optimiser of a street may keep its state."""
        return self.path.with_name(f".{self.path.name}.{scope}.checkpoint")

    def add(self, part: StreetModel, texts: Mapping[str, str]) -> None:
        """Keep a finished street, on disk."""
        self.finished[part.name] = part
        self._texts |= texts
        found = self._bundle()
        save_bundle(self.beside, replace(found, about=dict(found.about) | {RESUME: self.mark}), self._texts)
        self.checkpoint(part.name).unlink(missing_ok=True)
        if found.missing:
            self.interrupt()  # whatever ends this run, the bundle's place says which streets are missing

    def finish(self) -> None:
        """Put the whole bundle in its place."""
        save_bundle(self.path, self._bundle(), self._texts)
        self._forget()

    def interrupt(self, part: StreetModel | None = None, texts: Mapping[str, str] | None = None) -> None:
        """Put what there is in the bundle's place, unless a whole bundle stands there; `part` is a half-trained street.

        What is finished stays beside it, for the run that goes on.
        """
        if part is not None or self.finished:
            try:
                whole = not load_bundle(self.path).missing
            except PipelineError:
                whole = False
            if not whole:
                save_bundle(self.path, self._bundle(part), self._texts | dict(texts or {}))

    def _bundle(self, more: StreetModel | None = None) -> Bundle:
        parts = [self.finished[scope] for scope in self._scopes if scope in self.finished]
        parts += [] if more is None else [more]
        missing = tuple(scope for scope in self._scopes if scope not in self.finished)
        return replace(self.head, parts=(*self.head.parts, *parts), missing=missing)

    def _resume(self) -> None:
        """Take over the finished streets of an earlier run with the same mark."""
        try:
            found = load_bundle(self.beside) if self.beside.is_dir() else None
        except PipelineError:
            return
        if found is None or found.about.get(RESUME) != self.mark:
            return
        self.finished = {part.name: part for part in found.parts if part.name in self._scopes}
        names = {f"{scope}.features.txt" for scope in self.finished}
        self._texts = {name: bytes(data).decode() for name, data in contents(self.beside, names)}

    def _forget(self) -> None:
        for path in (self.beside, *map(self.checkpoint, self._scopes)):
            discard(path)
