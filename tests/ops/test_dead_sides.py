"""Where a piecewise function is constant the gradient is left out, for it may be infinite or NaN."""

import contextlib

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, config, layers, ops, optimizers
from pydtconv.kernels import lookup, registry
from pydtconv.ops.activation import KINDS, Activation
from tests.ops.harness import normal
from tests.ops.runner import Options, run_op

PLACES = [("cpu", "float32"), ("cpu", "float64"), ("cpu", "bfloat16"), ("host", "float32"), ("host", "float64")]
WRONG = (np.inf, -np.inf, np.nan)
everywhere = pytest.mark.parametrize(("device", "dtype"), PLACES)

# half-way points, bounds and kinks; bfloat16 holds them
GRID = np.array([*np.arange(-8, 9.0), -0.5, 0.5, 0.75, 2.5])
#: kinds that are constant nowhere; where results are rounded some seem to be
SMOOTH = {
    "sigmoid", "tanh", "exponential", "softplus", "sqrt", "reciprocal", "gelu", "gelu_tanh", "silu", "softsign",
    "elu", "mish", "log_sigmoid", "tanh_shrink", "squareplus", "square", "log", "power",
}  # fmt: skip
ACTIVATIONS = [Activation(kind) for kind in KINDS if kind not in SMOOTH] + [
    Activation("leaky_relu", 0.0),
    Activation("elu", 0.0),
    Activation("relu_general", 0.0, 2.5, 0.75),
    Activation("threshold", 0.75, 7.0),
    Activation("clip", -0.5, 2.0),
    Activation("hard_sigmoid", 0.5),
    Activation("squareplus", 0.0),
    Activation("power", 0.0),
]


@everywhere
@pytest.mark.parametrize("op", ACTIVATIONS, ids=lambda op: f"{op.kind}{op.alpha or ''}")
def test_activations(op, device, dtype):
    """Where the slope is 0 the gradient is 0, elsewhere it is as infinite as what came."""

    def gradient(value, accumulate=False):
        options = Options(dtype, device=device, accumulate=accumulate)
        return run_op(op, [GRID], [np.full_like(GRID, value)], [True], options, [np.ones_like(GRID)]).dx[0]

    flat = gradient(1.0) == 0
    assert flat.any() or op in (Activation("linear"), Activation("affine"), Activation("leaky_relu"))
    for wrong in WRONG:
        for accumulate in (False, True):
            got = gradient(wrong, accumulate)
            assert (got[flat] == accumulate).all()
            assert not np.isfinite(got[~flat]).any()


def registered(op, device):
    lookup.load(device)
    return any(
        entry.operator is type(op) and entry.device == {"host": "gpu"}.get(device, device)
        for entry in registry.entries()
    )


IMAGE, FAR = normal(2, 5, 6, 3), np.full(4, -100.0)
FUSED = [
    (lambda kind: ops.Add(kind, 0.0), (normal(3, 7), np.full((3, 7), -100.0))),
    (lambda kind: ops.Conv(2, "same", activation=kind, alpha=0.0), (IMAGE, normal(3, 3, 3, 4, seed=2), FAR)),
    (
        lambda kind: ops.Conv(1, "same", residual=True, activation=kind, alpha=0.0),
        (IMAGE, normal(3, 3, 3, 4, seed=2), FAR, normal(2, 5, 6, 4, seed=4)),
    ),
    (
        lambda kind: ops.DepthwiseConv(1, "same", activation=kind, alpha=0.0),
        (IMAGE, normal(3, 3, 3, 1, seed=2), FAR[:3]),
    ),
    (lambda kind: ops.ConvTranspose(2, activation=kind, alpha=0.0), (IMAGE, normal(3, 3, 4, 3, seed=2), FAR)),
    (lambda kind: ops.Dense(kind, 0.0), (normal(5, 6), normal(6, 4, seed=2), FAR)),
    (
        lambda kind: ops.BatchNorm(activation=kind, alpha=0.0, frozen=True),
        (IMAGE, normal(3, seed=2), FAR[:3], normal(3, seed=3), np.ones(3)),
    ),
    (
        lambda kind: ops.BatchNorm(activation=kind, alpha=0.0),
        (IMAGE, normal(3, seed=2), FAR[:3], normal(3, seed=3), np.ones(3)),
    ),
]


@everywhere
@pytest.mark.parametrize("kind", ["relu", "relu6", "leaky_relu", "hard_silu"])
@pytest.mark.parametrize("make", FUSED, ids=[type(make("relu")).__name__ for make, _ in FUSED])
def test_fused_activations(make, kind, device, dtype):
    """All results lie on the dead side."""
    make, arrays = make
    if kind == "hard_silu" and not isinstance(make("relu"), ops.BatchNorm):
        pytest.skip("fused into a normalization alone")
    op = make(kind)
    if not registered(op, device):
        pytest.skip("no kernel there")
    needs = [not (isinstance(op, ops.BatchNorm) and i > 2) for i in range(len(arrays))]
    results = run_op(op, arrays, [], [False] * len(arrays), Options(dtype, device=device)).y
    for wrong in WRONG:
        dys = [np.full(y.shape, wrong) for y in results]
        for dx in run_op(op, arrays, dys, needs, Options(dtype, device=device)).dx:
            assert dx is None or (dx == 0).all()


def test_activations_of_normalized_images():
    """Global pooling and channel attention read through a normalization and its activation."""
    for activation in ("relu", "relu6", "hard_silu"):
        i = keras.Input((4, 4, 3))
        x = layers.BatchNormalization(beta_initializer=keras.initializers.Constant(-100.0))(i)
        y = layers.GlobalAveragePooling2D()(layers.Activation(activation)(x))
        model = keras.Model(i, ops.sqrt(y))
        model.compile(optimizers.SGD(0.1), "mse")
        model.fit(normal(4, 4, 4, 3), np.ones((4, 3)), verbose=0)
        assert all(np.isfinite(w).all() for w in model.get_weights())


X = np.array([[3.0, -2.0, 1.0, 0.5], [-1.0, 2.0, -3.0, 4.0]])
#: functions of arrays and the gradient's zeros: where the gradient is finite if each result has a gradient of 1
CHOICES = {
    "maximum": (ops.maximum, [X, X[::-1].copy()]),
    "minimum": (ops.minimum, [X, X[::-1].copy()]),
    "maximum of a number": (lambda x: ops.maximum(x, 0.75), [X]),
    "minimum of a number": (lambda x: ops.minimum(0.75, x), [X]),
    "clip": (lambda x: ops.clip(x, -1, 1), [X]),
    "clip by arrays": (lambda x: ops.clip(x, -np.ones(4), np.ones(4)), [X]),
    "where": (lambda x, y: ops.where(X > 0, x, y), [X, -X]),
    "select": (lambda x, y: ops.select([X > 2, X < 0], [x, y], 0.0), [X, -X]),
    "fmax": (ops.fmax, [X, X[::-1].copy()]),
    "fmin": (ops.fmin, [X, X[::-1].copy()]),
    "fabs": (ops.fabs, [X * (X > 0)]),
    "abs": (ops.abs, [X * (X > 0)]),
    "relu": (ops.relu, [X]),
    "hard_tanh": (ops.hard_tanh, [X]),
    "max": (lambda x: ops.max(x, 1), [X]),
    "min": (lambda x: ops.min(x, (0, 1)), [X]),
    "amax": (lambda x: ops.amax(x, 0, keepdims=True), [X]),
    "median": (lambda x: ops.median(x, 0), [np.concatenate([X, X[:1]])]),
    "quantile": (lambda x: ops.quantile(x, 0.0, 1), [X]),
    "top_k": (lambda x: ops.top_k(x, 2)[0], [X]),
    "nan_to_num": (ops.nan_to_num, [np.where(X > 2, np.nan, X)]),
    "divide_no_nan": (ops.divide_no_nan, [X, X * (X > 0)]),
    "segment_max": (lambda x: ops.segment_max(x, np.array([0, 0]), 1), [X]),
    "segment_min": (lambda x: ops.segment_min(x, np.array([0, 0]), 1), [X]),
    "map_coordinates": (lambda x: ops.image.map_coordinates(x, np.array([[0.0, 1.0], [9.0, 2.0]]), 1), [X]),
    "tril": (ops.tril, [X]),
    "pad": (lambda x: ops.pad(x, ((1, 0), (0, 0))), [X]),
    "max_pool": (lambda x: ops.max_pool(ops.reshape(x, (1, 2, 4, 1)), 2, 2), [X]),
    "adaptive_max_pool": (lambda x: ops.adaptive_max_pool(ops.reshape(x, (1, 2, 4, 1)), (1, 2)), [X]),
    "hinge": (lambda x: keras.losses.hinge(np.sign(X), x), [X]),
    "squared_hinge": (lambda x: keras.losses.squared_hinge(np.sign(X), x), [X]),
    "categorical_hinge": (lambda x: keras.losses.categorical_hinge(np.eye(4)[:2], x), [3 * np.eye(4)[:2]]),
    "binary_crossentropy": (lambda x: keras.losses.binary_crossentropy(np.ones((2, 4)), x), [np.ones((2, 4))]),
    "categorical_crossentropy": (
        lambda x: keras.losses.categorical_crossentropy(np.eye(4)[:2], x),
        [np.eye(4)[:2]],
    ),
}


def _gradients(function, xs, value, nested):
    """Where nested, by the rules by which a gradient can be differentiated again."""
    xs = [np.array(x) for x in xs]
    with contextlib.ExitStack() as outer:
        if nested:
            outer.enter_context(GradientTape()).watch(xs)
        with GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return [np.asarray(dx) for dx in tape.gradient(y, xs, np.full(y.shape, value, y.dtype))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHOICES)
def test_functions(name, dtype):
    """Of arrays, by tapes: what gets nothing of a gradient of 1 gets nothing of an infinite one."""
    function, xs = CHOICES[name]
    xs = [np.asarray(x, dtype) for x in xs]
    ones = _gradients(function, xs, 1.0, False)
    assert any((dx == 0).any() for dx in ones) or name in ("tril", "pad")
    for wrong in WRONG:
        for dx, one in zip(_gradients(function, xs, wrong, False), ones, strict=True):
            np.testing.assert_array_equal(dx[one == 0], 0)
            assert not np.isfinite(dx[one != 0]).any()


#: functions whose gradient a tape inside another one writes as operators
NESTED = (
    "maximum",
    "minimum",
    "maximum of a number",
    "minimum of a number",
    "clip",
    "abs",
    "relu",
    "hard_tanh",
    "max",
    "min",
    "amax",
)


@pytest.mark.parametrize("name", NESTED)
def test_functions_by_nested_tapes(name):
    function, xs = CHOICES[name]
    for wrong in (1.0, *WRONG):
        want = _gradients(function, xs, wrong, False)
        for got, dx in zip(_gradients(function, xs, wrong, True), want, strict=True):
            np.testing.assert_array_equal(got, dx)


BOUNDS = np.array([-2, -1, -0.5, 0, 0.5, 1, 2], "float32")
TIES = {
    "clip": (lambda x: ops.clip(x, -1, 1), lambda t, x: t.clamp(x, -1, 1)),
    "clip below": (lambda x: ops.clip(x, -1, np.inf), lambda t, x: t.clamp(x, min=-1)),
    "maximum": (lambda x: ops.maximum(x, 0.5), lambda t, x: t.maximum(x, t.tensor(0.5))),
    "maximum of a number": (lambda x: ops.maximum(0.5, x), lambda t, x: t.maximum(t.tensor(0.5), x)),
    "minimum": (lambda x: ops.minimum(x, 0.5), lambda t, x: t.minimum(x, t.tensor(0.5))),
    "of tensors": (lambda x: ops.maximum(x, BOUNDS), lambda t, x: t.maximum(x, t.tensor(BOUNDS))),
    "relu": (ops.relu, lambda t, x: t.relu(x)),
    "relu6": (lambda x: ops.relu6(ops.add(x, 5.0)), lambda t, x: t.nn.functional.relu6(x + 5)),
    "max": (lambda x: ops.max(ops.abs(x)), lambda t, x: t.amax(t.abs(x))),
}


@pytest.mark.parametrize("name", TIES)
def test_at_the_bound_beside_torch(name):
    torch = pytest.importorskip("torch")
    mine, its = TIES[name]
    x = torch.tensor(BOUNDS, requires_grad=True)
    its(torch, x).sum().backward()
    for nested in (False, True):
        np.testing.assert_array_equal(_gradients(mine, [BOUNDS], 1.0, nested)[0], x.grad.numpy())


def _torch_step(torch, build, weights, x, rate):
    weights = [torch.tensor(np.asarray(w), dtype=torch.float64, requires_grad=True) for w in weights]
    build(torch, torch.tensor(x, dtype=torch.float64), *weights).mean().backward()
    return [(w - rate * w.grad).detach().numpy() for w in weights]


def _dense(i):
    return layers.Dense(6, activation="relu", bias_initializer="uniform")(layers.Flatten()(i))


def _convolution(i):
    y = layers.Conv2D(5, 3, activation="relu", bias_initializer=keras.initializers.Constant(-0.4))(i)
    return layers.Flatten()(layers.MaxPooling2D(2)(y))


def _its_convolution(t, x, w, b):
    y = t.relu(t.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), b))
    return t.nn.functional.max_pool2d(y, 2).sqrt()


MODELS = {
    "dense": (_dense, lambda t, x, w, b: t.relu(x.flatten(1) @ w + b).sqrt()),
    "convolution and pooling": (_convolution, _its_convolution),
}


@pytest.mark.parametrize("step", ["fit", "tape", "eager"])
@pytest.mark.parametrize(("device", "dtype"), [place for place in PLACES if place[1] != "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_roots_beside_torch(name, device, dtype, step):
    """The root's slope is infinite where a unit is dead."""
    torch = pytest.importorskip("torch")
    mine, its = MODELS[name]
    x = normal(4, 6, 6, 2).astype(dtype)
    config.set_floatx(dtype)
    i = keras.Input((6, 6, 2))
    model = keras.Model(i, ops.sqrt(mine(i)))
    want = _torch_step(torch, its, model.get_weights(), x, 0.1)
    assert (np.asarray(model(x)) == 0).any()
    with keras.device(device):
        model.compile(optimizers.SGD(0.1), "mae", run_eagerly=step == "eager")
        if step != "tape":
            model.fit(x, np.zeros((4, *model.output_shape[1:]), dtype), batch_size=4, verbose=0)
        else:
            with GradientTape() as tape:
                loss = keras.losses.MeanAbsoluteError()(
                    np.zeros((4, *model.output_shape[1:]), dtype), model(x, training=True)
                )
            model.optimizer.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
    for got, w in zip(model.get_weights(), want, strict=True):
        np.testing.assert_allclose(got, w, rtol=1e-4 if dtype == "float32" else 1e-9, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_roots_in_mixed_precision(name):
    i = keras.Input((6, 6, 2))
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = keras.Model(i, ops.sqrt(MODELS[name][0](i)))
    finally:
        keras.config.set_dtype_policy(policy)
    model.compile(optimizers.SGD(0.1), lambda y, p: ops.mean(p, axis=-1))
    before = model.get_weights()
    assert (model.predict(normal(4, 6, 6, 2), verbose=0) == 0).any()
    model.fit(normal(4, 6, 6, 2), np.zeros((4, 1)), verbose=0)
    for now, then in zip(model.get_weights(), before, strict=True):
        assert np.isfinite(now).all()
        assert (now != then).any()
