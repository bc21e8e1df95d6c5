"""Images that are normalized as a convolution reads them."""

from functools import partial

import numpy as np
import pytest

from pydtconv import config
from pydtconv._ext import norm
from pydtconv.conv import ConvProblem, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import AFTER_NORMALIZATION, bind, run
from pydtconv.kernels.cpu.rows import rows_of
from tests.conv.cases import RTOL, tolerance
from tests.marks import slow
from tests.reference import conv as reference
from tests.reference.elementwise import ACTIVATIONS

NORMALIZING = [name for name, row in TABLE.items() if row.normalizes and row.of_reals]
SIZES = [(2, 5, 7, 5, 19), (3, 9, 8, 64, 128), (1, 30, 31, 33, 40), (700, 1, 1, 130, 20), (2, 9, 9, 1024, 33)]


POINTWISE = ConvProblem(*SIZES[0], 1)
KINDS = [(beta, kind) for kind in ("relu", None, "relu6", "silu", "hard_silu") for beta in (True, False)]


def prologue_of(p: ConvProblem, beta: bool, activation: str | None):
    rng = np.random.default_rng(3)
    mean, scale, shift = (rng.standard_normal(p.ci).astype(p.dtype) for _ in range(3))
    scale *= 4  # many are more than 6
    return mean, scale, shift if beta else None, activation


def through(x: np.ndarray, prologue) -> np.ndarray:
    mean, scale, beta, activation = prologue
    z = (x.astype("float64") - mean) * scale + (0 if beta is None else beta)
    return ACTIVATIONS[activation or "linear"](z)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("algorithm", "beta", "activation"),
    [(name, *kind) for name in NORMALIZING for kind in KINDS if TABLE[name].normalizes_in(POINTWISE, kind[1])],
)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_equals_the_convolution_of_the_normalized_image(sizes, algorithm, beta, activation, dtype):
    """Dense images and slices of channels, with bias, ReLU and moments on the way out."""
    p = ConvProblem(*sizes, 1, dtype=dtype)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((*p.x_shape[:3], p.ci + 3)).astype(dtype)
    w, dy, b = (rng.standard_normal(shape).astype(dtype) for shape in (p.w_shape, p.y_shape, p.co))
    prologue = prologue_of(p, beta, activation)
    for threads, x in ((1, wide[..., 2:-1]), (3, np.ascontiguousarray(wide[..., :-3]))):
        config.set_num_threads(threads)
        before, normalized = x.copy(), through(x, prologue)
        memory = {
            direction: np.full(workspace_bytes(p, direction, algorithm) + 4096, 0xA5, np.uint8)
            for direction in ("forward", "backward_weights")
        }
        y, dw, mean, variance = (np.full(shape, np.nan, dtype) for shape in (p.y_shape, p.w_shape, p.co, p.co))
        run(
            bind(
                p, "forward", algorithm, x, w, y, bias=b, activation="relu", moments=(mean, variance), prologue=prologue
            ),
            memory["forward"][:-4096],
        )
        run(bind(p, "backward_weights", algorithm, x, dw, dy, prologue=prologue), memory["backward_weights"][:-4096])
        assert all((used[-4096:] == 0xA5).all() for used in memory.values())
        want = np.maximum(reference.forward(normalized, w.astype("float64"), bias=b), 0)
        assert np.abs(y - want).max() <= RTOL[dtype] * np.abs(want).max()
        assert np.abs(mean - want.mean((0, 1, 2))).max() <= RTOL[dtype] * np.abs(want).max()
        want = np.einsum("nhwi,nhwo->io", normalized, dy.astype("float64"))[None, None]
        assert np.abs(dw - want).max() <= RTOL[dtype] * np.abs(want).max()
        np.testing.assert_array_equal(x, before)


TAPS = [
    partial(ConvProblem, 2, 9, 11, 5, 19, 3, padding="same"),
    partial(ConvProblem, 3, 14, 14, 48, 33, 3),
    partial(ConvProblem, 1, 70, 66, 16, 20, 3, padding="same"),  # tiles of 6 x 6
    partial(ConvProblem, 2, 15, 15, 37, 32, 3, padding="same"),  # of 5 x 5
    partial(ConvProblem, 40, 4, 4, 256, 512, 3, padding="same"),  # tiles are kept, filters pass by
    partial(ConvProblem, 2, 13, 17, 20, 24, 3, padding="same", dilation=(2, 3)),
    partial(ConvProblem, 1, 4, 5, 130, 7, 3, padding=((2, 2), (1, 0))),
    partial(ConvProblem.of, (2, 5, 9, 7, 20), (3, 3, 3, 20, 36), padding="same"),
]


DEPTHWISE = [
    partial(ConvProblem, 2, 9, 11, 19, 19, 3, padding="same", groups=19),
    partial(ConvProblem, 3, 14, 17, 48, 48, 5, strides=2, padding="same", groups=48),
    partial(ConvProblem, 1, 20, 16, 6, 12, 7, padding="same", groups=6),  # two filters for a channel
    partial(ConvProblem, 2, 8, 8, 130, 130, (2, 4), padding=((2, 0), (1, 5)), dilation=(3, 1), groups=130),
    partial(ConvProblem.of, (2, 5, 9, 7, 20), (3, 3, 3, 1, 20), padding="same", groups=20),
    partial(ConvProblem.of, (1, 9000, 20), (3, 1, 20), padding="same", groups=20),  # a row in parts
    partial(ConvProblem.of, (1, 9000, 20), (3, 1, 20), padding=((5000, 3),), groups=20),  # one of them is all padding
    partial(ConvProblem, 1, 3, 1500, 20, 20, 3, padding=((1, 1), (900, 800)), groups=20),
    partial(ConvProblem.of, (2, 9000, 20), (3, 1, 20), strides=4096, padding="same", groups=20),  # pixels far apart
]
SEVERAL = [
    (make, name, *kind)
    for makes, key in ((TAPS, "normalizes_taps"), (DEPTHWISE, "normalizes_channels"))
    for make in makes
    for name, row in TABLE.items()
    for kind in KINDS
    if getattr(row, key) and row.of_reals and row.normalizes_in(make(), kind[1])
]
#: the problem of many channels takes half of all the time
OF_TAPS = [slow(*each) if each[0] is TAPS[4] and each[2:] != KINDS[0] else each for each in SEVERAL]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("make", "algorithm", "beta", "activation"), OF_TAPS)
def test_images_with_several_taps(make, algorithm, beta, activation, dtype):
    """What lies outside of an image is zero, not what zero is normalized to; slices of channels, too."""
    p = make(dtype=dtype)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((*p.x_shape[:-1], p.ci + 3)).astype(dtype)
    w, dy = (rng.standard_normal(shape).astype(dtype) for shape in (p.w_shape, p.y_shape))
    prologue = prologue_of(p, beta, activation)
    for threads, x in ((1, wide[..., 2:-1]), (3, np.ascontiguousarray(wide[..., :-3]))):
        config.set_num_threads(threads)
        before, read = x.copy(), np.ascontiguousarray(through(x, prologue)).astype(dtype)
        for direction, shape in (("forward", p.y_shape), ("backward_weights", p.w_shape)):
            out = np.full(shape, np.nan, dtype)
            memory = np.full(workspace_bytes(p, direction, algorithm) + 4096, 0xA5, np.uint8)
            given = (x, w, out) if direction == "forward" else (x, out, dy)
            run(bind(p, direction, algorithm, *given, prologue=prologue), memory[:-4096])
            assert (memory[-4096:] == 0xA5).all()
            want = np.empty(shape, dtype)
            given = (read, w, want) if direction == "forward" else (read, want, dy)
            other = "direct" if p.groups == 1 else algorithm
            run(bind(p, direction, other, *given), np.empty(workspace_bytes(p, direction, other), np.uint8))
            assert np.abs(out - want).max() <= tolerance(algorithm, dtype) * np.abs(want).max()
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("make", "algorithm", "activation"), [(make, name, act) for make, name, beta, act in SEVERAL if beta]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_are_those_from_an_image_in_memory(dtype, make, algorithm, activation):
    p = make(dtype=dtype)
    rng = np.random.default_rng(0)
    x, dy, w = (rng.standard_normal(shape).astype(dtype) for shape in (p.x_shape, p.y_shape, p.w_shape))
    mean, scale, beta = (rng.standard_normal(p.ci).astype(dtype) for _ in range(3))
    read = np.empty_like(x)
    norm.bind_apply(rows_of(x), mean, scale, beta, AFTER_NORMALIZATION[activation], 0.0, rows_of(read))()

    def results(image, prologue):
        y, dw = np.empty_like(dy), np.empty_like(w)
        for direction, arrays in (("forward", (image, w, y)), ("backward_weights", (image, dw, dy))):
            memory = np.full(workspace_bytes(p, direction, algorithm), 0xFF, np.uint8)
            run(bind(p, direction, algorithm, *arrays, prologue=prologue), memory)
        return y, dw

    for found, want in zip(results(x, (mean, scale, beta, activation)), results(read, None), strict=True):
        np.testing.assert_array_equal(found, want)


def test_refused_where_x_cannot_be_normalized():
    p = ConvProblem(1, 4, 4, 2, 3, 3)
    x, w, y = (np.zeros(shape, "float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    with pytest.raises(ValueError, match="prologue: expected none for forward of direct"):
        bind(p, "forward", "direct", x, w, y, prologue=prologue_of(p, True, "relu"))
    p = ConvProblem(1, 4, 4, 2, 3, 1)
    w, y = np.zeros(p.w_shape, "float32"), np.zeros(p.y_shape, "float32")
    for direction, algorithm in (("forward", "im2col"), ("backward_data", "direct")):
        with pytest.raises(ValueError, match=f"prologue: expected none for {direction} of {algorithm}"):
            bind(p, direction, algorithm, x, w, y, prologue=prologue_of(p, True, "relu"))
    mean, scale, beta, activation = prologue_of(p, True, "relu")
    with pytest.raises(ValueError, match=r"activation: expected one of None, linear, .*, hard_silu, got 'gelu'"):
        bind(p, "forward", "direct", x, w, y, prologue=(mean, scale, beta, "gelu"))
    with pytest.raises(ValueError, match=r"scale: expected shape \(2,\), got \(1,\)"):
        bind(p, "forward", "direct", x, w, y, prologue=(mean, scale[:1], beta, activation))
