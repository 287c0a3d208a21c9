"""Mutated hand histories, read and played here and by PokerKit.

Run by `python tests/campaigns/torture.py histories --count N --seed S`. A valid hand is harmed in its fields (amounts
of 10^20, negative, fractions, `inf`, other types), its entries (left out, doubled, exchanged, other players, amounts
and cards), its text (bytes changed, NUL, TOML that is none, values nested deeply) or not at all. Whatever is accepted
here must be replayed alike by PokerKit: entry by entry (actors, legal raises, stacks; where somebody hides cards, up to
the first that are shown), and as it reads the text by itself (payoffs). What it accepts, mending as it goes, and is
refused here is counted by the reason given here.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

from played_histories import random_history
from pokerkit_oracle import assert_agrees_with_pokerkit

from pipeline.formats.histories.history import History, HistoryError
from pipeline.formats.histories.notation import history_text, parse_history
from pipeline.formats.histories.replay import Replay, replay
from pipeline.formats.histories.scan import scan_histories

AMOUNTS = (
    *("0", "1", "-1", "2", "3", "0.5", "1.25", "7.005", "1e3", "1_000", "00", "inf", "-inf", "nan"),
    *("100000000000000000000", "99999999999", "2147483648", "true", "'5'", "[]", "1.0"),
)


def harm(history: History, luck: random.Random) -> str:
    """The text of a hand with something wrong in it, or nothing."""
    kinds = (_harm_amounts, _harm_entries, _harm_entries, _harm_fields, _harm_text)
    text = history_text(history)
    for _ in range(luck.choice([0, 1, 1, 1, 2])):
        text = luck.choice(kinds)(text, luck)
    return text


def _changed(text: str, key: str, change: Any) -> str:
    lines = [f"{key} = {change(line.split(' = ', 1)[1])}" if line.startswith(f"{key} = ") else line
             for line in text.splitlines()]  # fmt: skip
    return "\n".join(lines) + "\n"


def _harm_amounts(text: str, luck: random.Random) -> str:
    key = luck.choice(["antes", "blinds_or_straddles", "starting_stacks", "min_bet", "small_bet", "big_bet",
                       "winnings", "finishing_stacks"])  # fmt: skip

    def change(value: str) -> str:
        if not value.startswith("["):
            return luck.choice(AMOUNTS)
        words = value.strip("[]").split(", ")
        words[luck.randrange(len(words))] = luck.choice(AMOUNTS)
        if luck.random() < 0.15:
            words.pop()
        return f"[{', '.join(words)}]"

    return _changed(text, key, change)


def _harm_entries(text: str, luck: random.Random) -> str:
    def change(value: str) -> str:
        entries = [word for word in value.strip("[]").split("', '") if word]
        entries = [word.strip("'") for word in entries] or ["p1 f"]
        at = luck.randrange(len(entries))
        what = luck.randrange(8)
        if what == 0:
            del entries[at]
        elif what == 1:
            entries.insert(at, entries[at])
        elif what == 2:
            other = luck.randrange(len(entries))
            entries[at], entries[other] = entries[other], entries[at]
        elif what == 3:
            entries[at] = f"p{luck.randint(0, 11)} {luck.choice(['f', 'cc', 'cbr 20', 'sm', 'sm AhKd', 'sd'])}"
        elif what == 4:
            entries = entries[:at]
        elif what == 5:
            words = entries[at].split(" ")
            if "cbr" in words:
                words[-1] = luck.choice([*AMOUNTS, str(luck.randint(1, 500))])
            else:
                words[-1] = luck.choice(["AhAh", "2c3c4c", "????", "5d", "XxYy", "Ah", "d", ""])
            entries[at] = " ".join(words)
        elif what == 6:
            entries[at] += luck.choice([" # a remark", "#", "  ", "\t", " # "])
        else:
            entries.insert(at, luck.choice(["d db 2c", "d db ????", "d dh p1 ????", "# only a remark", "x", ""]))
        return "[" + ", ".join(f"'{word}'" for word in entries) + "]"

    return _changed(text, "actions", change)


def _harm_fields(text: str, luck: random.Random) -> str:
    lines = text.splitlines()
    at = luck.randrange(len(lines))
    what = luck.randrange(5)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[at])
    elif what == 2:
        lines.append(
            luck.choice(["author = 'me'", "_deep = " + "[" * 40 + "]" * 40, "_x = {a = {b = {c = 1}}}", "day = 1"])
        )
    elif what == 3:
        lines[at] = (
            lines[at].split(" = ")[0] + " = " + luck.choice(["1", "'x'", "[]", "true", "{}", "inf", "'NT'", "'FT'"])
        )
    else:
        lines.append("_deep = " + "[" * 3000 + "]" * 3000)
    return "\n".join(lines) + "\n"


def _harm_text(text: str, luck: random.Random) -> str:
    at = luck.randrange(len(text))
    put = luck.choice(["\0", "'", '"', "[", "]", "=", "\n", "\r", "é", "\\", ",", " ", str(luck.randint(0, 9))])
    return text[:at] + put + text[at + luck.choice([0, 0, 1, 3]) :]


def ours(text: str) -> History | str:
    """The hand as it is read and played here, or the reason why not; the byte kernel must say the same."""
    hands, refused = scan_histories(text.encode())
    try:
        history = parse_history(text)
        replay(history)
    except HistoryError as error:
        assert len(hands.records) == 0 or len(hands.records) + len(refused) > 1, f"only the kernel took it: {text}"
        return str(error)
    assert (len(hands.records), len(refused)) == (1, 0), f"only tomllib took it: {text}"
    return history


def theirs(text: str) -> Any:
    """PokerKit's final state, or the exception that it raises."""
    from pokerkit import HandHistory

    try:
        return list(HandHistory.loads(text))[-1]
    except (Exception, RecursionError) as error:
        return error


def compare(text: str) -> str:
    """What became of a text: a word, and the reason where the two differ."""
    found, other = ours(text), theirs(text)
    if isinstance(found, str):
        return "both refuse" if isinstance(other, Exception) else f"lenient: {_kind(found)}"
    bare = replace(found, winnings=(), finishing_stacks=())
    hidden = _hides(bare)
    shown = next((at for at, entry in enumerate(bare.actions) if entry.kind == "sm"), len(bare.actions))
    way = "both accept"
    result = replay(bare)
    if not isinstance(other, Exception) and _beyond(result):
        return "both accept; chips that somebody folded beyond all who are left go to the pot"
    try:
        assert_agrees_with_pokerkit(replace(bare, actions=bare.actions[:shown]) if hidden else bare)
    except ValueError:  # an entry too early for PokerKit's rules, such as cards shown between those of the board
        way = "both accept; PokerKit mends the order of cards"
    shows = [entry.player for entry in bare.actions if entry.kind == "sm"]
    if isinstance(other, Exception) and hidden and len(set(shows)) < len(shows):
        return "accepted here alone: somebody hides cards twice"
    if isinstance(other, Exception) and hidden and _hides_early(bare):
        return "accepted here alone: somebody hides cards before they are dealt"
    assert not isinstance(other, Exception), f"PokerKit refuses it: {other!r}"
    if result.showdown and hidden:
        return "both accept; somebody hides cards at the showdown"
    if result.result is not None and not result.partial:
        scale, odd = 10**found.decimals, found.count * (len(set(result.spent)) + 1) if result.showdown else 1e-3
        if result.showdown and any(spent % scale == 0 for spent in result.spent):
            odd *= scale  # pots of whole amounts are divided into whole ones there, whatever the unit of the others
        assert all(abs(a - float(b) * scale) < odd for a, b in zip(result.result, other.payoffs, strict=True)), text
    return way


def _hides(history: History) -> bool:
    """Whether a player who has not folded does not show two known cards."""
    folded = {entry.player for entry in history.actions if entry.kind == "f"}
    known = {entry.player for entry in history.actions if entry.kind == "sm" and len(entry.cards.strip("?-")) == 4}
    return not set(range(history.count)) - folded <= known


def _beyond(result: Replay) -> bool:
    """Whether somebody who folded had put in more than everybody who is left."""
    left = [spent for spent, folded in zip(result.spent, result.folded, strict=True) if not folded]
    return any(
        folded and spent > max(left, default=0) for spent, folded in zip(result.spent, result.folded, strict=True)
    )


def _hides_early(history: History) -> bool:
    """Whether a player hides cards before they are dealt."""
    dealt: set[int] = set()
    for entry in history.actions:
        if entry.kind == "sm" and entry.player not in dealt:
            return True
        dealt |= {entry.player} if entry.kind == "dh" else set()
    return False


def _kind(reason: str) -> str:
    """A reason without what it quotes."""
    return "".join("N" if letter.isdigit() else letter for letter in reason)[:60]


def attack(count: int, seed: int) -> dict[str, int]:
    """So many harmed hands; how many ended which way."""
    ways: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            luck = random.Random(f"{seed} {number}")
            text = harm(random_history(luck.randrange(10**6), luck.choice([1.0, 0.5])), luck)
            try:
                ways[compare(text)] += 1
            except BaseException as error:
                raise AssertionError(f"seed {seed}, attempt {number}: {error!r}\n{text}") from error
    return {f"histories: {way}": times for way, times in ways.most_common()}
