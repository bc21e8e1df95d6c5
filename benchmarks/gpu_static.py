"""What the compiler says of the kernels for GPUs, without one: registers, spills, shared memory, occupancy.

NVRTC (package nvidia-cuda-nvrtc-cu12) makes PTX of each file, ptxas (nvidia-cuda-nvcc-cu12) machine code of that.
Neither needs a driver.  The occupancy is the share of a multiprocessor's warps that registers, shared memory and
threads of a block leave room for, by the limits in `ARCHITECTURES`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pydtconv.devices import sources
from pydtconv.kernels.gpu import fourier, fourier_planes
from pydtconv.kernels.gpu.convolutions import tiles


@dataclass(frozen=True)
class Architecture:
    """Limits of a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""

    warps: int
    blocks: int
    registers: int
    shared: int


ARCHITECTURES = {
    "sm_70": Architecture(64, 32, 65536, 96 << 10),
    "sm_80": Architecture(64, 32, 65536, 164 << 10),
    "sm_90": Architecture(64, 32, 65536, 228 << 10),
}


@dataclass(frozen=True)
class Figures:
    """What ptxas says of one kernel; spills: bytes stored and loaded."""

    kernel: str
    registers: int
    spills: int
    stack: int
    shared: int


def package_file(package: str, pattern: str) -> Path:
    """A file of one of NVIDIA's packages.  Raises FileNotFoundError that names what to install."""
    spec = importlib.util.find_spec("nvidia")
    for root in [] if spec is None else spec.submodule_search_locations or ():
        for found in sorted(Path(root).glob(pattern)):
            return found
    raise FileNotFoundError(f"expected the package {package}: pip install {package}")


def ptx_of(file: str, dtype: str, architecture: str) -> bytes:
    """PTX of a file of kernels.  Raises RuntimeError with what the compiler says."""
    nvrtc = ctypes.CDLL(str(package_file("nvidia-cuda-nvrtc-cu12", "cuda_nvrtc/lib/libnvrtc.so.*")))
    program = ctypes.c_void_p()
    text, name = sources.text_of(file).encode(), f"{file}.cu".encode()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None), "nvrtcCreateProgram")
    chosen = [b"--gpu-architecture=" + architecture.replace("sm", "compute").encode(), *map(str.encode, options(dtype))]
    failed = nvrtc.nvrtcCompileProgram(program, len(chosen), (ctypes.c_char_p * len(chosen))(*chosen))
    if failed:
        raise RuntimeError(f"{file}.cu, {dtype}, {architecture}: {_text(nvrtc, program, 'ProgramLog').decode()}")
    return _text(nvrtc, program, "PTX")


def options(dtype: str) -> tuple[str, ...]:
    """What the kernels are compiled with."""
    return (*sources.NVRTC_OPTIONS, *(["-DDOUBLE"] if dtype == "float64" else []))


def _check(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"{what}: status {status}")


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), f"nvrtcGet{what}Size")
    text = ctypes.create_string_buffer(size.value)
    _check(getattr(nvrtc, f"nvrtcGet{what}")(program, text), f"nvrtcGet{what}")
    return text.value


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def assemble(ptx: bytes, architecture: str) -> Iterator[Figures]:
    """Machine code of PTX, and what ptxas says of each kernel."""
    ptxas = package_file("nvidia-cuda-nvcc-cu12", "cuda_nvcc/bin/ptxas")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.ptx"
        source.write_bytes(ptx)
        command = [str(ptxas), "-v", f"-arch={architecture}", str(source), "-o", str(Path(folder) / "kernels.cubin")]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ptxas: {done.stderr.strip()[-2000:]}")
    kernel, stack, spills = "", 0, 0
    for line in done.stderr.splitlines():
        if found := _ENTRY.search(line):
            kernel = found[1]
        elif found := _STACK.search(line):
            stack, spills = int(found[1]), int(found[2]) + int(found[3])
        elif kernel and (found := _USED.search(line)):
            shared = _SHARED.search(line)
            yield Figures(kernel, int(found[1]), spills, stack, int(shared[1]) if shared else 0)
            kernel = ""


def occupancy(figures: Figures, threads: int, architecture: str) -> float:
    """The share of a multiprocessor's warps that can be there at a time."""
    limits, warps = ARCHITECTURES[architecture], -(-threads // 32)
    registers = warps * (-(-figures.registers * 32 // 256) * 256)  # given out in units of 256 for a warp
    blocks = min(limits.blocks, limits.warps // warps, limits.registers // max(registers, 1))
    if figures.shared:
        blocks = min(blocks, limits.shared // (figures.shared + (1 << 10)))
    return blocks * warps / limits.warps


def threads_of(file: str, kernel: str, dtype: str) -> int:
    """Threads of a block of a kernel."""
    if found := tiles.threads_of(file, kernel):
        return found
    if not file.startswith("fourier"):
        return 256
    points, itemsize = int(kernel.rpartition("_")[2]), np.dtype(dtype).itemsize
    if file == "fourier":
        return fourier.block_of(points, itemsize)[1]
    return fourier_planes.block_of(points, itemsize, kernel.startswith("planes"))[1]


def architectures_of(file: str) -> list[str]:
    """Those that a file of kernels is compiled for: TF32 is there from compute capability 8.0 on."""
    return [name for name in ARCHITECTURES if name != "sm_70" or not file.endswith("_tf32")]


def table() -> Iterator[dict[str, object]]:
    """A row for each kernel, and each dtype and architecture that there is of it."""
    for file in sources.files():
        for dtype in sources.dtypes_of(file):
            for architecture in architectures_of(file):
                for figures in assemble(ptx_of(file, dtype, architecture), architecture):
                    threads = threads_of(file, figures.kernel, dtype)
                    yield {
                        "kernel": f"{file}.{figures.kernel}",
                        "dtype": dtype,
                        "architecture": architecture,
                        "registers": figures.registers,
                        "spill_bytes": figures.spills,
                        "stack_bytes": figures.stack,
                        "shared_bytes": figures.shared,
                        "threads": threads,
                        "occupancy": round(occupancy(figures, threads, architecture), 3),
                    }
