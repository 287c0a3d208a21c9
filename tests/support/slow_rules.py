"""The rules of ACPC logs once more: slowly, plainly and without a line of `pipeline`, to be compared with ingest.

In: the text of a `.game` file and a line of a log. Out: the verdict on the line in the words of the table `rejected`,
and for a hand the rows of its decisions. Written from the protocol and from the description of the dataset's columns;
everything is lists, sets and fractions, nothing is fast.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import Any

CARD = "(?:[23456789TJQKA][cdhs])"
NUMBER = r"-?[0-9]{1,12}(?:\.[0-9]{1,17})?"
NAME = "[!-9;-{}~]{1,64}"
AFTER = r"(?: 0| 1)?(?: # ?[0-9]{1,12}(?:\.[0-9]{1,12})?)?\r?"
CARDS = f"(?P<cards>{CARD}+(?:[|]{CARD}+)*(?:/{CARD}+)*)"
PAYOFFS = f"(?P<payoffs>{NUMBER}(?:[|]{NUMBER})+)"
NAMES = f"(?P<names>{NAME}(?:[|]{NAME})+)"
NEW = re.compile(f"STATE:(?P<hand>[0-9]{{1,9}}):(?P<betting>(?:f|c|/|r[0-9]{{0,9}})*):{CARDS}:{PAYOFFS}:{NAMES}{AFTER}")
OLD = re.compile(
    f"{NAMES}:(?P<hand>[0-9]{{1,9}}):(?P<betting>(?:b[0-9]{{1,9}})*(?:f|/|[cr][0-9]{{0,9}})*):{CARDS}:{PAYOFFS}{AFTER}"
)
SCORE = re.compile(f"SCORE:{NUMBER}(?:[|]{NUMBER})+:{NAMES}{AFTER}")
RANKS, SUITS = "23456789TJQKA", "cdhs"
STREETS = ("preflop", "flop", "turn", "river")
CLASSES = {"s": (0, Fraction(2, 5)), "h": (Fraction(2, 5), Fraction(3, 4)), "p": (Fraction(3, 4), Fraction(3, 2))}
"""classes of raises: from and to before which share of the pot after calling; `o` is larger, `a` is all-in"""


@dataclass
class Game:
    """A game file."""

    nolimit: bool
    players: int
    rounds: int
    blinds: list[int]
    stacks: list[int]
    raise_sizes: list[int]
    first: list[int]
    most_raises: list[int]
    hole: int
    board: list[int]
    deck: set[str]


def read_game(text: str) -> Game:
    """A game from the text of its file."""
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        key, _, values = line.split("#")[0].partition("=")
        if values:
            found[key.strip().lower()] = [int(word) for word in values.split()]
    (players,), (rounds,), (suits,), (ranks,) = (found[f"num{key}"] for key in ("players", "rounds", "suits", "ranks"))
    nolimit = "nolimit" in text.lower().split()
    largest = 2**31 - 1
    return Game(
        nolimit=nolimit,
        players=players,
        rounds=rounds,
        blinds=found["blind"],
        stacks=found.get("stack", [largest // players if nolimit else largest] * players),
        raise_sizes=found.get("raisesize", [0] * rounds),
        first=[number - 1 for number in found.get("firstplayer", [1] * rounds)],
        most_raises=found.get("maxraises", [255] * rounds),
        hole=found["numholecards"][0],
        board=found["numboardcards"],
        deck={rank + suit for rank in RANKS[13 - ranks :] for suit in SUITS[4 - suits :]},
    )


@dataclass
class Hand:
    """A hand's betting while it is played."""

    game: Game
    street: int = 0
    raises: int = 0
    over: bool = False
    folded: set[int] = field(default_factory=set)
    rows: list[dict[str, Any]] = field(default_factory=list)
    aggressor: int | None = None

    def __post_init__(self) -> None:
        game = self.game
        self.spent = [min(blind, stack) for blind, stack in zip(game.blinds, game.stacks, strict=True)]
        self.raise_to = max(1, 2 * max(self.spent))
        self.words = ["", "", "", ""]
        self.previous = ["-"] * game.players
        self.turns = self.order(game.first[0])

    def order(self, first: int) -> list[int]:
        """Everybody who can act, from a player on."""
        around = [(first + step) % self.game.players for step in range(self.game.players)]
        return [p for p in around if p not in self.folded and self.spent[p] < self.game.stacks[p]]

    def to_call(self, player: int) -> int:
        return min(max(self.spent), self.game.stacks[player]) - self.spent[player]

    def raise_range(self, player: int) -> tuple[int, int] | None:
        """The smallest and the largest total to raise to."""
        game, stack, highest = self.game, self.game.stacks[player], max(self.spent)
        if self.raises >= game.most_raises[self.street] or len(self.order(0)) < 2:
            return None
        if not game.nolimit:
            total = min(highest + game.raise_sizes[self.street], stack)
            return total, total
        if self.raise_to <= stack:
            return self.raise_to, stack
        return (stack, stack) if highest < stack else None

    def legal(self, player: int) -> str:
        """The letters of what a player may do."""
        letters = "fc" if self.to_call(player) > 0 else "c"
        found = self.raise_range(player)
        if found is None or not self.game.nolimit:
            return letters + ("r" if found else "")
        (low, high), highest, stack = found, max(self.spent), self.game.stacks[player]
        after = sum(self.spent) + self.to_call(player)
        for letter, (begin, end) in {**CLASSES, "o": (Fraction(3, 2), None)}.items():
            least = max(low, highest + ceil(begin * after))
            most = min(high, stack - 1) if end is None else min(high, stack - 1, highest + ceil(end * after) - 1)
            letters += letter if least <= most else ""
        return letters + ("a" if high == stack else "")

    def label(self, player: int, letter: str, total: int) -> str:
        """The class of an action."""
        if letter != "r" or not self.game.nolimit:
            return letter
        if total >= self.game.stacks[player]:
            return "a"
        share = Fraction(total - max(self.spent), sum(self.spent) + self.to_call(player))
        return next((name for name, (begin, end) in CLASSES.items() if begin <= share < end), "o")

    def act(self, letter: str, total: int) -> None:
        """Take a legal action, and write down what the player saw."""
        game, player, highest = self.game, self.turns[0], max(self.spent)
        label = self.label(player, letter, total)
        last = [(game.first[-1] + step) % game.players for step in range(game.players)]
        behind = [p for p in last[last.index(player) + 1 :] if p not in self.folded]
        self.rows.append(
            {
                "k": len(self.rows),
                "street": STREETS[self.street],
                "position": player,
                "to_call": self.to_call(player),
                "pot": sum(self.spent),
                "raises": self.raises,
                "stack": game.stacks[player] - self.spent[player] if game.nolimit else 0,
                "legal": self.legal(player),
                "previous": self.previous[player],
                **{street: word or "-" for street, word in zip(STREETS, self.words, strict=True)},
                "players": game.players,
                "in_hand": game.players - len(self.folded),
                "to_act": len(self.turns) - 1,
                "relative_position": len(behind),
                "aggressor": self.aggressor,
                "label": label,
                "action": f"r{total}" if letter == "r" and game.nolimit else letter,
                "amount": total if letter == "r" else None,
            }
        )
        self.words[self.street] += label
        self.previous[player] = label
        if letter == "f":
            self.folded.add(player)
        elif letter == "c":
            self.spent[player] += self.to_call(player)
        else:
            self.raise_to = max(self.raise_to, 2 * total - highest)
            self.spent[player] = total
            self.raises += 1
            self.aggressor = player
        others = self.order((player + 1) % game.players)
        self.turns = [p for p in others if p != player] if letter == "r" else self.turns[1:]
        if game.players - len(self.folded) == 1:
            self.over = True
        elif not self.turns:
            self.end_street()

    def end_street(self) -> None:
        """Go on to the next street, or to the showdown."""
        if len(self.order(0)) < 2 or self.street == self.game.rounds - 1:
            self.over, self.street = True, self.game.rounds - 1
            return
        self.street, self.raises = self.street + 1, 0
        self.turns = self.order(self.game.first[self.street])
        self.raise_to = max(self.spent) + max(1, *self.game.blinds)

    def payoffs(self, values: list[Any]) -> list[float]:
        """What each wins: a pot for every amount that somebody left in the hand has put in."""
        live = [p for p in range(self.game.players) if p not in self.folded]
        levels = sorted({self.spent[p] for p in live if self.spent[p] > 0})
        found, below = [-float(spent) for spent in self.spent], 0
        for level in levels:
            top = max(self.spent) if level == levels[-1] else level
            pot = sum(max(0, min(spent, top) - below) for spent in self.spent)
            able = [p for p in live if self.spent[p] >= level]
            best = max(values[p] for p in able)
            winners = [p for p in able if values[p] == best]
            for p in winners:
                found[p] += pot / len(winners)
            below = level
        return found


def value(cards: list[str]) -> tuple[int, ...]:
    """What up to seven cards are worth: the kind of the best five of them, then the ranks that decide."""
    if len(cards) <= 5:
        return worth(cards)
    suits, ranks = Counter([card[1] for card in cards]), Counter([RANKS.index(card[0]) for card in cards])
    suit, times = suits.most_common(1)[0]
    flush = sorted([RANKS.index(card[0]) for card in cards if card[1] == suit], reverse=True) if times >= 5 else []
    if flush and straight(flush):
        return 8, *straight(flush)
    groups = sorted([(times, rank) for rank, times in ranks.items()], reverse=True)
    most, first = groups[0]
    others = sorted([rank for rank in ranks if rank != first], reverse=True)
    pairs = [rank for rank in others if ranks[rank] >= 2]
    if most == 4:
        return 7, first, others[0]
    if most == 3 and pairs:
        return 6, first, pairs[0]
    if flush:
        return 5, *flush[:5]
    if straight([*ranks]):
        return 4, *straight([*ranks])
    if most == 3:
        return 3, first, *others[:2]
    if most == 2 and pairs:
        return 2, first, pairs[0], next(rank for rank in others if rank != pairs[0])
    return (1, first, *others[:3]) if most == 2 else (0, first, *others[:4])


def straight(ranks: list[int]) -> tuple[int, ...]:
    """The ranks of the best straight among some, from above; none, if there is none."""
    have = {*ranks, -1} if 12 in ranks else {*ranks}
    tops = [top for top in have if {top - 1, top - 2, top - 3, top - 4} <= have]
    return tuple(range(max(tops), max(tops) - 5, -1)) if tops else ()


def best_five(cards: list[str]) -> tuple[int, ...]:
    """The same more slowly: the worth of every five of the cards."""
    return max(worth(list(five)) for five in combinations(cards, 5))


def worth(cards: list[str]) -> tuple[int, ...]:
    """The worth of at most five cards: the kind of hand, then the ranks that decide."""
    ranks = [RANKS.index(card[0]) for card in cards]
    groups = sorted(((times, rank) for rank, times in Counter(ranks).items()), reverse=True)
    shape, order = [times for times, _ in groups], [rank for _, rank in groups]
    kind = {(4, 1): 7, (4,): 7, (3, 2): 6, (3, 1, 1): 3, (3, 1): 3, (3,): 3, (2, 2, 1): 2, (2, 2): 2}.get(
        tuple(shape), 0
    )
    kind = kind or int(shape[0] == 2)
    if len(cards) == 5 and len(shape) == 5:
        if order == [12, 3, 2, 1, 0]:
            order = [3, 2, 1, 0, -1]
        straight = order[0] - order[4] == 4
        flush = len({card[1] for card in cards}) == 1
        kind = 8 if straight and flush else 5 if flush else 4 if straight else 0
    return kind, *order


def split(text: str) -> list[str]:
    return [text[i : i + 2] for i in range(0, len(text), 2)]


@dataclass
class Verdict:
    """What is said of a line: `comment`, `score`, `hand`, `expected`, `undecided` or the reason of a rejection."""

    word: str
    hand: Hand | None = None
    names: list[str] = field(default_factory=list)
    holes: list[list[str]] = field(default_factory=list)
    board: list[list[str]] = field(default_factory=list)
    payoffs: list[float] = field(default_factory=list)


def judge(line: str, game: Game) -> Verdict:
    """The verdict on a line without its line end."""
    if len(line) > 16384:
        return Verdict("grammar: longer than 16,384 bytes")
    if line in ("", "\r"):
        return Verdict("comment")
    if SCORE.fullmatch(line):
        return Verdict("score")
    new, old = NEW.fullmatch(line), OLD.fullmatch(line)
    found = new or old
    if found is None:
        return Verdict("comment" if line[0] in "#;" else "grammar: not a hand, score or comment line")
    holes, *board = found["cards"].split("/")
    names, payoffs = found["names"].split("|"), [float(number) for number in found["payoffs"].split("|")]
    dealt = [split(cards) for cards in holes.split("|")]
    if not len(dealt) == len(names) == len(payoffs) == game.players:
        return Verdict("players: another number of players than the game's")
    if any(len(cards) != game.hole for cards in dealt):
        return Verdict("cards: wrong number of hole cards")
    streets = [split(cards) for cards in board]
    seen = [card for cards in dealt + streets for card in cards]
    if not set(seen) <= game.deck:
        return Verdict("cards: not in the game's deck")
    if len(set(seen)) < len(seen):
        return Verdict("cards: one occurs twice")
    hand = Hand(game)
    wrong = play(hand, found["betting"], old=new is None)
    if wrong:
        return Verdict(wrong)
    if [len(cards) for cards in streets] != game.board[1 : hand.street + 1]:
        return Verdict("cards: the board does not fit the street reached")
    return Verdict(paid(hand, dealt, streets, payoffs), hand, names, dealt, streets, payoffs)


def play(hand: Hand, betting: str, old: bool) -> str:
    """Play the betting; what is wrong with it, if anything."""
    game, tokens = hand.game, re.findall("[bfcr][0-9]*|/", betting)
    posted = [int(token[1:]) for token in tokens if token[0] == "b"]
    if posted and sorted(posted) != sorted(blind for blind in game.blinds if blind):
        return "betting: blinds are not the game's"
    street = 0
    for token in tokens[len(posted) :]:
        if token == "/":
            street += 1
            if street > hand.street:
                return "betting: streets are not separated where the rules end them"
            continue
        if hand.over:
            return "betting: goes on after the end of the hand"
        if street < hand.street:
            return "betting: streets are not separated where the rules end them"
        letter, size = token[0], token[1:]
        player = hand.turns[0]
        if letter == "r" and ((game.nolimit and not size) or (size and not game.nolimit and not old)):
            return "betting: a raise with a size in limit or without one in no-limit"
        total = int(size or 0)
        if letter == "f" and hand.to_call(player) == 0:
            return "betting: an illegal action"
        if letter == "r":
            able = hand.raise_range(player)
            if able is None or (game.nolimit and not able[0] <= total <= able[1]):
                return "betting: an illegal action"
            total = total if game.nolimit else able[0]
        if len(hand.rows) == 256:
            return "betting: more than 256 actions"
        hand.act(letter, total)
        if size and int(size) != hand.spent[player]:
            return "betting: the total after an action is wrong"
    if not hand.over:
        return "betting: the hand is not finished"
    return "" if street == hand.street else "betting: streets are not separated where the rules end them"


def paid(hand: Hand, holes: list[list[str]], board: list[list[str]], payoffs: list[float]) -> str:
    """Whether the payoffs are those of betting and cards, or the expectation of an early all-in."""
    game, wrong = hand.game, "payoffs: not what betting and cards give"
    showdown = game.players - len(hand.folded) > 1
    opened = [card for cards in board for card in cards]

    def due(common: list[str]) -> list[float]:
        return hand.payoffs([value(cards + common) if showdown else (0,) for cards in holes])

    if all(abs(a - b) <= 1e-5 for a, b in zip(payoffs, due(opened), strict=True)):
        return "hand"
    last = STREETS.index(hand.rows[-1]["street"])
    pot = sum(hand.spent)
    possible = abs(sum(payoffs)) <= 0.01 and all(
        abs(paid + spent) <= 1e-5 if p in hand.folded else -spent - 1e-5 <= paid <= pot - spent + 1e-5
        for p, (paid, spent) in enumerate(zip(payoffs, hand.spent, strict=True))
    )
    if not showdown or last == hand.street or not possible:
        return wrong
    known = opened[: sum(game.board[: last + 1])]
    missing = sum(game.board) - len(known)
    if missing > 2:
        return "undecided"  # two million boards are too slow here
    left = sorted(game.deck - {card for cards in holes for card in cards} - set(known))
    boards = [due(known + list(more)) for more in combinations(left, missing)]
    mean = [sum(column) / len(boards) for column in zip(*boards, strict=True)]
    return "expected" if all(abs(a - b) <= 0.5 for a, b in zip(payoffs, mean, strict=True)) else wrong


def rows(found: Verdict) -> list[dict[str, Any]]:
    """The decisions of a hand as the dataset has them, apart from what is derived from cards alone."""
    assert found.hand is not None
    result = []
    for row in found.hand.rows:
        position, names = row["position"], found.names
        seen = [card for cards in found.board[: STREETS.index(row["street"])] for card in cards]
        cards = found.holes[position] + ["-"] * (2 - len(found.holes[position])) + seen + ["-"] * (5 - len(seen))
        places = ("hole1", "hole2", "board1", "board2", "board3", "board4", "board5")
        others = [names[(position + step) % len(names)] for step in range(1, len(names))]
        about = {"agent": names[position], "opponents": "|".join(others), "result": found.payoffs[position]}
        result.append({**row, **about, **dict(zip(places, cards, strict=True))})
    return result
