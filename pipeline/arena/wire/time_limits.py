"""How long a dealer waits for players.

Nothing goes in; out comes `Limits` with the times of the ACPC. It is a room of its own because the command line names
these defaults in its help, which must not wait for the game's compiled code to be loaded.
"""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Times allowed, in milliseconds."""

    response_ms: int = 600_000
    """for one action"""
    hand_ms: int = 600_000
    """for a player's actions of one hand"""
    per_hand_ms: int = 7_000
    """times the match's hands: for all actions of a player"""
    start_ms: int = 600_000
    """until every player has connected and named its version"""
