"""Settings of the process, with Keras's names where Keras has them: float type, image format, epsilon, threads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydtconv import caches, dtype_policies, hooks
from pydtconv._ext import runtime
from pydtconv.dtype_policies import dtype_policy as dtype_policy
from pydtconv.dtype_policies import set_dtype_policy as set_dtype_policy
from pydtconv.naming import device_name
from pydtconv.suggest import refusal

_floatx = "float32"
_epsilon = 1e-7
_image_data_format = "channels_last"
_unsafe_deserialization = False
_conv_variant = "AUTO"
_conv_precision = "fast"
_float32_matmul_precision = "highest"
_conv_workspace_limit: int | None = None
_conv_tuning = _conv_tuning_spent = 0.0
_device = "cpu"
_device_of_block: ContextVar[str | None] = ContextVar("_device_of_block", default=None)
#: the most threads that may be set
MOST_THREADS: int = runtime.MOST_THREADS
hold_num_threads = runtime.hold_num_threads
MATMUL_PRECISIONS = ("highest", "high", "medium")
CONV_VARIANTS = ("BASE", "RDX", "CGT", "CGT+PM", "CGT+DG", "CGT+DG+PM", "AUTO")


def floatx() -> str:
    """The default float type of layers and inputs: "float32" or "float64"."""
    return _floatx


def set_floatx(value: str) -> None:
    """Sets the default float type.  Raises ValueError for anything but "float32" and "float64"."""
    global _floatx
    if value not in ("float32", "float64"):
        raise ValueError(f"set_floatx: expected 'float32' or 'float64', got {value!r}")
    _floatx = value
    dtype_policies.set_default(value)


def backend() -> str:
    """The name "pydtconv", where Keras has "jax" or "torch"."""
    return "pydtconv"


def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite."""
    return _epsilon


def set_epsilon(value: float) -> None:
    global _epsilon
    if not float(value) > 0:
        raise ValueError(f"set_epsilon: expected a positive number, got {value!r}")
    _epsilon = float(value)


def image_data_format() -> str:
    """The default image format: "channels_last" or "channels_first"."""
    return _image_data_format


def set_image_data_format(data_format: str) -> None:
    global _image_data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"set_image_data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    _image_data_format = data_format


def enable_unsafe_deserialization() -> None:
    """Lets files of models bring the code of their lambda functions, from now on and in the whole process."""
    global _unsafe_deserialization
    _unsafe_deserialization = True


def unsafe_deserialization() -> bool:
    """Whether `enable_unsafe_deserialization` was called."""
    return _unsafe_deserialization


def conv_variant() -> str:
    """The active variant of convolution: which algorithm each pass takes where a layer names none."""
    return _conv_variant


def set_conv_variant(name: str) -> None:
    """Makes a variant of `pydtconv.conv` active.  Raises ValueError for a name that is not in CONV_VARIANTS."""
    global _conv_variant
    if name not in CONV_VARIANTS:
        raise ValueError(f"set_conv_variant: expected one of {', '.join(CONV_VARIANTS)}, got {name!r}")
    _conv_variant = name


def conv_precision() -> str:
    """Which algorithms the ranking of convolution takes: "fast", all, or "strict", plain sums of products only."""
    return _conv_precision


def set_conv_precision(precision: str) -> None:
    """Sets the precision of convolution; raises ValueError for anything but "fast" and "strict".

    "fast" (the default) allows algorithms whose rounding errors are some times larger than those of the plain sum:
    Winograd's, 1e-6 to 1e-5 of the largest result in float32.  It adds up the pixels of a tile before it multiplies, so
    that one infinity, one NaN, or a finite value near the largest (1.5e38 in float32) makes all pixels of the tiles
    that read it infinite or NaN: 16 and more, where plain sums have 9 at most, or none.  In mixed_bfloat16 it also
    allows `winograd_bf16`, whose error is 0.6% of the result in forward and 1.1% in backward passes, where that of
    rounded operands is 0.2%.  Large products of dense layers, einsum and matmul take Strassen's algorithm, whose error
    is up to 1e-6.  "strict" leaves such algorithms out wherever the ranking chooses; one that a layer asks for by name
    still runs.

    "strict" also makes forward independent of how work is cut, on CPUs: a pixel has the same bits in any batch, in a
    part of an image, on any mesh of processes.  Algorithms are then chosen by the filters alone, and batch
    normalization sums in float64.
    """
    global _conv_precision
    if precision not in ("fast", "strict"):
        raise ValueError(f"set_conv_precision: expected 'fast' or 'strict', got {precision!r}")
    _conv_precision = precision


def float32_matmul_precision() -> str:
    """How float32 operands of products are multiplied: "highest" (the default), "high" or "medium"."""
    return _float32_matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how convolutions and dense layers multiply in float32, in PyTorch's words; sums are always float32.

    "highest": as float32.  "high": each operand as the sum of two bfloat16, a product as three products of these, which
    has 16 bits of precision or more.  "medium": operands are rounded to bfloat16, which has 8 bits.  Both are taken
    where AMX makes them faster; elsewhere, and without AMX, products are as "highest" says.  But with "medium" 3x3
    convolutions may have larger tiles of Winograd's method on every CPU (`winograd_large`; errors of 1e-5).  Models in
    float64 and bfloat16 are as they were.  On a GPU both mean TF32: tensor cores multiply operands rounded to 10 bits.
    The environment variable PYDTCONV_MATMUL_PRECISION sets it, too.

    bfloat16 ends at 3.39e38, and AMX takes what is below 1.2e-38 for 0.  With "high" an infinity, or what is beyond
    that end, has no halves: sums that it is in are NaN.

    Raises ValueError for another word.
    """
    global _float32_matmul_precision
    if precision not in MATMUL_PRECISIONS:
        expected = ", ".join(map(repr, MATMUL_PRECISIONS[:-1]))
        raise ValueError(
            f"set_float32_matmul_precision: expected {expected} or {MATMUL_PRECISIONS[-1]!r}, got {precision!r}"
        )
    _float32_matmul_precision = precision


def conv_workspace_limit() -> int | None:
    """Bytes of scratch memory that algorithms of convolution may need to be chosen; None for any number."""
    return _conv_workspace_limit


def set_conv_workspace_limit(limit: int | None) -> None:
    """Sets the bytes of scratch memory that a convolution may need.  Raises ValueError for a negative number.

    It counts wherever the choice of an algorithm is open (see `set_conv_variant`); where all need more, the one that
    needs the least is taken.
    """
    global _conv_workspace_limit
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ValueError(f"set_conv_workspace_limit: expected None or bytes of 0 or more, got {limit!r}")
    _conv_workspace_limit = limit


def conv_tuning() -> float:
    """Seconds that tuning at first use may take in this process; 0 where it is off."""
    return _conv_tuning


def set_conv_tuning(seconds: float) -> None:
    """Turns tuning at first use on, for so many seconds of this process in all (True: 60), or off (0 or False).

    Off is the default: a start is never slow, and choices follow what `pydtconv tune` or an earlier run has measured,
    else the cost model.  Where it is on, the passes of convolutions that have not been decided on this machine are
    timed before the first step on batches of a shape, those that take the longest first, and the results are kept in
    the file of `pydtconv tune`.  So a choice is made once for a machine, number of threads and build, whatever time
    was left for it, and equal runs go on having equal bits.  The environment variable PYDTCONV_TUNE sets the seconds.

    Raises ValueError for what is not a number of 0 or more.
    """
    global _conv_tuning, _conv_tuning_spent
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise ValueError(f"set_conv_tuning: expected seconds of 0 or more, got {seconds!r}")
    _conv_tuning = 60.0 if seconds is True else float(seconds)
    _conv_tuning_spent = 0.0


def conv_tuning_left() -> float:
    """The seconds of `set_conv_tuning` that have not been spent."""
    return max(_conv_tuning - _conv_tuning_spent, 0.0)


def spend_conv_tuning(seconds: float) -> None:
    """Notes that tuning took so long."""
    global _conv_tuning_spent
    _conv_tuning_spent += seconds


def _tuning_of_the_environment() -> float:
    text = os.environ.get("PYDTCONV_TUNE", "").strip() or "0"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"PYDTCONV_TUNE: expected seconds of 0 or more, got {text!r}")
    return seconds


def device() -> str:
    """The device that models run on: `pydtconv.device(...)` of this thread, else `set_device`, else PYDTCONV_DEVICE."""
    return _device_of_block.get() or _device


def set_device(name: str) -> None:
    """Sets the device that models run on: "cpu" (the default), "gpu", "gpu:1", or "host" for tests of GPU kernels.

    Raises ValueError for another name, DeviceError, in one line, where CuPy, a driver or the device is missing.
    """
    global _device
    found = device_name(name)
    if found != "cpu":
        hooks.device(found)
    _device = found


@contextmanager
def use_device(name: str) -> Iterator[None]:
    """Within it, models of this thread run on another device: `keras.device`.  Raises as `set_device` does."""
    found = device_name(name)
    if found != "cpu":
        hooks.device(found)
    token = _device_of_block.set(found)
    try:
        yield
    finally:
        _device_of_block.reset(token)


def num_threads() -> int:
    """Threads that every kernel uses which this thread calls."""
    return runtime.get_num_threads()


def set_num_threads(threads: int) -> None:
    """Sets the threads that every kernel uses; steps and calls that are under way keep the number they began with.

    Raises ValueError unless threads is an integer from 1 to 1024.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"set_num_threads: expected an integer of 1 or more, at most {MOST_THREADS}, got {threads!r}")
    runtime.set_num_threads(threads)


def threads_of_environment() -> tuple[str, int] | None:
    """The variable of the environment that says how many threads to use, and their number.

    Raises ValueError for another value of `PYDTCONV_NUM_THREADS`.  One of `OMP_NUM_THREADS`, which other programs read
    too, is passed over with a warning.
    """
    for name in ("PYDTCONV_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text:
            threads = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
            if 1 <= threads <= MOST_THREADS:
                return name, threads
            problem = f"{name}: expected an integer of 1 or more, at most {MOST_THREADS}, got {text[:20]!r}"
            if name != "OMP_NUM_THREADS":
                raise ValueError(problem)
            warnings.warn(f"{problem}: passed over", RuntimeWarning, stacklevel=3)
    return None


def default_num_threads() -> int:
    """`PYDTCONV_NUM_THREADS`, else `OMP_NUM_THREADS`, else the cores this process may run on."""
    named = threads_of_environment()
    if named:
        return named[1]
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def of_kernels() -> tuple[Any, ...]:
    """The settings that say what operators compute, and how: changing one of these traces and plans steps anew."""
    return (
        device(),
        num_threads(),
        _conv_variant,
        _conv_precision,
        _float32_matmul_precision,
        conv_workspace_limit(),
        conv_tuning() > 0,
        _floatx,
        _epsilon,
        _image_data_format,
    )


def threads_are_set() -> bool:
    """Whether the environment or `set_num_threads` says how many threads to use, and not the number of cores."""
    return threads_of_environment() is not None or num_threads() != default_num_threads()


def _device_of_the_environment() -> str:
    name = os.environ.get("PYDTCONV_DEVICE", "").strip()
    try:
        return device_name(name or "cpu")
    except ValueError as error:
        raise ValueError(f"PYDTCONV_DEVICE: {error}") from None


def _matmul_precision_of_the_environment() -> str:
    name = os.environ.get("PYDTCONV_MATMUL_PRECISION", "").strip() or "highest"
    if name not in MATMUL_PRECISIONS:
        raise ValueError(f"PYDTCONV_MATMUL_PRECISION: expected one of {', '.join(MATMUL_PRECISIONS)}, got {name!r}")
    return name


caches.set_by_environment()
set_num_threads(default_num_threads())
set_float32_matmul_precision(_matmul_precision_of_the_environment())
set_conv_tuning(_tuning_of_the_environment())
_device = _device_of_the_environment()


__getattr__ = refusal(__name__)
