"""The public functions: what `import pipeline as p` offers, with paths as texts and the command line's option names.

In go paths, names of agents and the same options as on the command line (`--min-weight` is `min_weight`; an option
that may be repeated takes one text or several); out come small results whose `frame()` is a pandas DataFrame. The
work is done in the rooms below; these modules only make it pleasant to call, and `pipeline/__init__.py` says which
module each public name is imported from: `data` (logs to rows), `bundles` (rows to models), `play` (agents at the
table), `scores` (how close models are), `games` (hands and small games), `overview` (what a folder holds).
"""
