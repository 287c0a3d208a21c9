"""Detectors: how many hands tell a copy of @teacher from @teacher, and what a classifier makes of its hands.

Two copies: models/teacher, and one that is trained in this run on the bundled sample. The hands to tell are those of a
detector that knows both strategies, over hands of @teacher against itself; beside them those of @equity, which imitates
nobody. The classifier learns from 20,000 hands each of source and copy, playing themselves and playing @equity; its
area under the curve on as many others stands beside that of more hands of @teacher, which nobody can tell apart.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import benchmarks
from benchmarks._classifier import HANDS, detection_auc, play_records
from benchmarks._figures import Figure, Settings
from benchmarks._play import teacher_rows
from benchmarks._stages import stored_bundle, stored_rows
from pipeline.agents.names import resolve
from pipeline.agents.protocol import Agent
from pipeline.evaluation.hands_to_tell import HandsToTell, dealt_hands, hands_to_tell
from pipeline.evaluation.samples import DecisionSample, read_samples
from pipeline.models.measures import played, row_measures
from pipeline.poker.game import builtin
from pipeline.training.requests import Request

ROOT = Path(benchmarks.__file__).parents[1]
GAME = builtin("holdem.limit.2p.reverse_blinds")
SELF_PLAY = 20_000
"""hands of @teacher against itself that the hands to tell are measured over"""
OPPONENTS = ("@teacher", "@equity")


def run(settings: Settings) -> list[Figure]:
    """Measure both copies."""
    stage = settings.stage("detector")
    sample = stored_rows(stage / "rows", lambda: [ROOT / "data" / "sample"], agents=["teacher"])
    trained = stored_bundle(Request(sample, stage / "copy", ("teacher",)))
    copies = {"models/teacher": ROOT / "models" / "teacher", "copy of the sample": trained}
    agents = {name: resolve(f"{path}:threshold=0", GAME) for name, path in copies.items()}
    return [*_hands_figures(agents, settings.quick), *_classifier_figures(agents, settings.quick)]


def _hands_figures(copies: dict[str, Agent], quick: bool) -> list[Figure]:
    """Return the hands to tell of each copy, beside those of @equity."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = teacher_rows(folder, 1_000 if quick else SELF_PLAY, strength=False)
        [sample] = read_samples(rows, side=None, truths=[folder / "logs" / "teacher.probs.parquet"])
        baseline = _tell(resolve("@equity", GAME), sample, rows).hands
        figures = []
        for copy, agent in copies.items():
            tell = _tell(agent, sample, rows)
            parts = {"": tell.hands, ", low end": tell.low, ", high end": tell.high}
            figures += [
                Figure(f"hands to tell {copy} from @teacher{part}", hands, "hands", "@equity", baseline)
                for part, hands in parts.items()
                if hands is not None
            ]
    return [figure._replace(ratio=figure.value / baseline if baseline else None) for figure in figures]


def _tell(agent: Agent, sample: DecisionSample, rows: Path) -> HandsToTell:
    """Return the hands to tell of an agent that stands for the sample's."""
    mixes = played(agent.probabilities(sample.rows), sample.rows["legal"])
    tell = hands_to_tell(row_measures(mixes, sample.taken, sample.truth)["kl"], dealt_hands(rows, sample, side=None))
    assert tell is not None
    return tell


def _classifier_figures(copies: dict[str, Agent], quick: bool) -> list[Figure]:
    """Return the classifier's AUC for each copy and opponent, beside that of @teacher's hands against @teacher's."""
    hands = 1_000 if quick else HANDS
    source = resolve("@teacher", GAME)
    figures = []
    for opponent in OPPONENTS:
        against = resolve(opponent, GAME)
        own = play_records([source, against], GAME, 2 * hands, seed=1)
        again = play_records([source, against], GAME, 2 * hands, seed=2)
        chance = detection_auc(own, again, hands=hands)
        for copy, agent in copies.items():
            # a copy meets itself where the source does
            seated = [agent, agent if opponent == "@teacher" else against]
            areas = detection_auc(own, play_records(seated, GAME, 2 * hands, seed=3), hands=hands)
            word = "itself" if opponent == "@teacher" else opponent
            figures += [
                Figure(
                    f"AUC of {size} hands, {copy} against {word}",
                    area,
                    "",
                    "@teacher itself",
                    chance[size],
                    area / chance[size],
                )
                for size, area in areas.items()
            ]
    return figures
