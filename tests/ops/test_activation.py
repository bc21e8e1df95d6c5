"""Every activation against its formula and finite differences; accuracy in single precision; special values."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import ops
from pydtconv.conv.activations import OF_NORMALIZED
from pydtconv.kernels import compute
from pydtconv.ops.activation import Activation, Bias
from pydtconv.ops.kinds import FUSABLE, KINDS, ROWS
from tests.ops.harness import away_from, check_op, normal
from tests.reference.elementwise import ACTIVATIONS, elu

KINKS = (-3, -1, -0.5, 0, 0.5, 1, 3, 6)


def inputs(kind, *shape):
    x = away_from(3 * normal(*shape), *KINKS)
    return np.abs(x) + 0.1 if kind in ("log", "sqrt") else x


def test_every_kind_has_a_reference():
    assert list(KINDS) == list(ROWS)
    assert set(KINDS) == set(ACTIVATIONS)


@pytest.mark.parametrize("kind", KINDS)
def test_activation(kind):
    check_op(Activation(kind), inputs(kind, 2, 5, 4, 3), reference=ACTIVATIONS[kind])


@pytest.mark.parametrize("kind", ["relu", "tanh", "gelu"])
def test_activation_with_many_threads_and_odd_sizes(kind):
    x = inputs(kind, 3, 7001)
    check_op(Activation(kind), x, reference=ACTIVATIONS[kind])


@pytest.mark.parametrize(
    ("op", "reference"),
    [
        (Activation("leaky_relu", 0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
        (Activation("elu", 0.7, 1.5, 1.0), lambda x: 1.5 * elu(x, 0.7)),
        (Activation("elu", 0.6, 1.0, 0.6), lambda x: np.where(x > 0, x, 0.6 * np.expm1(x / 0.6))),
        (
            Activation("relu_general", 0.1, 2.5, 0.75),
            lambda x: np.where(x >= 2.5, 2.5, np.where(x < 0.75, 0.1 * (x - 0.75), x)),
        ),
        (Activation("threshold", 0.75, 7.0), lambda x: np.where(x > 0.75, x, 7.0)),
        (Activation("affine", -2.0, 0.25), lambda x: -2 * x + 0.25),
        (Activation("power", 3.0), lambda x: x**3),
        (Activation("squareplus", 2.0), lambda x: (x + np.sqrt(x * x + 2)) / 2),
        (Activation("hard_sigmoid", 0.5), lambda x: np.clip(0.5 * (x + 1), 0, 1)),
    ],
    ids=lambda value: value.kind if isinstance(value, Activation) else "",
)
def test_parameters(op, reference):
    check_op(op, away_from(2 * normal(2, 3, 3, 5), -1, 0, 0.75, 1, 2.5), reference=reference)


@pytest.mark.parametrize(
    "kind", ["exponential", "tanh", "sigmoid", "log", "softplus", "elu", "gelu", "silu", "mish", "log_sigmoid"]
)
def test_single_precision_is_accurate_to_a_few_ulp(kind):
    x = np.concatenate([np.linspace(-8, 8, 40001), np.logspace(-30, 1.5, 4001), -np.logspace(-30, 1.5, 4001)]).astype(
        "float32"
    )
    if kind == "log":
        x = np.concatenate([np.abs(x[x != 0]), np.logspace(-44, 38, 1001).astype("float32")])
    y = compute(Activation(kind), x).astype("float64")
    want = compute(Activation(kind), x.astype("float64"))
    normal_range = np.abs(want) > 1.2e-38
    error = np.abs(y - want)[normal_range] / np.spacing(np.abs(want[normal_range]).astype("float32"))
    # silu, mish and gelu multiply several rounded factors; gelu's left tail loses a little in exp(-x^2 / 2)
    assert error.max() < {"gelu": 40, "mish": 8, "silu": 6, "softplus": 6, "log_sigmoid": 6}.get(kind, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(dtype):
    x = np.array([np.nan, np.inf, -np.inf, 200, -200], dtype)
    with np.errstate(all="ignore"):
        for kind in (
            "relu",
            "relu6",
            "leaky_relu",
            "sigmoid",
            "tanh",
            "elu",
            "exponential",
            "softplus",
            "clip",
            "log",
            "gelu",
            "threshold",
            "hard_shrink",
            "soft_shrink",
        ):
            assert np.isnan(compute(Activation(kind), x)[0]), kind
    for kind, want in [
        ("exponential", [np.inf, 0]),
        ("sigmoid", [1, 0]),
        ("tanh", [1, -1]),
        ("softplus", [np.inf, 0]),
        ("relu", [np.inf, 0]),
        ("elu", [np.inf, -1]),
    ]:
        assert compute(Activation(kind), x)[1:3].tolist() == want, kind
    assert compute(Activation("log"), np.array([0.0, -1.0, np.inf], dtype))[[0, 2]].tolist() == [-np.inf, np.inf]
    assert np.isnan(compute(Activation("log"), np.array([-1.0], dtype))[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["gelu", "gelu_tanh", "silu", "mish", "hard_silu"])
def test_slopes_far_out(kind, dtype):
    x = np.array([60, 1e30, -60, -1e30], dtype)
    with keras.GradientTape() as tape:
        tape.watch(x)
        total = ops.sum(Activation(kind)(x))
    np.testing.assert_allclose(tape.gradient(total, x), [1, 1, 0, 0], atol=1e-12)


def test_hard_silu_is_level_up_to_its_corner():
    x = np.array([-4, -3, -2.9375, 3, 4], "float32")
    with keras.GradientTape() as tape:
        tape.watch(x)
        total = ops.sum(Activation("hard_silu")(x))
    np.testing.assert_allclose(tape.gradient(total, x), [0, 0, -0.47916666, 1.5, 1], rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3, 6), (3, 70, 3, 17), (1, 1)], ids=str)
def test_bias(shape):
    check_op(Bias(), normal(*shape), normal(shape[-1], seed=2), reference=lambda x, b: x + b)


def test_groups_of_kinds():
    assert FUSABLE == ("linear", "relu", "relu6", "leaky_relu", "sigmoid", "tanh")
    assert {*OF_NORMALIZED} - {None} <= set(KINDS)


def test_errors_name_what_came():
    with pytest.raises(ValueError, match=r"kind to be one of .*got 'rellu'"):
        Activation("rellu")
    with pytest.raises(ValueError, match="slope of 0 or more, got -1"):
        Activation("leaky_relu", -1.0)
    with pytest.raises(ValueError, match=r"expected b of shape \(3,\), got \(4,\)"):
        Bias()(normal(2, 3), normal(4))
    with pytest.raises(ValueError, match="one floating dtype, got int64"):
        Activation("relu")(np.arange(3))
