"""Seeded duplicate matches between agents, in process and thousands of hands at a time.

In: agents, a game, a number of hands and a seed. Out: results by deal, logs, rankings. Read `match` first, then
`duplicate` (who sits where, and the result), `lockstep` (the kernels that play), `transcript` (the files of a match),
`adjusting` and the room `variance` (luck taken out of results), `offpolicy` (results estimated from logs), `rankings`
and `tournament` (all line-ups of many agents), `sampling` (logs to learn from), `table` (a person against agents), and
the room `wire` (the ACPC protocol, both sides).
"""
