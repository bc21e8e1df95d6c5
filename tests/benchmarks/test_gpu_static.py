"""What the compiler says of the kernels for GPUs."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks import gpu_static, report
from pydtconv.devices import sources


def test_no_kernel_of_the_table_spills():
    """The table has every kernel, in each of its types, for each architecture that has it."""
    if not (report.RESULTS / "gpu_static.csv").exists():
        pytest.skip("results of benchmarks are not in the source distribution")
    rows = report.read_csv("gpu_static")
    expected = {
        (f"{file}.{name}", *each)
        for file in sources.files()
        for name in sources.kernels_of(file)
        for each in product(sources.dtypes_of(file), gpu_static.architectures_of(file))
    }
    assert {(row["kernel"], row["dtype"], row["architecture"]) for row in rows} == expected
    assert len(rows) == len(expected)
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


def test_products_in_tf32_are_those_of_tensor_cores():
    """Of compute capability 8.0 and more, in float32; threads are those of the tiles."""
    assert gpu_static.architectures_of("convgemm_tf32") == ["sm_80", "sm_90"]
    assert sources.dtypes_of("convgemm_tf32") == ("float32",)
    for file, kernel, threads in (
        ("convgemm_tf32", "forward_few_128x64", 128),
        ("convgemm_lines_tf32", "backward_data_64x32x4", 128),
        ("convgemm_weights_tf32", "backward_weights_128x32", 64),
        ("convgemm_weights_lines_tf32", "backward_weights_192x64", 96),
        ("convgemm", "forward_8x4x4", 128),
        ("convgemm_weights", "sum", 256),
    ):
        assert gpu_static.threads_of(file, kernel, "float32") == threads
    try:
        gpu_static.package_file("nvidia-cuda-nvrtc-cu12", "cuda_nvrtc/lib/libnvrtc.so.*")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    ptx = gpu_static.ptx_of("convgemm_weights_tf32", "float32", "sm_80")
    assert b"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in ptx
    assert b"cp.async.cg.shared.global" in ptx
    with pytest.raises(RuntimeError, match="TF32 is of float32"):
        gpu_static.ptx_of("convgemm_weights_tf32", "float64", "sm_80")


def test_occupancy_is_bounded_by_each_limit():
    for registers, shared, want in ((32, 0, 1.0), (128, 0, 0.25), (32, 80 << 10, 0.25)):
        figures = gpu_static.Figures("k", registers, 0, 0, shared)
        assert gpu_static.occupancy(figures, 256, "sm_80") == want
