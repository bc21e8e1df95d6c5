"""`tf.image`: boxes (y1, x1, y2, x2) in images: which ones stay, what is cut out, what is drawn.  Of arrays alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.random import number_of
from pydtconv.support.random import next_seed


def _overlaps(boxes: Any) -> np.ndarray:
    """The shared area of each two boxes over that of both together: (n, n)."""
    corners = np.asarray(boxes, "float64")
    low, high = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    area = np.prod(high - low, axis=1)
    shared = np.prod(np.maximum(np.minimum(high[:, None], high) - np.maximum(low[:, None], low), 0), axis=2)
    union = area[:, None] + area - shared
    return np.divide(
        shared, union, out=np.zeros_like(shared), where=(union > 0) & (np.minimum(area[:, None], area) > 0)
    )


def _suppressed(
    overlaps: np.ndarray, scores: Any, count: Any, iou_threshold: float, score_threshold: float, sigma: float = 0.0
) -> tuple[list[int], list[float]]:
    """The boxes that stay, the best one first, and their scores, which those of soft suppression have become."""
    score = np.array(scores, "float32").reshape(-1)
    left = score > score_threshold
    kept: list[int] = []
    values: list[float] = []
    while left.any() and len(kept) < int(count):
        best = int(np.argmax(np.where(left, score, -np.inf)))
        kept.append(best)
        values.append(float(score[best]))
        left[best] = False
        shared = overlaps[best]
        if sigma > 0:
            score = (score * np.exp(-0.5 / sigma * shared**2)).astype("float32")
        left &= (shared <= iou_threshold) & (score > score_threshold)
    return kept, values


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    name: str | None = None,
) -> Any:
    """The places of the boxes (y1, x1, y2, x2) of the highest scores, without those that overlap better ones more."""
    return non_max_suppression_overlaps(_overlaps(boxes), scores, max_output_size, iou_threshold, score_threshold)


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    name: str | None = None,
) -> Any:
    """The same of overlaps (n, n) that are known."""
    kept, _ = _suppressed(np.asarray(overlaps), scores, max_output_size, overlap_threshold, score_threshold)
    return array(np.asarray(kept, "int32"))


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    soft_nms_sigma: float = 0.0,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Places and scores; with a sigma scores fall by overlaps: Bodla et al., 2017."""
    found = _suppressed(_overlaps(boxes), scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    return array(np.asarray(found[0], "int32")), array(np.asarray(found[1], "float32"))


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Any, Any]:
    """Places, with zeros behind where that is asked, and how many there are."""
    found = np.asarray(non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold))
    missing = int(max_output_size) - len(found) if pad_to_max_output_size else 0
    return array(np.pad(found, (0, missing))), array(len(found), "int32")


class CombinedNMS(NamedTuple):
    """What `combined_non_max_suppression` gives of each image: (b, n, 4), (b, n), (b, n), (b,)."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNMS:
    """Of boxes (b, n, 1 or classes, 4) and scores (b, n, classes): the best of all classes, zeros behind."""
    corners, score = np.asarray(boxes, "float32"), np.asarray(scores, "float32")
    classes, total = score.shape[2], int(max_total_size)
    if corners.shape[2] not in (1, classes):
        raise ValueError(f"boxes: expected (b, n, 1 or {classes}, 4), got {corners.shape}")
    if pad_per_class:
        total = min(total, int(max_output_size_per_class) * classes)
    found = np.zeros((len(corners), total, 6), "float32")
    counts = np.zeros(len(corners), "int32")
    for b, each in enumerate(corners):
        rows = []
        for c in range(classes):
            own = each[:, c if corners.shape[2] > 1 else 0]
            kept, values = _suppressed(
                _overlaps(own), score[b, :, c], max_output_size_per_class, iou_threshold, score_threshold
            )
            rows += [(*own[place], value, c) for place, value in zip(kept, values, strict=True)]
        rows = sorted(rows, key=lambda row: -row[4])[:total]
        counts[b] = len(rows)
        if rows:
            found[b, : len(rows)] = rows
    shown = np.clip(found[..., :4], 0, 1) if clip_boxes else found[..., :4]
    return CombinedNMS(*(array(part) for part in (shown, found[..., 4], found[..., 5], counts)))


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = 0,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """A part of an image at random, as begin (3,) and size (3,) of `tf.slice`, and as a box (1, 1, 4).

    It has such a share of a box, such a ratio of width to height and such a share of the area; where no attempt
    finds one, it is the whole image.
    """
    h, w = (int(n) for n in np.asarray(image_size)[:2])
    given = np.asarray(bounding_boxes, "float64").reshape(-1, 4)
    if not len(given) and not use_image_if_no_bounding_boxes:
        raise ValueError("bounding_boxes: expected one or more (or use_image_if_no_bounding_boxes=True), got none")
    given = given if len(given) else np.asarray([[0.0, 0.0, 1.0, 1.0]])
    low, high = (0.05, 1.0) if area_range is None else (float(n) for n in area_range)
    least, most = (0.75, 1.33) if aspect_ratio_range is None else (float(n) for n in aspect_ratio_range)
    rng = np.random.default_rng(seed or next_seed())
    box = np.asarray([0, 0, h, w])
    for _ in range(100 if max_attempts is None else int(max_attempts)):
        ratio, area = rng.uniform(least, most), rng.uniform(low, high) * h * w
        rows, columns = round((area / ratio) ** 0.5), round((area * ratio) ** 0.5)
        if not (0 < rows <= h and 0 < columns <= w):
            continue
        top, left = rng.integers(h - rows + 1), rng.integers(w - columns + 1)
        part = np.asarray([top, left, top + rows, left + columns])
        if _covered(part / (h, w, h, w), given, float(min_object_covered)):
            box = part
            break
    begin, size = [*box[:2], 0], [*(box[2:] - box[:2]), -1]
    shown = (box / (h, w, h, w)).reshape(1, 1, 4)
    return array(np.asarray(begin, "int32")), array(np.asarray(size, "int32")), array(shown, "float32")


def _covered(part: np.ndarray, boxes: np.ndarray, share: float) -> bool:
    """Whether a part has such a share of one of the boxes."""
    shared = np.maximum(np.minimum(part[2:], boxes[:, 2:]) - np.maximum(part[:2], boxes[:, :2]), 0).prod(1)
    return bool((shared >= share * np.maximum((boxes[:, 2:] - boxes[:, :2]).prod(1), 1e-12)).any())


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Any:
    """Images (n, h, w, c) with the borders of boxes (n, boxes, 4) in colors (k, c), which are taken in turn."""
    found = np.array(images)
    h, w = found.shape[1:3]
    palette = np.asarray([[1.0, 1.0, 0.0, 1.0]] if colors is None or not len(colors) else colors, found.dtype)
    for image, own in zip(found, np.asarray(boxes), strict=True):
        for i, box in enumerate(own):
            color = palette[i % len(palette)][: image.shape[-1]]
            top, left, bottom, right = (int(v * (n - 1)) for v, n in zip(box, (h, w, h, w), strict=True))
            if top > bottom or left > right or top >= h or bottom < 0 or left >= w or right < 0:
                continue
            rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
            for row in (top, bottom):
                if 0 <= row < h:
                    image[row, columns] = color
            for column in (left, right):
                if 0 <= column < w:
                    image[rows, column] = color
    return array(found)


def table() -> dict[str, Any]:
    """The names that stand here."""
    own = (
        non_max_suppression, non_max_suppression_overlaps, non_max_suppression_with_scores, non_max_suppression_padded,
        combined_non_max_suppression, sample_distorted_bounding_box, draw_bounding_boxes,
    )  # fmt: skip
    return {each.__name__: each for each in own} | {
        "stateless_sample_distorted_bounding_box": lambda image_size, bounding_boxes, seed, *args, **kwargs: (
            sample_distorted_bounding_box(image_size, bounding_boxes, number_of(seed), *args, **kwargs)
        )
    }
