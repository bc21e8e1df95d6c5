"""Python's arithmetic on symbolic tensors: `a + b`, `2 * a`, `-a`, `a[:, 1:]`, ... as operators of the graph."""

from __future__ import annotations

from typing import Any


class Operators:
    """Mixin of everything that has `apply_op`: symbolic tensors and variables."""

    #: so that NumPy leaves `array + tensor` to us
    __array_ufunc__ = None

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
        from pydtconv.ops import divide

        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        from pydtconv.ops import divide

        return divide(other, self)

    def __pow__(self, exponent: Any) -> Any:
        from pydtconv.ops import power

        return power(self, exponent)

    def __neg__(self) -> Any:
        from pydtconv.ops import negative

        return negative(self)

    def __matmul__(self, other: Any) -> Any:
        from pydtconv.ops import matmul

        return matmul(self, other)

    def __getitem__(self, key: Any) -> Any:
        from pydtconv.ops import get_item

        return get_item(self, key)
