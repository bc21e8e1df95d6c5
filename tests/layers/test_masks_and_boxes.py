"""Masks and boxes of layers that move pixels: as Keras makes them of the transformation that ours drew."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.layers.test_image_data import BOXES, H, W, convert_format
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(7)
IMAGES = RNG.uniform(0, 255, (2, H, W, 3)).astype("float32")
MASKS = RNG.integers(0, 5, (2, H, W, 1)).astype("float32")
KINDS = {
    "RandomRotation": ((0.2,), {"fill_mode": "constant"}),
    "RandomTranslation": ((0.3, (-0.1, 0.4)), {}),
    "RandomZoom": (((-0.4, 0.5), 0.3), {"fill_mode": "nearest"}),
    "RandomShear": ((0.4, 0.3), {}),
    "RandomPerspective": ((0.8,), {"fill_value": 2.0}),
}
FORMATS = ("xyxy", "rel_xyxy", "center_xywh")


def data(form, boxes=BOXES):
    labels = np.arange(8, dtype="float32").reshape(2, 4) + 1
    given = {"boxes": convert_format(boxes, "xyxy", form, H, W), "labels": labels}
    return {"images": IMAGES, "segmentation_masks": MASKS, "bounding_boxes": given, "labels": np.ones(2, "float32")}


def transformation(layer, numbers):
    """What was drawn, as Keras's layer takes it."""
    import torch

    found = {name: torch.as_tensor(np.asarray(value)) for name, value in numbers.items()}
    found = {name: value.float() if value.is_floating_point() else value for name, value in found.items()}
    if "angle" in found:
        zeros, ones = torch.zeros(2), torch.ones(2)
        matrix = layer._compute_affine_matrix(0.5, 0.5, found["angle"], zeros, zeros, ones, zeros, zeros, H, W)
        found |= {"rotation_matrix": matrix, "image_height": H, "image_width": W, "batch_size": 2}
    return {**found, "input_shape": IMAGES.shape}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_masks_and_boxes_are_keras_s_of_the_same_draw(kind, form, drawn) -> None:
    keras = import_keras()
    arguments, more = KINDS[kind]
    theirs = getattr(keras.layers, kind)(*arguments, bounding_box_format=form, **more)
    layer = getattr(layers, kind)(*arguments, bounding_box_format=form, seed=3, **more)
    for _ in range(3):
        given = data(form)
        found = layer(given, training=True)
        how = transformation(theirs, drawn[-1])
        want = np.asarray(theirs.transform_images(keras.ops.convert_to_tensor(IMAGES), how))
        np.testing.assert_allclose(found["images"], want, atol=0.05)
        how = transformation(theirs, drawn[-1])  # anew: affine_transform of Keras on torch writes into the matrix
        masks = np.asarray(theirs.transform_segmentation_masks(keras.ops.convert_to_tensor(MASKS), how))
        assert (found["segmentation_masks"] == masks).mean() > 0.98  # places halfway between pixels go either way
        boxes = theirs.transform_bounding_boxes(
            {k: keras.ops.convert_to_tensor(v) for k, v in data(form)["bounding_boxes"].items()}, how
        )
        np.testing.assert_allclose(found["bounding_boxes"]["boxes"], np.asarray(boxes["boxes"]), rtol=1e-3, atol=2e-3)
        np.testing.assert_array_equal(found["bounding_boxes"]["labels"], np.asarray(boxes["labels"]))
        np.testing.assert_array_equal(found["labels"], given["labels"])


ALL = {**KINDS, "RandAugment": ((), {}), "AugMix": ((), {}), "RandomElasticTransform": ((), {})}


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("kind", ALL)
def test_images_are_those_without_a_dict_and_masks_those_of_their_images(kind, data_format) -> None:
    arguments, more = ALL[kind]
    more = {**more, "data_format": data_format, "interpolation": "nearest", "seed": 5}
    turned = (lambda x: x) if data_format == "channels_last" else (lambda x: x.transpose(0, 3, 1, 2))
    given = {"images": turned(IMAGES), "segmentation_masks": turned(IMAGES[..., :2])}
    one = getattr(layers, kind)(*arguments, **more)(given, training=True)
    alone = getattr(layers, kind)(*arguments, **more)(given["images"], training=True)
    np.testing.assert_array_equal(one["images"], alone)
    assert one["segmentation_masks"].shape == given["segmentation_masks"].shape
    if kind not in ("RandAugment", "AugMix"):  # whose colours masks do not share
        first = (..., slice(0, 2)) if data_format == "channels_last" else (slice(None), slice(0, 2))
        np.testing.assert_array_equal(one["segmentation_masks"], one["images"][first])
    off = getattr(layers, kind)(*arguments, **more)(given, training=False)
    np.testing.assert_array_equal(off["segmentation_masks"], given["segmentation_masks"])


@pytest.mark.parametrize("kind", ["RandAugment", "AugMix"])
def test_masks_of_colours_alone_stay_and_boxes_follow_the_masks(kind) -> None:
    boxes = np.array([[[4, 3, 12, 9]]] * 40, "float32")
    masks = np.zeros((40, H, W, 1), "float32")
    masks[:, 3:9, 4:12] = 1
    layer = getattr(layers, kind)(bounding_box_format="xyxy", factor=0.2, seed=2)
    given = {"boxes": boxes, "labels": np.ones((40, 1), "float32")}
    found = layer(
        {"images": masks.repeat(3, -1) * 200, "segmentation_masks": masks, "bounding_boxes": given}, training=True
    )
    after, seen = found["segmentation_masks"], found["bounding_boxes"]["boxes"][:, 0]
    if kind == "AugMix":  # Keras leaves boxes, and mixes masks
        np.testing.assert_array_equal(found["bounding_boxes"]["boxes"], boxes)
        assert 0 <= after.min() < after.max() <= 1 + 1e-6
        return
    stayed = (after == masks).all((1, 2, 3))
    assert 10 < stayed.sum() < 40
    np.testing.assert_allclose(seen[stayed], boxes[stayed][:, 0], atol=1e-4)
    assert (np.abs(seen[~stayed] - boxes[~stayed][:, 0]).max(-1) > 0).all()


def test_one_image_in_a_model_and_as_a_file_says() -> None:
    one = {"images": IMAGES[0], "segmentation_masks": MASKS[0]}
    one["bounding_boxes"] = {"boxes": BOXES[0], "labels": np.ones(4, "float32")}
    layer = layers.RandomZoom(0.3, bounding_box_format="xyxy", seed=1)
    found = layer(one, training=True)
    assert found["images"].shape == (H, W, 3)
    assert found["segmentation_masks"].shape == (H, W, 1)
    assert found["bounding_boxes"]["boxes"].shape == (4, 4)
    assert found["bounding_boxes"]["labels"].shape == (4,)
    for name in ("MixUp", "CutMix", "RandAugment"):
        again = getattr(layers, name)(bounding_box_format="xyxy")
        assert type(again).from_config(again.get_config()).bounding_box_format == "xyxy"


def test_mixing_takes_masks_and_boxes_of_both_images() -> None:
    n = 6
    images = np.ones((n, 8, 8, 1), "float32") * np.arange(n, dtype="float32").reshape(n, 1, 1, 1)
    given = {"images": images, "segmentation_masks": images * 2, "labels": np.eye(n, dtype="float32")}
    for name in ("MixUp", "CutMix"):
        found = getattr(layers, name)(1.0, seed=4)(given, training=True)
        np.testing.assert_allclose(found["segmentation_masks"], 2 * found["images"], rtol=1e-6)
        np.testing.assert_allclose(found["labels"] @ np.arange(n), found["images"].mean((1, 2, 3)), atol=0.5 * n)
    boxes = {"boxes": BOXES, "labels": np.array([[1, 2, 3, 4], [5, 6, 7, 8]], "float32")}
    mixed = pydtconv.layers.MixUp(bounding_box_format="xyxy", seed=4)({"images": IMAGES, "bounding_boxes": boxes})
    assert mixed["bounding_boxes"]["boxes"].shape == (2, 8, 4)
    assert mixed["bounding_boxes"]["labels"].shape == (2, 8)
    np.testing.assert_array_equal(mixed["bounding_boxes"]["boxes"][:, :4], BOXES)


def test_integers_stay_what_they_are() -> None:
    given = {"images": IMAGES, "segmentation_masks": MASKS.astype("uint8"), "labels": np.array([1, 2])}
    given["bounding_boxes"] = {"boxes": BOXES, "labels": np.arange(8).reshape(2, 4)}
    for layer in (
        layers.RandomRotation(0.1, bounding_box_format="xyxy"),
        layers.Resizing(7, 9, bounding_box_format="xyxy"),
    ):
        found = layer(given)
        assert found["images"].dtype == np.float32
        assert found["segmentation_masks"].dtype == np.uint8
        assert found["labels"].dtype == found["bounding_boxes"]["labels"].dtype == np.int64
        np.testing.assert_array_equal(found["labels"], given["labels"])


def test_a_chain_of_layers_takes_dicts() -> None:
    given = {"images": IMAGES, "segmentation_masks": IMAGES[..., :1]}
    chain = pydtconv.Sequential([layers.RandomFlip(), layers.RandomRotation(0.2, interpolation="nearest")])
    found = chain(given, training=True)
    np.testing.assert_array_equal(found["segmentation_masks"], found["images"][..., :1])
    assert (found["images"] != IMAGES).any()
    np.testing.assert_array_equal(chain(given, training=False)["images"], IMAGES)
