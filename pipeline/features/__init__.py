"""Rows to features: what a pattern reads off a decision, hashed and numbered.

`patterns` says which features there are, `columns` what each column means, `reading` reads columns off rows, `encoding`
fits a pattern and hashes rows, `vocabulary` numbers the hashes; `rated` carries the strengths that a dataset has
stored, `textrows` the text form of a corpus, and `stored` checks what a bundle holds.
"""
