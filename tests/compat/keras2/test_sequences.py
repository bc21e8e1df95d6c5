"""`keras.preprocessing.sequence`: every name beside the Keras that is installed."""

import importlib
import random

import numpy as np
import pytest

from pydtconv.compat.keras2 import sequences
from tests.real_keras import import_keras

WORDS = [1, 2, 0, 3, 4, 2]
SERIES = np.arange(40.0).reshape(20, 2)
CALLS = {
    "skipgrams": [
        ((WORDS, 9), {"seed": 3}), ((WORDS, 9, 2), {"categorical": True, "seed": 3}), (([], 9), {"seed": 3}),
        ((WORDS, 9, 4, 2.5), {"seed": 4}), ((WORDS, 9, 1, 0), {"shuffle": False}),
        ((WORDS, 9), {"sampling_table": np.linspace(0, 1, 9), "seed": 3}),
        ((np.array(WORDS), 9, 9), {"shuffle": False}),
    ],
    "make_sampling_table": [((10,), {}), ((1,), {}), ((30, 1e-3), {})],
    "TimeseriesGenerator": [
        ((SERIES, np.arange(20), 5), {}), ((SERIES, SERIES, 5, 2, 3), {"batch_size": 2, "reverse": True}),
        ((SERIES.tolist(), SERIES.tolist(), 4), {"start_index": 3, "end_index": 11, "batch_size": 3}),
        ((SERIES, np.arange(20), 5), {"shuffle": True, "batch_size": 6}),
        ((SERIES, np.arange(20), 6, 4, 9), {"batch_size": 1}), ((SERIES, np.arange(20), 19), {}),
    ],
    "pad_sequences": [
        (([[1, 2], [], [3, 4, 5]],), {}), (([[1, 2], [3, 4, 5]], 2, "float32"), {"value": 0.5}),
        (([[1, 2], [3, 4, 5, 6]], 3), {"padding": "post", "truncating": "post"}),
        (([["a", "b"], ["c"]],), {"dtype": object, "value": "pad"}),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def theirs():
    keras = import_keras()
    module = importlib.import_module("keras.src.legacy.preprocessing.sequence")
    return lambda name: getattr(module if hasattr(module, name) else keras.utils, name)


def drawn(function, args, kwargs):
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    found = function(*args, **kwargs)
    if hasattr(found, "end_index"):
        found = [found[i] for i in range(len(found))]
    return found, random.random()


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_every_name_is_keras(theirs, tf, name):
    own = getattr(importlib.import_module("keras.preprocessing.sequence"), name)
    for args, kwargs in CALLS[name]:
        np.testing.assert_equal(drawn(own, args, kwargs), drawn(theirs(name), args, kwargs), f"{args} {kwargs}")


def test_no_name_is_forgotten(tf):
    names = {*CALLS, "timeseries_generator_from_json"}
    assert set(dir(importlib.import_module("keras.preprocessing.sequence"))) == names


def test_the_order_follows_the_seed_of_random():
    found = drawn(sequences.skipgrams, (WORDS, 9), {})
    assert found == drawn(sequences.skipgrams, (WORDS, 9), {})
    assert found[0] != sequences.skipgrams(WORDS, 9)


def test_windows_are_written_and_read():
    made = sequences.TimeseriesGenerator(SERIES, np.arange(20), 5, start_index=2, batch_size=4, stride=2)
    again = sequences.timeseries_generator_from_json(made.to_json())
    np.testing.assert_equal([again[i] for i in range(len(again))], [made[i] for i in range(len(made))])


def test_what_is_refused():
    for call, expected in (
        (lambda: sequences.skipgrams(WORDS, 1), "vocabulary_size"),
        (lambda: sequences.TimeseriesGenerator(SERIES, [1], 3), "each of 20 times, got 1"),
        (lambda: sequences.TimeseriesGenerator(SERIES, SERIES, 20), "end_index of 20 or more"),
    ):
        with pytest.raises(ValueError, match=expected):
            call()
