"""The benchmark of threads: what is compared with what."""

from benchmarks import threads
from benchmarks.networks import Case


def test_the_spread_is_that_of_rounds():
    found = [[{"seconds": s, "parts": {"conv": s}} for s in rounds] for rounds in ((8.0, 4.0), (6.0, 3.0), (2.0, 2.0))]
    row, parts = threads.compared(Case("vgg16", 32, 8), [1, 2, 4], found)
    assert (row["ratio"], row["lowest"], row["highest"]) == (2, 2, 4)
    assert (row["images/s, 1"], row["images/s, 2"], row["images/s, 4"]) == (2, 8 / 3, 4)
    assert parts[0]["lost, % of the step"] == 50
