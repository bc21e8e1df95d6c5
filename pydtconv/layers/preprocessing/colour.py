"""Random changes of the values of images: brightness, colours, sharpness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv.layers.base import arguments
from pydtconv.layers.preprocessing.augmentation import Augmentation
from pydtconv.serialization.configurable import builtin


@builtin
class RandomBrightness(Augmentation):
    """A share of the range added, from -factor to factor."""

    kind = "brightness"

    def __init__(
        self, factor: Any, value_range: Sequence[float] = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        self.factor, self.value_range = self._range("factor", factor), value_range

    def _settings(self) -> dict[str, Any]:
        return {"factor": self.factor, "value_range": self.value_range}


@builtin
class RandomContrast(Augmentation):
    """The distance from each channel's mean times 1 - lower to 1 + upper."""

    kind = "contrast"

    def __init__(
        self, factor: Any, value_range: Sequence[float] = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        self.factor, self.value_range = factor, value_range
        pair = factor if isinstance(factor, (list, tuple)) else (factor, factor)
        self._both = tuple(float(part) for part in pair)
        if len(self._both) != 2 or min(self._both) < 0 or self._both[0] > 1:
            raise ValueError(f"RandomContrast: factor: expected numbers of 0 or more, the lower to 1, got {factor!r}")

    def _settings(self) -> dict[str, Any]:
        return {"factor": self._both, "value_range": self.value_range}


@builtin
class RandomGrayscale(Augmentation):
    """Without colour, with probability `factor`."""

    kind = "grayscale"

    def __init__(
        self, factor: float = 0.5, data_format: str | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.factor = self._range("factor", factor, 0.0, mirrored=False)[1]

    def _settings(self) -> dict[str, Any]:
        return {"factor": self.factor}


class _Coloured(Augmentation):
    """Of those with a factor from `least` and a range of values; a number is from -factor on, at least from `least`."""

    least = 0.0

    def __init__(
        self,
        factor: Any,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.factor = self._range("factor", factor, self.least, mirrored=self.least < 0)
        self.value_range = value_range

    def _settings(self) -> dict[str, Any]:
        return {"factor": self.factor, "value_range": self.value_range}


@builtin
class RandomHue(_Coloured):
    """Hues turned by up to half of factor of the circle, either way."""

    kind = "hue"


@builtin
class RandomSaturation(_Coloured):
    """Saturation times f / (1 - f), f from the range of factor: 0.5 changes nothing, below 0 no color is left."""

    kind = "saturation"
    least = -1.0


@builtin
class RandomSharpness(_Coloured):
    """From smoothed, with a factor of 0, by the image itself, with 0.5, to sharpened, with 1."""

    kind = "sharpness"


@builtin
class RandomColorDegeneration(_Coloured):
    """Blended with its brightness: a factor of 1 leaves no colour, one below 0 adds to it."""

    kind = "color"
    least = -1.0


@builtin
class RandomInvert(Augmentation):
    """The other end of the range, with a probability of factor."""

    kind = "invert"

    def __init__(
        self,
        factor: Any = 1.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.factor, self.value_range = factor, value_range
        self._both = self._range("factor", factor, 0.0, mirrored=False)

    def _settings(self) -> dict[str, Any]:
        return {"factor": self._both, "value_range": self.value_range}


@builtin
class RandomPosterization(Augmentation):
    """So many bits of each value are kept: from the first of factor up to the second (from 1 up to a number)."""

    kind = "posterization"

    def __init__(
        self,
        factor: Any,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        pair = factor if isinstance(factor, (list, tuple)) else (1, factor)
        self.factor = arguments.integers("RandomPosterization", "factor", pair, 2)
        self.value_range = value_range
        if not self.factor[0] <= self.factor[1] <= 8:
            raise ValueError(f"RandomPosterization: factor: expected rising numbers of bits up to 8, got {factor!r}")

    def _settings(self) -> dict[str, Any]:
        return {"factor": self.factor, "value_range": self.value_range}


@builtin
class Solarization(Augmentation):
    """Values from a threshold on turned to the other end of the range, after an addition."""

    kind = "solarization"

    def __init__(
        self,
        addition_factor: Any = 0.0,
        threshold_factor: Any = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, **kwargs)
        self.addition_factor = self._range("addition_factor", addition_factor, 0.0, mirrored=False)
        self.threshold_factor = self._range("threshold_factor", threshold_factor, 0.0, mirrored=False)
        self.value_range = value_range

    def _settings(self) -> dict[str, Any]:
        factors = {"addition": self.addition_factor, "threshold": self.threshold_factor}
        return {**factors, "value_range": self.value_range}


@builtin
class RandomGaussianBlur(Augmentation):
    """Smoothed, with a probability of factor, by a sigma up to the given one."""

    kind = "gaussian_blur"

    def __init__(
        self,
        factor: Any = 1.0,
        kernel_size: Any = 3,
        sigma: Any = 1.0,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed, data_format, **kwargs)
        self.factor, self.value_range = self._range("factor", factor, 0.0, mirrored=False), value_range
        self.kernel_size = arguments.integers("RandomGaussianBlur", "kernel_size", kernel_size, 2)
        self.sigma = self._range("sigma", sigma, 0.0, float("inf"), mirrored=False)

    def _settings(self) -> dict[str, Any]:
        own = {"factor": self.factor, "kernel_size": self.kernel_size, "sigma": self.sigma}
        return {**own, "value_range": self.value_range}
