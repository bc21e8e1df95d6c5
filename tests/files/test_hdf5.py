"""HDF5 at the end of a program, and without memory."""

import io
import subprocess
import sys

import pytest

from pydtconv.files import hdf5

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


def test_without_memory_to_begin_with(monkeypatch):
    monkeypatch.setattr(hdf5, "_RESERVE", 1 << 60)
    with (
        pytest.raises(MemoryError, match=r"no memory to write weights of 2\.0 MiB"),
        hdf5.writing(io.BytesIO(), 2 << 20),
    ):
        pass
