"""Layers that act in training alone: dropout and noise; and a penalty on activations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydtconv import ops, regularizers
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.seeds import seed_of_call
from pydtconv.serialization.configurable import builtin
from pydtconv.support.random import next_seed


class RandomLayer(Layer):
    """A layer that draws random numbers.  `seed` is as given, `own_seed` the one in use."""

    reads_integers = False

    def __init__(self, seed: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ValueError(f"{type(self).__name__}: seed: expected an integer of 0 or more, or None, got {seed!r}")
        self.seed = seed
        self.own_seed = next_seed() if seed is None else seed
        self._pydt_needs_no_build()

    def _seed_of_call(self, given: Any = None) -> int:
        return seed_of_call(self, given)


def noise_shape_of(layer: Layer, given: Any) -> tuple[int | None, ...] | None:
    """noise_shape as a tuple.  Raises ValueError for what is no sequence of None and integers of 1 or more."""
    if given is None:
        return None
    sequence = isinstance(given, Iterable) and not isinstance(given, str)
    shape = tuple(given) if sequence else ()
    if not sequence or not all(n is None or (arguments.is_integer(n) and n > 0) for n in shape):
        raise ValueError(
            f"{type(layer).__name__}: noise_shape: expected None or a sequence of integers of 1 or more and None, "
            f"got {given!r}"
        )
    return shape


def concrete_noise_shape(layer: Any, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The layer's noise_shape with the input's extents for None.  Raises ValueError where the ranks differ."""
    if layer.noise_shape is None:
        return None
    if len(layer.noise_shape) != len(shape):
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: noise_shape: expected {len(shape)} extents for an input of shape "
            f"{tuple(shape)}, got {layer.noise_shape}"
        )
    return tuple(extent if n is None else n for n, extent in zip(layer.noise_shape, shape, strict=True))


@builtin
class Dropout(RandomLayer):
    """In training, sets a share `rate` of the elements to 0 and divides the rest by 1 - rate; Srivastava et al. (2014).

    noise_shape: the mask's shape; 1 where it is shared along an axis, None for the input's extent.
    """

    carries_masks = True

    def __init__(
        self, rate: float, noise_shape: Sequence[int | None] | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"{type(self).__name__}: rate: expected a number from 0 to 1, got {rate!r}")
        self.rate = rate
        self.noise_shape = noise_shape_of(self, noise_shape)

    def _noise_shape(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        return concrete_noise_shape(self, shape)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or self.rate == 0:
            return inputs
        return ops.Dropout(
            rate=self.rate,
            noise_shape=self._noise_shape(inputs.shape),
            seed=self._seed_of_call(),
            always=True,
            shared=(self.noise_shape or (None,))[0] == 1,
        )(inputs)


class BaseSpatialDropout(Dropout):
    """Dropout of whole channels of images."""

    def __init__(self, rank: int, rate: float, data_format: str | None, seed: int | None, **kwargs: Any) -> None:
        super().__init__(rate, None, seed, **kwargs)
        self.data_format = arguments.format_of(type(self).__name__, data_format)
        self.input_spec = InputSpec(ndim=rank + 2)

    def _noise_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n, c = shape[0], shape[arguments.channel_axis(self.data_format)]
        ones = (1,) * (len(shape) - 2)
        return (n, *ones, c) if self.data_format == "channels_last" else (n, c, *ones)

    def get_config(self) -> dict[str, Any]:
        # Keras's constructors take these alone, and its configs have the dtype by its name
        config = super().get_config() | {"dtype": self.dtype_policy.name}
        return {key: config[key] for key in ("name", "dtype", "rate", "seed", "data_format") if key in config}


@builtin
class SpatialDropout1D(BaseSpatialDropout):
    """Dropout of whole channels of signals (n, w, c)."""

    def __init__(
        self, rate: float, seed: int | None = None, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(1, rate, "channels_last", seed, name=name, dtype=dtype, **kwargs)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("data_format", None)
        return config


@builtin
class SpatialDropout2D(BaseSpatialDropout):
    """Dropout of whole channels of images."""

    def __init__(
        self,
        rate: float,
        data_format: str | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, rate, data_format, seed, name=name, dtype=dtype, **kwargs)


@builtin
class SpatialDropout3D(BaseSpatialDropout):
    """Dropout of whole channels of volumes."""

    def __init__(
        self,
        rate: float,
        data_format: str | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(3, rate, data_format, seed, name=name, dtype=dtype, **kwargs)


@builtin
class GaussianNoise(RandomLayer):
    """In training, adds normally distributed noise of standard deviation stddev."""

    carries_masks = True

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        if stddev < 0:
            raise ValueError(f"GaussianNoise: stddev: expected a number of 0 or more, got {stddev!r}")
        self.stddev = stddev

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or self.stddev == 0:
            return inputs
        return ops.GaussianNoise(stddev=self.stddev, seed=self._seed_of_call(), always=True)(inputs)


@builtin
class ActivityRegularization(Layer):
    """The input itself, with a penalty l1 * sum |x| + l2 * sum x^2 (mean over the batch) in the loss."""

    carries_masks = True
    computes_integers = False

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1=l1, l2=l2), **kwargs)
        self.l1 = l1
        self.l2 = l2
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return inputs

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("activity_regularizer")
        return config
