"""Poker hand histories (PHH): text to `History`, `History` to text, and hands played by the rules."""

from pipeline.histories.convert import from_acpc, game_of, to_acpc
from pipeline.histories.history import Action, History, HistoryError
from pipeline.histories.notation import parse_history, read_histories
from pipeline.histories.replay import Replay, replay
from pipeline.histories.writing import histories_text, history_text

__all__ = [
    "Action",
    "History",
    "HistoryError",
    "Replay",
    "from_acpc",
    "game_of",
    "histories_text",
    "history_text",
    "parse_history",
    "read_histories",
    "replay",
    "to_acpc",
]
