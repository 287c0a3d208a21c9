"""Report: pages, pictures and terminal tables of what was computed elsewhere, mostly in `pipeline.evaluation`.

In come scores, matches, charts and hands, out comes text: HTML, SVG, Markdown, CSV or lines for a terminal. In reading
order: `text` (the table type, and numbers in its cells), `words` (actions, betting, positions and features in the words
that players use), `tables` (those of `evaluate` and `tournament`), `terminal` (a logged hand), `plots` (SVG, style
sheets, curves, intervals, confusion tables, cards), `grids` (13 x 13 charts of starting hands) and `pages` (whole
pages, from the templates of resources/).
"""
