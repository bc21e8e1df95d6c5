"""Images mixed with others of their batch, and their labels with them: MixUp, CutMix."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.layers.base import arguments
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.regularization import RandomLayer
from pydtconv.serialization.budget import claim
from pydtconv.serialization.configurable import builtin


class _Mixing(image_data.ImageLayer, RandomLayer):
    """Base: images (n, h, w, c), or {"images": ..., "labels": one row of scores for each image}.  In training alone."""

    keeps: tuple[str, ...] = ()

    def __init__(self, seed: int | None, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(seed=seed, data_format=data_format, **kwargs)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        images = image_data.images_of(data)
        if not training or len(images.shape) == 3:
            return None
        if len(images.shape) != 4:
            raise ValueError(f"{type(self).__name__}: expected images (n, h, w, c), got shape {tuple(images.shape)}")
        seeds = itertools.count(self._seed_of_call(seed))
        ones = ops.ones_like(images[:, :1, :1, :1], dtype=real(self.compute_dtype))
        order = ops.argsort(ops.reshape(self._uniform(ones, seeds), (images.shape[0],)))
        drawn = self._drawn(ones, image_data.size_of(self, images.shape), seeds)
        return {"permutation_order": order, **drawn, "input_shape": tuple(images.shape)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        found = ops.cast(images, self.compute_dtype)
        if transformation is None or not training:
            return found
        return ops.cast(self._mixed(found, transformation), self.compute_dtype)

    def transform_labels(self, labels: Any, transformation: Any, training: bool = True) -> Any:
        if transformation is None or not training:
            return labels
        if len(labels.shape) != 2:
            raise ValueError(
                f"{type(self).__name__}: labels: expected one row of scores for each image, such as one-hot "
                f"classes (n, classes), got shape {tuple(labels.shape)}"
            )
        share = ops.reshape(transformation["mix_weight"], (-1, 1))
        return share * labels + (1.0 - share) * _others(labels, transformation)

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        keeps = transformation is None or not training
        return segmentation_masks if keeps else self._mixed(segmentation_masks, transformation)

    def _mixed(self, x: Any, transformation: Mapping[str, Any]) -> Any:
        """Images or masks with those of others."""
        raise NotImplementedError

    def _drawn(self, ones: Any, size: tuple[int, int], seeds: Iterator[int]) -> dict[str, Any]:
        """What is drawn beside the order; ones: (n, 1, 1, 1)."""
        raise NotImplementedError

    def _uniform(self, ones: Any, seeds: Iterator[int]) -> Any:
        """Numbers from 0 to 1, (n, 1, 1, 1)."""
        return ops.Augment("beta", (("alpha", 1.0), ("beta", 1.0)), next(seeds))(ones)


def _others(x: Any, transformation: Mapping[str, Any]) -> Any:
    return ops.take(x, transformation["permutation_order"], axis=0)


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

    def _drawn(self, ones: Any, size: tuple[int, int], seeds: Iterator[int]) -> dict[str, Any]:
        return {"mix_weight": ops.Augment("beta", (("alpha", self.alpha), ("beta", self.alpha)), next(seeds))(ones)}

    def _mixed(self, x: Any, transformation: Mapping[str, Any]) -> Any:
        share = ops.reshape(transformation["mix_weight"], (-1, 1, 1, 1))
        return share * x + (1.0 - share) * _others(x, transformation)

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        if transformation is None or not training:
            return bounding_boxes
        both = {key: [value, _others(value, transformation)] for key, value in bounding_boxes.items()}
        return {key: ops.concatenate(values, axis=min(1, len(values[0].shape) - 1)) for key, values in both.items()}


@builtin
class CutMix(_Mixing):
    """A rectangle of another image, of a share of the beta distribution; Yun et al. (2019).

    factor: the distribution's parameters, drawn from (0, factor) or from a range.
    """

    keeps = ("segmentation_masks",)

    def __init__(
        self, factor: Any = 1.0, seed: int | None = None, data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        low, high = factor if isinstance(factor, (list, tuple)) else (0.0, factor)
        if not 0 <= low <= high <= 1:
            raise ValueError(f"CutMix: factor: expected a number or (lower, upper) between 0 and 1, got {factor!r}")
        self.factor = float(low), float(high)

    def _drawn(self, ones: Any, size: tuple[int, int], seeds: Iterator[int]) -> dict[str, Any]:
        h, w = size
        settings = (("low", self.factor[0]), ("high", self.factor[1]))
        side = ops.sqrt(1.0 - ops.Augment("beta_between", settings, next(seeds))(ones))
        inside: Any = None
        area: Any = 1.0
        for extent, shape in ((h, (1, h, 1, 1)), (w, (1, 1, w, 1))):
            length = side * float(extent)
            first = self._uniform(ones, seeds) * (float(extent) - length)
            claim(4 * extent, f"CutMix: images of {extent} pixels")
            places = np.arange(extent, dtype="float32").reshape(shape)
            here = ops.logical_and(ops.less_equal(first, places), ops.greater(first + length, places))
            inside, area = here if inside is None else ops.logical_and(here, inside), length * area
        masks = arguments.from_channels_last(inside, self.data_format)
        return {"batch_masks": masks, "mix_weight": 1.0 - area / float(h * w)}

    def _mixed(self, x: Any, transformation: Mapping[str, Any]) -> Any:
        return ops.where(transformation["batch_masks"], _others(x, transformation), x)

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        raise NotImplementedError(f"CutMix {self.name!r}: bounding_boxes: as in Keras, there is no rule for them")
