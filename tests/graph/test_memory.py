"""Predicted memory against what a fresh process takes; no allocation in a step."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pydtconv.graph import Executor, Memory
from tests.graph.networks import ALL_NETWORKS
from tests.marks import slow

CASES = {"plain": (64, 32, 32), "residual": (64, 32, 32), "preactivation": (64, 32, 32), "dense": (64, 16, 32)}
CASES["volumes"] = (64, 16, 32)
CASES["attention"] = (96, 48, 16)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc to measure memory")
@pytest.mark.parametrize(
    ("name", "policy"),
    [*((name, "float32") for name in CASES), *((name, "mixed_bfloat16") for name in ("residual", "dense"))],
)
def test_predicted_peak_is_what_a_fresh_process_takes(name: str, policy: str) -> None:
    command = [sys.executable, "-m", "tests.graph.measure_memory", name, *map(str, CASES[name])]
    root = Path(__file__).parents[2]
    env = os.environ | {"PYDTCONV_DTYPE": policy}
    result = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300, check=False, env=env)
    assert result.returncode == 0, result.stderr
    predicted, measured = map(int, result.stdout.split())
    assert measured == pytest.approx(predicted, rel=0.05)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc to measure memory")
@pytest.mark.parametrize("name", ["residual"])
def test_predicted_peak_with_offload_is_what_a_fresh_process_takes(name: str, tmp_path: Path) -> None:
    words = [name, *map(str, CASES[name]), "0.7", str(tmp_path)]
    env = os.environ | {"PYDTCONV_CACHE": str(tmp_path / "cache")}
    command, root = [sys.executable, "-m", "tests.graph.measure_memory", *words], Path(__file__).parents[2]
    result = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300, check=False, env=env)
    assert result.returncode == 0, result.stderr
    predicted, measured = map(int, result.stdout.split())
    assert measured == pytest.approx(predicted, rel=0.05)


def allocated(call: Callable[[], Any]) -> tuple[int, int]:
    """Bytes of Python's memory that a call leaves allocated, and the most that it has while it runs."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before, peak - before


def page_faults(call: Callable[[], Any]) -> int:
    """Pages of memory that this process is given while a call runs."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.parametrize("name", [name if name == "residual" else slow(name) for name in ALL_NETWORKS])
def test_a_training_step_allocates_nothing(name: str) -> None:
    model = ALL_NETWORKS[name](32, 8)
    model.compile("sgd", "sparse_categorical_crossentropy")
    executor = Executor(model.plan(16), Memory())
    rng = np.random.default_rng(0)
    inputs = {key: rng.random(tensor.shape) for key, tensor in executor.plan.graph.inputs.items()}
    for _ in range(2):
        executor.run(inputs)
    kept, peak = min(allocated(lambda: executor.run(inputs)) for _ in range(3))
    smallest = min(storage.nbytes for storage in executor.plan.storages if len(storage.name) and storage.nbytes > 4096)
    assert kept < 2048
    assert peak < min(smallest, 8192)
    # the least of several steps: a system that is short of memory takes pages away and gives them back
    assert min(page_faults(lambda: executor.run(inputs)) for _ in range(5)) < 10
