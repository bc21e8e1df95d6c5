"""Bounding boxes in the formats of `keras.utils.bounding_boxes`; arrays or tensors (..., 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import ops

__all__ = ["clip_to_image_size", "convert_format", "crop", "pad"]

FORMATS = (
    "xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh",
)  # fmt: skip


def _float(x: Any, dtype: str = "float32") -> Any:
    return ops.cast(x, dtype) if hasattr(x, "apply_op") else np.asarray(x, dtype)


def _columns(boxes: Any) -> list[Any]:
    return [boxes[..., i : i + 1] for i in range(4)]


def _joined(*columns: Any) -> Any:
    if any(hasattr(column, "apply_op") for column in columns):
        return ops.concatenate(list(columns), axis=-1)
    return np.concatenate(columns, axis=-1)


def convert_format(
    boxes: Any, source: str, target: str, height: Any = None, width: Any = None, dtype: str = "float32"
) -> Any:
    """Boxes (..., 4), or a dict that has them under "boxes", from one format to another.

    Formats "rel_..." are shares of the image's height and width, which they need.
    """
    if isinstance(boxes, Mapping):
        return {**boxes, "boxes": convert_format(boxes["boxes"], source, target, height, width, dtype)}
    source, target = source.lower(), target.lower()
    for name in (source, target):
        if name not in FORMATS:
            raise ValueError(f"convert_format: expected one of {', '.join(FORMATS)}, got {name!r}")
    boxes = _float(boxes, dtype)
    if boxes.shape[-1] != 4:
        raise ValueError(f"convert_format: boxes: expected shape (..., 4), got {tuple(boxes.shape)}")
    from_share, to_share = source.startswith("rel_"), target.startswith("rel_")
    if (from_share or to_share) and (height is None or width is None):
        raise ValueError(f"convert_format: expected height and width for {source!r} to {target!r}, got none")
    if source == target:
        return boxes
    corners = _corners(boxes, source.removeprefix("rel_"))
    if from_share != to_share:
        sizes = [width, height, width, height]
        corners = [c * size if from_share else c / size for c, size in zip(corners, sizes, strict=True)]
    return _joined(*_from_corners(corners, target.removeprefix("rel_")))


def _corners(boxes: Any, source: str) -> list[Any]:
    a, b, c, d = _columns(boxes)
    if source in ("yxyx", "center_yxhw"):
        a, b, c, d = b, a, d, c
    if source.startswith("center"):
        return [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0]
    return [a, b, a + c, b + d] if source == "xywh" else [a, b, c, d]


def _from_corners(corners: list[Any], target: str) -> list[Any]:
    a, b, c, d = corners
    if target == "xywh":
        c, d = c - a, d - b
    elif target.startswith("center"):
        a, b, c, d = a + (c - a) / 2.0, b + (d - b) / 2.0, c - a, d - b
    return [b, a, d, c] if target in ("yxyx", "center_yxhw") else [a, b, c, d]


def clip_to_image_size(
    bounding_boxes: Mapping[str, Any], height: Any = None, width: Any = None, bounding_box_format: str = "xyxy"
) -> dict[str, Any]:
    """{"boxes", "labels"} with boxes cut at the image's edges; labels of boxes without an area become -1."""
    if bounding_box_format not in ("xyxy", "rel_xyxy"):
        raise NotImplementedError(f"clip_to_image_size: expected 'xyxy' or 'rel_xyxy', got {bounding_box_format!r}")
    if bounding_box_format == "rel_xyxy":
        height = width = 1.0
    elif height is None or width is None:
        raise ValueError("clip_to_image_size: expected height and width for 'xyxy', got none")
    boxes = _float(bounding_boxes["boxes"])
    most = (width, height, width, height)
    x1, y1, x2, y2 = (ops.clip(c, 0.0, float(limit)) for c, limit in zip(_columns(boxes), most, strict=True))
    found = {**bounding_boxes, "boxes": _joined(x1, y1, x2, y2)}
    labels = bounding_boxes.get("labels")
    if labels is not None:
        seen = ((x2 - x1) * (y2 - y1))[..., 0] > 0
        traced = hasattr(labels, "apply_op") or hasattr(boxes, "apply_op")
        found["labels"] = ops.where(seen, labels, -1.0) if traced else np.where(seen, labels, -1)
    return found


def crop(boxes: Any, top: Any, left: Any, height: Any, width: Any, bounding_box_format: str = "xyxy") -> Any:
    """Boxes as a window of an image sees them."""
    _check_corners("crop", bounding_box_format)
    x1, y1, x2, y2 = _columns(_float(boxes))
    shifted = zip((x1 - left, y1 - top, x2 - left, y2 - top), (width, height, width, height), strict=True)
    return _joined(*(ops.clip(c, 0.0, float(limit)) for c, limit in shifted))


def pad(
    boxes: Any, top: Any, left: Any, height: Any = None, width: Any = None, bounding_box_format: str = "xyxy"
) -> Any:
    """Boxes in an image that has more rows above and columns before."""
    _check_corners("pad", bounding_box_format)
    x1, y1, x2, y2 = _columns(_float(boxes))
    return _joined(x1 + left, y1 + top, x2 + left, y2 + top)


def _check_corners(name: str, bounding_box_format: str) -> None:
    if bounding_box_format != "xyxy":
        raise NotImplementedError(f"{name}: expected bounding_box_format 'xyxy', got {bounding_box_format!r}")
