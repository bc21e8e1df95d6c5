"""Random changes of images in training, by Keras's names: each class is a row of settings for `ops.Augment`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.dtypes import real
from pydtconv.layers.preprocessing import image_data, masks_and_boxes
from pydtconv.layers.regularization import RandomLayer
from pydtconv.ops.augment import CHANGES, changed, changed_masks, generators
from pydtconv.ops.functions.tables.function_of_row import frozen


class Augmentation(image_data.ImageLayer, RandomLayer):
    """Base: `kind` is that of ops.Augment, `_settings()` its arguments.  Active in training and on arrays.

    Images (n, h, w, c) or (h, w, c), or {"images": ..., "labels": ...}, of which the labels stay as they are.
    "segmentation_masks" and "bounding_boxes" follow their images where pixels move, and stay as they are elsewhere.
    """

    kind = ""
    #: whether it acts outside of training, too
    always = False
    #: whether pixels move, and masks and boxes with them
    moves = False
    keeps = (*image_data.ImageLayer.keeps, "segmentation_masks")

    def __init__(self, seed: int | None = None, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(seed=seed, data_format=data_format, **kwargs)

    @property
    def value_range(self) -> tuple[float, float]:
        """What values of images lie between, the lower first, of layers that are told so."""
        return self._value_range

    @value_range.setter
    def value_range(self, ends: Any) -> None:
        if not isinstance(ends, (list, tuple)) or len(ends) != 2 or ends[0] == ends[1]:
            raise ValueError(f"{type(self).__name__}: value_range: expected two different numbers, got {ends!r}")
        self._value_range = (min(ends), max(ends))

    def _settings(self) -> dict[str, Any]:
        raise NotImplementedError

    def _frozen_settings(self) -> tuple[tuple[str, Any], ...]:
        return tuple((key, frozen(value)) for key, value in self._settings().items())

    def call(self, inputs: Any, training: bool = True) -> Any:
        if self._pydt_has_own_methods:
            return super().call(inputs, training)
        if isinstance(inputs, Mapping):
            image_data.check_data(self, inputs)
            if self.moves and len(inputs.keys() & {"segmentation_masks", "bounding_boxes"}):
                return masks_and_boxes.moved(self, inputs) if training else masks_and_boxes.unmoved(self, inputs)
            return {**inputs, "images": self.call(inputs["images"], training)}
        image_data.check_rank(self, inputs)
        if not training and not self.always:
            return inputs
        return image_data.of_batch(self, inputs, ops.Augment(self.kind, self._frozen_settings(), self._seed_of_call()))

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        images = image_data.arrays_of(self, data)
        if not training and not self.always:
            return None
        height, width = image_data.size_of(self, images.shape)
        count = images.shape[0] if len(images.shape) == 4 else 1
        channels = images.shape[-1 if self.data_format == "channels_last" else -3]
        rngs = generators(self._seed_of_call(seed), count)
        drawn = CHANGES[self.kind].draw((count, height, width, channels), rngs, **self._settings())
        return {**drawn, "input_shape": tuple(images.shape)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        found = self._changed(changed, images, transformation, training)
        return ops.cast(found, self.compute_dtype)

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        if not self.moves:
            return segmentation_masks
        found = self._changed(changed_masks, segmentation_masks, transformation, training)
        return image_data.as_given(segmentation_masks, found) if "segmentation_masks" in self.keeps else found

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        columns = CHANGES[self.kind].columns
        masks_and_boxes.check_boxes(self)
        if columns is None or not training or transformation is None:
            return bounding_boxes
        numbers = columns(_arrays(transformation), **self._settings()).astype("float32")
        size = image_data.size_of(self, transformation["input_shape"])
        return masks_and_boxes.followed(self, bounding_boxes, numbers, size)

    def _changed(self, change: Callable[..., Any], x: Any, transformation: Any, training: bool) -> Any:
        x = ops.cast(x, real(self.compute_dtype))
        image_data.check_rank(self, x)
        if transformation is None or not (training or self.always):
            return x
        numbers, settings = _arrays(transformation), self._settings()

        def function(images: Any, dy: Any = None) -> Any:
            try:
                return change(self.kind, images, numbers, settings, dy)
            except KeyError as error:
                expected = f"what get_random_transformation gives, with {error}"
                raise ValueError(
                    f"{self.kind}: transformation: expected {expected}, got {list(transformation)}"
                ) from None

        moved = ops.NumpyOp(function, lambda dy, images, _: function(images, dy), label=self.kind, reads_y=False)
        return image_data.of_batch(self, x, moved)

    def _range(self, name: str, factor: Any, least: float = -1.0, most: float = 1.0, mirrored: bool = True) -> Any:
        """factor as (lower, upper), in this order: a number is (-factor, factor), or (0, factor) where not mirrored."""
        pair = list(factor) if isinstance(factor, (list, tuple)) else [factor]
        numbers = all(isinstance(each, Real) for each in pair)
        if numbers and not isinstance(factor, (list, tuple)):
            pair = [-abs(factor), abs(factor)] if mirrored else [0.0, factor]
        elif numbers:
            pair.sort()
        if not numbers or len(pair) != 2 or not least <= pair[0] <= pair[1] <= most:
            raise ValueError(
                f"{type(self).__name__}: {name}: expected a number or (lower, upper) between {least} and {most}, got "
                f"{factor!r}"
            )
        return float(pair[0]), float(pair[1])


def _arrays(transformation: Mapping[str, Any]) -> Any:
    return tree.map_structure(np.asarray, dict(transformation))
