"""The header that runs CUDA kernels as C++: what it computes, and what it reports."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from benchmarks import gpu_counts
from pydtconv.devices import sources
from pydtconv.devices.device import DeviceError
from pydtconv.devices.host import compiler
from pydtconv.kernels.base import scratch

KERNELS = r"""
#include "dtconv_cuda.h"
#include "mma.h"

GLOBAL twice(int64_t n, Array<const real> x, Array<real> y) { FOR_EACH(i, n) y[i] = 2 * x[i]; }
KERNEL(twice)

GLOBAL outside(int64_t n, Array<const real> x, Array<real> y) { y[threadIdx.x] = x[threadIdx.x + n]; }
KERNEL(outside)

/* blocks turn parts of an array round */
GLOBAL turn(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 64);
    s[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * n + threadIdx.x] = s[n - 1 - threadIdx.x];
}
KERNEL(turn)

GLOBAL race(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 64);
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = threadIdx.x < n ? 0 : (real)s[threadIdx.x - n];
}
KERNEL(race)

GLOBAL both_write(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 64);
    s[threadIdx.x / n] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[0];
}
KERNEL(both_write)

/* a barrier of the warp is enough within it */
GLOBAL in_warp(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 64);
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp(FULL);
    y[threadIdx.x] = s[threadIdx.x ^ n];
}
KERNEL(in_warp)

GLOBAL never_written(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 64);
    y[threadIdx.x] = x[0] + s[n];
}
KERNEL(never_written)

GLOBAL stuck(int64_t n, Array<const real> x, Array<real> y) {
    if (threadIdx.x < n)
        __syncthreads();
    else
        y[threadIdx.x] = warp_sum(x[threadIdx.x]);
}
KERNEL(stuck)

GLOBAL warps(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, parts, WARPS);
    const real own = threadIdx.x < n ? x[threadIdx.x] : 0, sum = block_sum(own, parts), most = warp_max(own);
    const unsigned positive = __ballot_sync(FULL, own > 0);
    if (threadIdx.x == 0) {
        y[0] = sum;
        y[1] = most;
        y[2] = (real)positive;
        y[3] = __shfl_sync(1u, own, 0);
    }
    atomicAdd(&y[4], own);
}
KERNEL(warps)

/* every n-th element */
GLOBAL every(int64_t n, Array<const real> x, Array<real> y) {
    const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i * n];
}
KERNEL(every)

GLOBAL packs(int64_t n, Array<const real> x, Array<real> y) {
    sweep(n, true, [&](int64_t i, auto w) { store<decltype(w)::of>(y, i, load<decltype(w)::of>(x, i)); });
}
KERNEL(packs)

/* packs of four, from element n on, through shared memory */
GLOBAL packs_from(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 260);
    store_shared<4>(s, 4 * threadIdx.x, load<4>(x, n + 4 * threadIdx.x));
    __syncthreads();
    store<4>(y, 4 * (blockDim.x - 1 - threadIdx.x), load_shared<4>(s, 4 * threadIdx.x));
}
KERNEL(packs_from)

GLOBAL shared_packs_from(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 260);
    for (int e = 0; e < 4; e++) s[4 * threadIdx.x + e] = x[threadIdx.x];
    store<4>(y, 4 * threadIdx.x, load_shared<4>(s, 4 * threadIdx.x + n));
}
KERNEL(shared_packs_from)

/* 32 x 32 elements through shared memory with rows of n elements */
GLOBAL transposed(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 32 * 33);
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < 32; row += WARPS) s[row * n + lane] = x[row * 32 + lane];
    __syncthreads();
    for (int row = threadIdx.x / 32; row < 32; row += WARPS) y[row * 32 + lane] = s[lane * n + row];
}
KERNEL(transposed)

GLOBAL summed(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, parts, WARPS);
    const real sum = block_sum((real)x[threadIdx.x * n], parts);
    if (threadIdx.x == 0) y[0] = sum;
}
KERNEL(summed)

/* y = 1 + a b: x has a (16, 8) and b (8, 8) behind it; the first n elements of a are not rounded */
GLOBAL product(int64_t n, Array<const real> x, Array<real> y) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    uint32_t a[4], b[2];
    float sum[4] = {1, 1, 1, 1};
    for (int e = 0; e < 4; e++) {
        const int at = (g + e % 2 * 8) * 8 + t + e / 2 * 4;
        const float value = (float)(real)x[at];
        a[e] = at < n ? on_host::bits_of(value) : to_tf32(value);
    }
    for (int e = 0; e < 2; e++) b[e] = to_tf32((float)(real)x[128 + (t + e * 4) * 8 + g]);
    multiply_tf32(sum, a, b);
    for (int e = 0; e < 4; e++) y[(g + e / 2 * 8) * 8 + 2 * t + e % 2] = (real)sum[e];
}
KERNEL(product)

/* the TF32 nearest to each number */
GLOBAL nearest(int64_t n, Array<const real> x, Array<real> y) {
    FOR_EACH(i, n) y[i] = (real)on_host::number_of(to_tf32((float)(real)x[i]));
}
KERNEL(nearest)

/* packs of four, zeros in the place of every other one, through shared memory.  n: 1: it waits for its copies when it
 * has read them; 2: it does not wait; 3: it copies again what others read */
GLOBAL copies(int64_t n, Array<const real> x, Array<real> y) {
    SHARED(real, s, 128);
    const int at = 4 * threadIdx.x;
    copy_to_shared<4, false>(s, at, x, at, threadIdx.x % 2 == 0);
    if (n != 1 && n != 2) wait_for_copies();
    __syncthreads();
    if (n == 2) return;
    store<4>(y, at, load_shared<4>(s, 124 - at));
    if (n == 3) copy_to_shared<4, true>(s, at, x, at, true);
    wait_for_copies();
}
KERNEL(copies)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory)


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    return compiled(tmp_path_factory, "-DCOUNTING")


def compiled(tmp_path_factory, *options):
    try:
        command = [compiler.compiler(), "-O0", *compiler.OPTIONS[1:], "-I", str(sources.folder()), *options]
    except DeviceError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("kernels")
    source = folder / "kernels.cpp"
    source.write_text(f'#include "{sources.folder()}/host/cuda_on_host.h"\n{KERNELS}')
    subprocess.run([*command, str(source), "-o", str(folder / "kernels.so")], check=True)
    found = ctypes.CDLL(str(folder / "kernels.so"))
    found.launch_message.restype = ctypes.c_char_p
    return found


class Given(ctypes.Structure):
    _fields_ = (("first", ctypes.c_void_p), ("count", ctypes.c_int64))


def launch(library, name, n, x, y, grid=1, threads=64):
    """Runs a kernel; returns what it reports, "" where nothing."""
    given = [ctypes.c_int64(n), *(Given(array.ctypes.data, array.size) for array in (x, y))]
    pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in given))
    failed = getattr(library, f"launch_{name}")(pointers, (ctypes.c_uint * 6)(grid, 1, 1, threads, 1, 1))
    message = library.launch_message().decode()
    assert bool(failed) == bool(message)
    return message


X = np.random.default_rng(1).normal(size=128).astype("float32")


def test_threads_and_blocks(library):
    y = np.zeros(100, "float32")
    assert launch(library, "twice", 100, X, y, grid=3, threads=8) == ""
    np.testing.assert_array_equal(y, 2 * X[:100])


def test_barriers_and_shared_memory(library):
    y = np.zeros(128, "float32")
    assert launch(library, "turn", 64, X, y, grid=2) == ""
    np.testing.assert_array_equal(y, X.reshape(2, 64)[:, ::-1].ravel())


def test_warps(library):
    y = np.zeros(5, "float32")
    assert launch(library, "warps", 100, X, y, threads=256) == ""
    assert y[:2] == pytest.approx([X[:100].sum(), X[:32].max()], rel=1e-5)
    assert int(y[2]) == pytest.approx(sum(1 << i for i in range(32) if X[i] > 0), rel=1e-6)
    assert [y[3], y[4]] == pytest.approx([X[0], X[:100].sum()], rel=1e-5)


def test_a_barrier_of_the_warp(library):
    y = np.zeros(64, "float32")
    assert launch(library, "in_warp", 5, X, y) == ""
    np.testing.assert_array_equal(y, X[np.arange(64) ^ 5])
    assert "element 32 is read before it is written" in launch(library, "in_warp", 32, X, y)


@pytest.mark.parametrize(
    ("kernel", "n", "message"),
    [
        ("outside", 65, "block (0, 0, 0), thread (63, 0, 0): index 128 is outside of an array of 128 elements"),
        ("race", 1, "thread (1, 0, 0): shared memory: race on element 0 with thread 0"),
        ("both_write", 2, "thread (1, 0, 0): shared memory: race on element 0 with thread 0"),
        ("never_written", 3, "shared memory: element 3 is read before it is written"),
        ("turn", 65, "index 64 is outside of shared memory of 64 elements"),
        ("packs_from", 1, "index 1: 4 elements are moved at once, and lie at no multiple of their bytes"),
        ("packs_from", 132, "index 135 is outside of an array of 128 elements"),
        ("shared_packs_from", 1, "4 elements from 1 on are not within shared memory of 260, or not at a multiple"),
        ("shared_packs_from", 4, "shared memory: element 4 is read before it is written"),
        ("stuck", 40, "of 64 threads stand at __syncthreads"),
    ],
)
def test_what_is_reported(library, kernel, n, message):
    x, y = (scratch(4 * 128, gpu_counts.ALIGNMENT).view("float32") for _ in range(2))
    x[:], y[:] = X, 0
    assert message in launch(library, kernel, n, x, y[:64])
    assert launch(library, "turn", 64, X, y[:64]) == "", "the next launch is not disturbed"


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (1, "shared memory: element 124 is read before its copy is done"),
        (2, "thread (0, 0, 0): a copy to shared memory is not waited for"),
        (3, "thread (16, 0, 0): shared memory: race on element 60 with thread 15"),
    ],
)
def test_copies_that_are_not_waited_for(library, n, message):
    x, y = (scratch(4 * 128, gpu_counts.ALIGNMENT).view("float32") for _ in range(2))
    x[:] = X
    assert message in launch(library, "copies", n, x, y, threads=32)
    assert launch(library, "copies", 0, x, y, threads=32) == "", "the next launch is not disturbed"
    np.testing.assert_array_equal(y.reshape(32, 4)[::-2], x.reshape(32, 4)[::2])
    assert not y.reshape(32, 4)[::2].any()


def test_a_product_of_a_warp(library):
    x, y = np.random.default_rng(2).normal(size=192).astype("float32"), np.zeros(128, "float32")
    assert launch(library, "product", 0, x, y, threads=32) == ""
    narrow = np.zeros(192, "float32")
    assert launch(library, "nearest", 192, x, narrow) == ""
    want = 1 + narrow[:128].reshape(16, 8).astype(float) @ narrow[128:].reshape(8, 8)
    np.testing.assert_allclose(y.reshape(16, 8), want, atol=1e-6)
    message = "thread (0, 0, 0): a product expected operands rounded to TF32, got 0x1.8"
    x[0] = np.float32(float.fromhex("0x1.801p0"))
    assert message in launch(library, "product", 1, x, y, threads=32)


def test_the_nearest_tf32(library):
    """10 bits behind the point; of two as near the one further from 0; what is too large is an infinity."""
    unit, largest = 2.0**-10, np.finfo("float32").max
    x = [1 + unit / 4, 1 + unit / 2, -1 - unit / 2, 1 + 3 * unit / 4, 2.0**-140, largest, -np.inf, np.nan]
    y = np.zeros(8, "float32")
    assert launch(library, "nearest", 8, np.array(x, "float32"), y, threads=8) == ""
    want = np.array([1, 1 + unit, -1 - unit, 1 + unit, 0, np.inf, -np.inf, np.nan], "float32")
    np.testing.assert_array_equal(y[:4], want[:4])
    np.testing.assert_array_equal(y[5:], want[5:])
    assert abs(y[4] - 2.0**-140) <= 2.0**-137


def counts(library, name, n, shape, grid=1, threads=256):
    """What a launch counts, on arrays that begin where a GPU's do."""
    x, y = (scratch(4 * size, gpu_counts.ALIGNMENT).view("float32") for size in shape)
    x[:] = np.arange(x.size)
    assert launch(library, name, n, x, y, grid, threads) == ""
    return gpu_counts.counts_of(library), x, y


@pytest.mark.parametrize(("every", "sectors"), [(1, 4), (2, 8), (32, 32)])
def test_sectors_of_a_copy_of_every_nth_element(counting, every, sectors):
    found, x, y = counts(counting, "every", every, (128 * every, 128), grid=2, threads=64)
    np.testing.assert_array_equal(y, x[::every])
    assert (found.loads, found.load_sectors, found.least_load_sectors) == (4, 4 * sectors, 16)
    assert (found.stores, found.store_sectors, found.least_store_sectors) == (4, 16, 16)
    assert (found.moved, found.partial, found.operations) == (32 * (4 * sectors + 16), 0, 0)


def test_sectors_of_packs(counting):
    """A load of 16 bytes a lane is one instruction; three elements remain."""
    found, x, y = counts(counting, "packs", 515, (515, 515), threads=128)
    np.testing.assert_array_equal(y, x)
    assert (found.loads, found.load_sectors, found.least_load_sectors, found.partial) == (5, 65, 65, 2)


def test_packs_in_shared_memory(counting):
    """A pack is one access of eight lanes a pass."""
    found, x, y = counts(counting, "packs_from", 0, (256, 256), threads=64)
    np.testing.assert_array_equal(y.reshape(-1, 4), x.reshape(-1, 4)[::-1])
    assert (found.shared_accesses, found.shared_passes, found.least_shared_passes) == (4, 16, 16)


@pytest.mark.parametrize(("pitch", "passes"), [(33, 1), (32, 32)])
def test_bank_conflicts_of_a_transposition(counting, pitch, passes):
    found, x, y = counts(counting, "transposed", pitch, (1024, 1024))
    np.testing.assert_array_equal(y.reshape(32, 32), x.reshape(32, 32).T)
    assert (found.shared_accesses, found.least_shared_passes) == (64, 64)
    assert found.shared_passes == 32 + 32 * passes
    assert (found.barriers, found.exchanges, found.moved) == (8, 0, 8192)


def test_counts_of_products_and_copies(counting):
    """One product of each warp; every other pack of a warp is loaded, past L1, and all are written."""
    found, _, _ = counts(counting, "product", 0, (192, 128), threads=96)
    assert (found.products, found.exchanges, found.shared_accesses) == (3, 0, 0)
    found, _, _ = counts(counting, "copies", 0, (128, 128), threads=32)
    assert (found.loads, found.load_sectors, found.past_sectors, found.products) == (1, 16, 16, 0)
    assert (found.shared_accesses, found.shared_passes, found.fetched_sectors) == (2, 8, 16 + 16)


def test_counts_of_a_reduction(counting):
    found, x, y = counts(counting, "summed", 1, (256, 1))
    assert y[0] == x.sum()
    assert (found.exchanges, found.barriers, found.operations) == (8 * 5, 8 * 2, 256 * (5 + 8))
    assert (found.shared_accesses, found.conflicts) == (8 + 8 * 8, 1.0)
    assert found.partial == 8 + 1, "one lane stores its warp's sum, and one thread the result"
