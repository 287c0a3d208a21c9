"""Running optimisers: stopping, the best so far, checkpoints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from training_rows import problem_arrays, small_corpus

from pipeline.errors import PipelineError
from pipeline.training.loop import Settings, Validation, run
from pipeline.training.objective import Problem
from pipeline.training.optimizers import OPTIMIZERS


class KilledError(Exception):
    """Stands for a process that ends."""


def held_out() -> Validation:
    ids, taken, legal = problem_arrays(seed=0)
    return Validation(ids[:100], legal[:100], taken[:100])


@pytest.mark.parametrize("algorithm", list(OPTIMIZERS))
def test_a_killed_run_goes_on_as_if_it_had_not_been_interrupted(algorithm, tmp_path):
    problem = Problem(small_corpus())
    whole = run(problem, Settings(algorithm, iterations=14), held_out())
    settings = Settings(algorithm, iterations=14, checkpoint=tmp_path / "kept", checkpoint_seconds=0.0)

    def kill(step):
        if step.iteration == 9:
            raise KilledError

    with pytest.raises(KilledError):
        run(problem, settings, held_out(), kill)
    assert settings.checkpoint.is_file()
    seen = []
    rest = run(problem, settings, held_out(), seen.append)
    assert [step.iteration for step in seen] == [9, 10, 11, 12, 13, 14]
    assert (rest.weights == whole.weights).all()
    assert [step[:5] for step in rest.steps] == [step[:5] for step in whole.steps]
    assert not settings.checkpoint.exists()


def test_a_checkpoint_of_another_problem_or_a_damaged_one_is_not_used(tmp_path):
    path = tmp_path / "kept"
    settings = Settings("rprop", iterations=5, checkpoint=path, checkpoint_seconds=0.0)
    saved = []
    run(Problem(small_corpus()), settings, watch=lambda _: path.exists() and saved.append(path.read_bytes()))
    path.write_bytes(saved[-1])
    assert len(run(Problem(small_corpus(), rho1=0.1), settings).steps) == 5
    for damaged in (b"", saved[-1][:50], b"x" * 500):
        path.write_bytes(damaged)
        plain = run(Problem(small_corpus()), replace(settings, checkpoint=None))
        assert (run(Problem(small_corpus()), settings).weights == plain.weights).all()


def test_ctrl_c_keeps_the_best_weights_so_far():
    def interrupt(step):
        if step.iteration == 8:
            raise KeyboardInterrupt

    found = run(Problem(small_corpus()), Settings("rprop"), held_out(), interrupt)
    assert found.interrupted
    assert len(found.steps) == 8
    assert found.kept == min(found.steps[:7], key=lambda step: step.log_loss)


def test_a_run_stops_when_the_objective_stands_still_or_validation_stalls():
    problem = Problem(small_corpus(), rho1=0.0, rho2=1.0)
    found = run(problem, Settings("l-bfgs"))
    assert 10 < len(found.steps) < 200
    assert found.kept == found.steps[-1]
    loose = Problem(small_corpus(), rho1=0.0, rho2=0.0)
    early = run(loose, Settings("l-bfgs", patience=5), held_out())
    assert early.kept == early.best
    assert len(early.steps) <= early.best.iteration + 5


def test_an_unknown_optimiser_is_named_with_its_nearest():
    with pytest.raises(PipelineError, match="did you mean rprop"):
        run(Problem(small_corpus()), Settings("rprp"))
