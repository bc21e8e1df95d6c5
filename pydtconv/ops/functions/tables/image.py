"""Functions of images, `keras.ops.image`: (h, w, c) or (n, h, w, c), or with the channels first."""

from pydtconv.ops.functions.tables.image_colour import hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from pydtconv.ops.functions.tables.image_filters import (
    extract_patches,
    extract_patches_3d,
    gaussian_blur,
    sobel_edges,
    ssim,
)
from pydtconv.ops.functions.tables.image_geometry import (
    affine_transform,
    crop_images,
    elastic_transform,
    pad_images,
    perspective_transform,
    resize,
    scale_and_translate,
)
from pydtconv.ops.functions.tables.sampling import map_coordinates

# fmt: off
__all__ = [
    "affine_transform", "crop_images", "elastic_transform", "extract_patches", "extract_patches_3d", "gaussian_blur",
    "hsv_to_rgb", "map_coordinates", "pad_images", "perspective_transform", "resize", "rgb_to_grayscale", "rgb_to_hsv",
    "scale_and_translate", "sobel_edges", "ssim",
]
# fmt: on
