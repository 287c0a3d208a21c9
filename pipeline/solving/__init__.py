"""Solved games: Kuhn, Leduc, hold'em before the flop, and limit hold'em over buckets; and answers to known opponents.

- `small`, `cfr`, `small_counter`: games small enough to list every deal, with exact values and best responses;
- `preflop`: hold'em without betting after the flop;
- `layout`, `buckets`, `holdem`: limit hold'em in buckets of hands: its tables, its deals, its solver;
- `response`, `bucket_counter`: best responses and counter-strategies over the same buckets;
- `strategy`, `teacher`, `places`: a solved strategy on disk, the one that is shipped, and where a row stands in one;
- `counter`: how far to trust a model of an opponent, in small games and over buckets alike.
"""
