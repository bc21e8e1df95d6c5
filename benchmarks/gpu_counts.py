"""What kernels for GPUs ask of memory, counted on the device "host" (cext/cuda/host/counting.h), and a roofline of it.

The roofline is a bound: a launch takes at least the longest of its bytes at the memory's rate, its operations at the
arithmetic's, and its passes over shared memory, exchanges and accesses at one a cycle and multiprocessor.  Latency,
integers and instructions in all are not in it.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pydtconv.devices.host import Host, HostArray
from pydtconv.devices.host.compiler import library
from pydtconv.kernels.base import Call, scratch
from pydtconv.kernels.gpu.fourier import Side, Transform, interleaved, planar
from pydtconv.kernels.gpu.fourier_planes import SquareTransform, block_of

SECTOR = 32
#: operations of a product of a warp, of 16 x 8 by 8 x 8
PRODUCT = 2 * 16 * 8 * 8
#: as cudaMalloc's
ALIGNMENT = 256


class Counts(NamedTuple):
    """Of a launch: instructions of warps, sectors of 32 bytes, passes over shared memory, floating-point operations.

    past_sectors: of those loaded, the ones that go past L1 to shared memory; products: of warps, on tensor cores.
    """

    loads: int
    load_sectors: int
    least_load_sectors: int
    stores: int
    store_sectors: int
    least_store_sectors: int
    fetched_sectors: int
    shared_accesses: int
    shared_passes: int
    least_shared_passes: int
    exchanges: int
    barriers: int
    partial: int
    operations: int
    warps: int
    past_sectors: int
    products: int

    @property
    def moved(self) -> int:
        """Bytes: what each block loads, once, and all stores."""
        return SECTOR * self.fetched_sectors

    @property
    def sectors_to_requested(self) -> float:
        return (self.load_sectors + self.store_sectors) / (self.least_load_sectors + self.least_store_sectors)

    @property
    def conflicts(self) -> float:
        """Passes over shared memory to those that suffice; 1 where none is used."""
        return self.shared_passes / self.least_shared_passes if self.shared_passes else 1.0


@dataclass(frozen=True)
class Roof:
    """Peaks of a GPU: bytes and float32 operations a second, multiprocessors, and their cycles a second.

    products: operations a second of tensor cores; cache: bytes a second that multiprocessors read of L2.
    """

    nbytes: float
    operations: float
    processors: int
    cycles: float
    products: float = math.inf
    cache: float = math.inf

    def seconds(self, counts: Counts, least: float | None = None) -> float:
        """The least that a launch takes.

        least: bytes that memory moves, where what blocks read again comes from L2; None: all that they read does not.
        """
        sectors = counts.load_sectors + counts.store_sectors - counts.past_sectors
        ports = counts.shared_passes + counts.exchanges + sectors / 4
        moved = counts.moved if least is None else least
        return max(
            moved / self.nbytes,
            counts.moved / self.cache,
            counts.operations / self.operations,
            counts.products * PRODUCT / self.products,
            ports / (self.processors * self.cycles),
        )


#: NVIDIA H100 SXM5 (data sheet; 132 processors of 128 lanes do these operations at 1.98 GHz)
H100 = Roof(3.35e12, 67e12, 132, 1.98e9)
#: its tensor cores in TF32, without sparsity, which are 1024 products a cycle of 1.83 GHz; L2 is taken to give the 5120
#: bytes a cycle that an A100's does (white paper)
H100_TF32 = Roof(3.35e12, 67e12, 132, 1.83e9, 495e12, 5120 * 1.83e9)


class CountingHost(Host):
    """The device "host" with a GPU's grids and alignment, which counts: launches, kernels and counts in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[tuple[str, Counts]] = []

    library = staticmethod(partial(library, counting=True))

    def grid_of_each(self, count: int) -> tuple[int, int]:
        return max(1, -(-count // 256)), 256

    def lanes(self, channels: int) -> int:
        return min(32, 1 << (channels - 1).bit_length())

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> HostArray:
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return HostArray(scratch(nbytes, ALIGNMENT).view(dtype).reshape(shape))

    def bind_kernel(
        self, kernel: str, dtype: str, grid: tuple[int, ...], threads: int, arguments: Sequence[Any]
    ) -> Call:
        call = super().bind_kernel(kernel, dtype, grid, threads, arguments)
        of = self.library(kernel.partition(".")[0], "float64" if dtype in ("float64", "complex128") else "float32")

        def run() -> None:
            call()
            self.launches.append((kernel, counts_of(of)))

        return run


def counts_of(compiled: ctypes.CDLL) -> Counts:
    """Of the last launch of a library."""
    compiled.launch_counts.restype = ctypes.POINTER(ctypes.c_int64)
    return Counts(*compiled.launch_counts()[: len(Counts._fields)])


def row(kernel: str, counts: Counts, least: int, roof: Roof = H100) -> dict[str, object]:
    """A row of the table: counts by what is least, and the share of the memory's peak that the roofline allows.

    least: bytes that the launch has to move.
    """
    seconds = roof.seconds(counts)
    return {
        "kernel": kernel,
        "bytes_to_least": round(counts.moved / least, 3),
        "sectors_to_requested": round(counts.sectors_to_requested, 3),
        "passes_to_least": round(counts.conflicts, 3),
        "partial": counts.partial,
        "exchanges": counts.exchanges,
        "operations": counts.operations,
        "bound_us": round(1e6 * seconds, 5),
        "floor_us": round(1e6 * least / roof.nbytes, 5),
        "share_of_peak": round(least / roof.nbytes / seconds, 3),
    }


def transforms(points: Sequence[int] = (8, 16, 32, 64, 128), channels: int = 128) -> Iterator[dict[str, object]]:
    """Transforms of rows whose points lie together, and of channels that lie together, as convolutions have them."""
    for n in points:
        half = n // 2 + 1
        real, spectrum = Side(0, 0, n, 1), interleaved(0, 0, half, 1)
        yield _transform("rows", n, False, real, spectrum, half, channels)
        yield _transform("rows", n, True, spectrum, real, half, channels)
        real, spectrum = Side(0, 0, 1, channels), planar(0, 0, 1, channels, half * channels, 2)
        yield _transform("channels", n, False, real, spectrum, half, channels)
        yield _transform("channels", n, True, spectrum, real, half, channels)
        spectrum, gauss = (planar(0, 0, 1, channels, n * channels, planes) for planes in (2, 3))
        yield _transform("complex channels", n, False, spectrum, gauss, n, channels)
        yield _transform("complex channels", n, True, gauss, spectrum, n, channels)


#: points of an axis of squares, and whether those of a row lie together
SQUARES = ((8, True), (16, True), (32, True), (64, True), (8, False), (16, False), (32, False))


def squares(kinds: Sequence[tuple[int, bool]] = SQUARES) -> Iterator[dict[str, object]]:
    """Transforms of squares in one pass: of rows whose points lie together, and of channels that do."""
    for n, together in kinds:
        half, pairs = n // 2 + 1, block_of(n, 4, together)[0]
        images, channels = (4 * pairs, 1) if together else (2, 2 * pairs)
        count = images * channels * n
        real = Side(n * n * channels, n * channels, 1, channels)
        if together:
            spectrum = interleaved(n * half, half, 1, 1)
        else:  # as products of convolutions take them
            spectrum = planar(channels, images * channels, 1, count, half * count, 3)
        for inverse in (False, True):
            sides = (spectrum, real) if inverse else (real, spectrum)
            made = SquareTransform(n, inverse, (images, channels), *sides, (0, 0), (n, n))
            yield _counted(
                "squares" if together else "squares of channels",
                made,
                [count * (half if side.planes > 1 else n) * side.planes for side in sides],
            )


def _transform(
    what: str, n: int, inverse: bool, source: Side, target: Side, frequencies: int, channels: int
) -> dict[str, object]:
    sizes = [(n if side.planes == 1 else frequencies) * channels * side.planes for side in (source, target)]
    made = Transform(n, inverse, (1, 1, channels), source, target, 0, n, frequencies)
    return _counted(what, made, sizes)


def _counted(what: str, made: Transform | SquareTransform, sizes: Sequence[int]) -> dict[str, object]:
    """The row of a transform of so many reals to so many."""
    device = CountingHost()
    x, y = (device.zeros((size,), np.float32) for size in sizes)
    device.put(x, np.random.default_rng(0).normal(size=sizes[0]).astype(np.float32))
    made.bind(device.launcher(), x, y)()
    ((kernel, counts),) = device.launches
    return {"layout": what} | row(kernel, counts, x.nbytes + y.nbytes)
