"""Who plays here? The posterior over named agents of each player of logs, hand by hand.

In go logs (or a dataset that `ingest` wrote) and agents: copies of the players in question, or agents that come with
the package. Out comes, for each player name in the logs, how likely each of the agents is to be the one who plays under
it: by Bayes' rule with the same prior for all of them, from the probability of the player's actions,

    P(actions | agent) = product over hands of  mean over holdings h of  product over decisions of p(action | o, h)

Where a player's cards are known, h is the one holding it had; elsewhere the unknown cards are summed out over all that
the board and the cards seen of others leave possible, each equally likely. So what the others did is not taken to
say anything about the cards that they hold and the player does not. A spectator sees only the cards of a showdown.
Raises count by their class, not by their amount. Hands in which the player had nothing to decide are not counted.

Each probability p is smoothed: `SMOOTHING` of it is uniform over the legal actions. The posterior is calibrated if the
agents listed are the only ones who may be playing, and hands are independent given who plays: a player who learns from
hand to hand breaks it, and a copy that is not exact makes the posterior too sure of itself. The log-likelihood per hand
says how well each agent explains the play; a player who is none of them gets a posterior all the same.

A copy of these very logs explains them better than it explains others: how many of them each agent was trained on is
counted, and rates of naming are refused then.

Logs are ingested into a temporary dataset and read part by part, so memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.agents.guests import Program
from pipeline.agents.names import bundle_options, comes_with_package, is_bundle, plain_name, resolve
from pipeline.agents.protocol import Agent
from pipeline.agents.ranges import holdings
from pipeline.dataset.decisions import fill_hole_cards
from pipeline.dataset.load import Decisions, load_decisions
from pipeline.dataset.manifest import Manifest, Part, read_manifest
from pipeline.dataset.opening import list_agents, read_columns
from pipeline.ingestion.run import opened_dataset
from pipeline.models.bundle import load_bundle
from pipeline.models.trained_on import check_trained_on
from pipeline.poker.cards import NO_CARD, parse_cards, ranking
from pipeline.poker.game import Game, parse_game
from pipeline.poker.rules import FOLD
from pipeline.runtime.array_types import Array, Bools, Floats, Ints
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.progress import Progress, no_progress
from pipeline.solving.strategy import is_strategy

SMOOTHING = 0.05
"""share of each probability that is uniform over the legal actions: copies call actions impossible that their source
takes once in a while, and one such decision must not outweigh a thousand others: it costs at most ln 60 = 4 nats"""
STEPS = (1, 10, 100, 1_000)
"""numbers of hands after which the posterior is reported"""
ROWS_AT_ONCE = 1 << 18
"""decisions, one for each holding, that an agent is asked about together"""


@dataclass(frozen=True)
class Identification:
    """How likely each agent is to be one player of the logs."""

    player: str
    hands: int
    """with at least one decision of the player"""
    summed_out: int
    """hands among them in which its cards were unknown"""
    log_likelihood: dict[str, float]
    """of all its actions, in nats, by agent"""
    after: dict[int, dict[str, float]] = field(default_factory=dict)
    """the posterior after the first hands, by their number"""
    truth: str | None = None
    """the agent that it is known to be, where that was asked for and its name says so"""
    rates: dict[int, float] = field(default_factory=dict)
    """how often this agent is named after a number of its hands, drawn at random (`naming_rate`)"""
    overlap: dict[str, int | None] = field(default_factory=dict)
    """by agent, how many of the logs it was trained on; None where that is unknown"""

    @property
    def posterior(self) -> dict[str, float]:
        """Return the probability of each agent after all hands."""
        names = list(self.log_likelihood)
        return dict(zip(names, posterior_of(np.array(list(self.log_likelihood.values()))).tolist(), strict=True))

    @property
    def likeliest(self) -> str:
        """Return the agent with the highest posterior."""
        return max(self.log_likelihood, key=self.log_likelihood.__getitem__)

    def json(self) -> dict[str, Any]:
        """Return the object that `identify --json` prints."""
        return {
            "player": self.player,
            "hands": self.hands,
            "summed_out": self.summed_out,
            "likeliest": self.likeliest,
            "posterior": self.posterior,
            "log_likelihood_per_hand": {name: nats / self.hands for name, nats in self.log_likelihood.items()},
            "after": [{"hands": hands, "posterior": posterior} for hands, posterior in self.after.items()],
            "truth": self.truth,
            "naming_rates": [{"hands": hands, "rate": rate} for hands, rate in self.rates.items()],
            "overlap": self.overlap,
        }

    def row(self) -> dict[str, Any]:
        """Return the player, the likeliest agent and the posterior of each agent as flat cells."""
        names = ("player", "hands", "summed_out", "likeliest", "truth", "posterior")
        return {name: getattr(self, name) for name in names}


class HandLikelihoods(NamedTuple):
    """Log-likelihoods of a player's hands in the order of the logs."""

    player: str
    nats: Floats
    """(hands, agents)"""
    summed_out: int


def posterior_of(log_likelihood: Floats) -> Floats:
    """Return the posterior (..., agents) of log-likelihoods with the same prior for all agents.

    >>> posterior_of(np.log([[1.0, 3.0]])).round(2).tolist()
    [[0.25, 0.75]]
    """
    shifted = np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def identify_players(
    logs: Sequence[str | Path],
    among: Sequence[str | Agent],
    *,
    players: Sequence[str] = (),
    spectator: bool = False,
    check: bool = False,
    allow_overlap: bool = False,
    game: str | None = None,
    trusted: bool = False,
    progress: Progress = no_progress,
) -> list[Identification]:
    """Return the posterior over agents of each player of logs.

    Parameters
    ----------
    logs: files, folders, patterns, URLs, archives, or one dataset that `ingest` wrote.
    among: the agents, as texts or objects.
    players: whose posterior; everybody's by default.
    spectator: use only the cards that somebody who watches the table sees.
    check: count how often players whose name says which agent they are would be named after some of their hands; this
        keeps some bytes of every hand in memory.
    allow_overlap: count that although an agent was trained on these logs.
    game: a game file or the name of a game, for all logs.
    trusted: whether a person typed the agents' names (see `agents.resolve`).

    Returns
    -------
    One `Identification` for each player, the most hands first.
    """
    tallies: dict[str, _Tally] = {}
    truths = _truths(among) if check else {}
    with _likelihoods(logs, among, players, spectator, game, trusted, progress) as (names, overlap, parts):
        for name, count in overlap.items():
            if count and check and not allow_overlap:
                raise PipelineError(
                    f"{name} was trained on {count:,} of these logs, so that the rates of --check are too high: name"
                    " other logs, or add --allow-overlap"
                )
        for part in parts:
            tallies.setdefault(part.player, _Tally(np.zeros(len(names)))).add(part, part.player in truths)
    if not tallies:
        raise PipelineError(f"no hands with decisions of {' or '.join(players) or 'anybody'} in these logs")
    results = [
        Identification(
            player,
            tally.hands,
            tally.summed_out,
            dict(zip(names, tally.total.tolist(), strict=True)),
            {step: dict(zip(names, shares.tolist(), strict=True)) for step, shares in tally.after.items()},
            names[truths[player]] if player in truths else None,
            tally.rates(truths[player]) if player in truths else {},
            overlap,
        )
        for player, tally in tallies.items()
    ]
    return sorted(results, key=lambda result: (-result.hands, result.player))


@dataclass
class _Tally:
    """Sums over the parts of the logs read so far, of one player."""

    total: Floats
    hands: int = 0
    summed_out: int = 0
    after: dict[int, Floats] = field(default_factory=dict)
    pieces: list[Floats] = field(default_factory=list)

    def add(self, part: HandLikelihoods, remember: bool) -> None:
        """Add the hands of a part."""
        running = self.total + part.nats.cumsum(axis=0)
        for step in STEPS:
            if self.hands < step <= self.hands + len(part.nats):
                self.after[step] = posterior_of(running[step - self.hands - 1])
        self.total = running[-1]
        self.hands += len(part.nats)
        self.summed_out += part.summed_out
        if remember:
            self.pieces.append(part.nats)

    def rates(self, truth: int) -> dict[int, float]:
        """Return how often the right agent is named, by number of hands."""
        nats = np.concatenate(self.pieces)
        rates = {step: naming_rate(nats, truth, step) for step in STEPS}
        return {step: rate for step, rate in rates.items() if rate is not None}


def _truths(among: Sequence[str | Agent]) -> dict[str, int]:
    """Return for each name in logs the number of the agent that plays under it: a bundle goes by whom it imitates."""
    truths: dict[str, int] = {}
    for number, agent in enumerate(among):
        if not isinstance(agent, str):
            name = agent.name
        elif is_bundle(agent) and not is_strategy(bundle_options(agent)[0]):
            imitated = load_bundle(bundle_options(agent)[0]).agents
            name = imitated[0] if len(imitated) == 1 else ""
        else:
            name = plain_name(agent)
        if name and truths.setdefault(name, number) != number:
            raise PipelineError(f"{name} is the name of two agents: leave out one of them, or --check")
    return truths


def hand_likelihoods(
    logs: Sequence[str | Path], among: Sequence[str | Agent], *, players: Sequence[str] = (), spectator: bool = False
) -> dict[str, Floats]:
    """Return ln P(hand | agent) of every hand by player, (hands, agents), in the order of the logs."""
    pieces: dict[str, list[Floats]] = {}
    with _likelihoods(logs, among, players, spectator, None, False, no_progress) as (_, _, parts):
        for part in parts:
            pieces.setdefault(part.player, []).append(part.nats)
    return {player: np.concatenate(parts_of_player) for player, parts_of_player in pieces.items()}


def naming_rate(nats: Floats, truth: int, hands: int, *, tests: int = 200, seed: int = 0) -> float | None:
    """Return how often the likeliest agent is the right one after `hands` of a player's hands, drawn at random.

    Parameters: `nats` (hands, agents) as `hand_likelihoods` gives them, `truth` the number of the agent who plays.
    Every test draws its hands without replacement; equally likely agents share. None where there are too few hands.

    >>> naming_rate(np.log([[0.9, 0.1], [0.2, 0.8]]), truth=0, hands=2)
    1.0
    """
    if hands > len(nats):
        return None
    random = np.random.default_rng(seed)
    right = 0.0
    for _ in range(tests):
        total = nats[random.choice(len(nats), hands, replace=False)].sum(axis=0)
        likeliest = total >= total.max() - 1e-12
        right += float(likeliest[truth]) / int(likeliest.sum())
    return right / tests


@contextmanager
def _likelihoods(
    logs: Sequence[str | Path],
    among: Sequence[str | Agent],
    players: Sequence[str],
    spectator: bool,
    game: str | None,
    trusted: bool,
    progress: Progress,
) -> Iterator[tuple[list[str], dict[str, int | None], Iterator[HandLikelihoods]]]:
    """Open logs and agents; yield the agents' names, how many of the logs each was trained on, and the likelihoods of
    each player's hands part by part."""
    if len(among) < 2:
        raise PipelineError("name at least two agents to choose among with --among")
    with opened_dataset(logs, game) as folder:
        manifest = read_manifest(folder)
        if not manifest.decisions:
            raise PipelineError(f"{', '.join(map(str, logs))}: no hands with a decision; are these logs?")
        rules = _rules(manifest, folder)
        agents = [resolve(agent, rules, trusted=trusted) if isinstance(agent, str) else agent for agent in among]
        names = [agent if isinstance(agent, str) else agent.name for agent in among]
        _check(agents, names, rules)
        everybody = list_agents(folder)
        for player in players:
            if player not in everybody:
                raise PipelineError(f"no player in these logs is called {player!r}{nearest(player, everybody)}")
        overlap = {name: _overlap(agent, manifest, folder) for name, agent in zip(names, among, strict=True)}
        yield names, overlap, _parts(folder, manifest, rules, agents, set(players), spectator, progress)


def _overlap(agent: str | Agent, manifest: Manifest, folder: Path) -> int | None:
    """Return how many logs of a dataset an agent was trained on, None where that is unknown."""
    if not isinstance(agent, str) or not is_bundle(agent) or is_strategy(bundle_options(agent)[0]):
        return 0 if isinstance(agent, str) and comes_with_package(agent) else None
    records = load_bundle(bundle_options(agent)[0]).trained_on
    return check_trained_on(
        records, agent, manifest, folder, split_remedy="", log_remedy="", all_rows=True, allow_overlap=True
    ).overlap


def _check(agents: Sequence[Agent], names: Sequence[str], game: Game) -> None:
    """Refuse agents that cannot be told apart or asked about these hands."""
    for name in names:
        if names.count(name) > 1:
            raise PipelineError(f"{name} is named twice: each agent once")
    for agent in agents:
        if isinstance(agent, Program):
            raise PipelineError(f"{agent.text} gives no probabilities: only agents that do can be told apart by them")
        if agent.game.labels != game.labels or (agent.game != game and agent.game.players != game.players):
            raise PipelineError(f"{agent.name} plays {agent.game.name}, these hands are of {game.name}")


def _rules(manifest: Manifest, folder: Path) -> Game:
    """Return the game of all hands."""
    games = sorted({str(file.game) for file in manifest.decisions})
    if len(games) != 1:
        raise PipelineError(f"these logs hold {len(games)} games ({', '.join(games)}): give those of one of them")
    if games[0] not in manifest.games:
        raise PipelineError(f"{folder} has hands of a game that its manifest lacks: ingest into a new folder")
    return parse_game(manifest.games[games[0]], games[0])


def _parts(
    folder: Path,
    manifest: Manifest,
    game: Game,
    agents: Sequence[Agent],
    players: set[str],
    spectator: bool,
    progress: Progress,
) -> Iterator[HandLikelihoods]:
    """Yield the likelihoods of the hands of each part of a dataset, player by player."""
    for number, part in enumerate(manifest.parts):
        progress(number, len(manifest.parts))
        files = [file.path for file in part.files if file.street is not None]
        if not files:
            continue
        decisions = load_decisions(folder, game=game.name, files=files)
        if len(decisions) == 0:
            continue
        hands = _PartHands.of(decisions, _shown_cards(folder, part, game), spectator)
        for agent_number in np.unique(decisions.agent[hands.first]).tolist():
            player = decisions.agents[agent_number]
            if players and player not in players:
                continue
            chosen = np.flatnonzero(decisions.agent[hands.first] == agent_number)
            nats = np.stack([np.zeros(len(chosen))] * len(agents), axis=1)
            seen, unseen = ~hands.hidden[chosen], hands.hidden[chosen]
            for column, agent in enumerate(agents):
                nats[seen, column] = hands.known_cards(agent, chosen[seen])
            nats[unseen] = hands.summed_out(agents, chosen[unseen])
            yield HandLikelihoods(player, nats, int(unseen.sum()))
    progress(len(manifest.parts), len(manifest.parts))


class _Cards(NamedTuple):
    """The cards of one hand that its log has."""

    holes: list[Array]
    """by position, empty where not known"""
    board: Array
    showdown: bool
    shown: int
    """of hand histories a bit per position that showed its cards; 0 in ACPC logs"""


def _shown_cards(folder: Path, part: Part, game: Game) -> Mapping[tuple[str, int], _Cards]:
    """Return the cards of each hand of a part by log and line."""
    cards: dict[tuple[str, int], _Cards] = {}
    columns = ["file", "line", "game", "cards", "showdown", "shown"]
    for file in part.files:
        if not file.path.startswith("hands/"):
            continue
        table = read_columns(folder, file, columns)
        for row in table.to_pylist():
            if row["game"] == game.name:
                holes, *board = row["cards"].split("/")
                cards[row["file"], row["line"]] = _Cards(
                    [parse_cards(text) for text in holes.split("|")],
                    parse_cards("".join(board)),
                    row["showdown"],
                    row["shown"],
                )
    return cards


@dataclass(frozen=True)
class _PartHands:
    """The decisions of a part of a dataset, grouped by hand and player."""

    decisions: Decisions
    order: Ints
    """decisions sorted by hand, position and their order in the hand"""
    first: Ints
    """(hands,) the first decision of each hand of a player"""
    begin: Ints
    """(hands + 1,) where in `order` the decisions of each begin"""
    hidden: Bools
    """(hands,) whether the player's own cards must be summed out"""
    seen: list[Array]
    """(hands,) the board and the cards of others that are visible"""

    @classmethod
    def of(cls, decisions: Decisions, cards: Mapping[tuple[str, int], _Cards], spectator: bool) -> _PartHands:
        """Group the decisions and decide which cards are visible."""
        position = decisions.rows["position"].astype(np.int64)
        order = np.lexsort((decisions.k, position, decisions.line, decisions.file))
        places = [values[order] for values in (decisions.file, decisions.line, position)]
        new = np.any([np.diff(place, prepend=-1) != 0 for place in places], axis=0)
        begin = np.append(np.flatnonzero(new), len(order))
        first, last = order[begin[:-1]], order[begin[1:] - 1]
        folded = decisions.action[last] == FOLD
        hidden = ~decisions.known[first]
        hands: list[_Cards] = [
            cards[decisions.files[file], line]
            for file, line in zip(decisions.file[first].tolist(), decisions.line[first].tolist(), strict=True)
        ]
        if spectator:
            visible = np.array([hand.showdown or hand.shown > 0 for hand in hands], bool)
            bits = np.array([hand.shown for hand in hands], np.int64)
            is_shown = (bits >> position[first] & 1 > 0) | ((bits == 0) & ~folded)
            hidden |= ~(visible & is_shown)
        folded_seats = {
            (int(decisions.file[i]), int(decisions.line[i]), int(position[i])) for i in first[folded].tolist()
        }
        seen = []
        for i, hand in zip(first.tolist(), hands, strict=True):
            own, place = int(position[i]), (int(decisions.file[i]), int(decisions.line[i]))
            others = [
                hole
                for seat, hole in enumerate(hand.holes)
                if seat != own and (not spectator or _is_open(hand, seat, (*place, seat) in folded_seats))
            ]
            seen.append(np.concatenate([hand.board, *others]).astype(np.uint8))
        return cls(decisions, order, first, begin, np.asarray(hidden), seen)

    def _rows_of(self, hands: Ints) -> tuple[Ints, Ints]:
        """Return the decisions of some hands, hand by hand, and the number of each one's hand among them."""
        counts = self.begin[hands + 1] - self.begin[hands]
        number = np.repeat(np.arange(len(hands)), counts)
        offset = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.order[self.begin[hands][number] + offset], number

    def known_cards(self, agent: Agent, hands: Ints) -> Floats:
        """Return the log-likelihood of hands whose cards are visible."""
        rows, number = self._rows_of(hands)
        nats = np.zeros(len(rows))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            nats[start : start + ROWS_AT_ONCE] = _log_taken(
                agent, self.decisions.rows.take(part), self.decisions.action[part]
            )
        return np.bincount(number, weights=nats, minlength=len(hands)).astype(np.float64)

    def summed_out(self, agents: Sequence[Agent], hands: Ints) -> Floats:
        """Return the log-likelihoods (hands, agents) of hands whose cards are summed out."""
        nats = np.zeros((len(hands), len(agents)))
        waiting: list[tuple[int, Array, Ints]] = []
        size = 0
        for index, hand in enumerate(hands.tolist()):
            rows = self.order[self.begin[hand] : self.begin[hand + 1]]
            holes = holdings(self.decisions.game, self.seen[hand])
            if len(holes) == 0:
                raise PipelineError("a hand of these logs leaves no hole cards: more of a deck is seen than there is")
            waiting.append((index, holes, rows))
            size += len(holes) * len(rows)
            if size >= ROWS_AT_ONCE:
                self._sum_out(agents, waiting, nats)
                waiting, size = [], 0
        if waiting:
            self._sum_out(agents, waiting, nats)
        return nats

    def _sum_out(self, agents: Sequence[Agent], waiting: list[tuple[int, Array, Ints]], nats: Floats) -> None:
        """Write the log-likelihoods of some hands, each with its possible holdings and its decisions."""
        game = self.decisions.game
        index = np.concatenate([np.repeat(rows, len(holes)) for _, holes, rows in waiting])
        asked = self.decisions.rows.take(index)
        hole = np.full((len(index), 2), NO_CARD, np.uint8)
        hole[:, : game.hole_cards] = np.concatenate([np.tile(holes, (len(rows), 1)) for _, holes, rows in waiting])
        fill_hole_cards(game.rules, hole, ranking(), asked)
        taken = self.decisions.action[index]
        for column, agent in enumerate(agents):
            logs, begin = _log_taken(agent, asked, taken), 0
            for number, holes, rows in waiting:
                end = begin + len(holes) * len(rows)
                by_holding = logs[begin:end].reshape(len(rows), len(holes)).sum(axis=0)
                largest = by_holding.max()
                nats[number, column] = largest + np.log(np.exp(by_holding - largest).mean())
                begin = end


def _is_open(hand: _Cards, seat: int, folded: bool) -> bool:
    """Return whether a spectator sees the cards at a seat."""
    if hand.shown:
        return bool(hand.shown >> seat & 1)
    return hand.showdown and not folded


def _log_taken(agent: Agent, rows: Array, taken: Array) -> Floats:
    """Return the log of the smoothed probability that an agent takes each row's action."""
    mixes = np.asarray(agent.probabilities(rows))
    if mixes.shape != (len(rows), len(agent.game.labels)) or not ((mixes >= 0) & (mixes <= 1 + 1e-6)).all():
        raise PipelineError(f"{agent.name} gives no probability for each row and label ({agent.game.labels})")
    mix = mixes[np.arange(len(rows)), taken]
    return np.log((1.0 - SMOOTHING) * mix + SMOOTHING / np.bitwise_count(rows["legal"]))
