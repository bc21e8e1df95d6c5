"""Ways of reducing gradients: overlapped or not, in bfloat16, with tuned buckets; equal bits from equal seeds."""

import numpy as np
import pytest

from pydtconv.distribution.gradients.bucket_tuning import BucketTuning
from pydtconv.distribution.options import Options
from tests.distribution.ranks import needs_mpi, run_well

RANKS = 3


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    done = run_well(RANKS, "options", folder)
    return loaded(folder), done.stdout


def loaded(folder):
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}


def assert_same(a, b):
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=key)


@pytest.mark.slow
@pytest.mark.mpi
@needs_mpi[1]
def test_two_ranks_agree_in_one_epoch(tmp_path):
    names = ["plain", "blocking", "bfloat16", "tuned"]
    done = run_well(2, "options", tmp_path, 1, *names)
    found = loaded(tmp_path)
    for name in names:
        assert_same(found[f"{name}.0"], found[f"{name}.1"])
    assert_same(found["plain.0"], found["blocking.0"])
    assert 0 < np.abs(found["plain.0"]["weight0"] - found["bfloat16.0"]["weight0"]).max() < 0.1
    assert done.stdout.count("MiB are the fastest") == 1


@pytest.mark.slow
@pytest.mark.mpi
@needs_mpi[1]
class TestWays:
    @pytest.mark.parametrize("way", ["plain", "blocking", "sent", "bfloat16", "tuned"])
    def test_ranks_agree(self, ways, way):
        for rank in range(1, RANKS):
            assert_same(ways[0][f"{way}.0"], ways[0][f"{way}.{rank}"])

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ("plain", "again"),
            ("plain", "blocking"),
            ("sent", "sent_again"),
            ("sent", "sent_blocking"),
            ("bfloat16", "bfloat16_again"),
            ("bfloat16", "bfloat16_blocking"),
        ],
    )
    def test_equal_bits(self, ways, a, b):
        assert_same(ways[0][f"{a}.0"], ways[0][f"{b}.0"])

    def test_sending_differs_by_rounding(self, ways):
        for key in ("weight0", "weight3"):
            np.testing.assert_allclose(ways[0]["sent.0"][key], ways[0]["plain.0"][key], rtol=0.02, atol=0.02)

    def test_bfloat16_learns_as_well(self, ways):
        plain, narrow = ways[0]["plain.0"], ways[0]["bfloat16.0"]
        assert plain["accuracy"] > 0.93
        assert abs(plain["accuracy"] - narrow["accuracy"]) < 0.02
        differences = np.abs(plain["weight0"] - narrow["weight0"])
        assert 0 < differences.max() < 0.1

    def test_tuning_is_told_once(self, ways):
        assert ways[1].count("MiB are the fastest") == 1


def test_tuning_takes_what_is_fastest_for_the_slowest():
    cuts = []

    def set_buckets(nbytes):
        cuts.append(nbytes >> 20)
        return max(16 // (nbytes >> 20), 1)

    tuning = BucketTuning(set_buckets, lambda times: np.array([3.0, 1.0, 2.0, 4.0, 5.0])[: len(times)])
    assert tuning.sizes == [1, 2, 4, 8, 16]
    steps = 0
    while not tuning.end(64):
        tuning.begin(64)
        tuning.begin(10)
        assert not tuning.end(10)
        steps += 1
        assert steps < 100
    assert tuning.chosen == 2
    assert cuts[-1] == 2


@pytest.mark.parametrize("wrong", [{"bucket_size": 0}, {"bucket_size": "large"}, {"wire": "float16"}, {"overlap": 1}])
def test_wrong_options(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected .* got {next(iter(wrong.values()))!r}"):
        Options(**wrong)
