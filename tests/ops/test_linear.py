"""Dense and batched matrix products against NumPy's, with and without bias and activation."""

import numpy as np
import pytest

from pydtconv import config, ops
from pydtconv.kernels import Pass, compute, find, scratch
from pydtconv.kernels.cpu import contraction, linear
from pydtconv.ops.activation import Activation
from pydtconv.ops.base import Cost, Spec
from pydtconv.ops.linear import Dense, MatMul
from tests.ops.harness import check_op, normal
from tests.reference.elementwise import ACTIVATIONS


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (33, 65, 17), (129, 31, 50)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_dense(shape, bias):
    m, k, n = shape
    arrays = [normal(m, k), normal(k, n, seed=2), *([normal(n, seed=3)] if bias else [])]
    check_op(Dense(), *arrays, reference=lambda x, w, b=0: x @ w + b)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("shape", [(8191, 9, 5), (8192, 9, 5), (8500, 40, 33), (2 * 4201, 70, 130)], ids=str)
def test_gradients_of_weights_of_many_rows(shape, dtype, tolerance):
    """Also of some of them, of rows that are a slice of wider ones, and added to what is there."""
    m, k, n = shape
    x, dy = normal(m, k + 3).astype(dtype)[:, :k], normal(m, n, seed=2).astype(dtype)
    w = np.zeros((k, n), dtype)
    kernel = find(Dense(), "cpu", dtype)
    workspace = scratch(kernel.workspace("backward", Spec((m, k), dtype), Spec((k, n), dtype)))
    expected = x.T.astype("float64") @ dy
    for start in None, 0.0, 1.0:
        dw = np.full((k, n), np.nan if start is None else start, dtype)
        p = Pass(x=[x, w], dy=[dy], dx=[None, dw], workspace=workspace, accumulate=(False, start is not None))
        kernel.backward(p)()
        np.testing.assert_allclose(dw, expected + (start or 0), rtol=0, atol=tolerance * m**0.5 * 5)
    some = np.full((k - 2, n), np.nan, dtype)
    kernel.backward_rows(Pass(x=[x, w], dy=[dy], dx=[None, some], workspace=workspace), slice(1, k - 1))()
    np.testing.assert_allclose(some, expected[1:-1], rtol=0, atol=tolerance * m**0.5 * 5)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "sigmoid", "tanh"])
def test_dense_with_activation(activation):
    for bias in ([normal(6, seed=3)], []):
        check_op(
            Dense(activation),
            normal(9, 4),
            normal(4, 6, seed=2),
            *bias,
            reference=lambda x, w, b=0: ACTIVATIONS[activation](x @ w + b),
        )


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu"])
def test_dense_keeps_what_a_smooth_activation_is_of(activation):
    given = [normal(2, 9, 4), normal(4, 40, seed=2), normal(40, seed=3)]
    z = given[0] @ given[1] + given[2]
    result = check_op(Dense(activation), *given)
    np.testing.assert_allclose(result.y[0], compute(Activation(activation), z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.saved["z"], z, rtol=1e-12)
    check_op(Dense(activation), *given[:2])


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("bias", [False, True])
def test_dense_with_residual(activation, bias):
    given = [normal(2, 9, 4), normal(4, 6, seed=2), *[normal(6, seed=3)] * bias, normal(2, 9, 6, seed=4)]

    def expected(x, w, *rest):
        y = x @ w + sum(rest)
        return np.maximum(y, 0) if activation else y

    check_op(Dense(activation, residual=True), *given, reference=expected)


@pytest.fixture
def strassen(monkeypatch):
    """A function that has all products take so many levels of Strassen's algorithm."""

    def set_levels(levels):
        for module in (linear, contraction):
            monkeypatch.setattr(module, "strassen_levels", lambda m, n, k, dtype: levels)

    return set_levels


#: m, n, k: edges of tiles, and a product of several blocks
LARGE = [(27, 33, 15), (29, 65, 130), (150, 300, 1100)]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 4e-15)])
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_dense_by_strassens_algorithm(shape, dtype, tolerance, strassen):
    """Each product beside float64, with what follows it; the same bits on any number of threads, and others than those
    of the classic product."""
    m, n, k = shape
    x, w, b, r, dy = (
        normal(*each, seed=i).astype(dtype) for i, each in enumerate([(m, k), (k, n), (n,), (m, n), (m, n)])
    )
    op = Dense("relu")
    found = {}
    for levels in (0, 1):
        strassen(levels)
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            kernel, specs = find(op, "cpu", dtype), [Spec(each.shape, dtype) for each in (x, w, b)]
            spaces = {of: scratch(kernel.workspace(of, *specs)) for of in ("forward", "backward")}
            y, dx, dw, db = np.empty_like(r), np.full_like(x, 2), np.full_like(w, 3), np.empty_like(b)
            kernel.forward(Pass(x=[x, w, b], y=[y], workspace=spaces["forward"]))()
            g = dy.copy()
            kernel.backward(
                Pass(x=[x, w, b], y=[y], dy=[g], dx=[dx, dw, db], workspace=spaces["backward"],
                     accumulate=(True, True, False))
            )()  # fmt: skip
            found.setdefault(levels, []).append(b"".join(each.tobytes() for each in (y, dx, dw, db)))
    assert len(set(found[0])) == len(set(found[1])) == 1
    assert found[0][0] != found[1][0]
    x, w, b, dy = (each.astype("float64") for each in (x, w, b, dy))
    z, terms = x @ w + b, lambda a, c: (np.abs(a) @ np.abs(c)).max()
    g = dy * (y > 0)
    assert np.abs(y - np.maximum(z, 0)).max() <= tolerance * terms(x, w)
    assert np.abs(dx - (g @ w.T + 2)).max() <= tolerance * terms(g, w.T)
    assert np.abs(dw - (x.T @ g + 3)).max() <= tolerance * terms(x.T, g)


def test_a_workspace_of_the_classic_product_has_that_one(strassen):
    a, b, c = normal(60, 40).astype("float32"), normal(40, 70, seed=2).astype("float32"), np.empty((60, 70), "float32")
    results = []
    strassen(0)
    space = scratch(linear.gemm_bytes(60, 70, 40, "float32"))
    for levels in (0, 1):
        strassen(levels)
        linear.bind_gemm(a, b, c, space)()
        results.append(c.tobytes())
    assert results[0] == results[1]
    linear.bind_gemm(a, b, c, scratch(linear.gemm_bytes(60, 70, 40, "float32")))()
    assert c.tobytes() != results[0]


@pytest.mark.parametrize("shapes", [((29, 130), (130, 65)), ((3, 30, 70), (70, 33)), ((2, 28, 40), (2, 40, 64))])
def test_matmul_by_strassens_algorithm(shapes, strassen):
    """One product, rows of several images, and a product for each of them."""
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    results = []
    for levels in (0, 1):
        strassen(levels)
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            check_op(MatMul(), *arrays, reference=lambda a, b: a @ b)
            results.append(compute(MatMul(), *arrays).tobytes())
    assert len(set(results[:3])) == len(set(results[3:])) == 1
    assert results[0] != results[3]


def test_strict_precision_has_plain_sums():
    """Of a product that is large enough: an infinity stays in its row."""
    x, w = normal(1600, 2048).astype("float32"), normal(2048, 2048, seed=2).astype("float32")
    x[5, 7] = np.inf
    config.set_conv_precision("strict")
    try:
        assert np.isfinite(compute(Dense(), x, w)[np.arange(1600) != 5]).all()
    finally:
        config.set_conv_precision("fast")
    assert not np.isfinite(compute(Dense(), x, w)[np.arange(1600) != 5]).all()


def test_dense_on_images():
    check_op(
        Dense("tanh"),
        normal(2, 3, 4, 5),
        normal(5, 6, seed=2),
        normal(6, seed=3),
        reference=lambda x, w, b: np.tanh(x @ w + b),
    )


@pytest.mark.parametrize("needs", [(True, False, False), (False, True, False), (False, False, True)], ids=str)
def test_dense_computes_the_gradients_asked_for(needs):
    check_op(Dense("relu"), normal(9, 4), normal(4, 6, seed=2), normal(6, seed=3), needs=needs)


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 3), (3, 5)),
        ((2, 4, 3), (2, 3, 5)),
        ((2, 1, 4, 3), (3, 3, 5)),
        ((4, 3), (2, 3, 5)),
        ((5, 1, 1, 3), (1, 6, 3, 1)),
    ],
    ids=str,
)
def test_matmul(shapes):
    check_op(MatMul(), normal(*shapes[0]), normal(*shapes[1], seed=2), reference=np.matmul)


@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((3,), (3, 4)), ((4, 3), (3,)), ((5, 4, 3), (3, 2)), ((2, 4, 3), (3,))], ids=str
)
def test_function_with_vectors(shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=2)
    np.testing.assert_allclose(ops.matmul(a, b), np.matmul(a, b), rtol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match=r"expected x of shape \(\.\.\., 4\) for w of shape \(4, 5\), got \(2, 3\)"):
        Dense()(normal(2, 3), normal(4, 5))
    with pytest.raises(ValueError, match=r"expected b of shape \(5,\), got \(4,\)"):
        Dense()(normal(2, 4), normal(4, 5), normal(4))
    with pytest.raises(ValueError, match=r"residual: expected False with the activation gelu"):
        Dense("gelu", residual=True)
    with pytest.raises(ValueError, match=r"expected a residual of shape \(2, 5\)"):
        Dense(residual=True)(normal(2, 4), normal(4, 5), normal(2, 4))
    with pytest.raises(ValueError, match=r"expected shapes \(\.\.\., m, k\) and \(\.\.\., k, n\)"):
        MatMul()(normal(2, 2, 3), normal(2, 4, 5))


def test_costs_are_those_of_the_products():
    x, w = Spec((2, 3, 4)), Spec((4, 5))
    assert Dense().cost("forward", x, w) == {"forward": Cost(2 * 120, 120)}
    assert Dense().cost("backward", x, w) == dict.fromkeys(("backward_data", "backward_weights"), Cost(240, 120))
    assert Dense().replay_cost(x, w) == Dense().cost("forward", x, w)
    assert Dense("gelu").replay_cost(x, w) == {}  # from what it saves
    assert MatMul().cost("backward", Spec((7, 2, 4)), w) == {"backward": Cost(4 * 280, 2 * 280)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_the_gradient_of_dense_are_those_of_backward(dtype):
    rng = np.random.default_rng(0)
    x, w, dy = (rng.normal(size=shape).astype(dtype) for shape in ((5, 37), (37, 19), (5, 19)))
    kernel, specs = find(ops.Dense(), "cpu", dtype), [Spec(x.shape, dtype), Spec(w.shape, dtype)]
    workspace = scratch(kernel.workspace("backward", *specs))
    whole, parts = np.empty_like(w), np.full_like(w, np.nan)
    kernel.backward(Pass(x=[x, None], dy=[dy], dx=[None, whole], workspace=workspace))()
    for rows in slice(0, 16), slice(16, 37):
        kernel.backward_rows(Pass(x=[x, None], dy=[dy], dx=[None, parts[rows]], workspace=workspace), rows)()
    np.testing.assert_allclose(parts, whole, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_dense_of_no_rows():
    assert compute(Dense(), np.zeros((0, 3), "float32"), np.ones((3, 2), "float32")).shape == (0, 2)
    assert compute(Dense("gelu"), np.zeros((4, 0, 3)), np.ones((3, 2)), np.ones(2)).shape == (4, 0, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradients_of_no_rows_are_zero(dtype):
    stored, real = ("uint16", "float32") if dtype == "bfloat16" else (dtype, dtype)
    x, dy, w = np.zeros((0, 3), stored), np.zeros((0, 4), stored), np.ones((3, 4), real)
    dw, db = np.full((3, 4), np.nan, real), np.full(4, np.nan, real)
    find(Dense(), "cpu", dtype).backward(Pass(x=[x, w, db], dy=[dy], dx=[None, dw, db]))()
    assert (dw == 0).all()
    assert (db == 0).all()
