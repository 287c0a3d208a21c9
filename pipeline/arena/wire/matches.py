"""Play duplicate matches over sockets, with programs that speak the ACPC protocol or players that connect themselves.

The arena (`pipeline.arena`) asks agents for probabilities; a program (`exec:./start.sh`) can only be dealt to. Here
every seating is a match of our dealer with the same seed, so that each deal is played in all seatings, and a
`MatchResult` comes out as from the arena. Programs are started anew for each seating, as the competition does, so that
none remembers the cards; agents of ours play beside them in threads, by the same client as on any dealer.

Whatever a program does, the match ends: the dealer's time limits hold, a program that ends before it has connected is
noticed at once, and every program is stopped with all it started when its match is over.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pipeline.agents.guests import Program
from pipeline.agents.protocol import Agent, Learner
from pipeline.arena.duplicate import MatchResult, distinct, seating_logs, seatings
from pipeline.arena.variance.equities import is_adjustable
from pipeline.arena.variance.estimator import adjust
from pipeline.arena.variance.records import records_of
from pipeline.arena.wire.client import MatchSummary, connect_agent
from pipeline.arena.wire.dealer import MatchPlan, listen, run_match
from pipeline.arena.wire.sockets import Limits
from pipeline.formats.acpc import Hand
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Progress, no_progress

LIMITS = Limits(response_ms=60_000, hand_ms=60_000, per_hand_ms=7_000, start_ms=60_000)
"""time limits of a program"""
MOST_ADJUSTED_HANDS = 200_000
"""hands of a match that are held in memory to take the luck of the cards out"""
EXIT_WAIT_S = 2.0
"""how long a program may take to end after its match"""


@dataclass
class _RunningProgram:
    """A program that has been started, with its error output."""

    program: Program
    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    @property
    def last_error(self) -> str:
        """Return the last line of its error output, as the end of an error message."""
        self.errors.flush()
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - 2000))
        lines = self.errors.read().decode(errors="replace").split("\n")
        message = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"; the last it said: {message[:200]!r}" if message else ""

    def check(self) -> None:
        """Raise an error if it has ended."""
        status = self.process.poll()
        if status is not None:
            raise PipelineError(f"{self.program.text} ended with status {status} before the match{self.last_error}")

    def stop(self) -> None:
        """End it, and all it has started."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(EXIT_WAIT_S)
        # the whole process group: a shell script's children outlive the shell
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def _run_program(program: Program, port: int) -> Iterator[_RunningProgram]:
    """Run a program that plays at `port`, in a process group of its own, for the time of the `with` block."""
    with tempfile.TemporaryFile() as errors:
        words = [*program.command, "127.0.0.1", str(port)]
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{error.strerror}; its first line names its interpreter, such as #!/bin/sh"
            raise PipelineError(f"{program.text}: cannot start {shlex.join(words)}: {reason}") from None
        running = _RunningProgram(program, process, errors)
        try:
            yield running
        except PipelineError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):  # a dealer notices a lost player before its end
                process.wait(0.5)
            lost = process.returncode not in (None, 0) and program.text not in str(error)
            how = f" ({program.text} ended with status {process.returncode})" if lost else ""
            raise PipelineError(f"{error}{how}{running.last_error if lost else ''}") from None
        finally:
            running.stop()


def play_duplicate(
    plan: MatchPlan,
    deal: Callable[[MatchPlan, Callable[[Hand], None], int], object],
    adjusted: bool = False,
) -> MatchResult:
    """Play a match of `plan.hands` deals in every seating.

    Parameters: `plan` has the agents' names in the first order; `deal(plan, finished, seating)` deals the match of one
    seating, its names in seat order, and gives every finished hand to `finished`; `adjusted` takes the luck of the
    cards out as well, unless there are more than `MOST_ADJUSTED_HANDS` hands, which would have to fit in memory.
    """
    began = time.perf_counter()
    order = seatings(plan.game.players)
    payoffs = np.zeros((plan.hands, *order.shape))
    is_adjusted = adjusted and is_adjustable(plan.game) and plan.hands * len(order) <= MOST_ADJUSTED_HANDS
    logged: list[list[Hand]] = [[] for _ in order]
    for seating, seats in enumerate(order.tolist()):

        def finished(hand: Hand, seating: int = seating) -> None:
            for name, won in zip(hand.names, hand.payoffs, strict=True):
                payoffs[hand.number, seating, plan.names.index(name)] = won
            if is_adjusted:
                logged[seating].append(hand)

        deal(plan._replace(names=tuple(plan.names[agent] for agent in seats)), finished, seating)
    chips = _adjusted_chips(plan.game, plan.names, logged) if is_adjusted else None
    return MatchResult(plan.game, plan.names, payoffs, time.perf_counter() - began, adjusted=chips)


def play_over_sockets(
    agents: Sequence[Agent],
    game: Game,
    *,
    hands: int,
    seed: int = 0,
    log: Path | None = None,
    limits: Limits = LIMITS,
    adjusted: bool = False,
    progress: Progress = no_progress,
) -> MatchResult:
    """Play at least `hands` hands (whole deals in all seatings) over sockets; some agents may be programs.

    `log` x or x.log gives x.0.log, x.1.log, one per seating; `adjusted` takes the luck of the cards out as well.
    """
    if len(agents) != game.players:
        raise PipelineError(f"{game.name} is for {game.players} players, not {len(agents)}: name as many agents")
    names = distinct([agent.name for agent in agents])
    by_name = dict(zip(names, agents, strict=True))
    count = len(seatings(game.players))
    deals = -(-hands // count)
    logs = seating_logs(log, count) if log is not None else ()
    for folder in {path.parent for path in logs}:
        folder.mkdir(parents=True, exist_ok=True)

    def deal(plan: MatchPlan, finished: Callable[[Hand], None], seating: int) -> None:
        _deal_seating(
            plan._replace(title=logs[seating].stem if logs else plan.title),
            [by_name[name] for name in plan.names],
            finished,
            log_file=logs[seating] if logs else None,
            progress=lambda done, total: progress(seating * total + done, count * total),
        )

    result = play_duplicate(MatchPlan(game, names, deals, seed, limits=limits), deal, adjusted)
    return replace(result, logs=logs, learning=any(isinstance(agent, Learner) for agent in agents))


def _adjusted_chips(game: Game, names: Sequence[str], hands_by_seating: list[list[Hand]]) -> npt.NDArray[Any]:
    """Return (deals, seatings, agents) net chips with the luck of the cards taken out."""
    deals = len(hands_by_seating[0])
    hands = [hands_by_seating[seating][deal] for deal in range(deals) for seating in range(len(hands_by_seating))]
    records, record_names = records_of(game, hands, np.repeat(np.arange(deals, dtype=np.uint64), len(hands_by_seating)))
    agents = np.array([names.index(name) for name in record_names])[records.seats]
    by_agent = np.take_along_axis(adjust(records), np.argsort(agents, axis=1), axis=1)
    return np.asarray(by_agent.reshape(deals, len(hands_by_seating), len(names)))


def _deal_seating(
    plan: MatchPlan,
    agents: Sequence[Agent],
    finished: Callable[[Hand], None],
    log_file: Path | None,
    progress: Progress,
) -> None:
    """Deal one seating: a dealer, programs beside it and our own agents in threads."""
    listeners = listen([0] * len(agents))
    ports = [listener.getsockname()[1] for listener in listeners]
    ours: list[Future[MatchSummary]] = []
    with contextlib.ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener)
        programs = [
            stack.enter_context(_run_program(agent, port))
            for agent, port in zip(agents, ports, strict=True)
            if isinstance(agent, Program)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(len(agents)))
        for seat, (agent, port) in enumerate(zip(agents, ports, strict=True)):
            if not isinstance(agent, Program):
                ours.append(pool.submit(_play_agent, agent, port, plan.seed + seat, plan.limits))

        def waiting() -> None:
            for running in programs:
                running.check()
            for player in ours:
                if player.done():
                    player.result()

        try:
            run_match(plan, listeners, log_file=log_file, progress=progress, finished=finished, waiting=waiting)
        except PipelineError:
            for player in ours:
                if player.done() and player.exception() is not None:
                    raise player.exception() from None  # type: ignore[misc]
            raise
        for player in ours:
            player.result()


def _play_agent(agent: Agent, port: int, seed: int, limits: Limits) -> MatchSummary:
    return connect_agent(
        agent,
        "127.0.0.1",
        port,
        seed=seed,
        response_ms=limits.response_ms,
        hand_ms=limits.hand_ms,
        per_hand_ms=limits.per_hand_ms,
    )
