"""What more cores would do, on paper."""

import pytest

from benchmarks.networks import Case
from benchmarks.threads_model import PIECE, PIECE_BYTES, SLICES, Paper, row_of
from pydtconv.profiling import Profile, Timing

GB = 1e9


def timing(seconds, index=0, direction="forward", **work):
    return Timing(index, "node", "conv", direction, seconds, **work)


def profile(*timings):
    whole = sum(t.seconds for t in timings)
    return Profile("m", 1, 1, "float32", "AUTO", "cpu", 1, whole, 0, list(timings))


def test_work_in_many_pieces_is_shared():
    parts = Paper(8, 10, 100).parts(timing(0.8, multiplications=800 * PIECE))
    assert parts["work"] + parts["few pieces"] == pytest.approx(0.1)
    assert parts["memory"] == 0


def test_few_pieces_leave_cores_idle():
    parts = Paper(64, 10, 100).parts(timing(0.8, direction="backward_weights", multiplications=800 * PIECE))
    assert parts["work"] + parts["few pieces"] == pytest.approx(0.8 / SLICES)


def test_memory_bounds_what_moves_much():
    moved = timing(1.0, bytes=10 * GB)
    for cores, seconds in ((4, 0.25), (64, 0.1)):
        assert sum(Paper(cores, 10, 100).parts(moved).values()) == pytest.approx(seconds, rel=1e-3)


def test_the_rest_stays_and_is_named():
    found = profile(timing(1.0, multiplications=1000 * PIECE), timing(0.1, index=-1))
    row = row_of(Case("m", 32, 1), found, [2, 64], 10, 100)
    assert row["next bottleneck"] == "serial"
    assert row["2 cores, times"] == pytest.approx(1.1 / 0.6, rel=1e-3)
    tiny = timing(1e-5, bytes=PIECE_BYTES // 2)
    assert Paper(64, 10, 100).parts(tiny)["few pieces"] > 0
