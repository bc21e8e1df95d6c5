"""Products of two tensors, summed over some of their axes: what einsum is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Cost, Op, Retained, Spec
from pydtconv.ops.checks import same_float

__all__ = ["Contract"]


@dataclass(frozen=True)
class Contract(Op):
    """y[c] = sum of x0[a] * x1[b] over the axes that a and b share and c has not; a, b, c: a letter for each axis.

    Contract("bqhd", "bkhd", "bhqk").  No letter comes twice in one of them, and each is in at least two of the three.
    Neither operand is copied or transposed: axes that one stride walks are the rows, columns and depth of a GEMM.
    """

    a: str
    b: str
    c: str

    accumulates: ClassVar[tuple[int, ...]] = (0, 1)
    dense: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for letters in (self.a, self.b, self.c):
            if len(set(letters)) != len(letters):
                raise ValueError(f"Contract: expected each letter once, got {letters!r}")
        alone = set(self.a) ^ set(self.b) ^ set(self.c) ^ (set(self.a) & set(self.b) & set(self.c))
        if alone:
            raise ValueError(
                f"Contract: expected each letter in two of {self.a}, {self.b} and {self.c}, got "
                f"{''.join(sorted(alone))} in one"
            )

    def extents(self, *inputs: Spec) -> dict[str, int | None]:
        """The extent of each axis."""
        found: dict[str, int | None] = {}
        for letters, spec in zip((self.a, self.b), inputs, strict=True):
            if len(letters) != len(spec.shape):
                raise ValueError(f"{self.name}: expected {len(letters)} axes, {letters}, got shape {spec.shape}")
            for letter, extent in zip(letters, spec.shape, strict=True):
                if found.get(letter, extent) != extent and None not in (found[letter], extent):
                    raise ValueError(
                        f"{self.name}: {letter}: expected one extent, got shapes {inputs[0].shape} and "
                        f"{inputs[1].shape} for {self.a} and {self.b}"
                    )
                found[letter] = found.get(letter) or extent
        return found

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float(self.name, *inputs)
        extents = self.extents(*inputs)
        return Spec(tuple(extents[letter] for letter in self.c), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(i for i in (0, 1) if needs[1 - i]))

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        products = math.prod(extent or 1 for extent in self.extents(*inputs).values())
        count = 1 if direction == "forward" else 2
        return {direction: Cost(2 * count * products, count * products)}

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [Contract(self.c, self.b, self.a)(dy, x[1]), Contract(self.a, self.c, self.b)(x[0], dy)]
