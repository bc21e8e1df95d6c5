"""Batch and layer normalization, and normalization by known statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import initializers, ops
from pydtconv.layers.input_spec import InputSpec
from pydtconv.layers.layer import Layer
from pydtconv.serialization.configurable import builtin


@builtin
class BatchNormalization(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta per channel; Ioffe, Szegedy (ICML 2015).

    In training mean and variance are the batch's, and the moving ones become moving * momentum + batch *
    (1 - momentum); otherwise, and when `trainable` is False, they are the moving ones.
    synchronized: where several processes train the model, the batch is that of all of them, not this process's part.
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if renorm or renorm_clipping is not None:
            raise ValueError("BatchNormalization: renorm is not supported: expected renorm=False, renorm_clipping=None")
        if not isinstance(axis, int):
            if len(axis) != 1:
                raise ValueError(f"BatchNormalization: axis: expected one integer, got {axis!r}")
            axis = axis[0]
        self.axis = axis
        self.momentum = float(momentum)
        self.epsilon = float(epsilon)
        self.center = center
        self.scale = scale
        self._keep_arguments("beta", beta_initializer, beta_regularizer, beta_constraint)
        self._keep_arguments("gamma", gamma_initializer, gamma_regularizer, gamma_constraint)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.renorm = False
        self.renorm_clipping = None
        self.renorm_momentum = renorm_momentum
        self.synchronized = bool(synchronized)

    def build(self, input_shape: Any) -> None:
        c = extent_of(self, input_shape, self.axis)
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self._add_kept("gamma", (c,))
        if self.center:
            self.beta = self._add_kept("beta", (c,))
        self.moving_mean = self.add_weight((c,), self.moving_mean_initializer, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(
            (c,), self.moving_variance_initializer, trainable=False, name="moving_variance"
        )
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: c})

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if mask is not None:
            raise ValueError(f"BatchNormalization {self.name!r}: masks are not supported")
        x, order = _axis_last(inputs, self.axis)
        op = ops.BatchNorm(
            epsilon=self.epsilon,
            momentum=self.momentum,
            scale=self.gamma is not None,
            center=self.beta is not None,
            frozen=not (training and self.trainable),
            always=True,
            synchronized=self.synchronized,
        )
        weights = [w for w in (self.gamma, self.beta, self.moving_mean, self.moving_variance) if w is not None]
        y = op(x, *weights)
        return y if order is None else ops.transpose(y, order)


@builtin
class LayerNormalization(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with each sample's statistics on axis; Ba et al. (2016)."""

    carries_masks = True

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        epsilon: float = 0.001,
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
        self.rms_scaling = bool(kwargs.pop("rms_scaling", False))  # files of Keras have it
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else list(axis)
        self.epsilon = float(epsilon)
        self.center = center
        self.scale = scale
        self._keep_arguments("beta", beta_initializer, beta_regularizer, beta_constraint)
        self._keep_arguments("gamma", gamma_initializer, gamma_regularizer, gamma_constraint)

    def build(self, input_shape: Any) -> None:
        axes = [self.axis] if isinstance(self.axis, int) else self.axis
        shape = tuple(extent_of(self, input_shape, axis) for axis in axes)
        if sorted(axis % len(input_shape) for axis in axes) != list(
            range(len(input_shape) - len(axes), len(input_shape))
        ):
            raise ValueError(
                f"LayerNormalization {self.name!r}: axis: expected the last axes of the input, got {self.axis!r} "
                f"for shape {tuple(input_shape)}"
            )
        self.gamma = self.beta = None
        if self.scale or self.rms_scaling:
            self.gamma = self._add_kept("gamma", shape)
        if self.center and not self.rms_scaling:
            self.beta = self._add_kept("beta", shape)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {**config, "rms_scaling": True} if self.rms_scaling else config

    def call(self, inputs: Any) -> Any:
        axes = 1 if isinstance(self.axis, int) else len(self.axis)
        if self.rms_scaling:  # by the deviation from the mean, which stays: Keras's, deprecated there
            variance = ops.var(inputs, axis=tuple(range(-axes, 0)), keepdims=True)
            return inputs * ops.rsqrt(variance + self.epsilon) * self.gamma
        shape = inputs.shape
        last = int(np.prod(shape[len(shape) - axes :]))
        x = inputs if axes == 1 else ops.reshape(inputs, (*shape[: len(shape) - axes], last))
        weights = [w for w in (self.gamma, self.beta) if w is not None]
        weights = weights if axes == 1 else [ops.reshape(w, (last,)) for w in weights]
        op = ops.LayerNorm(epsilon=self.epsilon, scale=self.gamma is not None, center=self.beta is not None)
        y = op(x, *weights)
        return y if axes == 1 else ops.reshape(y, shape)


def extent_of(layer: Layer, shape: Any, axis: int) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{type(layer).__name__} {layer.name!r}: axis {axis} is not an axis of shape {tuple(shape)}")
    if shape[axis] is None:
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: axis {axis} of the input must be known, got {tuple(shape)}"
        )
    return shape[axis]


def _axis_last(x: Any, axis: int) -> tuple[Any, tuple[int, ...] | None]:
    """x with axis last, and the order that turns it back (None when nothing was turned)."""
    rank = len(x.shape)
    axis %= rank
    if axis == rank - 1:
        return x, None
    order = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(order.index(i) for i in range(rank))
    return ops.transpose(x, order), back
