"""Figures of docs/benchmarks.md: a module per topic, each with `run(settings) -> list[Figure]`.

In go the options of `python -m benchmarks` (`_figures.Settings`), out come figures, each beside a baseline of the same
run. Topics share `_figures`, `_stages` (parts stored on disk) and `_play` (measurements of agents at the table).
"""
