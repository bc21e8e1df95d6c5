"""Random changes of images in training, by Keras's names: each class is a row of settings for `ops.Augment`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydtconv import ops
from pydtconv.layers import arguments, image_data
from pydtconv.layers.layer import Layer
from pydtconv.layers.regularization import RandomLayer
from pydtconv.ops.functions.tables.making import frozen

#: what data of a dict may hold that changes which move pixels know what to do with
DATA = ("images", "labels")


def check_data(layer: Layer, data: Any, known: Sequence[str]) -> None:
    """Raises NotImplementedError for parts of a dict that a change of its images would have to change, too."""
    for name in data if isinstance(data, Mapping) else ():
        if name not in known:
            raise NotImplementedError(
                f"{type(layer).__name__} {layer.name!r}: expected data of {' and '.join(known)}, got {name!r}"
            )


class Augmentation(RandomLayer):
    """Base: `kind` is that of ops.Augment, `_settings()` its arguments.  Active in training and on arrays.

    Images (n, h, w, c) or (h, w, c), or {"images": ..., "labels": ...}, of which the labels stay as they are, and so do
    "segmentation_masks" and "bounding_boxes" where no pixel moves.
    """

    kind = ""
    #: whether it acts outside of training, too
    always = False
    #: whether pixels move, and masks and boxes with them
    moves = False

    def __init__(self, seed: int | None, data_format: str | None, **kwargs: Any) -> None:
        image_data.take_format(self, kwargs)
        super().__init__(seed, **kwargs)
        self.data_format = arguments.format_of(type(self).__name__, data_format)

    def _own_config(self) -> dict[str, Any]:
        return {**super()._own_config(), **image_data.format_config(self)}

    def _settings(self) -> dict[str, Any]:
        raise NotImplementedError

    def call(self, inputs: Any, training: bool = True) -> Any:
        if isinstance(inputs, Mapping):
            if self.moves:
                check_data(self, inputs, DATA)
            else:
                image_data.check_data(self, inputs)
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
        settings = tuple((key, frozen(value)) for key, value in self._settings().items())
        y = arguments.from_channels_last(ops.Augment(self.kind, settings, self._seed_of_call())(x), self.data_format)
        return ops.squeeze(y, 0) if single else y

    def _range(self, name: str, factor: Any, least: float = -1.0, most: float = 1.0, mirrored: bool = True) -> Any:
        """factor as (lower, upper): a number is (-factor, factor), or (0, factor) where not mirrored."""
        pair = isinstance(factor, (list, tuple))
        low, high = factor if pair else (-abs(factor) if mirrored else 0.0, abs(factor))
        if (pair and len(factor) != 2) or not least <= low <= high <= most:
            raise ValueError(
                f"{type(self).__name__}: {name}: expected a number or (lower, upper) between {least} and {most}, got "
                f"{factor!r}"
            )
        return float(low), float(high)
