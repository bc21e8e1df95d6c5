"""Accumulated gradients are summed over ranks once for each update, and give what one rank gives."""

import json

import numpy as np
import pytest

from tests.distribution import accumulated
from tests.distribution.ranks import needs_mpi, run_well

pytestmark = [*needs_mpi, pytest.mark.slow]
MODES = {"shared memory": (2, ()), "messages": (3, ("shared_memory=False", "overlap=False")), "mesh": (2, ("mesh",))}


def arrays(path):
    with np.load(path) as found:
        return dict(found)


@pytest.mark.parametrize("mode", MODES)
def test_one_sum_an_update(mode, tmp_path):
    ranks, options = MODES[mode]
    run_well(0, "accumulated", tmp_path / "one", *(("mesh",) if mode == "mesh" else ()))
    run_well(ranks, "accumulated", tmp_path / "several", *options)
    one = arrays(tmp_path / "one.0.npz")
    for key in one if mode != "mesh" else ():
        if key.startswith("resumed"):
            np.testing.assert_allclose(one[key], one[key.replace("resumed", "fit plain")], 1e-7, 1e-9, err_msg=key)
    for rank in range(ranks):
        sums = json.loads((tmp_path / f"several.{rank}.json").read_text())
        for name, count in sums.items():
            assert count == accumulated.OTHERS.get(name, (None, accumulated.EPOCHS))[1], name
        several = arrays(tmp_path / f"several.{rank}.npz")
        assert several.keys() == one.keys()
        for key in one:
            np.testing.assert_allclose(several[key], one[key], 1e-7, 1e-9, err_msg=f"rank {rank}: {key}")
