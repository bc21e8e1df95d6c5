"""Matrix products: the dense layer's and the general one, through the library's GEMM.

y = f(x w + b + r)      x (..., k), w (k, n), b (n,), r and y (..., n)
dx = dy w^T, dw = x^T dy, db = sum of dy's rows, dr = dy, with dy multiplied by f' first
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.dtypes import real
from pydtconv.ops.activation import check_fusable
from pydtconv.ops.base import Cost, Op, Retained, Spec, functions
from pydtconv.ops.checks import broadcast_shapes, same_float, same_real
from pydtconv.ops.gradients import unbroadcast
from pydtconv.ops.kinds import FUSABLE, SMOOTH

__all__ = ["Dense", "MatMul"]


@dataclass(frozen=True)
class Dense(Op):
    """y = f(x w), f(x w + b) or f(x w + b + r) over the last axis of x; f is a fused activation, alpha its parameter.

    residual: the last input is r, whose place y may take; without it there is no r.
    f of the kinds SMOOTH leaves z, what it is applied to, for backward, and has y again from z without a product.
    wide: y is float32 where x is bfloat16.
    """

    activation: str | None = None
    alpha: float | None = None
    residual: bool = False
    wide: bool = False

    splits: ClassVar[int] = 1
    takes_bias: ClassVar[bool] = True
    takes_activation: ClassVar[bool] = True
    smooth_activations: ClassVar[tuple[str, ...]] = SMOOTH
    takes_residual: ClassVar[bool] = True
    mesh: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        check_fusable(self.activation, (*FUSABLE, *SMOOTH))
        if self.smooth and self.residual:
            raise ValueError(f"Dense: residual: expected False with the activation {self.activation}, got True")
        object.__setattr__(self, "overwrites_dy", self.activation is not None)

    @property
    def smooth(self) -> bool:
        """Whether f' follows from z and not from y."""
        return self.activation in SMOOTH

    @property
    def name(self) -> str:
        return "dense+add" if self.residual else "dense"

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return (0, 1) if self.residual else (0, 1, 2)

    @property
    def inplace(self) -> tuple[int, ...]:  # type: ignore[override]
        return (2, 3) if self.residual else ()  # of these, what has y's shape

    @property
    def passes_dy(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inplace

    @property
    def replay_inputs(self) -> tuple[int, ...] | None:  # type: ignore[override]
        return () if self.smooth else None

    def bias_of(self, inputs: Sequence[Any]) -> Any:
        """The one of the inputs, or of what belongs to them, that is the bias's; None where there is none."""
        return inputs[2] if len(inputs) - self.residual > 2 else None

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(1, count - self.residual))

    def infer(self, *inputs: Spec) -> Spec:
        same_real("Dense", *(inputs[:-1] if self.residual else inputs))
        if len(inputs) - self.residual not in (2, 3):
            last = " and a residual" if self.residual else ""
            raise ValueError(f"Dense: expected inputs x, w and perhaps b{last}, got {len(inputs)} inputs")
        x, w = inputs[:2]
        if len(w.shape) != 2:
            raise ValueError(f"Dense: expected w of two dimensions, got shape {w.shape}")
        if not x.shape or x.shape[-1] != w.shape[0]:
            raise ValueError(f"Dense: expected x of shape (..., {w.shape[0]}) for w of shape {w.shape}, got {x.shape}")
        bias, y = self.bias_of(inputs), Spec((*x.shape[:-1], w.shape[1]), real(x.dtype) if self.wide else x.dtype)
        if bias is not None and bias.shape != w.shape[1:]:
            raise ValueError(f"Dense: expected b of shape {w.shape[1:]}, got {bias.shape}")
        if self.residual and (inputs[-1] != y or len(y.shape) < 2):
            raise ValueError(
                f"Dense: expected a residual of shape {y.shape}, of two axes or more, got {inputs[-1].shape}"
            )
        return y

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x = (0,) if needs[1] else ()
        return Retained(x=(*x, 1) if needs[0] else x, y=(0,) if self.activation and not self.smooth else ())

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        return {"z": self.infer(*inputs)} if self.smooth and training else {}

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        x, w = inputs[:2]
        products = x.size * (w.shape[1] or 0)
        parts = ("forward",) if direction == "forward" else ("backward_data", "backward_weights")
        return dict.fromkeys(parts, Cost(2 * products, products))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        images, w = x[:2]
        rows, g = functions.reshape(images, (-1, w.shape[0])), functions.reshape(dy, (-1, w.shape[1]))
        dx = functions.reshape(functions.matmul(g, functions.transpose(w)), tuple(images.shape))
        return [dx, functions.matmul(functions.transpose(rows), g), *[functions.sum(g, axis=0)] * (len(x) - 2)]


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

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        a, b = x
        da = functions.matmul(dy, functions.swapaxes(b, -1, -2))
        db = functions.matmul(functions.swapaxes(a, -1, -2), dy)
        return [unbroadcast(da, a.shape), unbroadcast(db, b.shape)]
