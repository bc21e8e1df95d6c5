"""Steps with layers of images: the models, and what is measured of them."""

import inspect
import sys

import pytest

import pydtconv as keras
from benchmarks import augment
from benchmarks.peers import image_layers
from pydtconv.layers.preprocessing.image_data import ImageLayer

#: layers that change boxes alone, that Keras has not, or that change nothing in Keras's functional models
WITHOUT = {"MaxNumBoundingBoxes", "ContrastLimitedAdaptiveHistogramEqualization", "Equalization"}


def test_all_layers_of_images_have_a_row():
    classes = {name: each for name, each in vars(keras.layers).items() if inspect.isclass(each)}
    images = {name for name, each in classes.items() if issubclass(each, ImageLayer)}
    assert images - WITHOUT <= set(image_layers.layers(224))


@pytest.mark.parametrize("name", [*augment.NAMES[:-1], pytest.param("MobileNetV2", marks=pytest.mark.slow)])
def test_steps_are_measured(name):
    found = image_layers.timed(keras, name, 32, 2, 1, 0.0)
    assert len(found["seconds"]) == 1
    assert found["numbers"] == {"RandomCrop": 28 * 28 * 3, "CenterCrop": 28 * 28 * 3, "Resizing": 18 * 18 * 3}.get(
        name, 32 * 32 * 3
    )


def test_a_process_ends_after_its_seconds():
    assert len(image_layers.timed(keras, "none", 8, 2, 50, 0.0)["seconds"]) == image_layers.LEAST


def test_bytes_of_a_step():
    assert augment.moved("none", 10, 300) == 4 * 900
    assert augment.moved("Resizing", 10, 75) == 4 * (600 + 375 + 75)


def test_rows(monkeypatch):
    written = []
    found = {"seconds": [0.5, 0.25, 0.5], "numbers": 300}
    monkeypatch.setattr(augment, "in_own_process", lambda module, words, threads: found)
    peer = {"seconds": [1.0], "numbers": 300}
    monkeypatch.setattr(augment.PEERS["tensorflow"].__class__, "run", lambda self, task, words, threads, python: peer)
    monkeypatch.setattr(augment, "installed", lambda names, python: dict.fromkeys(names, python))
    monkeypatch.setattr(augment, "memory_bandwidth", lambda threads: 1.0)
    monkeypatch.setattr(augment.report, "write_csv", lambda name, rows: written.extend(rows))
    arguments = ["--peer", "tensorflow", "--layers", "none", "small convnet", "--size", "10", "--batch", "4"]
    monkeypatch.setattr(sys, "argv", ["augment", *arguments])
    augment.main()
    assert [row["Keras on TensorFlow ratio"] for row in written] == [2.0, 2.0]
    assert [row["share of memory"] for row in written] == [8 / (1e9 / 3600), None]
