"""Random operators: statistics; equal numbers in backward, on any threads and split of the batch; new ones by step."""

import numpy as np
import pytest

from pydtconv.kernels import RunState
from pydtconv.ops.random import Dropout, GaussianNoise, RandomCrop, RandomFlip
from tests.ops.harness import check_op, normal
from tests.ops.runner import Options, run_op

OPS = {
    "dropout": Dropout(0.4),
    "dropout_all": Dropout(1.0),
    "dropout_none": Dropout(0.0),
    "spatial": Dropout(0.4, (None, 1, 1, None)),
    "shared": Dropout(0.4, (1, None, None, 1)),
    "own seed": Dropout(0.4, seed=5),
    "noise": GaussianNoise(0.5),
    "flip": RandomFlip(),
    "flip_h": RandomFlip("horizontal"),
    "flip_v": RandomFlip("vertical"),
    "crop": RandomCrop(3, 4),
}


def once(op, x, dtype="float64", **run):
    return run_op(op, [x], [], [False], Options(dtype=dtype, run=RunState(**run))).y[0]


@pytest.mark.parametrize("name", OPS)
def test_gradient(name):
    check_op(OPS[name], normal(5, 7, 6, 3))


QUICK = ("dropout", "noise", "crop")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OPS]
)
def test_gradient_of_many_elements(name):
    check_op(OPS[name], normal(4, 40, 41, 5))


@pytest.mark.parametrize("name", OPS)
def test_inference(name):
    want = {"crop": lambda x: x[:, 2:5, 1:5]}.get(name, lambda x: x)
    check_op(OPS[name], normal(5, 7, 6, 3), training=False, reference=want)


@pytest.mark.parametrize("name", ["dropout", "spatial", "noise", "flip", "crop"])
def test_numbers_depend_on_seed_step_and_place_in_the_global_batch(name):
    x, op = normal(8, 7, 6, 3), OPS[name]
    first = once(op, x, seed=1, step=3)
    assert np.array_equal(first, once(op, x, seed=1, step=3))
    assert not np.array_equal(first, once(op, x, seed=2, step=3))
    assert not np.array_equal(first, once(op, x, seed=1, step=4))
    halves = [once(op, x[:3], seed=1, step=3), once(op, x[3:], seed=1, step=3, sample_offset=3)]
    assert np.array_equal(first, np.concatenate(halves))
    own = Dropout(0.5, seed=9)
    assert np.array_equal(once(own, x, seed=1), once(own, x, seed=2))


def test_dropout_keeps_the_mean():
    y = once(Dropout(0.3), np.ones((200, 1000)))
    assert set(np.unique(y)) == {0, 1 / 0.7}
    assert abs((y == 0).mean() - 0.3) < 0.005
    assert abs((y == 0).mean(0) - 0.3).max() < 0.2
    assert (once(Dropout(1.0), np.ones(50)) == 0).all()


def test_spatial_dropout_drops_whole_channels():
    y = once(OPS["spatial"], np.ones((50, 4, 4, 30)))
    assert (y == y[:, :1, :1]).all()
    assert abs((y[:, 0, 0] == 0).mean() - 0.4) < 0.06


def test_noise_is_normal():
    y = once(GaussianNoise(2.0), np.zeros((300, 1000)))
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 2) < 0.02
    assert abs((np.abs(y) < 2).mean() - 0.6827) < 0.005
    assert abs(np.corrcoef(y[:, :-1].ravel(), y[:, 1:].ravel())[0, 1]) < 0.01


def test_flips_and_crops_are_those_of_each_image():
    x = normal(400, 4, 5, 2)
    options = {"plain": x, "columns": x[:, :, ::-1], "rows": x[:, ::-1], "both": x[:, ::-1, ::-1]}
    y = once(RandomFlip(), x)
    matches = {key: (y == value).all((1, 2, 3)).mean() for key, value in options.items()}
    assert sum(matches.values()) == 1
    assert all(abs(share - 0.25) < 0.1 for share in matches.values())
    assert set(
        np.unique(
            [(y == x).all((1, 2, 3)) | (y == x[:, :, ::-1]).all((1, 2, 3)) for y in [once(RandomFlip("horizontal"), x)]]
        )
    ) == {True}
    y = once(RandomCrop(2, 3), x)
    found = {(t, k): (y == x[:, t : t + 2, k : k + 3]).all((1, 2, 3)).mean() for t in range(3) for k in range(3)}
    assert sum(found.values()) == 1
    assert all(abs(share - 1 / 9) < 0.07 for share in found.values())


def test_the_generator_is_philox():
    """Known answers of Philox4x32-10 through the bits that dropout compares: counter and key zero."""
    words = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    for word, value in enumerate(words):
        for rate, kept in (((value - 5) / 2**32, True), ((value + 5) / 2**32, False)):
            options = Options(run=RunState(seed=0, step=0), stream=0)
            y = run_op(Dropout(rate), [np.ones(64)], [], [False], options).y[0]
            assert (y[16 * word] != 0) == kept


def test_errors():
    with pytest.raises(ValueError, match=r"rate from 0 to 1, got 1.5"):
        Dropout(1.5)
    with pytest.raises(ValueError, match=r"noise_shape of 1 or the extents of \(2, 3\), got \(2, 2\)"):
        Dropout(0.5, (2, 2))(normal(2, 3))
    with pytest.raises(ValueError, match=r"at least 9 x 2 pixels, got 4 x 5"):
        RandomCrop(9, 2)(normal(1, 4, 5, 1))
    with pytest.raises(ValueError, match="got 'diagonal'"):
        RandomFlip("diagonal")
