"""What forward passes do to results on the way out: bias, scale, an image that they add, activation."""

from functools import lru_cache

import numpy as np
import pytest

from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from tests.conv.cases import Case, case_of, channel_slice, random_cases, tolerance

FORWARD = [name for name, row in TABLE.items() if "forward" in row.directions and row.of_reals]
#: places and algorithms share the reference of a problem
known_case = lru_cache(maxsize=64)(case_of)
every_algorithm = pytest.mark.parametrize("algorithm", FORWARD)
#: where the residual lies: by itself, in a wider image, in y, in a slice of y's wider image, nowhere
PLACES = ("own", "slice", "y", "y slice", "none")
ACTIVATIONS = {
    None: lambda v: v,
    "relu": lambda v: np.maximum(v, 0),
    "leaky_relu": lambda v: np.where(v > 0, v, 0.3 * v),
    "tanh": np.tanh,
}


def check(
    case: Case, algorithm: str, place: str, activation: str | None, bias: bool, moments: bool, scaled: bool
) -> None:
    """y, and its moments, against the reference; the residual, and what lies around it and y, stay."""
    p = case.p
    r = case.dy * (0 if place == "none" else 3)
    residual = channel_slice(r) if "slice" in place else None if place == "none" else r.copy()
    y = residual if place.startswith("y") else np.full(p.y_shape, np.nan, p.dtype)
    scaled = scaled and y is not residual
    scale, beta = np.random.default_rng(p.co).uniform(-2, 2, (2, p.co)).astype(p.dtype)
    mean, variance = (np.full(p.co, np.nan, p.dtype) for _ in range(2))
    nbytes = workspace_bytes(p, "forward", algorithm)
    memory = np.full(nbytes + 4096, 0xA5, np.uint8)
    bound = bind(
        p,
        "forward",
        algorithm,
        case.x,
        case.w,
        y,
        bias=case.b if bias else None,
        activation=activation,
        alpha=0.3,
        moments=(mean, variance) if moments else None,
        residual=residual,
        scale=(scale, beta) if scaled else None,
        workspace=memory[:nbytes],
    )
    run(bound)
    total = case.want["forward"] - (0 if bias else case.b.astype("float64"))
    total = (total * scale + beta if scaled else total) + r
    want, allowed = ACTIVATIONS[activation](total), tolerance(algorithm, p.dtype) * np.abs(total).max()
    assert np.abs(y - want).max() <= allowed, f"{algorithm} of {case} in {place}"
    assert (memory[nbytes:] == 0xA5).all()
    if residual is not None and y is not residual:
        np.testing.assert_array_equal(residual, r)
    if "slice" in place:
        assert np.isnan(residual.base[..., :3]).all()
        assert np.isnan(residual.base[..., -2:]).all()
    if moments:
        assert np.abs(mean - want.mean((0, 1, 2))).max() <= allowed
        assert np.abs(variance - want.var((0, 1, 2))).max() <= 4 * allowed * np.abs(total).max()


@every_algorithm
def test_random_problems(algorithm):
    """Every place, activation, bias, scale or none, moments where the algorithm gathers them, one to three threads."""
    for i, case in enumerate(random_cases(algorithm, "forward", 120)):
        config.set_num_threads(1 + i % 3)
        activation = list(ACTIVATIONS)[i // 4 % len(ACTIVATIONS)]
        moments = TABLE[algorithm].gathers and i % 3 > 0
        check(case, algorithm, PLACES[i % 5], activation, i % 7 < 4, moments, i % 2 > 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("place", PLACES)
@every_algorithm
def test_edge_tiles(algorithm, place, dtype):
    """Sizes around the micro-kernel's tile, several blocks of the depth, images cut into chunks, few tiles."""
    kernel = microkernels.selected(dtype)
    mr, nr, kc = kernel.mr, kernel.nr, kernel.kc
    options = {"padding": "same", "dtype": dtype}
    problems = [ConvProblem(1, 1, mr + d, 5, nr - d, (1, 3), **options) for d in (-1, 0, 1)]
    problems += [ConvProblem(1, 2, mr, kc + 1, nr + 1, kernel, **options) for kernel in (1, 3)]
    problems += [
        ConvProblem(1, 20, 20, 64, 130, 3, **options),
        ConvProblem(40, 4, 4, 256, 96, 3, **options),  # tiles are kept, filters pass by
        ConvProblem(300, 1, 1, 64, 70, 1, **options),
        ConvProblem(2, 23, 23, 3, 50, 7, strides=2, **options),
        ConvProblem(2, 5, mr + 1, nr + 1, 2 * nr + 2, 3, groups=nr + 1, **options),
    ]
    supported = [p for p in problems if TABLE[algorithm].reason(p, "forward") is None]
    assert supported
    for i, p in enumerate(supported):
        config.set_num_threads(1 + i % 2)
        check(
            known_case(p), algorithm, place, "relu" if i % 2 else None, i % 3 > 0, TABLE[algorithm].gathers, i % 4 < 2
        )


@every_algorithm
def test_same_bits_on_any_number_of_threads(algorithm):
    case = next(case for case in random_cases(algorithm, "forward", 50) if case.x.size > 2000)
    results = set()
    for threads in (1, 2, 3, 5):
        config.set_num_threads(threads)
        y = case.dy.copy()
        run(
            bind(case.p, "forward", algorithm, case.x, case.w, y, residual=y),
            np.empty(workspace_bytes(case.p, "forward", algorithm), np.uint8),
        )
        results.add(y.tobytes())
    assert len(results) == 1


def test_what_does_not_fit_is_refused():
    case = case_of(ConvProblem(2, 5, 6, 3, 4, 3))
    wide = np.zeros((*case.p.y_shape[:3], 9), "float32")
    y = wide[..., :4]

    def of(residual, direction="forward", out=y):
        x, w = case.x.copy(), case.w.copy()
        bind(case.p, direction, "im2col", x, w, out, residual=residual)

    with pytest.raises(ValueError, match=r"residual: expected shape \(2, 3, 4, 4\), got \(2, 3, 4, 3\)"):
        of(y[..., :3])
    with pytest.raises(ValueError, match="residual: expected dtype float32, got float64"):
        of(np.zeros(case.p.y_shape))
    with pytest.raises(ValueError, match="residual: expected an NHWC array in C order or a slice of its channels"):
        of(wide[..., :8:2])
    with pytest.raises(ValueError, match="out: expected an array of its own, got one that overlaps an input"):
        of(wide[..., 3:7])
    with pytest.raises(ValueError, match="residual and activation: expected none in backward_data"):
        of(y, "backward_data")
    of(wide[..., 4:8])  # side by side


def test_what_cannot_be_scaled_is_refused():
    case = case_of(ConvProblem(2, 5, 6, 3, 4, 3))
    y, vectors = case.dy.copy(), (np.ones(4, "float32"), np.ones(4, "float32"))

    def of(scale=vectors, direction="forward", algorithm="im2col", **more):
        x, out = (case.x.copy(), case.dy) if direction == "backward_data" else (case.x, y)
        bind(case.p, direction, algorithm, x, case.w, out, scale=scale, **more)

    with pytest.raises(ValueError, match="residual: expected other memory than y, which is scaled"):
        of(residual=y)
    with pytest.raises(ValueError, match="scale: expected none for backward_data of im2col in float32"):
        of(direction="backward_data")
    with pytest.raises(ValueError, match=r"scale: expected shape \(4,\), got \(3,\)"):
        of((np.ones(3, "float32"), vectors[1]))
