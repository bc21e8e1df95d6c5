"""`NumpyLayer`: a layer written in NumPy, with a forward and a backward of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pydtconv import tree
from pydtconv.layers.layer import Layer
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec


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
        shape = self.compute_output_shape(shapes if isinstance(inputs, (list, tuple)) else shapes[0])
        trained = len(self._trainable_variables)
        return NumpyOp(self, tuple(shape), len(xs), trained, bool(training))(*xs, *self._own_variables())


@dataclass(frozen=True)
class NumpyOp(Op):
    """forward and backward of a NumpyLayer; inputs are tensors, then the layer's weights."""

    layer: NumpyLayer = field(repr=False)
    shape: tuple[int | None, ...]
    tensors: int
    trained: int
    training: bool

    dense: ClassVar[bool] = True
    accumulates: ClassVar[tuple[int, ...]] = tuple(range(64))

    def infer(self, *inputs: Spec) -> Spec:
        return Spec(self.shape, inputs[0].dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(range(len(needs))), y=(0,) if _takes(self.layer.backward, "y") else ())

    def forward(self, p: Pass) -> Call:
        kwargs = {"training": self.training} if _takes(self.layer.forward, "training") else {}
        return functools.partial(self._forward, [_read_only(x) for x in p.x], p.y[0], kwargs)

    def _forward(self, xs: Sequence[np.ndarray], y: np.ndarray, kwargs: dict[str, Any]) -> None:
        result = np.asarray(self.layer.forward(*xs, **kwargs))
        if result.shape != y.shape:
            raise ValueError(f"{self._where('forward')}: expected an array of shape {y.shape}, got {result.shape}")
        np.copyto(y, result, casting="same_kind")

    def backward(self, p: Pass) -> Call:
        kwargs: dict[str, Any] = {"training": self.training} if _takes(self.layer.backward, "training") else {}
        if _takes(self.layer.backward, "y"):
            kwargs["y"] = _read_only(p.y[0])
        xs = [_read_only(x) for x in p.x]
        adds = [i < len(p.accumulate) and p.accumulate[i] for i in range(len(p.dx))]
        return functools.partial(self._backward, _read_only(p.dy[0]), xs, p.dx, adds, kwargs)

    def _backward(
        self,
        dy: np.ndarray,
        xs: Sequence[np.ndarray],
        targets: Sequence[np.ndarray | None],
        adds: Sequence[bool],
        kwargs: dict[str, Any],
    ) -> None:
        results = self.layer.backward(dy, *xs, **kwargs)
        gradients = list(results) if isinstance(results, (list, tuple)) else [results]
        expected = self.tensors + self.trained
        if len(gradients) != expected:
            raise ValueError(
                f"{self._where('backward')}: expected {expected} gradients ({self.tensors} of inputs, {self.trained} "
                f"of trainable weights), got {len(gradients)}"
            )
        for i, (gradient, target, add) in enumerate(zip(gradients, targets, adds, strict=False)):
            if target is None:
                continue
            if gradient is None:
                gradient = np.zeros_like(target)
            gradient = np.asarray(gradient)
            if gradient.shape != target.shape:
                raise ValueError(
                    f"{self._where('backward')}: gradient {i}: expected shape {target.shape}, got {gradient.shape}"
                )
            if add:
                np.add(target, gradient, out=target, casting="same_kind")
            else:
                np.copyto(target, gradient, casting="same_kind")

    def _where(self, method: str) -> str:
        return f"{type(self.layer).__name__} {self.layer.name!r}: {method}"


def _takes(method: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(method).parameters


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
