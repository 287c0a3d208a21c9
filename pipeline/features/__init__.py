"""Rows to features: the values that a pattern reads off a decision, hashed and numbered.

Rows of `dataset.decisions.OBSERVATION` (or text rows) go in, numbers of features come out. Files in reading order:
`patterns` (templates of features), `columns` (the meaning of each column), `reading` (columns read off rows),
`encoding` (a fitted pattern, its hashes and its form in a bundle), `vocabulary` (numbers of hashes), `textrows` (the
text form).
"""
