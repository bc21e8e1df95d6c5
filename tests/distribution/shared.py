"""Shared memory among ranks, in parts: shared [sending] PART ..."""

import resource
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils
from pydtconv.distribution.gradients import shared_memory
from pydtconv.distribution.gradients.shared_memory import NotSharedError, SeveralHostsError, shared_rows

#: of files that this rank has made
NAMES = []


def rows():
    """Which rows each rank can have, and whether the others see what it writes."""
    here = replica.current()
    try:
        found = shared_rows(here.small, 100, "float32")
    except SeveralHostsError:
        found = None
    if found is not None:
        assert not found.rows.any()
        here.meet("rows of zeros")
        found.rows[here.rank] = here.rank + 1
        here.meet("rows")
        assert (found.rows == np.arange(1, here.size + 1)[:, None]).all()
        assert len(NAMES) == (here.rank == 0)
        assert not any(Path(name).exists() for name in NAMES)
    everywhere = here.collected(found is not None, "what was found")
    print(everywhere if here.is_main else "", flush=True)


def no_room():
    """The last rank may not make files as large as they have to be: no rank has rows, and rank 0 says so once."""
    here = replica.current()
    if here.rank == here.size - 1:
        sys.dont_write_bytecode = True  # Python would keep the first part of a module
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
    with pytest.raises(NotSharedError, match=r"/dev/shm on rank \d: File too large"):
        shared_rows(here.small, 100, "float32")
    assert len(NAMES) == (here.rank == 0)
    assert not any(Path(name).exists() for name in NAMES)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 6)), rng.normal(size=(8, 3))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for name in ("first", "second"):
            model_of(name).train_on_batch(x, y)
    told = [str(warning.message) for warning in told if "gradients are sent" in str(warning.message)]
    everywhere = here.collected(len(told), "the number of warnings")
    print(f"{everywhere} {told}" if here.is_main else "", flush=True)


def model_of(name):
    utils.set_random_seed(5)
    inputs = keras.Input((6,), name=name)
    model = keras.Model(inputs, layers.Dense(3)(layers.Dense(50, activation="relu")(inputs)))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    return model


def after_an_error():
    """Steps go on right where a gradient was not finite and the error was caught."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 6)), rng.normal(size=(8, 3))
    wrong = x.copy()
    wrong[7] = np.nan
    broken, model = model_of("broken"), model_of("whole")
    for step in range(6):
        if step in (2, 4):
            with pytest.raises(FloatingPointError, match=f"on rank {replica.current().size - 1}"):
                broken.train_on_batch(wrong, y)
        broken.train_on_batch(x, y)
    for _ in range(6):
        model.train_on_batch(x, y)
    for a, b in zip(broken.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    print("after_an_error: equal" if replica.current().is_main else "", flush=True)


def turns():
    """Models that are trained in turns, and one that is alone afterwards, are what they are by themselves."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 6)), rng.normal(size=(8, 3))
    first, second, third = model_of("first"), model_of("second"), model_of("third")
    for _ in range(4):
        first.train_on_batch(x, y)
        second.train_on_batch(x, y)
    for _ in range(4):
        third.train_on_batch(x, y)
    for a, b, c in zip(first.get_weights(), second.get_weights(), third.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    distribution.set_distribution(None)
    for model in (first, third):
        for _ in range(2):
            model.train_on_batch(x, y)
    for a, b in zip(first.get_weights(), third.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    print("turns: equal", flush=True)


class Doubled(keras.optimizers.SGD):
    """With a step of its own."""

    def apply(self, store):
        store.gradients *= 2
        super().apply(store)


def own_apply():
    """An optimizer's own `apply` is called among ranks as it is by one."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 6)), rng.normal(size=(8, 3))
    models = model_of("several"), model_of("one")
    for model in models:
        model.compile(Doubled(0.1, momentum=0.9), "mse")
        for _ in range(4):
            model.train_on_batch(x, y)
        distribution.set_distribution(None)
    for a, b in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    print("own_apply: equal", flush=True)


def created(processes, create=shared_memory._created):
    """What makes files on rank 0, which notes their names."""
    NAMES.append(create(processes))
    return NAMES[-1]


def main(*parts):
    shared_memory._created = created
    options = {"check_gradients": True, "bucket_size": 0.0002, "shared_memory": "sending" not in parts}
    for part in (rows, no_room, after_an_error, turns, own_apply):
        if part.__name__ in parts:
            distribution.set_distribution(distribution.DataParallel(**options))
            part()
