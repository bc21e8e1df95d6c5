"""What the compiler says of the kernels for GPUs."""

from __future__ import annotations

import pytest

from benchmarks import gpu_static, report
from pydtconv.devices import sources


def test_no_kernel_of_the_table_spills():
    """The table has every kernel, in both types, for three architectures."""
    if not (report.RESULTS / "gpu_static.csv").exists():
        pytest.skip("results of benchmarks are not in the source distribution")
    rows = report.read_csv("gpu_static")
    kernels = {f"{file}.{name}" for file in sources.files() for name in sources.kernels_of(file)}
    assert {row["kernel"] for row in rows} == kernels
    assert len(rows) == len(kernels) * len(gpu_static.DTYPES) * len(gpu_static.ARCHITECTURES)
    assert {row["spill_bytes"] for row in rows} == {0}


def test_a_kernel_is_compiled_without_a_driver():
    try:
        gpu_static.package_file("nvidia-cuda-nvrtc-cu12", "cuda_nvrtc/lib/libnvrtc.so.*")
        gpu_static.package_file("nvidia-cuda-nvcc-cu12", "cuda_nvcc/bin/ptxas")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    found = list(gpu_static.assemble(gpu_static.ptx_of("reduction", "float32", "sm_80"), "sm_80"))
    assert [(one.kernel, one.spills) for one in found] == [("sum", 0)]
    assert 0 < gpu_static.occupancy(found[0], 256, "sm_80") <= 1


def test_occupancy_is_bounded_by_each_limit():
    for registers, shared, want in ((32, 0, 1.0), (128, 0, 0.25), (32, 80 << 10, 0.25)):
        figures = gpu_static.Figures("k", registers, 0, 0, shared)
        assert gpu_static.occupancy(figures, 256, "sm_80") == want
