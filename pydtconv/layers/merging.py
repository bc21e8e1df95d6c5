"""Layers of several inputs: Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate; and as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pydtconv import ops
from pydtconv.dtypes import FLOATING
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.masks import any_of, mask_of
from pydtconv.serialization.configurable import builtin


class Merge(Layer):
    """A function of a list of tensors; those of lower rank get axes of extent 1 behind the batch."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pydt_needs_no_build()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """A step counts where it counts in one of the inputs."""
        return None if mask is None else any_of(self._masks_by_input(inputs, mask))

    def _masks_by_input(self, inputs: Any, mask: Any) -> list[Any]:
        """The masks of a list of inputs.  Raises ValueError where they are no lists of one length."""
        lists = all(isinstance(each, (list, tuple)) for each in (inputs, mask))
        if not lists or len(inputs) != len(mask):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: compute_mask: expected a list of inputs and one of as many "
                f"masks, got {inputs!r} and {mask!r}"
            )
        return list(mask)

    def _merge(self, xs: list[Any]) -> Any:
        raise NotImplementedError

    def _checked(self, inputs: Any) -> list[Any]:
        if not isinstance(inputs, (list, tuple)) or not inputs or any(x is None for x in inputs):
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
        if any(x.dtype not in FLOATING for x in xs):
            return reduce(ops.add, xs)
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
    """The product of all inputs; a step that does not count in one input is 1 there, and 0 where it counts in none."""

    def _merge(self, xs: list[Any]) -> Any:
        masks = [over_channels(x) for x in xs]
        factors = [x if mask is None else ops.where(mask, x, 1.0) for x, mask in zip(xs, masks, strict=True)]
        product = reduce(ops.multiply, factors)
        some = any_of(masks)
        return product if some is None else ops.where(some, product, 0.0)


@builtin
class Average(Merge):
    """The mean of all inputs."""

    reads_integers = False

    def _merge(self, xs: list[Any]) -> Any:
        return ops.mean_of(xs)


@builtin
class Maximum(Merge):
    """The maximum of all inputs, element by element: of those in which a step counts."""

    def _merge(self, xs: list[Any]) -> Any:
        return _of_what_counts(ops.maximum, xs)


@builtin
class Minimum(Merge):
    """The minimum of all inputs, element by element: of those in which a step counts."""

    def _merge(self, xs: list[Any]) -> Any:
        return _of_what_counts(ops.minimum, xs)


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

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """A step counts where one of its channels does; all steps of an input without a mask count."""
        masks = [] if mask is None else self._masks_by_input(inputs, mask)
        if all(each is None for each in masks):
            return None
        ones = [ops.ones_like(x, dtype="float32") for x in inputs]
        masks = [None if each is None else ops.cast(each, "float32") for each in masks]
        wide = [
            one if each is None else each if each.ndim == one.ndim else ops.multiply(one, ops.expand_dims(each, -1))
            for one, each in zip(ones, masks, strict=True)
        ]
        return ops.max(ops.concatenate(wide, axis=self.axis), axis=-1)


def over_channels(x: Any) -> Any:
    """The mask of x (n, steps, c) as one of its elements, or None."""
    mask = mask_of(x)
    return None if mask is None else ops.multiply(ops.expand_dims(mask, -1), ops.ones_like(x, dtype=mask.dtype))


def _of_what_counts(function: Callable[[Any, Any], Any], xs: list[Any]) -> Any:
    result, known = xs[0], over_channels(xs[0])
    for x in xs[1:]:
        mask = over_channels(x)
        x = x if mask is None else ops.where(mask, x, result)
        result = function(result if known is None else ops.where(known, result, x), x)
        known = None if known is None or mask is None else ops.maximum(known, mask)
    return result


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
