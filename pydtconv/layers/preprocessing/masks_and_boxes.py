"""Masks and boxes that follow images whose pixels a layer moves: by the same draw, as Keras computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.layers.base import arguments
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.preprocessing.boxes import clip_to_image_size, convert_format
from pydtconv.ops.augment_policies import CODES, PER_CHANGE

Boxes = Mapping[str, Any]
#: how many numbers a kind draws for an image
_COUNTS = {"rotation": 1, "translation": 2, "zoom": 2, "shear": 2, "perspective": 10}


def unmoved(layer: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Data outside of training."""
    _check_boxes(layer, data)
    return dict(data)


def _check_boxes(layer: Any, data: Mapping[str, Any]) -> None:
    if "bounding_boxes" in data:
        check_boxes(layer)


def check_boxes(layer: Any) -> None:
    """Raises NotImplementedError where the layer has no rule for boxes."""
    if layer.kind == "elastic":
        raise NotImplementedError(
            f"RandomElasticTransform {layer.name!r}: bounding_boxes: as in Keras, there is no rule"
        )


def moved(layer: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Data whose images the layer moves; the numbers that it draws are as many more channels, by which boxes follow."""
    _check_boxes(layer, data)
    single = len(data["images"].shape) == 3
    images, masks, numbers = _drawn(layer, data, single)
    found = {**data, "images": ops.squeeze(images, 0) if single else images}
    if masks is not None:
        found["segmentation_masks"] = ops.squeeze(masks, 0) if single else masks
    if numbers is not None:
        found["bounding_boxes"] = followed(
            layer, data["bounding_boxes"], numbers, image_data.size_of(layer, images.shape)
        )
    return found


def _drawn(layer: Any, data: Mapping[str, Any], single: bool) -> tuple[Any, Any, Any]:
    """Images and masks with an axis of images, and the numbers (n, k) by which boxes follow, None where they do not."""

    def batch(x: Any) -> Any:
        x = ops.cast(ops.expand_dims(x, 0) if single else x, real(layer.compute_dtype))
        return arguments.to_channels_last(x, layer.data_format)

    masks, count = data.get("segmentation_masks"), 0
    parts = [batch(data["images"])] + ([] if masks is None else [batch(masks)])
    if "bounding_boxes" in data:
        count = layer.num_ops * PER_CHANGE if layer.kind == "rand_augment" else _COUNTS.get(layer.kind, 0)
    channels = parts[0].shape[-1]
    parts += [ops.zeros_like(parts[0][..., :1])] * count
    settings = (
        ("kind", layer.kind),
        ("settings", layer._frozen_settings()),
        ("channels", channels),
        ("numbers", count),
    )
    x = ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
    y = ops.Augment("with_masks", settings, layer._seed_of_call())(x)
    end = y.shape[-1] - count
    images = arguments.from_channels_last(y[..., :channels], layer.data_format)
    changed = None if masks is None else arguments.from_channels_last(y[..., channels:end], layer.data_format)
    return images, changed, y[:, 0, 0, end:] if count else None


def followed(layer: Any, boxes: Boxes, numbers: Any, size: Sequence[int]) -> dict[str, Any]:
    """Boxes (n, k, 4), or (k, 4) of one image, moved by the numbers (n, m) that the layer drew for images of a size."""
    if len(boxes["boxes"].shape) == 2:
        batch = followed(layer, {key: ops.expand_dims(value, 0) for key, value in boxes.items()}, numbers, size)
        return {key: ops.squeeze(value, 0) for key, value in batch.items()}
    form = image_data.box_format(layer)
    if layer.kind != "rand_augment":
        return _FOLLOW[layer.kind](boxes, _columns(numbers), form, *size)
    found = dict(boxes)
    columns = _columns(numbers)
    for first in range(0, len(columns), PER_CHANGE):
        code, *own = columns[first : first + PER_CHANGE]
        changes = {kind: _FOLLOW[kind](found, own, form, *size) for kind in CODES}
        for kind, changed in changes.items():
            here = ops.equal(code, float(CODES[kind]))
            found["boxes"] = ops.where(here, changed["boxes"], found["boxes"])
            if "labels" in found:
                found["labels"] = ops.where(here[..., 0], changed["labels"], found["labels"])
    return found


def _columns(numbers: Any) -> list[Any]:
    """(n, 1, 1) each."""
    return [ops.expand_dims(numbers[:, i : i + 1], -1) for i in range(numbers.shape[1])]


def _corners(boxes: Any) -> list[Any]:
    return [boxes[..., i : i + 1] for i in range(4)]


def _around(boxes: Boxes, places: Callable[[Any, Any], tuple[Any, Any]]) -> dict[str, Any]:
    """The boxes around the places of all four corners."""
    x1, y1, x2, y2 = _corners(boxes["boxes"])
    xs, ys = zip(*(places(x, y) for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))), strict=True)
    sides = []
    for take in (ops.minimum, ops.maximum):
        sides += [take(take(a, b), take(c, d)) for a, b, c, d in (xs, ys)]
    return {**boxes, "boxes": ops.concatenate(sides, axis=-1)}


def _rotated(boxes: Boxes, numbers: Sequence[Any], form: str, height: int, width: int) -> dict[str, Any]:
    """Keras takes boxes of any format for corners here, and so does this."""
    angle = numbers[0] * (math.pi / 180)
    cosine, sine, cx, cy = ops.cos(angle), ops.sin(angle), (width - 1) / 2, (height - 1) / 2

    def places(x: Any, y: Any) -> tuple[Any, Any]:
        return cosine * (x - cx) + sine * (y - cy) + cx, cosine * (y - cy) - sine * (x - cx) + cy

    return image_data.finished_as(form, _around(boxes, places), (height, width))


def _translated(boxes: Boxes, numbers: Sequence[Any], form: str, height: int, width: int) -> dict[str, Any]:
    shift = ops.concatenate([numbers[0], numbers[1]] * 2, axis=-1)
    corners = convert_format(boxes, form, "xyxy", height, width)
    return image_data.finished_as(form, {**corners, "boxes": corners["boxes"] + shift}, (height, width))


def _zoomed(boxes: Boxes, numbers: Sequence[Any], form: str, height: int, width: int) -> dict[str, Any]:
    """Boxes as shares of what is seen of the image."""
    corners = convert_format(boxes, form, "xyxy", height, width)
    shares: list[Any] = []
    for at, (extent, zoom) in enumerate(((width, numbers[0]), (height, numbers[1]))):
        start = (1.0 - zoom) * ((extent - 1) / 2)
        for side in _corners(corners["boxes"])[at::2]:
            inside = ops.minimum(ops.maximum(side, start), start + zoom * float(extent))
            shares.append((inside - start) / (zoom * float(extent)))
    joined = ops.concatenate([shares[i] for i in (0, 2, 1, 3)], axis=-1)
    clipped = clip_to_image_size({**corners, "boxes": joined}, bounding_box_format="rel_xyxy")
    found: dict[str, Any] = convert_format(clipped, "rel_xyxy", form, height, width)
    return found


def _sheared(boxes: Boxes, numbers: Sequence[Any], form: str, height: int, width: int) -> dict[str, Any]:
    """By shares of the image's sides, as in Keras, whatever its aspect."""
    across, down = numbers[:2]
    given = convert_format(boxes, form, "rel_xyxy", height, width)
    x1, y1, x2, y2 = _corners(given["boxes"])
    left, right = across < 0, down > 0
    x1, x2 = (
        ops.where(left, x1 - across * y1, x1 - across * y2),
        ops.where(left, x2 - across * y2, x2 - across * y1),
    )
    y1, y2 = (
        ops.where(right, y1 - down * x2, y1 - down * x1),
        ops.where(right, y2 - down * x1, y2 - down * x2),
    )
    moved_boxes = {**given, "boxes": ops.concatenate([x1, y1, x2, y2], axis=-1)}
    clipped = clip_to_image_size(moved_boxes, bounding_box_format="rel_xyxy")
    found: dict[str, Any] = convert_format(clipped, "rel_xyxy", form, height, width)
    return found


def _viewed(boxes: Boxes, numbers: Sequence[Any], form: str, height: int, width: int) -> dict[str, Any]:
    """Keras gives corners here, whatever the format, and so does this."""
    apply, *m = numbers
    corners = convert_format(boxes, form, "xyxy", height, width)

    def places(x: Any, y: Any) -> tuple[Any, Any]:
        depth = m[6] * x + m[7] * y + m[8]
        return (m[0] * x + m[1] * y + m[2]) / depth, (m[3] * x + m[4] * y + m[5]) / depth

    seen = ops.where(apply > 0.5, _around(corners, places)["boxes"], corners["boxes"])
    return clip_to_image_size({**corners, "boxes": seen}, height, width)


_FOLLOW: dict[str, Callable[..., dict[str, Any]]] = {
    "perspective": _viewed,
    "rotation": _rotated,
    "shear": _sheared,
    "translation": _translated,
    "zoom": _zoomed,
}
