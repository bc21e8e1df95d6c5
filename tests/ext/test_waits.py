"""What waiting and starting threads costs, and the caches that blocks are cut for."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pydtconv import config, conv
from pydtconv._ext import runtime
from pydtconv.caches import of_text as sizes_of_text
from pydtconv.cli.doctor import report
from pydtconv.conv import ConvProblem
from pydtconv.gemm import gemm
from tests.marks import slow


@pytest.mark.parametrize(("policy", "seconds"), [(None, 2e-4), ("passive", 0), ("ACTIVE", 1)])
def test_waiting_threads_spin_and_then_sleep(policy, seconds):
    code = "from pydtconv._ext import runtime; print(runtime.spin_seconds())"
    env = {key: text for key, text in os.environ.items() if key != "OMP_WAIT_POLICY"}
    env |= {} if policy is None else {"OMP_WAIT_POLICY": policy}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
    if "None" in found:
        pytest.skip("this build has the OpenMP library of its compiler")
    assert float(found) == pytest.approx(seconds)


ROUSED = """
import time
from pathlib import Path

import numpy as np

from pydtconv._ext import runtime
from pydtconv.gemm import gemm

def sleeps():
    texts = [path.read_text() for path in Path("/proc/self/task").glob("*/status")]
    return [int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("voluntary")]

runtime.rouse_threads()  # where there are none
a = np.ones((300, 300), np.float32)
runtime.set_num_threads(2)
gemm(a, a)
seen = []
for rouses in (False, True, True):
    time.sleep(0.05)
    before = sum(sleeps()[1:])
    if rouses:
        runtime.rouse_threads()
        runtime.rouse_threads()
    time.sleep(0.05)
    seen.append(sum(sleeps()[1:]) > before)
assert (gemm(a, a) == 300).all()
print(seen)
"""


@pytest.mark.skipif(runtime.spin_seconds() is None, reason="the compiler's OpenMP starts the threads")
@pytest.mark.parametrize(("policy", "seen"), [("", [False, True, True]), slow("passive", [False, False, False])])
def test_threads_that_sleep_are_roused(policy, seen):
    """They wake up, spin and sleep again; those that are not to spin are left alone."""
    env = dict(os.environ, OMP_WAIT_POLICY=policy, OPENBLAS_NUM_THREADS="1")
    found = subprocess.run([sys.executable, "-c", ROUSED], capture_output=True, text=True, env=env)
    assert (found.stdout, found.stderr) == (f"{seen}\n", "")


BESIDE_OTHERS = """
import subprocess, sys, time
from pathlib import Path

import numpy as np

from pydtconv import config, conv
from pydtconv.conv import ConvProblem

def cores_of_threads():
    found = [path.read_text() for path in Path("/proc/self/task").glob("*/status")]
    return {line for text in found for line in text.splitlines() if line.startswith("Cpus_allowed_list")}

rng = np.random.default_rng(0)
p = ConvProblem(4, 20, 20, 32, 32, 3, padding="same")
x, dy, w = (rng.standard_normal(shape, np.float32) for shape in (p.x_shape, p.y_shape, p.w_shape))
passes = lambda: [conv.forward(p, x, w), conv.backward_data(p, dy, w), conv.backward_weights(p, x, dy)]
config.set_num_threads(3)
expected, before = passes(), cores_of_threads()
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
try:
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        for found, right in zip(passes(), expected, strict=True):
            np.testing.assert_array_equal(found, right)
finally:
    for other in others:
        other.kill()
        other.wait()
after = cores_of_threads()
assert before == after, (before, after)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are moved on Linux alone")
def test_threads_that_lose_their_cores_go_on_elsewhere_and_may_run_everywhere_after():
    subprocess.run([sys.executable, "-c", BESIDE_OTHERS], check=True, timeout=120)


@pytest.mark.parametrize("size", [4, 300])
def test_small_work_on_one_thread_has_the_bits_of_several(size):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((size, size), np.float32), rng.standard_normal((size, size), np.float32)
    p = ConvProblem(2, size // 4 + 3, 5, 16, 16, 3, padding="same")
    x, w = rng.standard_normal(p.x_shape, np.float32), rng.standard_normal(p.w_shape, np.float32)
    found = []
    for number in (1, 3):
        config.set_num_threads(number)
        found.append([gemm(a, b), *(conv.forward(p, x, w, algorithm=name) for name in conv.algorithms(p, "forward"))])
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)


@pytest.fixture
def caches():
    before = [runtime.cache_bytes(level) for level in (1, 2, 3)]
    yield
    for level, size in zip((1, 2, 3), before, strict=True):
        runtime.set_cache_bytes(level, size)


def test_caches_are_found_and_can_be_set(caches):
    found = [runtime.cache_bytes(level) for level in (1, 2, 3)]
    assert 4096 <= found[0] <= found[1] <= 1 << 31
    runtime.set_cache_bytes(2, 123 << 10)
    assert runtime.cache_bytes(2) == 123 << 10
    runtime.set_cache_bytes(2, 0)
    assert runtime.cache_bytes(2) == found[1] or os.environ.get("PYDTCONV_CACHES")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0, 0, 0]),
        ("48K,2M", [48 << 10, 2 << 20, 0]),
        ("32K", [32 << 10, 0, 0]),
        (",1M,65536", [0, 1 << 20, 65536]),
    ],
)
def test_sizes_in_the_environment(text, expected):
    assert sizes_of_text(text) == expected


@pytest.mark.parametrize("text", ["1K", "48Q", "-48K", "48 K", "48K,2M,3M,4M", "9" * 40, "x", "٣٢K"])
def test_sizes_that_are_refused(text):
    with pytest.raises(ValueError, match="PYDTCONV_CACHES: expected"):
        sizes_of_text(text)


def test_doctor_tells_what_was_found_and_chosen():
    lines = dict(report(measure=False))
    assert f"L2 {runtime.cache_bytes(2) // 1024} KiB" in lines["caches"]
    assert all(word in lines["blocks"] for word in ("float32", "MC", "KC", "NC"))
    assert lines["memory"]
    assert lines["waits"]


def test_products_are_right_with_blocks_for_any_cache(caches):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((300, 700), np.float32), rng.standard_normal((700, 900), np.float32)
    expected = a.astype(float) @ b
    for sizes in ((8 << 10, 64 << 10), (192 << 10, 16 << 20)):
        for level, size in zip((1, 2), sizes, strict=True):
            runtime.set_cache_bytes(level, size)
        np.testing.assert_allclose(gemm(a, b), expected, atol=1e-3)
