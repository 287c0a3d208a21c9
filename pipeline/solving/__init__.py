"""Solved games and answers to known opponents: strategies as tables, a row of (fold, call, raise) for each decision.

In go a game and, for counter-strategies, a model of an opponent; out come strategies with their values, exploitability
and stored files. Read the exact half first: `small` lists games with few deals (Kuhn, Leduc), `cfr` solves them,
`preflop` solves hold'em without betting after the flop. Then limit hold'em in buckets of hands: `layout` has its
tables, `buckets` its deals, `holdem` the solver and best responses, `groups` coarser hands, `teacher` a whole run to a
stored strategy. Both halves number their decisions (`SmallGame.rows`, `Layout.rows`), `lookup` finds the row of a
decision in either, and `counter` answers a model of an opponent within a risk, in either.
`hindsight` estimates from finished hands what other strategies would have won; `strategy` and `portfolio` are files.
Apart from these, `spot` solves a no-limit spot between two ranges as it is: `ranges_text` reads ranges, `spot_tree` has
the betting, `spot_cards` the boards, `spot_kernels` the passes over both, and `spot_solution`
what comes out.
"""
