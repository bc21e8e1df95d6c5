"""Layers of several inputs: Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate; and as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pydtconv import ops
from pydtconv.layers.layer import Layer
from pydtconv.serialization.configurable import builtin


class Merge(Layer):
    """A function of a list of tensors; those of lower rank get axes of extent 1 behind the batch."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True

    def _merge(self, xs: list[Any]) -> Any:
        raise NotImplementedError

    def _checked(self, inputs: Any) -> list[Any]:
        if not isinstance(inputs, (list, tuple)) or not inputs:
            raise ValueError(f"{type(self).__name__} {self.name!r}: expected a list of tensors, got {inputs!r}")
        return list(inputs)

    def call(self, inputs: Any) -> Any:
        xs = self._checked(inputs)
        rank = max(len(x.shape) for x in xs)
        xs = [
            x if len(x.shape) == rank else ops.reshape(x, (x.shape[0], *(1,) * (rank - len(x.shape)), *x.shape[1:]))
            for x in xs
        ]
        for x in xs[1:]:
            if any(a != b and 1 not in (a, b) for a, b in zip(xs[0].shape, x.shape, strict=True)):
                raise ValueError(
                    f"{type(self).__name__} {self.name!r}: expected inputs whose shapes can be broadcast, got "
                    f"{[tuple(x.shape) for x in xs]}"
                )
        return xs[0] if len(xs) == 1 else self._merge(xs)


@builtin
class Add(Merge):
    """The sum of all inputs."""

    def _merge(self, xs: list[Any]) -> Any:
        return ops.Add()(*xs)


@builtin
class Subtract(Merge):
    """The first input minus the second."""

    def _merge(self, xs: list[Any]) -> Any:
        if len(xs) != 2:
            raise ValueError(f"Subtract {self.name!r}: expected two inputs, got {len(xs)}")
        return ops.subtract(*xs)


@builtin
class Multiply(Merge):
    """The product of all inputs."""

    def _merge(self, xs: list[Any]) -> Any:
        return reduce(ops.multiply, xs)


@builtin
class Average(Merge):
    """The mean of all inputs."""

    def _merge(self, xs: list[Any]) -> Any:
        return ops.average(xs)


@builtin
class Maximum(Merge):
    """The maximum of all inputs, element by element."""

    def _merge(self, xs: list[Any]) -> Any:
        return reduce(ops.maximum, xs)


@builtin
class Minimum(Merge):
    """The minimum of all inputs, element by element."""

    def _merge(self, xs: list[Any]) -> Any:
        return reduce(ops.minimum, xs)


@builtin
class Concatenate(Merge):
    """The inputs one behind the other along axis."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        xs = self._checked(inputs)
        shapes = [tuple(x.shape) for x in xs]
        rank = len(shapes[0])
        axis = self.axis % rank if -rank <= self.axis < rank else rank
        rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
        if axis == rank or len({len(shape) for shape in shapes}) > 1 or len(rests) > 1:
            raise ValueError(
                f"Concatenate {self.name!r}: expected shapes that differ on axis {self.axis} alone, got {shapes}"
            )
        return xs[0] if len(xs) == 1 else ops.concatenate(xs, axis=axis)


def _function(layer: Callable[..., Layer], doc: str) -> Callable[..., Any]:
    def merge(inputs: Sequence[Any], **kwargs: Any) -> Any:
        return layer(**kwargs)(inputs)

    merge.__name__ = layer.__name__.lower()
    merge.__doc__ = doc
    return merge


add = _function(Add, "The sum of inputs.")
subtract = _function(Subtract, "The first of two inputs minus the second.")
multiply = _function(Multiply, "The product of inputs.")
average = _function(Average, "The mean of inputs.")
maximum = _function(Maximum, "The maximum of inputs.")
minimum = _function(Minimum, "The minimum of inputs.")


def concatenate(inputs: Sequence[Any], axis: int = -1, **kwargs: Any) -> Any:
    """The inputs one behind the other along axis."""
    return Concatenate(axis=axis, **kwargs)(inputs)
