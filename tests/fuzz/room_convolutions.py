"""Random convolutions: every algorithm that can do one, against NumPy in float64; what must be refused.

Arrays lie among NaN, results among bytes that must be there afterwards: what is read or written elsewhere shows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv import config, conv, dtypes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind
from pydtconv.conv.bound_passes import run as run_bound
from pydtconv.conv.problem import DIRECTIONS, ConvProblem
from tests.fuzz import trials
from tests.reference import conv as reference

PROBLEMS = 20
#: extents around the edges of micro-kernels and of blocks of the sums, and the most products of a pass
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65)
LONG = (127, 128, 129, 255, 256, 257, 383, 384, 385, 511, 512, 513)
PRODUCTS = 400_000
HUGE = (2**15, 2**16 + 1, 2**21, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 + 1)
SLOW = 2.0
RTOL = {"float32": 2e-5, "float64": 1e-11}
ACTIVATIONS: dict[str | None, Any] = {
    None: lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.clip(y, 0, 6),
    "leaky_relu": lambda y: np.where(y > 0, y, 0.3 * y),
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "tanh": np.tanh,
}


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(PROBLEMS):
        p = _problem(random)
        # of float32 by products of bfloat16, too, where the CPU has units for them
        config.set_float32_matmul_precision(str(random.choice(("highest", "highest", "high", "medium"))))
        trials.keep("convolution.txt", f"seed {seed}, problem {index}: {p}".encode())
        _try_all(p, random)
        _try_bfloat16(p, random)
        trials.keep("arrays.txt", f"seed {seed}, arrays of problem {index}: {p}".encode())
        _try_arrays(p, random)
        _try_sizes(random)


# -- results -----------------------------------------------------------------------------------------------------------


def _problem(random: np.random.Generator) -> ConvProblem:
    """Small, of every kind; smaller ones are drawn until one fits PRODUCTS."""
    while True:
        groups, ci, co = 1, int(random.choice(CHANNELS)), int(random.choice(CHANNELS))
        kind = random.choice(("plain", "plain", "long", "groups", "depthwise"))
        if kind == "long":
            ci, co = random.permutation([int(random.choice(LONG)), co])
        elif kind != "plain":
            groups = ci if kind == "depthwise" else int(random.integers(2, 5))
            ci, co = (ci, groups * int(random.integers(1, 3))) if kind == "depthwise" else (ci * groups, co * groups)
        sides = [[int(v) for v in random.integers(0, 4, 2)] for _ in range(2)]
        kernel = random.choice(((1, 1), (3, 3), (3, 3), (2, 2), (5, 5), random.integers(1, 8, 2)))
        try:
            p = ConvProblem(
                int(random.choice((1, 1, 2, 3, 5))),
                *(int(v) for v in random.integers(1, 20, 2)),
                int(ci),
                int(co),
                tuple(int(v) for v in kernel),
                strides=random.choice(((1, 1), (1, 1), (2, 2), random.integers(1, 5, 2))).tolist(),
                padding=("valid", "same", sides)[random.integers(3)],
                dilation=random.choice(((1, 1), (1, 1), random.integers(1, 4, 2))).tolist(),
                groups=groups,
                dtype=str(random.choice(("float32", "float64"))),
            )
        except ValueError as error:
            if "would be empty" not in str(error):
                raise
            continue
        if p.flops <= 2 * PRODUCTS:
            return p


def _try_all(p: ConvProblem, random: np.random.Generator) -> None:
    arrays = {
        name: _placed(random.standard_normal(shape).astype(p.dtype), random, name in "xy")
        for name, shape in (("x", p.x_shape), ("w", p.w_shape), ("y", p.y_shape), ("b", (p.co,)))
    }
    for direction in DIRECTIONS:
        want = _reference(p, direction, arrays)
        for name, reason in conv.explain(p, direction).items():
            if reason is not None:
                continue
            for threads in (1, 2):
                _try(p, direction, name, threads, arrays, want, random)
                trials.count(f"{direction} {name}", "right")


def _reference(p: ConvProblem, direction: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    options = {"strides": (p.sh, p.sw), "padding": p.padding, "dilation": (p.dil_h, p.dil_w), "groups": p.groups}
    x, w, dy = arrays["x"], arrays["w"], arrays["y"]
    if direction == "forward":
        return reference.forward(x, w, **options)
    if direction == "backward_data":
        return reference.backward_data(dy, w, p.x_shape, **options)
    return reference.backward_weights(x, dy, p.w_shape, **options)


def _try(
    p: ConvProblem,
    direction: str,
    algorithm: str,
    threads: int,
    arrays: dict[str, np.ndarray],
    want: np.ndarray,
    random: np.random.Generator,
) -> None:
    """One pass with random additions, compared; the memory around its output and workspace, too."""
    options: dict[str, Any] = {}
    out, around, mark = _guarded(want.shape, p.dtype, random, direction != "backward_weights")
    if direction == "forward":
        if random.random() < 0.5:
            options["bias"] = arrays["b"]
            want = want + arrays["b"]
        if random.random() < 0.3:
            options["residual"] = arrays["y"]
            want = want + arrays["y"]
        options |= {"activation": random.choice(list(ACTIVATIONS)), "alpha": 0.3}
    elif direction == "backward_data" and random.random() < 0.4:
        options["accumulate"] = True
        out[...] = random.standard_normal(out.shape)
        want = want + out
    scale = max(np.abs(want).max(), 1.0)  # of the sums: no activation makes their errors larger
    if direction == "forward":
        want = ACTIVATIONS[options["activation"]](want)
    x, w, y = {
        "forward": (arrays["x"], arrays["w"], out),
        "backward_data": (out, arrays["w"], arrays["y"]),
        "backward_weights": (arrays["x"], out, arrays["y"]),
    }[direction]
    config.set_num_threads(threads)
    size = conv.workspace_bytes(p, direction, algorithm)
    workspace = np.full(size + 128, 0xA5, np.uint8)
    start = -workspace.ctypes.data % 64
    run_bound(bind(p, direction, algorithm, x, w, y, workspace=workspace[start : start + size], **options))
    told = f"{algorithm} {direction} of {p}, {threads} threads, {sorted(options)} {options.get('activation')}"
    error = np.abs(out - want).max() / scale
    if not error <= RTOL[p.dtype] * TABLE[algorithm].rounding:
        raise AssertionError(f"{told}: error {error:.2e}, strides {x.strides}, {y.strides}")
    out.view(_bits(p.dtype))[...] = mark
    if not (around == mark).all():
        raise AssertionError(f"{told}: something else than the output was written")
    if not ((workspace[:start] == 0xA5).all() and (workspace[start + size :] == 0xA5).all()):
        raise AssertionError(f"{told}: something else than the workspace was written")


def _try_bfloat16(p: ConvProblem, random: np.random.Generator) -> None:
    """The same problem with images in bfloat16: the bits of NaN around them, and what results and workspaces lie in."""
    p = ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, p.groups, "bfloat16")
    shapes = {"x": p.x_shape, "w": p.w_shape, "y": p.y_shape}
    values = {name: random.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    values = {name: dtypes.from_bits(dtypes.to_bits(value)) for name, value in values.items()}
    placed = {"w": _placed(values["w"], random, image=False)}
    for name in "xy":
        placed[name], _ = _room(shapes[name], "uint16", random, int(random.choice((0, 0, 3))), 0x7FC0)
        placed[name][...] = dtypes.to_bits(values[name])
    written = {"forward": "y", "backward_data": "x", "backward_weights": "w"}
    for direction in DIRECTIONS:
        want = _reference(p, direction, values)
        for name, reason in conv.explain(p, direction).items():
            if reason is not None:
                continue
            image = direction != "backward_weights"
            extra = int(random.choice((0, 5))) if image else 0
            out, flat = _room(want.shape, "uint16" if image else "float32", random, extra, 777)
            arrays = placed | {written[direction]: out}
            config.set_num_threads(int(random.integers(1, 4)))
            size = conv.workspace_bytes(p, direction, name)
            workspace = np.full(size + 128, 0xFF, np.uint8)
            start = -workspace.ctypes.data % 64
            space = workspace[start : start + size]
            run_bound(bind(p, direction, name, arrays["x"], arrays["w"], arrays["y"], workspace=space))
            told = f"{name} {direction} of {p}, {config.num_threads()} threads"
            got = dtypes.from_bits(out).astype("float64") if image else out
            allowed = RTOL["float32"] * TABLE[name].rounding_in("bfloat16") * max(np.abs(want).max(), 1.0)
            if image:
                allowed = allowed + np.abs(want) / 2**8
            if not (np.abs(got - want) <= allowed).all():
                raise AssertionError(f"{told}: error {np.abs(got - want).max():.2e} of {np.abs(want).max():.2e}")
            out[...] = 777
            if not (flat == 777).all():
                raise AssertionError(f"{told}: something else than the output was written")
            if not ((workspace[:start] == 0xFF).all() and (workspace[start + size :] == 0xFF).all()):
                raise AssertionError(f"{told}: something else than the workspace was written")
            trials.count(f"{direction} {name} bfloat16", "right")


def _bits(dtype: str) -> str:
    return "uint32" if dtype == "float32" else "uint64"


def _placed(value: np.ndarray, random: np.random.Generator, image: bool) -> np.ndarray:
    """The array among NaN, at any aligned address; an image is a slice of channels now and then."""
    extra = int(random.integers(1, 9)) if image and random.random() < 0.4 else 0
    view, _ = _room(value.shape, value.dtype.name, random, extra, np.nan)
    view[...] = value
    return view


def _room(
    shape: tuple[int, ...], dtype: str, random: np.random.Generator, extra: int, fill: float
) -> tuple[np.ndarray, np.ndarray]:
    """An array of that shape, with `extra` more channels beside it, within a larger one, which comes second."""
    whole = (*shape[:-1], shape[-1] + extra)
    size, front = int(np.prod(whole)), int(random.integers(0, 17))
    flat = np.full(size + front + 64, fill, dtype)
    first = int(random.integers(0, extra + 1))
    return flat[front : front + size].reshape(whole)[..., first : first + shape[-1]], flat


def _guarded(
    shape: tuple[int, ...], dtype: str, random: np.random.Generator, image: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """An array for a result, the bits of all around it, and what they must be afterwards."""
    extra = int(random.integers(1, 9)) if image and random.random() < 0.4 else 0
    out, flat = _room(shape, dtype, random, extra, -777.25)
    around = flat.view(_bits(dtype))
    return out, around, int(around[-1])


# -- what must be refused ----------------------------------------------------------------------------------------------


def _misaligned(value: np.ndarray) -> np.ndarray:
    memory = np.zeros(value.nbytes + 1, np.uint8)
    view = memory[1:].view(value.dtype).reshape(value.shape) if value.nbytes else value
    view[...] = value
    return view


def _broadcast(value: np.ndarray) -> np.ndarray:
    return (
        np.broadcast_to(value[..., :1, :1, :], value.shape)
        if value.ndim == 4
        else np.broadcast_to(value[:1], value.shape)
    )


def _sliding(value: np.ndarray) -> np.ndarray:
    """Each pixel begins one element behind the one before."""
    size, shape = value.itemsize, value.shape
    strides = [size] * len(shape)
    for axis in range(len(shape) - 3, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    memory = np.resize(value, sum((extent - 1) * step // size for extent, step in zip(shape, strides, strict=True)) + 1)
    return as_strided(memory, shape, strides)


def _every_second(value: np.ndarray) -> np.ndarray:
    return np.repeat(value, 2, axis=value.ndim // 2)[(slice(None),) * (value.ndim // 2) + (slice(None, None, 2),)]


#: arrays of the same values, or of as many others, that lie otherwise
LAYOUTS: dict[str, Any] = {
    "misaligned": _misaligned,
    "broadcast": _broadcast,
    "sliding": _sliding,
    "every second": _every_second,
    "fortran": np.asfortranarray,
    "reversed": lambda value: value[::-1],
    "swapped bytes": lambda value: value.astype(value.dtype.newbyteorder()),
    "float16": lambda value: value.astype("float16"),
    "one more": lambda value: np.concatenate([value, value], axis=-1),
    "list": lambda value: value.tolist(),
}


def _try_arrays(p: ConvProblem, random: np.random.Generator) -> None:
    """Each pass with one array that lies otherwise, an output over an input among them: refused, or right."""
    plain = {
        name: random.standard_normal(shape).astype(p.dtype)
        for name, shape in (("x", p.x_shape), ("w", p.w_shape), ("y", p.y_shape))
    }
    config.set_num_threads(int(random.integers(1, 3)))
    for direction in DIRECTIONS:
        first, second = {"forward": "xw", "backward_data": "yw", "backward_weights": "xy"}[direction]
        function = getattr(conv, direction)
        which = (first, second, "out")[random.integers(3)]
        kind = str(random.choice(list(LAYOUTS)))
        arrays = dict(plain)
        out = np.full(_reference(p, direction, arrays).shape, 77.0, p.dtype)
        if which == "out":
            kind = "over an input" if random.random() < 0.3 else kind
            if kind == "over an input":  # both lie at the beginning of one array
                memory = np.resize(plain[first], max(plain[first].size, out.size))
                arrays[first] = memory[: plain[first].size].reshape(plain[first].shape)
                out = memory[: out.size].reshape(out.shape)
            else:
                out = LAYOUTS[kind](out)
        else:
            arrays[which] = LAYOUTS[kind](plain[which])
        before = np.array(out)
        algorithm = str(random.choice(conv.algorithms(p, direction)))
        told = f"{direction} of {p} by {algorithm}, {which} {kind}"
        try:
            got = function(p, arrays[first], arrays[second], algorithm=algorithm, out=out)
        except (TypeError, ValueError) as error:
            if np.array(out).tobytes() != before.tobytes():
                raise AssertionError(f"{told}: the output was written before the error") from error
            trials.count(f"array {kind}", "refused")
            continue
        want = _reference(p, direction, {name: np.asarray(value, "float64") for name, value in arrays.items()})
        error = np.abs(got - want).max() / max(np.abs(want).max(), 1.0)
        if not error <= RTOL[p.dtype] * TABLE[algorithm].rounding:
            raise AssertionError(f"{told}: error {error:.2e}")
        trials.count(f"array {kind}", "right")


def _try_sizes(random: np.random.Generator) -> None:
    """Extreme sizes: refused by name, or all that is asked about the problem is answered at once and fits 64 bits."""
    sizes: dict[str, Any] = {name: int(random.integers(1, 9)) for name in ("n", "ih", "iw", "ci", "co")}
    sizes |= {"kernel": [1, 1], "strides": [1, 1], "dilation": [1, 1], "groups": 1, "padding": [[0, 0], [0, 0]]}
    for _ in range(int(random.integers(1, 5))):
        name, value = str(random.choice(list(sizes))), int(HUGE[random.integers(len(HUGE))])
        value = value >> int(random.integers(0, 12))
        if name == "padding":
            sizes[name][random.integers(2)][random.integers(2)] = value
        elif isinstance(sizes[name], list):
            sizes[name][random.integers(2)] = value
        else:
            sizes[name] = value
    if random.random() < 0.3:
        sizes["padding"] = "same"
    trials.keep("sizes.txt", repr(sizes).encode())
    begun = time.process_time()
    outcome = "refused"
    try:
        p = ConvProblem(**sizes)
        outcome = "answered"
        for direction in DIRECTIONS:
            for name in conv.algorithms(p, direction):
                if not 0 <= conv.workspace_bytes(p, direction, name) < 2**63:
                    raise AssertionError(f"workspace of {name} {direction} of {p}")
        if max(np.prod(shape, dtype=float) for shape in (p.x_shape, p.w_shape, p.y_shape)) > 2**30:
            _refused(p)
    except ValueError as error:
        if outcome == "answered":
            raise AssertionError(f"{p}: {error}") from error
    if time.process_time() - begun > SLOW:
        raise AssertionError(f"{sizes}: {time.process_time() - begun:.1f} s")
    trials.count("sizes", outcome)


def _refused(p: ConvProblem) -> None:
    """Arrays of these shapes that take no memory are refused before anything is computed."""
    x, w, dy = (as_strided(np.zeros(1, p.dtype), shape, (0, 0, 0, 0)) for shape in (p.x_shape, p.w_shape, p.y_shape))
    calls = (
        lambda: conv.forward(p, x, w),
        lambda: conv.backward_data(p, dy, w),
        lambda: conv.backward_weights(p, x, dy),
    )
    for call in calls:
        try:
            call()
        except (MemoryError, ValueError):
            continue
        raise AssertionError(f"{p}: arrays of one element were taken")
