"""The update steps of optimizers on a device: the functions of `_ext.optimizers` by name, with the same arguments.

A step of a plan is recorded: the first time, its kernels are bound; from then on only their numbers are found anew,
before the step runs (`Update.refresh`), and the kernels run among the others.  Steps of different kernels, as those
that accumulate gradients and those that apply them, are recorded each.  Outside of a plan kernels run at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv.devices.launcher import Launcher
from pydtconv.kernels.base import Call, sequence

Numbers = Sequence[float]
#: binds a kernel, given where its numbers lie
Bind = Callable[[Launcher, Any], Call]

#: elements whose squares a block sums, at least
PART = 4096


class Unsupported(NotImplementedError):
    """An update that has no kernel on the device."""


def _keep(lr: float, weight_decay: float) -> float:
    return 1 - lr * weight_decay


def _sgd(lr: float, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr


def _momentum(lr: float, momentum: float, nesterov: bool, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr, momentum


def _rmsprop(lr: float, rho: float, momentum: float, epsilon: float, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr, rho, 1 - rho, momentum, epsilon


def _adam(lr: float, beta_1: float, beta_2: float, epsilon: float, step: int, weight_decay: float = 0.0) -> Numbers:
    alpha = lr * math.sqrt(1 - beta_2**step) / (1 - beta_1**step)
    return _keep(lr, weight_decay), alpha, 1 - beta_1, 1 - beta_2, epsilon


def _nadam(
    lr: float, beta_1: float, beta_2: float, epsilon: float, step: int, product: float, weight_decay: float = 0.0
) -> Numbers:
    now, following = (beta_1 * (1 - 0.5 * 0.96 ** (step + i)) for i in (0, 1))
    mean, gradient = lr * following / (1 - product * following), lr * (1 - now) / (1 - product)
    return _keep(lr, weight_decay), mean, gradient, 1 / (1 - beta_2**step), 1 - beta_1, 1 - beta_2, epsilon


def _adagrad(lr: float, epsilon: float, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr, epsilon


def _adadelta(lr: float, rho: float, epsilon: float, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr, rho, 1 - rho, epsilon


def _adamax(lr: float, beta_1: float, beta_2: float, epsilon: float, step: int, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr / (1 - beta_1**step), 1 - beta_1, beta_2, epsilon


def _lion(lr: float, beta_1: float, beta_2: float, weight_decay: float = 0.0) -> Numbers:
    return _keep(lr, weight_decay), lr, beta_1, 1 - beta_1, beta_2, 1 - beta_2


def _ftrl(
    lr: float, power: float, l1: float, l2: float, shrinkage: float, beta: float, weight_decay: float = 0.0
) -> Numbers:
    return _keep(lr, weight_decay), lr, -power, l1, 2 * (l2 + beta / (2 * lr)), 2 * shrinkage


def _one(value: float) -> Numbers:
    return (value,)


def _average(momentum: float) -> Numbers:
    return momentum, 1 - momentum


def _none() -> Numbers:
    return (0.0,)


#: of each update: how many arrays come first, how many may follow at the end, and what its numbers are
TABLE: dict[str, tuple[int, int, Callable[..., Numbers]]] = {
    "sgd": (2, 0, _sgd),
    "momentum": (3, 0, _momentum),
    "rmsprop": (3, 2, _rmsprop),
    "adam": (4, 1, _adam),
    "nadam": (4, 0, _nadam),
    "adagrad": (3, 0, _adagrad),
    "adadelta": (4, 0, _adadelta),
    "adamax": (4, 0, _adamax),
    "lion": (3, 0, _lion),
    "ftrl": (4, 0, _ftrl),
    "scale": (1, 0, _one),
    "clip": (1, 0, _one),
    "add_scaled": (1, 1, _one),
    "moving_average": (1, 1, _average),
    "take_mean": (1, 1, _one),
    "assign": (2, 0, _none),
}


@dataclass
class _Kernels:
    """Kernels of a step, and their numbers."""

    calls: list[Call]
    numbers: list[Numbers]


class Update:
    """An optimizer's call, for a part of the variables, as it is recorded.  apply: makes the call."""

    def __init__(self, launcher: Launcher, apply: Call) -> None:
        self.launcher = launcher
        self.apply = apply
        self._noted: list[tuple[str, Numbers, Bind]] = []
        self._known: dict[tuple[str, ...], _Kernels] = {}
        self._now = _Kernels([], [])
        launcher.before(self.refresh)

    def refresh(self) -> tuple[str, ...]:
        """Finds the numbers of the step that comes, and records kernels that are new; returns the names of its
        kernels.
        """
        self._noted = []
        token = _recording.set(self)
        try:
            self.apply()
        finally:
            _recording.reset(token)
        names = tuple(name for name, *_ in self._noted)
        numbers = [found for _, found, _ in self._noted]
        if names in self._known:
            self._now = self._known[names]
            self._now.numbers[:] = numbers
            return names
        self._now = made = _Kernels([], numbers)
        for at, (_, found, bind) in enumerate(self._noted):
            slot = self.launcher.varying(len(found), lambda at=at: made.numbers[at])  # type: ignore[misc]
            made.calls.append(bind(self.launcher, slot))
        self._known[names] = made
        return names

    def note(self, name: str, numbers: Numbers, bind: Bind) -> None:
        """Takes over one kernel of the call."""
        self._noted.append((name, numbers, bind))

    def __call__(self) -> None:
        for call in self._now.calls:
            call()


_recording: ContextVar[Update | None] = ContextVar("_recording", default=None)


def run(device: Any, name: str, *arguments: Any) -> None:
    """Runs an update, or records it.  Raises Unsupported for one that has no kernel."""
    if name not in TABLE:
        raise Unsupported(f"optimizer: {name}: expected one of {', '.join(TABLE)} on device {device.name}")
    first, more, numbers_of = TABLE[name]
    arrays, rest = list(arguments[:first]), list(arguments[first:])
    extra: list[Any] = []
    while more and rest and (rest[-1] is None or not isinstance(rest[-1], (int, float))):
        extra.insert(0, rest.pop())
    if more:
        extra = [*extra, *[None] * (more - len(extra))]
    numbers = [float(value) for value in numbers_of(*rest)]
    flags = [bool(rest[2])] if name == "momentum" else []
    w = arrays[0]

    def bind(launcher: Launcher, slot: Any) -> Call:
        return launcher.each(f"optimizers.{name}", w.dtype, w.size, w.size, slot, *flags, *arrays, *extra)

    _run(device, name, numbers, bind)


def has_nonfinite(device: Any, array: Any) -> bool:
    """Whether an array has an element that is not finite.  It waits for the device."""
    blocks = max(1, min(device.most_parts, -(-array.size // PART)))
    launcher = device.launcher()
    parts = launcher.constant(np.zeros(blocks))
    launcher.launch("optimizers.nonfinite", array.dtype, (blocks,), 256, array.size, array, parts)()
    return bool(device.get(parts).any())


def clip_norm(device: Any, arrays: Sequence[Any], limit: float) -> None:
    """Makes arrays smaller, together, so that the norm of all of them is no larger than the limit."""
    blocks = [max(1, min(device.most_parts, -(-array.size // PART))) for array in arrays]

    def bind(launcher: Launcher, slot: Any) -> Call:
        parts, at, calls = launcher.constant(np.zeros(sum(blocks))), 0, []
        for array, count in zip(arrays, blocks, strict=True):
            arguments = (array.size, array, parts[at : at + count])
            calls.append(launcher.launch("optimizers.squares", array.dtype, (count,), 256, *arguments))
            at += count
        for array in arrays:
            last = (array.size, slot, at, parts, array)
            calls.append(launcher.each("optimizers.clip_norm", array.dtype, array.size, *last))
        return sequence(calls)

    _run(device, "clip_norm", [float(limit)], bind)


def _run(device: Any, name: str, numbers: Numbers, bind: Bind) -> None:
    """At once, or within the step that is being recorded."""
    recording = _recording.get()
    if recording is not None:
        recording.note(name, numbers, bind)
        return
    launcher = device.launcher()
    bind(launcher, launcher.constant(np.array(numbers, np.float64)))()
