"""Data sets of `keras.utils` as `tf.data.Dataset`."""

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


@pytest.mark.parametrize("size", [4, None])
def test_windows_of_a_series_are_a_data_set(tf, size):
    series, targets = np.arange(20.0, dtype="float32").reshape(10, 2), np.arange(10.0, dtype="float32")
    expected = list(keras.utils.timeseries_dataset_from_array(series, targets, 3, batch_size=size))
    for room in (tf.keras.utils, tf.keras.preprocessing):
        data = room.timeseries_dataset_from_array(series, targets, 3, batch_size=size)
        assert len(data) == len(expected)
        assert data.element_spec[0].shape == ((3, 2) if size is None else (None, 3, 2))
        for found, right in zip(data, expected, strict=True):
            for one, other in zip(found, right, strict=True):
                np.testing.assert_array_equal(one.numpy(), other)
        (first,) = tf.data.Dataset.zip((data, data)).take(1)
        np.testing.assert_array_equal(first[1][0], expected[0][0])
    if size:
        model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(data, epochs=2, verbose=0)


def test_texts_of_a_folder_go_through_a_pipeline(tf, tmp_path):
    """Functions of a script get tensors of strings and may give them; rows of words need not be of one length."""
    for i, text in enumerate(("Good <br />film", "bad", "so good", "bad, bad film")):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        (tmp_path / "ab"[i % 2] / f"{i}.txt").write_text(text)
    data = tf.keras.utils.text_dataset_from_directory(tmp_path, batch_size=2, shuffle=False, verbose=False)
    assert isinstance(data, tf.data.Dataset)
    assert data.class_names == ["a", "b"]

    def changed(texts):
        return tf.strings.regex_replace(tf.strings.lower(texts), "<br />", " ")

    for split in ("whitespace", tf.strings.split):
        words = tf.keras.layers.TextVectorization(standardize=changed, split=split, output_sequence_length=3)
        words.adapt(data.map(lambda x, y: x))
        assert words.get_vocabulary() == ["", "[UNK]", "good", "film", "bad", "so", "bad,"]
        numbers = data.map(lambda x, y: (words(tf.expand_dims(x, -1)), y)).prefetch(2)  # noqa: B023
        found = [x.numpy().tolist() for x, _ in numbers]
        assert found == [[[2, 3, 0], [5, 2, 0]], [[4, 0, 0], [6, 4, 3]]]
        singles = data.unbatch().map(lambda x, y: words(x))  # noqa: B023
        assert [x.numpy().tolist() for x in singles] == [row for rows in found for row in rows]
