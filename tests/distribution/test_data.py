"""Data that comes in batches: each rank reads its share of a folder alone; ranks may bring shares of their own."""

import numpy as np
import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi
IMAGES, RANKS = 14, 2


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    image_module = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for i in range(IMAGES):
        path = folder / "images" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image_module.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8)).save(path)
    (folder / "images" / "a" / "bad.png").write_bytes(b"no image")
    for ranks in (1, RANKS):
        run_well(ranks, "folder", folder / "images", folder / f"out{ranks}")
    return np.load(folder / "out1.0.npz"), [np.load(folder / f"out{RANKS}.{rank}.npz") for rank in range(RANKS)]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["folder", "loss", "shares"])
def test_equal_to_one_rank(outcomes, key):
    one, several = outcomes
    for found in several:
        np.testing.assert_allclose(found[key], one[key], rtol=2e-5, atol=1e-6)


@pytest.mark.slow
def test_each_file_is_read_by_one_rank(outcomes):
    one, several = outcomes
    assert one["read"] == 2 * (IMAGES + 1) + 5  # the first batch is looked at before training, too
    assert sum(int(found["read"]) for found in several) == one["read"]
