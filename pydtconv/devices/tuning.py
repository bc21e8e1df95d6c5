"""Times the algorithms of convolutions on a device with memory of its own, by its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.conv import tuning
from pydtconv.conv.problem import ConvProblem
from pydtconv.devices.accelerator import Accelerator
from pydtconv.kernels.base import Call
from pydtconv.kernels.gpu.convolutions import TABLE, candidates
from pydtconv.kernels.gpu.convolutions.algorithm import Algorithm

#: strategies of an algorithm that are timed
STRATEGIES = 6


class DeviceBench(tuning.Bench):
    """A device: each algorithm, the Fourier domain with its most likely strategies.

    Arrays are the problem's and the largest workspace's size; raises MemoryError where the device has not so much.
    """

    def __init__(self, device: Accelerator) -> None:
        super().__init__()
        self.on = device
        self.device = device.name

    def names(self, p: ConvProblem, direction: str) -> list[str]:
        return sorted(candidates(p, direction, STRATEGIES), key=lambda name: self.seconds(p, direction, name))

    def seconds(self, p: ConvProblem, direction: str, name: str) -> float:
        flops, nbytes = TABLE[name].work(p, direction)
        rates = self.on.rates()
        return flops / rates.flops + nbytes / rates.nbytes

    def least(self, p: ConvProblem, direction: str) -> float:
        return self.seconds(p, direction, self.names(p, direction)[0])

    def workspace_bytes(self, p: ConvProblem, direction: str, name: str) -> int:
        return TABLE[name].workspace(p, direction)

    def measure(self, p: ConvProblem, direction: str, names: list[str], seconds: float) -> dict[str, float]:
        arrays = [self._random(shape, p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape)]
        nbytes = max(self.workspace_bytes(p, direction, name) for name in names)
        workspace, launcher = self.on.arena(max(nbytes, 1)), self.on.launcher()
        calls: dict[str, Call] = {}

        def seconds_of(name: str, turn: int) -> float:
            if not turn:
                calls[name] = bind(launcher, p, direction, TABLE[name], arrays, workspace)
                calls[name]()  # compiles what was not, and fills caches
            return self.on.seconds_of(calls[name])

        return tuning.in_turns(names, seconds_of, seconds)

    def _random(self, shape: Sequence[int], dtype: str) -> Any:
        """An array of a few random numbers again and again: copied there, as each copy doubles them."""
        made = self.on.zeros(tuple(shape), dtype)
        flat, launcher = made.reshape(-1), self.on.launcher()
        count = min(flat.size, 1 << 12)
        self.on.put(flat[:count], np.random.default_rng(0).standard_normal(count).astype(dtype))
        while count < flat.size:
            more = min(count, flat.size - count)
            launcher.copy(flat[:more], flat[count : count + more])()
            count += more
        return made


def bind(
    launcher: Any, p: ConvProblem, direction: str, algorithm: Algorithm, arrays: Sequence[Any], workspace: Any
) -> Call:
    """A pass by an algorithm; arrays: x, w and y, or their gradients."""
    x, w, y = arrays
    if direction == "forward":
        return algorithm.forward(launcher, p, x, w, y, workspace, False)
    if direction == "backward_data":
        return algorithm.backward_data(launcher, p, y, w, x, workspace, False)
    return algorithm.backward_weights(launcher, p, x, y, w, workspace)
