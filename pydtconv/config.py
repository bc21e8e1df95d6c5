"""Settings of the process, with Keras's names where Keras has them: float type, image format, epsilon, threads."""

from __future__ import annotations

import os

from pydtconv._ext import runtime

_floatx = "float32"
_epsilon = 1e-7
_image_data_format = "channels_last"
_conv_variant = "AUTO"
_conv_precision = "fast"
CONV_VARIANTS = ("BASE", "RDX", "CGT", "CGT+PM", "CGT+DG", "AUTO")


def floatx() -> str:
    """The default float type of layers and inputs: "float32" or "float64"."""
    return _floatx


def set_floatx(value: str) -> None:
    """Sets the default float type.  Raises ValueError for anything but "float32" and "float64"."""
    global _floatx
    if value not in ("float32", "float64"):
        raise ValueError(f"set_floatx: expected 'float32' or 'float64', got {value!r}")
    _floatx = value


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


def conv_variant() -> str:
    """The variant of convolution in force: which algorithm each pass takes where a layer names none."""
    return _conv_variant


def set_conv_variant(name: str) -> None:
    """Puts a variant of `pydtconv.conv` in force.  Raises ValueError for a name that is not in CONV_VARIANTS."""
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
    Winograd's, 1e-6 to 1e-5 of the largest result in float32.  "strict" leaves them out wherever the ranking chooses;
    an algorithm that a layer asks for by name still runs.
    """
    global _conv_precision
    if precision not in ("fast", "strict"):
        raise ValueError(f"set_conv_precision: expected 'fast' or 'strict', got {precision!r}")
    _conv_precision = precision


def num_threads() -> int:
    """Threads that every kernel uses."""
    return runtime.get_num_threads()


def set_num_threads(threads: int) -> None:
    """Sets the threads that every kernel uses.  Raises ValueError unless threads is an integer of 1 or more."""
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"set_num_threads: expected an integer of 1 or more, got {threads!r}")
    runtime.set_num_threads(threads)


def default_num_threads() -> int:
    """`PYDTCONV_NUM_THREADS`, else `OMP_NUM_THREADS`, else the cores this process may run on."""
    for name in ("PYDTCONV_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text:
            if not text.isdigit() or int(text) < 1:
                raise ValueError(f"{name}: expected an integer of 1 or more, got {text!r}")
            return int(text)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def threads_are_set() -> bool:
    """Whether the environment or `set_num_threads` says how many threads to use, and not the number of cores."""
    named = any(os.environ.get(name, "").strip() for name in ("PYDTCONV_NUM_THREADS", "OMP_NUM_THREADS"))
    return named or num_threads() != default_num_threads()


set_num_threads(default_num_threads())
