"""Poker hand histories (PHH): text to `History`, `History` to text, and hands played by the rules."""

from pipeline.histories.history import Action, History, HistoryError
from pipeline.histories.notation import parse_history
from pipeline.histories.replay import Replay, replay

__all__ = ["Action", "History", "HistoryError", "Replay", "parse_history", "replay"]
