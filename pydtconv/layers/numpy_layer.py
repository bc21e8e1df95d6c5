"""`NumpyLayer`: a layer written in NumPy, with a forward and a backward of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.layers.base.layer import Layer


class NumpyLayer(Layer):
    """A layer whose mathematics is NumPy code:

    - `forward(self, x, *weights)` gives the output for the input and the layer's weights (made in `build` by
      `add_weight`, passed in the order of `self.weights`) as arrays;
    - `backward(self, dy, x, *weights)` gives the gradient of the input, or a tuple of it and one for each trainable
      weight, for the gradient dy of the output; None stands for no gradient;
    - `compute_output_shape(self, input_shape)` gives the output's shape, the input's where it is not defined.

    Both passes may take the keyword `training`, and backward the keyword `y`, the output.  A layer called on a list of
    tensors gets them one after the other in place of x, and gives a gradient for each.  The arrays are read-only.

        class Swish(NumpyLayer):
            def build(self, input_shape):
                self.beta = self.add_weight((input_shape[-1],), "ones", name="beta")

            def forward(self, x, beta):
                return x / (1 + np.exp(-beta * x))

            def backward(self, dy, x, beta):
                s = 1 / (1 + np.exp(-beta * x))
                slope = x * s * (1 - s) * dy
                return s * dy + beta * slope, (x * slope).sum(axis=tuple(range(x.ndim - 1)))
    """

    def forward(self, x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, x, *weights)")

    def backward(self, dy: np.ndarray, x: np.ndarray, *weights: np.ndarray) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define backward(self, dy, x, *weights) to be trained")

    def build(self, input_shape: Any) -> None:
        """Makes the weights; by default there are none."""

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape, by default that of the (first) input."""
        return tuple(input_shape) if tree.is_shape(input_shape) else tuple(input_shape[0])

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        xs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        shapes = [tuple(x.shape) for x in xs]
        shape = tuple(self.compute_output_shape(shapes if isinstance(inputs, (list, tuple)) else shapes[0]))
        op = ops.NumpyOp(
            forward_function=functools.partial(self._pydt_forward, bool(training)),
            backward_function=functools.partial(self._pydt_backward, bool(training), len(xs)),
            shape_function=lambda *_: shape,
            label=f"{type(self).__name__} {self.name!r}",
            reads_y=_takes(self.backward, "y"),
        )
        return op(*xs, *self._pydt_own_variables())

    def _pydt_forward(self, training: bool, *arrays: np.ndarray) -> Any:
        kwargs: dict[str, Any] = {"training": training} if _takes(self.forward, "training") else {}
        return self.forward(*map(_read_only, arrays), **kwargs)

    def _pydt_backward(self, training: bool, inputs: int, dy: np.ndarray, *arrays: Any) -> list[Any]:
        """The gradients of the op's inputs: of tensors and trainable weights; None for the other weights."""
        kwargs: dict[str, Any] = {"training": training} if _takes(self.backward, "training") else {}
        if _takes(self.backward, "y"):
            kwargs["y"] = _read_only(arrays[-1])
        result = self.backward(_read_only(dy), *map(_read_only, arrays[:-1]), **kwargs)
        gradients = list(result) if isinstance(result, (list, tuple)) else [result]
        expected = inputs + len(self._pydt_trainable_variables)
        if len(gradients) != expected:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: backward: expected {expected} gradients ({inputs} of inputs, "
                f"{expected - inputs} of trainable weights), got {len(gradients)}"
            )
        return gradients + [None] * len(self._pydt_non_trainable_variables)


def _takes(method: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(method).parameters


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
