"""GroupedQueryAttention: several heads of queries read one head of keys and values."""

from __future__ import annotations

import math
from typing import Any

from pydtconv import ops
from pydtconv.layers.attention import attention_mask_of, with_causality
from pydtconv.layers.base.arguments import positive
from pydtconv.layers.multi_head_attention import ProjectedAttention
from pydtconv.serialization.configurable import builtin


@builtin
class GroupedQueryAttention(ProjectedAttention):
    """Multi-head attention with several heads of queries for one of keys and values; Ainslie et al. (2023).

    query (n, tq, features), value (n, tk, features), key (n, tk, features), value where it is absent.  head_dim:
    features of a head.  The number of query heads is a multiple of the other.  The rest is as for MultiHeadAttention.
    """

    _pydt_not_in_config = ("flash_attention",)
    _keras_name = "GroupQueryAttention"  # by which Keras exports it

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.head_dim = positive("GroupedQueryAttention", "head_dim", head_dim)
        self.num_query_heads = positive("GroupedQueryAttention", "num_query_heads", num_query_heads)
        self.num_key_value_heads = positive("GroupedQueryAttention", "num_key_value_heads", num_key_value_heads)
        if num_query_heads % num_key_value_heads:
            raise ValueError(
                f"GroupedQueryAttention: num_key_value_heads: expected a divisor of {num_query_heads}, got "
                f"{num_key_value_heads}"
            )
        self._keep_common(
            dropout, use_bias, sliding_window, flash_attention,
            (kernel_initializer, kernel_regularizer, kernel_constraint),
            (bias_initializer, bias_regularizer, bias_constraint), use_gate, seed,
        )  # fmt: skip

    def build(  # type: ignore[override]
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> None:
        self._keep_shapes(query_shape, value_shape, key_shape)
        heads, few = self.num_query_heads, self.num_key_value_heads
        self._query_dense = self._projection("bqm,muh->bquh", (None, heads, self.head_dim), "uh", "query")
        self._query_dense.build(query_shape)
        self._key_dense = self._projection("bkm,mvh->bkvh", (None, few, self.head_dim), "vh", "key")
        self._key_dense.build(value_shape if key_shape is None else key_shape)
        if self.use_gate:
            self._gate_dense = self._projection(
                "bqm,muh->bquh", (None, heads, self.head_dim), "uh", "gate", activation="sigmoid"
            )
            self._gate_dense.build(query_shape)
        self._value_dense = self._projection("bkm,mvh->bkvh", (None, few, self.head_dim), "vh", "value")
        self._value_dense.build(value_shape)
        self._output_dense = self._projection("bquh,uhm->bqm", (None, query_shape[-1]), "m", "attention_output")
        self._output_dense.build((None, None, heads, self.head_dim))

    def call(
        self,
        query: Any,
        value: Any,
        key: Any = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        pattern = with_causality((query.shape[1], value.shape[1]), self.sliding_window, causal=False)
        mask = attention_mask_of(query, value, query_mask, value_mask, key_mask, attention_mask, pattern)
        gate = self._gate_dense(query) if self.use_gate else None
        q, k = self._query_dense(query), self._key_dense(value if key is None else key)
        y, scores = self._attend(
            q, k, self._value_dense(value), 1 / math.sqrt(self.head_dim), mask, use_causal_mask, bool(training),
            return_attention_scores,
        )  # fmt: skip
        y = self._output_dense(y if gate is None else ops.multiply(y, gate))
        return (y, scores) if return_attention_scores else y
