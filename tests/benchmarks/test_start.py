"""The time to the first training step."""

import json
import subprocess
import sys
import time

import pytest


@pytest.mark.slow
def test_ends_with_the_first_step():
    """The process ends there: it neither trains on nor writes files."""
    started = time.monotonic()
    words = ["--one", str(started), "--model", "mlp", "--dataset", "digits", "--epochs", "1000"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.start", *words], capture_output=True, text=True, check=True, timeout=120
    )
    seconds = json.loads(done.stdout.splitlines()[-1])
    assert 0 < seconds["begins"] < seconds["ends"] < time.monotonic() - started
