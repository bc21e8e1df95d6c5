"""The convolution in the Fourier domain: bases, tiles of whole images, interleaved images, groups, threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

from pydtconv import config, conv, microkernels
from pydtconv._ext import fft as fft_ext
from pydtconv.conv import ConvProblem, bases
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import DIRECTIONS
from tests.conv.cases import case_of

FAMILIES = ("fft", "fft_overlap_add")
PROBLEMS = [
    ConvProblem(3, 13, 11, 5, 18, (5, 5), padding="same"),
    ConvProblem(2, 20, 17, 33, 7, (3, 7), padding=((4, 0), (9, 2)), dilation=(2, 3)),
    ConvProblem(2, 9, 30, 12, 8, (1, 9), groups=2, dtype="float64"),
    ConvProblem(1, 31, 8, 6, 9, (11, 2), padding="valid", groups=3),
]
VOLUMES = [
    ConvProblem.of((2, 6, 13, 11, 5), (5, 5, 4, 5, 18), padding="same"),
    ConvProblem.of((3, 8, 11, 5, 9), (4, 1, 4, 9, 39), (1, 2, 1)),
    ConvProblem.of((1, 7, 12, 14, 12), (3, 3, 5, 6, 8), 1, ((4, 0), (1, 3), (2, 2)), (1, 1, 2), 2, "float64"),
    ConvProblem.of((2, 5, 9, 8, 6), (1, 3, 3, 6, 34), padding="same", dtype="float64"),
]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("p", PROBLEMS, ids=range(len(PROBLEMS)))
@pytest.mark.parametrize("family", FAMILIES)
def test_every_basis_gives_the_convolution(family: str, p: ConvProblem, direction: str) -> None:
    case = case_of(p)
    ranked = bases.ranking(p, direction, 100.0, family)
    found = [basis for basis in ranked if basis[0] * basis[1] < 600]
    assert len(found) > 5
    for basis in found[:: max(1, len(found) // 8)]:
        name = f"{family} {bases.written(basis)}"
        case.check(name, direction, case.run(name, direction))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("p", VOLUMES, ids=range(len(VOLUMES)))
def test_volumes_of_every_basis(p: ConvProblem, direction: str) -> None:
    """The same bits on any number of threads, though columns of tiles are cut into other blocks, and in memory with
    anything in it: rows of a column that have no results are computed from it."""
    case = case_of(p)
    found = [basis for basis in bases.ranking(p, direction, 100.0) if basis[0] * basis[1] < 400]
    assert len(found) > 5
    for basis in found[:: max(1, len(found) // 6)]:
        name, results = f"fft {bases.written(basis)}", []
        for threads, anything in ((1, 0.0), (2, 1e30), (3, np.nan)):
            with threads_of(threads):
                space = scratch(conv.workspace_bytes(p, direction, name))
                space[: len(space) // 8 * 8].view(p.dtype)[...] = anything
                x, w, y = (np.full(shape, np.nan, p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape))
                if direction == "forward":
                    run(bind(p, direction, name, case.x, case.w, y, bias=case.b), space)
                elif direction == "backward_data":
                    run(bind(p, direction, name, x, case.w, case.dy), space)
                else:
                    run(bind(p, direction, name, case.x, w, case.dy), space)
            results.append({"forward": y, "backward_data": x, "backward_weights": w}[direction])
        case.check(name, direction, results[0])
        assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_micro_kernels_that_are_narrower_than_a_vector(dtype: str) -> None:
    """Their panels of co are: in the second problem several blocks of tiles are added up, in the third the last panel
    begins within a vector, which ends in the next row."""
    name = next(kernel.name for kernel in microkernels.available(dtype) if kernel.provider == "portable")
    microkernels.select(name, dtype)
    try:
        for shapes in (
            ((2, 9, 8, 12), (3, 3, 12, 20)),
            ((4, 60, 60, 3), (3, 3, 3, 17)),
            ((1, 9, 9, 3), (5, 5, 3, 13)),
            ((2, 5, 9, 9, 3), (3, 3, 3, 3, 13)),
        ):
            case = case_of(ConvProblem.of(*shapes, padding="same", dtype=dtype))
            for direction in DIRECTIONS:
                case.check("fft", direction, case.run("fft", direction))
    finally:
        microkernels.select(None, dtype)


def test_1_d_signals_have_tiles_of_one_axis() -> None:
    p = ConvProblem.of((3, 500, 9), (31, 9, 20), padding="same")
    assert bases.best(p, "forward")[0] == 1
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype("float32") for shape in (p.x_shape, p.w_shape))
    got, want = conv.forward(p, x, w, algorithm="fft"), conv.forward(p, x, w, algorithm="direct")
    assert np.linalg.norm(got - want) <= 1e-6 * np.linalg.norm(want)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ["fft 12x12", "fft_overlap_add 12x12", "fft_overlap_add 32x30"])
def test_results_do_not_depend_on_threads(name: str, direction: str) -> None:
    """Images of nine tiles or of one: tiles are transformed in the same pairs however blocks are cut."""
    case = case_of(ConvProblem(5, 24, 24, 20, 24, (5, 5), padding="same"))
    before, results = config.num_threads(), []
    try:
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            results.append(case.run(name, direction))
    finally:
        config.set_num_threads(before)
    assert all(np.array_equal(results[0], other) for other in results[1:])


OF_X = [(name, (n, 21, 19, 20)) for name in ("fft 12x12", "fft 24x25", "fft_overlap_add 12x14") for n in (1, 4)]


@pytest.mark.parametrize(("name", "shape"), [*OF_X, ("fft 12x12", (3, 5, 21, 19, 20))])
def test_spectra_that_forward_keeps_give_the_same_bits(name: str, shape: tuple[int, ...]) -> None:
    depth = len(shape) - 4
    padding = ((1, 1),) * depth + ((2, 1), (3, 0))
    case = case_of(ConvProblem.of(shape, (*(3,) * depth, 5, 4, 20, 24), padding=padding))
    p, row = case.p, TABLE[name]
    spectra = np.full(row.spectra_size(p), np.nan, "float32")
    y, dw = np.empty(p.y_shape, "float32"), np.empty(p.w_shape, "float32")
    workspace = [scratch(row.workspace_bytes(p, direction)) for direction in ("forward", "backward_weights")]
    run(bind(p, "forward", name, case.x, case.w, y, bias=case.b, spectra=spectra), workspace[0])
    assert np.array_equal(y, case.run(name, "forward"))
    nowhere = np.full(p.x_shape, np.nan, "float32")  # x itself is not read again
    run(bind(p, "backward_weights", name, nowhere, dw, case.dy, spectra=spectra), workspace[1])
    assert np.array_equal(dw, case.run(name, "backward_weights"))


OF_DY = [
    ("fft 24x25", "fft 24x25", ConvProblem(3, 21, 19, 20, 34, (5, 4), padding=((2, 1), (3, 0)))),
    ("fft 20x24", "fft 20x24", ConvProblem(1, 16, 20, 35, 5, (5, 5), padding="same", dtype="float64")),
    ("fft_overlap_add 12x10", "fft 12x10", ConvProblem(3, 21, 17, 5, 18, (3, 4), padding=((4, 0), (2, 3)), dilation=2)),
    ("fft 12x10", "fft_overlap_add 12x10", ConvProblem(3, 21, 17, 5, 18, (3, 4), padding="same", dtype="float64")),
    ("fft 12x12", "fft 12x12", ConvProblem(2, 30, 30, 3, 20, (11, 11), (4, 4), "same")),
    ("fft_overlap_add 1x40", "fft 1x40", ConvProblem.of((2, 300, 9), (31, 9, 20), padding="same")),
]


@pytest.mark.parametrize(("data", "weights", "p"), OF_DY, ids=range(len(OF_DY)))
def test_spectra_of_dy_that_backward_weights_leaves_give_the_same_bits(data: str, weights: str, p: ConvProblem) -> None:
    case, size = case_of(p), TABLE[data].dy_spectra_size(p, "backward_data")
    assert size == TABLE[weights].dy_spectra_size(p, "backward_weights") > 0
    results = []
    for threads in (1, 3):
        with threads_of(threads):
            dy_spectra = np.full(size, np.nan, p.dtype)
            dx, dw = np.empty(p.x_shape, p.dtype), np.empty(p.w_shape, p.dtype)
            spaces = [conv.workspace_bytes(p, *of) for of in (("backward_weights", weights), ("backward_data", data))]
            bound = bind(p, "backward_weights", weights, case.x, dw, case.dy, dy_spectra=dy_spectra)
            run(bound, scratch(spaces[0]))
            nowhere = np.full(p.y_shape, np.nan, p.dtype)  # dy itself is not read again
            run(bind(p, "backward_data", data, dx, case.w, nowhere, dy_spectra=dy_spectra), scratch(spaces[1]))
        results.append((dx, dw))
    for dx, dw in results:
        case.check("fft", "backward_data", dx)
        case.check("fft", "backward_weights", dw)
        assert np.array_equal(dx, case.run(data, "backward_data"))
        assert np.array_equal(dw, case.run(weights, "backward_weights"))


@contextlib.contextmanager
def threads_of(count: int) -> Iterator[None]:
    before = config.num_threads()
    config.set_num_threads(count)
    try:
        yield
    finally:
        config.set_num_threads(before)


def test_spectra_that_cannot_be_kept() -> None:
    p = ConvProblem(1, 10, 10, 8, 8, (5, 5))
    x, w, y = (np.zeros(shape, "float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    size = TABLE["fft 10x10"].spectra_size(p)
    with pytest.raises(ValueError, match="spectra: expected none for backward_data"):
        bind(p, "backward_data", "fft 10x10", x, w, y, spectra=np.zeros(size, "float32"))
    for name in ("fft", "direct"):
        with pytest.raises(ValueError, match=f"spectra: expected none for forward of {name}"):
            bind(p, "forward", name, x, w, y, spectra=np.zeros(size, "float32"))
    with pytest.raises(ValueError, match="spectra: expected shape"):
        bind(p, "forward", "fft 10x10", x, w, y, spectra=np.zeros(size - 1, "float32"))
    with pytest.raises(ValueError, match="dy_spectra: expected none for forward"):
        bind(p, "forward", "fft 10x10", x, w, y, dy_spectra=np.zeros(size, "float32"))
    with pytest.raises(ValueError, match="dy_spectra: expected shape"):
        bind(p, "backward_weights", "fft 10x10", x, w, y, dy_spectra=np.zeros(3, "float32"))
    grouped = ConvProblem(1, 10, 10, 8, 8, (5, 5), groups=2)
    assert TABLE["fft 10x10"].spectra_size(grouped) == 0
    volume = ConvProblem.of((1, 9, 10, 10, 8), (5, 5, 5, 8, 8), padding="same")
    assert TABLE["fft 14x14"].spectra_size(volume) > 0
    assert TABLE["fft 14x14"].dy_spectra_size(volume, "backward_data") == 0  # whose windows begin at other planes


def test_the_choice_says_its_basis() -> None:
    p = ConvProblem(64, 32, 32, 64, 64, (9, 9), padding="same")
    name = next(name for name in conv.algorithms(p, "forward") if name.startswith("fft"))
    assert name in TABLE
    assert TABLE[name].basis == bases.best(p, "forward")
    assert conv.algorithms(p, "forward")[0] == name  # 81 multiplications for an output are worth transforms
    assert conv.explain(p, "forward")["fft"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": (1, 1)}, "more than one tap"),
        ({"kernel": (3, 3), "groups": 8}, "depthwise does it"),
    ],
)
def test_reasons(options: dict[str, object], words: str) -> None:
    p = ConvProblem(1, 10, 10, 8, 8, padding="same", **options)
    assert words in str(conv.explain(p, "forward")["fft"])
    with pytest.raises(ValueError, match=words):
        conv.forward(p, np.zeros(p.x_shape, "float32"), np.zeros(p.w_shape, "float32"), algorithm="fft")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("fft", {"strides": (2, 1, 1)}, "a stride and a dilation of 1 along the depth, got 2 and 1"),
        ("fft", {"dilation": (2, 1, 1)}, "a stride and a dilation of 1 along the depth, got 1 and 2"),
        ("fft_overlap_add", {}, "tiles of one or two axes, not of three"),
    ],
)
def test_reasons_of_volumes(name: str, options: dict[str, object], words: str) -> None:
    p = ConvProblem.of((1, 9, 10, 10, 8), (3, 3, 3, 8, 8), padding="same", **options)
    assert words in str(conv.explain(p, "forward")[name])


@pytest.mark.parametrize("name", ["fft 11x11", "fft 12", "fft 12x12x12", "fft 4x4", "winograd 4x4", "fft 512x512"])
def test_bases_that_do_not_do(name: str) -> None:
    p = ConvProblem(1, 10, 10, 8, 8, (5, 5))
    with pytest.raises(ValueError, match="algorithm"):
        conv.forward(p, np.zeros(p.x_shape, "float32"), np.zeros(p.w_shape, "float32"), algorithm=name)


def test_strict_precision_leaves_it_out() -> None:
    p = ConvProblem(8, 32, 32, 32, 32, (9, 9))
    before = config.conv_precision()
    config.set_conv_precision("strict")
    try:
        assert not any(name.startswith("fft") for name in conv.algorithms(p, "forward"))
    finally:
        config.set_conv_precision(before)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_phases_are_watched_until_nobody_does(direction: str) -> None:
    case, seconds, threads = case_of(ConvProblem(2, 12, 12, 8, 8, (5, 5))), np.zeros(4), config.num_threads()
    config.set_num_threads(1)  # it is the first one that is watched
    fft_ext.watch(seconds)
    try:
        case.run("fft 12x12", direction)
    finally:
        fft_ext.watch(None)
        config.set_num_threads(threads)
    assert (seconds[:3] > 0).all()
    assert (seconds[3] > 0) == (direction != "backward_weights")  # whose inverse is to filters
    before = seconds.copy()
    case.run("fft 12x12", direction)
    assert np.array_equal(seconds, before)
