"""Variables of one number: a learning rate, a count of iterations."""

from __future__ import annotations

from typing import Any

from pydtconv.graph.ir.variable import Variable


class Scalar(Variable):
    """A variable without dimensions that can stand where a number is expected."""

    def __init__(self, value: Any, dtype: str, name: str) -> None:
        super().__init__(value, shape=(), dtype=dtype, trainable=False, name=name)

    def __float__(self) -> float:
        return float(self.known())

    def __int__(self) -> int:
        return int(self.known())

    def __index__(self) -> int:
        return self.known().item().__index__()

    def __bool__(self) -> bool:
        return bool(self.known())

    def __format__(self, form: str) -> str:
        return format(self.known().item(), form)

    def __eq__(self, other: object) -> bool:
        return bool(self.known() == other)

    def __lt__(self, other: Any) -> bool:
        return bool(self.known() < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.known() <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.known() > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.known() >= other)

    __hash__ = Variable.__hash__
