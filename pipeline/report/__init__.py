"""Pages, pictures and terminal tables of what was computed elsewhere, mostly in `pipeline.evaluation`.

text        the one table type, and numbers in its cells
words       actions, betting, positions and features in the words that players use
tables      the tables of `evaluate` and `tournament`
terminal    a logged hand as text
markup      SVG as text, style sheets, picture files
plots       curves, intervals, confusion tables, cards
grids       13 x 13 charts of starting hands, as SVG and as text
sections    the tables and drawings of each section of the page
pages       the page itself, from the templates of resources/
"""
