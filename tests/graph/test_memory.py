"""Predicted memory against what a fresh process takes; no allocation in a step."""

from __future__ import annotations

import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pydtconv.graph import Executor, Memory
from tests.graph.networks import NETWORKS

CASES = {"plain": (64, 32, 32), "residual": (64, 32, 32), "preactivation": (64, 32, 32), "dense": (64, 16, 32)}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc to measure memory")
@pytest.mark.parametrize(
    "name", ["residual", *(pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS if name != "residual")]
)
def test_predicted_peak_is_what_a_fresh_process_takes(name: str) -> None:
    command = [sys.executable, "-m", "tests.graph.measure_memory", name, *map(str, CASES[name])]
    root = Path(__file__).parents[2]
    result = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    predicted, measured = map(int, result.stdout.split())
    assert measured == pytest.approx(predicted, rel=0.05)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_training_step_allocates_nothing(name: str) -> None:
    model = NETWORKS[name](32, 8)
    model.compile("sgd", "sparse_categorical_crossentropy")
    executor = Executor(model.plan(16), Memory())
    rng = np.random.default_rng(0)
    inputs = {key: rng.random(tensor.shape) for key, tensor in executor.plan.graph.inputs.items()}
    for _ in range(2):
        executor.run(inputs)
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        executor.run(inputs)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    smallest = min(storage.nbytes for storage in executor.plan.storages if len(storage.name) and storage.nbytes > 4096)
    assert after - before < 2048
    assert peak - before < min(smallest, 8192)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        executor.run(inputs)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults < 30
