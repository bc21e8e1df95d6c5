"""Images mirrored, and windows of images: RandomFlip, RandomCrop, CenterCrop."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.preprocessing.boxes import convert_format
from pydtconv.layers.regularization import RandomLayer
from pydtconv.serialization.configurable import builtin


@builtin
class RandomFlip(image_data.ImageLayer, RandomLayer):
    """In training, mirrors each image with probability 1/2: "horizontal", "vertical" or "horizontal_and_vertical"."""

    computes_integers = True
    keeps = (*image_data.ImageLayer.keeps, "segmentation_masks")

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed=seed, data_format=data_format, **kwargs)
        self.mode = arguments.choice("RandomFlip", "mode", mode, ("horizontal", "vertical", "horizontal_and_vertical"))
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    def call(self, inputs: Any, training: bool = True) -> Any:
        if not training or self._pydt_has_own_methods:
            return super().call(inputs, training)
        flip = ops.RandomFlip(mode=self.mode, seed=self._seed_of_call(), always=True)
        return image_data.drawn_at_once(self, inputs, flip)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """With "flips", (n, 1, 1, 1), or (n, 1, 1, 2) of columns and rows; Keras mirrors both or neither."""
        if not training:
            return None
        images = image_data.arrays_of(self, data)
        pixels = image_data.places_of_all(images, (2, 2))
        flip = ops.RandomFlip(mode=self.mode, seed=self._seed_of_call(seed), always=True)
        rows, columns = np.split(np.asarray(flip(pixels))[:, :1, :1] > 0, 2, -1)
        flips = {"horizontal": columns, "vertical": rows}.get(self.mode, np.concatenate([columns, rows], -1))
        return {"flips": flips, "input_shape": tuple(images.shape)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        found = ops.cast(images, self.compute_dtype)
        return found if transformation is None or not training else self._mirrored(found, transformation)

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        keeps = transformation is None or not training
        return segmentation_masks if keeps else self._mirrored(segmentation_masks, transformation)

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        if transformation is None or not training:
            return bounding_boxes
        return image_data.moved_boxes(self, bounding_boxes, transformation, self._mirrored)

    def _mirrored(self, x: Any, transformation: Mapping[str, Any]) -> Any:
        flips = np.asarray(transformation["flips"])
        flips = flips.reshape(-1, 1, 1, flips.shape[-1])

        def change(batch: Any) -> Any:
            for axis, way, own in ((2, "horizontal", flips[..., :1]), (1, "vertical", flips[..., -1:])):
                if way in self.mode:
                    batch = ops.where(own, ops.flip(batch, axis), batch)
            return batch

        return image_data.of_batch(self, x, change)


class _Window(image_data.ImageLayer):
    """Base: a window of images; of smaller ones, which are resized, the middle is kept."""

    computes_integers = True
    keeps = (*image_data.ImageLayer.keeps, "segmentation_masks")

    def _start(self, height: Any, width: Any) -> None:
        self.height = arguments.positive(type(self).__name__, "height", height)
        self.width = arguments.positive(type(self).__name__, "width", width)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)
        self._pydt_needs_no_build()

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        return self._cut(ops.cast(images, self.compute_dtype), transformation, "bilinear")

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        return self._cut(segmentation_masks, transformation, "nearest")

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Boxes in the middle: as that is resized, too."""
        form, (rows, columns) = image_data.box_format(self), image_data.size_of(self, transformation["input_shape"])
        inner = self.height, self.width
        if rows < self.height or columns < self.width:
            inner = int(columns * self.height / self.width), int(rows * self.width / self.height)
            inner = max(min(rows, inner[0]), 1), max(min(columns, inner[1]), 1)
        corners = convert_format(bounding_boxes["boxes"], form, "xyxy", rows, columns)
        start = np.array([(columns - inner[1]) // 2, (rows - inner[0]) // 2] * 2, "float32")
        end = start + np.array(inner[::-1] * 2, "float32")
        scale = np.array([self.width / inner[1], self.height / inner[0]] * 2, "float32")
        moved = (ops.minimum(ops.maximum(corners, start), end) - start) * scale
        return image_data.finished(self, {**bounding_boxes, "boxes": moved}, (self.height, self.width))

    def _cut(self, x: Any, transformation: Any, interpolation: str) -> Any:
        return image_data.of_batch(self, x, lambda batch: self._middle(batch, interpolation))

    def _middle(self, x: Any, interpolation: str) -> Any:
        if self._is_smaller(x.shape[1:3]):
            size = (self.height, self.width)
            return ops.image.resize(x, size, interpolation, crop_to_aspect_ratio=True, data_format="channels_last")
        top, left = (x.shape[1] - self.height) // 2, (x.shape[2] - self.width) // 2
        return x[:, top : top + self.height, left : left + self.width]

    def _is_smaller(self, size: Sequence[int]) -> bool:
        return size[0] < self.height or size[1] < self.width


@builtin
class RandomCrop(_Window, RandomLayer):
    """In training, a window of height x width at a random place; else the window in the middle.

    Images that are smaller are resized, of which the middle is kept.
    """

    def __init__(
        self,
        height: int,
        width: int,
        seed: int | None = None,
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed=seed, data_format=data_format, name=name, **kwargs)
        self._start(height, width)

    def _draws(self, data: Any, training: bool) -> bool:
        return training and not self._is_smaller(image_data.size_of(self, image_data.images_of(data).shape))

    def call(self, inputs: Any, training: bool = True) -> Any:
        if self._pydt_has_own_methods or not self._draws(inputs, training):
            return super().call(inputs, training)
        crop = ops.RandomCrop(height=self.height, width=self.width, seed=self._seed_of_call(), always=True)
        return image_data.drawn_at_once(self, inputs, crop)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Of windows that are drawn "tops" and "lefts", (n,)."""
        found = super().get_random_transformation(data)
        if not self._draws(data, training):
            return found
        images = image_data.arrays_of(self, data)
        pixels = image_data.places_of_all(images, image_data.size_of(self, images.shape))
        crop = ops.RandomCrop(height=self.height, width=self.width, seed=self._seed_of_call(seed), always=True)
        tops, lefts = np.asarray(crop(pixels))[:, 0, 0].astype(int).T
        return {"tops": tops, "lefts": lefts, **found}

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        if "tops" not in transformation:
            return super().transform_bounding_boxes(bounding_boxes, transformation)
        move = functools.partial(self._cut, interpolation="nearest")
        return image_data.moved_boxes(self, bounding_boxes, transformation, move)

    def _cut(self, x: Any, transformation: Any, interpolation: str) -> Any:
        if transformation is None or "tops" not in transformation:
            return super()._cut(x, transformation, interpolation)
        tops, lefts = (np.reshape(transformation[name], -1).tolist() for name in ("tops", "lefts"))

        def change(batch: Any) -> Any:
            one = batch.shape[0] == 1  # for all windows
            images = [batch if one else batch[i : i + 1] for i in range(len(tops))]
            windows = zip(images, tops, lefts, strict=True)
            return ops.concatenate([x[:, i : i + self.height, j : j + self.width] for x, i, j in windows], axis=0)

        return image_data.of_batch(self, x, change)


@builtin
class CenterCrop(_Window):
    """The window of height x width in the middle of images; smaller ones are resized, of which the middle is kept."""

    reads_integers = False

    def __init__(self, height: int, width: int, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format=data_format, **kwargs)
        self._start(height, width)
