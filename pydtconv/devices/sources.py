"""The sources of the kernels: cext/cuda of the repository, or what was installed of it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

#: of NVIDIA's compiler; functions within kernels (lambdas) are the device's
NVRTC_OPTIONS = ("--std=c++17", "--device-as-default-execution-space")
HEADERS = (
    *("dtconv_cuda.h", "functions.h", "activation_parts.h", "activations.h", "elementwise_losses.h", "fourier.h"),
    *("column_sums.h", "convgemm_walks.h", "convgemm.h", "mma.h", "convgemm_tf32.h"),
    *("layout.h", "numbers.h", "random.h"),
)


@cache
def folder() -> Path:
    """Where the sources are.  Raises FileNotFoundError where they are not."""
    installed = Path(__file__).parent / "cuda"
    repository = Path(__file__).parents[2] / "cext" / "cuda"
    for path in (installed, repository):
        if (path / HEADERS[0]).exists():
            return path
    raise FileNotFoundError(f"kernels: expected their sources in {installed} or {repository}, got none")


def files() -> list[str]:
    """Names of the files of kernels, without suffix."""
    return sorted(path.stem for path in folder().glob("*.cu"))


def dtypes_of(file: str) -> tuple[str, ...]:
    """The dtypes that a file of kernels is compiled for."""
    return ("float32",) if file.endswith("_tf32") else ("float32", "float64")


def kernels_of(file: str) -> list[str]:
    """Names of the kernels of a file."""
    text = (folder() / f"{file}.cu").read_text()
    return [line[7 : line.index(")")] for line in text.splitlines() if line.startswith("KERNEL(")]


@cache
def text_of(file: str) -> str:
    """One text of a file of kernels with the headers that it includes: a compiler needs no folders."""
    text = (folder() / f"{file}.cu").read_text()
    for name in HEADERS:
        header, line = (folder() / name).read_text(), f'#include "{name}"'
        text = text.replace(line, f'#line 1 "{name}"\n{header}\n#line 1 "{file}.cu"')
    return text


def digest(*parts: str) -> str:
    """A name for what was made of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
