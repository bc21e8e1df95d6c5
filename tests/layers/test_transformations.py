"""`get_random_transformation` and what the `transform_` methods of image layers make of it: beside Keras's."""

import inspect

import numpy as np
import pytest

from pydtconv import layers, random, tree
from pydtconv.layers.preprocessing.augmentation import Augmentation
from pydtconv.layers.preprocessing.image_data import ImageLayer
from tests.layers.test_image_data import BOXES, H, W
from tests.layers.test_masks_and_boxes import IMAGES, MASKS, transformation
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
#: arguments of all layers of images
ARGUMENTS = {
    "AugMix": {},
    "AutoContrast": {},
    "CenterCrop": {"height": 8, "width": 10},
    "ContrastLimitedAdaptiveHistogramEqualization": {},
    "CutMix": {},
    "Equalization": {},
    "MaxNumBoundingBoxes": {"max_number": 3},
    "MixUp": {},
    "RandAugment": {},
    "RandomBrightness": {"factor": 0.3},
    "RandomColorDegeneration": {"factor": 0.5},
    "RandomColorJitter": {"value_range": (0, 255), "brightness_factor": 0.2, "contrast_factor": 0.3},
    "RandomContrast": {"factor": 0.4},
    "RandomCrop": {"height": 8, "width": 10},
    "RandomElasticTransform": {},
    "RandomErasing": {},
    "RandomFlip": {},
    "RandomGaussianBlur": {"kernel_size": 3, "sigma": (0.5, 1.0)},
    "RandomGrayscale": {},
    "RandomHue": {"factor": 0.4},
    "RandomInvert": {"factor": 0.5},
    "RandomPerspective": {"factor": 0.8},
    "RandomPosterization": {"factor": (2, 6)},
    "RandomRotation": {"factor": 0.2, "fill_mode": "constant"},
    "RandomSaturation": {"factor": (0.2, 0.7)},
    "RandomSharpness": {"factor": 0.5},
    "RandomShear": {"x_factor": 0.4, "y_factor": 0.3},
    "RandomTranslation": {"height_factor": 0.3, "width_factor": (-0.1, 0.4)},
    "RandomZoom": {"height_factor": (-0.4, 0.5), "width_factor": 0.3},
    "Resizing": {"height": 7, "width": 9},
    "Solarization": {"addition_factor": 0.2, "threshold_factor": (0.3, 0.6)},
}
#: layers whose transformation Keras's takes
SHARED = (
    "AutoContrast", "CenterCrop", "CutMix", "MixUp", "RandomBrightness", "RandomColorDegeneration",
    "RandomContrast", "RandomHue", "RandomInvert", "RandomPerspective", "RandomPosterization", "RandomRotation",
    "RandomSaturation", "RandomSharpness", "RandomShear", "RandomTranslation", "RandomZoom", "Solarization",
)  # fmt: skip
#: layers that leave pixels where they are, and masks and boxes with them
STILL = ("AutoContrast", "ContrastLimitedAdaptiveHistogramEqualization", "Equalization", "Solarization")


def made(name, of=layers, **more):
    return getattr(of, name)(**ARGUMENTS[name], **more)


def boxes_of(labels=np.float32):
    return {"boxes": BOXES.copy(), "labels": (np.arange(8).reshape(2, 4) + 1).astype(labels)}


def test_all_layers_of_images_are_here():
    kinds = {name for name in layers.__all__ if isinstance(getattr(layers, name), type)}
    assert {name for name in kinds if issubclass(getattr(layers, name), ImageLayer)} == set(ARGUMENTS)


@pytest.mark.parametrize("name", SHARED)
def test_keras_s_layer_makes_the_same_of_a_transformation(name):
    keras = import_keras()
    layer, theirs = (made(name, of, bounding_box_format="xyxy") for of in (layers, keras.layers))
    for _ in range(2):
        drawn = layer.get_random_transformation({"images": IMAGES}, training=True)
        how = transformation(theirs, drawn)
        tensor = keras.ops.convert_to_tensor
        close = {"rtol": 1e-4, "atol": 0.05}
        want = np.asarray(theirs.transform_images(tensor(IMAGES), how))
        np.testing.assert_allclose(layer.transform_images(IMAGES, drawn), want, **close)
        labels = np.eye(2, 3, dtype="float32")
        want = np.asarray(theirs.transform_labels(tensor(labels), how))
        np.testing.assert_allclose(layer.transform_labels(labels, drawn), want, **close)
        if name != "MixUp":  # Keras mixes masks that it has flattened, and labels of boxes one below the other
            how = transformation(theirs, drawn)  # anew: Keras on torch writes into matrices
            found, want = (
                layer.transform_segmentation_masks(MASKS, drawn),
                theirs.transform_segmentation_masks(MASKS, how),
            )
            assert (found == np.asarray(want)).mean() > 0.98  # places halfway between pixels go either way
        if name not in ("CutMix", "MixUp"):
            given = {key: tensor(value) for key, value in boxes_of().items()}
            want = theirs.transform_bounding_boxes(given, how)
            found = layer.transform_bounding_boxes(boxes_of(), drawn)
            for key in ("boxes", "labels"):
                np.testing.assert_allclose(found[key], np.asarray(want[key]), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_transformation_can_be_used_again_and_the_seed_decides(name):
    layer = made(name)
    first, second = (layer.get_random_transformation(IMAGES, seed=5) for _ in range(2))
    images = np.asarray(layer.transform_images(IMAGES, first))
    assert images.dtype == np.float32
    assert images.shape == tuple(layer.compute_output_shape(IMAGES.shape))
    np.testing.assert_array_equal(layer.transform_images(IMAGES, second), images)
    seeds = random.SeedGenerator(3)
    many = [layer.get_random_transformation(IMAGES, seed=seeds) for _ in range(6)]
    many += [layer.get_random_transformation(IMAGES) for _ in range(6)]
    different = {np.asarray(layer.transform_images(IMAGES, each)).tobytes() for each in many}
    draws = name.startswith("Random") or name in ("AugMix", "CutMix", "MixUp", "RandAugment", "Solarization")
    assert (len(different) > 2) == draws
    if name not in ("CutMix", "MixUp"):
        alone = layer.transform_images(IMAGES[0], layer.get_random_transformation(IMAGES[0], seed=5))
        assert alone.shape == images.shape[1:]
        if name != "Equalization":  # of the whole batch
            np.testing.assert_allclose(alone, images[0], rtol=1e-5)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_masks_of_classes_stay_classes(name):
    layer = made(name)
    masks = MASKS.astype("uint8")
    found = layer.transform_segmentation_masks(masks, layer.get_random_transformation(IMAGES, seed=4))
    given = {"images": IMAGES, "segmentation_masks": masks}
    called = layer(given, training=True) if "training" in inspect.signature(layer.call).parameters else layer(given)
    for each in (found, called["segmentation_masks"]):
        if name not in ("AugMix", "MixUp"):  # which mix them
            assert each.dtype == np.uint8
            assert set(np.unique(each)) <= set(range(5))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_outside_of_training_nothing_is_drawn(name):
    layer = made(name, bounding_box_format="xyxy")
    how = layer.get_random_transformation(IMAGES, training=False)
    drawn = set(how or ()) - {"input_shape"}
    assert not drawn
    np.testing.assert_array_equal(layer.transform_labels(np.arange(2), how, training=False), np.arange(2))
    always = (*STILL[:2], "CenterCrop", "RandomCrop", "Resizing")
    if name not in always:
        np.testing.assert_array_equal(layer.transform_images(IMAGES, how, training=False), IMAGES)
        np.testing.assert_array_equal(layer.transform_segmentation_masks(MASKS, how, training=False), MASKS)


def test_flips_windows_rectangles_and_blurs():
    layer = layers.RandomFlip(bounding_box_format="xyxy")
    how = layer.get_random_transformation(np.zeros((9, H, W, 1)), seed=1)
    assert how["flips"].shape == (9, 1, 1, 2)
    x = np.random.default_rng(1).normal(size=(9, H, W, 2)).astype("float32")
    for x1, y1, flips in zip(x, layer.transform_images(x, how), how["flips"].reshape(9, 2), strict=True):
        np.testing.assert_array_equal(y1, x1[:: 1 - 2 * flips[1], :: 1 - 2 * flips[0]])
    both = {"flips": np.array([[True]]), "input_shape": (H, W, 3)}  # as Keras has it
    boxes = {"boxes": np.array([[2, 1, 4, 3]]), "labels": np.array([[1]])}
    np.testing.assert_allclose(layer.transform_bounding_boxes(boxes, both)["boxes"], [[W - 4, H - 3, W - 2, H - 1]])
    crop = layers.RandomCrop(4, 5, bounding_box_format="xyxy", data_format="channels_first")
    how = crop.get_random_transformation(np.zeros((9, 2, H, W)), seed=1)
    found = crop.transform_images(x.transpose(0, 3, 1, 2), how).transpose(0, 2, 3, 1)
    for x1, y1, top, left in zip(x, found, how["tops"], how["lefts"], strict=True):
        np.testing.assert_array_equal(y1, x1[top : top + 4, left : left + 5])
    moved = crop.transform_bounding_boxes({"boxes": np.full((9, 1, 4), [7, 4, 9, 8]), "labels": np.ones((9, 1))}, how)
    ends = np.array([5, 4, 5, 4])
    want = np.clip([7, 4, 9, 8] - np.stack([how["lefts"], how["tops"]] * 2, 1), 0, ends)
    np.testing.assert_allclose(moved["boxes"][:, 0], want)
    erasing = layers.RandomErasing(fill_value=7)
    how = erasing.get_random_transformation(x, seed=2)
    for x1, y1, (top, left, rows, columns) in zip(x, erasing.transform_images(x, how), how["rectangles"], strict=True):
        want = x1.copy()
        want[top : top + rows, left : left + columns] = 7
        np.testing.assert_array_equal(y1, want)
    keras = import_keras()
    blur = made("RandomGaussianBlur")
    how = {"should_apply_blur": np.array([True, False]), "blur_factor": np.array([0.6, 0.9])}
    tensors = {name: keras.ops.convert_to_tensor(value[:2]) for name, value in how.items()}
    theirs = made("RandomGaussianBlur", keras.layers)
    want = np.asarray(theirs.transform_images(keras.ops.convert_to_tensor(IMAGES[:1].copy()), tensors))[:1]
    np.testing.assert_allclose(blur.transform_images(IMAGES, how), np.concatenate([want, IMAGES[1:]]), rtol=1e-4)


def test_what_is_no_transformation_is_refused():
    layer = layers.RandomRotation(0.1)
    with pytest.raises(ValueError, match="transformation: expected what get_random_transformation gives, with 'angle'"):
        layer.transform_images(IMAGES, {"translations": np.zeros((2, 2))})
    with pytest.raises(ValueError, match=r"expected images \(n, h, w, c\) or \(h, w, c\), got shape \(3,\)"):
        layer.get_random_transformation(np.zeros(3))
    inputs = layers.Input((4, 4, 3))
    with pytest.raises(TypeError, match="get_random_transformation: expected arrays"):
        layer.get_random_transformation(inputs)
    with pytest.raises(ValueError, match="expected bounding_box_format"):
        layer.transform_bounding_boxes(boxes_of(), layer.get_random_transformation(IMAGES))


def test_a_subclass_says_what_is_drawn_and_what_becomes_of_it():
    class Darker(layers.RandomBrightness):
        def get_random_transformation(self, data, training=True, seed=None):
            return {"rgb_delta": -3.0} if training else None

        def transform_labels(self, labels, transformation, training=True):
            return labels + 1 if training else labels

    class Upside(layers.RandomFlip):
        def transform_images(self, images, transformation, training=True):
            return images[:, ::-1]

    layer = Darker(0.1)
    data = {"images": IMAGES, "labels": np.zeros(2, "float32")}
    for found, images, labels in (
        (layer(data, training=True), np.clip(IMAGES - 3, 0, 255), 1),
        (layer(data, training=False), IMAGES, 0),
    ):
        np.testing.assert_allclose(found["images"], images, rtol=1e-6)
        np.testing.assert_array_equal(found["labels"], labels)
    np.testing.assert_array_equal(Upside()(IMAGES, training=False), IMAGES[:, ::-1])
    with pytest.raises(TypeError, match="where code is traced, the layer draws in its own call"):
        Upside()(IMAGES, training=True)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("name", [n for n in ARGUMENTS if issubclass(getattr(layers, n), Augmentation)])
def test_a_call_does_what_the_methods_make_of_its_draw(name, data_format, drawn):
    """Of images, masks and boxes of a batch and of one image."""
    layer = made(name, bounding_box_format="xywh", data_format=data_format)
    turned = (lambda x: x) if data_format == "channels_last" else (lambda x: np.moveaxis(x, -1, -3))
    data = {"images": turned(IMAGES), "segmentation_masks": turned(MASKS), "bounding_boxes": boxes_of()}
    if name == "RandomElasticTransform":  # which has no rule for boxes
        del data["bounding_boxes"]
    for given in data, {key: tree.map_structure(lambda x: x[0], value) for key, value in data.items()}:
        drawn.clear()
        found = layer(given, training=True)
        how = {**drawn[-1], "input_shape": given["images"].shape}
        methods = {key: getattr(layer, f"transform_{key}")(value, how) for key, value in given.items()}
        for key, value in methods.items():
            tree.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-3), found[key], value)
