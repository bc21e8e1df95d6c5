"""Batches of image files that several threads make together."""

import os
import threading
import time

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.files import image_decoding
from pydtconv.files.image_decoding import Decoder
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.utils import image_dataset_from_directory

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
pytestmark = pytest.mark.usefixtures("_no_thread_stays")


@pytest.fixture
def _no_thread_stays():
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + 10
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


def read(folder, **options):
    options = {"image_size": (8, 12), "batch_size": 4, "verbose": False, "seed": 1, "workers": 3, **options}
    return image_dataset_from_directory(folder, **options)


@pytest.fixture
def decode(monkeypatch):
    """Puts a function before the decoding of each file."""

    def put(before):
        decoded = Decoder.__call__

        def counted(self, path, out):
            before(path)
            decoded(self, path, out)

        monkeypatch.setattr(Decoder, "__call__", counted)

    return put


def model():
    found = keras.Sequential([keras.Input((8, 12, 3)), layers.Flatten(), layers.Dense(2, activation="softmax")])
    found.compile("sgd", "sparse_categorical_crossentropy")
    return found


def of_fit(data):
    """What fit reads of it in an epoch."""
    return [[batch.x, batch.y] for batch in StreamData(data).epoch()]


@pytest.mark.parametrize("workers", [1, 2, 5, None])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_any_number_of_threads_gives_the_same_batches(folder, workers, data_format):
    expected = [
        [x.transpose(0, 3, 1, 2) if data_format == "channels_first" else x, y] for x, y in read(folder, workers=1)
    ]
    data = read(folder, workers=workers, data_format=data_format)
    for found in ([data[i] for i in range(3)], of_fit(data)):
        for a, b in zip(found, expected, strict=True):
            for one, other in zip(a, b, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


def test_the_images_of_one_batch_are_decoded_at_the_same_time(folder, decode):
    both = threading.Barrier(2)
    decode(lambda path: both.wait(timeout=10))
    assert read(folder, workers=2, shuffle=False)[0][0].shape == (4, 8, 12, 3)
    assert next(iter(read(folder, workers=2, shuffle=False)))[0].shape == (4, 8, 12, 3)


def test_four_batches_at_most_are_begun_before_the_first_is_wanted(folder, decode):
    seen = []
    decode(seen.append)
    batches = iter(read(folder, batch_size=1, workers=2))
    next(batches)
    batches.close()
    assert 1 <= len(seen) <= 4


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("walk", [list, of_fit], ids=["loop", "fit"])
def test_bad_files_are_named_in_their_order_and_lose_nothing_else(folder, workers, walk):
    bad = [folder / "a" / "1.jpg", folder / "b" / "0.jpg", folder / "b" / "3.jpg"]
    for path in bad:
        path.write_bytes(path.read_bytes()[:200])
    data = read(folder, workers=workers, shuffle=False, batch_size=7, data_format="channels_first", on_error="skip")
    with pytest.warns(UserWarning, match="skipped") as told:
        batches = walk(data)
    names = [str(each.message).split(":")[0].removeprefix("skipped ") for each in told]
    assert list(dict.fromkeys(names)) == [str(path) for path in bad]
    assert [y.tolist() for _, y in batches] == [[0] * 4 + [1], [1] * 3]
    assert [x.shape for x, _ in batches] == [(5, 3, 8, 12), (3, 3, 8, 12)]
    np.testing.assert_allclose(batches[0][0][:, 0].mean((1, 2)), [40] * 4 + [200], atol=2)
    with pytest.raises(ValueError, match=r"a/1\.jpg: no image that can be decoded, stopped near offset \d+ of 200"):
        walk(read(folder, workers=workers, shuffle=False, batch_size=7))


def test_a_batch_of_bad_files_alone_is_an_error(folder):
    for path in (folder / "a").iterdir():
        path.write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="skipped"),
        pytest.raises(ValueError, match=r"no image of batch 0 could be read, the first is .*a/0\.jpg"),
    ):
        read(folder, shuffle=False, on_error="skip")[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(24, "Too many open files")])
def test_an_error_that_is_not_of_a_file_ends_the_epoch(folder, decode, error):
    def fails(path):
        if path.endswith("a/3.jpg"):
            raise error

    decode(fails)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        list(read(folder, on_error="skip"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, GeneratorExit])
def test_who_stops_early_waits_for_nobody(folder, decode, error):
    go = threading.Event()
    stuck = threading.Event()

    def waits(path):
        if threading.current_thread() is not threading.main_thread() and "b" in path.split(os.sep)[-2]:
            stuck.set()
            go.wait(timeout=10)

    decode(waits)
    batches = iter(read(folder, shuffle=False, workers=1 if error is GeneratorExit else 2))
    next(batches)
    if error is GeneratorExit:
        batches.close()
        return
    assert stuck.wait(timeout=10)
    started = time.monotonic()
    with pytest.raises(error):
        batches.throw(error)
    assert time.monotonic() - started < 5
    go.set()


def test_an_epoch_goes_on_where_its_state_is_put_back(folder):
    data = read(folder)
    state = data.get_state()
    first = [[np.concatenate([x for x, _ in data])] for _ in range(2)]
    data.set_state(state)
    np.testing.assert_array_equal(first, [[np.concatenate([x for x, _ in data])] for _ in range(2)])
    with pytest.raises(ValueError, match="expected 11 files, as there were, got 6"):
        read(folder, class_names=["b"]).set_state(state)


def test_more_folders_than_outputs_are_refused_whatever_the_first_batch_holds(folder):
    (folder / "c").mkdir()
    Image.new("RGB", (20, 16)).save(folder / "c" / "0.png")
    with pytest.raises(ValueError, match=r"output '.*' has 2 classes, the data has 3: a, b, c"):
        model().fit(read(folder, shuffle=False), verbose=0)


def test_a_model_trains_alike_with_any_number_of_threads(folder):
    found = []
    for workers in (1, 3):
        keras.utils.set_random_seed(2)
        net = model()
        net.fit(read(folder, workers=workers), epochs=2, verbose=0)
        found.append(net.get_weights())
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("reduced", "decoded"), [(False, 160), ("auto", 40), (True, 20)])
def test_jpegs_are_decoded_with_fewer_rows_as_far_as_reduced_says(tmp_path, monkeypatch, reduced, decoded):
    rows = []
    resize = image_decoding.resize
    monkeypatch.setattr(image_decoding, "resize", lambda x, *args: rows.append(len(x)) or resize(x, *args))
    (tmp_path / "a").mkdir()
    Image.new("RGB", (320, 160), (200, 100, 50)).save(tmp_path / "a" / "a.jpg")
    x = read(tmp_path, image_size=(16, 32), labels=None, reduced=reduced)[0]
    np.testing.assert_allclose(x, np.broadcast_to([200, 100, 50], (1, 16, 32, 3)), atol=2)
    assert rows == [decoded]
