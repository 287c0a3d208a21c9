"""Work on real clusters: worker processes of dask on this machine, and a scheduler and workers started by hand."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pickle
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
from bucketed_leduc import LAYOUT, LEDUC, deal_leduc, exploitability, leduc_dealer, random_strategy, rows_of_leduc
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from pipeline.agents.names import resolve
from pipeline.arena.match import ClusterTable, play_match
from pipeline.cli.main import group
from pipeline.evaluation.evaluation import Scope, evaluate_models
from pipeline.features.patterns import find_pattern
from pipeline.ingestion.options import options
from pipeline.ingestion.run import ingest
from pipeline.poker.game import find_game
from pipeline.runtime.dask_cluster import Cluster, connect, parse_local
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks
from pipeline.solving.cfr import ExactSolver
from pipeline.solving.counter import Belief, respond, respond_in_buckets, winnings
from pipeline.solving.holdem import CHUNK, BucketSolver, ClusterWorkers, SharedLearning, run_on_cluster
from pipeline.training.config import TrainConfig
from pipeline.training.parts import StoredArrays
from pipeline.training.requests import Request
from pipeline.training.rows import plan_parts
from pipeline.training.run import train_bundles
from pipeline.training.sharded import PackedWeights

pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own
GAME = find_game("holdem.limit.2p.reverse_blinds")
PLAN = importlib.import_module("pipeline.ingestion.plan")
CONFIG = TrainConfig(max_iterations=6, patience=0, part_rows=150, checkpoint_seconds=0)


def contents(folder: Path) -> dict[str, str]:
    """The hash of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    """A folder of logs that make several batches."""
    folder = tmp_path_factory.mktemp("logs")
    agents = [resolve("@chump:maniac", GAME), resolve("@random", GAME)]
    for seed in range(6):
        play_match(agents, GAME, hands=400, seed=seed, workers=1, log=folder / f"m{seed}")
    return folder


@pytest.fixture(autouse=True)
def small_batches(monkeypatch) -> None:
    monkeypatch.setattr(PLAN, "SMALLEST", 10_000)
    monkeypatch.setattr(PLAN, "LARGEST", 20_000)


@pytest.fixture(scope="module")
def data(logs, tmp_path_factory) -> Path:
    """Their rows, ingested in this process."""
    out = tmp_path_factory.mktemp("data") / "rows"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PLAN, "SMALLEST", 10_000)
        patch.setattr(PLAN, "LARGEST", 20_000)
        ingest([logs], out, options(strength=False))
    return out


def request(data: Path, out: Path, algorithm: str = "l-bfgs") -> Request:
    """A request in which rprop chooses its iteration on inner rows."""
    config = replace(CONFIG, patience=None) if algorithm == "rprop" else CONFIG
    if algorithm in ("boosting", "majority"):
        config = TrainConfig()
    pattern = find_pattern("thesis")
    return Request(data, out, ("random",), ("flop",), algorithms=(algorithm,), pattern=pattern, config=config)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory) -> dict[str, dict[str, str]]:
    """Bundles trained in this process, by algorithm."""
    folder = tmp_path_factory.mktemp("trained")
    found = {}
    for algorithm in ("l-bfgs", "sgd-l1", "rprop"):
        train_bundles(request(data, folder / algorithm, algorithm))
        found[algorithm] = contents(folder / algorithm)
    return found


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """Two worker processes."""
    with connect("local:2") as cluster:
        assert cluster is not None
        yield cluster


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of dask, started by hand."""
    command = [sys.executable, "-m", "dask", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def by_hand(folder: Path, *worker_options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and two workers of one thread as a user starts them; its address, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            started("scheduler", "--host", address, "--dashboard-address", "127.0.0.1:0", "--no-jupyter")
        )
        for _ in range(2):
            words = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(folder), *worker_options)
            stack.enter_context(started("worker", address, *words))
        yield address, scheduler


def test_an_address_of_local_names_workers_and_memory():
    assert parse_local("local:3,memory=500MB") == (3, 500_000_000)
    assert parse_local("localhost:8786") is None
    for wrong in ("local:x", "local:2,memory=3"):
        with pytest.raises(PipelineError, match="scheduler's address"):
            parse_local(wrong)
    for beyond in ("local:0", "local:99999999999", "local:1,memory=0GB", "local:1,memory=1kB"):
        with pytest.raises(PipelineError, match="1 to 1000 workers, of 200MB or more"):
            parse_local(beyond)


def test_without_a_cluster_dask_is_never_imported(logs, tmp_path):
    code = """
import sys
from pipeline.cli.main import main
logs, out = sys.argv[1:]
main(["ingest", logs, "--out", f"{out}/rows", "--no-strength", "--json"])
train = ["train", "--data", f"{out}/rows", "--agent", "random", "--street", "flop", "--max-iterations", "2"]
main([*train, "--pattern", "thesis", "--out", f"{out}/bundle", "--quiet"])
main(["evaluate", "--data", f"{out}/rows", f"{out}/bundle", "--json"])
main(["match", "@call", "@random", "--hands", "20", "--json"])
assert not {"dask", "distributed", "fsspec"} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(logs), str(tmp_path)], check=True, capture_output=True)


def test_without_the_extra_its_name_is_said(tmp_path):
    code = "import sys; sys.modules['distributed'] = None; from pipeline.cli.main import main; main(sys.argv[1:])"
    words = ["ingest", str(tmp_path), "--out", str(tmp_path / "rows"), "--cluster", "local:1"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "[cluster]'" in done.stderr


def test_an_interruption_ends_the_workers_too(tmp_path):
    """Ctrl-C goes to all processes of a terminal: no traceback, nobody left behind, nothing half-written."""
    words = ["match", "@equity", "@equity", "--hands", "2000000", "--cluster", "local:2", "--log", "m.log"]
    command = [sys.executable, "-m", "pipeline", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    while "dashboard" not in said:
        said = process.stderr.readline()
        assert said
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stderr.read()  # ends when the last process that has it is gone
    assert process.wait() == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert not list(tmp_path.iterdir())


def test_no_scheduler_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr("pipeline.runtime.dask_cluster.CONNECT_SECONDS", 1)
    odd = ("tls://127.0.0.1:9", "ucx://127.0.0.1:9", "inproc://x", "tcp://127.0.0.1:x", "tcp://[::1:9", "", "\udcff:1")
    for address in ("tcp://127.0.0.1:9", *odd):
        with pytest.raises(PipelineError, match="no scheduler answers at " + re.escape(address)), connect(address):
            pass
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(PipelineError, match="does not speak as a scheduler does"), connect(address):
            pass


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_cluster_ingests_and_trains_to_the_same_bytes(workers, logs, data, trained, tmp_path):
    parts = plan_parts(replace(request(data, tmp_path), game=GAME.name), (1,), 3)
    assert len(parts) >= 4
    with connect(f"local:{workers}") as cluster:
        ingest([logs], tmp_path / "rows", options(strength=False), cluster=cluster)
        assert contents(tmp_path / "rows") == contents(data)
        for algorithm, wanted in trained.items():
            train_bundles(request(data, tmp_path / algorithm, algorithm), cluster=cluster)
            assert contents(tmp_path / algorithm) == wanted


def test_logs_behind_urls_are_read_here_and_on_workers(two, logs, tmp_path):
    url = logs.resolve().as_uri()
    summary = ingest([url], tmp_path / "there", options(strength=False), cluster=two)
    ingest([f"{url}/*.log"], tmp_path / "here", options(strength=False))
    assert summary.files == 12
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    again = ingest([url], tmp_path / "there", options(strength=False), cluster=two)
    assert (again.new, again.unchanged) == (0, 12)
    with pytest.raises(PipelineError, match="no file or folder 'file:///nowhere'"):
        ingest(["file:///nowhere"], tmp_path / "no")


def killed(cluster: Cluster) -> None:
    """Kill one of the workers as a lack of memory would."""
    os.kill(sorted(cluster.client.run(os.getpid).values())[0], signal.SIGKILL)


@pytest.mark.long
def test_a_killed_worker_costs_an_ingest_nothing(logs, data, tmp_path):
    with connect("local:2") as cluster:
        kills: list[int] = []

        def progress(hands: int, total: int) -> None:
            if not kills:
                kills.append(hands)
                killed(cluster)

        ingest([logs], tmp_path / "rows", options(strength=False), cluster=cluster, progress=progress)
        assert 0 < kills[0] < 2400
    assert contents(tmp_path / "rows") == contents(data)


@pytest.mark.long
def test_a_killed_worker_costs_a_training_nothing(data, trained, tmp_path):
    with connect("local:2") as cluster:

        def watch(street: str, algorithm: str, step) -> None:
            if step.iteration == 2:
                killed(cluster)

        train_bundles(request(data, tmp_path / "bundle"), Callbacks(watch), cluster=cluster)
    assert contents(tmp_path / "bundle") == trained["l-bfgs"]


@pytest.mark.long
def test_workers_by_hand_train_and_a_lost_scheduler_is_a_sentence(data, trained, tmp_path):
    out = tmp_path / "bundle"
    with by_hand(tmp_path) as (address, scheduler):
        with connect(address) as cluster:
            cluster.client.wait_for_workers(2)
            train_bundles(request(data, tmp_path / "whole"), cluster=cluster)
            assert contents(tmp_path / "whole") == trained["l-bfgs"]

            def watch(street: str, algorithm: str, step) -> None:
                if step.iteration == 3:
                    scheduler.kill()
                    scheduler.wait()

            with pytest.raises(PipelineError, match=f"the cluster at {address} is gone"):
                train_bundles(request(data, out), Callbacks(watch), cluster=cluster)
        assert not out.exists()
    steps: list[int] = []
    train_bundles(request(data, out), Callbacks(lambda street, algorithm, step: steps.append(step.iteration)))
    assert steps[0] > 1  # it went on from the checkpoint
    assert contents(out) == trained["l-bfgs"]
    assert not list(tmp_path.glob(".bundle*"))


def test_a_scheduler_lost_among_the_results_of_a_map_is_a_sentence(tmp_path, monkeypatch):
    with by_hand(tmp_path, "--no-nanny") as (address, scheduler), connect(address) as cluster:
        monkeypatch.setattr(cluster.client, "_timeout", 1)  # for which it tries to connect again

        def lose(_: int) -> None:
            scheduler.kill()
            scheduler.wait()

        with pytest.raises(PipelineError, match=f"the cluster at {address} is gone"):
            cluster.map(abs, list(range(3000)), progress=lose)


def test_nobody_waits_for_workers_that_are_gone_or_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.runtime.dask_cluster.GUARD_SECONDS", 0.2)
    monkeypatch.setattr("pipeline.runtime.dask_cluster.ANSWER_SECONDS", 3)
    with by_hand(tmp_path, "--no-nanny") as (address, _):
        with connect(address) as cluster:
            cluster.client.wait_for_workers(2)
            numbers = list(cluster.client.run(os.getpid).values())
        os.kill(numbers[0], signal.SIGSTOP)
        with pytest.raises(PipelineError, match="does not answer: end it or start it again"), connect(address):
            pass
        os.kill(numbers[0], signal.SIGCONT)
        with connect(address) as cluster:

            def lose(_: int) -> None:
                for number in numbers:
                    with suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)

            with pytest.raises(PipelineError, match="lost its workers: start some"):
                cluster.map(abs, list(range(3000)), progress=lose)


@pytest.mark.long
def test_workers_that_end_again_and_again_end_the_work(tmp_path):
    again = pytest.raises(PipelineError, match="were lost again and again")
    with by_hand(tmp_path) as (address, _), connect(address) as cluster, again:
        cluster.map(os._exit, [1])


def test_a_worker_without_room_for_its_rows_says_so(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(PipelineError, match=r"cannot keep its rows in .*File too large"):
            StoredArrays({"a": np.zeros(1_000_000)}, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    kept = {"a": np.arange(6.0).reshape(2, 3), "none": np.zeros((0, 3)), "one": np.array(5, np.int32)}
    stored = StoredArrays(kept, tmp_path)
    with stored.opened() as arrays:
        assert all(np.array_equal(arrays[name], array) for name, array in kept.items())
    del stored
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_scheduler_lost_in_a_match_is_one_sentence(tmp_path):
    """Nothing of dask's own log, no traceback, nothing half-written."""
    from distributed import Client

    for name in ("scratch", "played"):
        (tmp_path / name).mkdir()
    with by_hand(tmp_path / "scratch") as (address, scheduler):
        words = ["match", "@equity", "@equity", "--hands", "2000000", "--log", "m", "--cluster", address]
        command = [sys.executable, "-m", "pipeline", *words]
        process = subprocess.Popen(command, cwd=tmp_path / "played", stderr=subprocess.PIPE, text=True)
        with Client(address) as watching:
            watching.wait_for_workers(2)
            while not any(watching.processing().values()):
                assert process.poll() is None
            scheduler.kill()
            assert process.stderr is not None
            lines = process.stderr.read().replace("\r", "\n").splitlines()
    said = [line for line in lines if line.strip() and not line.startswith(("match ", "cluster: "))]
    assert process.wait() == 1
    assert len(said) == 1
    assert said[0].startswith(f"error: the cluster at {address} is gone")
    assert not list((tmp_path / "played").iterdir())


def test_a_worker_of_another_version_is_refused(tmp_path):
    (tmp_path / "older.py").write_text(
        "import pipeline.runtime.version\npipeline.runtime.version.__version__ = '0.0.1'\n"
    )
    with (
        by_hand(tmp_path, "--preload", str(tmp_path / "older.py"), "--no-nanny") as (address, _),
        pytest.raises(PipelineError, match=r"acpc-pipeline 0\.0\.1, here is"),
        connect(address),
    ):
        pass


def test_weights_are_sent_sparse_once_most_of_them_are_zero():
    weights = np.random.default_rng(3).normal(size=(4_000, 3))
    assert PackedWeights.of(weights).places is None
    pruned = np.where(np.abs(weights) > 2, weights, 0)
    sent = PackedWeights.of(pruned)
    assert len(pickle.dumps(sent)) < pruned.nbytes / 10
    for packed, wanted in ((PackedWeights.of(weights), weights), (sent, pruned)):
        assert np.array_equal(packed.unpack(), wanted)


def threads_here(_: int) -> tuple[int, list[int]]:
    """Of numba, and of every library of linear algebra that is loaded."""
    return numba.get_num_threads(), [pool["num_threads"] for pool in threadpool_info()]


def test_a_task_uses_one_thread(two):
    found = two.map(threads_here, range(4))
    assert {count for numbas, others in found for count in (numbas, *others)} == {1}


def test_what_no_cluster_can_train_is_refused(two, data, tmp_path):
    with pytest.raises(PipelineError, match="boosting needs all rows in one place"):
        train_bundles(request(data, tmp_path / "no", "boosting"), cluster=two)
    assert not (tmp_path / "no").exists()


def test_a_match_is_the_same_on_a_cluster(two, tmp_path):
    texts = ["@equity", "@random"]
    agents = [resolve(text, GAME) for text in texts]
    played = []
    for where, table in (("here", 2), ("there", ClusterTable.of(two, texts) or 0)):
        log = tmp_path / where / "m.log"
        match = play_match(agents, GAME, hands=9000, seed=4, adjusted=True, log=log, probabilities=True, workers=table)
        played.append((match.payoffs.tobytes(), match.adjusted.tobytes(), contents(tmp_path / where)))
    assert played[0] == played[1]


def test_whoever_learns_from_hand_to_hand_plays_here(two):
    texts = ["@bearl", "@call"]
    found = [
        play_match([resolve(text, GAME) for text in texts], GAME, hands=900, workers=table).payoffs.tolist()
        for table in (2, ClusterTable.of(two, texts) or 0)
    ]
    assert found[0] == found[1]


def test_models_have_the_same_scores_on_a_cluster(two, data, tmp_path):
    for algorithm in ("l-bfgs", "majority"):
        train_bundles(request(data, tmp_path / algorithm, algorithm))
    texts = [str(tmp_path / "l-bfgs"), str(tmp_path / "majority"), "@random"]
    found = [evaluate_models(data, texts, Scope(agents=["random"]), cluster=where) for where in (None, two)]
    tables = [
        json.dumps([score.json() for row in one.scored for model in row for score in model.scores]) for one in found
    ]
    assert tables[0] == tables[1]
    assert found[0].pairs == found[1].pairs


def test_the_solver_comes_as_near_an_equilibrium_on_a_cluster(two):
    solver = BucketSolver(LAYOUT, deal_leduc, seed=2)
    run_on_cluster(solver, 20, ClusterWorkers(two, leduc_dealer, ()))
    assert solver.chunks == 20
    assert exploitability(solver.strategy()) < 0.06  # as two threads do


def projected_leduc(strategy: np.ndarray) -> np.ndarray:
    """A strategy of the small game over the buckets of `LAYOUT`, which are its cards."""
    ours, exact = rows_of_leduc()
    out = np.zeros((LAYOUT.rows, 3), np.float32)
    out[ours] = strategy[exact]
    return out


@pytest.mark.parametrize("hands", [0.75, 1.0])
def test_a_counter_found_on_a_cluster_is_the_exact_one(two, hands):
    """Restricted Nash and best response: as near as test_counter finds in one process, starting from an equilibrium."""
    solved = ExactSolver(LEDUC)
    solved.run(1_000)
    model, (ours, exact) = random_strategy(LEDUC, seed=5), rows_of_leduc()
    learning = SharedLearning(tuple(np.arange(size) for size in LAYOUT.sizes), projected_leduc(solved.strategy()))
    belief = Belief(projected_leduc(model), hands)
    where = ClusterWorkers(two, leduc_dealer, ())
    answer = respond_in_buckets(LAYOUT, deal_leduc, belief, deals=60 * CHUNK, learning=learning, workers=where).strategy
    strategy = np.zeros_like(model)
    strategy[exact] = answer[ours]
    wanted = respond(LEDUC, Belief(model, hand_share=hands))
    assert winnings(LEDUC, strategy, model) == pytest.approx(wanted.winnings, abs=0.02)
    if hands < 1:
        assert solved.exploitability(strategy) == pytest.approx(wanted.exploitability, abs=0.04)


def test_a_small_game_is_countered_here_whatever_the_cluster(tmp_path):
    words = ["counter", "--against", "@call", "--game", LEDUC.name, "--method", "best", "--json", "--out"]
    here, there = (
        CliRunner().invoke(group, [*words, str(tmp_path / name), *more], catch_exceptions=False)
        for name, more in (("here", []), ("there", ["--cluster", "local:1"]))
    )
    assert "solved exactly, in this process" in there.stderr
    assert json.loads(there.stdout) | {"out": ""} == json.loads(here.stdout) | {"out": ""}
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.long
def test_a_killed_worker_costs_a_solver_nothing():
    found = []
    for kill in (False, True):
        with connect("local:2") as cluster:
            solver = BucketSolver(LAYOUT, deal_leduc, seed=2)
            run_on_cluster(solver, 8, ClusterWorkers(cluster, leduc_dealer, ()))
            if kill:
                killed(cluster)
            run_on_cluster(solver, 24, ClusterWorkers(cluster, leduc_dealer, ()))
            found.append((solver.chunks, solver.regret.tobytes(), solver.average.tobytes()))
    assert found[0] == found[1]
