"""One NVIDIA GPU through CuPy, and cuBLAS (cublas.py).

Everything runs on one stream of ours, in the order in which it is asked for; threads that ask take turns, so that what
one of them has captured is its own.  The kernels of a file are compiled for
the GPU when the first of them is bound; CuPy keeps what NVRTC made on disk.
"""

from __future__ import annotations

import errno
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.devices import sources
from pydtconv.devices.accelerator import NOMINAL, Accelerator, Rates, distance_of, gemm_arguments
from pydtconv.devices.gpu.availability import check, library
from pydtconv.devices.gpu.cublas import LARGE_WORKSPACE, SMALL_WORKSPACE, Cublas, Product, load
from pydtconv.kernels.base import Call

#: threads of a block of kernels whose threads share elements, and blocks for each multiprocessor
THREADS, BLOCKS = 256, 16
#: the first compute capability whose tensor cores multiply TF32
TF32_SINCE = 80
#: compute capabilities whose multiprocessors have 64 lanes for float32, others 128 (CUDA C++ Programming Guide)
SMALL_PROCESSORS = ("60", "70", "72", "75", "80")


class GPU(Accelerator):
    """number: as CUDA counts them.  Raises DeviceError where there is none of that number."""

    most_parts = 256
    captures = True
    measures_copies = True

    def __init__(self, number: int) -> None:
        self.cupy = check(number)
        self.name = f"gpu:{number}"
        self._number = number
        self._turn = threading.RLock()
        self._device = self.cupy.cuda.Device(number)
        with self._device:
            self._stream = self.cupy.cuda.Stream(non_blocking=True)
            self._processors = int(self._device.attributes["MultiProcessorCount"])
            model = self.cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        self.has_tf32 = int(self._device.compute_capability) >= TF32_SINCE
        self.named_in_times(f"{model}, compute capability {self._device.compute_capability}")
        self._modules: dict[tuple[str, str], Any] = {}
        self._cublas = self._new_handle()

    def _new_handle(self) -> Cublas:
        large = int(self._device.compute_capability) >= 90
        with self._here():
            version = library("cublas").getVersion(self.cupy.cuda.device.get_cublas_handle())
            workspace = self.cupy.empty((LARGE_WORKSPACE if large else SMALL_WORKSPACE,), np.uint8)
            return Cublas(load(version), self._stream.ptr, workspace)

    @contextmanager
    def _here(self) -> Iterator[None]:
        """What CuPy does within is done on this device and stream, and nothing of other threads meanwhile."""
        with self._turn, self._device, self._stream:
            yield

    # -- memory ----------------------------------------------------------------------------------------------------

    def arena(self, nbytes: int) -> Any:
        with self._here():
            try:
                return self.cupy.empty((nbytes,), np.uint8)
            except self.cupy.cuda.memory.OutOfMemoryError:
                free = self._device.mem_info[0]
                raise MemoryError(
                    f"device {self.name}: expected {nbytes} bytes for the plan, of which {free} are free; "
                    "memory_limit makes a smaller plan"
                ) from None

    def array(self, arena: Any, offset: int, shape: tuple[int, ...], dtype: Any, strides: Any) -> Any:
        return self.cupy.ndarray(shape, dtype, memptr=arena.data + offset, strides=strides)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        with self._here():
            return self.cupy.zeros(shape, dtype)

    def put(self, target: Any, value: np.ndarray) -> None:
        with self._here():
            target.set(np.ascontiguousarray(value).reshape(target.shape), stream=self._stream)

    def get(self, source: Any) -> np.ndarray:
        with self._here():
            found: np.ndarray = self.cupy.ascontiguousarray(source).get(stream=self._stream)
            self._stream.synchronize()
            return found.reshape(source.shape)

    @contextmanager
    def joined(self) -> Iterator[None]:
        with self._device:
            self.cupy.cuda.get_current_stream().synchronize()
        yield
        self.synchronize()

    def synchronize(self) -> None:
        """Waits until all that was started is done."""
        with self._turn:
            self._stream.synchronize()

    def room(self) -> int:
        """What is free on the device, and what CuPy keeps of what was given back."""
        with self._device:
            return int(self._device.mem_info[0]) + int(self.cupy.get_default_memory_pool().free_bytes())

    def memory_peak(self) -> float:
        """Bytes per second that the memory can move, by its clock and width."""
        found = self._device.attributes
        return 2e3 * found.get("MemoryClockRate", 0) * found.get("GlobalMemoryBusWidth", 0) / 8

    def rates(self) -> Rates:
        """By clocks, processors and the width of the memory; NOMINAL's where the driver does not tell."""
        clock = 1e3 * self._device.attributes.get("ClockRate", 0)
        lanes = 64 if self._device.compute_capability in SMALL_PROCESSORS else 128
        flops = 2.0 * clock * lanes * self._processors
        return Rates(flops or NOMINAL.flops, self.memory_peak() or NOMINAL.nbytes, NOMINAL.copied)

    def seconds_of(self, call: Call) -> float:
        """By events around it on the stream."""
        cuda = self.cupy.cuda
        with self._here():
            start, stop = cuda.Event(), cuda.Event()
            start.record(self._stream)
            call()
            stop.record(self._stream)
            stop.synchronize()
            return float(cuda.get_elapsed_time(start, stop)) / 1e3

    # -- copies ----------------------------------------------------------------------------------------------------

    def pinned(self, nbytes: int) -> Any:
        cuda = self.cupy.cuda
        try:
            with self._here():
                return cuda.alloc_pinned_memory(nbytes)
        except cuda.runtime.CUDARuntimeError as error:
            raise OSError(
                errno.ENOMEM, f"offload: expected {nbytes} bytes of the host that can be pinned: {error}"
            ) from None

    def copy_stream(self) -> Any:
        with self._device:
            return self.cupy.cuda.Stream(non_blocking=True)

    def event(self) -> Any:
        with self._device:
            return self.cupy.cuda.Event(disable_timing=True)

    def record(self, event: Any, stream: Any) -> None:
        with self._turn, self._device:
            event.record(self._stream if stream is None else stream)

    def wait_event(self, stream: Any, event: Any) -> None:
        with self._turn, self._device:
            (self._stream if stream is None else stream).wait_event(event)

    def copy_bytes(self, array: Any, pinned: Any, place: int, writes: bool, stream: Any) -> None:
        runtime, there, here = self.cupy.cuda.runtime, array.data.ptr, pinned.ptr + place
        with self._turn, self._device:  # CuPy's arrays refuse to be copied while a stream is captured, CUDA does not
            if writes:
                runtime.memcpyAsync(here, there, array.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            else:
                runtime.memcpyAsync(there, here, array.nbytes, runtime.memcpyHostToDevice, stream.ptr)

    # -- kernels ---------------------------------------------------------------------------------------------------

    def grid_of_each(self, count: int) -> tuple[int, int]:
        return max(1, min(-(-count // THREADS), BLOCKS * self._processors)), THREADS

    def _function(self, kernel: str, dtype: str) -> Any:
        file, _, name = kernel.partition(".")
        double = dtype in ("float64", "complex128")
        if (file, dtype) not in self._modules:
            options = (*sources.NVRTC_OPTIONS, *(["-DDOUBLE"] if double else []))
            with self._here():
                module = self.cupy.RawModule(code=sources.text_of(file), options=options, backend="nvrtc")
                self._modules[file, dtype] = module
        with self._here():
            return self._modules[file, dtype].get_function(name)

    def bind_kernel(
        self, kernel: str, dtype: str, grid: tuple[int, ...], threads: int, arguments: Sequence[Any]
    ) -> Call:
        function, given = self._function(kernel, dtype), tuple(map(_as_cuda, arguments))

        def run() -> None:
            with self._here():
                function(grid, (threads,), given)

        return run

    def bind_gemm(self, a: Any, b: Any, out: Any, accumulate: bool) -> Call:
        return self._bind_product(gemm_arguments(a, b, out), accumulate, (a, b, out))

    def bind_gemm_batched(self, a: Any, b: Any, out: Any, accumulate: bool) -> Call:
        batch = distance_of(b), distance_of(a), distance_of(out), a.shape[0]
        return self._bind_product(gemm_arguments(a[0], b[0], out[0]), accumulate, (a, b, out), batch)

    def _bind_product(self, found: Product, accumulate: bool, arrays: Sequence[Any], batch: Sequence[int] = ()) -> Call:
        dtype = arrays[0].dtype
        tf32 = dtype == np.float32 and config.float32_matmul_precision() != "highest"
        product = self._cublas.product(dtype, found, accumulate, batch, tf32)

        def run(_: Sequence[Any] = arrays) -> None:  # which are there as long as the call is
            with self._turn, self._device:
                product()

        return run

    def capture(self, calls: Sequence[Call]) -> Call | None:
        """One call that launches a CUDA graph of all of them; None, with a warning, where CUDA refuses."""
        error_class = self.cupy.cuda.runtime.CUDARuntimeError
        with self._here():
            self._stream.synchronize()
            self._stream.begin_capture()
            failed: Exception | None = None
            try:
                for call in calls:
                    call()
            except Exception as error:
                failed = error
            try:
                graph = self._stream.end_capture()
            except error_class as error:
                failed = failed or error
        if failed is not None:
            warnings.warn(f"device {self.name}: steps are not captured: {failed}", RuntimeWarning, stacklevel=2)
            return None

        def run() -> None:
            with self._here():
                graph.launch(self._stream)

        return run

    # -- what there is to say of it --------------------------------------------------------------------------------

    def describe(self) -> list[tuple[str, str]]:
        runtime = self.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(self._number)
        with self._device:
            free, total = self._device.mem_info
        name = properties["name"].decode()
        version = runtime.driverGetVersion()
        driver = f"{version // 1000}.{version % 1000 // 10}"
        return [
            (self.name, f"{name}, compute capability {self._device.compute_capability}, {self._processors} processors"),
            ("", f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free, driver for CUDA {driver}"),
        ]


def _as_cuda(value: Any) -> Any:
    """An argument of a kernel as CuPy passes it: int64_t, double, a pointer."""
    if value is None:
        return np.uintp(0)
    if isinstance(value, (bool, int, np.integer)):
        return np.int64(int(value))
    if isinstance(value, (float, np.floating)):
        return np.float64(value)
    if isinstance(value, np.ndarray):
        raise TypeError("kernel: expected an array of the device, a number or None, got a NumPy array")
    return value
