"""The dtype of what each function gives for operands of every dtype, beside Keras's on all its backends.

Numbers of bfloat16 are those of float32, rounded once.
"""

import numpy as np
import pytest

import pydtconv
from pydtconv import ops, tree
from pydtconv.dtypes import FLOATING, as_bfloat16
from tests.ops.result_types import as_dtype, calls, dtypes_of, functions, keras_dtypes, table
from tests.real_keras import import_keras

KERAS = table()
#: functions of integers that are floats here; Keras cuts their fractions off (docs/guides/keras-scripts.md)
FRACTIONS = """
    adaptive_max_pool average_pool dot_product_attention image.sobel_edges layer_normalization max max_pool
    rms_normalization
""".split()  # noqa: SIM905
#: functions that refuse integers, floats, or operands of two dtypes; a backend of Keras takes them
REFUSED = ("bincount", "conv", "depthwise_conv", "unravel_index")
#: single calls: TensorFlow and JAX refuse a sign of truth values, the matrix is singular, JAX alone keeps 64 bits, and
#: targets and signals of bfloat16 beside integers
SINGLE = {
    "sign": "bool",
    "cholesky": "bool",
    "view_as_complex": "float64",
    "categorical_crossentropy": "bfloat16 ",
    "psnr": "bfloat16 bool",
}


def is_meant(name, label, wanted, got):
    if name in REFUSED:
        return "expected" in got or label == "0 float32 bfloat16"
    if name in FRACTIONS:
        return got in FLOATING and not set(wanted) & set(FLOATING)
    return name in SINGLE and SINGLE[name] in label


def different(pairs):
    found = []
    for name, function in functions(ops):
        for label, args, kwargs in calls(name, function) if name in KERAS else ():
            wanted = KERAS[name].get(label)
            if wanted is None or (label.count(" ") == 2) != pairs:
                continue
            try:
                got = dtypes_of(function(*args, **kwargs))
            except Exception as error:
                got = f"{type(error).__name__}: {error}"
            if got not in wanted and not is_meant(name, label, wanted, got):
                found.append(f"{name} {label}: expected {' or '.join(wanted)}, got {got}")
    return found


@pytest.mark.parametrize("pairs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_results_have_the_dtypes_of_keras(pairs):
    assert len(KERAS) > 250
    found = different(pairs)
    assert not found, f"{len(found)}\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_table_is_what_keras_gives():
    keras = import_keras("jax", "tensorflow")
    for name, function in functions(keras.ops):
        for label, args, kwargs in calls(name, function):
            got = keras_dtypes(keras, function, label, args, kwargs)
            assert got is None or got in KERAS[name][label], (name, label)


def test_arrays_of_bfloat16_are_computed_in_float32_and_rounded_once():
    wrong = []
    for name, function in functions(ops):
        for label, args, kwargs in calls(name, function, ["bfloat16"]):
            if label.count(" ") > 1:  # beside numbers
                continue
            try:
                got = tree.flatten(function(*args, **kwargs))
            except (TypeError, ValueError, IndexError):  # what is refused
                continue
            wide = tree.map_structure(lambda x: x.astype("float32") if dtypes_of(x) == "bfloat16" else x, args)
            for y, z in zip(got, tree.flatten(function(*wide, **kwargs)), strict=True):
                if dtypes_of(y) == "bfloat16" and not np.array_equal(y, as_bfloat16(z), equal_nan=True):
                    wrong.append((name, kwargs))
    assert not wrong


def test_numbers_beside_bfloat16_are_rounded_to_it():
    x = as_dtype(np.array([0.1, 0.3], "float32"), "bfloat16")
    assert ops.equal(x, 0.1).tolist() == [True, False]
    assert dtypes_of(ops.add(x, 0.1)) == "bfloat16"
    assert dtypes_of(ops.add(x, np.float32(0.1))) == "float32"
    assert dtypes_of(ops.cumsum(x, dtype="float32")) == dtypes_of(ops.cast(x, "float32")) == "float32"
    np.testing.assert_array_equal(pydtconv.function(lambda x: ops.multiply(x, 2))(x), x.astype("float32") * 2)


def test_short_integers_beside_truth_values_stay_short():
    pixels, mask = np.array([200, 100], "uint8"), np.array([True, False])
    assert [y.dtype.name for y in (ops.multiply(pixels, mask), ops.add(mask, pixels), ops.cumsum(pixels))] == [
        "uint8"
    ] * 3
    np.testing.assert_array_equal(ops.matmul(pixels, pixels), pixels @ pixels)
    assert ops.outer(pixels, 2).dtype == ops.matmul(np.ones(2, "int8"), np.ones(2, "int8")).dtype == "int32"
    assert ops.vander(np.array([2**24 + 1], "int64"), 2).tolist() == [[2**24 + 1, 1]]
    assert ops.nextafter(pixels, 0).dtype == ops.correlate(pixels, pixels).dtype == "float32"


SHIFTS = ("bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", *SHIFTS, "gcd", "lcm")


@pytest.mark.parametrize("name", [*BITS, "bitwise_not", "bitwise_invert"])
def test_functions_of_integers_take_no_floats(name):
    """A model of them is refused when it is made, not when it runs."""
    x = pydtconv.Input((3,), dtype="int32")
    function = getattr(ops, name)
    operands = [(x, 0.5), (float("nan"), x)] if name in BITS else [(pydtconv.Input((3,)),)]
    for given in operands:
        with pytest.raises(ValueError, match=f"{name}: expected integers, got operands of .*float32"):
            function(*given)
    assert (function(x, 3) if name in BITS else function(x)).dtype == "int32"


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace", "arange", "full"])
def test_numbers_of_elements_are_no_symbolic_tensors(name):
    """They are refused before an array is made, which may be of any size."""
    given = (10**9,) if name in ("arange", "full") else (0.0, 10**9)
    with pytest.raises(NotImplementedError, match=rf"ops\.{name}: .*here for arrays only, got <KerasTensor|<Tensor"):
        getattr(ops, name)(*given, pydtconv.Input(())) if name != "full" else ops.full(pydtconv.Input((3,)), *given)


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
def test_numbers_between_arrays_have_the_dtype_of_these(name):
    function = getattr(ops, name)
    for dtype in ("float32", "float64"):
        assert function(np.ones(2, dtype), np.full(2, 3, dtype), 3).dtype == dtype
    assert function(1, 3, 3).dtype == function(np.ones(2, "int64"), 3, 3).dtype == "float32"


def test_what_coordinates_cannot_be_is_refused_when_a_model_is_made():
    x = pydtconv.Input(batch_shape=(4, 5))
    for coordinates, order, error, told in (
        (0.5, 1, ValueError, r"coordinates: expected \(2, ...\), got shape \(\)"),
        (np.ones((3, 7)), 1, ValueError, r"coordinates: expected \(2, ...\), got shape \(3, 7\)"),
        (np.ones((2, 7)), 2, NotImplementedError, "order: expected 0 or 1, got 2"),
    ):
        with pytest.raises(error, match=told):
            ops.image.map_coordinates(x, coordinates, order)
