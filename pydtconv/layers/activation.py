"""Activations as layers: Activation by name, and those with parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import activations, ops
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


@builtin
class Activation(Layer):
    """The activation of this name, or a function."""

    carries_masks = True
    computes_integers = False

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return inputs if self.activation is None else self.activation(inputs)


@builtin
class ReLU(Layer):
    """max_value where x >= max_value, x where threshold <= x, else negative_slope * (x - threshold)."""

    carries_masks = True
    computes_integers = False

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        for name, value in (("max_value", max_value), ("negative_slope", negative_slope), ("threshold", threshold)):
            if (value is None and name != "max_value") or (value is not None and value < 0):
                raise ValueError(f"ReLU: {name}: expected a number of 0 or more, got {value!r}")
        self.max_value = None if max_value is None else float(max_value)
        self.negative_slope = float(negative_slope)
        self.threshold = float(threshold)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


@builtin
class LeakyReLU(Layer):
    """x where x >= 0, else negative_slope * x."""

    carries_masks = True
    computes_integers = False

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        if "alpha" in kwargs:
            negative_slope = kwargs.pop("alpha")
        super().__init__(**kwargs)
        if negative_slope is None or negative_slope < 0:
            raise ValueError(f"LeakyReLU: negative_slope: expected a number of 0 or more, got {negative_slope!r}")
        self.negative_slope = float(negative_slope)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return activations.leaky_relu(inputs, self.negative_slope)


@builtin
class ELU(Layer):
    """x where x > 0, else alpha * (exp(x) - 1)."""

    carries_masks = True
    computes_integers = False

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = float(alpha)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return activations.elu(inputs, self.alpha)


@builtin
class PReLU(Layer):
    """x where x >= 0, else alpha * x; alpha is trained, and shared along shared_axes; He et al. (ICCV 2015)."""

    carries_masks = True
    computes_integers = False

    def __init__(
        self,
        alpha_initializer: Any = "Zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: Sequence[int] | int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._pydt_keep_arguments("alpha", alpha_initializer, alpha_regularizer, alpha_constraint)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else shared_axes and list(shared_axes)

    def build(self, input_shape: Any) -> None:
        shape, rank = list(input_shape[1:]), len(input_shape)
        for axis in self.shared_axes or ():
            if axis % rank < 1 or not -rank < axis < rank:
                raise ValueError(f"PReLU {self.name!r}: shared_axes: expected axes from 1 to {rank - 1}, got {axis}")
            shape[axis % rank - 1] = 1
        if None in shape:
            raise ValueError(f"PReLU {self.name!r}: the input's shape must be known, got {tuple(input_shape)}")
        self.alpha = self._pydt_add_kept("alpha", tuple(shape))
        own = {axis: extent for axis, extent in enumerate(shape, 1) if axis not in (self.shared_axes or ())}
        self.input_spec = InputSpec(ndim=len(input_shape), axes=own)

    def call(self, inputs: Any) -> Any:
        return ops.relu(inputs) - self.alpha * ops.relu(-inputs)


@builtin
class Softmax(Layer):
    """exp(x) / sum(exp(x)) along axis, or along several axes together.

    mask: of a shape that can be broadcast to the inputs'; where it is 0 the result is, too.
    """

    reads_integers = False

    carries_masks = True

    def __init__(self, axis: int | Sequence[int] = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        whole = isinstance(axis, int) or (isinstance(axis, (list, tuple)) and all(isinstance(i, int) for i in axis))
        if not whole or axis == []:
            raise ValueError(f"Softmax: axis: expected an integer, or several, got {axis!r}")
        self.axis = axis if isinstance(axis, int) else list(axis)
        self._pydt_needs_no_build()

    def call(self, inputs: Any, mask: Any = None) -> Any:
        if mask is not None:
            ends = zip(mask.shape[::-1], inputs.shape[::-1], strict=False)
            if len(mask.shape) > len(inputs.shape) or any(m not in (1, i) for m, i in ends):
                raise ValueError(
                    f"Softmax {self.name!r}: mask: expected a shape that can be broadcast to {tuple(inputs.shape)}, "
                    f"got {tuple(mask.shape)}"
                )
            kept = ops.greater(mask, 0.5)
            return ops.where(kept, self._softmax(ops.where(kept, inputs, -1e9)), 0.0)  # of none: even shares
        return self._softmax(inputs)

    def _softmax(self, inputs: Any) -> Any:
        if isinstance(self.axis, int):
            return activations.softmax(inputs, self.axis)
        if len(self.axis) == 1:
            return activations.softmax(inputs, self.axis[0])
        return ops.softmax(inputs, axis=tuple(self.axis))
