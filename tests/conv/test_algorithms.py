"""Every algorithm and pass of the table against the reference, and what every one of them must keep."""

import tracemalloc

import numpy as np
import pytest

from pydtconv import config, microkernels
from pydtconv._ext import conv as ext
from pydtconv._ext import runtime
from pydtconv.conv import ConvProblem, algorithms, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from tests.conv.cases import IDS, ROWS, case_of, channel_slice, random_cases, tolerance
from tests.marks import slow

every_pass = pytest.mark.parametrize(("algorithm", "direction"), ROWS, ids=IDS)
CANARY = 0xA5


def fitting(algorithm, **changes):
    """A problem that the algorithm supports, with a part of everything in it that it does."""
    sizes = {
        "n": 2,
        "ih": 9,
        "iw": 8,
        "ci": 6,
        "co": 10,
        "kernel": (3, 2),
        "strides": (1, 2),
        "padding": ((1, 0), (2, 1)),
        "dilation": (2, 1),
        "groups": 2,
    }
    if algorithm == "depthwise":
        sizes |= {"ci": 5, "co": 10, "groups": 5}
    plain = {"kernel": 3, "strides": 1, "dilation": 1, "groups": 1}
    row = TABLE[algorithm]
    for candidate in (sizes | changes, sizes | changes | plain):
        p = ConvProblem(**candidate)
        if row.reason(p, row.directions[0]) is None:
            return p
    raise AssertionError(f"no problem for {algorithm}")


def bound_with(case, algorithm, direction, workspace=None, x=None, w=None, y=None, out=None, **options):
    """The pass bound to the case's arrays, or to those given; returns it and its output."""
    arrays = {"x": case.x if x is None else x, "w": case.w if w is None else w, "y": case.dy if y is None else y}
    written = {"forward": "y", "backward_data": "x", "backward_weights": "w"}[direction]
    arrays[written] = np.full(arrays[written].shape, np.nan, case.p.dtype) if out is None else out
    return bind(case.p, direction, algorithm, **arrays, workspace=workspace, **options), arrays[written]


@pytest.mark.parametrize("count", [40, slow(200)])
@every_pass
def test_random_problems(algorithm, direction, count):
    cases = random_cases(algorithm, direction, count)
    for i, case in enumerate(cases):
        config.set_num_threads(1 + i % 3)
        case.check(algorithm, direction, case.run(algorithm, direction))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@every_pass
def test_edge_tiles(algorithm, direction, dtype):
    """Sizes around the micro-kernel's tile and the depth of a block: MR +- 1, NR +- 1, KC + 1."""
    kernel = microkernels.selected(dtype)
    mr, nr, kc = kernel.mr, kernel.nr, kernel.kc
    for d_m, d_n in ((-1, 1), (0, 0), (1, -1)):
        if algorithm == "depthwise":
            problems = [
                ConvProblem(1, 2, mr + d_m, nr + d_n, nr + d_n, 3, padding="same", groups=nr + d_n, dtype=dtype)
            ]
        else:
            deep = {
                "forward": {"ci": kc + 1},
                "backward_data": {"co": kc + 1},
                "backward_weights": {"ih": kc + 1, "iw": 1},
            }[direction]
            sizes = {"n": 1, "ih": 1, "iw": mr + d_m, "ci": mr + d_m, "co": nr + d_n, "dtype": dtype}
            problems = [ConvProblem(**sizes, kernel=(1, 3), padding="same"), ConvProblem(**sizes | deep, kernel=1)]
            problems.append(ConvProblem(**(sizes | {"ih": 2} | deep), kernel=3, padding="same"))
        for p in problems:
            if TABLE[algorithm].reason(p, direction) is not None:
                continue
            case = case_of(p)
            case.check(algorithm, direction, case.run(algorithm, direction))


@every_pass
def test_channel_slices(algorithm, direction):
    """x, dy and the output as slices of wider images; what lies around the output stays."""
    case = case_of(fitting(algorithm))
    x, y = channel_slice(case.x), channel_slice(case.dy)
    out = {"forward": y, "backward_data": x}.get(direction)
    bound, got = bound_with(
        case, algorithm, direction, x=x, y=y, out=out, bias=case.b if direction == "forward" else None
    )
    run(bound, np.empty(workspace_bytes(case.p, direction, algorithm), np.uint8))
    case.check(algorithm, direction, got)
    if out is not None:
        wide = out.base
        assert np.isnan(wide[..., :3]).all()
        assert np.isnan(wide[..., -2:]).all()


@every_pass
@pytest.mark.parametrize(
    "sizes", [{}, {"kernel": 1, "strides": 1, "padding": "valid", "dilation": 1}], ids=["3x2", "1x1"]
)
def test_accumulate(algorithm, direction, sizes):
    """backward_data adds to dx where it is told to; the other passes refuse."""
    case = case_of(fitting(algorithm, dtype="float64", **sizes))
    start = np.random.default_rng(1).standard_normal(case.p.x_shape)
    if direction != "backward_data":
        with pytest.raises(ValueError, match="accumulate"):
            bound_with(case, algorithm, direction, accumulate=True)
        return
    bound, dx = bound_with(case, algorithm, direction, out=start.copy(), accumulate=True)
    run(bound, np.empty(workspace_bytes(case.p, direction, algorithm), np.uint8))
    case.check(algorithm, direction, dx - start)


@pytest.mark.parametrize("activation", ["linear", "relu", "relu6", "leaky_relu", "sigmoid", "tanh"])
@pytest.mark.parametrize("algorithm", [name for name, direction in ROWS if direction == "forward"])
@pytest.mark.parametrize("with_bias", [False, True], ids=["plain", "bias"])
def test_fused_epilogue(algorithm, activation, with_bias):
    functions = {
        "linear": lambda v: v,
        "relu": lambda v: np.maximum(v, 0),
        "relu6": lambda v: np.clip(v, 0, 6),
        "leaky_relu": lambda v: np.where(v > 0, v, 0.3 * v),
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "tanh": np.tanh,
    }
    for dtype in ("float32", "float64"):
        case = case_of(fitting(algorithm, dtype=dtype))
        bound, y = bound_with(
            case, algorithm, "forward", bias=case.b if with_bias else None, activation=activation, alpha=0.3
        )
        run(bound, np.empty(workspace_bytes(case.p, "forward", algorithm), np.uint8))
        want = functions[activation](case.want["forward"] - (0 if with_bias else case.b.astype("float64")))
        np.testing.assert_allclose(y, want, rtol=0, atol=tolerance(algorithm, dtype) * np.abs(want).max())


@every_pass
@pytest.mark.parametrize("sizes", [{}, {"n": 5, "ih": 20, "iw": 21, "dilation": 1}], ids=["small", "larger"])
def test_same_bits_on_any_number_of_threads(algorithm, direction, sizes):
    for dtype in ("float32", "float64"):
        case = case_of(fitting(algorithm, dtype=dtype, **sizes))
        results = []
        for threads in (1, 2, 3, 5):
            config.set_num_threads(threads)
            results.append(case.run(algorithm, direction).tobytes())
        assert len(set(results)) == 1


def test_filter_gradients_of_many_pixels_do_not_depend_on_threads():
    """Enough pixels that they are cut into slices, in both orientations of the product."""
    for ci, co in ((3, 40), (40, 5)):
        case = case_of(ConvProblem(4, 34, 33, ci, co, 3, padding="same"))
        results = []
        for threads in (1, 2, 4):
            config.set_num_threads(threads)
            dw = case.run("convgemm_trans", "backward_weights")
            case.check("convgemm_trans", "backward_weights", dw)
            results.append(dw.tobytes())
        assert len(set(results)) == 1


@every_pass
@pytest.mark.parametrize("threads", [1, 3])
def test_workspace_is_as_large_as_told(algorithm, direction, threads):
    """Bytes after the workspace stay; one byte less is refused before anything is written."""
    config.set_num_threads(threads)
    case = case_of(fitting(algorithm))
    nbytes = workspace_bytes(case.p, direction, algorithm)
    memory = np.full(nbytes + 4096, CANARY, np.uint8)
    bound, got = bound_with(
        case, algorithm, direction, workspace=memory[:nbytes], **({"bias": case.b} if direction == "forward" else {})
    )
    run(bound)
    case.check(algorithm, direction, got)
    assert (memory[nbytes:] == CANARY).all()
    if nbytes:
        got[...] = 7
        with pytest.raises(RuntimeError, match="workspace"):
            run(bound, memory[: nbytes - 64])
        assert (got == 7).all()


@every_pass
def test_a_bound_pass_allocates_nothing(algorithm, direction):
    case = case_of(fitting(algorithm, n=8, ih=40, iw=40))
    bound, _ = bound_with(
        case, algorithm, direction, workspace=np.empty(workspace_bytes(case.p, direction, algorithm), np.uint8)
    )
    run(bound)
    tracemalloc.start()
    run(bound)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1024


@every_pass
def test_peak_of_a_call_is_output_and_workspace(algorithm, direction):
    case = case_of(fitting(algorithm, n=4, ih=40, iw=40))
    out = case.run(algorithm, direction)
    told = out.nbytes + workspace_bytes(case.p, direction, algorithm)
    tracemalloc.start()
    case.run(algorithm, direction)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told <= peak <= told + 16384


@pytest.mark.parametrize(
    ("algorithm", "direction"),
    [("convgemm", "forward"), ("convgemm_trans", "backward_weights"), ("deconvgemm", "backward_data")],
)
def test_workspace_does_not_grow(algorithm, direction):
    """Not with the batch nor with the image, but for the rounding of block sizes to what is at hand."""
    sizes = {
        (n, extent): workspace_bytes(ConvProblem(n, extent, extent, 64, 96, 3, padding="same"), direction, algorithm)
        for n, extent in ((16, 64), (64, 64), (16, 256), (256, 256))
    }
    assert max(sizes.values()) <= 1.02 * min(sizes.values()), sizes
    assert max(sizes.values()) < 16 << 20


@pytest.mark.parametrize("strides", [1, 2])
def test_pointwise_convolutions_build_no_matrix(strides):
    p = ConvProblem(8, 32, 32, 256, 128, 1, strides)
    q = ConvProblem(8, 32, 32, 256, 128, 3, strides, "same")
    for direction in ("forward", "backward_weights"):
        assert workspace_bytes(p, direction, "im2col") < 16 << 20 < workspace_bytes(q, direction, "im2col")


def test_every_row_has_c_code():
    for name, row in TABLE.items():
        for direction in ("forward", "backward_data", "backward_weights"):
            dtype = "float32" if row.float32 else "bfloat16"
            assert ext.exists(name, direction, dtype) == (direction in row.directions)


def test_ranking_prefers_less_work():
    p = ConvProblem(8, 32, 32, 64, 64, 3, 2, padding="same")
    # the generic build has short vectors only; matrix products find micro-kernels with longer ones
    first = ["convgemm", "deconvgemm"] if runtime.level() == "generic" else ["direct", "direct"]
    assert [algorithms(p, d)[0] for d in ("forward", "backward_data")] == first
    assert algorithms(ConvProblem(8, 32, 32, 64, 64, 3, padding="same"), "forward")[0] == "winograd"
    assert algorithms(ConvProblem(8, 32, 32, 64, 64, 3, groups=64), "forward") == ["depthwise"]


COPIED = [
    ((8, 6, 8, 8, 2), (3, 3, 3, 2, 8), "float32"),
    ((1, 3, 9, 12, 8), (3, 3, 3, 8, 8), "float64"),
    ((3, 5, 7, 12, 24), (3, 3, 3, 24, 16), "float32"),
    ((3, 31, 46, 2), (5, 5, 2, 8), "float32"),
]


def plain_problems(algorithm, direction, count):
    """Problems of one to three axes with channels in whole vectors and more pixels than a block has."""
    row, random = TABLE[algorithm], np.random.default_rng(5)
    # where more chunks, those of dy copied, once met a workspace for fewer
    found = [ConvProblem.of(*shapes, 1, "same", 1, 1, dtype) for *shapes, dtype in COPIED]
    found = [p for p in found if row.reason(p, direction) is None]
    for _ in range(20 * count):
        rank = int(random.integers(1, 4))
        spatial = tuple(int(s) for s in random.integers(1, {1: 2000, 2: 48, 3: 13}[rank], rank))
        ci, co = (int(c) for c in random.choice([1, 2, 3, 4, 8, 16, 24], 2))
        groups = 1
        if algorithm == "depthwise":
            groups, co = ci, ci * int(random.integers(1, 3))
        kernel = (int(random.choice([1, 3, 3, 5])),) * rank
        dtype = str(random.choice(["float32", "float64"]))
        shapes = (int(random.choice([1, 3, 8])), *spatial, ci), (*kernel, ci // groups, co)
        p = ConvProblem.of(*shapes, 1, "same", 1, groups, dtype)
        if row.reason(p, direction) is None:
            found.append(p)
    return found[:count]


@pytest.mark.parametrize("count", [12, slow(500)])
@every_pass
def test_workspaces_are_enough_for_slices_of_channels(algorithm, direction, count):
    """Whatever lies between pixels, a pass takes the workspace of its problem and not a byte behind it."""
    problems = plain_problems(algorithm, direction, count)
    assert len(problems) == count
    for i, p in enumerate(problems):
        config.set_num_threads(1 + i % 3)
        random = np.random.default_rng(i)
        x, w, y = (random.standard_normal(s).astype(p.dtype) for s in (p.x_shape, p.w_shape, p.y_shape))
        nbytes, results = workspace_bytes(p, direction, algorithm), []
        for after in (0, 1, 4, 40):
            memory = np.full(nbytes + 4096, CANARY, np.uint8)
            wide_x, of_w, wide_y = channel_slice(x, 0, after), w.copy(), channel_slice(y, 0, after)
            run(bind(p, direction, algorithm, wide_x, of_w, wide_y, workspace=memory[:nbytes]))
            assert (memory[nbytes:] == CANARY).all(), p
            results.append({"forward": wide_y, "backward_data": wide_x, "backward_weights": of_w}[direction])
        limit = tolerance(algorithm, p.dtype) * max(1.0, float(np.abs(results[0]).max()))
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=0, atol=limit, err_msg=str(p))
