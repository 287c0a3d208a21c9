"""Public functions: what `import pipeline as p` offers, with paths as texts and the command line's option names.

In go paths, names of agents and the same options as on the command line (`--min-weight` is `min_weight`; an option
that may be repeated takes one text or several); out come small results whose `frame()` is a pandas DataFrame. The
rooms below do the work. Files in reading order: `data` (logs to rows), `bundles` (rows to models), `play` (matches),
`scores` (how close models are), `opponents` (statistics, leaks and counters), `games` (hands and small games), `spots`
(no-limit spots), `overview` (the contents of a folder).
"""
