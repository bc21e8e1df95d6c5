"""Fourier transforms of arrays, complex numbers as pairs (real, imaginary), by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv.dtypes import COMPLEX, FLOATING, name_of
from pydtconv.extents import check
from pydtconv.ops.functions.operands import as_float, as_operand, is_symbolic
from pydtconv.ops.functions.tables.elementwise import _FUNCTIONS
from pydtconv.ops.functions.tables.function_of_row import apply
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import RULES, Backward, Rule, unbroadcast
from pydtconv.serialization.budget import claim
from pydtconv.support.windows import window_of

__all__ = exported(numpy="angle", nn="polar", math="fft fft2 ifft2 irfft istft rfft stft view_as_complex view_as_real")

Shape = tuple[int, ...]


def _array(name: str, x: Any) -> np.ndarray:
    x = _FUNCTIONS["stop_gradient"](x)  # an array, of a variable too where no graph is traced
    if is_symbolic(x):
        raise NotImplementedError(f"ops.{name}: is here for arrays only, got {x!r}")
    return np.asarray(x)


def _complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    return real + 1j * imag


def _parts(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return z.real, z.imag


def _upstream(b: Backward, shape: Shape) -> np.ndarray:
    """The gradient of a pair, where one of the two may have none."""
    return _complex(*(np.zeros(shape) if dy is None else dy for dy in b.dy))


def _both(real: Shape, imag: Shape, **static: Any) -> list[Shape]:
    shape = np.broadcast_shapes(real, imag)
    return [shape, shape]


def _enter(
    name: str, forward: Callable[..., Any], adjoint: Callable[..., Any], shape: Callable[..., Any] | None = None
) -> None:
    """A linear function of (real, imaginary) to a pair: its gradient is its adjoint of the gradient's pair."""

    def gradient(b: Backward, **static: Any) -> Any:
        whole = _both(*b.shapes)[0]
        dx = adjoint(_upstream(b, shape(*b.shapes, **static)[0] if shape else whole), whole, **static)
        return tuple(unbroadcast(part, own) for part, own in zip(_parts(dx), b.shapes, strict=True))

    RULES[name] = Rule(
        lambda real, imag, **static: _parts(forward(_complex(real, imag), **static)),
        gradient,
        shape or _both,
        linear=(0, 1),
    )


_enter("fft", np.fft.fft, lambda dy, x: np.fft.ifft(dy) * x[-1])
_enter("fft2", np.fft.fft2, lambda dy, x: np.fft.ifft2(dy) * (x[-1] * x[-2]))
_enter("ifft2", np.fft.ifft2, lambda dy, x: np.fft.fft2(dy) / (x[-1] * x[-2]))


def _pair(name: str, x: Any, axes: int) -> list[Any]:
    """The real and the imaginary part.  Raises ValueError for what is no pair, or has fewer axes."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"{name}: expected (real, imaginary), got {type(x).__name__} {np.shape(x)}")
    if any(len(np.shape(part) if not hasattr(part, "shape") else part.shape) < axes for part in x):
        raise ValueError(f"{name}: expected {axes} axes or more, got shapes {[np.shape(part) for part in x]}")
    return list(x)


def fft(x: Any) -> tuple[Any, Any]:
    """The transform of (real, imaginary) along the last axis."""
    return apply("fft", _pair("fft", x, 1), {})


def fft2(x: Any) -> tuple[Any, Any]:
    """The transform of (real, imaginary) along the last two axes."""
    return apply("fft2", _pair("fft2", x, 2), {})


def ifft2(x: Any) -> tuple[Any, Any]:
    """The inverse of fft2."""
    return apply("ifft2", _pair("ifft2", x, 2), {})


def _fitted(x: np.ndarray, extent: int) -> np.ndarray:
    """x with its last axis cut, or filled up with zeros."""
    x = x[..., :extent]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, extent - x.shape[-1])])


def _adjoint_of_rfft(dy: np.ndarray, length: int) -> np.ndarray:
    """The gradient of `length` real numbers by that of their frequencies from 0 to half."""
    return np.fft.ifft(_fitted(dy, length)).real * length


def _adjoint_of_irfft(dy: np.ndarray, bins: int) -> np.ndarray:
    """The gradient of so many frequencies by that of real numbers: all but the first and the middle count twice."""
    length = dy.shape[-1]
    weight = np.full(length // 2 + 1, 2.0)
    weight[0] = 1
    if length % 2 == 0:
        weight[-1] = 1
    return _fitted(np.fft.rfft(dy) * weight / length, bins)


def _rfft_gradient(b: Backward, fft_length: int | None) -> Any:
    (shape,) = b.shapes
    length = fft_length or shape[-1]
    return (_fitted(_adjoint_of_rfft(_upstream(b, _rfft_shape(shape, fft_length)[0]), length), shape[-1]),)


def _rfft_shape(x: Shape, fft_length: int | None) -> list[Shape]:
    if not x:
        raise ValueError("expected one axis or more")
    shape = (*x[:-1], (fft_length or x[-1]) // 2 + 1)
    return [shape, shape]


def _irfft(real: np.ndarray, imag: np.ndarray, fft_length: int | None) -> np.ndarray:
    return np.fft.irfft(_complex(real, imag), fft_length)


def _irfft_gradient(b: Backward, fft_length: int | None) -> Any:
    return _parts(_adjoint_of_irfft(b.dy[0], b.shapes[0][-1]))


def _irfft_shape(real: Shape, imag: Shape, fft_length: int | None) -> Shape:
    return (*np.broadcast_shapes(real, imag)[:-1], fft_length or 2 * (real[-1] - 1))


RULES["rfft"] = Rule(lambda x, fft_length: _parts(np.fft.rfft(x, fft_length)), _rfft_gradient, _rfft_shape, linear=(0,))
RULES["irfft"] = Rule(_irfft, _irfft_gradient, _irfft_shape, linear=(0, 1))


def rfft(x: Any, fft_length: int | None = None) -> tuple[Any, Any]:
    """The transform of real x along the last axis: frequencies from 0 to half."""
    _rfft_shape(np.shape(x) if not hasattr(x, "shape") else x.shape, fft_length or 1)
    return apply("rfft", [x], {"fft_length": fft_length})


def irfft(x: Any, fft_length: int | None = None) -> Any:
    """The inverse of rfft."""
    return apply("irfft", _pair("irfft", x, 1), {"fft_length": fft_length})


def _window(window: Any, sequence_length: int, fft_length: int) -> np.ndarray:
    """A periodic window of sequence_length in the middle of fft_length; None for ones."""
    window = np.asarray(window) if isinstance(window, tuple) else window
    if not 0 < sequence_length <= fft_length:
        raise ValueError(f"stft: sequence_length: expected 1 to fft_length = {fft_length}, got {sequence_length}")
    claim(16 * fft_length, f"stft: a window of {fft_length} numbers")
    try:
        found = window_of(window, sequence_length, periodic=True)
    except ValueError as error:
        raise ValueError(f"stft: {error}") from None
    values = np.ones(sequence_length) if found is None else found
    before = (fft_length - sequence_length) // 2
    return np.pad(values, (before, fft_length - sequence_length - before))


def _places(extent: int, stride: int, length: int, center: bool) -> np.ndarray:
    """(windows, length): the place of each of their numbers among `extent`, reflected at the ends where centred."""
    places = np.arange(extent)
    if center:
        places = np.pad(places, length // 2, mode="reflect")
    return np.lib.stride_tricks.sliding_window_view(places, length)[::stride]


def _add_at(y: np.ndarray, places: np.ndarray, windows: np.ndarray) -> None:
    """y[..., places] += windows, where places may come again."""
    last: Any = (..., places)
    np.add.at(y, last, windows)


def _stft(
    x: np.ndarray, sequence_length: int, sequence_stride: int, fft_length: int, window: Any, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    places = _places(x.shape[-1], sequence_stride, fft_length, center)
    return _parts(np.fft.rfft(x[..., places] * _window(window, sequence_length, fft_length)))


def _stft_gradient(
    b: Backward, sequence_length: int, sequence_stride: int, fft_length: int, window: Any, center: bool
) -> Any:
    (shape,) = b.shapes
    places = _places(shape[-1], sequence_stride, fft_length, center)
    dy = _upstream(b, (*shape[:-1], len(places), fft_length // 2 + 1))
    frames = _adjoint_of_rfft(dy, fft_length) * _window(window, sequence_length, fft_length)
    dx = np.zeros(shape)
    _add_at(dx, places, frames)
    return (dx,)


def _stft_shape(
    x: Shape, sequence_length: int, sequence_stride: int, fft_length: int, window: Any, center: bool
) -> list[Shape]:
    extent = x[-1] + fft_length // 2 * 2 * center
    if extent < fft_length:
        raise ValueError(f"expected {fft_length} steps or more, got {extent}")
    shape = (*x[:-1], (extent - fft_length) // sequence_stride + 1, fft_length // 2 + 1)
    return [shape, shape]


RULES["stft"] = Rule(_stft, _stft_gradient, _stft_shape, linear=(0,))


def _check_sizes(*sizes: int) -> None:
    for name, size in zip(("sequence_length", "sequence_stride", "fft_length"), sizes, strict=True):
        if not isinstance(size, (int, np.integer)):
            raise ValueError(f"stft: {name}: expected an integer, got {size!r}")
        check(f"stft: {name}", size, least=1)


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> tuple[Any, Any]:
    """Transforms of windows along the last axis: (..., n) -> two of (..., windows, fft_length // 2 + 1).

    Raises TypeError for x that is not of floats.
    """
    if hasattr(x, "dtype") and name_of(x.dtype) not in FLOATING:
        raise TypeError(f"stft: x: expected floats, got {name_of(x.dtype)}")
    _check_sizes(sequence_length, sequence_stride, fft_length)
    _window(window, sequence_length, fft_length)  # whether it can be
    sizes = {"sequence_length": sequence_length, "sequence_stride": sequence_stride, "fft_length": fft_length}
    return apply("stft", [x], {**sizes, "window": window, "center": center})


def _kept(windows: int, static: Mapping[str, Any]) -> tuple[int, slice]:
    """The extent of windows that are added up, and the part of it that is the result."""
    total = static["fft_length"] + (windows - 1) * static["sequence_stride"]
    half = static["fft_length"] // 2 if static["center"] else 0
    return total, slice(half, total - half if static["length"] is None else min(half + static["length"], total))


def _istft_shape(real: Shape, imag: Shape, **static: Any) -> Shape:
    _, kept = _kept(real[-2], static)
    return (*real[:-2], kept.stop - kept.start)


class _Overlapping:
    """Windows that are added up, divided by the sum of their squares: where they go, and what is left at the ends."""

    def __init__(self, windows: int, static: Mapping[str, Any]) -> None:
        length, stride, self.fft_length = (static[f"{k}"] for k in ("sequence_length", "sequence_stride", "fft_length"))
        self.total, self.kept = _kept(windows, static)
        self.values = _window(static["window"], length, self.fft_length)
        if static["window"] is None:  # whole frames are added up, and nothing is divided, as in Keras
            self.values = np.ones(self.fft_length)
        self.places = np.arange(windows)[:, None] * stride + np.arange(self.fft_length)
        weight = np.zeros(self.total)
        _add_at(weight, self.places, np.broadcast_to(self.values**2, self.places.shape))
        self.weight = np.where((weight > 1e-11) & (static["window"] is not None), weight, 1)


def _istft(real: np.ndarray, imag: np.ndarray, **static: Any) -> np.ndarray:
    windows = _Overlapping(real.shape[-2], static)
    frames = np.fft.irfft(_complex(real, imag), windows.fft_length) * windows.values
    y = np.zeros((*frames.shape[:-2], windows.total))
    _add_at(y, windows.places, frames)
    return (y / windows.weight)[..., windows.kept]


def _istft_gradient(b: Backward, **static: Any) -> Any:
    *_, count, bins = b.shapes[0]
    windows = _Overlapping(count, static)
    dy = np.zeros((*b.dy[0].shape[:-1], windows.total))
    dy[..., windows.kept] = b.dy[0]
    frames = (dy / windows.weight)[..., windows.places] * windows.values
    return _parts(_adjoint_of_irfft(frames, bins))


RULES["istft"] = Rule(_istft, _istft_gradient, _istft_shape, linear=(0, 1))


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Any:
    """The inverse of stft: windows added up, divided by the sum of their squares."""
    _check_sizes(sequence_length, sequence_stride, fft_length)
    _window(window, sequence_length, fft_length)
    sizes = {"sequence_length": sequence_length, "sequence_stride": sequence_stride, "fft_length": fft_length}
    return apply("istft", _pair("istft", x, 2), {**sizes, "length": length, "window": window, "center": center})


def angle(x: Any) -> Any:
    """The angle of complex numbers; of real ones pi where they are negative, else 0."""
    if is_symbolic(x) and name_of(x.dtype) not in COMPLEX:
        return _FUNCTIONS["arctan2"](0.0, _FUNCTIONS["stop_gradient"](as_float(x)))
    array = _array("angle", x)
    return np.angle(array).astype(array.real.dtype if array.dtype.kind in "fc" else "float32")


def polar(abs_: Any, angle: Any) -> np.ndarray:
    """Complex numbers of absolute values and angles."""
    radius, turn = as_operand(_array("polar", abs_)), as_operand(_array("polar", angle))
    return radius * np.exp(1j * turn)


def view_as_complex(x: Any) -> np.ndarray:
    """(..., 2), real and imaginary parts, as complex numbers."""
    array = as_operand(_array("view_as_complex", x))
    if array.shape[-1:] != (2,):
        raise ValueError(f"view_as_complex: expected a last axis of 2, got shape {array.shape}")
    return array[..., 0] + 1j * array[..., 1]


def view_as_real(x: Any) -> np.ndarray:
    """Complex numbers as (..., 2), real and imaginary parts."""
    array = _array("view_as_real", x)
    return np.stack([array.real, array.imag], -1)
