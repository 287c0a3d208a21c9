"""The columns of a dataset's tables: name, type and meaning of each, as `ingest` writes them.

A dataset is a folder that `ingest` writes: `hands/` (a row per hand), `decisions/street=S/` (a row per decision),
`rejected/` (a row per line that is no hand) and `manifest.json`, which names every file, source, game and option; only
files named there belong to the dataset. All files of a table have the same columns, so pandas, DuckDB and Polars read
the folders as they are; texts are dictionary-encoded. In a file of decisions the rows are sorted by agent; an agent's
are in the order of the logs' lines.

Null means that there is no such value: the strength of a street not reached, an aggressor where nobody raised, amounts
that only games with stacks have. `-` in a text means none (no card, no betting yet).
"""

from __future__ import annotations

from pipeline.dataset.decisions import STREETS
from pipeline.poker.cards import RANKS, SUITS

SCHEMA_VERSION = 3

HANDS = {
    "file": "text: the log, an archive's path before it",
    "line": "int32: its line in the log, from 1",
    "hand": "int32: the hand's number in the log",
    "game": "text: name of the game's definition",
    "names": "text: players in position order, as the log names them",
    "betting": "text: as in the log",
    "cards": "text: hole cards in position order and the board, as in the log",
    "payoffs": "text: net chips in position order, as in the log",
    "deal": "uint64: hash of all hole cards in position order (of seed and hand in one-card games)",
    "actions": "int32: how many there were",
    "showdown": "bool: not decided by folds",
    "expected": "bool: payoffs are all-in expectations",
    "validation": "bool: held out; false where players are held out",
    "big_blind": "int32: chips; in hand histories the minimum bet, in fixed-limit ones the small bet",
    "stakes": "text: of hand histories NT and the minimum bet, or FT and both bets, and `trimmed`; - in ACPC logs",
    "stacks": "text: of hand histories the chips each player began with, inf where nobody knows; - in ACPC logs",
    "blinds": "text: as a hand history lists them; - in ACPC logs",
    "antes": "text: the same",
    "decimals": "uint8: digits after the point of one chip in a hand history: 2 where chips are cents",
    "venue": "text: of hand histories; empty in ACPC logs",
    "table": "text: the same",
    "number": "text: the hand's number or name in a hand history",
    "rake": "int32: chips that a hand history says the house took",
    "partial": "bool: a hand history that stops before its betting ends",
    "flagged": "bool: results in a hand history that the rules do not allow",
    "shown": "uint16: a bit per player who showed cards in a hand history",
}

DECISIONS = {
    "street": "partition (part of the path): preflop flop turn river",
    "agent": "text: who acts, after aliases",
    "file": "text: the log",
    "line": "int32: the hand's line in it",
    "hand": "int32: the hand's number",
    "k": "uint8: index among all the hand's actions",
    "game": "text",
    "opponents": "text: the others from the next position on, joined by |",
    "position": "uint8: 0 is first after the button (heads-up the big blind)",
    "deal": "uint64: as in hands; a deal's rows are all on one side",
    "preflop": "text: the betting of the street so far; limit f c r, no-limit f c s h p o a; - for none",
    "flop": "text",
    "turn": "text",
    "river": "text",
    "raises": "uint8: on this street so far",
    "to_call": "int32: chips",
    "pot": "int32: chips in the middle, this street's bets included",
    "stack": "int32: own chips left; 0 in limit, null where nobody knows",
    "legal": "text: letters of the labels that may be chosen",
    "previous": "text: own last label in this hand, - for none",
    "high": "text: higher hole rank",
    "low": "text: lower hole rank",
    "start": "text: starting class, AKs",
    "ranks": "text: board ranks, high first, - for none",
    "pattern": "text: suit pattern",
    "flush": "text: coarser suit pattern",
    "name": "text: hand name, - before the flop",
    "hole1": "text: exact cards as dealt, - for none",
    "hole2": "text",
    "board1": "text",
    "board2": "text",
    "board3": "text",
    "board4": "text",
    "board5": "text",
    "players": "uint8: dealt in",
    "big_blind": "int32: chips",
    "in_hand": "uint8: players who have not folded, the actor included",
    "to_act": "uint8: others with chips who still act on this street if the actor only calls",
    "relative_position": "uint8: others in the hand who act after the actor on the last street; 0 is the best seat",
    "aggressor": "uint8: position of the last player who raised in this hand; null when nobody has",
    "effective_stack": "int32: chips the actor can still win or lose; null in limit",
    "effective_stack_bb": "float: the same in big blinds; null in limit",
    "stack_to_pot": "float: effective stack / pot; null in limit",
    "faced": "float: the bet faced as a share of the pot before it: to_call / (pot - to_call)",
    "action": "text: f c r, in no-limit r with the total it goes to",
    "label": "text: the action's class (see game.py)",
    "amount": "int32: the total over the hand that a raise goes to, in chips; null for other actions",
    "result": "double: the hand's net chips for the agent; null where nobody knows",
    "known": "bool: whether the agent's own cards are known; always in ACPC logs",
    "validation": "bool: held out: one deal in ten, or by file, or one player in ten",
}

STRENGTH_COLUMNS = {
    "<street>_ihs": "uint16: strength now (65535 = 1), for flop, turn and river; null on streets before it",
    "<street>_ehs": "uint16: mean strength at the river",
    "<street>_ehs2": "uint16: mean of its square",
    "<street>_q": "8 bytes: means of the eighths of its distribution (255 = 1)",
    "river_ochs": "8 bytes: strength on the river against each of 8 groups of starting hands, weakest first (255 = 1)",
}
"""in datasets made without --no-strength; null in other games than hold'em"""

REJECTED = {
    "file": "text: the log",
    "line": "int32: from 1",
    "hand": "int32: the hand's number in the log, as in hands; null where the line has none",
    "number": "text: the hand's number or name in a hand history; empty in ACPC logs and where it cannot be found",
    "text": "text: the line's first 500 characters; of hand histories the hand's, with the `[n]` before it",
    "reason": "text: see acpc.REASONS",
}

CARDS = ("hole1", "hole2", "board1", "board2", "board3", "board4", "board5")
CARD_TEXTS = [rank + suit for rank in RANKS for suit in SUITS] + ["-"]


def decisions_folder(street: int) -> str:
    """Return the folder, inside the dataset, of a street's decisions."""
    return f"decisions/street={STREETS[street]}"
