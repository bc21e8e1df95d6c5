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


@pytest.fixture
def run(tmp_path):
    """Runs a command of the page.  CI names a wheel in PYDTCONV_WHEEL: an environment of its own gets it."""
    wheel = os.environ.get("PYDTCONV_WHEEL")
    programs = Path(sys.executable).parent
    if wheel:
        subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True)
        programs = tmp_path / "fresh" / "bin"
    else:
        for package in ("PIL", "matplotlib", "onnx", "mpi4py"):
            pytest.importorskip(package)
    # this package's folder and the variables of these tests are not seen there
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
    }

    def run(words):
        if words[0] == "pip":
            if not wheel:
                return
            words = ["python", "-m", *(word.replace(".[", f"{wheel}[") for word in words), "--quiet"]
        elif words[0] == "pydtconv" and not wheel:
            words = ["python", "-m", *words]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    return run


@pytest.mark.slow
@pytest.mark.mpi
def test_every_line_runs(run, tmp_path):
    photographs(tmp_path / "photos", 8)
    photographs(tmp_path / "broken", 4)
    (tmp_path / "broken" / "train" / "dark" / "0.png").write_bytes(b"no image")
    (tmp_path / "script.py").write_text(
        "from tensorflow import keras\nprint(keras.layers.Dense(3)(keras.Input((2,))))\n"
    )
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", PAGE.read_text(), re.S | re.M):
        if language == "python":
            run(["python", "-c", block])
        else:
            for line in block.replace("\\\n", " ").splitlines():
                run(shlex.split(line))
    for name in WRITTEN:
        assert (tmp_path / name).exists(), name
