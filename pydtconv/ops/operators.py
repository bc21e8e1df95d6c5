"""Python's arithmetic on symbolic tensors: `a + b`, `2 * a`, `-a`, `a[:, 1:]`, ... as operators of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np


def _of_table(name: str, *operands: Any) -> Any:
    from pydtconv import ops

    return getattr(ops, name)(*operands)


def equal(name: str, tensor: Any, other: Any, among_tensors: bool) -> Any:
    """tensor == other (or !=, by the name) element by element, where other is a number or an array; else identity.

    among_tensors: whether other tensors, variables and lists are compared so, too.
    """
    numbers = (bool, int, float, np.ndarray, np.generic)
    others = hasattr(other, "apply_op") or isinstance(other, (list, tuple))
    compared = isinstance(other, numbers) or (among_tensors and others)
    return _of_table(name, tensor, other) if compared else NotImplemented


class Operators:
    """Mixin of everything that has `apply_op`: symbolic tensors and variables."""

    #: so that NumPy leaves `array + tensor` to us
    __array_ufunc__: Any = None
    shape: Any

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __add__(self, other: Any) -> Any:
        from pydtconv.ops import add

        return add(self, other)

    def __radd__(self, other: Any) -> Any:
        from pydtconv.ops import add

        return add(other, self)

    def __sub__(self, other: Any) -> Any:
        from pydtconv.ops import subtract

        return subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        from pydtconv.ops import subtract

        return subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        from pydtconv.ops import multiply

        return multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        from pydtconv.ops import multiply

        return multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        from pydtconv.ops import true_divide

        return true_divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        from pydtconv.ops import true_divide

        return true_divide(other, self)

    def __pow__(self, exponent: Any) -> Any:
        from pydtconv.ops import power

        return power(self, exponent)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        return _of_table("round", self, digits or 0)

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        from pydtconv.ops import negative

        return negative(self)

    def __abs__(self) -> Any:
        from pydtconv.ops import abs

        return abs(self)

    def __rpow__(self, base: Any) -> Any:
        from pydtconv.ops import power

        return power(base, self)

    def __mod__(self, other: Any) -> Any:
        return _of_table("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _of_table("mod", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _of_table("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _of_table("floor_divide", other, self)

    def __lt__(self, other: Any) -> Any:
        return _of_table("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _of_table("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _of_table("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _of_table("greater_equal", self, other)

    def __and__(self, other: Any) -> Any:
        return _of_table("logical_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _of_table("logical_and", other, self)

    def __or__(self, other: Any) -> Any:
        return _of_table("logical_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _of_table("logical_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return _of_table("logical_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _of_table("logical_xor", other, self)

    def __invert__(self) -> Any:
        return _of_table("logical_not", self)

    def __matmul__(self, other: Any) -> Any:
        from pydtconv.ops import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from pydtconv.ops import matmul

        return matmul(other, self)

    def __getitem__(self, key: Any) -> Any:
        from pydtconv.ops import get_item

        return get_item(self, key)
