"""What the backend uses of CuPy, over the device "host": enough to run its code for GPUs without one.

It is as strict as CuPy where that matters: arrays are no NumPy arrays, arguments of kernels are typed, nothing but
launches may happen while a stream is captured.  How CuPy itself behaves it cannot tell.
"""

from __future__ import annotations

import ctypes
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from pydtconv.devices import sources
from pydtconv.devices.gpu import cublas, device
from pydtconv.devices.host import HostArray, compiler
from pydtconv.devices.host.device import _as_c, _by_columns, _run


class Pointer(int):
    """The address of an array, as CuPy's MemoryPointer has it; base: what keeps the memory."""

    base: Any

    @property
    def ptr(self) -> int:
        return int(self)

    def __add__(self, offset: int) -> Pointer:
        found = Pointer(int(self) + offset)
        found.base = self.base
        return found


class Array(HostArray):
    """cupy.ndarray."""

    held_by = "a GPU"

    def __init__(self, shape: Any, dtype: Any = None, memptr: Any = None, strides: Any = None) -> None:
        if isinstance(shape, np.ndarray):
            super().__init__(shape)
            return
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if strides else 0
        nbytes = max(int(np.prod(shape)) * np.dtype(dtype).itemsize, reach + np.dtype(dtype).itemsize)
        memory = (ctypes.c_char * nbytes).from_address(int(memptr))
        memory.base = memptr.base  # type: ignore[attr-defined]
        super().__init__(np.ndarray(shape, dtype, memory, 0, strides))

    @property
    def device(self) -> Any:
        return SimpleNamespace(id=0)

    @property
    def data(self) -> Any:
        found = Pointer(self.memory.ctypes.data)
        found.base = self.memory
        return found

    def set(self, value: np.ndarray, stream: Any = None) -> None:
        _no_capture("set")
        super().set(value)

    def get(self, stream: Any = None) -> np.ndarray:
        _no_capture("get")
        return super().get()

    def __getitem__(self, key: Any) -> Any:
        return Array(super().__getitem__(key).memory)

    def reshape(self, *shape: Any) -> Any:
        return Array(super().reshape(*shape).memory)

    def transpose(self, *axes: Any) -> Any:
        return Array(self.memory.transpose(*axes))

    def view(self, dtype: Any) -> Any:
        return Array(self.memory.view(dtype))

    @property
    def T(self) -> Any:
        return Array(self.memory.T)


class Context:
    """A device or a stream that is current within."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Device(Context):
    attributes = {"MultiProcessorCount": 2, "ClockRate": 1000, "MemoryClockRate": 1, "GlobalMemoryBusWidth": 8}  # noqa: RUF012
    mem_info = (1 << 30, 2 << 30)
    compute_capability = "80"

    def __init__(self, number: int) -> None:
        assert number == 0


class Stream(Context):
    captured: list[Any] | None = None
    launched = 0
    waits: list[tuple[Stream, Event]] = []  # noqa: RUF012
    copies: list[tuple[str, int, int]] = []  # noqa: RUF012
    modes: list[int] = []  # of cuBLAS, as they were set  # noqa: RUF012

    def __init__(self, non_blocking: bool) -> None:
        assert non_blocking

    @property
    def ptr(self) -> int:
        return id(self)

    def synchronize(self) -> None:
        _no_capture("synchronize")

    def wait_event(self, event: Event) -> None:
        assert isinstance(event, Event)
        assert event.recorded, "an event that no stream has got"
        Stream.waits.append((self, event))

    def begin_capture(self) -> None:
        Stream.captured = []

    def end_capture(self) -> Any:
        calls, Stream.captured = Stream.captured, None

        def launch(stream: Any) -> None:
            Stream.launched += 1
            for call in calls or ():
                call()

        return SimpleNamespace(launch=launch)


class Event:
    """A place in a stream; here all is done when it is asked for.  made: how many there have been."""

    made = 0

    def __init__(self, disable_timing: bool = False) -> None:
        Event.made += 1
        self.disable_timing = disable_timing
        self.recorded = False
        self.time: float | None = None

    def record(self, stream: Stream) -> None:
        assert isinstance(stream, Stream)
        self.recorded = True
        _start(self._take)

    def _take(self) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        _no_capture("synchronize")
        assert self.time is not None


class Pinned:
    """cupy.cuda.PinnedMemoryPointer.  allocated: bytes of each that there has been."""

    allocated: list[int] = []  # noqa: RUF012

    def __init__(self, nbytes: int) -> None:
        Pinned.allocated.append(nbytes)
        self.memory = np.zeros(nbytes, np.uint8)
        self.ptr = self.memory.ctypes.data


def _copy(target: int, source: int, nbytes: int, kind: str, stream: int) -> None:
    Stream.copies.append((kind, stream, nbytes))
    _start(lambda: ctypes.memmove(target, source, nbytes))


def _elapsed(start: Event, stop: Event) -> float:
    assert not start.disable_timing
    assert not stop.disable_timing
    assert start.time is not None
    assert stop.time is not None
    return 1e3 * (stop.time - start.time)


def _no_capture(what: str) -> None:
    if Stream.captured is not None:
        raise RuntimeError(f"{what}: not permitted when the stream is capturing")


def _start(call: Any) -> None:
    if Stream.captured is None:
        call()
    else:
        Stream.captured.append(call)


class RawModule:
    """Kernels by the host's compiler."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:
        assert backend == "nvrtc"
        (file,) = [name for name in sources.files() if sources.text_of(name) == code]
        self.library = compiler.library(file, "float64" if "-DDOUBLE" in options else "float32")

    def get_function(self, name: str) -> Any:
        def function(grid: Any, block: Any, arguments: Any) -> None:
            assert len(grid) == 3
            assert len(block) == 1
            given = [_as_c(_checked(value)) for value in arguments]
            pointers = (ctypes.c_void_p * max(len(given), 1))(*map(ctypes.addressof, given))
            sizes = (ctypes.c_uint * 6)(*grid, *block, 1, 1)
            start = getattr(self.library, f"launch_{name}")
            _start(lambda: _run(start, pointers, sizes, name, self.library, (given, arguments)))

        return function


def _checked(value: Any) -> Any:
    """What CuPy passes to a kernel: its arrays, and NumPy's scalars by their type."""
    if isinstance(value, np.uintp) and value == 0:
        return None
    assert isinstance(value, (Array, np.int64, np.float64)), type(value)
    return value


def _multiply(dtype: Any, transa: int, transb: int, sizes: Any, pointers: Any, alpha: int, beta: int) -> None:
    (m, n, k), ((first, lda), (second, ldb), (result, ldc)) = sizes, pointers
    a = _by_columns(first, (k, m) if transa else (m, k), lda, dtype)
    b = _by_columns(second, (n, k) if transb else (k, n), ldb, dtype)
    out = _by_columns(result, (m, n), ldc, dtype)
    of = [_by_columns(address, (1, 1), 1, dtype)[0, 0] for address in (alpha, beta)]
    product = of[0] * ((a.T if transa else a) @ (b.T if transb else b))
    out[...] = product if of[1] == 0 else product + of[1] * out


def _gemm(name: str) -> Any:
    dtype = np.dtype(name)

    def gemm(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):  # type: ignore[no-untyped-def]
        of = [value.value for value in (transa, transb)]
        sizes, pointers = [each.value for each in (m, n, k)], [(x.value, ld.value) for x, ld in ((a, lda), (b, ldb))]
        pointers.append((c.value, ldc.value))
        _start(lambda: _multiply(dtype, *of, sizes, pointers, alpha.value, beta.value))
        return 0

    def batched(handle, transa, transb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count):  # type: ignore[no-untyped-def]
        for i in range(count.value):
            step = i * dtype.itemsize
            at = [ctypes.c_void_p(x.value + step * s.value) for x, s in ((a, sa), (b, sb), (c, sc))]
            gemm(handle, transa, transb, m, n, k, alpha, at[0], lda, at[1], ldb, beta, at[2], ldc)
        return 0

    return gemm, batched


def library_of_products() -> Any:
    """What the backend calls of cuBLAS's own library: arguments are of ctypes, results are statuses."""

    def create(handle: Any) -> int:
        return 0

    def keep(handle: ctypes.c_void_p, *_: Any) -> int:
        assert isinstance(handle, ctypes.c_void_p)
        return 0

    def set_mode(handle: ctypes.c_void_p, mode: ctypes.c_int) -> int:
        Stream.modes.append(mode.value)
        return 0

    found: dict[str, Any] = {"cublasCreate_v2": create, "cublasSetMathMode": set_mode}
    found |= dict.fromkeys(("cublasSetStream_v2", "cublasSetWorkspace_v2"), keep)
    for name, letter in cublas.LETTERS.items():
        found[f"cublas{letter}gemm_v2"], found[f"cublas{letter}gemmStridedBatched"] = _gemm(name)
    return SimpleNamespace(**found)


def install(monkeypatch: Any, devices: int = 1, error: str = "", without: str = "") -> ModuleType:
    """Puts the stand-in in CuPy's place.  devices: how many it counts; error: what it raises instead.

    without: a library of NVIDIA's that cannot be loaded.
    """

    def count() -> int:
        if error:
            raise RuntimeError(error)
        return devices

    cupy, libs = ModuleType("cupy"), ModuleType("cupy_backends.cuda.libs")
    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=RuntimeError)
    runtime.memcpyAsync, runtime.memcpyDeviceToHost, runtime.memcpyHostToDevice = _copy, "to host", "from host"
    runtime.driverGetVersion = lambda: 12040
    runtime.getDeviceProperties = lambda number: {"name": b"stand-in"}
    vars(libs).update({"cublas": SimpleNamespace(getVersion=lambda handle: 120400), "nvrtc": SimpleNamespace()})
    monkeypatch.setattr(device, "load", lambda version: library_of_products())
    if without:
        delattr(libs, without)
    memory = SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {}))
    names: dict[str, Any] = {
        "cuda": SimpleNamespace(
            runtime=runtime,
            Device=Device,
            Stream=Stream,
            Event=Event,
            get_elapsed_time=_elapsed,
            alloc_pinned_memory=Pinned,
            memory=memory,
            device=SimpleNamespace(get_cublas_handle=lambda: 1),
            get_current_stream=lambda: Stream(True),
        ),
        "get_default_memory_pool": lambda: SimpleNamespace(free_bytes=lambda: 1 << 20),
        "ndarray": Array,
        "RawModule": RawModule,
        "empty": lambda shape, dtype: Array(np.zeros(shape, dtype)),
        "zeros": lambda shape, dtype: Array(np.zeros(shape, dtype)),
        "ascontiguousarray": lambda array: Array(np.ascontiguousarray(array.memory)),
    }
    vars(cupy).update(names)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for name in ("cupy_backends", "cupy_backends.cuda"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", libs)
    return cupy
