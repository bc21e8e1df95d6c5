"""Layers that change images change the masks and boxes that go with them: as Keras where nothing is drawn."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from pydtconv.layers.preprocessing.boxes import FORMATS, convert_format
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
H, W = 14, 20
BOXES = np.array(
    [
        [[2, 3, 8, 9], [0, 0, 20, 6], [5, 1, 6, 4], [0, 0, 0, 0]],
        [[10, 4, 18, 12], [3, 3, 9, 9], [1, 2, 19, 13], [7, 7, 9, 8]],
    ],
    "float32",
)
LAYERS = {
    "stretched": lambda of, **more: of.layers.Resizing(7, 30, **more),
    "padded": lambda of, **more: of.layers.Resizing(16, 16, pad_to_aspect_ratio=True, **more),
    "cropped": lambda of, **more: of.layers.Resizing(16, 16, crop_to_aspect_ratio=True, **more),
    "center": lambda of, **more: of.layers.CenterCrop(8, 10, **more),
    "brighter": lambda of, **more: of.layers.RandomBrightness((0.2, 0.2), value_range=(0, 2000), **more),
}


def data(boxes):
    images = np.arange(2 * H * W * 3, dtype="float32").reshape(2, H, W, 3)
    masks = (np.arange(2 * H * W).reshape(2, H, W, 1) % 5).astype("float32")
    labels = np.arange(8, dtype="float32").reshape(2, 4)
    found = {"images": images, "labels": np.ones(2, "float32"), "segmentation_masks": masks}
    return {**found, "bounding_boxes": {"boxes": boxes, "labels": labels}}


def flat(value, path=""):
    if not isinstance(value, dict):
        return {path: np.asarray(value)}
    return {name: leaf for key, part in value.items() for name, leaf in flat(part, f"{path}/{key}").items()}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("form", ["xyxy", "rel_xyxy", "center_xywh", "rel_center_xywh"])
def test_what_is_not_drawn_is_as_in_keras(name, form) -> None:
    keras = import_keras()
    boxes = convert_format(BOXES, "xyxy", form, H, W)
    want = flat(LAYERS[name](keras, bounding_box_format=form)(data(boxes)))
    layer = LAYERS[name](pydtconv, bounding_box_format=form)
    found = flat(layer(data(boxes)))
    assert found.keys() == want.keys()
    for key, value in want.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-3, err_msg=key)
    assert type(layer).from_config(layer.get_config()).bounding_box_format == form


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_formats_are_those_of_keras(source, target) -> None:
    theirs = import_keras().utils.bounding_boxes
    given = np.asarray(theirs.convert_format(BOXES, "xyxy", source, height=H, width=W))
    want = theirs.convert_format(given, source, target, height=H, width=W)
    np.testing.assert_allclose(convert_format(given, source, target, H, W), np.asarray(want), rtol=1e-5, atol=1e-5)


def test_boxes_are_cut_shifted_and_their_labels_dropped_as_in_keras() -> None:
    theirs, ours = import_keras().utils.bounding_boxes, pydtconv.utils.bounding_boxes
    given = {"boxes": BOXES * 1.5 - 4, "labels": np.arange(8).reshape(2, 4)}
    want = theirs.clip_to_image_size(dict(given), H, W)
    found = ours.clip_to_image_size(given, H, W)
    for key in ("boxes", "labels"):
        np.testing.assert_allclose(found[key], np.asarray(want[key]))
    np.testing.assert_allclose(ours.crop(BOXES, 2, 3, 8, 9), np.asarray(theirs.crop(BOXES, 2, 3, 8, 9)))
    np.testing.assert_allclose(ours.pad(BOXES, 2, 3), np.asarray(theirs.pad(BOXES, 2, 3)))


def painted(boxes):
    """Images (n, h, w, 1) with a box each, of ones."""
    images = np.zeros((len(boxes), H, W, 1), "float32")
    for image, (left, top, right, bottom) in zip(images, boxes, strict=True):
        image[top:bottom, left:right] = 1
    return images


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize(
    ("kind", "arguments"), [("RandomFlip", ()), ("RandomFlip", ("horizontal",)), ("RandomCrop", (9, 12))]
)
def test_masks_and_boxes_follow_the_draw_of_their_image(kind, arguments, data_format) -> None:
    rng = np.random.default_rng(5)
    left, top = rng.integers(0, 12, 24), rng.integers(0, 8, 24)
    boxes = np.stack([left, top, left + rng.integers(2, 8, 24), top + rng.integers(2, 6, 24)], -1)
    images = painted(boxes)
    if data_format == "channels_first":
        images = images.transpose(0, 3, 1, 2)
    layer = getattr(layers, kind)(*arguments, bounding_box_format="xyxy", data_format=data_format, seed=3)
    given = {"boxes": boxes[:, None].astype("float32"), "labels": np.ones((24, 1), "float32")}
    found = layer({"images": images, "segmentation_masks": images, "bounding_boxes": given}, training=True)
    np.testing.assert_array_equal(found["images"], found["segmentation_masks"])
    assert not np.array_equal(found["images"][:, ..., :9, :9], images[:, ..., :9, :9])
    seen = found["images"][..., 0] if data_format == "channels_last" else found["images"][:, 0]
    for image, box, label in zip(
        seen, found["bounding_boxes"]["boxes"], found["bounding_boxes"]["labels"], strict=True
    ):
        x1, y1, x2, y2 = map(int, box[0])
        assert image.sum() == (x2 - x1) * (y2 - y1) == image[y1:y2, x1:x2].sum()
        assert label[0] == (1 if image.any() else -1)


def test_one_image_and_training_off() -> None:
    one = {"images": painted(np.array([[2, 3, 9, 8]]))[0]}
    one["bounding_boxes"] = {"boxes": np.array([[2, 3, 9, 8]], "float32"), "labels": np.array([4.0], "float32")}
    same = layers.RandomFlip(bounding_box_format="xyxy")(one, training=False)
    np.testing.assert_array_equal(same["bounding_boxes"]["boxes"], one["bounding_boxes"]["boxes"])
    cut = layers.CenterCrop(8, 10, bounding_box_format="xyxy")(one)
    assert cut["images"].shape == (8, 10, 1)
    np.testing.assert_array_equal(cut["bounding_boxes"]["boxes"], [[0, 0, 4, 5]])


WIDE = {
    "RandomFlip": {"mode": "horizontal"},
    "RandomCrop": {"height": 4, "width": 290},
    "RandomTranslation": {"height_factor": 0.0, "width_factor": 0.1},
    "RandomRotation": {"factor": 0.01},
    "RandomBrightness": {"factor": 0.1},
    "CenterCrop": {"height": 4, "width": 295},
    "Resizing": {"height": 4, "width": 600},
    "MixUp": {},
}


@pytest.mark.parametrize("kind", WIDE)
def test_places_and_classes_are_not_rounded_to_bfloat16(kind) -> None:
    data = {
        "images": np.ones((3, 4, 300, 1), "float32"),
        "segmentation_masks": np.arange(3 * 4 * 300).reshape(3, 4, 300, 1),
        "bounding_boxes": {"boxes": np.array([[[257, 1, 299, 3]]] * 3, "float32"), "labels": np.full((3, 1), 301)},
    }
    seed = {} if kind in ("CenterCrop", "Resizing") else {"seed": 4}
    found, expected = (
        getattr(layers, kind)(**WIDE[kind], **seed, bounding_box_format="xyxy", dtype=dtype)(data)
        for dtype in ("mixed_bfloat16", "float32")
    )
    np.testing.assert_array_equal(found["segmentation_masks"], expected["segmentation_masks"])
    for key, value in expected["bounding_boxes"].items():
        np.testing.assert_array_equal(found["bounding_boxes"][key], value)


@pytest.mark.slow
def test_scripts_of_keras_find_the_functions(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import keras\nfrom keras.utils import bounding_boxes\n"
        "print(bounding_boxes.convert_format([[1.0, 2, 3, 4]], 'xywh', 'xyxy').tolist())\n"
        "assert keras.utils.bounding_boxes.crop is bounding_boxes.crop\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pydtconv", "run", str(script)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == ["[[1.0,", "2.0,", "4.0,", "6.0]]"], done.stderr


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(ValueError, match="expected bounding_box_format"):
        layers.RandomFlip()(data(BOXES))
    for layer in (layers.RandomElasticTransform, layers.CutMix):
        with pytest.raises(NotImplementedError, match="as in Keras, there is no rule"):
            layer(bounding_box_format="xyxy")({**data(BOXES), "labels": np.eye(2)})
    with pytest.raises(NotImplementedError, match="got 'depth'"):
        layers.RandomFlip()({"images": painted(BOXES[:, 0].astype(int)), "depth": np.ones(2)})


@pytest.mark.parametrize("size", [(16, 10), (20, 30), (8, 30)])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_a_crop_of_smaller_images_resizes_them(size, data_format):
    given = data(BOXES)
    x = given["images"] if data_format == "channels_last" else given["images"].transpose(0, 3, 1, 2)
    more = {"data_format": data_format, "bounding_box_format": "xyxy"}
    boxes = given["bounding_boxes"]
    theirs = import_keras().layers.CenterCrop(*size, **more)
    expected = theirs({"images": x, "bounding_boxes": dict(boxes)})
    for layer in layers.CenterCrop(*size, **more), layers.RandomCrop(*size, **more):
        found = layer({"images": x, "bounding_boxes": boxes})
        np.testing.assert_allclose(found["images"], np.asarray(expected["images"]), rtol=1e-5, atol=1e-3)
        for key, value in expected["bounding_boxes"].items():
            np.testing.assert_allclose(found["bounding_boxes"][key], np.asarray(value), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("make", [layers.RandomFlip, lambda: layers.RandomCrop(6, 6), lambda: layers.CenterCrop(6, 6)])
def test_labels_of_integers_stay_what_they_are(make):
    """As they do in the other layers of images."""
    images = np.ones((2, 8, 8, 3), "float32")
    for labels in np.array([3, 2**24 + 1]), np.eye(2, dtype="int32"):
        found = make()({"images": images, "labels": labels}, training=True)["labels"]
        np.testing.assert_array_equal(found, labels)
        assert found.dtype == labels.dtype
    one = make()({"images": images[0], "labels": np.int64(3)}, training=True)["labels"]
    assert (one, one.shape, one.dtype) == (3, (), "int64")


@pytest.mark.parametrize("make", [layers.MixUp, layers.CutMix])
def test_labels_of_integers_that_are_mixed_are_floats(make):
    images = np.ones((8, 8, 8, 3), "float32")
    found = make(seed=1)({"images": images, "labels": np.eye(8, dtype="int32")}, training=True)
    assert found["labels"].dtype == "float32"
