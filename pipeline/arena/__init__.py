"""Seeded duplicate matches between agents, in process and thousands of hands at a time (`pipeline.arena.match`)."""

from pipeline.arena.blocks import Table
from pipeline.arena.match import MatchResult, distinct, play_match
from pipeline.arena.rehearsal import rehearse
from pipeline.arena.seatings import seatings

__all__ = ["MatchResult", "Table", "distinct", "play_match", "rehearse", "seatings"]
