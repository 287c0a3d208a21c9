"""The thesis's three selection cycles over a set of trained models, and which measure predicts who wins.

    cycle 1   one model for all later streets against one per street, all else equal: the winner stays
    cycle 2   algorithms against each other, same corpus: the best of each corpus stays, and so does the one that
              wins most from the weak players, if it is another
    cycle 3   everyone left, with each starting-hand chart, all against all

Instant run-off names the agent to send where the strongest opponents count; total bankroll, over the field and the
weak players together, the one to send where exploiting counts.

The question the thesis left open is which error to look at. `rank_correlation` gives, for each measure of `evaluate`
over the entrants of cycles 1 and 2, Spearman's correlation with what they won against the same field; a measure where
lower is better and that predicts strength comes out near -1. Its interval is over bootstrap draws of the deals.

In go trained models as `Entry`s and a function that plays two of them; out come a `Selection` and `Correlation`s.

    python -m tools.selection out/models --data out/rows --hands 20000
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from pipeline.agents.names import bundle_options, default_game, resolve
from pipeline.arena import rankings
from pipeline.arena.rankings import AgentRanking, LineUpSamples, Play, Results
from pipeline.arena.tournament import LineUps
from pipeline.cli._options import (
    Finite,
    adjusted_option,
    cluster_option,
    connected,
    data_option,
    hands_range,
    json_option,
    seed_option,
    truth_options,
)
from pipeline.cli._output import print_json, sentence_text, table_text
from pipeline.cli._progress import bar
from pipeline.cli.main import main
from pipeline.evaluation.evaluation import Scope, algorithm_of, bundles_in, evaluate_models
from pipeline.models.bundle import load_bundle
from pipeline.models.measures import Estimate, Interval, batches_note, percentile
from pipeline.runtime.array_types import Floats
from pipeline.runtime.errors import PipelineError


@dataclass(frozen=True)
class Entry:
    """A model that takes part: its name as an agent, and the corpus and algorithm it was made with."""

    agent: str
    corpus: tuple[str, ...]
    algorithm: str
    joint: bool
    """one model for all later streets"""
    chart: str = "own"
    variant: str = ""
    """whatever else tells models of one corpus and algorithm apart: pattern, options"""

    @property
    def spec(self) -> str:
        """Return the agent's name with its chart as an option."""
        if self.chart == "own":
            return self.agent
        return f"{self.agent}{',' if '=' in self.agent.rpartition(':')[2] else ':'}chart={self.chart}"


class Cycle(NamedTuple):
    """One group of a cycle: its name, the ranking of its members and the names of those that go on to the next."""

    number: int
    group: str
    ranking: AgentRanking
    kept: tuple[str, ...]


class Correlation(NamedTuple):
    """Spearman's correlation between a measure of the models and what they won, and over how many models."""

    measure: str
    models: int
    spearman: Interval


class Selection(NamedTuple):
    """Every cycle in order, and the final ranking by each of the two rules; its first is the agent to send."""

    cycles: list[Cycle]
    runoff: AgentRanking
    bankroll: AgentRanking
    results: Results
    """of the last cycle"""
    field: Results
    """of all entrants against each other and the weak players, before any chart was changed"""

    def json(self, correlations: Mapping[str, Sequence[Correlation]]) -> dict[str, Any]:
        """Return the object that `--json` prints; `correlations` by whom the models played against."""
        return {
            "instant_runoff": self.runoff.standings[0].name,
            "total_bankroll": self.bankroll.standings[0].name,
            "interval_batches": self.field.batches,
            "cycles": [
                {
                    "cycle": cycle.number,
                    "group": cycle.group,
                    "kept": list(cycle.kept),
                    "ranked_by": cycle.ranking.ranked_by,
                    "standings": [{"agent": item.name, **item.winnings.json()} for item in cycle.ranking.standings],
                }
                for cycle in self.cycles
            ],
            "rank_correlation": [
                {
                    "against": against,
                    "measure": item.measure,
                    "models": item.models,
                    "spearman": item.spearman.value,
                    **Estimate.of(item.spearman).ends_json(),
                }
                for against, rows in correlations.items()
                for item in rows
            ],
        }


class _RememberedMatches:
    """A `play` function that remembers results, so that a pair that meets in several cycles is played once."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.results: dict[tuple[str, str], LineUpSamples] = {}

    def __call__(self, names: Sequence[str]) -> LineUpSamples:
        a, b = names
        if (b, a) in self.results:
            # the same match, seen from the other seat
            played = self.results[b, a]
            adjusted = None if played.adjusted is None else played.adjusted[:, ::-1]
            return LineUpSamples(played.plain[:, ::-1], adjusted)
        if (a, b) not in self.results:
            self.results[a, b] = self.play(names)
        return self.results[a, b]


def _group(entries: Sequence[Entry], key: Callable[[Entry], object]) -> list[list[Entry]]:
    groups: dict[object, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return list(groups.values())


def select(
    entries: Sequence[Entry],
    play: Play,
    *,
    charts: Sequence[str] = ("own",),
    weak: Sequence[str] = (),
    cap: float | None = 750.0,
    seed: int = 0,
    learning: bool = False,
) -> Selection:
    """Run the three cycles.

    Parameters: `entries` the models, `play` plays two named agents and returns the winnings of both per deal, `charts`
    the starting-hand charts of cycle 3, `weak` players to exploit, `cap` the largest loss that counts in mbb/h, `seed`
    of the bootstrap, `learning` whether one of the weak learns from hand to hand. Returns a `Selection`. No pair is
    played twice.
    """
    if len(entries) < 2:
        raise PipelineError(f"a selection needs at least two models, {len(entries)} given; train with more algorithms")
    table = _RememberedMatches(play)
    names = [entry.spec for entry in entries]
    field = rankings.play_all([*names, *weak], table, seed=seed, learning=learning)
    cycles = []
    cycle_winners: list[Entry] = []
    for group in _group(entries, lambda entry: (entry.corpus, entry.algorithm, entry.variant)):
        kinds = {entry.joint for entry in group}
        if len(kinds) < 2:
            cycle_winners += group
            continue
        ranking = rankings.total_bankroll(restrict_results(field, [entry.spec for entry in group]), cap)
        winner = ranking.standings[0].name
        cycle_winners += [entry for entry in group if entry.spec == winner]
        cycles.append(Cycle(1, f"{_corpus_name(group[0])}, {group[0].algorithm}", ranking, (winner,)))
    finalists: list[Entry] = []
    for group in _group(cycle_winners, lambda entry: entry.corpus):
        if len(group) < 2:
            finalists += group
            continue
        specs = [entry.spec for entry in group]
        ranking = rankings.total_bankroll(restrict_results(field, specs), cap)
        survivors = {ranking.standings[0].name, _exploiter(field, specs, weak, cap)}
        finalists += [entry for entry in group if entry.spec in survivors]
        ranked = tuple(standing.name for standing in ranking.standings if standing.name in survivors)
        cycles.append(Cycle(2, _corpus_name(group[0]), ranking, ranked))
    with_charts = [replace(entry, chart=chart) for entry in finalists for chart in charts]
    specs = [entry.spec for entry in with_charts]
    if len(specs) < 2:
        results = restrict_results(field, [*specs, *(name for name in names if name not in specs)])
    else:
        results = rankings.play_all(specs, table, seed=seed, learning=learning)
    runoff = rankings.instant_runoff(results, cap)
    with_weak = rankings.play_all([*results.names, *weak], table, seed=seed, learning=learning)
    bankroll = _without(rankings.total_bankroll(with_weak, cap), weak)
    cycles.append(Cycle(3, "all", runoff, (runoff.standings[0].name, bankroll.standings[0].name)))
    return Selection(cycles, runoff, bankroll, results, field)


def _corpus_name(entry: Entry) -> str:
    return "+".join(entry.corpus) or "unknown"


def restrict_results(results: Results, names: Sequence[str]) -> Results:
    """Return the matches among some of the agents."""
    index = [results.names.index(name) for name in names]
    inside = np.isin(results.lineups, index).all(axis=1)
    place = {agent: i for i, agent in enumerate(index)}
    lineups = np.array([[place[int(agent)] for agent in lineup] for lineup in results.lineups[inside]])
    won, draws = results.won[inside], results.draws[:, inside]
    plain = None if results.plain is None else (results.plain[0][inside], results.plain[1][:, inside])
    return replace(results, names=tuple(names), lineups=lineups, won=won, draws=draws, plain=plain)


def _without(ranking: AgentRanking, names: Sequence[str]) -> AgentRanking:
    """Return a ranking without some of its agents."""
    remaining = [i for i, standing in enumerate(ranking.standings) if standing.name not in names]
    return ranking._replace(standings=[ranking.standings[i] for i in remaining], places=ranking.places[remaining])


def _exploiter(field: Results, names: Sequence[str], weak: Sequence[str], cap: float | None) -> str:
    """Return the one of `names` that wins most from the weak players; without any the only name, else none ("")."""
    if not weak:
        return names[0] if len(names) == 1 else ""
    counted = field.capped(cap)
    against = dict.fromkeys(names, 0.0)
    for lineup, won in zip(counted.lineups, counted.won, strict=True):
        a, b = (counted.names[int(agent)] for agent in lineup)
        if a in against and b in weak:
            against[a] += float(won[0])
        if b in against and a in weak:
            against[b] += float(won[1])
    return max(against, key=lambda name: against[name])


def _spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's correlation of `x` (models) with each row of `y` (..., models).

    From ranks, because `scipy.stats.spearmanr` would correlate all rows of `y` with each other too.
    """
    from scipy.stats import rankdata

    a, b = rankdata(x), rankdata(y, axis=-1)
    a, b = a - a.mean(), b - b.mean(axis=-1, keepdims=True)
    below = np.sqrt((a * a).sum() * (b * b).sum(axis=-1))
    return np.divide((a * b).sum(axis=-1), below, out=np.zeros(b.shape[:-1]), where=below > 0)


def rank_correlation(
    measures: Mapping[str, Mapping[str, float]], field: Results, cap: float | None = 750.0
) -> list[Correlation]:
    """Return the rank correlation of each measure with the models' mean winnings in the field.

    Parameters: `measures` by name, each a value per model; `field` the results of everyone against everyone; `cap` the
    largest loss that counts. Measures that fewer than three models have are left out.
    """
    counted = field.capped(cap)
    all_agents = range(len(counted.names))
    won, drawn = counted.scores(counted.won, all_agents), counted.scores(counted.draws, all_agents)
    correlations = []
    for measure, by_model in measures.items():
        members = [i for i, name in enumerate(counted.names) if by_model.get(name) is not None]
        if len(members) < 3:
            continue
        values = np.array([by_model[counted.names[i]] for i in members])
        spearman = percentile(float(_spearman(values, won[members])), _spearman(values, drawn[:, members]))
        correlations.append(Correlation(measure, len(members), spearman))
    return correlations


def find_entrants(texts: Sequence[str]) -> list[Entry]:
    """Read the bundles that take part in a selection, from what was typed; a folder of bundles gives all of them."""
    entries = []
    for text in (bundle for options in texts for bundle in bundles_in(options)):
        if text.startswith("@"):
            raise PipelineError(f"{text} is no trained model: name it with --weak if it is to be exploited")
        path, options = bundle_options(text)
        bundle = load_bundle(path)
        joint = any(len(part.streets) > 1 for part in bundle.parts)
        patterns = sorted({str(part.about.get("pattern", "")) for part in bundle.parts})
        entries.append(Entry(text, bundle.agents, algorithm_of(bundle), joint, variant=f"{options} {patterns}"))
    return entries


class ModelMeasures(NamedTuple):
    """Scores of models, by measure and then by model, and sentences on what the models may have seen of the rows."""

    values: dict[str, dict[str, float]]
    notes: list[str]


def model_measures(
    data: Path,
    texts: Sequence[str],
    *,
    probabilities: Sequence[Path] = (),
    all_rows: bool = False,
    allow_overlap: bool = False,
    seed: int = 0,
) -> ModelMeasures:
    """Return every measure of every model: over all streets, then the mean over the agents that any model imitates."""
    agents = sorted({agent for entry in find_entrants(texts) for agent in entry.corpus})
    evaluation = evaluate_models(
        data,
        texts,
        Scope(agents, all_rows, probabilities, allow_overlap=allow_overlap),
        with_baselines=False,
        seed=seed,
    )
    text = {opened.candidate.name: opened.text for opened in evaluation.models}
    values: dict[str, dict[str, list[float]]] = {}
    for scored in (scored for agent_scores in evaluation.scored for scored in agent_scores):
        last = scored.scores[-1]
        for name, interval in {**last.measures, **last.distance}.items():
            values.setdefault(name, {}).setdefault(text[scored.candidate.name], []).append(interval.value)
    means = {
        name: {model: float(np.mean(by_agent)) for model, by_agent in by_model.items()}
        for name, by_model in values.items()
    }
    return ModelMeasures(means, evaluation.notes)


@click.command(epilog="Example: python -m tools.selection out/models --data out/rows --hands 20000")
@click.argument("models", nargs=-1, required=True)
@click.option("--hands", type=hands_range(2), default=20_000, show_default=True, help="Hands of each match.")
@data_option("A dataset: rank correlation of measures with winnings.", required=False)
@truth_options
@click.option(
    "--chart", "charts", multiple=True, help="Charts of cycle 3: own, a name, a file or a bundle (repeatable)."
)
@click.option("--weak", multiple=True, default=("@call", "@random"), show_default=True, help="Whom to exploit.")
@click.option(
    "--cap", type=Finite(0), default=750.0, show_default=True, help="Largest loss that counts, mbb/h; 0: none."
)
@seed_option
@adjusted_option
@cluster_option
@json_option
def command(
    models: tuple[str, ...],
    hands: int,
    data: Path | None,
    charts: tuple[str, ...],
    weak: tuple[str, ...],
    cap: float,
    seed: int,
    adjusted: bool,
    cluster: str | None,
    as_json: bool,
    **scored: Any,
) -> None:
    """Play MODELS (bundles or folders of bundles) against each other in three cycles and name the ones to send.

    Cycle 1: one model for all streets or one per street. Cycle 2: algorithms. Cycle 3: corpus x starting-hand chart.
    """
    entrants = find_entrants(models)
    game = default_game([entrants[0].agent])
    played: list[list[str]] = []
    resolved = cache(lambda name: resolve(name, game))
    for name in (*weak, *(replace(entry, chart=chart).spec for entry, chart in product(entrants, charts))):
        resolved(name)  # one that cannot play is refused before anything is played
    with connected(cluster) as workers, bar("select", "matches") as progress:
        line_ups = LineUps(game, resolved, hands, seed, adjusted, workers)

        def play(names: Sequence[str]) -> Any:
            # how many pairs will meet is known only as the cycles go on: at least all of the first
            played.append(list(names))
            progress(len(played), max(len(entrants) * (len(entrants) + 2 * len(weak)), len(played)))
            return line_ups(names)

        selection = select(
            *(entrants, play),
            charts=charts or ("own",),
            weak=weak,
            cap=cap or None,
            seed=seed,
            learning=line_ups.learning(weak),
        )
    correlations = {}
    notes: list[str] = []
    if data is not None:
        measured, notes = model_measures(data, [entry.agent for entry in entrants], seed=seed, **scored)
        own = restrict_results(selection.field, [entry.spec for entry in entrants])
        correlations = {
            "each other": rank_correlation(measured, own, cap or None),
            "each other and the weak": rank_correlation(measured, selection.field, cap or None),
        }
    if as_json:
        matches = [
            {"agents": names, **members[0].json()} for names, members in zip(played, line_ups.winnings, strict=True)
        ]
        print_json({**selection.json(correlations), "matches": matches, "notes": notes})
        return
    _print_selection(selection, correlations)
    for note in filter(None, [batches_note(selection.field.batches), *notes]):
        click.echo(sentence_text(note))


def _print_selection(selection: Any, correlations: dict[str, Any]) -> None:
    """Print the cycles, the winners and the correlations."""
    for cycle in selection.cycles:
        click.echo(f"cycle {cycle.number}, {cycle.group}")
        rows = [
            [
                row_.name,
                f"{row_.won.value:+.1f}",
                f"[{row_.won.low:+.1f}, {row_.won.high:+.1f}]",
                "stays" if row_.name in cycle.kept else "",
            ]
            for row_ in cycle.ranking.standings
        ]
        click.echo(table_text(["  model", "mbb/h", "95% interval", ""], [[f"  {row[0]}", *row[1:]] for row in rows]))
        click.echo()
    runoff, bankroll = selection.runoff, selection.bankroll
    click.echo(f"to instant run-off: {runoff.standings[0].name} (first in {100 * runoff.places[0, 0]:.0f} % of draws)")
    click.echo(
        f"to total bankroll:  {bankroll.standings[0].name} (first in {100 * bankroll.places[0, 0]:.0f} % of draws)"
    )
    for against, rows in correlations.items():
        if rows:
            click.echo(f"\nrank correlation with winnings against {against} ({rows[0].models} models; -1: foretells)")
            by_value = sorted(rows, key=lambda row_: row_.spearman.value)
            cells = [
                [row_.measure, f"{row_.spearman.value:+.2f}", f"[{row_.spearman.low:+.2f}, {row_.spearman.high:+.2f}]"]
                for row_ in by_value
            ]
            click.echo(table_text(["measure", "Spearman", "95% interval"], cells))


if __name__ == "__main__":
    main(command=command, name="python -m tools.selection")
