import numpy as np

from pydtconv.support.array_cache import KeptArrays


def test_the_last_arrays_stay_as_long_as_there_is_room():
    made = []

    def make(size, value):
        made.append(size)
        return np.full(size, value, np.uint8)

    kept = KeptArrays(make, 100)
    for size in (40, 50, 40, 30, 40, 50, 101, 101):  # 30 takes the place of 50, and 50 that of 30
        assert kept(size, 7).tobytes() == bytes([7]) * size
    assert made == [40, 50, 30, 50, 101, 101]
