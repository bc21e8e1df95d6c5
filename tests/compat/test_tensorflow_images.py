"""`tf.image` and `tf.nn`: images have their channels last, whatever Keras's are."""

import numpy as np
import pytest

from pydtconv import config, function
from pydtconv.compat import tensorflow_names
from pydtconv.compat.tensorflow import files, functions, image, image_parts
from pydtconv.utils import set_random_seed
from tests.compat.tensorflow_calls import CALLS

RNG = np.random.default_rng(3)
X = RNG.random((2, 9, 8, 3), "float32")
FILTERS, BOXES = RNG.random((3, 3, 3, 2), "float32"), np.array([[0.1, 0.2, 0.8, 0.9]], "float32")
BYTES = (X[0] * 255).astype("uint8")

#: names that take no image of several pixels, or give none
OTHERS = {
    "tensorflow.image": {
        "ResizeMethod", "non_max_suppression", "write_file", "is_jpeg", "extract_jpeg_shape",
        "sample_distorted_bounding_box", "stateless_sample_distorted_bounding_box",
    },
    "tensorflow.nn": {
        "compute_average_loss", "dropout", "in_top_k", "l2_loss", "scale_regularization_loss", "top_k",
        "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits",
        "softmax_cross_entropy_with_logits_v2",
        "sparse_softmax_cross_entropy_with_logits", "approx_max_k", "approx_min_k", "ctc_greedy_decoder",
        "batch_norm_with_global_normalization", "conv_transpose",
    },
}  # fmt: skip
#: arguments after the image, for functions that need some
ARGUMENTS = {
    "adjust_brightness": (0.1,), "adjust_contrast": (1.5,), "adjust_gamma": (2.0,), "adjust_hue": (0.2,),
    "adjust_saturation": (1.7,), "central_crop": (0.5,), "convert_image_dtype": ("uint8",),
    "crop_and_resize": (BOXES, [1], (4, 4)), "crop_to_bounding_box": (1, 2, 4, 5),
    "extract_patches": ([1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), "pad_to_bounding_box": (1, 2, 12, 13),
    "psnr": (X[::-1], 1.0), "random_brightness": (0.2, 1), "random_contrast": (0.5, 1.5, 1),
    "random_crop": ((2, 4, 4, 3), 1), "random_flip_left_right": (1,), "random_flip_up_down": (1,),
    "random_hue": (0.2, 1), "random_saturation": (0.5, 1.5, 1), "resize": ((4, 5),),
    "resize_with_crop_or_pad": (6, 11), "resize_with_pad": (6, 11), "ssim": (X[::-1], 1.0, 5),
    "avg_pool": (2, 2, "SAME"), "avg_pool2d": (3, 1, "VALID"), "max_pool": (2, 2, "SAME"),
    "max_pool2d": (3, 1, "VALID"), "bias_add": ([1.0, 2.0, 3.0],), "conv2d": (FILTERS, 1, "SAME"),
    "depthwise_conv2d": (FILTERS, [1, 1, 1, 1], "SAME"), "moments": ([1, 2],), "space_to_depth": (1,),
    "depth_to_space": (1,), "avg_pool1d": (2, 2, "SAME"), "max_pool3d": (2, 2, "SAME"),
    "adjust_jpeg_quality": (50,), "random_jpeg_quality": (20, 50, 1),
    "stateless_random_brightness": (0.2, (1, 2)), "stateless_random_contrast": (0.5, 1.5, (1, 2)),
    "stateless_random_crop": ((2, 4, 4, 3), (1, 2)), "stateless_random_flip_left_right": ((1, 2),),
    "stateless_random_flip_up_down": ((1, 2),), "stateless_random_hue": (0.2, (1, 2)),
    "stateless_random_saturation": (0.5, 1.5, (1, 2)), "stateless_random_jpeg_quality": (20, 50, (1, 2)),
}  # fmt: skip


def cases():
    for module, others in OTHERS.items():
        for name, call in sorted(tensorflow_names.table(module).items()):
            called = any(f"tf.{module[11:]}.{name}(" in calls for calls in CALLS.values())  # there both layouts, too
            if name not in others and not called and not name.startswith("decode"):
                yield pytest.param(call, id=f"{module[11:]}.{name}")


@pytest.mark.parametrize("call", list(cases()))
def test_the_layout_of_keras_is_not_that_of_tensorflow(call, request):
    name = request.node.callspec.id.split(".")[1]
    images = {"encode_jpeg": BYTES, "encode_png": BYTES, "grayscale_to_rgb": X[..., :1], "adjust_jpeg_quality": X[0]}
    images |= {
        "avg_pool1d": X[0],
        "max_pool3d": X[None],
        "random_jpeg_quality": X[0],
        "stateless_random_jpeg_quality": X[0],
    }
    found = []
    for layout in ("channels_last", "channels_first"):
        config.set_image_data_format(layout)
        set_random_seed(5)
        found.append(call(images.get(name, X), *ARGUMENTS.get(name, ())))
    for last, first in zip(*(each if isinstance(each, tuple) else (each,) for each in found), strict=True):
        np.testing.assert_array_equal(np.asarray(first), np.asarray(last))


def test_crops_of_images_in_one_size(tf):
    x = np.random.default_rng(0).random((2, 5, 5, 3), "float32")
    found = tf.image.crop_and_resize(x, [[0, 0, 1, 1], [0.25, 0.5, 0.75, 1.0], [0, 0.5, 1, 1.5]], [0, 1, 1], (5, 3))
    np.testing.assert_allclose(found[0], x[0][:, ::2], atol=1e-6)
    np.testing.assert_allclose(found[1][::2], x[1][1:4, 2:], atol=1e-6)
    np.testing.assert_allclose(found[2], np.stack([x[1][:, 2], x[1][:, 4], 0 * x[1][:, 0]], axis=1), atol=1e-6)
    down, right = tf.image.image_gradients(x)
    np.testing.assert_allclose(down[:, :-1], x[:, 1:] - x[:, :-1], atol=1e-6)
    assert not np.any(down[:, -1])
    assert not np.any(right[:, :, -1])
    ramp = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(tf.image.sobel_edges(ramp)[0, 1, 1, 0], [32, 8])
    boxes = [[0, 0, 1, 1], [0, 0, 1, 0.95], [0, 2, 1, 3]]
    np.testing.assert_array_equal(tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.1], 10), [1, 2])
    same = np.random.default_rng(0).random((2, 16, 16, 3), "float32")
    np.testing.assert_allclose(tf.image.ssim(same, same, max_val=1.0), [1, 1], atol=1e-5)


def test_postscript_is_no_image(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    image_module.new("RGB", (20, 16)).save(tmp_path / "x.jpg", format="EPS")
    with pytest.raises(OSError, match="no image that can be decoded"):
        image.decode_image(files.read_file(tmp_path / "x.jpg"))


def test_images_are_read_and_changed(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype="uint8")
    image_module.fromarray(pixels).save(tmp_path / "x.png")
    found = image.decode_image(files.read_file(tmp_path / "x.png"), channels=3)
    np.testing.assert_array_equal(found, pixels)
    floats = image.convert_image_dtype(found, "float32")
    assert floats.max() <= 1
    np.testing.assert_array_equal(image.flip_left_right(found), pixels[:, ::-1])
    assert image.resize(found, (3, 4)).shape == (3, 4, 3)
    assert image.random_crop(found, (4, 4, 3)).shape == (4, 4, 3)
    assert image.resize_with_crop_or_pad(found, 10, 4).shape == (10, 4, 3)
    np.testing.assert_allclose(image.yuv_to_rgb(image.rgb_to_yuv(floats)), floats, atol=1e-5)
    np.testing.assert_allclose(np.asarray(image.adjust_hue(floats, 0.0)), floats, atol=1e-4)
    standard = image.per_image_standardization(found)
    assert abs(float(np.mean(standard))) < 1e-5


def test_images_resized_by_the_nearest_pixels_keep_their_dtype():
    labels = functions.constant(np.array([[1, 3], [2, 1]], "uint8")[..., None])
    found = image.resize(labels, (4, 4), method="nearest")
    assert found.dtype == "uint8"
    np.testing.assert_array_equal(found[::2, ::2], labels)
    assert image.resize(labels, (4, 4)).dtype == "float32"


def test_patches_and_images_in_others():
    x = np.arange(2 * 5 * 6 * 3, dtype="float32").reshape(2, 5, 6, 3)
    found = image_parts.extract_patches(x, [1, 2, 3, 1], [1, 2, 3, 1], [1, 1, 1, 1], "VALID")
    np.testing.assert_array_equal(found[1, 1, 1], x[1, 2:4, 3:6].reshape(-1))
    np.testing.assert_array_equal(
        image_parts.pad_to_bounding_box(x, 1, 2, 8, 9), np.pad(x, ((0, 0), (1, 2), (2, 1), (0, 0)))
    )
    with pytest.raises(ValueError, match="expected a box that holds 5x6 pixels"):
        image_parts.pad_to_bounding_box(x, 1, 2, 5, 9)
    padded = np.asarray(image_parts.resize_with_pad(x, 10, 20, image_parts.ResizeMethod.NEAREST_NEIGHBOR))
    assert padded.shape == (2, 10, 20, 3)
    np.testing.assert_array_equal(padded[:, ::2, 4:16:2], x)
    np.testing.assert_allclose(image_parts.total_variation(x), [3 * 4 * 6 * 18 + 3 * 5 * 5 * 3] * 2)


def test_flips_at_random_are_drawn_anew_in_traced_code():
    x = np.arange(4, dtype="float32").reshape(1, 2, 2, 1)
    flipped = function(image.random_flip_left_right)
    found = {tuple(np.asarray(flipped(x)).ravel().tolist()) for _ in range(40)}
    assert found == {(0, 1, 2, 3), (1, 0, 3, 2)}


def _changed(name, x):
    arguments = {
        "random_crop": ((*x.shape[:-3], 2, 2, 3),),
        "random_contrast": (0.4, 1.6),
        "random_saturation": (0.4, 1.6),
    }
    limits = {"random_hue": (0.2,), "random_brightness": (0.3,), "random_jpeg_quality": None}
    return getattr(image, name)(x, *arguments.get(name, limits.get(name, ())))


@pytest.mark.parametrize("name", sorted(name for name in image.image_table() if name.startswith("random_")))
def test_what_is_random_is_drawn_anew_in_traced_code(name):
    """Each run draws; values are among those that the function gives of arrays."""
    x = np.random.default_rng(0).random((4, 4, 3), "float32")
    traced = function(lambda x: _changed(name, x))
    found = np.stack([np.asarray(traced(x)) for _ in range(12)])
    assert len({each.tobytes() for each in found}) > 1
    assert found.shape[1:] == np.shape(_changed(name, x))
    if name == "random_crop":
        parts = {x[i : i + 2, j : j + 2].tobytes() for i in range(3) for j in range(3)}
        assert {each.tobytes() for each in found} <= parts
    if name == "random_brightness":
        deltas = found - x
        np.testing.assert_allclose(deltas, deltas[:, :1, :1, :1] + np.zeros_like(deltas), atol=1e-6)
        assert np.abs(deltas).max() <= 0.3


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("random_brightness", (-0.1,)), ("random_hue", (-0.1,)), ("random_hue", (0.6,)), ("random_hue", (np.nan,)),
        *((name, limits) for name in ("random_contrast", "random_saturation") for limits in ((2, 1), (1, 1), (-1, 1))),
    ],
)  # fmt: skip
def test_limits_of_what_is_random_are_those_of_tensorflow(name, limits):
    with pytest.raises(ValueError, match=f"^{name}: .*expected .*0.*, got {limits[0]}"):
        getattr(image, name)(np.zeros((2, 2, 3), "float32"), *limits)


def test_a_layer_crops_to_sizes_at_random(tf):
    """Where `call` asks for values, a call on arrays runs it as it is written."""

    class Crop(tf.keras.layers.Layer):
        def call(self, x):
            size = tf.random.uniform(shape=[], minval=2, maxval=4, dtype=tf.int32)
            part = tf.image.resize(tf.image.random_crop(x, (size, size, 3)), (4, 4))
            if tf.random.uniform([]) < 0.5:
                part = tf.tile(tf.image.rgb_to_grayscale(part), [1, 1, 3])
            return part

    x, layer = np.random.default_rng(0).random((4, 4, 3), "float32"), Crop()
    found = [np.asarray(layer(x)) for _ in range(12)]
    assert {each.shape for each in found} == {(4, 4, 3)}
    assert len({bool((each[..., :1] == each).all()) for each in found}) == 2
    data = tf.data.Dataset.from_tensor_slices(np.stack([x] * 4)).map(layer).batch(2)
    assert [batch.shape for batch in data] == [(2, 4, 4, 3)] * 2
