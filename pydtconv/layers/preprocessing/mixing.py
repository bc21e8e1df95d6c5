"""Images mixed with others of their batch, and their labels with them: MixUp, CutMix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.layers import arguments
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.regularization import RandomLayer
from pydtconv.serialization.budget import claim
from pydtconv.serialization.configurable import builtin


class _Mixing(image_data.ImageLayer, RandomLayer):
    """Base: images (n, h, w, c), or {"images": ..., "labels": one row of scores for each image}.  In training alone."""

    keeps = ()

    def __init__(self, seed: int | None, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(seed=seed, data_format=data_format, **kwargs)
        self._draw = self.own_seed

    def call(self, inputs: Any, training: bool = True) -> Any:
        images = inputs["images"] if isinstance(inputs, Mapping) else inputs
        if isinstance(inputs, Mapping):
            image_data.check_data(self, inputs)
            self._check_boxes(inputs)
        if not training or len(images.shape) == 3:
            return inputs
        if len(images.shape) != 4:
            raise ValueError(f"{type(self).__name__}: expected images (n, h, w, c), got shape {tuple(images.shape)}")
        n = images.shape[0]
        x = arguments.to_channels_last(images, self.data_format)
        self._draw = self._seed_of_call()
        ones = ops.ones_like(x[:, :1, :1, :1])
        order = ops.argsort(ops.reshape(self._uniform(ones), (n,)))
        y, share, how = self._mixed(x, ops.take(x, order, axis=0), ones)
        y = arguments.from_channels_last(y, self.data_format)
        if not isinstance(inputs, Mapping):
            return y
        mixed = {**inputs, "images": y}
        if "labels" in inputs:
            mixed["labels"] = self._labels(inputs["labels"], order, ops.reshape(share, (n, 1)))
        if "bounding_boxes" in inputs:
            mixed["bounding_boxes"] = self._boxes(inputs["bounding_boxes"], order)
        if "segmentation_masks" in inputs:
            masks = arguments.to_channels_last(inputs["segmentation_masks"], self.data_format)
            masks = self._masks(ops.cast(masks, real(self.compute_dtype)), order, how)
            mixed["segmentation_masks"] = arguments.from_channels_last(masks, self.data_format)
        return mixed

    def _labels(self, labels: Any, order: Any, share: Any) -> Any:
        if len(labels.shape) != 2:
            raise ValueError(
                f"{type(self).__name__}: labels: expected one row of scores for each image, such as one-hot "
                f"classes (n, classes), got shape {tuple(labels.shape)}"
            )
        return share * labels + (1.0 - share) * ops.take(labels, order, axis=0)

    def _check_boxes(self, data: Mapping[str, Any]) -> None:
        """Raises NotImplementedError where the layer has no rule for boxes."""

    def _boxes(self, given: Mapping[str, Any], order: Any) -> Mapping[str, Any]:
        raise NotImplementedError

    def _masks(self, masks: Any, order: Any, how: Any) -> Any:
        """how: what `_mixed` mixed the images by."""
        raise NotImplementedError

    def _uniform(self, ones: Any) -> Any:
        """Numbers from 0 to 1, (n, 1, 1, 1)."""
        return ops.Augment("beta", (("alpha", 1.0), ("beta", 1.0)), self._draw)(ones)

    def _mixed(self, x: Any, others: Any, ones: Any) -> tuple[Any, Any, Any]:
        """Mixed images, the share (n, 1, 1, 1) of the first ones, and by what they were mixed."""
        raise NotImplementedError


@builtin
class MixUp(_Mixing):
    """m x + (1 - m) x', m of the beta distribution of alpha and alpha; Zhang et al. (2018).

    Masks are mixed as images are; boxes, and with them their labels, are those of both images.
    """

    def __init__(
        self, alpha: float = 0.2, data_format: str | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        if not alpha > 0:
            raise ValueError(f"MixUp: alpha: expected a number above 0, got {alpha!r}")
        self.alpha = alpha

    def _mixed(self, x: Any, others: Any, ones: Any) -> tuple[Any, Any, Any]:
        share = ops.Augment("beta", (("alpha", self.alpha), ("beta", self.alpha)), self._draw)(ones)
        return share * x + (1.0 - share) * others, share, share

    def _boxes(self, given: Mapping[str, Any], order: Any) -> Mapping[str, Any]:
        others = ops.take(given["boxes"], order, axis=0), ops.take(given["labels"], order, axis=0)
        boxes = ops.concatenate([given["boxes"], others[0]], axis=1)
        return {"boxes": boxes, "labels": ops.concatenate([given["labels"], others[1]], axis=1)}

    def _masks(self, masks: Any, order: Any, how: Any) -> Any:
        return how * masks + (1.0 - how) * ops.take(masks, order, axis=0)


@builtin
class CutMix(_Mixing):
    """A rectangle of another image, of a share of the beta distribution; Yun et al. (2019).

    factor: the distribution's parameters, drawn from (0, factor) or from a range.
    """

    def __init__(
        self, factor: Any = 1.0, seed: int | None = None, data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        low, high = factor if isinstance(factor, (list, tuple)) else (0.0, factor)
        if not 0 <= low <= high <= 1:
            raise ValueError(f"CutMix: factor: expected a number or (lower, upper) between 0 and 1, got {factor!r}")
        self.factor = float(low), float(high)

    def _mixed(self, x: Any, others: Any, ones: Any) -> tuple[Any, Any, Any]:
        _, h, w, _ = x.shape
        settings = (("low", self.factor[0]), ("high", self.factor[1]))
        side = ops.sqrt(1.0 - ops.Augment("beta_between", settings, self._draw)(ones))
        inside: Any = None
        area: Any = 1.0
        for extent, shape in ((h, (1, h, 1, 1)), (w, (1, 1, w, 1))):
            length = side * float(extent)
            first = self._uniform(ones) * (float(extent) - length)
            claim(4 * extent, f"CutMix: images of {extent} pixels")
            places = np.arange(extent, dtype="float32").reshape(shape)
            here = ops.logical_and(ops.less_equal(first, places), ops.greater(first + length, places))
            inside, area = here if inside is None else ops.logical_and(here, inside), length * area
        return ops.where(inside, others, x), 1.0 - area / float(h * w), inside

    def _check_boxes(self, data: Mapping[str, Any]) -> None:
        if "bounding_boxes" in data:
            raise NotImplementedError(f"CutMix {self.name!r}: bounding_boxes: as in Keras, there is no rule for them")

    def _masks(self, masks: Any, order: Any, how: Any) -> Any:
        return ops.where(how, ops.take(masks, order, axis=0), masks)
