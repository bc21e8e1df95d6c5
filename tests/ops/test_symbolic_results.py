"""Functions of symbolic tensors beside the same functions of arrays: shapes of what is not known, values in models."""

import inspect
from functools import partial

import numpy as np
import pytest

from pydtconv import GradientTape, Input, KerasTensor, Model, Variable, ops, tree
from pydtconv.ops.checks import fits
from tests.models import operation_graphs

RANDOM = np.random.RandomState(3)
#: functions whose result has a shape that values decide, or that need more than shapes
REFUSED = {*operation_graphs.ARRAYS_ONLY, *operation_graphs.NONE_IN_KERAS}
#: functions of extents that have to be known: of weights, the number of results or of axes, square matrices, channels
KNOWN = {
    *"conv depthwise_conv separable_conv reshape image.map_coordinates image.perspective_transform squeeze".split(),  # noqa: SIM905
    *"associative_scan cross map scan unstack vectorized_map".split(),  # noqa: SIM905
    *"cholesky cholesky_inverse det eig eigh inv logdet solve solve_triangular slogdet".split(),  # noqa: SIM905
    *(f"image.{name}" for name in ("hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv")),
}


def symbolic(unknown, leaf):
    """For an array a tensor of its shape, with None in the place of the extents along some axes."""
    if not isinstance(leaf, np.ndarray) or not leaf.ndim:
        return leaf
    shape = [None if axis in unknown else n for axis, n in enumerate(leaf.shape)]
    return KerasTensor(shape, str(leaf.dtype))


def shapes_of(result):
    return [tuple(np.shape(leaf) if not hasattr(leaf, "shape") else leaf.shape) for leaf in tree.flatten(result)]


@pytest.mark.parametrize("axes", [(0,), (1,), tuple(range(5))], ids=str)
def test_extents_that_are_found_are_those_of_arrays(axes):
    wrong = []
    for name in sorted({*operation_graphs.names()} - REFUSED - {*operation_graphs.METHODS}):
        args, kwargs = operation_graphs.call_of(name)
        function = partial(ops.__dict__[name]) if "." not in name else getattr(ops.image, name.removeprefix("image."))
        arrays = [leaf for leaf in tree.flatten(args) if isinstance(leaf, np.ndarray) and leaf.ndim]
        if not arrays or "shape" in inspect.signature(function).parameters or name in KNOWN:
            continue
        expected = shapes_of(function(*args, **kwargs))
        held = tree.map_structure(partial(symbolic, axes), args)
        try:
            found = shapes_of(function(*held, **kwargs))
        except (TypeError, ValueError) as error:
            wrong.append(f"{name}: {error}")
            continue
        if len(found) != len(expected) or not all(map(fits, found, expected)):
            wrong.append(f"{name}: {found} for {expected}")
    assert not wrong, "\n".join(wrong)


A, B = RANDOM.rand(2, 3).astype("float32") + 0.5, RANDOM.rand(2, 3).astype("float32") + 1.5
COUNTS = RANDOM.randint(0, 24, (2, 3)).astype("int32")
IMAGES = RANDOM.rand(2, 5, 6, 2).astype("float32")
TURNS = np.tile([0.913, 0.117, 0.331, -0.219, 1.073, 0.417, 0.0, 0.0], (2, 1)).astype("float32")
CORNERS = np.tile([[0, 0], [0, 5], [4, 0], [4, 5]], (2, 1, 1)).astype("float32")
MOVED = (CORNERS + RANDOM.rand(2, 4, 2) / 2).astype("float32")
#: functions that were of arrays alone: what is computed, of which arrays, and what NumPy makes of them
VALUES = {
    "linspace": (lambda a, b: ops.linspace(a, b, 5, axis=1), (A, B), lambda a, b: np.linspace(a, b, 5, axis=1)),
    "linspace without its end": (
        lambda a, b: ops.linspace(a, b, 4, endpoint=False, retstep=True, axis=-1),
        (A, B),
        lambda a, b: np.linspace(a, b, 4, endpoint=False, retstep=True, axis=-1),
    ),
    "linspace of integers": (
        lambda a, b: ops.linspace(a, b, 4, dtype="int32", axis=1),
        (A, 9 * B),
        lambda a, b: np.linspace(a, b, 4, axis=1).astype("int32"),
    ),
    "linspace to a number": (lambda a: ops.linspace(a, 2, 3, axis=1), (A,), lambda a: np.linspace(a, 2, 3, axis=1)),
    "logspace": (
        lambda a, b: ops.logspace(a, b, 3, base=2, axis=1),
        (A, B),
        lambda a, b: np.logspace(a, b, 3, base=2, axis=1),
    ),
    "geomspace": (lambda a, b: ops.geomspace(a, b, 4, axis=1), (A, B), lambda a, b: np.geomspace(a, b, 4, axis=1)),
    "geomspace below zero": (
        lambda a, b: ops.geomspace(a, b, 4, axis=2),
        (-A, -B),
        lambda a, b: np.geomspace(a, b, 4, axis=2),
    ),
    "full_like": (lambda a, b: ops.full_like(a, b[:1]), (A, B), lambda a, b: np.broadcast_to(b[:1], a.shape)),
    "full": (lambda a: ops.full((4, 3), a[0]), (A,), lambda a: np.full((4, 3), a[0])),
    "angle": (lambda a: ops.angle(a - 1), (A,), lambda a: np.angle(a - 1)),
    "view as narrower": (lambda i: ops.view(i, "int16"), (COUNTS,), lambda i: i.view("int16")),
    "view as others": (lambda a: ops.view(a, "uint32"), (A,), lambda a: a.view("uint32")),
    "unravel_index": (lambda i: ops.unravel_index(i, (4, 6)), (COUNTS,), lambda i: np.unravel_index(i, (4, 6))),
    "unravel_index of one axis": (lambda i: ops.unravel_index(i, (24,)), (COUNTS,), lambda i: (i,)),
    "histogram": (lambda a: ops.histogram(ops.ravel(a), 4), (A,), lambda a: np.histogram(a, 4)),
    "histogram of a range": (
        lambda a: ops.histogram(ops.ravel(a), 4, (0, 1)),
        (A,),
        lambda a: np.histogram(a, 4, (0, 1)),
    ),
    "meshgrid": (lambda a, b: ops.meshgrid(a, b, indexing="ij"), (A, B), lambda a, b: np.meshgrid(a, b, indexing="ij")),
    "unique": (
        lambda i: ops.unique(i % 3, return_inverse=True, return_counts=True, size=3),
        (np.array([[4, 8, 1], [1, 3, 7]], "int32"),),
        lambda i: np.unique(i % 3, return_inverse=True, return_counts=True),
    ),
    "unique rows": (
        lambda i: ops.unique(i, axis=1, return_index=True, size=2),
        (np.array([[4, 1, 4], [1, 3, 1]], "int32"),),
        lambda i: np.unique(i, axis=1, return_index=True),
    ),
    "slice": (
        lambda x, i: ops.slice(x, i[0], (1, 2)),
        (A, np.array([[1, 1], [0, 0]], "int32")),
        lambda x, i: x[1:2, 1:3],
    ),
    "affine_transform": (ops.image.affine_transform, (IMAGES, TURNS), None),
    "perspective_transform": (ops.image.perspective_transform, (IMAGES, CORNERS, MOVED), None),
    "scale_and_translate": (
        lambda x, s, t: ops.image.scale_and_translate(x, (2, 4, 7, 2), s[0], t[0], (1, 2), "lanczos3"),
        (IMAGES, A[:, :2], B[:, :2]),
        None,
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_in_a_model(name):
    function, arrays, reference = VALUES[name]
    inputs = [Input(array.shape[1:], dtype=str(array.dtype)) for array in arrays]
    found = Model(inputs, function(*inputs)).predict_on_batch(list(arrays))
    expected = (reference or function)(*arrays)
    assert len(shapes_of(found)) == len(shapes_of(expected))
    for mine, theirs in zip(tree.flatten(found), tree.flatten(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", [name for name in VALUES if "space" in name or "transform" in name or "scale" in name])
def test_gradients(name):
    function, arrays, _ = VALUES[name]
    if "integers" in name:
        return
    wide = [array.astype("float64") for array in arrays]
    first = lambda *xs: tree.flatten(function(*xs))[0]  # noqa: E731
    weights = RANDOM.rand(*np.shape(first(*wide)))
    variables = [Variable(array, dtype="float64") for array in wide]
    with GradientTape() as tape:
        total = ops.sum(first(*variables) * weights)
    found = tape.gradient(total, variables)
    for i, (array, gradient) in enumerate(zip(wide, found, strict=True)):
        step = RANDOM.rand(*array.shape) * 1e-6
        ends = [np.sum(first(*wide[:i], array + sign * step, *wide[i + 1 :]) * weights) for sign in (1, -1)]
        np.testing.assert_allclose(np.sum(np.asarray(gradient) * step) * 2, ends[0] - ends[1], rtol=1e-3)
