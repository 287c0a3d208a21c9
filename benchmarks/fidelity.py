"""How close copies come to their sources, as `train` makes them without options.

- slumbot19 (where its logs are in the folder of corpora): copies from 648,000, 54,000, 12,000 and 3,000 hands, scored
  on matches that were held out; from few hands three times, each time of other matches. Beside each stands max-ent, one
  of its parts, alone.
- The logs that come with the package.
- The teacher: how far copies from 4,000 to a million hands are from it, and why; what they win at the table and what
  players who know them win.
- Two solved sources on which nothing was chosen, likewise.
- Leduc: counting copies of an equilibrium.

Every finished part is stored (`--stages`), so a run that was stopped goes on. The small form (`--quick`) shows in some
minutes that everything works; its figures are of small copies and short matches.

Solved agents that nobody tuned anything on, to be copied.

Two strategies of heads-up limit hold'em, over other groups of hands than the teacher's: `squares` sees the expected
square of a hand's strength in steps, `few` sees fewer clusters of another seed. Each is an agent in memory, kept as an
array between runs.

Copies of a solved agent at the table.

A copy learns from logs of its source, actions only: half of the hands are self-play, half against agents that look at
no or few cards. `judge` logs of other deals are held out. Then it plays its source, and others in the source's place on
the same deals, in duplicate and with the luck taken out. An equilibrium hardly punishes, so what players win who know
the copy is measured as well, in the source's own buckets, beside what they win from the source.

Where a copy's distance to its source lies.

The source is a solved agent, so its probabilities and its groups of hands (buckets) are known. Held-out log-loss of
the copy is set beside three others: the floor, which is the source's own dice; counts of what was done in each line
of betting with each true bucket, leaning on the street's betting with that bucket and on the line; and max-ent whose
features are these same pairs. What a model loses although it is told the true buckets is *estimation*: too few rows.
What the copy loses beyond the better of these two is *representation*: it does not know which hands are treated alike.
How well learned classes match the true buckets is told by their adjusted mutual information, 0 by chance, 1 if equal.

Copies of an equilibrium of Leduc by counting, and what a best response wins from them.

Frequencies are counted in logs of an equilibrium, over several logs (one alone is luck). Self-play alone never visits
what a deviating opponent reaches: it stands here as a warning.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._figures import Figure, Settings
from benchmarks._stages import stored_bundle, stored_figures, stored_rows
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.agents.teacher import Teacher
from pipeline.arena.match import play_match
from pipeline.dataset.decisions import STREETS, betting_text
from pipeline.dataset.load import load_decisions
from pipeline.features.columns import Column
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.models.blend import learned_classes
from pipeline.models.bundle import load_bundle
from pipeline.models.classes import read_hands
from pipeline.models.measures import half_width
from pipeline.poker.cards import NO_CARD, RANKS
from pipeline.poker.game import builtin
from pipeline.poker.strength.board_tables import ensure_tables
from pipeline.poker.strength.hand_clusters import load_clusters
from pipeline.poker.strength.rows import STRENGTH
from pipeline.runtime.array_types import Array, Floats
from pipeline.runtime.extras import import_extra
from pipeline.runtime.files import replacing
from pipeline.runtime.numeric import bit_table, hash_rows
from pipeline.solving.buckets import (
    Buckets,
    deal_hands,
    dealer_of,
    find_buckets,
    make_buckets,
    with_rivers,
    without_rivers,
)
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.holdem import CHUNK, BucketSolver, best_response
from pipeline.solving.layout import Layout, versus
from pipeline.solving.lookup import project_on_buckets
from pipeline.solving.small import SmallGame, Spot
from pipeline.solving.strategy import StoredStrategy, dequantise, quantise
from pipeline.training.loop import scores
from pipeline.training.requests import Request
from pipeline.training.run import train_bundles

# Solved sources

GAME = builtin("holdem.limit.2p.reverse_blinds")


@dataclass(frozen=True)
class Source:
    """How a source groups hands: numbers of groups on flop, turn and river."""

    name: str
    sizes: tuple[int, int, int]
    seed: int
    by_squares: bool

    def buckets(self) -> Buckets:
        """Return the group of every holding."""
        flop, turn, river = self.sizes
        if not self.by_squares:
            return make_buckets(load_clusters(1, flop, self.seed), load_clusters(2, turn, self.seed), river)
        tables = ensure_tables()
        near, far = (
            _steps(table.view(STRENGTH).ravel()["ehs2"], size)
            for table, size in ((tables.flop, flop), (tables.turn, turn))
        )
        return with_rivers(without_rivers(near, far, river))


SOURCES = (Source("squares", (400, 400, 300), 21, True), Source("few", (300, 300, 200), 22, False))


def _steps(values: Any, size: int) -> Any:
    """Values cut into groups of about the same number of holdings."""
    cuts = np.unique(np.quantile(values, np.arange(1, size) / size))
    return np.searchsorted(cuts, values, side="right").astype(np.uint16)


def solved_source(source: Source, deals: int, folder: Path) -> Teacher:
    """Return the agent, solved with so many deals; its steps are stored in the folder."""
    tables = source.buckets()
    layout = Layout(GAME, (169, *source.sizes))
    file = folder / f"{source.name}.npy"
    if not file.is_file():
        solver = BucketSolver(layout, dealer_of(tables), source.seed)
        solver.run(-(-deals // CHUNK), workers=2)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as beside, beside.open("wb") as out:
            np.save(out, quantise(solver.strategy()))
    nothing = np.empty((0, 8), np.uint8)
    return Teacher(source.name, GAME, StoredStrategy(layout, np.load(file), nothing, nothing, "", {}), tables)


# Copies at the table


OTHERS = ("@call", "@random", "@raise")
"""who else plays in the logs"""
JUDGE = "judge"
"""what the names of held-out logs begin with"""


def logged_rows(source: Agent, hands: int, judged: int, folder: Path) -> Path:
    """Return a dataset of the source's decisions in so many hands; `judged` hands of other deals are held out."""

    def play() -> Sequence[Path]:
        logs: list[Path] = []
        for name, count, seed in (("logs", hands, 1), (JUDGE, judged, 501)):
            shares = {None: count} | dict.fromkeys(OTHERS, count // 2 // len(OTHERS))
            for number, (other, share) in enumerate(shares.items()):
                opponent = source if other is None else resolve(other, GAME)
                file = folder / "logs" / f"{name}.{number}"
                match = play_match([source, opponent], GAME, hands=share, seed=seed + number, log=file)
                # in self-play the two seatings of a deal differ in the dice alone: one of them, of twice as many deals
                logs += match.logs[:1] if other is None else match.logs
        return logs

    names = [source.name, f"{source.name}.2"]  # in self-play the second of the name
    return stored_rows(folder / "rows", play, agents=names, validation=f"{JUDGE}*")


def _won(agent: Agent, other: Agent, hands: int) -> Any:
    """Measure what an agent wins on each deal, in mbb/h, with the luck taken out."""
    return play_match([agent, other], GAME, hands=hands, seed=50, adjusted=True).best_samples_mbb[:, 0]


def table_figures(
    copy: Agent, source: Agent, title: str, hands: int, others: Sequence[str], targets: tuple[str, str]
) -> list[Figure]:
    """Measure a copy's winnings from its source, and from others less the source's from them on the same deals."""
    own = _won(copy, source, hands)
    unit = f"mbb/h ± {half_width(own):.1f}"
    figures = [Figure(f"{title} against its source", float(own.mean()), unit, target=targets[0])]
    for text in others:
        other = resolve(text, GAME)
        mine, theirs = (_won(one, other, hands // 2) for one in (copy, source))
        apart, base = mine - theirs, float(theirs.mean())
        unit = f"mbb/h ± {half_width(apart):.1f}"
        figures.append(
            Figure(
                f"{title} less its source against {text}", float(apart.mean()), unit, "source", base, None, targets[1]
            )
        )
    return figures


def responses(agents: Mapping[str, Agent], source: Teacher, deals: int, hands: int) -> list[Figure]:
    """Measure what best responses in the source's buckets win from agents: lower bounds of what can be won.

    A response to a copy is trained against the copy's projection on the buckets and plays the copy itself at the table;
    what it wins from the projection stands beside it and bounds nothing. The source is its own projection.
    """
    stored = source.stored
    layout, tables = stored.layout, with_rivers(source.tables)
    fresh, dealer = deal_hands(tables, 99, 100_000), dealer_of(tables)
    figures = []
    for name, agent in agents.items():
        own = agent is source
        ask = agent.probabilities
        strategy = dequantise(stored.steps) if own else project_on_buckets(ask, layout, tables, samples=2)
        best = best_response(layout, dealer, strategy, deals=deals)
        won = versus(layout, fresh, best, strategy)
        title = f"best response in the source's buckets wins from {name}"
        if own:
            figures.append(Figure(title, won.mbb, f"mbb/h ± {won.ci95:.0f}"))
            continue
        steps = StoredStrategy(layout, quantise(best, 0.0), stored.flop, stored.turn, "", {})
        samples = _won(Teacher("response", GAME, steps, source.tables), agent, hands)
        unit = f"mbb/h ± {half_width(samples):.0f}"
        figures.append(Figure(title, float(samples.mean()), unit, "over buckets, no bound", won.mbb))
    return figures


# Where the distance lies


LEANING = 3.0
"""decisions that the coarser counts are worth beside a pair's own"""
PENALTY = 5.0
"""L2 of max-ent by true buckets, as in the default pattern"""


def gap_figures(rows: Path, copy: Path, source: Teacher, title: str) -> list[Figure]:
    """Measure the losses of a copy, of models that are told the true buckets, and of the source itself, by street."""
    models = {part.name: part.model for part in load_bundle(copy).parts}
    figures = []
    for street in (1, 2, 3):
        name = STREETS[street]
        decisions = load_decisions(rows, streets=[name])
        held_out, taken = decisions.validation, decisions.action[decisions.validation]
        seen: Any = decisions.rows
        floor = scores(source.probabilities(seen[held_out]), taken)[1]
        bucket = find_buckets(street, seen["hole"][:, :2], seen["board"], source.tables)
        pairs = _pairs(seen, street, bucket)
        losses = {
            "counts by true buckets": scores(_bucket_counts(pairs, decisions.action, held_out, seen["legal"]), taken)[
                1
            ],
            "max-ent by true buckets": scores(_bucket_max_ent(pairs, decisions.action, held_out, seen["legal"]), taken)[
                1
            ],
        }
        loss = scores(models[name].predict(seen[held_out]), taken)[1]
        where = f"{title}, {name}"
        figures.append(Figure(f"{where}: log-loss", loss, "nats", "floor", floor, loss / floor))
        figures += [
            Figure(f"{where}: {model_name}", value, "nats", "floor", floor, value / floor)
            for model_name, value in losses.items()
        ]
        best = min(losses.values())
        figures.append(Figure(f"{where}: gap by estimation", best - floor, "nats"))
        figures.append(Figure(f"{where}: gap by representation", loss - best, "nats"))
        classes = learned_classes(models[name])
        if classes is not None:
            agree = import_extra("sklearn.metrics").adjusted_mutual_info_score(
                bucket[held_out], classes.nearest_class(seen[held_out])
            )
            figures.append(Figure(f"{where}: classes against true buckets", float(agree), "AMI"))
    return figures


def _pairs(rows: Array, street: int, bucket: Array) -> npt.NDArray[np.int64]:
    """Number, (rows, 3), the line of betting, the street's betting with the bucket, and the line with it."""
    contexts = read_hands(rows, (), ((Column("betting"),), (Column("word", street),))).contexts
    own = bucket.astype(np.uint64)
    keys = [contexts[:, 0], *(hash_rows(np.column_stack([contexts[:, at], own])) for at in (1, 0))]
    return np.column_stack([np.unique(key, return_inverse=True)[1].ravel() for key in keys])


def _bucket_counts(pairs: npt.NDArray[np.int64], action: Array, held_out: Array, legal: Array) -> Floats:
    """Return probabilities of the held-out rows by counts, from coarse to exact, each leaning on the one before."""
    allowed = bit_table(legal, 3).astype(np.float64)
    chances: Floats = allowed / allowed.sum(axis=1, keepdims=True)
    for key in pairs.T:
        counts = np.zeros((int(key.max()) + 1, 3))
        np.add.at(counts, (key[~held_out], action[~held_out]), 1.0)
        mine = counts[key]
        chances = (mine + LEANING * chances) / (mine.sum(axis=1, keepdims=True) + LEANING)
    return chances[held_out]


def _bucket_max_ent(pairs: npt.NDArray[np.int64], action: Array, held_out: Array, legal: Array) -> Floats:
    """Return probabilities of the held-out rows by max-ent whose features are the pairs."""
    from pipeline.training.sklearn import MaxEntClassifier

    model = MaxEntClassifier(rho1=0.0, rho2=PENALTY, max_iter=60, n_jobs=2).fit(pairs[~held_out], action[~held_out])
    out = np.zeros((int(held_out.sum()), 3))
    out[:, model.classes_] = model.predict_proba(pairs[held_out])
    out *= bit_table(legal[held_out], 3)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


# Leduc


LEDUC = builtin("leduc.limit.2p")
BACK_OFF = 5
"""how many decisions the street's betting alone, with the same cards, is worth beside the whole betting"""


def _leduc_counts(rows: npt.NDArray[Any], action: npt.NDArray[Any]) -> Floats:
    """Count each action at each decision of Leduc, in the solver's order; rare decisions lean on like ones."""
    small = SmallGame(LEDUC)
    out = np.zeros((small.rows, 3))
    board = np.where(rows["board"][:, 0] == NO_CARD, 13, rows["board"][:, 0] >> 2)
    keys = np.column_stack([rows["betting_codes"][:, :2], rows["street"], rows["hole"][:, 0] >> 2, board])
    spots, inverse = np.unique(keys, axis=0, return_inverse=True)
    counts = np.zeros((len(spots), 3))
    np.add.at(counts, (inverse.ravel(), action), 1)
    alike = np.column_stack([np.where(spots[:, 2] == 0, spots[:, 0], spots[:, 1]), spots[:, 2:]])
    groups, member = np.unique(alike, axis=0, return_inverse=True)
    together = np.zeros((len(groups), 3))
    np.add.at(together, member.ravel(), counts)
    counts += BACK_OFF * (together / together.sum(axis=1, keepdims=True))[member.ravel()]
    for (first, second, street, card, open_card), count in zip(spots.tolist(), counts, strict=True):
        betting = "/".join("" if not word else betting_text(word) for word in (first, second)[: street + 1])
        out[small.row(Spot(betting, RANKS[card], RANKS[open_card] if street else ""))] = count
    return out


def _leduc_copy(folder: Path, opponents: Sequence[str], hands: int, seed: int) -> float:
    """Measure what a best response wins from frequencies of the equilibrium's logs, in milli-antes per hand."""
    teacher = resolve("@teacher", LEDUC)
    logs: list[Path] = []
    names: set[str] = set()
    for number, other in enumerate(opponents):
        agents = [teacher, resolve(other, LEDUC)]
        log = folder / "logs" / str(number)
        match = play_match(agents, LEDUC, hands=hands // len(opponents), seed=10 * seed + number, log=log)
        logs += match.logs
        names |= set(match.names) if other == "@teacher" else {match.names[0]}
    ingest(logs, folder / "rows", options(agents=sorted(names)))
    decisions = load_decisions(folder / "rows")
    return 1000 * ExactSolver(LEDUC).exploitability(_leduc_counts(decisions.rows, decisions.action))


def leduc_figures(folder: Path, logs: int) -> list[Figure]:
    """Measure the mean exploitability of copies from so many logs each."""
    figures: list[Figure] = []
    both, alone = ("@teacher", "@random"), ("@teacher",)
    for name, opponents, hands, target in (
        ("half against @random, 100,000 hands", both, 100_000, "60"),
        ("half against @random, 400,000 hands", both, 400_000, "25"),
        ("self-play only, 100,000 hands", alone, 100_000, ""),
    ):
        lost = [_leduc_copy(folder / f"{len(figures)}-{seed}", opponents, hands, seed) for seed in range(logs)]
        unit = f"milli-antes, {min(lost):.0f} to {max(lost):.0f} in {logs} logs"
        figures.append(Figure(f"Leduc copy, {name}: exploitability", float(np.mean(lost)), unit, target=target))
    return figures


# All figures

ARCHIVE, AGENT = "slumbot19.tar.bz2", "slumbot19"
SAMPLE = Path("data/sample")


@dataclass(frozen=True)
class Part:
    """Matches of slumbot19 that a copy learns from and is scored on, and what is aimed at on flop, turn and river."""

    hands: str
    learned: tuple[Sequence[str], ...]
    """by repetition: what the names of the logs end with"""
    held: Sequence[str]
    targets: tuple[float, float, float] | None


def _names(*matches: int, seatings: str = "01") -> list[str]:
    return [f".{match}.{seating}.log" for match in matches for seating in seatings]


LARGE = Part("648,000", (_names(*(m for m in range(120) if m % 10)),), _names(*range(0, 120, 10)), (0.275, 0.275, 0.19))
MIDDLE = Part("54,000", (_names(*range(11, 20)),), _names(*range(0, 60, 10)), (0.355, 0.345, 0.245))
SMALL = Part("12,000", (_names(1, 2), _names(33, 34), _names(77, 78)), _names(*range(0, 60, 10)), (0.41, 0.4, 0.3))
SINGLE = Part("3,000", tuple(_names(m, seatings="0") for m in (1, 33, 77)), _names(*range(0, 60, 10)), None)


@dataclass(frozen=True)
class Scale:
    """How much is learned from and played."""

    parts: tuple[Part, ...] = (LARGE, MIDDLE, SMALL, SINGLE)
    taught: tuple[int, ...] = (1_000_000, 100_000, 20_000, 4_000)
    judged: int = 60_000
    played: int = 400_000
    """hands against the source; half as many against each of the others"""
    response: int = 8_000_000
    """deals on which a best response is trained"""
    solved: int = 8_000_000
    """deals that a source is solved with"""
    source: int = 330_000
    """hands that a source is copied from"""
    logs: int = 5
    """of Leduc"""


QUICK = Scale((SINGLE,), (4_000,), 4_000, 8_000, 100_000, 100_000, 4_000, 1)


# slumbot19


def _slumbot(archive: Path, folder: Path, part: Part) -> list[Figure]:
    """Measure scores of copies from a part of the matches."""
    scored: dict[str, list[dict[str, Any]]] = {}
    for index, learned in enumerate(part.learned):
        place = folder / f"{part.hands.replace(',', '')}-{index}"
        names = (*learned, *part.held)
        rows = stored_rows(
            place / "rows",
            partial(_unpacked, archive, place / "logs", names, part.held),
            agents=[AGENT],
            validation="held.*",
        )
        for result in _timed_training(rows, place / "copy"):
            scored.setdefault(result["street"], []).append(result)
    figures = []
    for index, street in enumerate(STREETS[1:]):
        losses = [result["log_loss"] for result in scored[street]]
        alone = float(np.mean([result["max_ent"] for result in scored[street]]))
        title = f"{AGENT} from {part.hands} hands, {street}"
        unit = f"nats, {min(losses):.3f} to {max(losses):.3f} of {len(losses)}" if len(losses) > 1 else "nats"
        loss, target = float(np.mean(losses)), f"{part.targets[index]}" if part.targets else ""
        figures.append(Figure(f"{title}: log-loss", loss, unit, "max-ent alone", alone, loss / alone, target))
        errors = [100 * result["error"] for result in scored[street]]
        figures.append(Figure(f"{title}: error", float(np.mean(errors)), "%"))
    longest = max(result["seconds_in_all"] for result in scored["flop"])
    most = max(result["peak_gb"] for result in scored["flop"])
    figures.append(Figure(f"{AGENT} from {part.hands} hands: training, all streets", longest, "s", target="180"))
    figures.append(Figure(f"{AGENT} from {part.hands} hands: memory", most, "GB", target="4"))
    return figures


def _unpacked(archive: Path, folder: Path, names: Sequence[str], held_out: Sequence[str]) -> list[Path]:
    """Return the logs of some matches; `held.` begins the names of those in `held_out`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    with tarfile.open(archive) as logs:
        for member in logs:
            name = Path(member.name).name
            if not name.endswith(tuple(names)):
                continue
            file = folder / (f"held.{name}" if name.endswith(tuple(held_out)) else name)
            content = logs.extractfile(member)
            assert content is not None
            file.write_bytes(content.read())
            files.append(file)
    return files


def _timed_training(rows: Path, out: Path) -> list[dict[str, Any]]:
    """Return what `train` reports of each street, with its time and memory; run as a user does and stored."""
    file = out.with_suffix(".json")
    if not file.is_file():
        command = [sys.executable, "-m", "pipeline", "train", "--data", str(rows), "--agent", AGENT, "--out", str(out)]
        began = time.perf_counter()
        with subprocess.Popen([*command, "--quiet", "--json"], stdout=subprocess.PIPE) as training:
            assert training.stdout is not None
            results = json.loads(training.stdout.read())
            _, status, used = os.wait4(training.pid, 0)
            training.returncode = os.waitstatus_to_exitcode(status)
        seconds, peak = time.perf_counter() - began, 1024 * used.ru_maxrss / 1e9
        for result in results:
            result |= {"seconds_in_all": seconds, "peak_gb": peak, "max_ent": result["parts_log_loss"]["l-bfgs"]}
        file.write_text(json.dumps(results), encoding="utf-8")
    return list(json.loads(file.read_text(encoding="utf-8")))


def _sample(folder: Path) -> list[Figure]:
    """Measure a copy from the logs that come with the package."""
    rows = stored_rows(folder / "rows", lambda: [SAMPLE], agents=["teacher"])
    figures = []
    for result, target in zip(train_bundles(Request(rows, folder / "copy")), (0.386, 0.407, 0.325), strict=True):
        loss, alone = result.trained.log_loss or 0.0, dict(result.trained.parts_log_loss)["l-bfgs"]
        title = f"bundled logs, {result.street}: log-loss"
        figures.append(Figure(title, loss, "nats", "max-ent alone", alone, loss / alone, f"{target}"))
    return figures


# Solved sources


def _teacher(folder: Path, scale: Scale) -> list[Figure]:
    """Measure copies of the teacher from more and from fewer hands."""
    teacher = resolve("@teacher", GAME)
    assert isinstance(teacher, Teacher)
    figures: list[Figure] = []
    for hands in scale.taught:
        place, title = folder / str(hands), f"teacher's copy from {hands:,} hands"
        rows = logged_rows(teacher, hands, scale.judged, place)
        copy = stored_bundle(Request(rows, place / "copy", streets=STREETS))
        figures += stored_figures(place / "gap.json", partial(gap_figures, rows, copy, teacher, title))
        if hands < 100_000 and hands != scale.taught[0]:
            continue
        targets = ("lower end above -5" if hands >= 1_000_000 else "lower end above -20", "within 15")
        measure = partial(_at_the_table, copy, teacher, title, scale, targets)
        figures += stored_figures(place / "table.json", measure)
    place = folder / str(scale.taught[0])
    before = stored_bundle(Request(place / "rows", place / "max-ent", streets=STREETS, algorithms=("l-bfgs",)))
    return figures + stored_figures(
        place / "responses.json", partial(_responses, place / "copy", before, teacher, scale)
    )


def _at_the_table(copy: Path, source: Teacher, title: str, scale: Scale, targets: tuple[str, str]) -> list[Figure]:
    others = ("@call", "@random", "@raise", "@equity")
    return table_figures(resolve(str(copy), GAME), source, title, scale.played, others, targets)


def _responses(copy: Path, before: Path, teacher: Teacher, scale: Scale) -> list[Figure]:
    """Measure what players who know the teacher, its copy, and the copy by max-ent alone win."""
    agents = {
        "the teacher": teacher,
        "its copy (target: 80)": resolve(str(copy), GAME),
        "its copy by max-ent alone": resolve(str(before), GAME),
    }
    return responses(agents, teacher, scale.response, scale.played)


def _sources(folder: Path, scale: Scale) -> list[Figure]:
    """Measure copies of solved sources on which nothing was chosen."""
    figures: list[Figure] = []
    for source_plan in SOURCES:
        place, title = folder / source_plan.name, f"copy of {source_plan.name} from {scale.source:,} hands"
        source = solved_source(source_plan, scale.solved, folder)
        rows = logged_rows(source, scale.source, scale.judged, place)
        copy = stored_bundle(Request(rows, place / "copy", streets=STREETS))
        figures += stored_figures(place / "gap.json", partial(gap_figures, rows, copy, source, title))
        measure = partial(_at_the_table, copy, source, title, scale, ("lower end above -15", "within 30"))
        figures += stored_figures(place / "table.json", measure)
    return figures


def run(settings: Settings) -> list[Figure]:
    """Measure copies; slumbot19 only where the corpus is."""
    scale = QUICK if settings.quick else Scale()
    folder = settings.stage("fidelity")
    figures: list[Figure] = []
    archive = settings.corpus(ARCHIVE)
    if archive is not None:
        for part in scale.parts:
            file = folder / "slumbot19" / f"{part.hands.replace(',', '')}.json"
            figures += stored_figures(file, partial(_slumbot, archive, folder / "slumbot19", part))
    figures += stored_figures(folder / "sample.json", partial(_sample, folder / "sample"))
    figures += _teacher(folder / "teacher", scale)
    figures += _sources(folder / "sources", scale)
    return figures + stored_figures(folder / "leduc.json", partial(leduc_figures, folder / "leduc", scale.logs))
