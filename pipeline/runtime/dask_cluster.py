"""The only module that uses dask.distributed: work in parts on a cluster instead of in threads of this process.

In: an address (a running scheduler's, or `local[:N]` for workers on this machine) and functions of plain arguments
over parts. Out: their results in the order of the parts, whichever worker made them. Functions that can use a
cluster take a `Cluster | None`; with None dask is never imported.

A worker needs the same version of this package and of Python, which is compared at the start, and the same paths: a
shared file system. Each task uses one thread, so a worker that was given n threads runs n tasks side by side. A task
whose worker was lost is done again elsewhere; functions must not care. Whatever ends the work here (an error, Ctrl-C)
drops the tasks that have not begun. dask runs whatever code its clients send: a cluster must be trusted.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra
from pipeline.runtime.parallel import processors
from pipeline.runtime.progress import Progress, no_progress
from pipeline.runtime.version import __version__

R = TypeVar("R")
LOCAL = re.compile(r"local(?::(\d+))?(?:,memory=(\d+(?:\.\d+)?)\s*([kKMGT]i?B))?")
UNITS = {"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
MOST_WORKERS = 1_000
"""on this machine: each is a process of its own"""
LEAST_MEMORY = 200_000_000
"""of a worker, in bytes: with less it ends before its imports are complete"""
AHEAD = 3
"""tasks per thread that are under way where results are taken in order"""
CONNECT_SECONDS = 10
ATTEMPTS = 4
"""times that work is started before lost workers end it"""
GUARD_SECONDS, MOST_MISSED = 5, 6
"""seconds between looks for workers, and looks without any before waiting ends"""
MOST_LOST, MOST_PAUSED = 8, 120
"""workers that may replace lost ones, and looks at which all may have paused, while no task is finished"""
ANSWER_SECONDS = 60
"""within which every worker must answer with its version"""
PREPARED = ("pyarrow.parquet", "pandas", "pipeline.training.run", "pipeline.arena", "pipeline.evaluation")
"""imported by a worker before its first task: tasks and dask's own thread may not begin these imports side by side"""
VERSIONS = "[__import__('sys').version_info[:2], __import__('pipeline.runtime.version').runtime.version.__version__]"
"""evaluated on each worker: a text, so that it can be asked of any Python"""


def parse_local(where: str) -> tuple[int, int | None] | None:
    """Return workers and bytes of memory for each that `local[:N][,memory=SIZE]` stands for; None for an address.

    >>> parse_local("local:4"), parse_local("local:1,memory=3GB"), parse_local("tcp://10.0.0.1:8786")
    ((4, None), (1, 3000000000), None)
    """
    if not where.startswith("local") or where.startswith("localhost"):
        return None
    match = LOCAL.fullmatch(where)
    if match is None or (match[3] is not None and match[3] not in UNITS):
        raise PipelineError(f"--cluster {where}: give a scheduler's address, or local:N, or local:N,memory=3GB")
    workers = int(match[1] or processors())
    memory = None if match[2] is None else int(float(match[2]) * UNITS[str(match[3])])
    if not 1 <= workers <= MOST_WORKERS or (memory is not None and memory < LEAST_MEMORY):
        raise PipelineError(
            f"--cluster {where}: one machine has 1 to {MOST_WORKERS} workers, of {LEAST_MEMORY // 10**6}MB or more each"
        )
    return workers, memory


class LostError(PipelineError):
    """Data of tasks was lost with a worker; the cluster still runs, so the tasks can be started again."""


class Cluster:
    """A connected cluster."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self._tasks: set[Any] = set()
        self._unstable = False
        """whether workers are lost again and again, or stay without memory"""
        self._closed = threading.Event()
        threading.Thread(target=self._guard, daemon=True).start()

    # Size and address

    @property
    def threads(self) -> int:
        """Return the number of threads of all workers together."""
        with self._translate_errors():
            return max(1, sum(self.client.nthreads().values()))

    @property
    def dashboard(self) -> str:
        """Return the address of the scheduler's page."""
        return str(self.client.dashboard_link)

    # Work

    def map(
        self,
        function: Callable[..., R],
        items: Sequence[Any],
        *,
        progress: Callable[[R], object] = lambda result: None,
    ) -> list[R]:
        """Return `function(item)` of all items, on any worker; `progress` is called with each result as it comes."""
        from distributed import as_completed
        from distributed.client import CancelledError

        with self._translate_errors():
            tasks = [self.submit(function, item) for item in items]
            indices = {task: index for index, task in enumerate(tasks)}
            results: dict[int, R] = {}
            for batch in as_completed(tasks, with_results=True).batches():
                for task, result in batch:
                    if isinstance(result, CancelledError):  # given as a result where the scheduler was lost
                        raise result
                    results[indices[task]] = result
                    progress(result)
                self.release(task for task, _ in batch)
            return [results[index] for index in range(len(items))]

    def map_lazily(self, function: Callable[..., R], items: Iterable[Any]) -> Iterator[R]:
        """Yield `function(item)` of items in their order, while a few further items are under way."""
        ahead = AHEAD * self.threads
        waiting: deque[Any] = deque()
        for item in items:
            waiting.append(self.submit(function, item))
            if len(waiting) > ahead:
                yield self._take_result(waiting.popleft())
        while waiting:
            yield self._take_result(waiting.popleft())

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Start a task of one function; `options` are those of dask's `submit`. Pass it to `results` and `release`."""
        with self._translate_errors():
            # not pure: dask would take equal calls for one task, and release the result of both with the first
            task = self.client.submit(function, *arguments, pure=False, **options)
        self._tasks.add(task)
        return task

    def results(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks, brought to this process."""
        with self._translate_errors():
            results: list[Any] = self.client.gather(list(tasks))
            return results

    def wait(self, tasks: Sequence[Any], progress: Progress = no_progress) -> None:
        """Wait until tasks are finished, their results staying on the workers; the first error is raised."""
        from distributed import as_completed

        with self._translate_errors():
            for finished, task in enumerate(as_completed(tasks), start=1):
                if task.status != "finished":
                    task.result()
                progress(finished, len(tasks))

    def broadcast(self, value: Any) -> Any:
        """Return a handle on a value, to be an argument of tasks; each worker fetches it once, when a task needs it.

        It is sent to one worker and from there to others: with `broadcast=True` dask would wait for ever for a worker
        that was lost meanwhile.
        """
        with self._translate_errors():
            (sent,) = self.client.scatter([value], hash=False)
        self._tasks.add(sent)
        return sent

    def retry_when_lost(self, work: Callable[[], R], forget: Callable[[], object]) -> R:
        """Return `work()`, started again where data sent for it got lost with a worker; `forget` drops that data."""
        for _ in range(ATTEMPTS - 1):
            with suppress(LostError):
                return work()
            forget()
        return work()

    def holders(self, tasks: Sequence[Any]) -> dict[Any, str]:
        """Return the address of a worker that holds each finished task's result; lost results are left out."""
        with self._translate_errors():
            addresses: Mapping[Any, Sequence[str]] = self.client.who_has(list(tasks))
        return {task: sorted(addresses[task.key])[0] for task in tasks if addresses.get(task.key)}

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker by its address, in order of the addresses."""
        with self._translate_errors():
            return dict(sorted(self.client.nthreads().items()))

    def release(self, tasks: Iterable[Any]) -> None:
        """Forget tasks: their results may be deleted."""
        for task in tasks:
            self._tasks.discard(task)
            task.release()

    def _take_result(self, task: Any) -> Any:
        """Return a task's result and forget the task."""
        with self._translate_errors():
            result = task.result()
        self.release([task])
        return result

    # Errors and the end

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate errors of the cluster itself to sentences; dask's own errors of connections have no `errno`."""
        from distributed import KilledWorker
        from distributed.client import CancelledError

        try:
            yield
        except KilledWorker as error:
            raise PipelineError(f"{self._failure()} (over {error.task})") from None
        except (CancelledError, OSError, TimeoutError, RuntimeError) as error:
            if self._is_alive():
                if self._unstable:
                    raise PipelineError(self._failure()) from None
                if isinstance(error, CancelledError) or (isinstance(error, OSError) and error.errno is None):
                    raise LostError(f"the cluster at {self.address} lost its workers: start some") from None
                raise
            raise PipelineError(
                f"the cluster at {self.address} is gone: start its scheduler again, then run the same command "
                "(what was there before is unharmed)"
            ) from None

    def _failure(self) -> str:
        """Return the sentence for workers that are lost again and again, or stay without memory."""
        return (
            f"workers of the cluster at {self.address} were lost again and again, or stay without memory: see their "
            "logs, and give them more memory or fewer threads"
        )

    def _is_alive(self) -> bool:
        """Return whether the scheduler still answers."""
        return self._worker_states() is not None

    def _worker_states(self) -> dict[str, str] | None:
        """Ask the scheduler for the state of each worker; None if it does not answer."""
        try:
            workers = self.client.sync(self.client.scheduler.identity, callback_timeout=CONNECT_SECONDS)["workers"]
        except Exception:  # dask raises many kinds
            return None
        running = self.client.status == "running"
        return {address: str(worker["status"]) for address, worker in workers.items()} if running else None

    def _guard(self) -> None:
        """Cancel the tasks when the scheduler is silent or no worker can work; runs in a thread of its own.

        dask itself would wait for ever where no worker is left, where each one is lost and started again before it has
        taken up a task, and where all have paused because their memory is full. A waiting call then finds its tasks
        cancelled, and `_translate_errors` raises the reason.
        """
        missed, paused, tasks, most = 0, 0, 0, 0
        seen: set[str] = set()
        while not self._closed.wait(GUARD_SECONDS):
            workers = self._worker_states()
            # a task was finished or begun since the last look: the cluster moves on, so counting starts anew
            if len(self._tasks) != tasks:
                paused, tasks, most, seen = 0, len(self._tasks), 0, set()
            seen |= set(workers or ())
            most = max(most, len(workers or ()))
            missed = 0 if workers else missed + 1
            paused = paused + 1 if workers and set(workers.values()) == {"paused"} else 0
            self._unstable = len(seen) - most >= MOST_LOST or paused >= MOST_PAUSED
            if (missed < MOST_MISSED and not self._unstable) or self._closed.is_set():
                continue
            missed = 0
            with suppress(Exception):
                if workers is None:
                    # breaks the connection, so that calls which wait for the silent scheduler end with an error
                    self.client.loop.add_callback(self.client.scheduler_comm.comm.abort)
                else:
                    self.client.cancel(list(self._tasks), force=True)

    def close(self) -> None:
        """Cancel the tasks that have not begun and disconnect."""
        self._closed.set()
        with suppress(Exception):
            if self._tasks and self._is_alive():  # else cancelling would wait for ever
                self.client.cancel(list(self._tasks), force=True)
        self._tasks.clear()
        with suppress(Exception):
            self.client.close(timeout=5)


@contextmanager
def connect(where: str | None, announce: Callable[[str], object] = lambda text: None) -> Iterator[Cluster | None]:
    """Yield the cluster that `--cluster` names, None without one; `announce` is called with a line about its workers.

    Workers of `local` end with the block; a scheduler's stay.
    """
    if where is None:
        yield None
        return
    local = parse_local(where)
    distributed = import_extra("distributed")
    with _quiet_logs():
        if local is not None:
            with _local_cluster(distributed, *local) as started, distributed.Client(started) as client:
                yield from _connected(client, where, announce)
            return
        try:
            _check_scheduler(where)
            client = distributed.Client(where, timeout=CONNECT_SECONDS)
        except Exception as error:  # an address can fail in many ways: TLS without keys, a scheme without its package
            raise PipelineError(
                f"no scheduler answers at {where} ({_one_line(error)}): start one with `dask scheduler`, or give "
                "local:N for workers on this machine"
            ) from None
        yield from _connected(client, where, announce)


def _check_scheduler(where: str) -> None:
    """Raise `TimeoutError` if nothing speaks dask's protocol at an address: its client would wait for ever."""
    import asyncio

    from distributed.comm import connect as open_comm
    from distributed.security import Security
    from distributed.utils import LoopRunner

    async def handshake() -> None:
        keys = Security().get_connection_args("client")
        try:
            comm = await asyncio.wait_for(open_comm(where, timeout=CONNECT_SECONDS, **keys), 2 * CONNECT_SECONDS)
        except TimeoutError:
            raise TimeoutError("the program that listens there does not speak as a scheduler does") from None
        comm.abort()

    LoopRunner().run_sync(handshake)


def _connected(client: Any, where: str, announce: Callable[[str], object]) -> Iterator[Cluster]:
    """Yield the cluster of a client once its workers are checked and set up; close it in the end."""
    cluster = Cluster(client, where)
    try:
        _check_workers(cluster)
        with cluster._translate_errors():
            client.register_plugin(_plugin(ours=parse_local(where) is not None))
        announce(
            f"cluster: {len(cluster.workers())} workers with {cluster.threads} threads, dashboard {cluster.dashboard}"
        )
        yield cluster
    finally:
        cluster.close()


def _check_workers(cluster: Cluster) -> None:
    """Wait for the first worker; refuse workers of another version."""
    with cluster._translate_errors():
        try:
            cluster.client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise PipelineError(
                f"the cluster at {cluster.address} has no workers: start some with `dask worker {cluster.address}`"
            ) from None
        query = partial(cluster.client._run, eval, VERSIONS, on_error="return")  # as `run`, which has no time limit
        try:
            answers = cluster.client.sync(query, callback_timeout=ANSWER_SECONDS)
        except TimeoutError:
            raise PipelineError(
                f"a worker of the cluster at {cluster.address} does not answer: end it or start it again"
            ) from None
    own = [sys.version_info[:2], __version__]
    for worker, versions in sorted(answers.items()):
        if isinstance(versions, Exception):
            raise PipelineError(
                f"the worker at {worker} cannot import this package ({_one_line(versions)}): install the same version "
                "there"
            )
        if [tuple(versions[0]), versions[1]] != own:
            there = f"Python {'.'.join(map(str, versions[0]))} and acpc-pipeline {versions[1]}"
            here = f"Python {'.'.join(map(str, own[0]))} and acpc-pipeline {own[1]}"
            raise PipelineError(f"the worker at {worker} has {there}, here is {here}: install the same on both")


def _plugin(ours: bool) -> Any:
    """Return the set-up that every worker runs when it joins; workers that are `ours` ignore a terminal's Ctrl-C."""
    from distributed import WorkerPlugin

    class OneThreadPerTask(WorkerPlugin):  # type: ignore[misc]
        """Set-up of a worker: it runs as many tasks side by side as it has threads, so each task uses one."""

        name = "acpc-pipeline threads"

        def setup(self, worker: Any) -> None:
            use_one_thread()
            for module in PREPARED:
                with suppress(ImportError):
                    import_module(module)
            # Ctrl-C in a terminal reaches child processes too; only the command itself decides what it ends
            if ours and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    return OneThreadPerTask()


def use_one_thread() -> None:
    """Let numba and the libraries of linear algebra in this process use one thread each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    if "numba" not in sys.modules:  # later it cannot be changed for all threads of a process
        os.environ["NUMBA_NUM_THREADS"] = "1"
    import_module("numba").set_num_threads(1)
    with suppress(ModuleNotFoundError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


@contextmanager
def _local_cluster(distributed: Any, workers: int, memory: int | None) -> Iterator[Any]:
    """Start worker processes on this machine, one thread each."""
    options: dict[str, Any] = {} if memory is None else {"memory_limit": memory}
    own = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}  # parts are on disk
    with import_extra("dask").config.set(own):
        started = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            **options,
        )
    try:
        yield started
    finally:
        with suppress(Exception):
            started.close(timeout=5)


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep dask's own logs (some have a level of their own) off the terminal: our sentences say what matters."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    logs = [logging.getLogger(name) for name in (*names, "distributed", "asyncio", "tornado.application")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def _one_line(error: BaseException) -> str:
    """Return an error's text on one line, cut at 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__
