"""Attention, and rows of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.dtypes import real
from pydtconv.ops.attention import Attention
from pydtconv.ops.functions.arithmetic import add, multiply
from pydtconv.ops.functions.einsum import einsum
from pydtconv.ops.functions.operands import as_operand, of_one_dtype
from pydtconv.ops.functions.shape import cast, reshape
from pydtconv.ops.functions.softmax import softmax
from pydtconv.ops.functions.tables.composed_shapes import where
from pydtconv.ops.parts import exported
from pydtconv.serialization.budget import claim

__all__ = exported(nn="dot_product_attention")

#: scores in the place of minus infinity
_NEVER = -1e9


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """softmax(scale query key^T + bias) value, for each head.

    query: (n, tq, heads, d).  key: (n, tk, kv_heads, d).  value: (n, tk, kv_heads, dv); kv_heads divides heads.
    bias: added to the scores (n, heads, tq, tk) or what broadcasts to them.  mask: the same, where a query may attend
    to a key.  scale: 1 / sqrt(d) for None.  is_causal: query i attends to keys 0 ... i.  flash_attention: False
    computes the whole matrix of scores; otherwise that is done for a bias alone, and the scores stay in cache (Dao et
    al., 2022).  A query that may attend to no key gets the mean of all values.

    Returns (n, tq, heads, dv).  Raises ValueError for shapes that do not fit, and for attn_logits_soft_cap, which is
    not supported.
    """
    if attn_logits_soft_cap is not None:
        raise ValueError(f"dot_product_attention: attn_logits_soft_cap: expected None, got {attn_logits_soft_cap}")
    query, key, value = of_one_dtype(query, key, value)
    tq, tk = query.shape[1], key.shape[1]
    op = Attention(scale, bool(is_causal and mask is None))
    if mask is not None:
        mask = as_operand(mask)
        mask = reshape(mask, (1,) * (4 - len(mask.shape)) + tuple(mask.shape))
        if is_causal:
            claim(tq * tk, f"attention: a mask of {tq} x {tk}")
            mask = where(np.tri(tq, tk, dtype=bool), mask, np.zeros((), real(mask.dtype)))
    if bias is None and flash_attention is not False:
        return op(query, key, value) if mask is None else op(query, key, value, mask)
    return _with_scores(op, query, key, value, bias, mask)


def _with_scores(op: Attention, query: Any, key: Any, value: Any, bias: Any, mask: Any) -> Any:
    """The same with the whole matrix of scores."""
    n, tq, heads, d = query.shape
    tk, kv_heads, dv = key.shape[1], key.shape[2], value.shape[3]
    groups = heads // kv_heads
    grouped = reshape(query, (n, tq, kv_heads, groups, d))
    scores = multiply(einsum("bqhgd,bkhd->bhgqk", grouped, key), op.factor(d))
    scores = reshape(scores, (n, heads, tq, tk))
    if bias is not None:
        scores = add(scores, of_one_dtype(scores, bias)[1])
    if op.causal:
        claim(tq * tk, f"attention: a mask of {tq} x {tk}")
        scores = where(np.tri(tq, tk, dtype=bool), scores, _NEVER)
    if mask is not None:
        scores = where(cast(mask, "bool"), scores, _NEVER)
    weights = reshape(softmax(scores), (n, kv_heads, groups, tq, tk))
    return reshape(einsum("bhgqk,bkhd->bqhgd", weights, value), (n, tq, heads, dv))
