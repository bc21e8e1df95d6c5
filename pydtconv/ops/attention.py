"""Scaled dot-product attention as one operator, whose scores are never all in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv.extents import check_products
from pydtconv.ops.base import Cost, Op, Retained, Spec, functions
from pydtconv.ops.checks import fits, same_float

__all__ = ["Attention"]


@dataclass(frozen=True)
class Attention(Op):
    """y = dropout(softmax(scale q k^T)) v for each head; Vaswani et al. (2017), computed as Dao et al. (2022).

    Inputs: q (n, tq, heads, d), k (n, tk, kv_heads, d), v (n, tk, kv_heads, dv) and, if given, mask (n, heads, tq, tk)
    or 1 in the place of any of them, of any dtype: where it is 0, a query does not attend to a key.  y (n, tq, heads,
    dv).  heads is a multiple of kv_heads: query head h reads head h * kv_heads / heads of k and v.

    scale: None is 1 / sqrt(d).  causal: query i attends to keys 0 ... i.  rate: of dropout in training passes, or, if
    `always`, in all; seed: of this operator alone, None takes the run's.  zero_empty: a query that may attend to no key
    gets 0 instead of the mean of v.

    Backward keeps q, k, v, y and one number for each query and head.
    """

    scale: float | None = None
    causal: bool = False
    rate: float = 0.0
    seed: int | None = None
    always: bool = False
    zero_empty: bool = False

    accumulates: ClassVar[tuple[int, ...]] = (0, 1, 2)
    nondifferentiable: ClassVar[tuple[int, ...]] = (3,)
    dense_inputs: ClassVar[tuple[int, ...]] = (3,)

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise ValueError(f"Attention: rate: expected a number from 0 to below 1, got {self.rate}")

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return self.rate > 0

    def infer(self, *inputs: Spec) -> Spec:
        if len(inputs) not in (3, 4):
            raise ValueError(f"Attention: expected inputs q, k, v and perhaps mask, got {len(inputs)} inputs")
        q, k, v = inputs[:3]
        dtype = same_float("Attention", q, k, v)
        for name, spec in zip("qkv", (q, k, v), strict=True):
            if len(spec.shape) != 4:
                raise ValueError(f"Attention: {name}: expected (n, tokens, heads, features), got shape {spec.shape}")
        n, tq, heads, d = q.shape
        wanted = (n, k.shape[1], k.shape[2])
        if not fits(k.shape, (*wanted, d)) or not fits(v.shape[:3], wanted):
            raise ValueError(
                f"Attention: expected k (n, tokens, heads, {d}) and v (n, tokens, heads, features) that fit q of shape "
                f"{q.shape}, got {k.shape} and {v.shape}"
            )
        if not k.shape[2] or heads is None or heads % k.shape[2]:
            raise ValueError(f"Attention: expected heads of k and v that divide {heads}, got {k.shape[2]}")
        if len(inputs) > 3:
            self._check_mask(inputs[3], (n, heads, tq, k.shape[1]))
        check_products("Attention", self.cost("backward", *inputs)["backward"].multiplications)
        return Spec((n, tq, heads, v.shape[3]), dtype)

    def _check_mask(self, mask: Spec, shape: tuple[int | None, ...]) -> None:
        wrong = [a for a, b in zip(mask.shape, shape, strict=False) if a != 1 and None not in (a, b) and a != b]
        if len(mask.shape) != 4 or wrong:
            raise ValueError(
                f"Attention: mask: expected shape {shape}, or 1 in the place of an extent, got {mask.shape}"
            )

    def sizes(self, *inputs: Spec) -> tuple[int, int, int, int, int, int, int]:
        """n, heads, kv_heads, tq, tk, d, dv; an unknown batch as 1."""
        q, k, v = (tuple(extent or 1 for extent in spec.shape) for spec in inputs[:3])
        return q[0], q[2], k[2], q[1], k[1], q[3], v[3]

    def factor(self, d: int) -> float:
        """By what scores are multiplied."""
        return 1 / math.sqrt(d) if self.scale is None else self.scale

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(range(len(needs))), y=(0,))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        n, tq, heads, _ = inputs[0].shape
        return {"sums": Spec((n, heads, tq), inputs[0].dtype)}

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        n, heads, _, tq, tk, d, dv = self.sizes(*inputs)
        products = n * heads * tq * tk * ((d + dv) if direction == "forward" else 3 * d + 2 * dv)
        return {direction: Cost(2 * products, products)}

    def formula(self, q: Any, k: Any, v: Any, *masks: Any) -> Any:
        ops = functions
        if self.rate:
            raise NotImplementedError("attention with dropout: its gradient cannot be differentiated again")
        group = q.shape[2] // k.shape[2]
        k, v = (ops.repeat(each, group, axis=2) if group > 1 else each for each in (k, v))
        scores = ops.einsum("bqhd,bkhd->bhqk", q, k) * self.factor(q.shape[3])
        seen: Any = np.ones((1, 1, q.shape[1], k.shape[1]), bool)
        if self.causal:
            seen = np.tril(seen)
        for mask in masks:
            seen = ops.logical_and(ops.cast(mask, "bool"), seen)
        weights = ops.softmax(ops.where(seen, scores, -1e30), axis=-1)
        if self.zero_empty:
            weights = ops.where(ops.any(seen, axis=-1, keepdims=True), weights, 0.0)
        return ops.einsum("bhqk,bkhd->bqhd", weights, v)
