"""Runs one operator as a plan does, with everything that it may write between guards.

Outputs, gradients, saved arrays and workspace lie between guard bytes and start as NaN; backward gets only what
`Op.retains` names.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pydtconv import config, devices, dtypes
from pydtconv.devices.host import HostArray
from pydtconv.kernels import Pass, RunState, find
from pydtconv.ops.base import Op, Spec, outputs_of, spec_of
from pydtconv.ops.checks import read_as

GUARD = 64  # elements before and after each array, and their value
GUARD_BYTE = 0xA5
PIXEL_GAP = 3  # elements between the channels of neighbouring pixels in a channel slice
# Python objects of a bound call; an array of the size of a tensor is more than this in large cases
ALLOWED_BYTES = 8192


@dataclass
class Guarded:
    """An array inside a larger buffer; whatever else is in that buffer must stay as it is."""

    array: np.ndarray
    buffer: np.ndarray
    mask: np.ndarray  # bytes of the buffer that do not belong to the array

    def check(self, what: str) -> None:
        assert (self.buffer[self.mask] == GUARD_BYTE).all(), f"{what}: wrote outside of its array"


def guarded(spec: Spec, sliced: bool = False, fill: Any = None) -> Guarded:
    """An array of `spec` between guards, filled with NaN or `fill`; a channel slice if wanted and four-dimensional."""
    dtype = dtypes.in_memory(spec.dtype)
    shape = list(spec.shape)
    offset = 0
    if sliced and len(shape) == 4:
        shape[3] += PIXEL_GAP
        offset = PIXEL_GAP - 1
    count = int(np.prod(shape))
    raw = np.full((count + 2 * GUARD) * dtype.itemsize + 64, GUARD_BYTE, np.uint8)
    start = -raw.ctypes.data % 64
    buffer = raw[start : start + (count + 2 * GUARD) * dtype.itemsize]
    elements = buffer.view(dtype)[GUARD : GUARD + count].reshape(shape)
    array = elements[..., offset : offset + spec.shape[3]] if sliced and len(shape) == 4 else elements
    mask = np.ones(buffer.shape, bool)
    mask_elements = mask.view(bool).reshape(-1, dtype.itemsize)[GUARD : GUARD + count].reshape(*shape, dtype.itemsize)
    mask_array = mask_elements[..., offset : offset + spec.shape[3], :] if offset else mask_elements
    mask_array[...] = False
    if fill is not None:
        array[...] = fill
    elif spec.dtype in dtypes.FLOATING:
        array[...] = encoded(np.array(np.nan), spec.dtype)
    return Guarded(array, buffer, mask)


@dataclass
class Options:
    """One way in which a plan may run an operator."""

    dtype: str = "float64"
    training: bool = True
    sliced: bool = False
    mixed: int | None = None  # a seed: each array by itself is a slice or is not
    accumulate: bool = False
    threads: int = 1
    inplace: int | None = None
    inplace_backward: int | None = None
    count_allocations: bool = False
    run: RunState = field(default_factory=RunState)
    stream: int = 7
    device: str = "cpu"


@dataclass
class Result:
    """Outputs, gradients (None where not wanted), inputs after the run and saved arrays: copies."""

    y: list[np.ndarray]
    dx: list[np.ndarray | None]
    x: list[np.ndarray]
    saved: dict[str, np.ndarray]


class Runner:
    """Runs forward and backward of an operator once, with everything guarded."""

    def __init__(self, op: Op, arrays: Sequence[np.ndarray], needs: Sequence[bool], options: Options) -> None:
        self.op, self.needs, self.options = op, tuple(needs), options
        config.set_num_threads(options.threads)
        self.device: Any = devices.get(options.device)
        self.guards: list[tuple[str, Guarded]] = []
        self.copies: dict[int, tuple[np.ndarray, Any]] = {}  # by address: a buffer, and its copy on a GPU
        given = [spec_of(np.asarray(array)) for array in arrays]
        given = [Spec(spec.shape, options.dtype) if spec.dtype in dtypes.FLOATING else spec for spec in given]
        names = read_as(op, given, [False] * len(given))
        self.specs = [Spec(spec.shape, name) for spec, name in zip(given, names, strict=True)]
        self.arrays = [encoded(np.asarray(a), spec.dtype) for a, spec in zip(arrays, self.specs, strict=True)]
        self.kernel = find(op, options.device, op.kernel_dtype(*self.specs))
        self.out_specs = outputs_of(op, *self.specs)
        self.retained = op.retains(self.needs)
        self.x = [
            self.new(f"x[{i}]", spec, fill=array, dense=i in op.dense_inputs)
            for i, (spec, array) in enumerate(zip(self.specs, self.arrays, strict=True))
        ]
        saves = op.saves(*self.specs, training=options.training)
        self.saved = {key: self.new(f"saved {key}", spec, dense=True) for key, spec in saves.items()}

    def new(self, name: str, spec: Spec, fill: Any = None, dense: bool = False) -> np.ndarray:
        sliced = self.options.sliced
        if self.options.mixed is not None:
            sliced = random.Random(f"{self.options.mixed} {type(self.op).__name__} {name} {spec}").random() < 0.5
        sliced = sliced and not dense and not self.op.dense and spec.dtype in dtypes.FLOATING
        guard = guarded(spec, sliced, fill)
        self.guards.append((name, guard))
        return guard.array

    def scratch(self, direction: str) -> np.ndarray:
        config.set_num_threads(self.options.threads)
        nbytes = self.kernel.workspace(direction, *self.specs)
        array = self.new("workspace", Spec((nbytes,), "uint8"), dense=True)
        array[...] = 0xFF
        return array

    def new_pass(self, direction: str, **arrays: Any) -> Pass:
        found = Pass(
            **arrays,
            saved=self.saved,
            workspace=self.scratch(direction),
            training=self.options.training,
            run=self.options.run,
            stream=self.options.stream,
        )
        return found if self.options.device == "cpu" else self.on_device(found)

    def on_device(self, p: Pass) -> Pass:
        """The pass with arrays of the device: on "host" the same memory, on a GPU copies of the whole buffers."""
        self.launcher = self.device.launcher()
        lists = {name: [self.there(array) for array in getattr(p, name)] for name in ("x", "y", "dy", "dx")}
        saved = {key: self.there(array) for key, array in p.saved.items()}
        return replace(p, **lists, saved=saved, workspace=self.there(p.workspace), launcher=self.launcher)

    def there(self, array: np.ndarray | None) -> Any:
        if array is None:
            return None
        if self.options.device == "host":
            return HostArray(array)
        if array.size == 0:
            return self.device.zeros(array.shape, array.dtype)
        buffer = next(guard.buffer for _, guard in self.guards if np.may_share_memory(array, guard.buffer))
        at = buffer.ctypes.data
        if at not in self.copies:
            self.copies[at] = buffer, self.device.arena(buffer.nbytes)
        return self.device.array(self.copies[at][1], array.ctypes.data - at, array.shape, array.dtype, array.strides)

    def call(self, bound: Callable[[], None], what: str, again: Callable[[], None]) -> None:
        """Runs a bound pass; counts what a second call allocates (`again` restores what the first one changed)."""
        if self.options.device != "cpu":
            self.launcher.refresh()
        for buffer, copy in self.copies.values():
            self.device.put(copy, buffer)
        bound()
        for buffer, copy in self.copies.values():
            buffer[...] = self.device.get(copy)
        if self.options.count_allocations:
            again()
            tracemalloc.start()
            bound()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < ALLOWED_BYTES, f"{what} allocated {peak} bytes"
        for name, guard in self.guards:
            guard.check(f"{what}, {name}")

    def forward(self) -> list[np.ndarray]:
        op, options = self.op, self.options
        self.y = [self.new(f"y[{i}]", spec) for i, spec in enumerate(self.out_specs)]
        if options.inplace is not None:
            self.y[0] = self.x[options.inplace]

        def restore() -> None:
            for mine, original in zip(self.x, self.arrays, strict=True):
                mine[...] = original

        bound = self.kernel.forward(self.new_pass("forward", x=self.x, y=self.y))
        self.call(bound, "forward", restore)
        for i, (mine, original) in enumerate(zip(self.x, self.arrays, strict=True)):
            if i != options.inplace and i not in op.updates:
                assert same(mine, original), f"forward changed input {i}"
        return self.decoded(self.y, self.out_specs)

    def recompute(self) -> None:
        """The output once more, from `replay_inputs` and the saved arrays but `replay_saves`: forward's bits."""
        op = self.op
        read = range(len(self.x)) if op.replay_inputs is None else op.replay_inputs
        before = {"x": [x.copy() for x in self.x], **{key: [value.copy()] for key, value in self.saved.items()}}
        for key in op.replay_saves:
            if key in self.saved:
                self.saved[key].fill(3)
        y = self.new("y again", self.out_specs[0])
        bound = self.kernel.recompute(
            self.new_pass("forward", x=[x if i in read else None for i, x in enumerate(self.x)], y=[y])
        )
        self.call(bound, "recompute", lambda: None)
        assert same(y, self.y[0]), "recompute has other bits than forward"
        after = {"x": self.x, **{key: [value] for key, value in self.saved.items()}}
        for key, arrays in before.items():
            assert all(same(a, b) for a, b in zip(after[key], arrays, strict=True)), f"recompute changed {key}"

    def backward(self, dys: Sequence[np.ndarray], start: Sequence[np.ndarray] | None = None) -> list[np.ndarray | None]:
        op, options = self.op, self.options
        dys = [encoded(np.asarray(d), spec.dtype) for d, spec in zip(dys, self.out_specs, strict=True)]
        dy = [self.new(f"dy[{i}]", spec, fill=d) for i, (d, spec) in enumerate(zip(dys, self.out_specs, strict=True))]
        passed = [
            need and i in op.passes_dy and self.specs[i] == self.out_specs[0] for i, need in enumerate(self.needs)
        ]
        dx: list[Any] = [
            self.new(f"dx[{i}]", spec, dense=i in op.dense_inputs) if need and not skip else None
            for i, (spec, need, skip) in enumerate(zip(self.specs, self.needs, passed, strict=True))
        ]
        accumulate = [options.accumulate and i in op.accumulates and need for i, need in enumerate(self.needs)]
        if options.inplace_backward is not None:
            dx[options.inplace_backward] = dy[0]

        def fill() -> None:
            for array, original in zip(dy, dys, strict=True):
                array[...] = original
            for i, add in enumerate(accumulate):
                if add and dx[i] is not None:
                    dx[i][...] = encoded(np.asarray(start[i]), self.specs[i].dtype)  # type: ignore[index]

        fill()
        x = [array if i in self.retained.x else None for i, array in enumerate(self.x)]
        y = [array if i in self.retained.y else None for i, array in enumerate(self.y)]
        before = [array.copy() for array in [*self.x, *self.y]]
        bound = self.kernel.backward(self.new_pass("backward", x=x, y=y, dy=dy, dx=dx, accumulate=accumulate))
        self.call(bound, "backward", fill)
        assert all(same(a, b) for a, b in zip([*self.x, *self.y], before, strict=True)), (
            "backward changed inputs or outputs"
        )
        if not op.overwrites_dy and options.inplace_backward is None:
            assert all(same(a, d) for a, d in zip(dy, dys, strict=True)), "backward changed dy"
        found = [dy[0] if skip else array for array, skip in zip(dx, passed, strict=True)]
        return self.decoded(found, self.specs)

    def decoded(self, arrays: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
        """Copies as numbers."""
        return [
            None if array is None else dtypes.from_bits(array) if spec.dtype == dtypes.BFLOAT16 else array.copy()
            for array, spec in zip(arrays, specs, strict=True)
        ]


def run_op(
    op: Op,
    arrays: Sequence[np.ndarray],
    dys: Sequence[np.ndarray],
    needs: Sequence[bool],
    options: Options,
    start: Sequence[np.ndarray] | None = None,
) -> Result:
    """Forward and, where some input wants a gradient, backward."""
    before = config.num_threads()
    try:
        runner = Runner(op, arrays, needs, options)
        y = runner.forward()
        if op.replayable and len(y) - op.auxiliary == 1 and options.training and options.inplace is None:
            runner.recompute()
        dx = runner.backward(dys, start) if any(needs) else [None] * len(arrays)
    finally:
        config.set_num_threads(before)
    return Result(
        y, dx, runner.decoded(runner.x, runner.specs), {key: value.copy() for key, value in runner.saved.items()}
    )


def cast(array: np.ndarray, dtype: str) -> np.ndarray:
    return array.astype(dtype) if array.dtype.kind == "f" else array


def encoded(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array as it lies in memory where its dtype is this."""
    return dtypes.to_bits(array) if dtype == dtypes.BFLOAT16 else cast(array, dtype)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
