"""Trains on two ranks whose clocks do not agree, and writes the time line: `traced FILE`."""

import os
import time

#: seconds by which the clocks of ranks are ahead
AHEAD = {"0": (0, 0), "1": (5, 300)}


def put_ahead(name, seconds):
    clock = getattr(time, name)
    setattr(time, name, lambda: clock() + seconds * 10**9)


for _name, _seconds in zip(("perf_counter_ns", "time_ns"), AHEAD[os.environ["PMI_RANK"]], strict=True):
    put_ahead(_name, _seconds)

from pydtconv import distribution  # noqa: E402  (after the clocks)
from tests.profiling.test_profiler import data, small_model  # noqa: E402


def main(path):
    distribution.initialize()
    distribution.set_distribution(distribution.DataParallel(bucket_size=1e-4))
    small_model().fit(*data(60), batch_size=8, verbose=0, trace=path)
