"""Settings of the process, with Keras's names where Keras has them: float type, image format, epsilon, threads."""

from __future__ import annotations

import os

from pydtconv._ext import runtime

_floatx = "float32"
_epsilon = 1e-7
_image_data_format = "channels_last"
_conv_variant = "AUTO"
_conv_precision = "fast"
_conv_workspace_limit: int | None = None
_conv_tuning = _conv_tuning_spent = 0.0
#: the most threads that may be set
MOST_THREADS: int = runtime.MOST_THREADS
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
    Winograd's, 1e-6 to 1e-5 of the largest result in float32.  It adds up the pixels of a tile before it multiplies, so
    that one infinity, one NaN, or a finite value near the largest (1.5e38 in float32) makes all pixels of the tiles
    that read it infinite or NaN: 16 and more, where plain sums have 9 at most, or none.  "strict" leaves such
    algorithms out wherever the ranking chooses; one that a layer asks for by name still runs.
    """
    global _conv_precision
    if precision not in ("fast", "strict"):
        raise ValueError(f"set_conv_precision: expected 'fast' or 'strict', got {precision!r}")
    _conv_precision = precision


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


class hold_num_threads:
    """Within, kernels that this thread calls use so many threads, whatever other threads set; default: those now set.

    What asks for a workspace and then uses it does both within one hold.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = runtime.get_num_threads() if threads is None else threads

    def __enter__(self) -> None:
        self._before = runtime.hold_num_threads(self._threads)

    def __exit__(self, *_: object) -> None:
        runtime.hold_num_threads(self._before)


def default_num_threads() -> int:
    """`PYDTCONV_NUM_THREADS`, else `OMP_NUM_THREADS`, else the cores this process may run on."""
    for name in ("PYDTCONV_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text:
            threads = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
            if not 1 <= threads <= MOST_THREADS:
                raise ValueError(f"{name}: expected an integer of 1 or more, at most {MOST_THREADS}, got {text!r}")
            return threads
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def threads_are_set() -> bool:
    """Whether the environment or `set_num_threads` says how many threads to use, and not the number of cores."""
    named = any(os.environ.get(name, "").strip() for name in ("PYDTCONV_NUM_THREADS", "OMP_NUM_THREADS"))
    return named or num_threads() != default_num_threads()


set_num_threads(default_num_threads())
set_conv_tuning(_tuning_of_the_environment())
