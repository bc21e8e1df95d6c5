"""`docs/first-week.md`: every block of it, one after the other, in a folder with photographs and a script."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pydtconv.utils import save_img

PAGE = Path(__file__).parent.parent / "docs" / "first-week.md"
#: what the blocks leave
WRITTEN = (
    "first.weights.h5", "first.toml", "second.weights.h5", "saved", "memory.png", "first.onnx", "first.keras",
    "confusion.pdf", "memory.pdf", "curve.pdf",
)  # fmt: skip


def photographs(folder, count):
    """Dark and light pictures."""
    for part in ("train", "val"):
        for name, level in (("dark", 20), ("light", 230)):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                save_img(folder / part / name / f"{i}.png", np.full((20, 24, 3), level + i), scale=False)


@pytest.mark.slow
def test_every_line_runs(tmp_path):
    for package in ("PIL", "matplotlib", "onnx"):
        pytest.importorskip(package)
    photographs(tmp_path / "photos", 8)
    photographs(tmp_path / "broken", 4)
    (tmp_path / "broken" / "train" / "dark" / "0.png").write_bytes(b"no image")
    (tmp_path / "script.py").write_text(
        "from tensorflow import keras\nprint(keras.layers.Dense(3)(keras.Input((2,))))\n"
    )
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", PAGE.read_text(), re.S | re.M):
        lines = [["-c", block]] if language == "python" else map(shlex.split, block.replace("\\\n", " ").splitlines())
        for words in lines:
            if words[0] == "mpiexec":  # tests/distribution starts ranks
                continue
            command = [sys.executable, *(["-m"] if words[0] == "pydtconv" else []), *words]
            result = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
            assert result.returncode == 0, (words, result.stderr)
    for name in WRITTEN:
        assert (tmp_path / name).exists(), name
