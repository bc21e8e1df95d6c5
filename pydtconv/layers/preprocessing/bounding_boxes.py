"""Layers that change the boxes that go with images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv import ops
from pydtconv.layers.base.arguments import positive
from pydtconv.layers.preprocessing.image_data import ImageLayer
from pydtconv.serialization.configurable import builtin


@builtin
class MaxNumBoundingBoxes(ImageLayer):
    """Cuts or fills the boxes of images to max_number, so that images with few and many boxes make one batch.

    Takes {"images": ..., "bounding_boxes": {"boxes": (..., k, 4), "labels": (..., k)}}; all else stays as it is.
    fill_value: what boxes and labels are filled with.  Nothing depends on bounding_box_format and data_format here.
    """

    keeps = ()

    def __init__(self, max_number: int, fill_value: float = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_number = positive("MaxNumBoundingBoxes", "max_number", max_number)
        self.fill_value = fill_value
        self._pydt_needs_no_build()

    def call(self, inputs: Any, training: bool = True) -> Any:
        if not isinstance(inputs, Mapping) or "bounding_boxes" not in inputs:
            return inputs
        return {**inputs, "bounding_boxes": self.transform_bounding_boxes(inputs["bounding_boxes"], None)}

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        given = bounding_boxes
        if not isinstance(given, Mapping) or not {"boxes", "labels"} <= set(given):
            raise ValueError(
                f"MaxNumBoundingBoxes {self.name!r}: bounding_boxes: expected a dict of boxes and labels, got {given!r}"
            )
        return {**given, "boxes": self._sized(given["boxes"], -2), "labels": self._sized(given["labels"], -1)}

    def _sized(self, x: Any, axis: int) -> Any:
        """An array with max_number entries along an axis that is counted from the end."""
        axis += len(x.shape)
        x = x[(slice(None),) * axis + (slice(0, self.max_number),)]
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (0, self.max_number - x.shape[axis])
        return ops.pad(x, widths, constant_values=self.fill_value) if widths[axis][1] else x
