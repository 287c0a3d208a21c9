"""Pattern files: templates of the features that a row fires.

Two forms are read. Wapiti's, so that an existing file works: a line is a template, `u` (features of a row), `b`
(features of a row and the previous action) or `*` (both), with `%x[offset,column]` for the fifteen columns of the
thesis's text rows (street, position, the betting of four streets, two hole ranks, five board ranks, suit pattern,
name).

The readable form has a template per line, columns joined by `*`, and sections that set strengths for what follows:

    betting * high * low              # one feature per combination of values
    betting * ehs(bins=20)            # a number cut into 20 bins of equal width,
    ehs(turn, quantiles=50)           # or into 50 of equally many training rows; here the turn's, from the turn on
    betting * cluster(100, 1000)      # two templates: cluster numbers at two sizes
    word * river_quantiles(5)         # the distribution of strength at the river, each of its quantiles in 5 bins
    [rho2 = 0, rho1 = 0]              # no penalty from here on: frequencies of these features match the data
    betting
    [streets = turn river, minimum = 5]    # only on these streets, and only features that 5 training rows fire

`#` starts a comment. The columns are those of `pipeline.features.columns`; `before` is the street before the row's.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import NamedTuple

from pipeline.dataset.decisions import STREETS
from pipeline.features.columns import BEFORE, COLUMNS, CURRENT, OWN_CARDS, WORDS, Column
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError, nearest


class Cell(NamedTuple):
    """A column of text rows by its number, in the row itself or one before or after it in its sequence."""

    offset: int
    number: int

    def __str__(self) -> str:
        return f"%x[{self.offset},{self.number}]"


class Term(NamedTuple):
    """One value of a template: a column, possibly cut into bins."""

    column: Column | Cell
    bins: int = 0
    quantile: bool = False

    def __str__(self) -> str:
        """Return the term as bundles store it and as its features are hashed."""
        return self._format(str(self.column))

    @property
    def written(self) -> str:
        """Return the term as patterns write it."""
        return self._format(self.column.written if isinstance(self.column, Column) else str(self.column))

    def _format(self, column: str) -> str:
        if not self.bins:
            return column
        cut = f"{'quantiles' if self.quantile else 'bins'}={self.bins}"
        return f"{column[:-1]}, {cut})" if column.endswith(")") else f"{column}({cut})"


@dataclass(frozen=True)
class Template:
    """A kind of feature: a row fires the one given by the values of its terms."""

    name: str
    terms: tuple[Term, ...]
    rho1: float | None = None
    rho2: float | None = None
    minimum: int = 1
    streets: tuple[int, ...] = ()
    """the streets it is for; none named: all"""
    unigram: bool = True
    bigram: bool = False

    @property
    def seed(self) -> int:
        """Return 64 bits that distinguish this template's features from those of others."""
        return int.from_bytes(hashlib.blake2b(self.name.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, repr=False)
class Pattern:
    """The templates of a file."""

    templates: tuple[Template, ...]
    source: str

    def __repr__(self) -> str:
        return f"<Pattern of {len(self.templates)} templates>"

    def columns(self, streets: Collection[int] = ()) -> list[Column]:
        """Return the columns of decision rows that the templates for these streets read; those of all by default."""
        chosen = [t for t in self.templates if not streets or not t.streets or set(t.streets) & set(streets)]
        columns = (term.column for template in chosen for term in template.terms)
        return [column for column in columns if isinstance(column, Column)]

    @property
    def reads_cards(self) -> bool:
        """Return whether a template reads the player's own cards, which not all rows of hand histories have."""
        return any(column.name in OWN_CARDS for column in self.columns())

    def on(self, streets: tuple[int, ...]) -> Pattern:
        """Return the pattern of these streets only; a template that is for all of them need not check the street."""
        chosen = [t for t in self.templates if not t.streets or set(t.streets) & set(streets)]
        if not chosen:
            raise PipelineError(f"the pattern has no template for {', '.join(STREETS[street] for street in streets)}")
        free = [replace(t, streets=()) if set(streets) <= set(t.streets) else t for t in chosen]
        return replace(self, templates=tuple(free))

    def with_previous(self) -> Pattern:
        """Join bigram templates with the previous action, for models that know it; add it alone if there are none."""
        joined = [
            replace(t, name=f"{t.name} * previous", terms=(*t.terms, PREVIOUS)) for t in self.templates if t.bigram
        ]
        alone = [] if joined else [Template("previous", (PREVIOUS,))]
        return replace(self, templates=(*(t for t in self.templates if t.unigram), *joined, *alone))

    def of_rows(self) -> Pattern:
        """Return the pattern for rows that stand alone, without templates that are for the previous action only."""
        return replace(self, templates=tuple(t for t in self.templates if t.unigram))


PREVIOUS = Term(Column("previous"))
THESIS_COLUMNS = (
    Column("street"),
    Column("position"),
    *(Column("word", street=street) for street in range(4)),
    Column("high"),
    Column("low"),
    *(Column("rank", argument=rank) for rank in range(1, 6)),
    Column("pattern"),
    Column("name"),
)
"""the columns of the thesis's text rows"""


def pattern_names() -> list[str]:
    """Return the names of the bundled patterns."""
    folder = files("pipeline.features").joinpath("resources", "patterns")
    return sorted(entry.name.removesuffix(".pattern") for entry in folder.iterdir() if entry.name.endswith(".pattern"))


def pattern_name(source: str) -> str:
    """Return the name of the bundled pattern with this text, else `its own`."""
    return _bundled_texts().get(_with_names(source), "its own")


@cache
def _bundled_texts() -> dict[str, str]:
    """Return the name of each bundled pattern by its text."""
    folder = files("pipeline.features").joinpath("resources", "patterns")
    return {
        _with_names(folder.joinpath(f"{name}.pattern").read_text(encoding="utf-8")): name for name in pattern_names()
    }


def _with_names(source: str) -> str:
    """Return a pattern's text with the names of columns in place of the words for them: older bundles have names."""
    return re.sub(r"\w+", lambda match: WORDS.get(match[0], match[0]), source)


def find_pattern(name: str | Path) -> Pattern:
    """Read a bundled pattern by name, else the file at a path."""
    if str(name) in pattern_names():
        text = (
            files("pipeline.features").joinpath("resources", "patterns", f"{name}.pattern").read_text(encoding="utf-8")
        )
        return parse_pattern(text, str(name))
    path = Path(name)
    if not path.is_file():
        raise PipelineError(
            f"no pattern is called {str(name)!r}{nearest(str(name), pattern_names())}, and there is no such file"
        )
    try:
        return parse_pattern(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        raise PipelineError(f"{path} is not a pattern: it is not text in UTF-8") from None


def pattern_for(pattern: Pattern, game: Game) -> Pattern:
    """Return the pattern to train by in a game: the default one is replaced by the one made for such games.

    `ranks` where cards have no strength as in hold'em; `tables` for more than two players; for two players `nolimit` in
    no-limit games and the default one itself in limit hold'em.

    >>> from pipeline.poker.game import builtin
    >>> pattern_for(find_pattern("default"), builtin("leduc.limit.2p")) == find_pattern("ranks")
    True
    """
    return find_pattern(default_name(game)) if is_default(pattern) else pattern


def default_name(game: Game) -> str:
    """Return the name of the bundled pattern that was made for games like this one."""
    if not game.is_holdem:
        return "ranks"
    if game.players > 2:
        return "tables"
    return "nolimit" if game.nolimit else "default"


def is_default(pattern: Pattern) -> bool:
    """Return whether a pattern is the default one, which leaves the choice to the game."""
    return pattern.templates == find_pattern("default").templates


def parse_pattern(source: str, where: str = "pattern") -> Pattern:
    """Parse a pattern in either form.

    >>> [t.name for t in parse_pattern("betting * cluster(10, 20)  # two").templates]
    ['betting * cluster(10)', 'betting * cluster(20)']
    """
    lines = [(number, line.strip()) for number, line in enumerate(source.splitlines(), start=1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    wapiti = any(_is_wapiti(line) for _, line in lines)
    templates = list(_wapiti(lines, where) if wapiti else _readable(lines, where))
    if not templates:
        raise PipelineError(f"{where} has no template: write one per line, such as `betting * high * low`")
    seen: dict[tuple[str, tuple[int, ...]], int] = {}
    for i, template in enumerate(templates):
        if seen.setdefault((template.name, template.streets), i) != i:
            raise PipelineError(f"{where} has the template {template.name!r} twice: leave one out")
    return Pattern(tuple(templates), source)


def _is_wapiti(line: str) -> bool:
    """Return whether a line is a template of Wapiti's form; a % in the comment of a readable one makes none.

    >>> [_is_wapiti(line) for line in ("u1:%x[0,0]", "b", "u:a#%x[0,2]", "betting  # 5% of rows")]
    [True, True, True, False]
    """
    return "%" in line.split("#")[0] or re.match(r"[ub*]\d*(:?$|:\S*%)", line, re.IGNORECASE) is not None


def _wapiti(lines: list[tuple[int, str]], where: str) -> Iterator[Template]:
    for number, line in lines:
        kind = line[0].lower()
        if kind not in "ub*":
            raise PipelineError(f"{where}:{number}: {line!r} does not start with u, b or *")
        cells = re.findall(r"%x\[\s*(-?\d+)\s*,\s*(\d+)\s*\]", line)
        if line.count("%") != len(cells):
            raise PipelineError(f"{where}:{number}: in {line!r} only %x[offset,column] is understood after a %")
        terms = tuple(Term(Cell(int(offset), int(column))) for offset, column in cells)
        yield Template(line, terms, unigram=kind in "u*", bigram=kind in "b*")


def _readable(lines: list[tuple[int, str]], where: str) -> Iterator[Template]:
    settings = Template("", ())
    for number, line in lines:
        line = line.split("#")[0].strip()
        try:
            if line.startswith("["):
                settings = _section(line)
                continue
            tree = ast.parse(line, mode="eval").body
            for terms in product(*_factors(tree)):
                if settings.streets != (3,) and any(
                    isinstance(term.column, Column) and term.column.name == "ochs" for term in terms
                ):
                    raise PipelineError(
                        "ochs is a column of the river: put it under [streets = river] "
                        "(other streets: strength.equity.group_strengths)"
                    )
                yield replace(settings, name=" * ".join(map(str, terms)), terms=terms)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
            raise PipelineError(f"{where}:{number}: {line[:80]!r} is not columns joined by * nor a [section]") from None
        except PipelineError as error:
            raise PipelineError(f"{where}:{number}: {error}") from None


def _section(line: str) -> Template:
    """Return an empty template with the settings of a section."""
    template = Template("", ())
    inside = line.removeprefix("[").removesuffix("]")
    for part in filter(None, (part.strip() for part in inside.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            if name == "streets":
                template = replace(template, streets=tuple(_street(street) for street in value.split()))
            elif name == "minimum":
                template = replace(template, minimum=int(value))
            elif name == "rho1":
                template = replace(template, rho1=_strength(value))
            elif name == "rho2":
                template = replace(template, rho2=_strength(value))
            else:
                raise PipelineError(f"{name!r} is no setting{nearest(name, ['rho1', 'rho2', 'minimum', 'streets'])}")
        except ValueError:
            raise PipelineError(f"{name} = {value!r} is not a number of zero or more") from None
    return template


def _strength(value: str) -> float:
    strength = float(value)
    if not 0 <= strength < float("inf"):
        raise ValueError
    return strength


def _street(name: str) -> int:
    if name not in STREETS:
        raise PipelineError(f"{name!r} is not a street{nearest(name, STREETS)}")
    return STREETS.index(name)


def _factors(tree: ast.expr) -> list[list[Term]]:
    """Return the choices for each term of an expression."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        return _factors(tree.left) + _factors(tree.right)
    if isinstance(tree, ast.Name):
        return [_terms(tree.id, [], {})]
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        options = {word.arg or "": word.value for word in tree.keywords}
        return [_terms(tree.func.id, tree.args, options)]
    raise PipelineError(f"{ast.unparse(tree)!r} is not a column: columns are joined by * only")


def _terms(name: str, arguments: list[ast.expr], options: dict[str, ast.expr]) -> list[Term]:
    """Return the terms that a column with its arguments stands for: one, or one per number given."""
    if name not in WORDS and name not in COLUMNS:
        raise PipelineError(f"{name!r} is not a column{nearest(name, WORDS)}")
    word, name = name, WORDS.get(name, name)
    kind = COLUMNS[name]
    street = CURRENT
    numbers: list[int] = []
    for argument in arguments:
        if isinstance(argument, ast.Name) and kind.street:
            street = BEFORE if argument.id == "before" else _street(argument.id)
        elif isinstance(argument, ast.Constant) and type(argument.value) is int and kind.argument:
            numbers.append(argument.value)
        else:
            raise PipelineError(f"{word} does not take {ast.unparse(argument)!r}")
    counts = {key: _number(key, value) for key, value in options.items()}
    taken = {"bins", "quantiles"} if kind.numeric else ({"seed"} if name == "cluster" else set[str]())
    for key in counts.keys() - taken:
        raise PipelineError(f"{word} does not take {key!r}{nearest(key, taken)}")
    if len(counts) > 1:
        raise PipelineError(f"{word} takes either bins or quantiles")
    if kind.argument:
        low, high = kind.argument
        if not numbers or not all(low <= value <= high for value in numbers):
            raise PipelineError(f"{word} needs a number from {low} to {high} in parentheses, such as {word}({low})")
    bins = counts.get("bins", counts.get("quantiles", 0))
    columns = [Column(name, street, number, counts.get("seed", 0)) for number in numbers or [0]]
    return [Term(column, bins, "quantiles" in counts) for column in columns]


def _number(key: str, value: ast.expr) -> int:
    minimum = 0 if key == "seed" else 2
    if not isinstance(value, ast.Constant) or type(value.value) is not int or not minimum <= value.value <= 65535:
        raise PipelineError(f"{key} = {ast.unparse(value)} is not a whole number from {minimum} to 65535")
    return value.value
