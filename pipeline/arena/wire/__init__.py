"""The ACPC protocol over sockets, both sides.

In: an agent, or a plan of a match. Out: a match on the wire, and the dealer's log. Read `player` first (lines in,
answers out, no sockets), then `client` (an agent on a dealer's socket), `dealer` (cards, states, log and the match),
`answers` (what a player's line comes to), `sockets` (connections whose work and time are bounded), `matches` (duplicate
matches with programs).
"""
