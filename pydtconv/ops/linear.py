"""Matrix products: the dense layer's and the general one, through the library's GEMM.

y = f(x w + b)          x (..., k), w (k, n), b (n,), y (..., n)
dx = dy w^T, dw = x^T dy, db = sum of dy's rows, with dy multiplied by f'(y) first
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydtconv.ops.activation import check_fusable
from pydtconv.ops.base import Cost, Op, Retained, Spec
from pydtconv.ops.checks import broadcast_shapes, same_float


@dataclass(frozen=True)
class Dense(Op):
    """y = f(x w) or f(x w + b) over the last axis of x; f is a fused activation, alpha its parameter."""

    activation: str | None = None
    alpha: float | None = None

    accumulates: ClassVar[tuple[int, ...]] = (0, 1, 2)
    splits: ClassVar[int] = 1
    takes_bias: ClassVar[bool] = True
    takes_activation: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fusable(self.activation)
        object.__setattr__(self, "overwrites_dy", self.activation is not None)

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float("Dense", *inputs)
        x, w = inputs[:2]
        if len(w.shape) != 2:
            raise ValueError(f"Dense: expected w of two dimensions, got shape {w.shape}")
        if not x.shape or x.shape[-1] != w.shape[0]:
            raise ValueError(f"Dense: expected x of shape (..., {w.shape[0]}) for w of shape {w.shape}, got {x.shape}")
        if len(inputs) > 2 and inputs[2].shape != w.shape[1:]:
            raise ValueError(f"Dense: expected b of shape {w.shape[1:]}, got {inputs[2].shape}")
        return Spec((*x.shape[:-1], w.shape[1]), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x = (0,) if needs[1] else ()
        return Retained(x=(*x, 1) if needs[0] else x, y=(0,) if self.activation else ())

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        x, w = inputs[:2]
        products = x.size * (w.shape[1] or 0)
        parts = ("forward",) if direction == "forward" else ("backward_data", "backward_weights")
        return dict.fromkeys(parts, Cost(2 * products, products))


@dataclass(frozen=True)
class MatMul(Op):
    """y = x0 @ x1 for x0 (..., m, k) and x1 (..., k, n); the leading axes broadcast."""

    accumulates: ClassVar[tuple[int, ...]] = (0, 1)
    dense: ClassVar[bool] = True

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float("matmul", *inputs)
        a, b = (spec.shape for spec in inputs)
        if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
            raise ValueError(f"matmul: expected shapes (..., m, k) and (..., k, n), got {a} and {b}")
        return Spec((*broadcast_shapes("matmul", a[:-2], b[:-2]), a[-2], b[-1]), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(i for i in (0, 1) if needs[1 - i]))

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        products = self.infer(*inputs).size * (inputs[0].shape[-1] or 0)
        count = 1 if direction == "forward" else 2
        return {direction: Cost(2 * count * products, count * products)}
