"""Random networks trained on the device "host", which runs the kernels of GPUs as C++, beside the CPU, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

import pydtconv
from pydtconv import config, optimizers
from pydtconv.kernels import MissingKernelError
from tests.fuzz import networks, other_networks, trials
from tests.fuzz.networks import Net, drawn

NETWORKS, STEPS, RTOL = 3, 2, 1e-8
#: images mostly, whose kernels are there
SOURCES = (*(networks.images,) * 5, other_networks.signals, other_networks.volumes, other_networks.sequences)


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    config.set_floatx("float64")
    config.set_conv_precision("strict")
    for index in range(NETWORKS):
        net = SOURCES[random.integers(len(SOURCES))](random)
        if not net.model.trainable_variables:
            continue
        told = f"seed {seed}, network {index}"
        trials.keep("device.txt", told.encode())
        rate = 1e-3 if random.random() < 0.5 else 0.0
        want = _trained(net, "cpu", rate)
        near = _trained(net, "cpu", rate, 1e-12)
        try:
            got = _trained(net, "host", rate)
        except MissingKernelError:
            trials.count("training", "refused: no kernel")
            continue
        except Exception as error:
            raise AssertionError(f"{error!r} of {told}\n{drawn(net)}") from error
        for name, value in want.items():
            scale = max(np.abs(value).max(initial=0), 1e-3)
            if not np.isfinite(value).all() or np.abs(near[name] - value).max(initial=0) > RTOL / 20 * scale:
                trials.count("arrays", "left out: rounding decides")
                continue
            error = np.abs(got[name] - value).max(initial=0) / scale
            if not error <= RTOL:
                raise AssertionError(f"error {error:.2e} in {name} of {told}, rate {rate}\n{drawn(net)}")
            trials.count("arrays", "right")
        trials.count("training", "right")


def _trained(net: Net, device: str, rate: float, nudge: float = 0.0) -> dict[str, np.ndarray]:
    """Losses, predictions and all values after some steps."""
    for variable, value in zip(net.model.variables, net.values, strict=True):
        variable.assign(value * (1 + nudge) if value.dtype.kind == "f" else value)
    net.model.compile(optimizers.SGD(rate, momentum=0.9), net.loss)
    x, y = net.arrays["x"], net.arrays["y"]
    with pydtconv.device(device):
        results: list[Any] = [net.model.train_on_batch(x, y) for _ in range(STEPS)]
        prediction = net.model.predict_on_batch(x)
    found = {"losses": np.array(results, "float64").ravel(), "prediction": np.asarray(prediction)}
    return found | {variable.path: np.array(variable.value) for variable in net.model.variables}
