"""Batch and layer normalization, and normalization by known statistics."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from pydtconv import config, initializers, ops
from pydtconv.dtypes import real
from pydtconv.layers.base.arguments import is_integer
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.ops.functions.normalization import by_deviation
from pydtconv.serialization.configurable import builtin


@builtin
class BatchNormalization(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta per channel; Ioffe, Szegedy (ICML 2015).

    In training mean and variance are the batch's, and the moving ones become moving * momentum + batch *
    (1 - momentum); otherwise, and when `trainable` is False, they are the moving ones.  Where a mask comes with the
    input, the batch's are those of the steps that count.
    renorm: batch renormalization (Ioffe, NeurIPS 2017): in training the normalized values become r x + d, with r =
    stddev / renorm_stddev and d = (mean - renorm_mean) / renorm_stddev, without a gradient, within the limits of
    renorm_clipping ("rmin", "rmax", "dmax"); renorm_momentum moves those statistics.  `moving_stddev` is moved, and
    `moving_variance` follows.  It trains in one process only.
    synchronized: where several processes train the model, the batch is that of all of them, not this process's part.
    """

    reads_integers = False

    carries_masks = True

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
        if renorm:
            renorm_clipping = _checked_clipping(renorm_clipping or {})
            if synchronized:
                raise ValueError("BatchNormalization: renorm=True: expected synchronized=False, got True")
        if not isinstance(axis, int):
            if len(axis) != 1:
                raise ValueError(f"BatchNormalization: axis: expected one integer, got {axis!r}")
            axis = axis[0]
        self.axis = axis
        self.momentum = float(momentum)
        self.epsilon = float(epsilon)
        self.center = center
        self.scale = scale
        self._pydt_keep_arguments("beta", beta_initializer, beta_regularizer, beta_constraint)
        self._pydt_keep_arguments("gamma", gamma_initializer, gamma_regularizer, gamma_constraint)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.renorm = bool(renorm)
        self.renorm_clipping = renorm_clipping
        self.renorm_momentum = renorm_momentum
        self.synchronized = bool(synchronized)

    def build(self, input_shape: Any) -> None:
        c = extent_of(self, input_shape, self.axis)
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self._pydt_add_kept("gamma", (c,))
        if self.center:
            self.beta = self._pydt_add_kept("beta", (c,))
        self.moving_mean = self.add_weight((c,), self.moving_mean_initializer, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(
            (c,), self.moving_variance_initializer, trainable=False, name="moving_variance"
        )
        if self.renorm:
            deviation = np.sqrt(self.moving_variance.value)
            self.moving_stddev = self.add_weight((c,), _as_start(deviation), trainable=False, name="moving_stddev")
            self.renorm_mean = self.add_weight((c,), self.moving_mean_initializer, trainable=False, name="renorm_mean")
            self.renorm_stddev = self.add_weight((c,), _as_start(deviation), trainable=False, name="renorm_stddev")
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: c})

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        x, order = _axes_last(inputs, [self.axis])
        if (mask is not None or self.renorm) and training and self.trainable:
            y = self._by_moments(x, None if mask is None else self._counted(inputs, mask))
            return y if order is None else ops.transpose(y, order)
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

    def _counted(self, inputs: Any, mask: Any) -> Any:
        """For each element of the inputs, their channels last, whether the mask of one axis less lets it count."""
        if len(mask.shape) != len(inputs.shape) - 1:
            raise ValueError(
                f"BatchNormalization {self.name!r}: mask: expected an axis less than {tuple(inputs.shape)}, "
                f"got {tuple(mask.shape)}"
            )
        counts = ops.broadcast_to(ops.expand_dims(ops.not_equal(mask, 0), -1), inputs.shape)
        return _axes_last(counts, [self.axis])[0]

    def _by_moments(self, x: Any, counts: Any) -> Any:
        """x (n, ..., c) normalized by the moments of the elements that count, which move the moving ones."""
        dtype, x = x.dtype, ops.cast(x, real(x.dtype))
        axes = tuple(range(len(x.shape) - 1))
        if counts is None:
            mean, variance = ops.mean(x, axes), ops.var(x, axes)
        else:
            total = ops.sum(ops.cast(counts, x.dtype), axes) + config.epsilon()
            mean = ops.sum(ops.where(counts, x, 0.0), axes) / total
            variance = ops.sum(ops.where(counts, ops.square(x - mean), 0.0), axes) / total
        _move(self.moving_mean, mean, self.momentum)
        y = (x - mean) * ops.rsqrt(variance + self.epsilon)
        if self.renorm:
            y = self._renormed(y, mean, ops.sqrt(variance + self.epsilon))
        else:
            _move(self.moving_variance, variance, self.momentum)
        if self.gamma is not None:
            y = y * self.gamma
        return ops.cast(y if self.beta is None else y + self.beta, dtype)

    def _renormed(self, y: Any, mean: Any, deviation: Any) -> Any:
        """r y + d; moves the statistics behind both, and those of inference."""
        known = ops.maximum(self.renorm_stddev, self.epsilon**0.5)
        r, d = deviation / known, (mean - self.renorm_mean) / known
        limits = self.renorm_clipping
        r = r if limits.get("rmin") is None else ops.maximum(r, limits["rmin"])
        r = r if limits.get("rmax") is None else ops.minimum(r, limits["rmax"])
        d = d if limits.get("dmax") is None else ops.clip(d, -limits["dmax"], limits["dmax"])
        y = y * ops.stop_gradient(r) + ops.stop_gradient(d)
        _move(self.renorm_mean, mean, self.renorm_momentum)
        _move(self.renorm_stddev, deviation, self.renorm_momentum)
        moved = self.moving_stddev * self.momentum + deviation * (1 - self.momentum)
        self.moving_stddev.assign(moved)
        self.moving_variance.assign(ops.relu(moved * moved - self.epsilon))
        return y


def _move(moving: Any, found: Any, momentum: float) -> None:
    moving.assign(moving * momentum + found * (1 - momentum))


def _as_start(array: np.ndarray) -> Any:
    """An initializer that gives an array."""
    return lambda shape, dtype=None: array.astype(dtype).reshape(shape)


def _checked_clipping(limits: Any) -> Any:
    """renorm_clipping.  Raises ValueError for other keys, no numbers, and limits that exclude one another."""
    if not isinstance(limits, dict) or set(limits) - {"rmin", "rmax", "dmax"}:
        raise ValueError(f"BatchNormalization: renorm_clipping: expected rmin, rmax and dmax alone, got {limits!r}")
    if not all(each is None or (isinstance(each, Real) and each == each) for each in limits.values()):
        raise ValueError(f"BatchNormalization: renorm_clipping: expected numbers or None, got {limits!r}")
    low, high = limits.get("rmin"), limits.get("rmax")
    if (low is not None and high is not None and high < low) or (limits.get("dmax") or 0) < 0:
        raise ValueError(
            f"BatchNormalization: renorm_clipping: expected rmin of at most rmax, dmax of 0 or more, got {limits!r}"
        )
    return limits


@builtin
class LayerNormalization(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with each sample's statistics on axis; Ba et al. (2016)."""

    reads_integers = False

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
        if not isinstance(axis, int) and not (isinstance(axis, (list, tuple)) and all(map(is_integer, axis))):
            raise TypeError(f"LayerNormalization: axis: expected an integer or a list of them, got {axis!r}")
        self.axis = axis if isinstance(axis, int) else list(axis)
        self.epsilon = float(epsilon)
        self.center = center
        self.scale = scale
        self._pydt_keep_arguments("beta", beta_initializer, beta_regularizer, beta_constraint)
        self._pydt_keep_arguments("gamma", gamma_initializer, gamma_regularizer, gamma_constraint)

    def build(self, input_shape: Any) -> None:
        axes = [self.axis] if isinstance(self.axis, int) else sorted(self.axis)
        shape = tuple(extent_of(self, input_shape, axis) for axis in axes)
        if len({axis % len(input_shape) for axis in axes}) < len(axes):
            raise ValueError(f"LayerNormalization {self.name!r}: axis: expected different axes, got {self.axis!r}")
        self.gamma = self.beta = None
        if self.scale or self.rms_scaling:
            self.gamma = self._pydt_add_kept("gamma", shape)
        if self.center and not self.rms_scaling:
            self.beta = self._pydt_add_kept("beta", shape)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {**config, "rms_scaling": True} if self.rms_scaling else config

    def call(self, inputs: Any) -> Any:
        axes = [self.axis] if isinstance(self.axis, int) else self.axis
        if self.rms_scaling:
            return by_deviation(inputs, self.gamma, sorted(axis % len(inputs.shape) for axis in axes), self.epsilon)
        x, back = _axes_last(inputs, axes)
        shape, lead = x.shape, len(x.shape) - len(axes)
        last = (int(np.prod(shape[lead:])),)
        weights = [w for w in (self.gamma, self.beta) if w is not None]
        op = ops.LayerNorm(epsilon=self.epsilon, scale=self.gamma is not None, center=self.beta is not None)
        if len(axes) == 1:
            y = op(x, *weights)
        else:
            y = op(ops.reshape(x, (*shape[:lead], *last)), *(ops.reshape(w, last) for w in weights))
            y = ops.reshape(y, shape)
        return y if back is None else ops.transpose(y, back)


def extent_of(layer: Layer, shape: Any, axis: int) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{type(layer).__name__} {layer.name!r}: axis {axis} is not an axis of shape {tuple(shape)}")
    if shape[axis] is None:
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: axis {axis} of the input must be known, got {tuple(shape)}"
        )
    return shape[axis]


def _axes_last(x: Any, axes: Sequence[int]) -> tuple[Any, tuple[int, ...] | None]:
    """x with axes last, in rising order, and the order that turns it back (None when nothing was turned)."""
    rank = len(x.shape)
    moved = sorted(axis % rank for axis in axes)
    order = (*(i for i in range(rank) if i not in moved), *moved)
    if order == tuple(range(rank)):
        return x, None
    return ops.transpose(x, order), tuple(order.index(i) for i in range(rank))
