"""Operators that move elements, against NumPy's."""

import itertools

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import dtypes, ops
from pydtconv.ops.base import Spec
from pydtconv.ops.shape import Cast, Concatenate, Reshape, Slice, Transpose
from tests.ops.harness import check_op, normal


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ((2, 3, 4), (2, -1), (2, 12)),
        ((2, 3, 4), (None, 4, 3), (2, 4, 3)),
        ((6,), (1, 6, 1), (1, 6, 1)),
        ((None, 3, 4), (None, -1), (None, 12)),
        ((None, 3, 4), (-1, 12), (None, 12)),
        ((None, 6), (-1, 2, 3), (None, 2, 3)),
        ((0, 3), (0, 3), (0, 3)),
        ((None, 3, 4), (-1, 4), (None, 4)),
    ],
    ids=str,
)
def test_reshape(old, new, want):
    assert Reshape(new).infer(Spec(old)).shape == want
    if None not in old:
        check_op(Reshape(new), normal(*old), reference=lambda x: x.reshape(want))


@pytest.mark.parametrize("axes", list(itertools.permutations(range(4))), ids=str)
def test_transpose(axes):
    check_op(Transpose(axes), normal(2, 3, 5, 4), reference=lambda x: x.transpose(axes))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((35, 33), None),
        ((3, 17, 19, 18), (0, 3, 1, 2)),
        ((3, 18, 17, 19), (0, 2, 3, 1)),
        ((5,), (0,)),
        ((1, 7, 1), (2, 1, 0)),
        ((2, 3, 2, 3, 4), (3, 1, 4, 0, 2)),
    ],
    ids=str,
)
def test_transpose_in_tiles(shape, axes):
    check_op(Transpose(axes), normal(*shape), reference=lambda x: x.transpose(axes))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_concatenate(axis):
    arrays = []
    for i, extent in enumerate((2, 1, 4)):
        shape = [2, 3, 4, 5]
        shape[axis] = extent
        arrays.append(normal(*shape, seed=i))
    check_op(Concatenate(axis), *arrays, reference=lambda *xs: np.concatenate(xs, axis))
    check_op(Concatenate(axis), *arrays, needs=(True, False, True))


def test_slice():
    x = normal(3, 6, 7, 5)
    check_op(Slice((0, 1, -4, 2), (None, 5, -1, 4)), x, reference=lambda x: x[:, 1:5, -4:-1, 2:4])
    check_op(Slice((1,), (-1,)), normal(5), reference=lambda x: x[1:-1])
    for mine, theirs in zip(ops.split(x, [1, 4], 2), np.split(x, [1, 4], 2), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_cast():
    x = normal(3, 4)
    assert ops.cast(x, "float32").dtype == np.float32
    assert Cast("int32")(np.array([1.7, -1.7])).tolist() == [1, -1]
    assert Cast("float32").infer(Spec((2, None), "int64")) == Spec((2, None), "float32")


def test_functions():
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(ops.stack([x, 2 * x], -1), np.stack([x, 2 * x], -1))
    np.testing.assert_array_equal(ops.stack([x, 2 * x], 1), np.stack([x, 2 * x], 1))
    np.testing.assert_array_equal(ops.moveaxis(x, 0, -1), np.moveaxis(x, 0, -1))
    np.testing.assert_array_equal(ops.moveaxis(x, (0, 1), (2, 0)), np.moveaxis(x, (0, 1), (2, 0)))
    np.testing.assert_array_equal(ops.swapaxes(x, 0, 2), x.swapaxes(0, 2))
    assert ops.squeeze(ops.expand_dims(x, 1), 1).shape == (2, 3, 4)
    assert ops.squeeze(normal(1, 3, 1)).shape == (3,)
    np.testing.assert_allclose(ops.glu(x), x[..., :2] / (1 + np.exp(-x[..., 2:])))
    np.testing.assert_array_equal(ops.pad(x, 1), np.pad(x, 1))


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1],
        np.s_[:, 1:3],
        np.s_[..., -2:],
        np.s_[1:, ..., 0],
        np.s_[:, None, -1],
        np.s_[None, ..., None],
        np.s_[0, :2, 3],
        np.s_[0, 1, 2],
        np.s_[:, :-1, ...],
        np.s_[...],
    ],
    ids=str,
)
def test_index(key):
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(ops.get_item(x, key), x[key])


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (np.s_[:, 3], IndexError, "expected -3 to 2 along axis 1, got 3"),
        (np.s_[0, 0, 0, 0], IndexError, "at most 3"),
        (np.s_[..., ...], IndexError, "one ..."),
        ("a", TypeError, "expected integers"),
        (True, TypeError, "expected integers"),
    ],
    ids=str,
)
def test_wrong_index(key, error, message):
    with pytest.raises(error, match=message):
        ops.get_item(normal(2, 3, 4), key)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_nothing_may_be_left_of_an_array(dtype):
    """Of a symbolic tensor it may not."""
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for key in (np.s_[2:], np.s_[:, 3:1], np.s_[0, 5:9], np.s_[..., :0]):
        y = ops.get_item(x, key)
        assert (y.shape, y.dtype) == (x[key].shape, x.dtype), key
    assert [part.shape for part in ops.split(x, [0, 3], axis=1)] == [(2, 0, 4), (2, 3, 4), (2, 0, 4)]
    np.testing.assert_array_equal(ops.get_item(x, np.array(1)), x[1])
    with pytest.raises(ValueError, match="nothing is left"):
        ops.get_item(keras.Input((3,)), np.s_[:, 3:])


def test_axes_that_do_not_exist_are_refused():
    x = normal(2, 3, 4)
    calls = [
        lambda: ops.moveaxis(x, 5, 0),
        lambda: ops.moveaxis(x, 0, -4),
        lambda: ops.moveaxis(x, (0, 0), (1, 2)),
        lambda: ops.moveaxis(x, (0, 1), 2),
        lambda: ops.swapaxes(x, 0, 3),
        lambda: ops.tensordot(x, x, 4),
        lambda: ops.tensordot(x, x, ([3], [0])),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="expected"):
            call()


def test_errors():
    with pytest.raises(ValueError, match=r"expected a shape of 6 elements as \(2, 3\) has, got \(4, -1\)"):
        ops.reshape(normal(2, 3), (4, -1))
    with pytest.raises(ValueError, match="differ along axis 1 alone"):
        ops.concatenate([normal(2, 3), normal(3, 3)], 1)
    with pytest.raises(ValueError, match="expected a permutation of 2 axes"):
        ops.transpose(normal(2, 3), (0, 0))
    with pytest.raises(ValueError, match="divisor of 3"):
        ops.split(normal(3), 2)


def nearest_bfloat16(value):
    """The number with 8 bits that is nearest to an integer, to even."""
    size = abs(int(value))
    shift = max(0, size.bit_length() - 8)
    kept, rest, half = size >> shift, size & ((1 << shift) - 1), 1 << shift >> 1
    kept += shift > 0 and (rest > half or (rest == half and kept % 2))
    return (-1.0 if value < 0 else 1.0) * kept * 2.0**shift


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_become_the_nearest_bfloat16(dtype):
    """Ties and their neighbours among them, which a rounding to float32 on the way would make ties."""
    limits = np.iinfo(dtype)
    ties = [(2 * k + 1 << shift) + i for k in (128, 129, 255) for shift in (0, 3, 15, 16, 45, 53) for i in (-1, 0, 1)]
    random = np.random.default_rng(0).integers(limits.min, limits.max, 300, dtype, endpoint=True)
    values = [v for v in (*ties, *(-v for v in ties), *random.tolist()) if limits.min <= v <= limits.max]
    got = dtypes.from_bits(dtypes.to_bits(np.array(values, dtype))).tolist()
    assert got == [nearest_bfloat16(v) for v in values]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_models_cast_integers_to_bfloat16(dtype):
    """In a plan, to dense arrays and to channels of a larger one."""
    inputs = keras.Input((5, 6), dtype=dtype)
    short = ops.cast(inputs, "bfloat16")
    both = ops.concatenate([short, ops.cast(inputs, "bfloat16")], -1)
    x = np.random.default_rng(0).integers(0, 70000, (3, 5, 6)).astype(dtype)
    want = np.vectorize(nearest_bfloat16)(x.astype(int))
    model = keras.Model(inputs, [ops.cast(short, "float32"), ops.cast(both, "float32")])
    got = model.predict(x, verbose=0)
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], np.concatenate([want, want], -1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: ops.repeat(x, n, axis=1),
        lambda x, n: ops.rot90(x, n),
        lambda x, n: ops.roll(x, n),
        lambda x, n: ops.roll(x, n, axis=1),
        lambda x, n: ops.tile(x, n),
        lambda x, n: ops.diff(x, n),
        lambda x, n: ops.eye(n),
        lambda x, n: ops.one_hot(np.array([0, 1]), n),
        lambda x, n: ops.segment_sum(x, np.array([0, 1]), num_segments=n),
        lambda x, n: ops.top_k(x, n)[0],
    ],
)
def test_a_setting_may_be_an_array_of_one_number(call):
    x = normal(2, 3)
    np.testing.assert_array_equal(call(x, np.array(2)), call(x, 2))
