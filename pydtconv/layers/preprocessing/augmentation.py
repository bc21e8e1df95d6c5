"""Random changes of images in training, by Keras's names: each class is a row of settings for `ops.Augment`."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from pydtconv import ops
from pydtconv.layers import arguments
from pydtconv.layers.preprocessing import image_data, masks_and_boxes
from pydtconv.layers.regularization import RandomLayer
from pydtconv.ops.functions.tables.making import frozen


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
        if isinstance(inputs, Mapping):
            image_data.check_data(self, inputs)
            if self.moves and len(inputs.keys() & {"segmentation_masks", "bounding_boxes"}):
                return masks_and_boxes.moved(self, inputs) if training else masks_and_boxes.unmoved(self, inputs)
            return {**inputs, "images": self.call(inputs["images"], training)}
        if len(inputs.shape) not in (3, 4):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected images (n, h, w, c) or (h, w, c), got shape "
                f"{tuple(inputs.shape)}"
            )
        if not training and not self.always:
            return inputs
        single = len(inputs.shape) == 3
        x = arguments.to_channels_last(ops.expand_dims(inputs, 0) if single else inputs, self.data_format)
        y = ops.Augment(self.kind, self._frozen_settings(), self._seed_of_call())(x)
        y = arguments.from_channels_last(y, self.data_format)
        return ops.squeeze(y, 0) if single else y

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
