"""The exception for mistakes that the user can mend: a sentence with the value and the remedy.

It is raised where the fact is known; the command line prints it as one line and exits with 1. Any other exception is
a defect of this package and shows its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PipelineError(Exception):
    """A user's mistake or a damaged input, described in one sentence."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return the end of an error sentence: `' (did you mean X?)'` for the closest choice, else `' (known: ...)'`.

    >>> nearest("rprp", ["rprop", "l-bfgs"])
    ' (did you mean rprop?)'
    """
    ordered = sorted(choices)
    close = difflib.get_close_matches(word, ordered, n=1, cutoff=0.5)
    if close:
        return f" (did you mean {close[0]}?)"
    return f" (known: {', '.join(ordered[:12])}{', ...' if len(ordered) > 12 else ''})" if ordered else ""
