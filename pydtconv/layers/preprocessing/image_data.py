"""Images with what belongs to them: {"images", "labels", "segmentation_masks", "bounding_boxes"}, as in Keras."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.dtypes import FLOATING, real
from pydtconv.layers.base import arguments
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.preprocessing.boxes import clip_to_image_size, convert_format
from pydtconv.serialization.configurable import builtin

ALL = ("images", "labels", "segmentation_masks", "bounding_boxes")
_METHODS = ("get_random_transformation", *(f"transform_{part}" for part in ALL))


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

    def call(self, inputs: Any, training: bool = True) -> Any:
        if isinstance(inputs, Mapping):
            check_data(self, inputs)
        how = self.get_random_transformation(inputs, training)
        if not isinstance(inputs, Mapping):
            return self.transform_images(inputs, how, training)
        parts = {
            "images": self.transform_images,
            "labels": self.transform_labels,
            "segmentation_masks": self.transform_segmentation_masks,
            "bounding_boxes": self.transform_bounding_boxes,
        }
        return {key: parts[key](value, how, training) for key, value in inputs.items()}

    @property
    def _pydt_has_own_methods(self) -> bool:
        """Whether a user's class says what is drawn, or what becomes of it, and `call` has to go by that."""
        return any(not getattr(type(self), name).__module__.startswith("pydtconv.") for name in _METHODS)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """What the `transform_` methods do to images (n, h, w, c) or (h, w, c), or to a dict with them.

        A dict of what was drawn, by Keras's names, and of "input_shape"; None where nothing changes.  seed: an integer,
        a SeedGenerator, or None for the layer's own.
        """
        return {"input_shape": tuple(images_of(data).shape)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """The images after a transformation, in the dtype in which the layer computes."""
        return images

    def transform_labels(self, labels: Any, transformation: Any, training: bool = True) -> Any:
        """The labels of images after a transformation."""
        return labels

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """The masks of images after a transformation; integers stay integers where masks are not mixed."""
        return segmentation_masks

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """{"boxes", "labels"} of images after a transformation, in the layer's format."""
        return bounding_boxes

    def _pydt_autocast_all(self, argument: Any) -> Any:
        if not isinstance(argument, Mapping):
            return super()._pydt_autocast_all(argument)

        def wide(leaf: Any) -> Any:
            return self._pydt_autocast(leaf, _moving_dtype(self))

        exact = ("segmentation_masks", "bounding_boxes")
        return {k: tree.map_structure(wide if k in exact else self._pydt_autocast, v) for k, v in argument.items()}


def images_of(data: Any) -> Any:
    return data["images"] if isinstance(data, Mapping) else data


def arrays_of(layer: Any, data: Any) -> Any:
    """The images of data.  Raises TypeError for tensors, ValueError where they are neither one image nor a batch."""
    images = images_of(data)
    if hasattr(images, "apply_op"):
        raise TypeError(
            f"{type(layer).__name__} {layer.name!r}: get_random_transformation: expected arrays, got {images!r}: where "
            f"code is traced, the layer draws in its own call"
        )
    check_rank(layer, images)
    return images


def check_rank(layer: Any, images: Any) -> None:
    if len(images.shape) not in (3, 4):
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: expected images (n, h, w, c) or (h, w, c), got shape "
            f"{tuple(images.shape)}"
        )


def size_of(layer: Any, shape: Any) -> tuple[int, int]:
    """Height and width of images of a shape."""
    height, width = shape[-3:-1] if layer.data_format == "channels_last" else shape[-2:]
    return height, width


def of_batch(layer: Any, x: Any, change: Callable[[Any], Any]) -> Any:
    """change of a batch (n, h, w, c), for one image, too, in the layer's data_format."""
    single = len(x.shape) == 3
    y = change(arguments.to_channels_last(ops.expand_dims(x, 0) if single else x, layer.data_format))
    y = arguments.from_channels_last(y, layer.data_format)
    return ops.squeeze(y, 0) if single and y.shape[0] == 1 else y


def check_data(layer: Any, data: Mapping[str, Any]) -> None:
    """Raises ValueError for boxes of a layer without a format, and for what else a dict holds."""
    name = type(layer).__name__
    for key in data:
        if key not in ALL:
            raise NotImplementedError(f"{name} {layer.name!r}: expected data of {', '.join(ALL)}, got {key!r}")
    if "bounding_boxes" in data:
        box_format(layer)


def box_format(layer: Any) -> str:
    """The layer's bounding_box_format.  Raises ValueError where it has none."""
    if not layer.bounding_box_format:
        kind = f"{type(layer).__name__} {layer.name!r}"
        raise ValueError(f"{kind}: bounding_boxes: expected bounding_box_format in its arguments")
    found: str = layer.bounding_box_format
    return found


def _with_dtypes(given: Any, found: Any, kept: tuple[str, ...]) -> Any:
    """These parts in the dtypes of the arrays that were given, and labels as they were: calls compute with floats."""
    if not isinstance(given, Mapping) or not isinstance(found, Mapping):
        return found
    labels = given.get("labels")
    if "labels" in kept and isinstance(labels, (np.ndarray, np.generic)) and labels.dtype.kind in "iu":
        found = {**found, "labels": np.array(labels)}
    return {key: as_given(given.get(key), value) if key in kept else value for key, value in found.items()}


def as_given(given: Any, found: Any) -> Any:
    if isinstance(found, Mapping):
        return {k: as_given(given.get(k), value) if k == "labels" else value for k, value in found.items()}
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
    size, kind = size_of(layer, images.shape), _moving_dtype(layer)
    if boxes is not None:
        one = images[..., :1] if last else images[..., :1, :, :]
        parts.append(ops.zeros_like(one, dtype=kind) + places(size, axis))
    moving = ops.concatenate([ops.cast(part, kind) for part in parts], axis=axis)
    pieces = ops.split(move(moving), np.cumsum([p.shape[axis] for p in parts])[:-1].tolist(), axis=axis)
    found = {**data, "images": ops.cast(pieces[0], images.dtype)}
    if masks is not None:
        found["segmentation_masks"] = pieces[1]
    if boxes is not None:
        found["bounding_boxes"] = follow(layer, boxes, size, pieces[-1] if last else ops.moveaxis(pieces[-1], -3, -1))
    return found


def drawn_at_once(layer: Any, inputs: Any, op: Any) -> Any:
    """Images, or data with them, changed by an operator on batches that draws."""
    if isinstance(inputs, Mapping):
        return moved(layer, inputs, lambda images: of_batch(layer, images, op))
    kind = _moving_dtype(layer)
    if inputs.dtype in FLOATING:
        return of_batch(layer, inputs, op)
    return ops.cast(of_batch(layer, ops.cast(inputs, kind), op), inputs.dtype)


def _moving_dtype(layer: Any) -> str:
    """The float in which operators move what the layer computes on."""
    dtype = layer.compute_dtype
    if dtype in FLOATING:
        return real(dtype)
    return "float64" if np.dtype(dtype).itemsize > 2 else "float32"


def moved_boxes(layer: Any, boxes: Any, transformation: Any, move: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Boxes in images that `move` changes by a transformation."""
    size = size_of(layer, transformation["input_shape"])
    last = layer.data_format == "channels_last"
    found = move(places(size, -1 if last else 0)[None], transformation)
    found = found if last else ops.moveaxis(found, 1, -1)
    return follow(layer, boxes, size, found[0] if len(boxes["boxes"].shape) == 2 else found)


def places(size: tuple[int, int], axis: int = -1) -> np.ndarray:
    """The row and the column of each pixel along a further axis."""
    return np.stack(list(np.indices(size, "float32")), axis)


def places_of_all(images: Any, size: tuple[int, int]) -> np.ndarray:
    """The places of the pixels of so many images of another size."""
    return np.stack([places(size)] * (images.shape[0] if len(images.shape) == 4 else 1))


def follow(layer: Any, given: Mapping[str, Any], size: tuple[int, int], places: Any) -> dict[str, Any]:
    """Boxes in images whose pixels come from these places (..., h, w, 2)."""
    h, w = places.shape[-3:-1]
    corners = convert_format(given["boxes"], box_format(layer), "xyxy", *size)
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
