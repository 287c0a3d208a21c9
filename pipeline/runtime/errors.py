"""The one exception for what a user can mend: a sentence with the value and the remedy.

Raised where the fact is known; the command line prints it as one line and exits with 1. Everything else that is
raised is a defect of ours and shows its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PipelineError(Exception):
    """A user's mistake or a damaged input, said in one sentence."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`' (did you mean X?)'` for the closest known word, else `' (known: ...)'`.

    >>> nearest("rprp", ["rprop", "l-bfgs"])
    ' (did you mean rprop?)'
    """
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if close:
        return f" (did you mean {close[0]}?)"
    return f" (known: {', '.join(choices[:12])}{', ...' if len(choices) > 12 else ''})" if choices else ""
