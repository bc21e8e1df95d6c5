"""Steps of one's own with GradientTape, as Python and traced once, on random networks: against the naive executor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pydtconv import GradientTape, config, function
from tests.fuzz import room_graphs, trials
from tests.fuzz.comparison import NUDGE, begin, compare, naive, reset
from tests.fuzz.networks import Net, drawn
from tests.fuzz.room_graphs import SOURCES

NETWORKS = 3


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(NETWORKS):
        dtype = str(random.choice(("float32", "float64")))
        begin(dtype, seed + index)
        config.set_num_threads(int(random.integers(1, 3)))
        net = SOURCES[random.integers(len(SOURCES))](random)
        if not net.model.trainable_variables:
            continue
        told = f"seed {seed}, network {index}, {dtype}"
        trials.keep("loop.txt", told.encode())
        want, moved = (naive(net, True, nudge) for nudge in (0.0, NUDGE[dtype]))
        # other numbers between two runs: what the first has left must not be in the second
        other = {key: np.roll(array, 1, 0) for key, array in net.arrays.items()}
        try:
            for name, step in {"eager": _step(net), "traced": function(_step(net))}.items():
                for inputs in (net.arrays, other, net.arrays):
                    reset(net)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = step(inputs["x"], inputs["y"])
                    if inputs is net.arrays:
                        _check(net, found, want, moved, f"{name}, {told}")
                trials.count(f"{dtype} {name}", "right")
        except Exception as error:
            raise AssertionError(f"{error!r} of {told}\n{drawn(net)}") from error


def _step(net: Net) -> Any:
    def step(x: Any, y: Any) -> Any:
        with GradientTape() as tape:
            prediction = net.model(x, training=True)
            loss = net.loss(y, prediction)
        return prediction, loss, tape.gradient(loss, net.model.trainable_variables)

    return step


def _check(net: Net, found: Any, want: dict[str, np.ndarray], moved: dict[str, np.ndarray], told: str) -> None:
    dtype = config.floatx()
    prediction, loss, gradients = found
    compare(np.asarray(prediction), want["prediction"], moved["prediction"], dtype, f"prediction, {told}")
    compare(np.asarray(loss), want["loss"], moved["loss"], dtype, f"loss, {told}")
    named = {f"d {v.path}": g for v, g in zip(net.model.trainable_variables, gradients, strict=True)}
    least = 0.1 * max((np.abs(want[name]).max(initial=0) for name in named if name in want), default=0)
    for name, gradient in named.items():
        if gradient is None or name not in want:
            if (gradient is None) != (name not in want):
                raise AssertionError(f"{name}: {gradient}, expected {want.get(name)}, {told}")
            continue
        compare(np.asarray(gradient), want[name], moved[name], dtype, f"{name}, {told}", least)
    for variable in net.model.variables:
        compare(variable.value, want[variable.path], moved[variable.path], dtype, f"{variable.path}, {told}")


prepare = room_graphs.prepare
