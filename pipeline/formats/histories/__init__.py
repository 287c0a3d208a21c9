"""Poker hand histories (PHH): text to `History` and back, hands played by the rules, bulk reading.

Files in reading order: `history` (the object), `notation` (its text), `packing` (a hand as arrays), `replay` (the
rules), `fields` and `scan` (the byte kernel), `convert` (to and from ACPC logs, from logs of poker sites).
"""
