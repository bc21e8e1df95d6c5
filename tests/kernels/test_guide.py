"""The code in docs/writing-an-operator.md runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "writing-an-operator.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.S), ids=["operator"])
def test_code_runs(code, tmp_path):
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_files_that_are_named_exist():
    root = Path(__file__).parents[2]
    names = re.findall(r"`((?:pydtconv|tests|cext)/[\w./]+)`", PAGE)
    assert len(names) > 5
    for name in names:
        assert (root / name).exists(), name
