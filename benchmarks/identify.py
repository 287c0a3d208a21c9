"""Who plays here: how often players of logs are named right after 1, 10, 100 and 1,000 hands.

Needs corpora (`--data`): the 2012 no-limit competition (folder `real`) and Pluribus's hands (folder `phh`). A copy of
each player is trained on some logs and asked about the others: of the competition all matches between two agents are on
one side, of Pluribus's hands whole sessions. The players are told apart by their actions and all known cards; the
baseline is naming one at random.

Nothing was chosen on these logs: `identify.SMOOTHING` and the algorithm (max-ent with the default pattern) were set
before they were first looked at. The pattern itself was made with the agents in `CHOSEN` in sight, so the others have
figures of their own. `--quick` takes counts by betting as copies.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean

from benchmarks._figures import Figure, Settings, unpack
from benchmarks._stages import stored_bundle, stored_figures
from benchmarks.nolimit import CHOSEN, LOGS, OTHERS
from pipeline.dataset.opening import hand_batches
from pipeline.ingestion.run import ingest
from pipeline.opponents.identify import STEPS, hand_likelihoods, naming_rate
from pipeline.training.requests import Request

FOLD = 5
"""every fifth pair of agents, or session, is held out"""
MOST_FREQUENT = 6


def run(settings: Settings) -> list[Figure]:
    """Measure what corpora there are."""
    algorithm = "frequency" if settings.quick else "l-bfgs"
    figures: list[Figure] = []
    for topic, measure, names in (
        ("2012", _competition, ("real", LOGS)),
        ("pluribus", _pluribus, ("phh", "pluribus.tar.xz")),
    ):
        corpus = settings.corpus(*names)
        if corpus is not None:
            stage = settings.stage("identify") / topic
            figures += stored_figures(stage / "figures.json", partial(measure, corpus, stage, algorithm))
    return figures


def _unpacked(corpus: Path, stage: Path) -> list[Path]:
    """Return the files of an archive, unpacked below a stage's folder."""
    folder = stage / "logs"
    if not folder.is_dir():
        unpack(corpus, folder)
    with tarfile.open(corpus) as packed:
        return sorted(folder / entry.name for entry in packed if entry.isfile())


def _competition(corpus: Path, stage: Path, algorithm: str) -> list[Figure]:
    """Measure the agents of 2012: a log is `agent.first-second.log`."""
    logs = _unpacked(corpus, stage)
    pairs = [tuple(sorted(log.name.split(".")[1].split("-"))) for log in logs]
    order = {pair: number for number, pair in enumerate(sorted(set(pairs)))}
    is_held = [order[pair] % FOLD == 0 for pair in pairs]
    players = [*CHOSEN, *OTHERS]
    return [
        *_named(stage, logs, is_held, players, players, algorithm, "2012", "all agents"),
        *_named(stage, logs, is_held, players, OTHERS, algorithm, "2012", "agents not in sight"),
    ]


def _pluribus(corpus: Path, stage: Path, algorithm: str) -> list[Figure]:
    """Measure the most frequent players of Pluribus's sessions: a hand is `pluribus/SESSION/NUMBER.phh`."""
    logs = _unpacked(corpus, stage)
    sessions = {session: number for number, session in enumerate(sorted({log.parent.name for log in logs}))}
    is_held = [sessions[log.parent.name] % FOLD == 0 for log in logs]
    rows = _rows(stage, logs, is_held)
    counted: Counter[str] = Counter()
    for batch in hand_batches(rows, ["names"]):
        for names in batch.column("names").to_pylist():
            counted.update(names.split("|"))
    players = [name for name, _ in counted.most_common(MOST_FREQUENT)]
    return _named(stage, logs, is_held, players, players, algorithm, "Pluribus", f"{MOST_FREQUENT} players")


def _rows(stage: Path, logs: Sequence[Path], is_held: Sequence[bool]) -> Path:
    """Return the dataset of the logs that are trained on."""
    if not (stage / "rows" / "manifest.json").is_file():
        ingest([log for log, held in zip(logs, is_held, strict=True) if not held], stage / "rows")
    return stage / "rows"


def _named(
    stage: Path,
    logs: Sequence[Path],
    is_held: Sequence[bool],
    players: Sequence[str],
    counted: Sequence[str],
    algorithm: str,
    corpus: str,
    group: str,
) -> list[Figure]:
    """Return how often the counted players are named right among all players."""
    rows = _rows(stage, logs, is_held)
    copies = [
        str(stored_bundle(Request(rows, stage / algorithm / player, (player,), algorithms=(algorithm,))))
        for player in players
    ]
    held_out = [log for log, held in zip(logs, is_held, strict=True) if held]
    nats = hand_likelihoods(held_out, [f"{copy}:threshold=0" for copy in copies], players=counted)
    figures = []
    for hands in STEPS:
        rates = [naming_rate(nats[player], players.index(player), hands) for player in counted if player in nats]
        enough = [rate for rate in rates if rate is not None]
        if enough:
            name = f"{corpus}, {group}: named right after {hands:,} hands"
            chance = 1 / len(players)
            figures.append(Figure(name, mean(enough), f"of {len(enough)}", "chance", chance, mean(enough) / chance))
    return figures
