"""One check for every operator: reference, finite differences, slices, accumulation, in place, threads, allocations.

`check_op` binds an operator's passes exactly as a plan does.  Outputs, gradients, saved arrays and workspace lie
between guard bytes and start as NaN; backward gets only what `Op.retains` names.  The float64 result is compared with a
plain reference, its gradient with central finite differences, everything else with the float64 result.
"""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.base import Op, Pass, RunState, Spec, outputs_of, spec_of

GUARD = 64  # elements before and after each array, and their value
GUARD_BYTE = 0xA5
PIXEL_GAP = 3  # elements between the channels of neighbouring pixels in a channel slice
ALLOWED_BYTES = (
    8192  # Python objects of a bound call; an array of the size of a tensor is more than this in large cases
)


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
    dtype = np.dtype(spec.dtype)
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
    elif dtype.kind == "f":
        array[...] = np.nan
    return Guarded(array, buffer, mask)


@dataclass
class Options:
    """One way in which a plan may run an operator."""

    dtype: str = "float64"
    training: bool = True
    sliced: bool = False
    accumulate: bool = False
    threads: int = 1
    inplace: int | None = None
    inplace_backward: int | None = None
    count_allocations: bool = False
    run: RunState = field(default_factory=RunState)


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
        self.guards: list[tuple[str, Guarded]] = []
        self.arrays = [cast(array, options.dtype) for array in arrays]
        self.specs = [spec_of(array) for array in self.arrays]
        self.out_specs = outputs_of(op, *self.specs)
        self.retained = op.retains(self.needs)
        self.x = [
            self.new(f"x[{i}]", spec, fill=array, dense=i in op.dense_inputs)
            for i, (spec, array) in enumerate(zip(self.specs, self.arrays, strict=True))
        ]
        saves = op.saves(*self.specs, training=options.training)
        self.saved = {key: self.new(f"saved {key}", spec, dense=True) for key, spec in saves.items()}

    def new(self, name: str, spec: Spec, fill: Any = None, dense: bool = False) -> np.ndarray:
        sliced = self.options.sliced and not dense and not self.op.dense and spec.dtype.startswith("float")
        guard = guarded(spec, sliced, fill)
        self.guards.append((name, guard))
        return guard.array

    def scratch(self, direction: str) -> np.ndarray:
        config.set_num_threads(self.options.threads)
        nbytes = self.op.workspace(direction, *self.specs)
        array = self.new("workspace", Spec((nbytes,), "uint8"), dense=True)
        array[...] = 0xFF
        return array

    def call(self, bound: Callable[[], None], what: str, again: Callable[[], None]) -> None:
        """Runs a bound pass; counts what a second call allocates (`again` restores what the first one changed)."""
        bound()
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

        bound = op.forward(
            Pass(
                x=self.x,
                y=self.y,
                saved=self.saved,
                workspace=self.scratch("forward"),
                training=options.training,
                run=options.run,
                stream=7,
            )
        )
        self.call(bound, "forward", restore)
        for i, (mine, original) in enumerate(zip(self.x, self.arrays, strict=True)):
            if i != options.inplace and i not in op.updates:
                assert same(mine, original), f"forward changed input {i}"
        return [y.copy() for y in self.y]

    def recompute(self) -> None:
        """The output once more, from `replay_inputs` and the saved arrays but `replay_saves`: forward's bits."""
        op, options = self.op, self.options
        read = range(len(self.x)) if op.replay_inputs is None else op.replay_inputs
        before = {"x": [x.copy() for x in self.x], **{key: [value.copy()] for key, value in self.saved.items()}}
        for key in op.replay_saves:
            if key in self.saved:
                self.saved[key].fill(3)
        y = self.new("y again", self.out_specs[0])
        bound = op.recompute(
            Pass(
                x=[x if i in read else None for i, x in enumerate(self.x)],
                y=[y],
                saved=self.saved,
                workspace=self.scratch("forward"),
                training=options.training,
                run=options.run,
                stream=7,
            )
        )
        self.call(bound, "recompute", lambda: None)
        assert same(y, self.y[0]), "recompute has other bits than forward"
        after = {"x": self.x, **{key: [value] for key, value in self.saved.items()}}
        for key, arrays in before.items():
            assert all(same(a, b) for a, b in zip(after[key], arrays, strict=True)), f"recompute changed {key}"

    def backward(self, dys: Sequence[np.ndarray], start: Sequence[np.ndarray] | None = None) -> list[np.ndarray | None]:
        op, options = self.op, self.options
        dy = [self.new(f"dy[{i}]", spec_of(cast(d, options.dtype)), fill=d) for i, d in enumerate(dys)]
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
                    dx[i][...] = start[i]  # type: ignore[index]

        fill()
        x = [array if i in self.retained.x else None for i, array in enumerate(self.x)]
        y = [array if i in self.retained.y else None for i, array in enumerate(self.y)]
        before = [array.copy() for array in [*self.x, *self.y]]
        bound = op.backward(
            Pass(
                x=x,
                y=y,
                dy=dy,
                dx=dx,
                accumulate=accumulate,
                saved=self.saved,
                workspace=self.scratch("backward"),
                training=options.training,
                run=options.run,
                stream=7,
            )
        )
        self.call(bound, "backward", fill)
        assert all(same(a, b) for a, b in zip([*self.x, *self.y], before, strict=True)), (
            "backward changed inputs or outputs"
        )
        if not op.overwrites_dy and options.inplace_backward is None:
            assert all(same(a, cast(d, options.dtype)) for a, d in zip(dy, dys, strict=True)), "backward changed dy"
        return [
            dy[0].copy() if skip else None if array is None else array.copy()
            for array, skip in zip(dx, passed, strict=True)
        ]


def cast(array: np.ndarray, dtype: str) -> np.ndarray:
    return array.astype(dtype) if array.dtype.kind == "f" else array


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def assert_close(got: np.ndarray, want: np.ndarray, rtol: float, what: str) -> None:
    """Elementwise, relative to the largest magnitude of `want`; shapes must agree and non-finite values coincide."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: expected shape {want.shape}, got {got.shape}"
    if got.dtype.kind != "f" or want.size == 0:
        assert np.array_equal(got, want), f"{what}: {got} is not {want}"
        return
    finite = np.isfinite(want)
    assert np.array_equal(got[~finite], want[~finite].astype(got.dtype), equal_nan=True), (
        f"{what}: non-finite values differ"
    )
    scale = np.abs(want[finite]).max(initial=0.0) or 1.0
    error = np.abs(got[finite].astype("float64") - want[finite]).max(initial=0.0) / scale
    assert error <= rtol, f"{what}: relative error {error:.3g}, allowed {rtol:.3g}"


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
    return Result(y, dx, [x.copy() for x in runner.x], {key: value.copy() for key, value in runner.saved.items()})


def finite_differences(
    op: Op,
    arrays: list[np.ndarray],
    dys: Sequence[np.ndarray],
    grads: Sequence[np.ndarray | None],
    options: Options,
    rtol: float,
    step: float,
) -> None:
    """Compares gradients with (L(x + h v) - L(x - h v)) / 2h, L = sum(dy * y), v unit or random vectors."""
    random = np.random.default_rng(5)

    def loss(index: int, moved: np.ndarray) -> float:
        changed = [*arrays[:index], moved, *arrays[index + 1 :]]
        y = Runner(op, changed, [False] * len(arrays), options).forward()
        return float(sum((d * v).sum() for d, v in zip(dys, y, strict=True)))

    for i, grad in enumerate(grads):
        if grad is None:
            continue
        x = arrays[i]
        if x.size <= 32:
            directions = np.eye(x.size).reshape(-1, *x.shape)
        else:
            directions = random.standard_normal((6, *x.shape))
        numeric = np.array([(loss(i, x + step * v) - loss(i, x - step * v)) / (2 * step) for v in directions])
        exact = np.array([(grad * v).sum() for v in directions])
        assert_close(exact, numeric, rtol, f"gradient of input {i} against finite differences")


def check_op(
    op: Op,
    *arrays: Any,
    reference: Callable[..., Any] | None = None,
    training: bool = True,
    rtol: float = 2e-5,
    rtol64: float = 1e-12,
    rtol_gradient: float = 1e-6,
    step: float = 1e-5,
    needs: Sequence[bool] | None = None,
    run: RunState | None = None,
) -> Result:
    """Checks an operator on `arrays` and returns the float64 result.

    reference: float64 arrays -> output or tuple of outputs, or None.  rtol: of float32 against float64; rtol64: of the
    float64 forward against the reference; rtol_gradient and step: of finite differences.  needs: which inputs get
    gradients; by default all float ones that are not `nondifferentiable` or `updates`.
    Keep random arrays away from kinks (`away_from`).
    """
    given = [np.asarray(a) for a in arrays]
    arrays64 = [cast(cast(a, "float32"), "float64") for a in given]
    if needs is None:
        needs = [
            a.dtype.kind == "f" and i not in op.nondifferentiable and i not in op.updates for i, a in enumerate(given)
        ]
    base = Options(training=training, run=run or RunState(seed=3, step=1))
    specs = outputs_of(op, *(spec_of(a) for a in arrays64))
    random = np.random.default_rng(11)
    dys = [cast(random.standard_normal(spec.shape).astype("float32"), "float64") for spec in specs]
    for dy in dys[len(dys) - op.auxiliary :]:
        dy.fill(0)
    if op.is_view:
        y = arrays64[0].reshape(specs[0].shape)
        if reference is not None:
            assert_close(y, reference(*arrays64), 0, "view")
        return Result([y], [dys[0].reshape(arrays64[0].shape)], arrays64, {})
    if any(spec.dtype.startswith("int") for spec in specs):
        needs = [False] * len(given)
    want = run_op(op, arrays64, dys, needs, base)
    if reference is not None:
        expected = reference(*arrays64)
        for i, value in enumerate(expected if isinstance(expected, tuple) else (expected,)):
            assert_close(want.y[i], np.asarray(value), rtol64, f"output {i} against the reference")
    finite_differences(op, arrays64, dys, want.dx, base, rtol_gradient, step)
    check_variants(op, arrays64, dys, needs, base, want, rtol)
    return want


def check_variants(
    op: Op,
    arrays: Sequence[np.ndarray],
    dys: Sequence[np.ndarray],
    needs: Sequence[bool],
    base: Options,
    want: Result,
    rtol: float,
) -> None:
    """All ways in which a plan may run the operator, in both precisions, against the float64 result."""
    random = np.random.default_rng(12)
    start = [random.standard_normal(a.shape).astype("float32") for a in arrays]
    ways: list[dict[str, Any]] = [{"sliced": s, "accumulate": a} for s, a in itertools.product((False, True), repeat=2)]
    retained = op.retains(tuple(needs)).x if any(needs) else ()
    shape = outputs_of(op, *(spec_of(a) for a in arrays))[0].shape
    ways += [{"inplace": i} for i in op.inplace if i < len(arrays) and arrays[i].shape == shape and i not in retained]
    ways += [
        {"inplace_backward": i}
        for i in op.inplace_backward
        if i < len(arrays) and needs[i] and arrays[i].shape == shape and i not in op.passes_dy
    ]
    ways += [{"count_allocations": True}]
    for dtype, way in itertools.product(("float64", "float32"), ways):
        tolerance = rtol if dtype == "float32" else 1e-11
        one, two = (
            run_op(
                op,
                arrays,
                dys,
                needs,
                Options(dtype=dtype, training=base.training, run=base.run, threads=threads, **way),
                start,
            )
            for threads in (1, 2)
        )
        for i, (a, b, ref) in enumerate(zip(one.y, two.y, want.y, strict=True)):
            if i < len(one.y) - op.auxiliary:
                assert same(a, b), f"{dtype} {way}: output {i} depends on the number of threads"
            assert_close(b, ref, tolerance, f"{dtype} {way}: output {i} on two threads")
            assert_close(a, ref, tolerance, f"{dtype} {way}: output {i}")
        for i in op.updates:
            assert_close(one.x[i], want.x[i], tolerance, f"{dtype} {way}: updated input {i}")
        for i, (a, b, ref) in enumerate(zip(one.dx, two.dx, want.dx, strict=True)):
            if ref is None:
                continue
            assert a is not None
            assert b is not None
            assert same(a, b), f"{dtype} {way}: gradient {i} depends on the number of threads"
            added = way.get("accumulate") and i in op.accumulates and not (i in op.passes_dy and a.shape == shape)
            assert_close(a, ref + start[i] if added else ref, tolerance, f"{dtype} {way}: gradient {i}")


def away_from(array: np.ndarray, *kinks: float, distance: float = 1e-2) -> np.ndarray:
    """`array` with elements close to a kink moved away from it, so that finite differences are valid."""
    for kink in kinks:
        near = np.abs(array - kink) < distance
        array = np.where(near, kink + distance * np.where(array < kink, -2, 2), array)
    return array


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    """Standard normal float64 values that float32 represents exactly."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32").astype("float64")
