"""Poker hand histories (PHH): text in, hands played by the rules out, as objects or (thousands at once) as arrays.

Files in reading order: `history` (the object), `notation` (its text), `packing` (a hand as arrays), `replay` (the
rules), `fields` and `scan` (the byte kernel), `convert` (to and from ACPC logs, from logs of poker sites).
"""
