"""Solved games and answers to known opponents: strategies as tables, a row of (fold, call, raise) for each decision.

In go a game and, for counter-strategies, a model of an opponent; out come strategies with their values, exploitability
and stored files. `small` lists games with few deals (Kuhn, Leduc), `cfr` solves them exactly, `preflop` solves hold'em
without betting after the flop. Limit hold'em is solved in buckets of hands: `layout` has its tables, `buckets` its
deals, `holdem` the solver and best responses, `teacher` a whole run to a stored strategy, `groups` coarser hands.
`lookup` finds the row of a decision; `counter` trusts a model of an opponent as far as a risk allows, in small games
and over buckets; `hindsight` estimates from finished hands what other strategies would have won. `strategy` and
`portfolio` are the files, `shipping` copies them to where they play.
"""
