"""Functions of symbolic tensors whose extents are not known: shapes as Keras infers them."""

import numpy as np
import pytest

from pydtconv import Input, KerasTensor, Model, ops

TWO = """
    add arctan2 divide divide_no_nan equal floor_divide fmax fmin fmod gcd greater greater_equal heaviside
    hypot isclose lcm less less_equal logaddexp logical_and logical_or logical_xor maximum minimum mod multiply
    nextafter not_equal power subtract true_divide
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((None, 3), (2, None), (2, 3)),
        ((None, 3, None), (2, None, None), (2, 3, None)),
        ((None, None), (None, 3), (None, 3)),
        ((None, 1, 5), (None, 4, None), (None, 4, 5)),
    ],
)
def test_broadcasting(first, second, expected):
    for name in TWO:
        dtype = "int32" if name in ("gcd", "lcm") else "float32"
        assert getattr(ops, name)(KerasTensor(first, dtype), KerasTensor(second, dtype)).shape == expected, name
    chosen = ops.where(KerasTensor(first, "bool"), KerasTensor(first), KerasTensor(second))
    assert chosen.shape == expected


def test_what_cannot_be_broadcast_is_refused_with_the_extents_that_are_not_known():
    with pytest.raises(ValueError, match=r"\(None, 3\), \(2, 4\)"):
        ops.add(KerasTensor((None, 3)), KerasTensor((2, 4)))


def test_a_model_broadcasts_what_comes():
    a, b = Input((None, 3)), Input((4, None))
    model = Model([a, b], ops.add(a, b))
    x, y = np.ones((2, 4, 3), "float32"), np.ones((2, 4, 1), "float32")
    np.testing.assert_array_equal(model([x, y]), x + y)
