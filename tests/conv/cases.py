"""Problems, arrays and references that the tests of convolution share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pydtconv import conv
from pydtconv.conv import ConvProblem
from pydtconv.conv.algorithms import TABLE
from tests.reference import conv as reference

RTOL = {"float32": 1e-5, "float64": 1e-12}  # of an algorithm whose row allows no more rounding than a plain sum has
#: of float32 and float64; those that multiply float32 as bfloat16 are tested in test_matmul_precision.py
ROWS = [(name, direction) for name, row in TABLE.items() if row.of_reals for direction in row.directions]
IDS = [f"{name}-{direction}" for name, direction in ROWS]


def tolerance(algorithm: str, dtype: str) -> float:
    """The error allowed, relative to the largest element of the result."""
    return RTOL[dtype] * TABLE[algorithm].rounding


@dataclass(frozen=True)
class Case:
    """A problem with its arrays and the reference's results by direction; none of the arrays may be written to."""

    p: ConvProblem
    x: np.ndarray
    w: np.ndarray
    b: np.ndarray
    dy: np.ndarray
    want: dict[str, np.ndarray]

    def __str__(self) -> str:
        p = self.p
        return f"{p.x_shape}->{p.co} {p.kernel} s{p.strides} d{p.dilation} pad{p.padding} g{p.groups} {p.dtype}"

    def run(self, algorithm: str, direction: str, out: np.ndarray | None = None) -> np.ndarray:
        if direction == "forward":
            return conv.forward(self.p, self.x, self.w, self.b, algorithm=algorithm, out=out)
        if direction == "backward_data":
            return conv.backward_data(self.p, self.dy, self.w, algorithm=algorithm, out=out)
        return conv.backward_weights(self.p, self.x, self.dy, algorithm=algorithm, out=out)

    def check(self, algorithm: str, direction: str, got: np.ndarray) -> None:
        want = self.want[direction]
        assert got.shape == want.shape
        error = np.abs(got - want).max() / (np.abs(want).max() or 1.0)
        assert error <= tolerance(algorithm, self.p.dtype), (
            f"{algorithm}-{direction} of {self}: relative error {error:.2e}"
        )


def case_of(p: ConvProblem, seed: int = 0) -> Case:
    random = np.random.default_rng(seed)
    x, w, b, dy = (
        random.standard_normal(shape).astype(p.dtype) for shape in (p.x_shape, p.w_shape, (p.co,), p.y_shape)
    )
    for array in (x, w, b, dy):
        array.flags.writeable = False
    options = {"strides": p.strides, "padding": p.padding, "dilation": p.dilation, "groups": p.groups}
    want = {
        "forward": reference.forward(x, w, bias=b, **options),
        "backward_data": reference.backward_data(dy, w, p.x_shape, **options),
        "backward_weights": reference.backward_weights(x, dy, p.w_shape, **options),
    }
    return Case(p, x, w, b, dy, want)


def random_problem(seed: int, depthwise: bool) -> ConvProblem:
    """Small problems of every kind: odd sizes, kernels, strides, sides, dilation, groups, 1x1, batch 1 and more."""
    random = np.random.default_rng((seed, depthwise))

    def integer(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    groups = int(random.choice([1, 1, 1, 2, 3]))
    ci, co = groups * integer(1 + (groups > 1), 24), groups * integer(1, 24)
    if depthwise:
        groups = ci = integer(1, 40)
        co = ci * integer(1, 3)
    kh, kw = (1, 1) if random.random() < 0.15 else (integer(1, 5), integer(1, 5))
    dil_h, dil_w = (1, 1) if random.random() < 0.5 else (integer(1, 3), integer(1, 3))
    ih, iw = (kh - 1) * dil_h + integer(1, 11), (kw - 1) * dil_w + integer(1, 11)
    strides = (integer(1, 3), integer(1, 3))
    if not depthwise and seed % 4 >= 2:  # the commonest kind of all, which some algorithms are made for
        (kh, kw), strides, (dil_h, dil_w), groups = (3, 3), (1, 1), (1, 1), 1
        ci, co = integer(1, 40), integer(1, 40)
        ih, iw = integer(3, 19), integer(3, 19)
    sides = ((integer(0, 3), integer(0, 3)), (integer(0, 3), integer(0, 3)))
    padding = [sides, sides, "same", "valid"][integer(0, 3)]
    return ConvProblem(
        integer(1, 3),
        ih,
        iw,
        ci,
        co,
        (kh, kw),
        strides,
        padding,
        (dil_h, dil_w),
        groups,
        ["float32", "float64"][seed % 2],
    )


@lru_cache(maxsize=1000)
def random_case(seed: int, depthwise: bool) -> Case:
    return case_of(random_problem(seed, depthwise), seed)


def random_cases(algorithm: str, direction: str, count: int) -> list[Case]:
    """The first `count` random cases that the algorithm supports."""
    depthwise, row = algorithm == "depthwise", TABLE[algorithm]
    seeds = (s for s in itertools.count() if row.reason(random_problem(s, depthwise), direction) is None)
    return [random_case(seed, depthwise) for seed in itertools.islice(seeds, count)]


def channel_slice(array: np.ndarray, before: int = 3, after: int = 2) -> np.ndarray:
    """A copy of an NHWC array that is a slice of the channels of a wider one, filled with NaN around it."""
    wide = np.full((*array.shape[:-1], before + array.shape[-1] + after), np.nan, array.dtype)
    wide[..., before : before + array.shape[-1]] = array
    return wide[..., before : before + array.shape[-1]]


def random_problem_of(rank: int, seed: int, depthwise: bool) -> ConvProblem:
    """Small problems of `rank` axes, of every kind, and every third one 3 taps wide with strides and dilation of 1."""
    random = np.random.default_rng((rank, seed, depthwise))

    def integers(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(v) for v in random.integers(low, high + 1, rank))

    common = seed % 3 == 0 and not depthwise
    groups = 1 if common else int(random.choice([1, 1, 2, 3]))
    ci, co = (groups * int(random.integers(1 + (groups > 1), 20)) for _ in range(2))
    if depthwise:
        groups = ci = int(random.integers(1, 36))
        co = ci * int(random.integers(1, 3))
    kernel, strides, dilation = integers(1, 4), integers(1, 3), integers(1, 2)
    if common:
        kernel, strides, dilation = (3,) * rank, (1,) * rank, (1,) * rank
    most = {1: 40, 2: 9, 3: 6}[rank]
    spatial = tuple((k - 1) * d + more for k, d, more in zip(kernel, dilation, integers(1, most), strict=True))
    sides = tuple(zip(integers(0, 2), integers(0, 2), strict=True))
    padding = [sides, "same", "valid"][int(random.integers(3))]
    x_shape, w_shape = (int(random.integers(1, 4)), *spatial, ci), (*kernel, ci // groups, co)
    return ConvProblem.of(
        x_shape, w_shape, strides, padding, dilation, groups, ["float32", "float64"][int(random.integers(2))]
    )


def random_cases_of(rank: int, algorithm: str, direction: str, count: int) -> list[Case]:
    """The first `count` random cases of `rank` axes that the algorithm supports; none where it has no such case."""
    depthwise, row = algorithm == "depthwise", TABLE[algorithm]
    problems = ((s, random_problem_of(rank, s, depthwise)) for s in range(10 * count))
    found = ((s, p) for s, p in problems if row.reason(p, direction) is None)
    return [case_of(p, s) for s, p in itertools.islice(found, count)]
