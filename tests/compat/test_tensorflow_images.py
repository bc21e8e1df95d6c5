"""`tf.image` and `tf.nn`: images have their channels last, whatever Keras's are."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv.compat import tensorflow_names
from pydtconv.utils import set_random_seed

RNG = np.random.default_rng(3)
X = RNG.random((2, 9, 8, 3), "float32")
FILTERS, BOXES = RNG.random((3, 3, 3, 2), "float32"), np.array([[0.1, 0.2, 0.8, 0.9]], "float32")
BYTES = (X[0] * 255).astype("uint8")

#: names that take no image of several pixels, or give none
OTHERS = {
    "tensorflow.image": {"ResizeMethod", "non_max_suppression", "write_file"},
    "tensorflow.nn": {
        "compute_average_loss", "dropout", "in_top_k", "l2_loss", "scale_regularization_loss", "top_k",
        "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits",
        "sparse_softmax_cross_entropy_with_logits",
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
    "depth_to_space": (1,),
}  # fmt: skip


def cases():
    for module, others in OTHERS.items():
        for name, call in sorted(tensorflow_names.table(module).items()):
            if name not in others and not name.startswith("decode"):
                yield pytest.param(call, id=f"{module[11:]}.{name}")


@pytest.mark.parametrize("call", list(cases()))
def test_the_layout_of_keras_is_not_that_of_tensorflow(call, request):
    name = request.node.callspec.id.split(".")[1]
    images = {"encode_jpeg": BYTES, "encode_png": BYTES, "grayscale_to_rgb": X[..., :1]}
    found = []
    for layout in ("channels_last", "channels_first"):
        config.set_image_data_format(layout)
        set_random_seed(5)
        found.append(call(images.get(name, X), *ARGUMENTS.get(name, ())))
    for last, first in zip(*(each if isinstance(each, tuple) else (each,) for each in found), strict=True):
        np.testing.assert_array_equal(np.asarray(first), np.asarray(last))
