"""Layers that move elements: Flatten, Reshape, Permute, RepeatVector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.dtypes import FLOATING
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


@builtin
class Flatten(Layer):
    """(n, ...) -> (n, product of the rest).  With channels_first the channels are turned to the end before."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = arguments.format_of("Flatten", data_format)
        self.input_spec = InputSpec(min_ndim=1)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        x = inputs if len(inputs.shape) < 3 else arguments.to_channels_last(inputs, self.data_format)
        return ops.reshape(x, (x.shape[0], math.prod(x.shape[1:])))


@builtin
class Reshape(Layer):
    """(n, ...) -> (n, *target_shape); one extent of target_shape may be -1."""

    def __init__(self, target_shape: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)
        if self.target_shape.count(-1) > 1 or any(e < -1 or e == 0 for e in self.target_shape):
            raise ValueError(
                f"Reshape: target_shape: expected positive integers and at most one -1, got {target_shape!r}"
            )
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return ops.reshape(inputs, self.compute_output_shape(inputs.shape))

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """The output's shape; where the input's extents are not all known, -1 becomes None."""
        n, *rest = input_shape
        if None in rest:
            return (n, *(None if e == -1 else e for e in self.target_shape))
        size, known = math.prod(rest), math.prod(e for e in self.target_shape if e != -1)
        if size % known or (-1 not in self.target_shape and size != known):
            raise ValueError(
                f"Reshape {self.name!r}: an input of shape {tuple(input_shape)} has {size} elements per sample, "
                f"which do not fit target_shape={self.target_shape}"
            )
        return (n, *(size // known if e == -1 else e for e in self.target_shape))


@builtin
class Permute(Layer):
    """The axes after the batch in another order: dims counts from 1."""

    def __init__(self, dims: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                f"Permute: dims: expected the integers from 1 to {len(self.dims)} in some order, got {dims!r}"
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return ops.transpose(inputs, (0, *self.dims))


@builtin
class RepeatVector(Layer):
    """(n, c) -> (n, times, c), each vector `n` times."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not arguments.is_integer(n):
            raise TypeError(f"RepeatVector: n: expected an integer, got {n!r}")
        self.n = arguments.positive("RepeatVector", "n", n)
        self.input_spec = InputSpec(ndim=2)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        batch, c = inputs.shape
        vectors = ops.reshape(inputs, (batch, 1, c))
        return ops.Upsample((self.n,))(vectors) if vectors.dtype in FLOATING else ops.repeat(vectors, self.n, 1)
