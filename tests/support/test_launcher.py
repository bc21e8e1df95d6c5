"""What the environments of launchers tell, and the warning where several processes train without each other."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import distribution, replica
from pydtconv.support import launcher


@pytest.fixture
def started(monkeypatch):
    """A function of environment variables, which makes them those of a process that has just begun."""

    def start(variables):
        for name in (*sum(launcher._VARIABLES, ()), *launcher._SLURM):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(replica, "_was_set", False)
        launcher.check_apart.cache_clear()
        launcher.check_loop.cache_clear()

    yield start
    launcher.check_apart.cache_clear()
    launcher.check_loop.cache_clear()


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ({}, (1, 0)),
        ({"PMI_SIZE": "4", "PMI_RANK": "2"}, (4, 2)),
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "1"}, (3, 1)),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, (2, 1)),
        # Open MPI's mpirun in a shell that srun has started with PMI
        ({"PMI_SIZE": "1", "PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}, (4, 3)),
        # mpiexec -n 1 whose daemons srun has started
        ({"PMI_SIZE": "1", "PMI_RANK": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, (1, 0)),
    ],
)
def test_launchers(started, variables, want):
    started(variables)
    assert launcher.launched() == want


class OwnStep(keras.Model):
    def train_step(self, data):
        return super().train_step(data)


def model_of(kind=keras.Model):
    inputs = keras.Input((3,))
    model = kind(inputs=inputs, outputs=keras.layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    return model


def loop():
    model, x = model_of(), np.ones((4, 3), "float32")
    with keras.GradientTape() as tape:
        loss = keras.ops.mean(model(x, training=True))
    model.optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)


#: all that trains
WAYS = {
    "fit": lambda: model_of().fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0),
    "train_on_batch": lambda: model_of().train_on_batch(np.ones((4, 3)), np.ones((4, 2))),
    "train_step": lambda: model_of(OwnStep).fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0),
    "loop": loop,
}
MPICH, SLURM = {"PMI_SIZE": "2", "PMI_RANK": "0"}, {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}


@pytest.mark.parametrize("way", WAYS)
def test_processes_that_train_apart_are_told_once_by_the_first(started, way):
    for variables in MPICH, SLURM:
        started(variables)
        with pytest.warns(UserWarning, match=r"2 processes .* each trains a model of its own.*set_distribution"):
            WAYS[way]()
        WAYS[way]()  # where warnings are errors


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("variables", [{}, {"PMI_SIZE": "1"}, {"PMI_SIZE": "2", "PMI_RANK": "1"}], ids=str)
def test_one_process_and_the_others_say_nothing(started, way, variables):
    started(variables)
    WAYS[way]()


@pytest.mark.parametrize("way", WAYS)
def test_who_has_said_how_to_train_is_told_nothing(started, way):
    started(MPICH)
    distribution.set_distribution(None)
    WAYS[way]()


def test_what_trains_nothing_says_nothing(started):
    started(MPICH)
    model = model_of()
    model.predict(np.ones((4, 3)), verbose=0)
    model.evaluate(np.ones((4, 3)), np.ones((4, 2)), verbose=0)


def test_a_loop_that_ranks_do_not_share(started, monkeypatch):
    class Second(replica.Replica):
        size = 2

    started(MPICH)
    monkeypatch.setattr(replica, "_current", Second())
    with pytest.warns(UserWarning, match="each of 2 processes runs this training loop by itself"):
        loop()
    loop()
