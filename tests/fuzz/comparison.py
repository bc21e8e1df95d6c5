"""Results of a random network by a naive executor in float64, and the comparison of a plan's results with them."""

from __future__ import annotations

import numpy as np

from pydtconv import config, utils
from tests.fuzz import trials
from tests.fuzz.naive import Naive
from tests.fuzz.networks import Net

RTOL = {"float32": 1e-3, "float64": 1e-9}
#: relative changes of inputs and parameters; a result that moves far by them is not compared: at the edge of a ReLU or
#: between two maxima of a window rounding decides which gradient is right
NUDGE = {"float32": 2e-6, "float64": 2e-12}
#: how much less what is computed on the way is changed: a gradient that normalizations cancel to zero does not
#: move with the inputs, and is what rounding leaves
LESS = 16
#: probabilities below it are taken for it by a loss of probabilities, but not where a plan computes it from logits
EPSILON = 1e-30


def begin(dtype: str, seed: int) -> None:
    """The settings of a trial in this dtype; seed: of the weights."""
    utils.set_random_seed(seed % 2**32)
    config.set_floatx(dtype)
    config.set_epsilon(EPSILON)


def naive(net: Net, training: bool, nudge: float, seed: int = 5, less: float = LESS) -> dict[str, np.ndarray]:
    """Results, variables afterwards and gradients by name; the numbers that go in are moved a little by `nudge`.

    seed: which way; less: by how much less numbers in between are moved.
    """
    random = np.random.default_rng(seed)
    reset(net)
    graph = net.trace(training)

    def nudged(array: np.ndarray, by: float = nudge) -> np.ndarray:
        return array * (1 + by * random.uniform(-1, 1, array.shape)) if by and array.dtype.kind == "f" else array

    def rounded(array: np.ndarray) -> np.ndarray:
        return nudged(array, nudge / less)

    inputs = {name: nudged(array) for name, array in net.arrays.items()}
    naive = Naive(graph, inputs, [nudged(np.asarray(tensor.variable.value)) for tensor in graph.parameters], rounded)
    found = {name: naive.values[tensor] for name, tensor in graph.outputs.items()}
    found |= {variable.path: np.asarray(variable.value, "float64") for variable in net.model.variables}
    for tensor in graph.parameters:
        assert tensor.variable is not None
        found[tensor.variable.path] = naive.values[tensor]
        if tensor in naive.gradients:
            found[f"d {tensor.variable.path}"] = naive.gradients[tensor]
    return found


def compare(got: np.ndarray, want: np.ndarray, moved: np.ndarray, dtype: str, told: str, least: float = 0.0) -> None:
    scale = max(np.abs(want).max(initial=0), 1e-3, least)
    if not np.isfinite(want).all() or np.abs(want - moved).max(initial=0) > RTOL[dtype] / 20 * scale:
        trials.count(f"{dtype} arrays", "left out: rounding decides")
        return
    error = np.abs(got - want).max(initial=0) / scale
    if not error <= RTOL[dtype]:
        raise AssertionError(f"error {error:.2e} in {told}")
    trials.count(f"{dtype} arrays", "right")


def reset(net: Net) -> None:
    for variable, value in zip(net.model.variables, net.values, strict=True):
        variable.value[...] = value
