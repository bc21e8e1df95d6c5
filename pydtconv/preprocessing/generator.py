"""`ImageDataGenerator`: batches of images that are changed at random, with the arguments of Keras's class."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import name_of
from pydtconv.files.images import array_to_img, img_to_array
from pydtconv.files.pixels import pillow
from pydtconv.preprocessing.affine import FILL_MODES, affine_matrix, sample
from pydtconv.preprocessing.dataframes import DataFrameIterator
from pydtconv.preprocessing.iterators import ArrayIterator, DirectoryIterator
from pydtconv.support.random import next_seed


class ImageDataGenerator:
    """Batches of images, normalized and changed at random; `flow`, `flow_from_directory` and `flow_from_dataframe` give
    them to `fit`.

    featurewise_center, featurewise_std_normalization, zca_whitening: by the mean, deviation and principal components of
    the data that `fit` saw (zca_epsilon beside the latter's roots).  samplewise_...: by each image's own.
    rotation_range, shear_range: degrees, both ways.  width_shift_range, height_shift_range: a share of the extent below
    1, pixels from 1 on, or a list of shifts.  zoom_range: a number z for 1 - z ... 1 + z, or a pair.
    brightness_range: a pair of factors.  channel_shift_range: what is added to each channel, at most.
    fill_mode, cval: what stands outside of an image.  rescale, preprocessing_function: before everything else is
    normalized, the function first.  validation_split: the share of `subset="validation"`.  interpolation_order: 0 or 1.

    The random numbers follow Keras's distributions, not its bits.
    """

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Any = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Callable[[np.ndarray], np.ndarray] | None = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        interpolation_order: int = 1,
        dtype: str | None = None,
    ) -> None:
        if data_format is None:
            data_format = config.image_data_format()
        if data_format not in ("channels_last", "channels_first"):
            raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
        if fill_mode not in FILL_MODES:
            raise ValueError(f"fill_mode: expected one of {', '.join(FILL_MODES)}, got {fill_mode!r}")
        if interpolation_order not in (0, 1):
            raise ValueError(f"interpolation_order: expected 0 or 1, got {interpolation_order!r}")
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(f"validation_split: expected a number between 0 and 1, got {validation_split!r}")
        if brightness_range is not None and (
            not isinstance(brightness_range, (tuple, list)) or len(brightness_range) != 2
        ):
            raise ValueError(f"brightness_range: expected two numbers, got {brightness_range!r}")
        self.featurewise_center = featurewise_center or featurewise_std_normalization or zca_whitening
        self.samplewise_center = samplewise_center or samplewise_std_normalization
        self.featurewise_std_normalization = featurewise_std_normalization and not zca_whitening
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        self.zoom_range = _zoom(zoom_range)
        self.fill_mode, self.cval = fill_mode, cval
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.data_format = data_format
        self.channel_axis, self.row_axis, self.col_axis = (3, 1, 2) if data_format == "channels_last" else (1, 2, 3)
        self.validation_split = validation_split
        self.interpolation_order = interpolation_order
        self.dtype = name_of(dtype or config.floatx())
        self.mean: np.ndarray | None = None
        self.std: np.ndarray | None = None
        self.zca_whitening_matrix: np.ndarray | None = None
        self._random = np.random.default_rng(next_seed())
        self._check_together(featurewise_std_normalization, samplewise_std_normalization, featurewise_center)

    def _check_together(self, featurewise_std: bool, samplewise_std: bool, featurewise: bool) -> None:
        if self.zca_whitening and not featurewise:
            warnings.warn("zca_whitening overrides featurewise_center=False", UserWarning, stacklevel=3)
        if self.zca_whitening and featurewise_std:
            warnings.warn("zca_whitening overrides featurewise_std_normalization", UserWarning, stacklevel=3)
        if featurewise_std and not self.zca_whitening and not featurewise:
            told = "featurewise_std_normalization overrides featurewise_center=False"
            warnings.warn(told, UserWarning, stacklevel=3)

    # --- data -------------------------------------------------------------------------------------------------------
    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        ignore_class_split: bool = False,
        subset: str | None = None,
    ) -> ArrayIterator:
        """Batches of arrays: x (n, rows, columns, channels), or a pair of it and other arrays that go along unchanged.

        subset: "training" or "validation" of `validation_split`.  save_to_dir: a folder for the changed images.
        """
        saving = (save_to_dir, save_prefix, save_format)
        return ArrayIterator(self, x, y, batch_size, shuffle, sample_weight, seed, saving, ignore_class_split, subset)

    def flow_from_directory(
        self,
        directory: Any,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
    ) -> DirectoryIterator:
        """Batches of the images in a folder with one folder for each class.

        class_mode: "categorical", "binary", "sparse", "input" (the images themselves) or None.
        """
        reading = ((target_size[0], target_size[1]), color_mode, interpolation, keep_aspect_ratio)
        saving = (save_to_dir, save_prefix, save_format)
        return DirectoryIterator(
            self, directory, reading, classes, class_mode, batch_size, shuffle, seed, saving, follow_links, subset
        )

    def flow_from_dataframe(
        self,
        dataframe: Any,
        directory: Any = None,
        x_col: str = "filename",
        y_col: Any = "class",
        weight_col: str | None = None,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        validate_filenames: bool = True,
        **kwargs: Any,
    ) -> DataFrameIterator:
        """Batches of the files that a table names: a DataFrame of pandas, or a dict of columns.

        class_mode: as of `flow_from_directory`, or "raw" for the numbers of y_col (one column or several) and
        "multi_output" for an array of each.  validate_filenames: leaves out files that are not there.
        """
        if kwargs:
            raise TypeError(f"flow_from_dataframe: unknown argument {next(iter(kwargs))!r}")
        reading = ((target_size[0], target_size[1]), color_mode, interpolation, False)
        saving = (save_to_dir, save_prefix, save_format)
        columns = (x_col, y_col, weight_col)
        return DataFrameIterator(
            self, dataframe, directory, columns, reading, classes, class_mode, batch_size, shuffle, seed, saving,
            subset, validate_filenames,
        )  # fmt: skip

    # --- one image --------------------------------------------------------------------------------------------------
    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Preprocessing function, rescaling and normalization of an image or a batch; x may be changed in place."""
        if self.preprocessing_function is not None:
            x = self.preprocessing_function(x)
        if self.rescale:
            x *= self.rescale
        if self.samplewise_center:
            x -= np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, keepdims=True) + 1e-6
        if self.featurewise_center and self._fitted("featurewise_center", self.mean):
            x -= self.mean
        if self.featurewise_std_normalization and self._fitted("featurewise_std_normalization", self.std):
            x /= self.std + 1e-6  # type: ignore[operator]
        if self.zca_whitening and self._fitted("zca_whitening", self.zca_whitening_matrix):
            x = (x.reshape(-1, int(np.prod(x.shape[-3:]))) @ self.zca_whitening_matrix).reshape(x.shape)
        return x

    def _fitted(self, setting: str, value: Any) -> bool:
        if value is None:
            told = f"ImageDataGenerator: {setting} has no effect before fit() has seen data"
            warnings.warn(told, UserWarning, stacklevel=4)
        return value is not None

    def get_random_transform(self, img_shape: Any, seed: int | Sequence[int] | None = None) -> dict[str, Any]:
        """The parameters of a random change of an image of this shape, by name."""
        rng = self._random if seed is None else np.random.default_rng(seed)
        rows, columns = img_shape[self.row_axis - 1], img_shape[self.col_axis - 1]
        zx, zy = (1, 1) if tuple(self.zoom_range) == (1, 1) else rng.uniform(*self.zoom_range, 2)
        shift, brightness = self.channel_shift_range, self.brightness_range
        return {
            "theta": rng.uniform(-self.rotation_range, self.rotation_range) if self.rotation_range else 0,
            "tx": _shift(rng, self.height_shift_range, rows),
            "ty": _shift(rng, self.width_shift_range, columns),
            "shear": rng.uniform(-self.shear_range, self.shear_range) if self.shear_range else 0,
            "zx": zx,
            "zy": zy,
            "flip_horizontal": bool(rng.random() < 0.5) and self.horizontal_flip,
            "flip_vertical": bool(rng.random() < 0.5) and self.vertical_flip,
            "channel_shift_intensity": rng.uniform(-shift, shift) if shift else None,
            "brightness": None if brightness is None else rng.uniform(*brightness),
        }

    def apply_transform(self, x: np.ndarray, transform_parameters: dict[str, Any]) -> np.ndarray:
        """The image (3 dimensions) changed by parameters as `get_random_transform` gives them; those left out: not."""
        first = self.data_format == "channels_first"
        image = np.moveaxis(x, 0, -1) if first else x
        names = ("theta", "tx", "ty", "shear", "zx", "zy")
        given = {name: transform_parameters[name] for name in names if name in transform_parameters}
        matrix = affine_matrix(*image.shape[:2], **given)
        if matrix is not None:
            image = sample(image, matrix, self.fill_mode, self.cval, self.interpolation_order)
        intensity = transform_parameters.get("channel_shift_intensity")
        if intensity is not None:
            image = np.clip(image + intensity, image.min(), image.max()).astype(image.dtype)
        if transform_parameters.get("flip_horizontal", False):
            image = image[:, ::-1]
        if transform_parameters.get("flip_vertical", False):
            image = image[::-1]
        if transform_parameters.get("brightness") is not None:
            image = brightened(image, transform_parameters["brightness"])
        return np.ascontiguousarray(np.moveaxis(image, -1, 0) if first else image)

    def random_transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """The image, changed at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    # --- what is normalized by --------------------------------------------------------------------------------------
    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Finds mean, deviation and principal components of images (n, ...), of changed ones where augment."""
        x = np.array(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(f"ImageDataGenerator.fit: expected images of 4 dimensions, got shape {x.shape}")
        if x.shape[self.channel_axis] not in (1, 3, 4):
            told = f"ImageDataGenerator.fit: expected 1, 3 or 4 channels ({self.data_format}), got shape {x.shape}"
            warnings.warn(told, UserWarning, stacklevel=2)
        if seed is not None:
            self._random = np.random.default_rng(seed)
        if self.rescale:
            x *= self.rescale
        if augment:
            x = np.stack([self.random_transform(image) for _ in range(rounds) for image in x])
        axes = (0, self.row_axis, self.col_axis)
        if self.featurewise_center:
            self.mean = np.mean(x, axis=axes, keepdims=True)[0]
            x -= self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axis=axes, keepdims=True)[0]
            x /= self.std + 1e-6
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            u, s, _ = np.linalg.svd(flat.T, full_matrices=False)
            self.zca_whitening_matrix = (u * (np.sqrt(len(x)) / (s + self.zca_epsilon))) @ u.T


def brightened(image: np.ndarray, factor: float) -> np.ndarray:
    """The image (h, w, c) times a factor, as Pillow does it on 8 bits; values beyond 0 ... 255 are scaled to it."""
    pillow()  # which says how it is installed
    from PIL import ImageEnhance

    low, high = image.min(), image.max()
    scaled = bool(low < 0 or high > 255)
    changed = ImageEnhance.Brightness(array_to_img(image, "channels_last", scale=scaled)).enhance(factor)
    found = img_to_array(changed, "channels_last")
    return found / 255 * (high - low) + low if scaled else found


def _zoom(zoom_range: Any) -> tuple[float, float]:
    if isinstance(zoom_range, (int, float)):
        return 1 - zoom_range, 1 + zoom_range
    if len(zoom_range) == 2 and all(isinstance(value, (int, float)) for value in zoom_range):
        return zoom_range[0], zoom_range[1]
    raise ValueError(f"zoom_range: expected a number or two, got {zoom_range!r}")


def _shift(rng: np.random.Generator, limit: Any, extent: int) -> float:
    """Pixels of a random shift."""
    if isinstance(limit, (list, tuple, np.ndarray)):
        found = float(rng.choice(limit)) * rng.choice([-1, 1])
    elif not limit:
        return 0
    elif isinstance(limit, (int, np.integer)):
        found = float(rng.integers(limit)) * rng.choice([-1, 1])
    else:
        found = rng.uniform(-limit, limit)
    return found * extent if np.max(limit) < 1 else found
