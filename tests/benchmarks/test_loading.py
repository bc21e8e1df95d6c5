"""From files to batches."""

import argparse

import pytest

from benchmarks import loading

pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def test_photographs_are_the_same_each_time(tmp_path):
    assert loading.write_photographs(tmp_path / "one", 3, None) == loading.write_photographs(tmp_path / "two", 3, None)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.jpg"))
    assert [str(path) for path in files] == ["a/00000.jpg", "a/00002.jpg", "b/00001.jpg"]
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


@pytest.mark.slow
def test_each_side_gives_its_epochs(tmp_path, data_folder):
    loading.write_photographs(tmp_path / "images", 4, str(data_folder / "ants_bees"))
    folder = str(tmp_path / "images")
    for cache in ("", "memory", "folder"):
        assert len(loading.loading(folder, 2, cache)) == 2
    assert len(loading.decoding(folder, 2, 2)) == 2
    found = loading.training(folder, 1, "mobilenetv2", [1, 2])
    assert {name: len(seconds) for name, seconds in found.items()} == {
        "arrays": 1, "files, workers 1": 1, "files, workers 2": 1,
    }  # fmt: skip


def test_rows_have_the_ratio_of_both_sides(monkeypatch):
    def measured(module, words, threads):
        if "training" in words:
            return {"seconds": {"arrays": [2.0, 2.0], "files, workers 2": [4.0]}}
        return {"seconds": [3.0] if module.endswith("torch_loading") else [6.0] if "decoding" in words else [1.0]}

    monkeypatch.setattr(loading, "in_own_process", measured)
    options = argparse.Namespace(images=12, rounds=1, epochs=1, peer="torch", network="small", workers=[2])
    found = {(row["what"], row["compared with"]): row["ratio"] for row in loading.rows(options, "folder")}
    assert found == {
        ("batches of files", "PyTorch"): 3,
        ("batches of files", "decoding alone"): 6,
        ("batches, cache: memory", "batches of files"): 1,
        ("batches, cache: folder", "batches of files"): 1,
        ("small of files, workers 2", "of arrays"): 0.5,
    }
