"""Exact hand strength and its distribution at the river, against one opponent with random cards.

The strength of a hand is the share of opponents' hands it beats, ties counting half. For a holding on a board:

- `ihs`: immediate strength, with the board as it is;
- `ehs`, `ehs2`: mean of the strength at the river, and of its square, over all boards still possible;
- `q`: the distribution of the strength at the river as the means of its eighths, weakest first. The earth mover's
  distance between two distributions is (in eighths) the sum of |differences| of these; their mean is `ehs`.

Everything is exact by enumeration, then rounded: 65535 or 255 stands for 1. Before the flop there is no made hand:
`ihs` is `ehs`, the chance against a random hand. On the river all are the one strength.

Two ways lead to the same numbers. `board_tables` has all holdings on every flop and turn (290 MB in the user's cache
folder, a minute to make). `rows` enumerates one holding at a time: no tables, about 1 ms on the flop.
`queries.find_strengths` chooses; `quantiles` has other points of the same distribution, `equity` the chances
against ranges, groups and several opponents, `hand_clusters` groups of holdings by k-means.
"""
