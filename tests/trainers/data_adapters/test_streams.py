"""Batches out of generators, data sets and loaders."""

import threading
import time

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, losses, models, optimizers
from pydtconv.utils import PyDataset, set_random_seed
from tests.trainers.small_models import XS, YS, X, Y, line


def test_generators_data_sets_and_iterables_give_the_same_run():
    def batches():
        for start in range(0, 10, 4):
            yield XS[start : start + 4, None], YS[start : start + 4, None]

    class Data(PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return list(batches())[index]

    class Loader:
        def __len__(self):
            return 3

        def __iter__(self):
            return batches()

    expected = line()
    expected.fit(XS[:, None], YS[:, None], batch_size=4, shuffle=False, epochs=2, verbose=0)
    for data in Data(), Data(workers=2), Loader():
        model = line()
        model.fit(data, shuffle=False, epochs=2, verbose=0)
        for a, b in zip(model.get_weights(), expected.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)
    model = line()
    history = model.fit(batches(), verbose=0)
    assert int(model.optimizer.iterations) == 3
    assert history.history["loss"][0] == pytest.approx(expected.history.history["loss"][0])


class _Echo(models.Sequential):
    def train_step(self, data):
        return super().train_step(data)


@pytest.mark.parametrize(("kind", "eager"), [(_Echo, False), (models.Sequential, True)])
def test_class_weights_of_streams_reach_steps_that_are_python_or_ones_own(kind, eager):
    table = {0: 1.0, 1: 4.0, 2: 0.5}
    found = []
    for data in ({"x": iter([(X, Y)])}, {"x": X, "y": Y, "batch_size": 22, "shuffle": False}):
        set_random_seed(5)
        model = kind([layers.Input((4,)), layers.Dense(3)])
        loss = losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizers.SGD(0.1), loss, weighted_metrics=["accuracy"], run_eagerly=eager)
        found.append(model.fit(**data, class_weight=table, verbose=0).history)
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="class_weight"):
        model.fit(iter([(X, Y, np.ones(22))]), class_weight=table, verbose=0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_data_set_that_stops_before_its_end_is_an_error(workers):
    class Short(PyDataset):
        rest = iter([(np.ones((2, 3)), np.ones((2, 1)))] * 3)

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return next(self.rest)

    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(RuntimeError, match="StopIteration"):
        model.fit(Short(workers=workers), verbose=0)


def test_an_error_of_data_does_not_wait_for_another_thread_that_reads():
    begun, over = threading.Event(), threading.Event()

    class Hanging(PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index == 1:
                begun.wait()
                raise OSError("the line is dead")
            if index == 2:
                begun.set()
                over.wait(10)
            return np.ones((2, 3)), np.ones((2, 1))

    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    start = time.monotonic()
    with pytest.raises(OSError, match="the line is dead"):
        model.fit(Hanging(workers=2, max_queue_size=2), verbose=0, shuffle=False)
    assert time.monotonic() - start < 8
    over.set()
