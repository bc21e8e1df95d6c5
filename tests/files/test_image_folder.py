"""Images from folders: labels, batches, bad files, training."""

import contextlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.utils import image_dataset_from_directory
from tests.traced import memory_below

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def read(folder, **options):
    return image_dataset_from_directory(folder, **{"image_size": (8, 12), "batch_size": 4, "verbose": False, **options})


def test_batches_in_order(folder):
    data = read(folder, shuffle=False)
    assert data.class_names == ["a", "b"]
    batches = list(data)
    assert [len(x) for x, _ in batches] == [4, 4, 3]
    assert np.concatenate([y for _, y in batches]).tolist() == [0] * 5 + [1] * 6
    x = np.concatenate([x for x, _ in batches])
    assert x.shape == (11, 8, 12, 3)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x[:5, ..., 0], 40, atol=2)
    np.testing.assert_allclose(x[5:, ..., 0], 200, atol=2)


def test_a_class_that_is_named_twice_is_refused(folder):
    with pytest.raises(ValueError, match=r"class_names: expected each folder once, got \['a', 'b', 'a'\]"):
        read(folder, class_names=["a", "b", "a"])


def test_labels_follow_shuffled_images(folder):
    data = read(folder, seed=3)
    orders = []
    for _ in range(2):
        batches = list(data)
        orders.append(np.concatenate([y for _, y in batches]).tolist())
        for x, y in batches:
            assert ((x.mean((1, 2, 3)) > 100) == y).all()
    assert orders[0] != orders[1]
    assert sum(orders[0]) == 6


def test_kinds_of_labels_and_colours(folder):
    x, y = read(folder, label_mode="categorical", color_mode="grayscale", shuffle=False)[0]
    assert x.shape == (4, 8, 12, 1)
    assert y.tolist() == [[1, 0]] * 4
    assert read(folder, label_mode="binary", shuffle=False)[2][1].tolist() == [[1.0]] * 3
    assert read(folder, label_mode=None)[0].shape == read(folder)[0][0].shape


def test_without_a_batch_size_images_are_single(folder):
    data = read(folder, batch_size=None, shuffle=False)
    whole = read(folder, shuffle=False)
    assert len(data) == 11
    np.testing.assert_array_equal(data[2][0], whole[0][0][2])
    assert data[2][1] == whole[0][1][2]
    alone = read(folder, batch_size=None, labels=None)
    assert alone[0].shape == data[0][0].shape
    assert alone.class_names is None


def test_subsets_share_nothing_and_leave_nothing_out(folder):
    parts = [read(folder, seed=1, validation_split=0.3, subset=name).file_paths for name in ("training", "validation")]
    assert (len(parts[0]), len(parts[1])) == (8, 3)
    assert len({*parts[0], *parts[1]}) == 11
    with pytest.raises(ValueError, match="seed: expected a number"):
        read(folder, validation_split=0.3, subset="training")


def test_of_both_subsets_the_images_for_validation_stay_in_their_order(folder):
    train, validation = read(folder, seed=1, validation_split=0.5, subset="both")
    for data, stays in ((train, False), (validation, True)):
        expected = [Path(path).parent.name == "b" for path in data.file_paths]
        found = [np.concatenate([y for _, y in data]).tolist() == expected for _ in range(4)]
        assert all(found) == stays


def test_labels_are_taken_folder_by_folder(folder):
    (folder / "a" / "0").mkdir()
    os.rename(folder / "a" / "1.jpg", folder / "a" / "0" / "1.jpg")
    (folder / "b" / "9.jpg").write_bytes((folder / "b" / "0.jpg").read_bytes())
    os.rename(folder / "b" / "9.jpg", folder / "c.jpg")
    paths = read(folder, labels=list(range(12)), shuffle=False).file_paths
    inner = ["a/0.jpg", "a/2.jpg", "a/3.jpg", "a/4.jpg", "a/0/1.jpg", *(f"b/{i}.jpg" for i in range(6))]
    assert [str(Path(path).relative_to(folder)) for path in paths] == ["c.jpg", *inner]


def test_some_of_the_folders_and_one_number_for_both_sides(folder):
    data = read(folder, class_names=["b"], image_size=9)
    assert len(data.file_paths) == 6
    assert data[0][0].shape == (4, 9, 9, 3)


def test_a_bad_file_is_named_with_the_offset_or_skipped(folder):
    bad = folder / "b" / "2.jpg"
    bad.write_bytes(bad.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"b/2\.jpg: no image that can be decoded, stopped near offset \d+ of 200"):
        list(read(folder, shuffle=False))
    with pytest.warns(UserWarning, match=r"skipped .*b/2\.jpg"):
        batches = list(read(folder, shuffle=False, on_error="skip"))
    assert sum(len(x) for x, _ in batches) == sum(len(y) for _, y in batches) == 10


def test_what_a_suffix_hides_is_refused_or_skipped(folder, tmp_path):
    (folder / "b" / "2.jpg").unlink()
    os.mkfifo(folder / "b" / "2.jpg")
    with pytest.raises(ValueError, match=r"b/2\.jpg: expected a regular file, got a pipe"):
        list(read(folder, shuffle=False))
    (folder / "b" / "3.jpg").unlink()
    (folder / "b" / "3.jpg").symlink_to(tmp_path / "nowhere")
    with pytest.warns(UserWarning, match=r"skipped .*b/\d\.jpg") as told:
        batches = list(read(folder, shuffle=False, on_error="skip"))
    assert sum(len(x) for x, _ in batches) == 9
    assert "b/3.jpg: cannot be opened: No such file" in str(told[1].message)


def test_postscript_named_as_a_photograph_reaches_no_interpreter(folder, monkeypatch):
    from PIL import EpsImagePlugin

    def ghostscript(*args, **options):
        raise AssertionError("Ghostscript was called")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", ghostscript)
    Image.new("RGB", (20, 16)).save(folder / "b" / "2.jpg", format="EPS")
    message = r"b/2\.jpg: no image that can be decoded, stopped near offset \d+ of \d+: expected BMP, GIF, JPEG, PNG$"
    with pytest.raises(ValueError, match=message):
        list(read(folder, shuffle=False))


def test_a_size_that_a_part_of_an_image_claims_takes_no_memory(folder):
    path = folder / "b" / "2.jpg"
    Image.new("RGB", (20, 16), (200, 200, 200)).save(path, format="PNG")
    data = bytearray(path.read_bytes())
    at = data.index(b"IDAT")
    data[at - 4 : at] = struct.pack(">I", 0x7F00017F)
    path.write_bytes(data)
    with memory_below(1 << 24), contextlib.suppress(ValueError):
        list(read(folder, shuffle=False))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_black_around_an_image_takes_no_memory(mode, interpolation, tmp_path):
    Image.new(mode, (20000, 1), 200).save(tmp_path / "0.png")
    Image.linear_gradient("L").convert(mode).resize((64, 16)).save(tmp_path / "1.png")
    name = {"RGB": "rgb", "RGBA": "rgba", "L": "grayscale"}[mode]
    options = {"labels": None, "shuffle": False, "color_mode": name, "interpolation": interpolation, "workers": 1}
    with memory_below(1 << 24):
        _, found = read(tmp_path, image_size=(16, 16), pad_to_aspect_ratio=True, **options)[0]
    whole = Image.new(mode, (64, 64))
    with Image.open(tmp_path / "1.png") as image:
        whole.paste(image, (0, 24))
    expected = whole.resize((16, 16), getattr(Image.Resampling, interpolation.upper()))
    assert np.abs(found - np.asarray(expected, np.float32).reshape(found.shape)).max() <= 4
    assert found[:3].max() == found[-3:].max() == 0


def test_each_format_is_read_whatever_its_suffix(folder):
    for number, format in enumerate(("BMP", "GIF", "JPEG", "PNG")):
        Image.new("RGB", (20, 16), (200, 200, 200)).save(folder / "b" / f"{number}.jpg", format=format)
    x = np.concatenate([x for x, _ in read(folder, shuffle=False)])
    np.testing.assert_allclose(x[5:, ..., 0], 200, atol=2)


def test_wrong_arguments_are_named(folder, tmp_path):
    with pytest.raises(ValueError, match="directory: expected a folder"):
        read(tmp_path / "none")
    with pytest.raises(ValueError, match=r"color_mode: expected one of 'rgb', .* got 'bgr'"):
        read(folder, color_mode="bgr")
    with pytest.raises(ValueError, match="class_names: expected folders"):
        read(folder, class_names=["a", "c"])
    with pytest.raises(ValueError, match="class_names: expected None where labels are not inferred"):
        read(folder, class_names=["a", "b"], labels=[0] * 11)
    with pytest.raises(ValueError, match="labels: expected 11 numbers"):
        read(folder, labels=[1, 2])


def test_a_model_trains_on_a_folder(folder):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((8, 12, 3)), layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(2, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(read(folder, seed=1), epochs=60, verbose=0)
    assert model.evaluate(read(folder, seed=1), verbose=0)[1] == 1.0


def test_real_photographs(data_folder):
    if not (data_folder / "ants_bees").is_dir():
        pytest.skip("needs ants_bees/ in PYDTCONV_DATA")
    data = read(data_folder / "ants_bees" / "train", image_size=(64, 64), crop_to_aspect_ratio=True, seed=1)
    assert data.class_names == ["ants", "bees"]
    assert data[0][0].std() > 20
