"""Compiles kernels for GPUs as C++, when they are first used; what comes out is kept in `own_cache()`."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from pydtconv.devices import sources
from pydtconv.devices.device import DeviceError
from pydtconv.support.machine import own_cache

OPTIONS = ("-O1", "-std=c++17", "-fPIC", "-shared", "-U_FORTIFY_SOURCE", "-ffp-contract=off", "-w")


def compiler() -> str:
    """The C++ compiler: $CXX, g++ or clang++.  Raises DeviceError where there is none."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise DeviceError("device host: expected a C++ compiler (g++ or clang++, or CXX), got none")


@cache
def library(file: str, dtype: str, counting: bool = False) -> ctypes.CDLL:
    """The kernels of a file for a dtype, "float32" or "float64".  Raises DeviceError with what the compiler says.

    counting: launches count what they ask of memory (counting.h).
    """
    folder, text, command = sources.folder() / "host", sources.text_of(file), [compiler(), *OPTIONS]
    header = (folder / "cuda_on_host.h").read_text()
    for name in ["tensor_cores.h", *["counting.h"] * counting]:
        header = header.replace(f'#include "{name}"', (folder / name).read_text())
    command += ["-DDOUBLE"] * (dtype == "float64") + ["-DCOUNTING", "-O0"] * counting
    path = own_cache() / "host_kernels" / f"{file}-{dtype}-{sources.digest(header, text, *command)}.so"
    if not path.exists():
        _compile(command, header, text, path)
    return ctypes.CDLL(str(path))


def _compile(command: list[str], header: str, text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        (Path(folder) / "cuda_on_host.h").write_text(header)
        source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        source.write_text('#include "cuda_on_host.h"\n' + text)
        done = subprocess.run([*command, str(source), "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            raise DeviceError(f"device host: {path.name} could not be compiled: {done.stderr.strip()[-2000:]}")
        os.replace(made, path)
