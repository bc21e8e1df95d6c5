"""What the devices share that run the kernels of cext/cuda."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pydtconv.conv import timings
from pydtconv.devices import sources, updates
from pydtconv.devices.device import Device
from pydtconv.devices.launcher import Launcher
from pydtconv.kernels.base import Call


class Rates(NamedTuple):
    """What a device does in a second: operations in float32, bytes of its memory, bytes copied from or to the host."""

    flops: float
    nbytes: float
    copied: float


#: of a GPU that is not there, for plans; no figure of any device
NOMINAL = Rates(10e12, 1e12, 20e9)


class Accelerator(Device):
    """most_parts: that the rows of a matrix are cut into for sums over them."""

    most_parts = 1
    #: whether its kernels may multiply in TF32 (mma.h)
    has_tf32 = False

    def rates(self) -> Rates:
        """What plans and rankings go by until something is measured."""
        return NOMINAL

    def seconds_of(self, call: Call) -> float:
        """Of one run of a call, behind all that was started."""
        raise NotImplementedError

    #: whether how fast it copies is worth a measurement
    measures_copies = False

    def pinned(self, nbytes: int) -> Any:
        """So many bytes of the host that are pinned.  Raises OSError where there are not so many."""
        raise NotImplementedError

    def copy_stream(self) -> Any:
        """A stream beside that of the kernels; None stands for that one below."""
        raise NotImplementedError

    def event(self) -> Any:
        """A place in a stream."""
        raise NotImplementedError

    def record(self, event: Any, stream: Any) -> None:
        """Puts an event behind what the stream has to do."""
        raise NotImplementedError

    def wait_event(self, stream: Any, event: Any) -> None:
        """Has what the stream gets to do from now on wait for an event."""
        raise NotImplementedError

    def copy_bytes(self, array: Any, pinned: Any, place: int, writes: bool, stream: Any) -> None:
        """Copies an array of bytes to a place of pinned memory, or from it, on a stream."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Waits until all that was started is done."""
        raise NotImplementedError

    def named_in_times(self, model: str) -> None:
        """Names the device for what is measured on it: its model, and the build of the kernels."""
        products = [name for name in sources.files() if name.startswith("convgemm")]
        files = (*products, "convolution", "fourier", "fourier_planes")
        build = sources.digest(*map(sources.text_of, files))
        self.model = model
        timings.name_device(self.name, f"{model} | kernels {build}")

    def grid_of_each(self, count: int) -> tuple[int, int]:
        """Blocks, and threads of a block, of a kernel whose threads share so many elements."""
        raise NotImplementedError

    def lanes(self, channels: int) -> int:
        """Neighbouring threads that share the channels of a pixel: a power of two, 32 at most."""
        return min(32, 1 << (channels - 1).bit_length())

    def bind_kernel(
        self, kernel: str, dtype: str, grid: tuple[int, ...], threads: int, arguments: Sequence[Any]
    ) -> Call:
        """What starts a kernel "file.name"."""
        raise NotImplementedError

    def bind_gemm(self, a: Any, b: Any, out: Any, accumulate: bool) -> Call:
        """out (+)= a @ b."""
        raise NotImplementedError

    def bind_gemm_batched(self, a: Any, b: Any, out: Any, accumulate: bool) -> Call:
        """out (+)= a @ b for batches of matrices, real or complex."""
        raise NotImplementedError

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Within it, arrays of others are read when they are there, and what is written is there behind it."""
        yield

    def launcher(self) -> Launcher:
        return Launcher(self)

    def results(self, outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {name: self.get(array) for name, array in outputs.items()}

    def bind_copy(self, source: Any, target: Any) -> Call:
        return _kept(launcher := self.launcher(), launcher.copy(source, target))

    def bind_add(self, source: Any, total: Any) -> Call:
        return _kept(launcher := self.launcher(), launcher.copy(source, total, accumulate=True))

    def update(self, name: str, *arguments: Any) -> Any:
        """One of the functions of `_ext.optimizers`, on arrays of the device."""
        if name == "has_nonfinite":
            return updates.has_nonfinite(self, *arguments)
        return updates.run(self, name, *arguments)

    def clip_norm(self, arrays: Sequence[Any], limit: float) -> None:
        """Makes arrays smaller, together, so that the norm of all of them is no larger than the limit."""
        updates.clip_norm(self, arrays, limit)


def _kept(launcher: Launcher, call: Call) -> Call:
    """The call, which keeps the arrays that were made for it."""

    def run(_: Launcher = launcher) -> None:
        call()

    return run


class Matrix:
    """A matrix as BLAS is told of it, column by column: its transposition, address and leading dimension."""

    def __init__(self, array: Any) -> None:
        rows, columns = (s // array.itemsize for s in array.strides)
        m, n = array.shape
        by_rows = columns == 1 or n == 1
        if not by_rows and rows != 1 and m != 1:
            raise ValueError(f"a matrix of strides {array.strides}: expected contiguous rows or columns")
        self.transposed = not by_rows
        self.leading = max((rows if m > 1 else n) if by_rows else (columns if n > 1 else m), 1)
        self.address = array.data.ptr


def distance_of(array: Any) -> int:
    """Elements between the matrices of a batch."""
    distance: int = array.strides[0] // array.itemsize
    return distance


def gemm_arguments(a: Any, b: Any, out: Any) -> tuple[Any, ...]:
    """What BLAS is asked for, column by column, to have out = a @ b, row by row: out^T = b^T @ a^T.

    (transposition of the first, of the second, m, n, k, first, its leading dimension, second, its, out, its)
    """
    (m, k), n = a.shape, b.shape[1]
    first, second, result = Matrix(b), Matrix(a), Matrix(out)
    if result.transposed:
        raise ValueError(f"out: expected contiguous rows, got strides {out.strides}")
    return (
        *(first.transposed, second.transposed, n, m, k),
        *(first.address, first.leading, second.address, second.leading, result.address, result.leading),
    )
