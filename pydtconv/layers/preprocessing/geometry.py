"""Random changes of images that move their pixels, or replace some; and Resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.images.steps import FILL_MODES
from pydtconv.layers.base import arguments
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.preprocessing.augmentation import Augmentation
from pydtconv.layers.preprocessing.boxes import clip_to_image_size, convert_format
from pydtconv.serialization.configurable import builtin


class _Moved(Augmentation):
    """Of those that move pixels: how places between and outside of pixels are filled."""

    moves = True

    def _filling(self, fill_mode: str, interpolation: str, fill_value: float) -> None:
        name = type(self).__name__
        self.fill_mode = arguments.choice(name, "fill_mode", fill_mode, FILL_MODES)
        self.interpolation = arguments.choice(name, "interpolation", interpolation, ("bilinear", "nearest"))
        self.fill_value = fill_value

    def _filled(self, **more: Any) -> dict[str, Any]:
        filling = {"interpolation": self.interpolation, "fill_mode": self.fill_mode, "fill_value": self.fill_value}
        return {**more, **filling}


@builtin
class RandomRotation(_Moved):
    """Turned by a share of a full turn: from -factor to factor, or a range."""

    kind = "rotation"

    def __init__(
        self,
        factor: Any,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self._filling(fill_mode, interpolation, fill_value)
        self.factor = self._range("factor", factor)

    def _settings(self) -> dict[str, Any]:
        return self._filled(factor=self.factor)


@builtin
class RandomTranslation(_Moved):
    """Moved by shares of height and width."""

    kind = "translation"

    def __init__(
        self,
        height_factor: Any,
        width_factor: Any,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self._filling(fill_mode, interpolation, fill_value)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._height = self._range("height_factor", height_factor)
        self._width = self._range("width_factor", width_factor)

    def _settings(self) -> dict[str, Any]:
        return self._filled(height=self._height, width=self._width)


@builtin
class RandomZoom(_Moved):
    """Larger (negative factors) or smaller; width_factor None: the same as the height's."""

    kind = "zoom"

    def __init__(
        self,
        height_factor: Any,
        width_factor: Any = None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self._filling(fill_mode, interpolation, fill_value)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._height = self._range("height_factor", height_factor, most=float("inf"))
        self._width = None if width_factor is None else self._range("width_factor", width_factor, most=float("inf"))

    def _settings(self) -> dict[str, Any]:
        return self._filled(height=self._height, width=self._width)


@builtin
class RandomShear(_Moved):
    """Rows moved along x by up to x_factor of their distance from the top, columns along y."""

    kind = "shear"

    def __init__(
        self,
        x_factor: Any = 0.0,
        y_factor: Any = 0.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self._filling(fill_mode, interpolation, fill_value)
        self.x_factor, self.y_factor = self._range("x_factor", x_factor), self._range("y_factor", y_factor)

    def _settings(self) -> dict[str, Any]:
        return self._filled(x_factor=self.x_factor, y_factor=self.y_factor)


@builtin
class RandomPerspective(Augmentation):
    """Seen from the side: corners moved by up to half of `scale`, with a probability of factor."""

    kind = "perspective"
    moves = True

    def __init__(
        self,
        factor: Any = 1.0,
        scale: float = 1.0,
        interpolation: str = "bilinear",
        fill_value: float = 0.0,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.factor = self._range("factor", factor, 0.0, mirrored=False)
        if not 0 <= scale <= 1:
            raise ValueError(f"RandomPerspective: scale: expected a number from 0 to 1, got {scale!r}")
        kinds = ("bilinear", "nearest")
        self.interpolation = arguments.choice("RandomPerspective", "interpolation", interpolation, kinds)
        self.scale, self.fill_value = float(scale), fill_value

    def _settings(self) -> dict[str, Any]:
        own = {"factor": self.factor, "scale": self.scale}
        return {**own, "interpolation": self.interpolation, "fill_value": self.fill_value}


@builtin
class RandomElasticTransform(_Moved):
    """Pixels moved by smoothed noise of a strength from the range of `scale`, with a probability of factor."""

    kind = "elastic"

    def __init__(
        self,
        factor: Any = 1.0,
        scale: Any = 1.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self._filling(fill_mode, interpolation, fill_value)
        self.factor = self._range("factor", factor, 0.0, mirrored=False)
        self.scale = self._range("scale", scale, 0.0, mirrored=False)
        self.value_range = value_range

    def _settings(self) -> dict[str, Any]:
        return self._filled(factor=self.factor, scale=self.scale, value_range=self.value_range)


@builtin
class RandomErasing(Augmentation):
    """A rectangle of a share `scale` of the image filled with a value or noise, with a probability of factor."""

    kind = "erasing"

    def __init__(
        self,
        factor: Any = 1.0,
        scale: Any = (0.02, 0.33),
        fill_value: float | None = None,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.factor = self._range("factor", factor, 0.0, mirrored=False)
        self.scale = self._range("scale", scale, 0.0, mirrored=False)
        self.fill_value, self.value_range = fill_value, value_range

    def _settings(self) -> dict[str, Any]:
        own = {"factor": self.factor, "scale": self.scale, "fill_value": self.fill_value}
        return {**own, "value_range": self.value_range}


@builtin
class Resizing(image_data.ImageLayer):
    """Images of height x width; see `ops.image.resize`.

    Of a dict, segmentation masks are resized to the nearest pixels, and boxes with the images.
    """

    keeps = (*image_data.ImageLayer.keeps, "segmentation_masks")

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format=data_format, **kwargs)
        self.height = arguments.positive("Resizing", "height", height)
        self.width = arguments.positive("Resizing", "width", width)
        self.interpolation = interpolation
        self.crop_to_aspect_ratio, self.pad_to_aspect_ratio = crop_to_aspect_ratio, pad_to_aspect_ratio
        self.fill_mode, self.fill_value, self.antialias = fill_mode, fill_value, antialias
        self._pydt_needs_no_build()

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        return self._resized(images, self.interpolation)

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        return self._resized(segmentation_masks, "nearest")

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Boxes of zeros or of -1 stand for none."""
        given, (height, width) = bounding_boxes, image_data.size_of(self, transformation["input_shape"])
        form = image_data.box_format(self)
        boxes, down, across = given["boxes"], self.height / height, self.width / width
        if self.pad_to_aspect_ratio or self.crop_to_aspect_ratio:
            down = across = min(down, across) if self.pad_to_aspect_ratio else max(down, across)
        y0, x0 = (
            (side - extent * r) // 2 if self.pad_to_aspect_ratio else -((extent * r - side) // 2)
            for side, extent, r in ((self.height, height, down), (self.width, width, across))
        )
        corners = convert_format(boxes, form, "xyxy", height, width)
        scale, shift = np.array([across, down] * 2, "float32"), np.array([x0, y0] * 2, "float32")
        none = ops.logical_or(ops.all(boxes == -1, axis=-1, keepdims=True), ops.all(boxes == 0, axis=-1, keepdims=True))
        size = self.height, self.width
        clipped = clip_to_image_size({**given, "boxes": corners * scale + shift}, *size)
        clipped["boxes"] = ops.where(none, 0.0, clipped["boxes"])
        found: dict[str, Any] = convert_format(clipped, "xyxy", form, *size)
        return found

    def _resized(self, images: Any, interpolation: str) -> Any:
        return ops.image.resize(
            images,
            (self.height, self.width),
            interpolation,
            self.antialias,
            self.crop_to_aspect_ratio,
            self.pad_to_aspect_ratio,
            self.fill_mode,
            self.fill_value,
            self.data_format,
        )
