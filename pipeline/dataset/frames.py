"""Decision rows as a pandas DataFrame with readable columns.

In go the arrays of `dataset.Decisions`; out comes one row per decision with texts where the arrays hold codes: cards
as `9cKc`, betting as `cr`, the action's label as `r`. pandas (of the extra `[data]`) is imported here and only when
asked: everything that runs over millions of rows stays with the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.dataset.decisions import NOBODY, STREETS, word_text
from pipeline.poker.cards import NO_CARD, RANKS, SUITS, class_text, names

Array = np.ndarray[Any, Any]


def _cards(cards: Array) -> Array:
    """(n, k) card numbers as texts, cards that are not there left out."""
    texts = np.array([rank + suit for rank in RANKS for suit in SUITS] + [""], dtype=object)
    codes = np.where(cards == NO_CARD, len(texts) - 1, cards)
    joined = texts[codes[:, 0]]
    for i in range(1, codes.shape[1]):
        joined = joined + texts[codes[:, i]]
    return np.asarray(joined)


def _words(codes: Array, nolimit: bool) -> Array:
    """Betting codes as texts, each distinct one written once."""
    values, inverse = np.unique(codes, return_inverse=True)
    return np.array([word_text(int(value), nolimit) for value in values], dtype=object)[inverse]


def decisions_frame(found: Any) -> Any:
    """A DataFrame with a row per decision of a `dataset.Decisions`.

    Parameters
    ----------
    found : dataset.Decisions
        What `load` gave.

    Returns
    -------
    pandas.DataFrame
        Columns `agent`, `opponents`, `street`, `position`, `hole`, `board`, `start` (the starting class, `AKs`), the
        betting of each street (`preflop`, `flop`, `turn`, `river`; `-` for none), `raises`, `to_call`, `pot`, `stack`
        (chips), `in_hand`, `to_act` (players), `relative_position` (players behind), `aggressor` (a position, missing
        when nobody raised), `name` (of the hand), `action` (the label's letter), `amount` (chips a raise goes to, else
        missing), `result` (the hand's net chips for the agent), `validation`, and `file`, `line`, `hand`, `k`, `deal`
        for where it was found; `strength` (mean strength at the river, 0 to 1) if it was loaded.
    """
    import pandas as pd

    rows, game = found.rows, found.game
    labels = np.array(list(game.labels), dtype=object)
    holdem = game.hole_cards == 2
    columns: dict[str, Any] = {
        "agent": pd.Categorical.from_codes(found.agent, categories=list(found.agents)),
        "opponents": pd.Categorical.from_codes(found.opponent, categories=list(found.opponents)),
        "street": pd.Categorical.from_codes(rows["street"].astype(np.int8), categories=list(STREETS), ordered=True),
        "position": rows["position"],
        "hole": _cards(rows["hole"]),
        "board": _cards(rows["board"]),
    }
    if holdem:
        columns["start"] = np.array([class_text(i) for i in range(169)], dtype=object)[rows["start"]]
    for i, street in enumerate(STREETS[: game.rounds]):
        columns[street] = _words(rows["betting_codes"][:, i], game.nolimit)
    columns |= {name: rows[name] for name in ("raises", "to_call", "pot", "stack", "in_hand", "to_act")}
    columns |= {
        "relative_position": rows["behind"],
        "aggressor": pd.array(rows["aggressor"], "Int16"),
        "name": pd.Categorical.from_codes(rows["name"].astype(np.int16), categories=list(names())),
        "action": labels[found.action],
        "amount": pd.array(found.amount, "Int32"),
        "result": found.result,
        "validation": found.validation,
        "file": pd.Categorical.from_codes(found.file, categories=list(found.files)),
        "line": found.line,
        "hand": found.hand,
        "k": found.k,
        "deal": found.deal,
    }
    frame = pd.DataFrame(columns)
    frame.loc[rows["aggressor"] == NOBODY, "aggressor"] = pd.NA
    frame.loc[found.amount == 0, "amount"] = pd.NA
    if found.strength is not None:
        street = rows["street"].astype(np.int64)
        ehs = found.strength["ehs"][np.arange(len(rows)), np.maximum(street - 1, 0)] / 65535
        frame["strength"] = np.where(street > 0, ehs, np.nan)
    return frame
