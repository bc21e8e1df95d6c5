"""HDF5 at the end of a program."""

import subprocess
import sys

import pytest

CODE = """
import atexit, sys
import pydtconv
model = pydtconv.Sequential([pydtconv.Input((3,)), pydtconv.layers.Dense(2)])
if sys.argv[2] == "before":
    import h5py
atexit.register(model.save, sys.argv[1])
"""


@pytest.mark.parametrize("imported", ["before", "then"])
def test_a_first_save_at_exit(tmp_path, imported):
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path / "a.keras"), imported], check=False, timeout=120)
    assert done.returncode == 0
    assert (tmp_path / "a.keras").exists()
