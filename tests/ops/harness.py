"""One check for every operator: reference, finite differences, slices, accumulation, in place, threads, allocations.

`check_op` runs an operator in all ways in which a plan may (tests/ops/runner.py).  The float64 result is compared with
a plain reference, its gradient with central finite differences, everything else with the float64 result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.kernels import RunState
from pydtconv.ops.base import Op, outputs_of, spec_of
from tests.ops.runner import Options, Result, Runner, cast, run_op, same


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
        directions = np.eye(x.size).reshape(-1, *x.shape) if x.size <= 3 else random.standard_normal((3, *x.shape))
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
    ways: list[dict[str, Any]] = [{"sliced": both, "accumulate": both} for both in (False, True)]
    ways += [{"mixed": seed, "accumulate": add} for seed, add in ((0, False), (1, True), (2, True))]
    retained = op.retains(tuple(needs)).x if any(needs) else ()
    shape = outputs_of(op, *(spec_of(a) for a in arrays))[0].shape
    ways += [{"inplace": i} for i in op.inplace if i < len(arrays) and arrays[i].shape == shape and i not in retained]
    ways += [
        {"inplace_backward": i}
        for i in op.inplace_backward
        if i < len(arrays) and needs[i] and arrays[i].shape == shape and i not in op.passes_dy
    ]
    ways += [{"count_allocations": True}]
    # in float64, and on one thread too, all arrays alike; slices and dense arrays together in float32 on two
    combined = [way for way in ways if "mixed" not in way]
    combined.remove({"count_allocations": True})
    for dtype, way in [("float64", way) for way in combined] + [("float32", way) for way in ways]:
        tolerance = rtol if dtype == "float32" else 1e-11
        found = [
            run_op(
                op,
                arrays,
                dys,
                needs,
                Options(dtype=dtype, training=base.training, run=base.run, threads=threads, **way),
                start,
            )
            for threads in ((1, 2) if way in combined else (2,))
        ]
        one, two = found[0], found[-1]
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
