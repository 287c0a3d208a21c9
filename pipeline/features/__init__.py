"""Rows to features: what a pattern reads off a decision, hashed and numbered.

`patterns` says which features there are, `columns` what each column means, `reading` reads columns off rows, `encoding`
fits a pattern and hashes rows, `vocabulary` numbers the hashes; `rated` carries the strengths that a dataset has
stored, `textrows` the text form of a corpus, and `stored` checks what a bundle holds.
"""

from __future__ import annotations

from pipeline.features.encoding import Features, Rows, fit, from_json, to_arrays, to_json
from pipeline.features.rated import RatedRows, rated
from pipeline.features.vocabulary import Numbering, Vocabulary, read_only

__all__ = [
    "Features",
    "Numbering",
    "RatedRows",
    "Rows",
    "Vocabulary",
    "fit",
    "from_json",
    "rated",
    "read_only",
    "to_arrays",
    "to_json",
]
