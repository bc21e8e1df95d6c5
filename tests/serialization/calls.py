"""Calls of the functions of `ops` that work, as a file may hold them."""

from __future__ import annotations

import inspect
from typing import Any

IMAGES, SEQUENCES, VECTORS, WAVES, PICTURES = (6, 6, 4), (8, 4), (6,), (64,), (6, 6, 3)
_MATRIX = (4, 4)
_TWO = [_MATRIX, _MATRIX]
_POOL = {"pool_size": 2, "strides": 2, "padding": "valid", "data_format": "channels_last"}
_STFT = {"sequence_length": 8, "sequence_stride": 4, "fft_length": 8}
_EVEN = [[[[1.0]] * 4]]


def array(value: Any, dtype: str = "float32") -> dict[str, Any]:
    """An array, as a config has it."""
    return {"class_name": "__numpy__", "config": {"value": value, "dtype": dtype}}


#: (arguments of the call, arguments in the config) where the call is not of one vector or two: a tuple is the shape of
#: a tensor, without the batch; a list with such are several tensors
# fmt: off
_CALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "affine": ([VECTORS], {"scale": 2.0, "offset": 1.0}),
    "append": ([VECTORS, VECTORS], {"axis": 1}),
    "argpartition": ([VECTORS], {"kth": 1}),
    "array_split": ([VECTORS], {"indices_or_sections": 2, "axis": 1}),
    "batch_normalization": ([IMAGES, [1.0] * 4, [1.0] * 4], {"axis": -1}),
    "broadcast_to": ([(1, 6)], {"shape": [1, 3, 6]}),
    "cdist": (_TWO, {}),
    "clip": ([VECTORS], {"x_min": -1.0, "x_max": 1.0}),
    "concatenate": ([_TWO], {"axis": 1}),
    "cross": ([(3,), (3,)], {}),
    "ctc_decode": ([(5, 3), ()], {}),
    "digitize": ([VECTORS], {"bins": [0.0, 1.0]}),
    "dot": ([VECTORS, [[1.0]] * 6], {}),
    "dot_product_attention": ([(4, 2, 3)] * 3, {}),
    "einsum": ([IMAGES], {"subscripts": "bijc->bic"}),
    "expand_dims": ([VECTORS], {"axis": 1}),
    "extract_sequences": ([WAVES], {"sequence_length": 4, "sequence_stride": 2}),
    **{name: ([_TWO], {}) for name in ("fft", "fft2", "ifft2", "stack")},
    "fold": ([(8, 9)], {"output_size": 4, "kernel_size": 2}),
    "full_like": ([VECTORS], {"fill_value": 1.0}),
    "get_item": ([VECTORS, [0, 1]], {}),
    "in_top_k": ([(), VECTORS], {"k": 2}),
    "irfft": ([[(5,), (5,)]], {}),
    "isin": ([VECTORS, [0.0, 1.0]], {}),
    "istft": ([[(9, 5), (9, 5)]], _STFT),
    **{name: (_TWO, {}) for name in ("matmul", "solve", "solve_triangular")},
    "lstsq": ([VECTORS, ()], {}),
    "max_pool": ([IMAGES], _POOL),
    "average_pool": ([IMAGES], _POOL),
    "meshgrid": ([VECTORS, VECTORS], {}),
    "moments": ([VECTORS], {"axes": [1]}),
    "moveaxis": ([IMAGES], {"source": 1, "destination": 2}),
    "multi_hot": ([VECTORS], {"num_classes": 3}),
    "one_hot": ([VECTORS], {"num_classes": 3}),
    "pad": ([VECTORS], {"pad_width": [[0, 0], [1, 1]]}),
    "psnr": ([VECTORS, VECTORS], {"max_val": 1.0}),
    **{name: ([VECTORS], {"q": 0.5}) for name in ("quantile", "nanquantile", "percentile", "nanpercentile")},
    "repeat": ([VECTORS], {"repeats": 2}),
    "reshape": ([IMAGES], {"newshape": [-1, 24]}),
    "roll": ([VECTORS], {"shift": 1}),
    "scatter": ([[[0], [1]], (2,)], {"shape": [4, 2]}),
    "scatter_update": ([VECTORS, [[0, 0]], [1.0]], {}),
    "searchsorted": ([[0.0, 1.0], VECTORS], {}),
    **{
        f"segment_{name}": ([(), array([0, 1], "int32")], {"num_segments": 3}) for name in ("max", "min", "prod", "sum")
    },
    "slice": ([VECTORS], {"start_indices": [0, 1], "shape": [1, 2]}),
    "slice_along": ([VECTORS], {"axis": 1, "start": 1, "stop": 3}),
    "slice_update": ([VECTORS, [0, 1], [[1.0]]], {}),
    "sparse_categorical_crossentropy": ([(), VECTORS], {}),
    "split": ([VECTORS], {"indices_or_sections": 2, "axis": 1}),
    "stft": ([WAVES], _STFT),
    "take": ([VECTORS], {"indices": [0, 1], "axis": 1}),
    "take_along_axis": ([VECTORS], {"indices": [[0, 1]], "axis": 1}),
    "tensordot": ([VECTORS, [[1.0]] * 6], {"axes": 1}),
    "tile": ([VECTORS], {"repeats": [1, 2]}),
    "threshold": ([VECTORS], {"threshold": 0.1, "default_value": 0.2}),
    "top_k": ([VECTORS], {"k": 2}),
    "transpose": ([IMAGES], {"axes": [0, 2, 1, 3]}),
    "unfold": ([IMAGES], {"kernel_size": 2}),
    "unstack": ([VECTORS], {"axis": 1}),
    "vander": ([()], {"N": 3}),
    "cast": ([VECTORS], {"dtype": "float64"}),
    "saturate_cast": ([VECTORS], {"dtype": "int8"}),
    "where": ([VECTORS, VECTORS, VECTORS], {}),
    "conv": ([IMAGES, array(_EVEN)], {}),
    "conv_transpose": ([IMAGES, array([[[[1.0] * 4]]])], {"strides": 1}),
    "separable_conv": ([IMAGES, array(_EVEN), array(_EVEN)], {}),
    **{f"adaptive_{kind}_pool": ([IMAGES], {"output_size": 2}) for kind in ("average", "max")},
    "correlate": ([(), ()], {}),
    "ctc_loss": ([(2,), (5, 3), (), ()], {}),
    "dsplit": ([IMAGES], {"indices_or_sections": 2}),
    "hsplit": ([VECTORS], {"indices_or_sections": 2}),
    "vsplit": ([VECTORS], {"indices_or_sections": [1]}),
    **{name: ([VECTORS, VECTORS], {"num": 3}) for name in ("geomspace", "linspace", "logspace")},
    "select": ([[VECTORS, VECTORS], [VECTORS, VECTORS]], {}),
    "swapaxes": ([IMAGES], {"axis1": 1, "axis2": 2}),
    "unravel_index": ([()], {"shape": [2, 3]}),
    "full": ([(1,)], {"shape": [2, 3]}),
    "histogram": ([()], {"bins": 4}),
    "unique": ([VECTORS], {"size": 3}),
    "depthwise_conv": ([IMAGES, _EVEN], {}),
    "rearrange": ([IMAGES], {"pattern": "b h w c -> b (h w) c"}),
    "space_to_depth": ([IMAGES], {"block_size": 2}),
    "depth_to_space": ([IMAGES], {"block_size": 2}),
    "squeeze": ([(1, 4)], {"axis": 1}),
    "affine_transform": ([PICTURES, [[1.0, 0, 0, 0, 1.0, 0, 0, 0]]], {}),
    "crop_images": ([PICTURES], {"top_cropping": 1, "left_cropping": 1, "target_height": 2, "target_width": 2}),
    "pad_images": ([PICTURES], {"top_padding": 1, "left_padding": 1, "target_height": 9, "target_width": 9}),
    "extract_patches": ([PICTURES], {"size": 2}),
    "extract_patches_3d": ([(4, 4, 4, 2)], {"size": 2}),
    "resize": ([PICTURES], {"size": [3, 3]}),
    **{name: ([PICTURES], {}) for name in ("rgb_to_grayscale", "rgb_to_hsv", "hsv_to_rgb", "elastic_transform")},
    **{name: ([PICTURES], {}) for name in ("gaussian_blur", "sobel_edges")},
    "map_coordinates": ([(), array([[0.0, 1.0]])], {"order": 1}),
    "perspective_transform": ([PICTURES, *[array([[[0, 0], [5, 0], [0, 5], [5, 5]]] * 2)] * 2], {}),
    "scale_and_translate": (
        [PICTURES],
        {
            "output_shape": [2, 4, 5, 3], "scale": array([1.0, 1.0]), "translation": array([0.0, 0.0]),
            "spatial_dims": [1, 2], "method": "linear",
        },
    ),
    "ssim": ([PICTURES, PICTURES], {"filter_size": 3}),
    **{name: ([_MATRIX], {}) for name in (
        "cholesky", "cholesky_inverse", "det", "eig", "eigh", "inv", "logdet", "slogdet", "svd", "qr", "pinv",
        "lu_factor", "matrix_rank",
    )},
}
# fmt: on
#: functions of integers, and of labels
INTEGERS = ("gcd", "lcm", "unravel_index", "ctc_loss", "left_shift", "right_shift")
#: second parameters that are tensors
_SECOND = ("x2", "y", "y_true", "output", "y_pred")


def call_of(function: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call, and those in the config."""
    parameters = list(inspect.signature(function).parameters)
    several = len(parameters) > 1 and parameters[1] in _SECOND
    return _CALLS.get(function.__name__, ([VECTORS] * (1 + several), {}))


def shapes_in(arg: Any) -> list[tuple[int, ...]]:
    """The shapes of the tensors in an argument, or in a list of them."""
    if isinstance(arg, tuple):
        return [arg]
    return [shape for part in arg for shape in shapes_in(part)] if isinstance(arg, list) else []
