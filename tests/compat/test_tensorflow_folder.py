"""`image_dataset_from_directory` as a `tf.data.Dataset`."""

import threading

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.compat.tensorflow.folder import image_dataset_from_directory
from pydtconv.trainers.data_adapters.streams import StreamData

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.mark.parametrize("workers", [1, 3])
def test_loops_and_fit_get_the_batches_of_the_folder(tmp_path, workers):
    for i in range(7):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.new("RGB", (20, 16), (30 * i, 0, 0)).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    options = {"image_size": (4, 4), "batch_size": 3, "seed": 1, "verbose": False, "workers": workers}
    expected = [list(keras.utils.image_dataset_from_directory(tmp_path, **options)) for _ in range(2)]
    data = image_dataset_from_directory(tmp_path, **options)
    before = threading.active_count()
    of_fit = [(batch.x, batch.y) for batch in StreamData(data).epoch()]
    taken = list(data.take(1))
    for found, batches in ((of_fit, expected[0]), (taken, expected[0][:1]), (list(data), expected[0])):
        for (x, y), (a, b) in zip(found, batches, strict=True):
            np.testing.assert_array_equal(np.asarray(x), a)
            np.testing.assert_array_equal(np.asarray(y), b)
    assert threading.active_count() == before
