"""Batches that processes make ahead of training."""

import os
import random

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.utils import PyDataset


class Drawn(PyDataset):
    """Batches of random numbers, and of the process that made them."""

    def __init__(self, count=4, **options):
        super().__init__(**options)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        drawn = [np.random.random(), random.random(), float(pydtconv.random.uniform((1,))[0])]  # noqa: NPY002
        x = np.array([[index, os.getpid(), *drawn]] * 2)
        return x, np.zeros((2, 1))


def batches(epochs=1, **options):
    """The first rows of the batches of so many epochs."""
    pydtconv.utils.set_random_seed(7)
    stream = StreamData(Drawn(use_multiprocessing=True, **options))
    return np.array([batch.x[0] for _ in range(epochs) for batch in stream.epoch()])


def test_processes_make_the_batches_in_order_with_random_numbers_of_their_own():
    one, two = batches(2, workers=1), batches(2, workers=2)
    np.testing.assert_array_equal(one[:, 0], [0, 1, 2, 3] * 2)
    assert os.getpid() not in one[:, 1]
    np.testing.assert_array_equal(one[:, 2:], two[:, 2:])
    assert len(set(one[:, 2:].ravel().tolist())) == 8 * 3


def test_a_model_trains_on_what_processes_make_with_kernels():
    """A process is forked after threads of kernels have run, which it does not have."""

    class Resized(PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            image = np.full((2, 6, 6, 1), index, "float32")
            return pydtconv.ops.image.resize(image, (4, 4)), np.full((2, 1), index)

    found = []
    for options in {}, {"use_multiprocessing": True, "workers": 2, "max_queue_size": 1}:
        pydtconv.utils.set_random_seed(1)
        net = [pydtconv.Input((4, 4, 1)), layers.Conv2D(2, 3), layers.Flatten(), layers.Dense(1)]
        model = pydtconv.Sequential(net)
        model.compile("sgd", "mse")
        model.fit(Resized(**options), epochs=2, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_error_in_a_process_is_that_of_fit():
    class Broken(Drawn):
        def __getitem__(self, index):
            if index == 2:
                raise ValueError("no batch 2")
            return super().__getitem__(index)

    model = pydtconv.Sequential([pydtconv.Input((5,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="no batch 2"):
        model.fit(Broken(workers=2, use_multiprocessing=True), shuffle=False, verbose=0)
