"""The table of micro-kernels: choice, forcing by name, self-test."""

import os
import subprocess
import sys
import textwrap

import pytest

from pydtconv import microkernels
from pydtconv._ext import cpu
from tests.marks import chosen_freely


def run(code, **environment):
    """Runs code in a fresh process, where nothing has been chosen yet."""
    names = {key: value for key, value in os.environ.items() if key != "PYDTCONV_UKR"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=names | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@chosen_freely
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_table(dtype):
    kernels = microkernels.available(dtype)
    assert {"portable"} <= {kernel.provider for kernel in kernels}
    assert all(kernel.mc % kernel.mr == 0 and kernel.nc % kernel.nr == 0 and kernel.kc > 0 for kernel in kernels)
    for kernel in kernels:
        missing = set(kernel.features) - cpu.features()
        assert kernel.usable == (not missing), kernel
        assert kernel.usable or all(name in kernel.reason for name in missing)
    assert microkernels.selected(dtype).name == next(kernel.name for kernel in kernels if kernel.usable)


@chosen_freely
def test_pairs_are_multiplied_by_the_faster_instructions():
    """Products of vdpbf16ps where they are more than those of FMA in a cycle, else pairs are widened."""
    usable = {kernel.name for kernel in microkernels.available("bfloat16") if kernel.usable}
    if "avx512_bf16" not in usable or "amx_bf16" in usable:
        pytest.skip("needs AVX-512 BF16, and no AMX")
    fast = "fast_dot" in cpu.features()
    assert (microkernels.selected("bfloat16").name == "avx512_bf16") == fast


def test_blis_kernels_are_found_where_the_package_is():
    if microkernels.blis_library() is None:
        pytest.skip("the package blis is not installed")
    assert any(kernel.provider == "blis" and kernel.usable for kernel in microkernels.available())


@pytest.mark.slow
def test_nothing_is_chosen_at_import():
    code = """
    import sys, pydtconv
    from pydtconv._ext import ukr
    assert ukr.current("float32") == -1
    from pydtconv.gemm import gemm
    import numpy
    gemm(numpy.ones((2, 3), "f"), numpy.ones((3, 2), "f"))
    assert ukr.current("float32") >= 0
    assert ukr.current("float64") == -1
    assert "blis" not in sys.modules
    """
    result = run(code)
    assert result.returncode == 0, result.stderr


@chosen_freely
def test_environment_forces_a_kernel_and_a_family():
    code = """
    from pydtconv import microkernels
    print(microkernels.selected("float32").name, microkernels.selected("float64").name)
    """
    assert run(code, PYDTCONV_UKR="portable").stdout.split() == ["portable_4x8", "portable_4x4"]
    forced = run(code, PYDTCONV_UKR="portable_4x8").stdout.split()
    assert forced == ["portable_4x8", microkernels.selected("float64").name]


@pytest.mark.slow
def test_unknown_name_is_an_error_that_names_the_near_ones():
    code = """
    import numpy
    from pydtconv.gemm import gemm
    gemm(numpy.ones((2, 3), "f"), numpy.ones((3, 2), "f"))
    """
    result = run(code, PYDTCONV_UKR="portible_4x8")
    assert result.returncode != 0
    message = result.stderr.splitlines()[-1]
    assert message.startswith("ValueError: PYDTCONV_UKR: no micro-kernel is called 'portible_4x8': expected one of")
    assert "did you mean portable_4x8" in message


def test_kernel_that_the_cpu_cannot_run_is_an_error():
    unusable = [kernel for kernel in microkernels.available() if not kernel.usable]
    if not unusable:
        pytest.skip("this CPU runs every kernel of the table")
    with pytest.raises(ValueError, match="cannot be used: this CPU lacks"):
        microkernels.select(unusable[0].name)


WRONG = """
import ctypes, warnings
import numpy
from pydtconv import microkernels
from pydtconv._ext import ukr
from pydtconv.gemm import gemm

kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 10)(lambda *arguments: None)
ukr.register("float32", "idle_4x8", ctypes.cast(kernel, ctypes.c_void_p).value, 1, 4, 8, True, 0, 0)
"""


@pytest.mark.slow
def test_wrong_kernel_is_dropped_with_a_warning():
    code = (
        WRONG
        + """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert (gemm(numpy.ones((2, 3), "f"), numpy.ones((3, 2), "f")) == 3).all()
    assert microkernels.selected().name != "idle_4x8"
text, = [str(warning.message) for warning in caught]
assert text.startswith("micro-kernel idle_4x8 (float32) is not used: wrong results in the self-test"), text
row, = [row for row in microkernels.available() if row.name == "idle_4x8"]
assert not row.usable and "wrong results" in row.reason
"""
    )
    result = run(code)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_wrong_kernel_cannot_be_forced():
    code = (
        WRONG
        + """
warnings.simplefilter("ignore")
gemm(numpy.ones((2, 3), "f"), numpy.ones((3, 2), "f"))
"""
    )
    result = run(code, PYDTCONV_UKR="idle_4x8")
    assert result.returncode != 0
    assert "PYDTCONV_UKR: micro-kernel idle_4x8 cannot be used: wrong results" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rates(dtype):
    name = microkernels.selected(dtype).name
    assert microkernels.measure(name, dtype, 0.001) > 0
    assert microkernels.peak_gflops(dtype, 2, 0.001) > 0
    with pytest.raises(ValueError, match="no micro-kernel is called 'fast'"):
        microkernels.measure("fast", dtype)
    with pytest.raises(ValueError, match="expected 'float32', 'float64' or 'bfloat16', got 'int64'"):
        microkernels.available("int64")


def test_select_wants_a_kernel_of_the_precision():
    with pytest.raises(ValueError, match="portable_4x8 is no micro-kernel for float64"):
        microkernels.select("portable_4x8", "float64")
