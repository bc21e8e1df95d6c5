"""Normalization by groups of channels, by the root mean square, and to unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.normalization import extent_of
from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.functions.operands import in_reals
from pydtconv.serialization.configurable import builtin


@builtin
class GroupNormalization(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta; Wu and He (ECCV 2018).

    Mean and variance are of a sample's group of channels, over all places; gamma and beta are of a channel.  groups: -1
    for one channel each.
    """

    reads_integers = False

    carries_masks = True

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(groups, bool) or not isinstance(groups, int) or (groups < 1 and groups != -1):
            raise ValueError(f"GroupNormalization: groups: expected an integer of 1 or more, or -1, got {groups!r}")
        self.groups = groups
        self.axis = axis
        self.epsilon = float(epsilon)
        self.center = center
        self.scale = scale
        self._pydt_keep_arguments("beta", beta_initializer, beta_regularizer, beta_constraint)
        self._pydt_keep_arguments("gamma", gamma_initializer, gamma_regularizer, gamma_constraint)

    def build(self, input_shape: Any) -> None:
        c = extent_of(self, input_shape, self.axis)
        if self.groups == -1:
            self.groups = c
        if c % self.groups:
            raise ValueError(f"GroupNormalization {self.name!r}: groups: expected a divisor of {c}, got {self.groups}")
        self.gamma = self._pydt_add_kept("gamma", (c,)) if self.scale else None
        self.beta = self._pydt_add_kept("beta", (c,)) if self.center else None
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: c})

    def call(self, inputs: Any) -> Any:
        return in_reals(self._normalized)(inputs)

    def _normalized(self, inputs: Any) -> Any:
        shape = tuple(inputs.shape)
        axis = self.axis % len(shape)
        c, n = shape[axis], shape[0]
        grouped = ops.reshape(inputs, (*shape[:axis], self.groups, c // self.groups, *shape[axis + 1 :]))
        order = (0, axis, *(d for d in range(1, len(shape) + 1) if d != axis))
        back = tuple(order.index(d) for d in range(len(order)))
        turned = ops.transpose(grouped, order) if order != back or order != tuple(range(len(order))) else grouped
        flat = ops.reshape(turned, (n, self.groups, -1))
        y = ops.LayerNorm(epsilon=self.epsilon, scale=False, center=False)(flat)
        y = ops.reshape(y, turned.shape)
        y = ops.reshape(ops.transpose(y, back) if turned is not grouped else y, shape)
        wide = tuple(c if d == axis else 1 for d in range(len(shape)))
        if self.gamma is not None:
            y = ops.multiply(y, ops.reshape(self.gamma, wide))
        return y if self.beta is None else ops.add(y, ops.reshape(self.beta, wide))


@builtin
class RMSNormalization(Layer):
    """x / sqrt(mean(x^2) + epsilon) * scale, the mean being over axis; Zhang and Sennrich (NeurIPS 2019)."""

    reads_integers = False

    def __init__(self, axis: int | Sequence[int] = -1, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else sorted(axis)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        axes = [self.axis] if isinstance(self.axis, int) else self.axis
        self.scale = self.add_weight(tuple(extent_of(self, input_shape, axis) for axis in axes), "ones", name="scale")

    def call(self, x: Any) -> Any:
        rank = len(x.shape)
        axes = normalize_axes("RMSNormalization", self.axis, rank)
        if axes == tuple(range(rank - len(axes), rank)):
            op = ops.LayerNorm(axes if len(axes) > 1 else -1, self.epsilon, center=False, rms=True)
            return op(x, self.scale)
        order = (*(d for d in range(rank) if d not in axes), *axes)
        back = tuple(order.index(d) for d in range(rank))
        last = tuple(range(rank - len(axes), rank))
        op = ops.LayerNorm(last if len(last) > 1 else -1, self.epsilon, center=False, rms=True)
        return ops.transpose(op(ops.transpose(x, order), self.scale), back)


@builtin
class UnitNormalization(Layer):
    """x / max(|x|, 1e-12), the length |x| being over axis."""

    reads_integers = False

    carries_masks = True

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"UnitNormalization: axis: expected an integer or several, got {axis!r}")
        self.axis = axis if isinstance(axis, int) else list(axis)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return unit_length(inputs, self.axis)


@in_reals
def unit_length(x: Any, axis: int | Sequence[int]) -> Any:
    """x divided by its length over axis, but by no less than 1e-12."""
    squares = ops.sum(ops.square(x), axis=axis, keepdims=True)
    return ops.multiply(x, ops.rsqrt(ops.maximum(squares, 1e-24)))
