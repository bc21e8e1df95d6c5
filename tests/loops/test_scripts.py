"""Scripts of the kinds that people write for Keras, unmodified, run end to end by `pydtconv run`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).parent.glob("scripts/*.py"))
FAST = ("grad_cam",)


@pytest.mark.parametrize(
    "script", [pytest.param(s, id=s.stem, marks=() if s.stem in FAST else pytest.mark.slow) for s in SCRIPTS]
)
def test_a_script_of_keras_runs(script, tmp_path):
    pytest.importorskip("PIL")
    shutil.copy(script, tmp_path)
    command = [sys.executable, "-W", "error", "-m", "pydtconv", "run", script.name]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "ok" in result.stdout
