"""Options of ingest: which agents, new names of players, validation rows, game, strength columns.

With the logs they determine a dataset's bytes. They are stored in its manifest (`settings`); a second run into the same
folder must give the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.dataset.manifest import Settings
from pipeline.dataset.split import HELD_OUT, Split
from pipeline.poker.game import Game, find_game, parse_game
from pipeline.runtime.errors import PipelineError


@dataclass(frozen=True)
class Options:
    """Options that decide a dataset's rows."""

    agents: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    validation: tuple[str, ...] = ()
    game: str | None = None
    """the text of a game definition, for all logs"""
    game_name: str | None = None
    strength: bool = True
    hold_out: str = "deals"
    """`deals` or `players`: what one in ten of is held out, unless files are named"""

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Map old names of players to new ones."""
        return dict(self.aliases)

    def rename(self, name: str) -> str:
        """Return the name that a player of the logs has in the dataset."""
        return self.renamed.get(name, name)

    @cached_property
    def rules(self) -> Game | None:
        """Return the game given for all logs."""
        return parse_game(self.game, self.game_name or "game") if self.game else None

    @cached_property
    def split(self) -> Split:
        """Return what is held out."""
        return Split(self.validation, self.hold_out, self.aliases)

    @property
    def settings(self) -> Settings:
        """Return the options as a dataset's manifest has them."""
        return Settings(
            agent=list(self.agents),
            alias=dict(self.aliases),
            validation=list(self.validation),
            game=[self.game_name or "game", self.game] if self.game else None,
            strength=self.strength,
            hold_out=self.hold_out,
        )


def options(
    *,
    agents: Sequence[str] = (),
    aliases: Iterable[str] = (),
    validation: Sequence[str] = (),
    game: str | None = None,
    strength: bool = True,
    hold_out: str = "deals",
) -> Options:
    """Make options from what a user gives.

    Parameters
    ----------
    agents: whose decisions become rows; everybody's if empty.
    aliases: `OLD=NEW` each: the player OLD of the logs is called NEW. Several players may get one name, also when they
        play each other: an agent against itself.
    validation: patterns of file names that are held out, instead of one deal in ten.
    game: the path of a `.game` file or the name of a built-in game, for all logs.
    strength: whether rows get the hand strength columns.
    hold_out: `deals` or `players`: what one in ten of is held out. By players, all rows of a player are on one side: a
        model is scored on people it never saw.

    >>> options(aliases=["Slumbot_2012=slumbot"]).rename("Slumbot_2012")
    'slumbot'
    """
    pairs: dict[str, str] = {}
    for alias in aliases:
        old, equals, new = alias.partition("=")
        if not (old and equals and new):
            raise PipelineError(f"an alias is OLD=NEW, not {alias!r}")
        if not new.isprintable():
            raise PipelineError(f"the new name in the alias {alias!r} has characters that cannot be printed")
        if pairs.setdefault(old, new) != new:
            raise PipelineError(f"two aliases for {old!r}: {pairs[old]!r} and {new!r}")
    for agent in agents:
        if agent in pairs:
            raise PipelineError(f"{agent!r} is renamed to {pairs[agent]!r} by an alias: ask for that")
    if hold_out not in HELD_OUT:
        raise PipelineError(f"deals or players are held out, not {hold_out!r}")
    if validation and hold_out != "deals":
        raise PipelineError("files and players cannot both be held out: leave out --validation or --hold-out")
    rules = None if game is None else find_game(game)
    return Options(
        agents=tuple(sorted(set(agents))),
        aliases=tuple(sorted(pairs.items())),
        validation=tuple(sorted(set(validation))),
        game=rules.text if rules else None,
        game_name=rules.name if rules else None,
        strength=strength,
        hold_out=hold_out,
    )
