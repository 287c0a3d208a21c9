"""Harm done to what stands around play: mixtures of models, amounts, counter-strategies, hands, requests.

Beside `mutations`, which runs these attacks and says what is allowed. Bundles with priors, blends and amounts are put
together from the bundled fixtures; a dataset's table of hands goes through everything that reads it: export, score,
profile, the explorer's archive and replay. Requests are sent to the explorer itself, which must answer each with JSON
and never with an error of its own (500).
"""

from __future__ import annotations

import hashlib
import json
import logging
import lzma
import os
import random
import shutil
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mutations import FIXTURES, harm_bundle, harm_bytes, harm_file, harm_json
from mutations_of_data import GAMES, dataset, harm_column
from scratch import scratch_folder
from training_rows import decisions

from pipeline.agents.names import resolve
from pipeline.dataset.decisions import observation
from pipeline.dataset.export import export_hands
from pipeline.evaluation.winnings import score_dataset
from pipeline.features.encoding import fit_features
from pipeline.features.patterns import find_pattern
from pipeline.models.blend import Blend
from pipeline.models.bundle import Bundle, StreetModel, load_bundle, save_bundle
from pipeline.models.classes import Classes, read_hands
from pipeline.models.loglinear import LogLinear
from pipeline.models.policy import load_policy, masked
from pipeline.models.prior import AgentPrior, ModelPrior, PriorTimesFeatures, Strengths
from pipeline.models.sizes import Sizes, SizeTable, context_key, start_stacks
from pipeline.opponents.profiles import profiles
from pipeline.poker.cards import parse_cards
from pipeline.poker.game import actions, find_game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import no_progress
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.strategy import load_small_strategy, save_small_strategy
from pipeline.training.classes import contexts_for, hand_columns
from pipeline.web.archive import ArchiveReader, Filter
from pipeline.web.hands import steps_of

NOLIMIT = find_game("holdem.nolimit.2p.reverse_blinds")
LINES = ("", "r300", "cc/r200", "r300c/cr600", "r300c/r900c/c", "r300c/r900c/cc/r2000")
BOARD = parse_cards("6dJs5c2hKd")


@cache
def seen() -> np.ndarray:
    """Decisions of no-limit hold'em."""
    rows = []
    for line in LINES:
        state = NOLIMIT.start()
        for action, size in actions(line):
            state = state.apply(action, size)
        shown = BOARD[: NOLIMIT.visible(state.round)]
        rows.append(observation(NOLIMIT, state.betting, state.actor, parse_cards("9cKc"), shown))
    return np.concatenate(rows)


def amounts() -> Sizes:
    """A table of amounts with contexts of several levels."""
    rows = seen()
    keys = np.unique(
        [context_key(row, label, level) for row in rows for label in (2, 3, 4, 5) for level in range(7)]
    ).astype(np.uint64)
    count = len(keys)
    starts = np.arange(0, 2 * count + 1, 2, dtype=np.int64)
    values, shares = np.tile([0.5, 1.0], count), np.tile([0.25, 0.75], count)
    units = (np.arange(count) % 5).astype(np.uint8)
    return Sizes(SizeTable(keys, starts, units, values, shares), start_stacks(NOLIMIT), {})


def classes(flop: np.ndarray) -> Classes:
    """A model of learned classes of hands: two codebooks, and weights of every class in every context."""
    luck = np.random.default_rng(1)
    columns, contexts, sizes = hand_columns(1), contexts_for(1), (5, 7)
    read, width, cells = read_hands(flop, columns, contexts), len(columns), sum(sizes) + 1
    keys = np.unique(read.contexts)
    floats = (
        read.points.mean(axis=0),
        read.points.std(axis=0) + 1,
        luck.uniform(0.5, 1.5, (2, width)),
        luck.normal(size=(sum(sizes), width)),
    )
    members = np.tile(np.arange(cells, dtype=np.int32), len(keys))
    starts = np.arange(0, len(members) + 1, cells, dtype=np.int64)
    weights = luck.normal(size=(len(members), 3)).astype(np.float32)
    arrays = (one.astype(np.float32) for one in floats)
    return Classes(columns, contexts, sizes, *arrays, keys, starts, members, weights)


@cache
def mixture(kind: str) -> Path:
    """A sound bundle whose models are made of others, or that has amounts."""
    path = scratch_folder() / kind
    if kind == "amounts":
        rows = seen()
        features = fit_features(find_pattern("thesis"), rows, (0, 1, 2, 3))
        keys = np.unique(features.hashes(rows))
        weights = np.random.default_rng(1).normal(size=(len(keys), 7)).astype(np.float32)
        part = StreetModel("all", (0, 1, 2, 3), LogLinear(features, keys, weights), {})
        save_bundle(path, Bundle(NOLIMIT, tuple(NOLIMIT.labels), ("a",), (part,), sizes=amounts()))
        return path
    plain, trees = (load_bundle(FIXTURES / f"{name}.zip") for name in ("loglinear", "trees"))
    assert plain.game is not None
    own, other = plain.models[1], trees.models[1]
    assert isinstance(own, LogLinear)
    rows = decisions(60)[1]
    flop = rows[rows["street"] == 1]
    if kind in ("blend", "classes"):
        learned = classes(flop)
        model: Any = learned if kind == "classes" else Blend((own, other, learned), np.array([0.7, 0.4, 0.3]))
    else:
        chart = plain.chart
        lent = {1: other} if chart is None else {0: chart, 1: other}
        priors = (ModelPrior("x", lent), AgentPrior.of("@chump:rock", plain.game, flop))
        keys = np.sort(np.array([5, 9], np.uint64))
        strengths = Strengths(np.ones((4, 2), np.float32), keys, np.ones((2, 2), np.float32))
        model = PriorTimesFeatures(own, priors, strengths)
    save_bundle(path, Bundle(plain.game, plain.labels, ("a",), (StreetModel("flop", (1,), model, {}),)))
    return path


def said_by(path: Path, kind: str) -> list[np.ndarray]:
    """What a bundle says: probabilities of legal actions, and amounts that are chips."""
    if kind == "amounts":
        rows = seen()
        policy = load_policy(path, {}, game=NOLIMIT)
        mix = policy.probabilities(rows)
        found = [mix]
        for label in (2, 3, 4, 5):
            bet = policy.amounts(rows, np.full(len(rows), label))
            if bet is not None:
                assert np.isfinite(bet.share).all()
                assert (bet.by >= 0).all()
                assert (bet.by <= 2**31).all()
                found += [bet.by.astype(float), bet.share]
    else:
        rows = decisions(60)[1]
        rows = rows[rows["street"] == 1]
        mix = masked(load_bundle(path).models[1].predict(rows), rows["legal"])
        found = [mix]
    legal = rows["legal"][:, None] >> np.arange(mix.shape[1]) & 1 == 1
    assert np.isfinite(mix).all()
    assert np.abs(mix.sum(axis=1) - 1).max() < 1e-9
    assert (mix[~legal] == 0).all()
    return found


def attack_mixture(luck: random.Random, folder: Path) -> str:
    """Harm a bundle with priors, a blend, learned classes or amounts."""
    kind = luck.choice(["tilted", "blend", "classes", "amounts"])
    sound = mixture(kind)
    harmed, again = harm_bundle({path.name: path.read_bytes() for path in sound.iterdir()}, luck)
    path = folder / "b"
    path.mkdir()
    for name, data in harmed.items():
        (path / name).write_bytes(data)
    try:
        said = said_by(path, kind)
    except PipelineError:
        return "refused"
    except KeyError as error:
        if error.args == (1,):
            return "refused"  # a whole bundle of other streets: a policy would say so
        raise
    before = said_by(sound, kind)
    equal = len(said) == len(before) and all(map(np.array_equal, said, before))
    assert equal or again, f"a damaged {kind} bundle was accepted and says something else"
    return "equal" if equal else "another model"


@cache
def solved() -> np.ndarray:
    """A strategy of Leduc."""
    solver = ExactSolver(find_game("leduc.limit.2p"), "plus")
    solver.run(10)
    return solver.strategy()


def attack_counter(luck: random.Random, folder: Path) -> str:
    """Harm a counter-strategy of Leduc as `counter` stores it, and play it."""
    game, path = find_game("leduc.limit.2p"), folder / "counter"
    save_small_strategy(path, game, solved(), {"counter": {"method": "rnr"}, "unit": "milli-antes"})
    manifest = json.loads((path / "manifest.json").read_text())
    if luck.random() < 0.4:
        manifest = harm_json(manifest, luck)
    else:
        image = lzma.decompress((path / "strategy.xz").read_bytes())
        packed = lzma.compress(harm_file(image, luck))
        (path / "strategy.xz").write_bytes(harm_bytes(packed, luck) if luck.random() < 0.2 else packed)
        manifest["sha256"] = hashlib.sha256((path / "strategy.xz").read_bytes()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest))
    try:
        agent = resolve(str(path), game)
        mix = load_small_strategy(path, game)
        row = observation(game, "", 0, parse_cards("Ks"), parse_cards(""))
        found = agent.probabilities(row)
    except PipelineError:
        return "refused"
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-6
    return "equal" if np.array_equal(mix, solved()) else "another model"


def explore(rows: Path, kind: str, cache: Path) -> None:
    """Read the hands as the explorer does: filter and replay them."""
    game = find_game(GAMES[kind])
    # an index is found by the logs and options of its dataset, which harm to the rows does not change
    with patch.dict(os.environ, PIPELINE_CACHE=str(cache)):
        reader = ArchiveReader(rows, game)
    archive = reader.read(no_progress)
    for player in archive.players:
        archive.winnings(player, np.arange(len(archive)))
        archive.find(Filter(player=player, street=1, start=3, made=2))
    for at in range(min(len(archive), 3)):
        steps_of(archive.hand(at), game, None, 0)


def with_hands(folder: Path, kind: str, luck: random.Random, change: Callable[[pa.Table], pa.Table]) -> Path:
    """A copy of a dataset with other hands, sizes and checksums made again."""
    rows = folder / "rows"
    shutil.copytree(dataset(kind), rows)
    path = luck.choice(sorted(rows.rglob("hands/**/*.parquet")))
    changed = change(pq.ParquetFile(path).read())
    pq.write_table(changed, path)
    manifest = json.loads((rows / "manifest.json").read_bytes())
    for part in manifest["parts"]:
        for file in part["files"]:
            if rows / file["path"] == path:
                data = path.read_bytes()
                file.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), crc32=zlib.crc32(data))
                if luck.random() < 0.5:
                    file["rows"] = changed.num_rows
    (rows / "manifest.json").write_text(json.dumps(manifest))
    return rows


def readers(rows: Path, kind: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Everything that reads the table of hands."""
    return {
        "export as histories": lambda: export_hands(rows, "phh", folder / "out.phh"),
        "export as logs": lambda: export_hands(rows, "acpc", folder / "out.log"),
        "score": lambda: score_dataset(rows),
        "profile": lambda: profiles(rows),
        "explorer": lambda: explore(rows, kind, folder / "cache"),
    }


def attack_hands(luck: random.Random, folder: Path) -> str:
    """Harm the table of hands, its checksums made again, and read it in every way."""
    kind = luck.choice(sorted(GAMES))
    rows = with_hands(folder, kind, luck, lambda table: harm_column(table, luck))
    refused = 0
    for read in readers(rows, kind, folder).values():
        try:
            read()
        except PipelineError:
            refused += 1
    return "refused" if refused else "other hands"


WORDS: tuple[str, ...] = (
    *(
        "",
        "r",
        "rc/",
        "rrrrrrrr",
        "/",
        "r99999999999999999999",
        "-1",
        "1e9",
        "NaN",
        "é",
        "\0",
        "'\"<script>",
        "../../etc",
    ),
    *("@random", "@equity", "teacher", "AsKd", "AsAs", "6dJs5c", "6dJs5c2hKd9c", "xx", "flop", "pot", "disagreement"),
    *("holdem.limit.2p.reverse_blinds", "leduc.limit.2p", "9" * 400, "c" * 300, "%00", "python:os:system", "exec:ls"),
)
NAMES = (
    *("game", "agent", "other", "betting", "board", "source", "amount", "player", "opponent", "street", "least_pot"),
    *("most_pot", "start", "made", "sort", "from", "token"),
)


@cache
def server() -> Any:
    """The explorer, asked in this process."""
    from starlette.testclient import TestClient

    from pipeline.web.app import make_app, open_explorer

    logging.getLogger("pipeline.web").setLevel(logging.CRITICAL)
    games = ["holdem.limit.2p.reverse_blinds", "leduc.limit.2p", NOLIMIT.name]
    save = scratch_folder()
    explorer = open_explorer(["@random", "@call"], token="t", data=dataset("limit"), games=games, save=save)
    client = TestClient(make_app(explorer, needs_token=False), base_url="http://127.0.0.1:8017")
    while client.get("/api/hands").json()["reading"]:
        pass
    return client


def attack_request(luck: random.Random, folder: Path) -> str:
    """Ask the explorer for something, right and wrong words mixed; it answers with JSON and never with a 500."""
    client = server()
    headers = {"X-Pipeline-Token": "t"} if luck.random() < 0.9 else {}
    if luck.random() < 0.6:
        path = luck.choice(["spot", "spot", "hands", "hands/0", "hands/39", "hands/40", "amount", "results", "about"])
        asked = {name: luck.choice(WORDS) for name in luck.sample(NAMES, luck.randrange(6))}
        (folder / "asked").write_text(json.dumps([path, asked]))
        answer = client.get(f"/api/{path}", params=asked, headers=headers, follow_redirects=False)
    else:
        table = client.post(
            "/api/tables",
            json={"game": luck.choice(WORDS), "agents": [luck.choice(WORDS)]}
            if luck.random() < 0.3
            else {"agents": ["@random"], "game": luck.choice(["", "leduc.limit.2p", NOLIMIT.name])},
            headers={"X-Pipeline-Token": "t"},
        )
        assert table.status_code in (200, 400), table.text
        key = table.json().get("table", "x")
        said: Any = {"action": luck.choice("fcr"), "amount": "", "hand": 0}
        said = harm_json(said, luck) if luck.random() < 0.7 else said
        body = json.dumps(said).encode()
        body = harm_bytes(body, luck) if luck.random() < 0.2 else body
        (folder / "asked").write_bytes(body)
        path = luck.choice(["act", "act", "act", "next"])
        answer = client.post(f"/api/tables/{key}/{path}", content=body, headers=headers)
    assert answer.status_code in (200, 303, 400, 403, 404, 413, 414), f"{answer.status_code}: {answer.text}"
    if answer.status_code != 303:
        assert isinstance(answer.json(), dict)
    return "answered" if answer.status_code == 200 else "refused"
