"""Every function of `keras.ops` that is here beside Keras's: names of arguments, values, dtypes, gradients."""

import inspect

import numpy as np
import pytest

import pydtconv
from pydtconv import ops, tree
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.ir.variable import Variable
from pydtconv.ops.table_op import RULES, no_gradient
from tests.ops.keras_calls import calls_of
from tests.real_keras import import_keras

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

#: functions that this file compares in a fast test; all others are slow
QUICK = "ctc_decode ctc_loss divide flip logsumexp power quantile sin take_along_axis where".split()  # noqa: SIM905
#: functions that Keras cannot differentiate on PyTorch, and one that gives labels no gradient here
NO_GRADIENTS = ("histogram", "vander", "categorical_crossentropy")
#: dtypes that differ on purpose: NumPy's indices are int32 here as on Keras's other backends
SKIPPED_DTYPES = ("searchsorted", "convert_to_tensor", "bincount", "histogram", "view_as_complex", "polar")


def functions():
    """Names that both have."""
    keras = import_keras()
    return [n for n in dir(keras.ops) if not n.startswith("_") and inspect.isfunction(getattr(keras.ops, n))]


def as_numpy(value):
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def leaves_of(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def is_float(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def on_torch(args, needs):
    import torch

    def convert(value):
        if not isinstance(value, np.ndarray):
            return value
        tensor = torch.from_numpy(np.array(value))
        return tensor.requires_grad_() if needs and is_float(value) else tensor

    return tree.map_structure(convert, args)


def our_gradients(function, args, kwargs, cotangents):
    """The gradients of sum(cotangent * y) by the float arrays among args, from a planned graph."""
    variables = []

    def variable_of(value):
        if not is_float(value):
            return value
        variables.append(Variable(value, name=f"v{len(variables)}"))
        return variables[-1]

    held = tree.map_structure(variable_of, args)
    graph = Graph(training=True)
    with graph:
        outputs = leaves_of(function(*held, **kwargs))
        parts = [ops.sum(ops.multiply(y, c)) for y, c in zip(outputs, cotangents, strict=True) if c is not None]
        total = parts[0]
        for part in parts[1:]:
            total = ops.add(total, part)
        for variable in variables:  # so that each has a gradient, be it zero
            total = ops.add(total, ops.multiply(ops.sum(ops.where(ops.isnan(variable), 0.0, variable)), 0.0))
        graph.loss = graph.outputs["loss"] = total
    memory = Memory()
    Executor(build_plan(graph), memory).run({})
    return [memory.store.gradient_of(variable) for variable in variables]


def compare(name):
    keras = import_keras()
    theirs, ours = getattr(keras.ops, name), getattr(ops, name)
    for args, kwargs in calls_of(name, theirs):
        expected = [as_numpy(y) for y in leaves_of(theirs(*on_torch(args, False), **kwargs))]
        got = [np.asarray(y) for y in leaves_of(ours(*args, **kwargs))]
        assert len(got) == len(expected), (name, kwargs)
        for y, want in zip(got, expected, strict=True):
            assert y.shape == want.shape, (name, args, kwargs)
            np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5, equal_nan=True, err_msg=f"{name} {kwargs}")
            if name not in SKIPPED_DTYPES:
                assert y.dtype.kind == want.dtype.kind, (name, y.dtype, want.dtype)
                if want.dtype.kind == "f":
                    assert y.dtype == want.dtype, (name, y.dtype, want.dtype)
        rule = RULES.get(name)
        leaves = tree.flatten(args)
        if (
            name in NO_GRADIENTS
            or not any(map(is_float, leaves))
            or (rule is not None and rule.gradient in (None, no_gradient))
        ):
            continue
        compare_gradients(name, theirs, ours, args, kwargs, expected)


def compare_gradients(name, theirs, ours, args, kwargs, expected):
    import torch

    tensors = on_torch(args, True)
    outputs = leaves_of(theirs(*tensors, **kwargs))
    rng = np.random.default_rng(3)
    cotangents = [
        rng.standard_normal(want.shape).astype("float32")
        if getattr(y, "requires_grad", False) and want.dtype.kind == "f"
        else None
        for y, want in zip(outputs, expected, strict=True)
    ]
    if all(c is None for c in cotangents):
        return
    try:
        got = our_gradients(ours, args, kwargs, cotangents)
    except (NotImplementedError, TypeError) as error:
        if "arrays" in str(error) or "an array" in str(error):  # said by name, not silently without a gradient
            return
        raise
    held = [leaf for leaf in tree.flatten(tensors) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    total = sum((y * torch.from_numpy(c)).sum() for y, c in zip(outputs, cotangents, strict=True) if c is not None)
    wanted = torch.autograd.grad(total, held, allow_unused=True)
    for gradient, want in zip(got, wanted, strict=True):
        want = np.zeros_like(gradient) if want is None else as_numpy(want)
        np.testing.assert_allclose(gradient, want, rtol=1e-3, atol=1e-4, err_msg=f"{name} {kwargs}")


@pytest.mark.parametrize("name", QUICK)
def test_some_functions(name):
    compare(name)


@pytest.mark.slow
def test_all_functions():
    missed = []
    for name in functions():
        if not hasattr(ops, name) or name in QUICK:
            continue
        try:
            compare(name)
        except Exception as error:
            missed.append(f"{name}: {type(error).__name__}: {str(error)[:400]}")
    assert not missed, f"{len(missed)}\n" + "\n".join(missed)


def test_the_place_of_the_largest_keeps_its_axes():
    x = np.array([[1.0, 5.0], [2.0, 3.0]], "float32")
    np.testing.assert_array_equal(ops.argmax(x, keepdims=True), [[1]])
    np.testing.assert_array_equal(ops.erf(np.float32(0)), 0)


def test_parts_of_a_decomposition():
    """Of which NumPy's tuples have names; signs are free."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    u, s, v = ops.svd(x, full_matrices=False)
    np.testing.assert_allclose((u * s[:, None]) @ v, x, atol=1e-5)
    assert [part.shape for part in ops.svd(x)] == [(2, 3, 3), (2, 3), (2, 4, 4)]
    square = x @ x.swapaxes(-1, -2)
    for values, vectors in ops.eigh(square), ops.linalg.eigh(square), ops.eig(square):
        np.testing.assert_allclose(square @ vectors, vectors * values[:, None], atol=1e-4)


def test_products_of_integers_are_integers():
    """Which floats would round."""
    big, one = np.array([[2**25 + 1]]), np.array([[1]], "int32")
    products = [
        ops.matmul(big, one),
        ops.dot(big, one),
        ops.einsum("ij,jk->ik", big, one),
        ops.tensordot(big, one, 1),
        ops.kron(big, one),
        ops.inner(big, one),
        ops.outer(big, one),
    ]
    assert [(y.dtype.kind, y.item()) for y in products] == [("i", 2**25 + 1)] * 7
    pixels = np.full((2, 2), 200, "uint8")
    np.testing.assert_array_equal(ops.matmul(pixels, pixels), pixels @ pixels)  # modulo 256, as in NumPy and Keras
    np.testing.assert_array_equal(ops.matmul(pixels, pixels.astype("int32")), 2 * 200 * 200)
    assert ops.matmul(pixels, np.ones((2, 2), "float32")).dtype == "float32"


def test_quantiles_beside_what_is_not_finite():
    """A neighbour that has no part in a quantile does not matter, even if it is infinite; NaN is all that is left."""
    x = np.array([[1, 2, np.inf], [-np.inf, 0, 3], [np.nan, 1, 2]], "float32")
    np.testing.assert_array_equal(ops.median(x, axis=1), [2, 0, np.nan])
    np.testing.assert_array_equal(ops.percentile(x, [0, 100], axis=1), [[1, -np.inf, np.nan], [np.inf, 3, np.nan]])
    for q in (-0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match="quantile: q: expected a number from 0 to 1"):
            ops.quantile(x, q)
    assert ops.average(x[0], weights=np.full(3, 0.5, "float32")) == np.inf


def test_what_is_like_a_tensor_does_not_depend_on_its_values():
    """Such as zeros in the place of NaN."""
    x = Variable(np.array([1, np.nan, np.inf, -2], "float32"))
    with pydtconv.GradientTape() as tape:
        y = ops.where(ops.isfinite(x), x, ops.zeros_like(x)) + ops.full_like(x, 3)
        total = ops.sum(y)
    np.testing.assert_array_equal(np.asarray(y), [4, 3, 3, 1])
    np.testing.assert_array_equal(np.asarray(tape.gradient(total, x)), [1, 0, 0, 1])


@pytest.mark.parametrize("name", ["segment_sum", "segment_max", "segment_min"])
def test_rows_of_no_segment_have_no_gradient(name):
    data = Variable(np.arange(4, dtype="float32"))
    with pydtconv.GradientTape() as tape:
        y = getattr(ops, name)(data, np.array([-1, 0, 1, 5]), 2)
        total = ops.sum(y * np.array([10, 20], "float32"))
    np.testing.assert_array_equal(np.asarray(y), [1, 2])
    np.testing.assert_array_equal(np.asarray(tape.gradient(total, data)), [0, 10, 20, 0])


@pytest.mark.parametrize("order", [1, -1, np.inf, -np.inf])
def test_norms_of_matrices_whose_columns_come_first(order):
    x = np.arange(12, dtype="float32").reshape(2, 2, 3) - 5
    wanted = np.linalg.norm(x, order, axis=(2, 1))
    np.testing.assert_allclose(ops.norm(x, order, axis=(2, 1)), wanted)
    np.testing.assert_allclose(ops.norm(x, order, axis=[-1, 1], keepdims=True)[:, 0, 0], wanted)


def test_cross_entropy_of_other_shapes_is_refused():
    """Which would be that of all pairs."""
    with pytest.raises(ValueError, match="of one shape, got"):
        ops.binary_crossentropy(np.ones(3, "float32"), np.full((3, 1), 0.5, "float32"))


@pytest.mark.parametrize("traced", [False, True])
def test_what_is_no_number_is_refused(traced):
    """Where code is traced, None among the operands ended the process."""
    x = np.ones(3, "float32")
    calls = (lambda x: ops.where(x > 0, None, x), lambda x: ops.fmax(x, None), lambda x: ops.fmax(x, [[1.0], [1.0, 2]]))
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=r"expected both x1 and x2|expected numbers|inhomogeneous"):
            (pydtconv.function(call) if traced else call)(x)


def test_shapes_of_traced_code_are_those_of_arrays():
    x = np.arange(3, dtype="float32")
    for call in (lambda x: ops.tril(x, k=1), ops.triu, lambda x: ops.top_k(x, 3)[0]):
        np.testing.assert_array_equal(np.asarray(pydtconv.function(call)(x)), call(x))
    for k in (-1, 4):
        for call in (lambda x, k=k: ops.top_k(x, k), pydtconv.function(lambda x, k=k: ops.top_k(x, k))):
            with pytest.raises(ValueError, match="top_k: k: expected 0 to 3"):
                call(x)


def test_integers_are_floats_where_code_is_traced_as_elsewhere():
    x = np.array([[1, 2, 4], [3, 0, 5]], "int32")
    for call in (ops.softmax, ops.log_softmax, ops.sparsemax, ops.layer_normalization):
        np.testing.assert_allclose(np.asarray(pydtconv.function(call)(x)), call(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool", "float32"])
def test_the_largest_come_first(dtype):
    """NaN before all, the smallest integer behind all others; of equal ones the first comes first."""
    x = np.array([[1, 0, 1, 1], [0, 1, 0, 0]]).astype(dtype)
    if dtype.startswith("int"):
        x[1, 3] = np.iinfo(dtype).min
    if dtype == "float32":
        x[1, 2] = np.nan
    values, places = ops.top_k(x, 3)
    np.testing.assert_array_equal(places, [[0, 2, 3], [2, 1, 0] if dtype == "float32" else [1, 0, 2]])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, -1))


def test_casts_stay_within_what_a_dtype_holds():
    assert ops.saturate_cast(np.array([1e20, -1e20]), "int64").tolist() == [2**63 - 1, -(2**63)]
    assert ops.saturate_cast(np.array([1e20, -1.0]), "uint64").tolist() == [2**64 - 1, 0]
    assert ops.saturate_cast(np.array([2**53 + 1, -5]), "uint64").tolist() == [2**53 + 1, 0]
    assert ops.saturate_cast(np.array([300, -5], "int16"), "uint8").tolist() == [255, 0]


def test_products_along_axes_of_other_extents_are_refused():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    with pytest.raises(ValueError, match="tensordot: expected equal extents"):
        ops.tensordot(x, x.T, 2)
    with pytest.raises(ValueError, match="vdot: expected as many elements"):
        ops.vdot(x, x[:1, :1])
    with pytest.raises(ValueError, match="norm: axis: expected one or two axes"):
        ops.norm(x[None], 2)


def test_counts_of_nothing():
    assert ops.bincount(np.zeros(0, "int32"), minlength=3).tolist() == [0, 0, 0]
    assert ops.bincount(np.zeros((2, 0), "int32"), minlength=1).tolist() == [[0], [0]]
    assert ops.bincount(np.zeros((0, 2), "int32"), minlength=1).shape == (0, 1)


def test_floats_of_two_sizes_are_the_wider_one():
    x, y = np.ones(2, "float32"), np.full(2, 1 + 1e-12)
    for function in (ops.add, ops.multiply, ops.maximum, ops.matmul, ops.dot, ops.power):
        for found in (function(x, y), function(y, x)):
            assert found.dtype == "float64", function
    assert float(ops.subtract(y, x)[0]) > 0
    assert (np.ones(2, "float32") * Variable(y, dtype="float32")).dtype == "float32"


def test_distances_and_deviations_of_zero_have_gradients_of_zero():
    """As in PyTorch; the slope of the root there is infinite."""
    calls = (ops.norm, ops.std, ops.nanstd, lambda x: ops.norm(x, axis=-1), lambda x: ops.cdist(x, x))
    for call in calls:
        x = Variable(np.ones((3, 2), "float32") * (call not in (ops.norm, calls[3])))
        with pydtconv.GradientTape() as tape:
            total = ops.sum(call(x))
        assert float(total) == 0
        np.testing.assert_array_equal(np.asarray(tape.gradient(total, x)), np.zeros((3, 2)))
    x = Variable(np.array([3, 4], "float32"))
    with pydtconv.GradientTape() as tape:
        length = ops.norm(x)
    np.testing.assert_allclose(np.asarray(tape.gradient(length, x)), [0.6, 0.8], rtol=1e-6)


def test_numbers_are_floatx():
    assert ops.sqrt(2.0).dtype == ops.exp(0.5).dtype == ops.sum(1.5).dtype == "float32"


def test_the_largest_of_gaps_alone_has_no_place():
    x = np.array([[np.nan, np.nan], [-np.inf, np.nan], [1, 2]], "float32")
    np.testing.assert_array_equal(ops.nanargmax(x, axis=1), [-1, 0, 1])
    np.testing.assert_array_equal(ops.nanargmin(x, axis=1, keepdims=True), [[-1], [0], [0]])
    assert ops.nanargmax(x[:1]) == -1
    assert ops.nanargmin(np.arange(3)) == 0
