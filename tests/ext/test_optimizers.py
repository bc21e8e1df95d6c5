"""Update steps against Keras's formulas in float64, over several steps; independence of threads; norms and clipping."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv._ext import optimizers
from tests.reference import optimizers as reference

ADAM = {"lr": 0.01, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
# name: (update, slots, scalars, start value of the slots)
CASES = {
    "sgd": ("sgd", [], {"lr": 0.1}, 0),
    "momentum": ("momentum", ["velocity"], {"lr": 0.1, "momentum": 0.9, "nesterov": False}, 0),
    "nesterov": ("momentum", ["velocity"], {"lr": 0.1, "momentum": 0.9, "nesterov": True}, 0),
    "rmsprop": ("rmsprop", ["velocity"], {"lr": 0.01, "rho": 0.9, "momentum": 0.0, "epsilon": 1e-7}, 0),
    "rmsprop_momentum": (
        "rmsprop",
        ["velocity", "momentums"],
        {"lr": 0.01, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-7},
        0,
    ),
    "rmsprop_centered": (
        "rmsprop",
        ["velocity", "average_grads"],
        {"lr": 0.01, "rho": 0.9, "momentum": 0.0, "epsilon": 1e-3},
        0,
    ),
    "rmsprop_both": (
        "rmsprop",
        ["velocity", "average_grads", "momentums"],
        {"lr": 0.01, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3},
        0,
    ),
    "adam": ("adam", ["m", "v"], ADAM, 0),
    "amsgrad": ("adam", ["m", "v", "v_hat"], ADAM, 0),
    "nadam": ("nadam", ["m", "v"], ADAM, 0),
    "adagrad": ("adagrad", ["accumulator"], {"lr": 0.1, "epsilon": 1e-7}, 0.1),
    "adadelta": ("adadelta", ["accumulated_grads", "accumulated_deltas"], {"lr": 1.0, "rho": 0.95, "epsilon": 1e-3}, 0),
    "adamax": ("adamax", ["m", "u"], ADAM, 0),
    "lion": ("lion", ["m"], {"lr": 0.01, "beta_1": 0.9, "beta_2": 0.99}, 0),
    "ftrl": (
        "ftrl",
        ["accumulator", "linear"],
        {"lr": 0.1, "lr_power": -0.5, "l1": 0.01, "l2": 0.02, "shrinkage": 0.03, "beta": 0.1},
        0.1,
    ),
    "ftrl_power": (
        "ftrl",
        ["accumulator", "linear"],
        {"lr": 0.1, "lr_power": -0.4, "l1": 0.0, "l2": 0.0, "shrinkage": 0.0, "beta": 0.0},
        0.1,
    ),
}


def run(module, case, dtype, size, weight_decay, threads=1, steps=4):
    name, slots, scalars, start = CASES[case]
    random = np.random.default_rng(0)
    w = random.standard_normal(size).astype("float32").astype(dtype)
    state = {slot: np.full(size, start, dtype) for slot in slots}
    u_product = 1.0
    config.set_num_threads(threads)
    for step in range(1, steps + 1):
        g = random.standard_normal(size).astype("float32").astype(dtype)
        extra = {"step": step} if name in ("adam", "nadam", "adamax") else {}
        if name == "nadam":
            u_product *= scalars["beta_1"] * (1 - 0.5 * 0.96**step)
            extra["u_product"] = u_product
        new = getattr(module, name)(w, g, **state, **scalars, **extra, weight_decay=weight_decay)
        w = w if new is None else new
    config.set_num_threads(1)
    return w, state


@pytest.mark.parametrize("weight_decay", [0, 0.1])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 2e-5)])
@pytest.mark.parametrize("case", CASES)
def test_update(case, dtype, rtol, weight_decay):
    w, state = run(optimizers, case, dtype, 1003, weight_decay)
    want, want_state = run(reference, case, "float64", 1003, weight_decay)
    assert np.abs(w - want).max() <= rtol * np.abs(want).max()
    for slot, value in state.items():
        assert np.abs(value - want_state[slot]).max() <= rtol * np.abs(want_state[slot]).max(), slot


@pytest.mark.parametrize("case", CASES)
def test_threads_change_nothing(case):
    one, two = (run(optimizers, case, "float32", 70001, 0.01, threads, steps=2) for threads in (1, 2))
    assert one[0].tobytes() == two[0].tobytes()
    assert all(one[1][slot].tobytes() == two[1][slot].tobytes() for slot in one[1])


@pytest.mark.parametrize("size", [0, 1, 17, 1024, 300001])
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-14), ("float32", 3e-7)])
def test_squared_norm(dtype, rtol, size):
    x = np.random.default_rng(1).standard_normal(size).astype(dtype) + 1
    want = float((x.astype("float64") ** 2).sum())
    results = []
    for threads in (1, 2):
        config.set_num_threads(threads)
        results.append(optimizers.squared_norm(x))
    config.set_num_threads(1)
    assert results[0] == results[1]
    assert abs(results[0] - want) <= rtol * want


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_in_place_helpers(dtype):
    x = np.random.default_rng(2).standard_normal(50000).astype(dtype)
    y = x[::-1].copy()
    scaled, clipped, added, average = x.copy(), x.copy(), y.copy(), y.copy()
    optimizers.scale(scaled, 0.5)
    optimizers.clip(clipped, 0.75)
    optimizers.add_scaled(x, -2.0, added)
    optimizers.moving_average(x, 0.75, average)
    np.testing.assert_array_equal(scaled, x * dtype_of(x)(0.5))
    np.testing.assert_array_equal(clipped, np.clip(x, -0.75, 0.75))
    np.testing.assert_allclose(added, y - 2 * x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(average, 0.75 * y + 0.25 * x, rtol=1e-5, atol=1e-6)


def dtype_of(x):
    return x.dtype.type


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 33, 49999])
def test_has_nonfinite(value, place):
    x = np.ones(50000, "float32")
    assert optimizers.has_nonfinite(x) is False
    x[place] = value
    assert optimizers.has_nonfinite(x) is True


def test_no_elements():
    w = np.zeros(0, "float32")
    optimizers.adam(w, w, w, w, 0.1, 0.9, 0.99, 1e-7, 1, v_hat=w)
    assert optimizers.squared_norm(w) == 0
    assert optimizers.has_nonfinite(w) is False


def test_errors():
    w = np.zeros(4, "float32")
    with pytest.raises(ValueError, match="grads: expected 4 elements, as many as params, got 5"):
        optimizers.sgd(w, np.zeros(5, "float32"), 0.1)
    with pytest.raises(ValueError, match="v_hat: expected 4 elements"):
        optimizers.adam(w, w, w, w, 0.1, 0.9, 0.99, 1e-7, 1, v_hat=np.zeros(3, "float32"))
    with pytest.raises(ValueError, match=r"mismatch|dtype"):
        optimizers.sgd(w, np.zeros(4), 0.1)
