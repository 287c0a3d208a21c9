"""Datasets written as logs again: hand histories (PHH) or lines of ACPC logs.

The table of hands holds all that is needed: betting, cards and results in the letters of ACPC logs, and the stacks,
blinds and antes of hand histories. A hand that the other form has no place for is left out and counted by its reason.

PHH goes to one file, a table per hand. ACPC lines go to one log per game, each after a header that names the game; the
definition of a game that does not come with this package is written beside its log, for `ingest --game`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.dataset.manifest import read_manifest
from pipeline.dataset.opening import hand_batches, translate_parquet_errors
from pipeline.formats.acpc import Hand, Header
from pipeline.formats.histories.convert import from_acpc, game_of, rebuild, to_acpc
from pipeline.formats.histories.history import History
from pipeline.formats.histories.notation import history_text
from pipeline.poker.game import Game, actions, game_names, parse_game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import refuse_folder, replacing

T = TypeVar("T")
READ_HANDS = 4096
"""hands read at a time"""
_COLUMNS = (
    *("hand", "game", "names", "betting", "cards", "payoffs", "expected", "stakes", "stacks", "blinds", "antes"),
    *("decimals", "venue", "table", "number", "shown", "file"),
)


@dataclass
class Exported:
    """The number of hands written, the files, and the numbers of hands left out by reason."""

    hands: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """Return the JSON object that the command prints."""
        return asdict(self)

    def leave_out(self, reason: str) -> None:
        """Count a hand that is left out."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of hands, in the order of the dataset's files."""
    for batch in hand_batches(folder, _COLUMNS, READ_HANDS):
        yield from batch.to_pylist()


def _numbers(text: str) -> tuple[int | None, ...]:
    """Return the amounts between bars; None for `inf`."""
    return tuple(None if word == "inf" else int(word) for word in text.split("|"))


def _history(row: dict[str, Any]) -> History:
    """Return the history that a row of the table of hands was made from: every action and amount."""
    variant, *bets = row["stakes"].removesuffix(" trimmed").split(" ")
    holes, *board = row["cards"].split("/")
    antes, blinds = (tuple(x or 0 for x in _numbers(row[name])) for name in ("antes", "blinds"))
    start = History(
        variant=variant,
        antes=antes,
        blinds=blinds,
        stacks=_numbers(row["stacks"]),
        actions=(),
        min_bet=int(bets[0]) if variant == "NT" else 0,
        small_bet=int(bets[0]) if variant == "FT" else 0,
        big_bet=int(bets[1]) if variant == "FT" else 0,
        trimmed=row["stakes"].endswith(" trimmed"),
        players=tuple(row["names"].split("|")),
        venue=row["venue"],
        table=row["table"],
        hand=row["number"],
        decimals=row["decimals"],
    )
    history = rebuild(start, tuple(holes.split("|")), "".join(board), row["betting"], row["shown"])
    results = [float(word) for word in row["payoffs"].split("|")] if row["payoffs"] else []
    stacks = [stack for stack in history.stacks if stack is not None]
    if results and len(stacks) == len(results) and all(result.is_integer() for result in results):
        finishing = tuple(int(stack + result) for stack, result in zip(stacks, results, strict=True))
        history = replace(history, finishing_stacks=finishing)
    return history


def _hand(row: dict[str, Any], game: Game) -> Hand:
    """Return the hand of an ACPC log, its betting as the newest logs write it."""
    state = game.start()
    for action, size in actions(row["betting"]):
        state = state.apply(action, size)
    holes, *board = row["cards"].split("/")
    payoffs = tuple(float(word) for word in row["payoffs"].split("|"))
    return Hand(
        row["hand"], state.betting, tuple(holes.split("|")), tuple(board), payoffs, tuple(row["names"].split("|"))
    )


def _converted(folder: Path, convert: Callable[[dict[str, Any]], T]) -> Iterator[T | PipelineError]:
    """Yield the hands of a dataset in another form, or why one cannot be converted."""
    for row in _rows(folder):
        try:
            with translate_parquet_errors(folder / "hands"):
                hand = convert(row)
        except PipelineError as error:
            yield error
        else:
            yield hand


def _histories(folder: Path) -> Iterator[History | PipelineError]:
    """Yield the hands of a dataset as histories, or why one cannot be."""
    games = _games(folder)

    def convert(row: dict[str, Any]) -> History:
        if row["stakes"] != "-":
            return _history(row)
        game = games[row["game"]]
        return from_acpc(_hand(row, game), game, table=Path(row["file"]).name)

    return _converted(folder, convert)


def _acpc_hands(folder: Path) -> Iterator[tuple[Hand, Game] | PipelineError]:
    """Yield the hands of a dataset as those of ACPC logs with their games, or why one cannot be."""
    games = _games(folder)
    made: dict[str, Game] = {}

    def convert(row: dict[str, Any]) -> tuple[Hand, Game]:
        if row["stakes"] == "-":
            game = games[row["game"]]
            return _hand(row, game), game
        history = _history(row)
        game = game_of(history)
        game = made.setdefault(game.text, replace(game, name=f"{game.name}.{len(made)}"))
        numbered = history.hand.isascii() and history.hand.isdigit() and len(history.hand) < 10
        return to_acpc(history, game, None if numbered else row["hand"]), game

    return _converted(folder, convert)


def _games(folder: Path) -> dict[str, Game]:
    """Return the games of a dataset by name."""
    return {name: parse_game(text, name) for name, text in read_manifest(folder).games.items()}


def export_hands(folder: Path | str, form: str, out: Path | str) -> Exported:
    """Write the hands of a dataset as logs.

    Parameters: the dataset; `phh` or `acpc`; the file to write (of ACPC logs of several games, the first of them: the
    others get a number before their extension).

    Returns how many hands were written, to which files, and how many were left out and why.
    """
    folder, out = Path(folder), Path(out)
    refuse_folder(out)
    if form not in ("phh", "acpc"):
        raise PipelineError(f"hands are exported as phh or acpc, not {form!r}")
    exported = Exported()
    out.parent.mkdir(parents=True, exist_ok=True)
    if form == "phh":
        with replacing(out) as partial, partial.open("w", encoding="utf-8") as file:
            for history in _histories(folder):
                if isinstance(history, PipelineError):
                    exported.leave_out(str(history))
                    continue
                exported.hands += 1
                file.write(f"[{exported.hands}]\n{history_text(history)}\n")
        exported.files.append(str(out))
        return exported
    _export_acpc(folder, out, exported)
    return exported


def _export_acpc(folder: Path, out: Path, exported: Exported) -> None:
    """Write ACPC lines, one log per game."""
    logs: dict[str, Any] = {}
    names: dict[str, frozenset[str]] = {}
    with ExitStack() as stack:
        for item in _acpc_hands(folder):
            if isinstance(item, PipelineError):
                exported.leave_out(str(item))
                continue
            hand, game = item
            if game.name not in logs:
                path = out if not logs else out.with_suffix(f".{len(logs)}{out.suffix}")
                logs[game.name] = stack.enter_context(stack.enter_context(replacing(path)).open("w", encoding="utf-8"))
                exported.files.append(str(path))
                if game.name not in game_names():
                    path.with_suffix(".game").write_text(game.text, encoding="utf-8")
                    exported.files.append(str(path.with_suffix(".game")))
            if names.get(game.name) != frozenset(hand.names):
                names[game.name] = frozenset(hand.names)
                # how many hands follow is not known yet: a header that announces none is never cut short
                logs[game.name].write(f"{Header(out.stem, f'{game.name}.game', 0, 0)}\n")
            logs[game.name].write(f"{hand}\n")
            exported.hands += 1
