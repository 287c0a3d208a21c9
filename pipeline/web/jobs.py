"""Long work in the background: one job after the other, each with its progress, its result and its error.

In go functions that take a `Progress`; pages ask for the jobs' states. One thread works, so that two long jobs do not
fight over the processors with the requests that people wait for. Requests for one player after the other must not fill
the memory: of finished jobs the least recently asked for is forgotten, and the queue is bounded.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress

log = logging.getLogger(__name__)

MOST_READY = 32
"""finished jobs whose results are kept"""
MOST_WAITING = 64
"""jobs in the queue"""


class Job:
    """A function run in the background: waiting, working, ready or failed."""

    def __init__(self, title: str, work: Callable[[Progress], Any]) -> None:
        self.title, self.work = title, work
        self.state = "waiting"
        self.done, self.total = 0, 0
        self.error = ""
        self.result: Any = None
        self.ended = threading.Event()

    def run(self) -> None:
        """Do the work; store an error as a sentence."""
        self.state = "working"
        try:
            self.result = self.work(self._progress)
            self.state = "ready"
        except PipelineError as error:
            self.error, self.state = str(error), "failed"
        except Exception:
            log.exception("%s failed", self.title)
            self.error, self.state = "something went wrong here: the terminal says what", "failed"
        finally:
            self.ended.set()

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = int(done), int(total)

    def as_dict(self) -> dict[str, Any]:
        """Return what pages show of it."""
        return {name: getattr(self, name) for name in ("title", "state", "done", "total", "error")}


class Jobs:
    """All jobs, in order."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, key: str, title: str, work: Callable[[Progress], Any], *, again: bool = False) -> Job:
        """Return the job of a key; begin it if there is none yet, or with `again` if it is ready."""
        with self._lock:
            if key not in self._jobs or (again and self._jobs[key].state == "ready"):
                self._make_room()
                self._jobs[key] = Job(title, work)
                self._queue.put(self._jobs[key])
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, daemon=True, name="background work")
                    self._thread.start()
            self._jobs.move_to_end(key)
            return self._jobs[key]

    def _make_room(self) -> None:
        """Forget the finished jobs that were asked for longest ago; refuse a job where the queue is full."""
        ended = [key for key, job in self._jobs.items() if job.ended.is_set()]
        for key in ended[: max(0, len(ended) + 1 - MOST_READY)]:
            del self._jobs[key]
        if len(self._jobs) - len(ended) >= MOST_WAITING:
            raise PipelineError("too much is waiting to be worked out: ask again when some of it is done")

    def unfinished(self) -> list[dict[str, Any]]:
        """Return the jobs that wait, work or failed."""
        with self._lock:
            return [job.as_dict() for job in self._jobs.values() if job.state != "ready"]

    def _work(self) -> None:
        while True:
            self._queue.get().run()
