"""Data sets of users."""

from __future__ import annotations

import numpy as np

import pydtconv as keras


class Own(keras.utils.PyDataset):
    def __init__(self, batches):
        super().__init__()
        self.num_batches = batches

    def __len__(self):
        return self.num_batches

    def __getitem__(self, index):
        return np.full((2, 3), index, "float32"), np.zeros((2, 1), "float32")


def test_a_subclass_may_have_a_num_batches_of_its_own():
    data = Own(3)
    assert data.num_batches == len(data) == len(list(data)) == 3
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    assert model.predict(data, verbose=0).shape == (6, 1)
