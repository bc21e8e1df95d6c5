"""Images that are kept as they are decoded and resized."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pydtconv.files import image_cache
from pydtconv.files.image_decoding import Decoder
from pydtconv.utils import image_dataset_from_directory

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.fixture
def seen(monkeypatch):
    """The files that are decoded."""
    found, decoded = [], Decoder.__call__
    monkeypatch.setattr(
        Decoder,
        "__call__",
        lambda self, path, out: found.append("/".join(path.split(os.sep)[-2:])) or decoded(self, path, out),
    )
    return found


@pytest.fixture(params=["memory", "folder"])
def where(request, tmp_path_factory):
    return "memory" if request.param == "memory" else tmp_path_factory.mktemp("cache")


def read(folder, where, **options):
    options = {"image_size": (8, 12), "batch_size": 4, "verbose": False, "shuffle": False, "workers": 3, **options}
    return image_dataset_from_directory(folder, cache=where, **options)


def test_each_file_is_decoded_once_and_gives_the_same_batches(folder, where, seen):
    expected = list(read(folder, None))
    seen.clear()
    data = read(folder, where)
    for _ in range(3):
        for found, batch in zip(data, expected, strict=True):
            for a, b in zip(found, batch, strict=True):
                np.testing.assert_array_equal(a, b)
    assert len(seen) == len(set(seen)) == 11


@pytest.mark.parametrize("color_mode", ["rgb", "rgba", "grayscale"])
def test_both_subsets_share_one_cache(folder, where, color_mode):
    options = {"validation_split": 0.3, "subset": "both", "seed": 1, "color_mode": color_mode}
    plain, kept = read(folder, None, **options), read(folder, where, **options)
    for _ in range(2):
        for a, b in zip(plain, kept, strict=True):
            for (x, _), (y, _) in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


def test_bad_files_are_named_each_time(folder, where):
    (folder / "b" / "2.jpg").write_bytes(b"")
    data = read(folder, where, on_error="skip")
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"skipped .*b/2\.jpg: no image that can be decoded"):
            assert sum(len(x) for x, _ in data) == 10
    with pytest.raises(ValueError, match=r"b/2\.jpg: no image that can be decoded"):
        list(read(folder, where))


def test_says_how_many_bytes_it_takes(folder, where, capsys):
    read(folder, where, verbose=True, image_size=512)
    assert f"The cache ({where}): 11 images of 512x512x3 take 8.2 MiB.\n" in capsys.readouterr().out


def test_what_does_not_fit_is_refused_before_anything_is_taken(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(image_cache, "memory_available", lambda: 1 << 20)
    message = "cache: 11 images of 512x512x3 take 8.2 MiB, 1.0 MiB of memory are left: name a folder"
    with pytest.raises(MemoryError, match=message):
        read(folder, "memory", image_size=512)
    with pytest.raises(OSError, match=r"No space left on device: 8858370048.0 MiB to be written, .* free"):
        read(folder, tmp_path / "cache", image_size=1 << 24)
    assert not any(files for _, _, files in os.walk(tmp_path / "cache"))


def files_of(cache):
    return sorted(os.path.join(at, name) for at, _, files in os.walk(cache) for name in files)


def test_a_folder_serves_later_runs_with_the_same_settings_alone(folder, tmp_path, seen):
    cache = tmp_path / "cache"
    list(read(folder, cache))
    assert len(files_of(cache)) == 11
    seen.clear()
    list(read(folder, cache, shuffle=True, batch_size=3))
    assert not seen
    for options in (
        {"image_size": (8, 13)},
        {"interpolation": "nearest"},
        {"reduced": False},
        {"crop_to_aspect_ratio": True},
    ):
        seen.clear()
        list(read(folder, cache, **options))
        assert len(seen) == 11


def test_a_file_that_changes_is_decoded_again(folder, tmp_path, seen):
    cache = tmp_path / "cache"
    list(read(folder, cache))
    seen.clear()
    Image.new("RGB", (20, 16), (200, 0, 0)).save(folder / "a" / "1.jpg")
    os.utime(folder / "a" / "2.jpg", ns=(0, 12345))
    x = np.concatenate([x for x, _ in read(folder, cache)])
    assert sorted(seen) == ["a/1.jpg", "a/2.jpg"]
    np.testing.assert_allclose(x[1, 0, 0], [200, 0, 0], atol=3)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "longer"])
def test_a_damaged_file_of_a_folder_is_named_and_made_again(folder, tmp_path, seen, damage):
    cache = tmp_path / "cache"
    expected = list(read(folder, cache))
    victim = files_of(cache)[5]
    with open(victim, "rb") as file:
        data = bytearray(file.read())
    data[100] ^= 1
    changed = {"cut": data[:-1], "changed": data, "empty": b"", "longer": data + b"x"}[damage]
    with open(victim, "wb") as file:
        file.write(changed)
    seen.clear()
    with pytest.warns(UserWarning, match=rf"cache: {victim} is damaged: its image is decoded again"):
        found = list(read(folder, cache))
    assert len(seen) == 1
    seen.clear()
    for batches in (found, list(read(folder, cache))):
        for (x, _), (y, _) in zip(batches, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    assert not seen


def test_several_that_fill_one_folder_do_not_meet(folder, tmp_path):
    cache, start = tmp_path / "cache", threading.Barrier(4)

    def work(number):
        start.wait(timeout=10)
        return np.concatenate([x for x, _ in read(folder, cache, workers=2)])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    for each in found:
        np.testing.assert_array_equal(each, found[0])
    assert len(files_of(cache)) == 11


def test_a_disk_that_is_full_stops_the_cache_and_not_the_epoch(folder, tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device", "there")

    monkeypatch.setattr(image_cache, "write_alone", full)
    data = read(folder, tmp_path / "cache", workers=1)
    with pytest.warns(UserWarning, match="cache: NOT WRITTEN any more, decoding goes on: .*No space") as told:
        assert sum(len(x) for x, _ in data) == 11
    assert len(told) == 1
    assert sum(len(x) for x, _ in data) == 11
