"""Running optimisers: stopping, the best so far, checkpoints."""

from __future__ import annotations

import os
import signal

import pytest
from training_rows import problem_arrays, small_corpus

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.progress import Callbacks
from pipeline.training.config import TrainConfig
from pipeline.training.loop import Context, Interrupts, ScoredRows, minimise
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS


class KilledError(Exception):
    """Stands for a process that ends."""


def held_out() -> ScoredRows:
    ids, taken, legal = problem_arrays(seed=0)
    return ScoredRows(ids[:100], legal[:100], taken[:100])


def reporting(on_step, checkpoint, interrupts=None) -> Context:
    """A context that calls a function of each step."""
    callbacks = Callbacks(lambda street, algorithm, step: on_step(step))
    return Context(callbacks, interrupts or Interrupts(), checkpoint)


@pytest.mark.parametrize("algorithm", list(OPTIMIZERS))
def test_a_killed_run_goes_on_as_if_it_had_not_been_interrupted(algorithm, tmp_path):
    problem = Problem(small_corpus())
    config = TrainConfig(max_iterations=14, patience=0, checkpoint_seconds=0.0)
    whole = minimise(problem, algorithm, config, held_out())
    path = tmp_path / "kept"

    def kill(step):
        if step.iteration == 9:
            raise KilledError

    with pytest.raises(KilledError):
        minimise(problem, algorithm, config, held_out(), reporting(kill, path))
    assert path.is_file()
    seen = []
    rest = minimise(problem, algorithm, config, held_out(), reporting(seen.append, path))
    assert [step.iteration for step in seen] == [9, 10, 11, 12, 13, 14]
    assert (rest.weights == whole.weights).all()
    assert [step[:5] for step in rest.steps] == [step[:5] for step in whole.steps]
    again = minimise(problem, algorithm, config, held_out(), reporting(seen.append, path))
    assert len(seen) == 6
    assert (again.weights == whole.weights).all()


def test_a_checkpoint_of_another_problem_or_a_damaged_one_is_not_used(tmp_path):
    path = tmp_path / "kept"
    config = TrainConfig(max_iterations=5, patience=0, checkpoint_seconds=0.0)
    saved = []

    def keep(_):
        if path.exists():
            saved.append(path.read_bytes())

    minimise(Problem(small_corpus()), "rprop", config, context=reporting(keep, path))
    path.write_bytes(saved[-1])
    other = Problem(small_corpus(), rho1=0.1)
    assert len(minimise(other, "rprop", config, context=Context(checkpoint=path)).steps) == 5
    for damaged in (b"", saved[-1][:50], b"x" * 500):
        path.write_bytes(damaged)
        plain = minimise(Problem(small_corpus()), "rprop", config)
        found = minimise(Problem(small_corpus()), "rprop", config, context=Context(checkpoint=path))
        assert (found.weights == plain.weights).all()


@pytest.mark.parametrize("algorithm", list(OPTIMIZERS))
def test_ctrl_c_keeps_the_best_weights_so_far_and_the_run_can_go_on(algorithm, tmp_path):
    """The signal comes from outside, at any moment of an iteration; here right after one was reported."""
    problem, config, path = Problem(small_corpus()), TrainConfig(max_iterations=12, patience=0), tmp_path / "kept"

    def interrupt(step):
        if step.iteration == 8:
            os.kill(os.getpid(), signal.SIGINT)

    with Interrupts() as interrupts:
        found = minimise(problem, algorithm, config, held_out(), reporting(interrupt, path, interrupts))
    assert found.interrupted
    assert len(found.steps) == 8
    assert found.chosen == min(found.steps, key=lambda step: step.log_loss)
    rest = minimise(problem, algorithm, config, held_out(), Context(checkpoint=path))
    assert [step.iteration for step in rest.steps] == list(range(1, 13))
    assert (rest.weights == minimise(problem, algorithm, config, held_out()).weights).all()


def test_a_held_ctrl_c_waits_and_a_second_one_does_not():
    with Interrupts() as interrupts:
        with interrupts.hold():
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt), interrupts.hold():
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def compiler_error(interrupts: Interrupts) -> None:
    """What the compiler makes of a Ctrl-C."""
    with interrupts, interrupts.hold():
        os.kill(os.getpid(), signal.SIGINT)
        raise SystemError("CPUDispatcher returned a result with an exception set")


def test_a_ctrl_c_that_meets_the_compiler_is_a_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        compiler_error(Interrupts())


def test_a_run_stops_when_the_objective_stands_still_or_validation_stalls():
    problem = Problem(small_corpus(), rho1=0.0, rho2=1.0)
    found = minimise(problem, "l-bfgs", TrainConfig(patience=0))
    assert 10 < len(found.steps) < 200
    assert found.chosen == found.steps[-1]
    loose = Problem(small_corpus(), rho1=0.0, rho2=0.0)
    early = minimise(loose, "l-bfgs", TrainConfig(), held_out())
    assert early.chosen == early.best
    assert len(early.steps) <= early.best.iteration + 5


def test_an_unknown_optimiser_is_named_with_its_nearest():
    with pytest.raises(PipelineError, match="did you mean rprop"):
        minimise(Problem(small_corpus()), "rprp", TrainConfig())
