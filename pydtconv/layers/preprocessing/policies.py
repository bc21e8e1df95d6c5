"""Changes of images by their histograms, and random choices among changes: RandAugment, AugMix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv.layers.base import arguments
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.preprocessing.augmentation import Augmentation
from pydtconv.layers.preprocessing.colour import (
    RandomBrightness,
    RandomColorDegeneration,
    RandomContrast,
    RandomHue,
    RandomPosterization,
    RandomSaturation,
    RandomSharpness,
    Solarization,
)
from pydtconv.layers.preprocessing.geometry import RandomRotation, RandomShear, RandomTranslation
from pydtconv.serialization.configurable import builtin


@builtin
class AutoContrast(Augmentation):
    """Each channel of each image stretched to the whole range, in training and outside of it."""

    kind = "auto_contrast"
    always = True

    def __init__(self, value_range: Sequence[float] = (0, 255), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.value_range = value_range

    def _settings(self) -> dict[str, Any]:
        return {"value_range": self.value_range}


@builtin
class Equalization(Augmentation):
    """Values by their rank among all values of their channel in the batch, in so many bins."""

    kind = "equalization"

    def __init__(
        self, value_range: Sequence[float] = (0, 255), bins: int = 256, data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(data_format=data_format, **kwargs)
        self.value_range, self.bins = value_range, arguments.positive("Equalization", "bins", bins)

    def _settings(self) -> dict[str, Any]:
        return {"value_range": self.value_range, "bins": self.bins}


@builtin
class ContrastLimitedAdaptiveHistogramEqualization(Augmentation):
    """Channels by the histograms of tile_grid_size (rows, columns) tiles, in training and outside of it (CLAHE).

    clip_limit: how often a value may occur in a tile, as a multiple of the mean of 256 values; 0 for no limit.
    """

    kind = "clahe"
    always = True

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        clip_limit: float = 4.0,
        tile_grid_size: Sequence[int] = (8, 8),
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(data_format=data_format, **kwargs)
        name = type(self).__name__
        self.value_range, self.clip_limit = value_range, clip_limit
        if clip_limit < 0:
            raise ValueError(f"{name}: clip_limit: expected a number of at least 0, got {clip_limit!r}")
        if len(tile_grid_size) != 2:
            raise ValueError(f"{name}: tile_grid_size: expected (rows, columns), got {tile_grid_size!r}")
        self.tile_grid_size = tuple(arguments.positive(name, "tile_grid_size", size) for size in tile_grid_size)

    def _settings(self) -> dict[str, Any]:
        return {
            "value_range": self.value_range,
            "clip_limit": self.clip_limit,
            "tile_grid_size": self.tile_grid_size,
        }


def _rows(layers: Sequence[Augmentation]) -> tuple[Any, ...]:
    """What operators do to images, of these layers."""
    return tuple((layer.kind, tuple(layer._settings().items())) for layer in layers)


@builtin
class RandomColorJitter(Augmentation):
    """Brightness, contrast, saturation and hue in turn, those that have a factor; see the layers of these names."""

    kind = "in_turn"

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        brightness_factor: Any = None,
        contrast_factor: Any = None,
        saturation_factor: Any = None,
        hue_factor: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.value_range = value_range
        self.brightness_factor, self.contrast_factor = brightness_factor, contrast_factor
        self.saturation_factor, self.hue_factor = saturation_factor, hue_factor
        kinds = (
            (RandomBrightness, brightness_factor),
            (RandomContrast, contrast_factor),
            (RandomSaturation, saturation_factor),
            (RandomHue, hue_factor),
        )
        self._policies = _rows([kind(factor, value_range) for kind, factor in kinds if factor is not None])

    def _settings(self) -> dict[str, Any]:
        return {"policies": self._policies}


class _Choice(Augmentation):
    """Of those that draw among other changes, of a strength `factor`."""

    moves = True

    def _choices(self, value_range: Any, factor: Any, interpolation: str, colours: bool) -> None:
        self.value_range, self.interpolation = value_range, interpolation
        self.factor = self._range("factor", factor, 0.0, mirrored=False)
        layers: list[Augmentation] = [
            RandomShear(self.factor, self.factor, interpolation=interpolation),
            RandomTranslation(self.factor, self.factor, interpolation=interpolation),
            RandomRotation(self.factor, interpolation=interpolation),
            RandomPosterization(max(1, int(8 * self.factor[1])), value_range),
            Solarization(self.factor, self.factor, value_range),
            AutoContrast(value_range),
            Equalization(value_range),
        ]
        if colours:
            layers += [
                RandomBrightness(self.factor, value_range),
                RandomColorDegeneration(self.factor, value_range),
                RandomContrast(self.factor, value_range),
                RandomSharpness(self.factor, value_range),
            ]
        self._policies = _rows(layers)


@builtin
class RandAugment(_Choice):
    """num_ops changes of each image, drawn among eleven; Cubuk et al. (2020)."""

    kind = "rand_augment"

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        num_ops: int = 2,
        factor: Any = 0.5,
        interpolation: str = "bilinear",
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.num_ops = arguments.integers("RandAugment", "num_ops", num_ops, 1, allow_zero=True)[0]
        self._choices(value_range, factor, interpolation, colours=True)

    def _settings(self) -> dict[str, Any]:
        return {"policies": self._policies, "num_ops": self.num_ops}


@builtin
class AugMix(_Choice):
    """Each image mixed with chains of up to chain_depth changes; Hendrycks et al. (2020).

    all_ops: False leaves out brightness, colour, contrast and sharpness.
    """

    kind = "aug_mix"
    keeps = image_data.ImageLayer.keeps

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        num_chains: int = 3,
        chain_depth: int = 3,
        factor: Any = 0.3,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.num_chains = arguments.positive("AugMix", "num_chains", num_chains)
        self.chain_depth = arguments.positive("AugMix", "chain_depth", chain_depth)
        self.alpha, self.all_ops = float(alpha), all_ops
        if self.alpha <= 0:
            raise ValueError(f"AugMix: alpha: expected a number above 0, got {alpha!r}")
        self._choices(value_range, factor, interpolation, colours=all_ops)

    def _settings(self) -> dict[str, Any]:
        own = {"num_chains": self.num_chains, "chain_depth": self.chain_depth, "alpha": self.alpha}
        return {"policies": self._policies, **own}
