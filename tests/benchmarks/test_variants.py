"""The benchmark of variants: what is compared with what."""

import pytest

from benchmarks import variants
from benchmarks.networks import Case


def test_rows_are_of_all_iterations_and_ratios_of_rounds():
    """A machine that is slower in the second round changes no ratio."""

    def of(seconds, peak):
        return {"seconds": seconds, "peak MiB": peak, "predicted MiB": 3.0, "origin": {"commit": "abc"}}

    found = {
        "CGT+PM": [of([1.0, 1.0, 1.0], 10.0), of([2.0, 2.0, 2.0], 8.0)],
        "CGT+DG": [of([0.5, 0.5, 9.0], 5.0), of([1.0, 1.0, 1.0], 4.0)],
    }
    first, second = variants.rows_of(Case("vgg16", 32, 8), 2, found)
    assert (first["speed to first"], first["memory to first"], first["samples/s"]) == (1, 1, pytest.approx(8 / 1.5))
    assert (second["speed to first"], second["lowest"], second["highest"]) == (2, 2, 2)
    assert (second["samples/s"], second["memory to first"], second["commit"]) == (8, 0.5, "abc")
    assert (first["workspaces"], second["workspaces"]) == ("ahead", "in calls")
    assert (first["backward_data"], second["backward_data"]) == ("im2col", "deconvgemm")
