"""Images with what belongs to them: {"images", "labels", "segmentation_masks", "bounding_boxes"}, as in Keras."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.dtypes import real
from pydtconv.layers import arguments
from pydtconv.layers.layer import Layer
from pydtconv.layers.preprocessing.boxes import clip_to_image_size, convert_format
from pydtconv.serialization.configurable import builtin

ALL = ("images", "labels", "segmentation_masks", "bounding_boxes")


@builtin
class ImageLayer(Layer):
    """Base of what takes images with what belongs to them; masks and boxes are not rounded to bfloat16.

    All take data_format and bounding_box_format, whether or not their signature, which is Keras's, shows them.
    """

    #: parts of data that come out as integers where arrays of integers are given
    keeps: tuple[str, ...] = ("labels", "bounding_boxes")

    def __init__(
        self, *, data_format: str | None = None, bounding_box_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = arguments.format_of(type(self).__name__, data_format)
        self.bounding_box_format: Any = bounding_box_format

    def _pydt_own_config(self) -> dict[str, Any]:
        config = super()._pydt_own_config()
        return {k: v for k, v in config.items() if k != "bounding_box_format" or v is not None}

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return _with_dtypes(inputs, super().__call__(inputs, *args, **kwargs), self.keeps)

    def _pydt_autocast_all(self, argument: Any) -> Any:
        if not isinstance(argument, Mapping):
            return super()._pydt_autocast_all(argument)

        def wide(leaf: Any) -> Any:
            return self._pydt_autocast(leaf, real(self.compute_dtype))

        exact = ("segmentation_masks", "bounding_boxes")
        return {k: tree.map_structure(wide if k in exact else self._pydt_autocast, v) for k, v in argument.items()}


def check_data(layer: Any, data: Mapping[str, Any]) -> None:
    """Raises ValueError for boxes of a layer without a format, and for what else a dict holds."""
    name = type(layer).__name__
    for key in data:
        if key not in ALL:
            raise NotImplementedError(f"{name} {layer.name!r}: expected data of {', '.join(ALL)}, got {key!r}")
    if "bounding_boxes" in data and not layer.bounding_box_format:
        raise ValueError(f"{name} {layer.name!r}: bounding_boxes: expected bounding_box_format in its arguments")


def _with_dtypes(given: Any, found: Any, kept: tuple[str, ...]) -> Any:
    """These parts in the dtypes of the arrays that were given, and labels as they were: calls compute with floats."""
    if not isinstance(given, Mapping) or not isinstance(found, Mapping):
        return found
    labels = given.get("labels")
    if "labels" in kept and isinstance(labels, (np.ndarray, np.generic)) and labels.dtype.kind in "iu":
        found = {**found, "labels": np.array(labels)}
    return {key: _as_given(given.get(key), value) if key in kept else value for key, value in found.items()}


def _as_given(given: Any, found: Any) -> Any:
    if isinstance(found, Mapping):
        return {k: _as_given(given.get(k), value) if k == "labels" else value for k, value in found.items()}
    if isinstance(given, np.ndarray) and isinstance(found, np.ndarray) and given.dtype.kind in "iu":
        return found.astype(given.dtype)
    return found


def moved(layer: Any, data: Mapping[str, Any], move: Callable[[Any], Any]) -> dict[str, Any]:
    """Data whose images `move` mirrors, or cuts a window of; masks and boxes follow by the same draw.

    The pixels' places go through `move` as two more channels, and tell what became of each image.
    """
    check_data(layer, data)
    last = layer.data_format == "channels_last"
    axis = -1 if last else -3
    images, masks, boxes = data["images"], data.get("segmentation_masks"), data.get("bounding_boxes")
    parts = [images] if masks is None else [images, masks]
    if boxes is not None:
        height, width = images.shape[-3:-1] if last else images.shape[-2:]
        rows, columns = np.indices((height, width), "float32")
        one = images[..., :1] if last else images[..., :1, :, :]
        stacked = np.stack([rows, columns], axis)
        parts.append(ops.zeros_like(one, dtype=real(layer.compute_dtype)) + stacked)
    moving = ops.concatenate([ops.cast(part, real(layer.compute_dtype)) for part in parts], axis=axis)
    pieces = ops.split(move(moving), np.cumsum([p.shape[axis] for p in parts])[:-1].tolist(), axis=axis)
    found = {**data, "images": ops.cast(pieces[0], images.dtype)}
    if masks is not None:
        found["segmentation_masks"] = pieces[1]
    if boxes is not None:
        places = pieces[-1] if last else ops.moveaxis(pieces[-1], -3, -1)
        found["bounding_boxes"] = _follow(layer, boxes, (height, width), places)
    return found


def _follow(layer: Any, given: Mapping[str, Any], size: tuple[int, int], places: Any) -> dict[str, Any]:
    """Boxes in images whose pixels come from these places (..., h, w, 2)."""
    h, w = places.shape[-3:-1]
    corners = convert_format(given["boxes"], layer.bounding_box_format, "xyxy", *size)
    x1, y1, x2, y2 = (corners[..., i : i + 1] for i in range(4))
    sides = []
    for i, (low, high, extent) in enumerate(((y1, y2, h), (x1, x2, w))):
        first, end = (ops.expand_dims(places[..., at, at, i : i + 1], -1) for at in (0, -1))
        start = ops.minimum(first, end)
        mirrored = first > end
        sides += [ops.where(mirrored, start + extent - high, low - start)]
        sides += [ops.where(mirrored, start + extent - low, high - start)]
    top, bottom, left, right = sides
    return finished(layer, {**given, "boxes": ops.concatenate([left, top, right, bottom], axis=-1)}, (h, w))


def finished(layer: Any, boxes: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """Boxes of corners, cut at the edges of an image of this size, in the layer's format."""
    return finished_as(layer.bounding_box_format, boxes, size)


def finished_as(form: str, boxes: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """Boxes of corners, cut at the edges of an image of this size, in a format."""
    found: dict[str, Any] = convert_format(clip_to_image_size(boxes, *size), "xyxy", form, *size)
    return found
