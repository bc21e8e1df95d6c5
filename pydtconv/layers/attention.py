"""Attention and AdditiveAttention: of whole vectors, without projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.layers.base import masks
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.seeds import seed_of_call
from pydtconv.serialization.budget import claim
from pydtconv.serialization.configurable import builtin
from pydtconv.support.random import next_seed

_NEVER = 1e9  # what is taken from the scores of masked keys


@builtin
class Attention(Layer):
    """softmax(scores) value for the inputs [query, value] or [query, value, key]; Luong et al. (2015).

    query (n, ..., tq, features), value (n, ..., tv, features), key (n, ..., tv, features), which is value where it is
    absent.
    score_mode: "dot" for query key^T, "concat" for the sum of tanh(query + key) over the features.  use_scale: a weight
    multiplies the scores ("dot") or what the tanh is of ("concat").  dropout: of softmax(scores), in training.
    """

    reads_integers = False

    carries_masks = True

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError(f"Attention: score_mode: expected 'dot' or 'concat', got {score_mode!r}")
        if not 0 <= dropout < 1:
            raise ValueError(f"{type(self).__name__}: dropout: expected a number from 0 to below 1, got {dropout!r}")
        self.use_scale = use_scale
        self.score_mode = score_mode
        self.dropout = dropout
        self.seed = seed
        self.own_seed = next_seed() if seed is None else seed

    def build(self, input_shape: Any) -> None:
        self._checked(input_shape)
        self.scale = self.add_weight((), "ones", name="scale") if self.use_scale else None
        concat = self.score_mode == "concat"
        self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight") if concat else None

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        query, value, key = self._checked(inputs)
        query_mask, value_mask = (mask[0], mask[1]) if mask else (None, None)
        rate = self.dropout if training else 0.0
        of_one_batch = query.shape[0] == key.shape[0] == value.shape[0]  # else one of them serves all samples
        if len(query.shape) == 3 and self._fits_one_operator() and of_one_batch and not return_attention_scores:
            y, scores = self._attend(query, key, value, value_mask, use_causal_mask, rate), None
        else:
            scores = self._scores(query, key)
            scores = self._masked(scores, value_mask, use_causal_mask)
            scores = ops.softmax(scores)
            scores = ops.Dropout(rate=rate, seed=seed_of_call(self), always=True)(scores) if rate else scores
            y = ops.matmul(scores, value)
        if query_mask is not None:
            y = ops.multiply(y, ops.expand_dims(_floats(query_mask, y.dtype), -1))
        return (y, scores) if return_attention_scores else y

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if isinstance(mask, (list, tuple)) else None

    def _checked(self, inputs: Any) -> tuple[Any, Any, Any]:
        """query, value and key, or their shapes."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) not in (2, 3):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected [query, value] or [query, value, key], got {inputs!r}"
            )
        return inputs[0], inputs[1], inputs[-1] if len(inputs) > 2 else inputs[1]

    def _fits_one_operator(self) -> bool:
        """Whether scores are products alone, and inputs have no further axes."""
        return self.score_mode == "dot"

    def _attend(self, query: Any, key: Any, value: Any, mask: Any, causal: bool, rate: float) -> Any:
        """One head of the operator whose scores are not in memory."""
        if self.scale is not None:
            query = ops.multiply(query, self.scale)
        heads = [ops.expand_dims(x, 2) for x in (query, key, value)]
        op = ops.Attention(1.0, causal, rate, seed=seed_of_call(self) if rate else None, always=True)
        if mask is not None:
            heads.append(ops.reshape(mask, (mask.shape[0], 1, 1, mask.shape[1])))
        return ops.squeeze(op(*heads), 2)

    def _scores(self, query: Any, key: Any) -> Any:
        """(n, ..., tq, tv)."""
        if self.score_mode == "dot":
            scores = ops.einsum("...qd,...kd->...qk", query, key)
            return scores if self.scale is None else ops.multiply(scores, self.scale)
        both = ops.add(ops.expand_dims(query, -2), ops.expand_dims(key, -3))
        if self.scale is not None:
            both = ops.multiply(both, self.scale)
        return ops.multiply(ops.sum(ops.tanh(both), axis=-1), self.concat_score_weight)

    def _masked(self, scores: Any, mask: Any, causal: bool) -> Any:
        if causal:
            tq, tv = scores.shape[-2:]
            claim(tq * tv, f"attention: a mask of {tq} x {tv}")
            scores = ops.add(scores, np.triu(np.full((tq, tv), -_NEVER, real(scores.dtype)), 1))
        if mask is None:
            return scores
        mask = _floats(mask, scores.dtype)
        return ops.add(scores, ops.affine(ops.expand_dims(mask, -2), _NEVER, -_NEVER))


@builtin
class AdditiveAttention(Attention):
    """Attention whose scores are the sum of scale * tanh(query + key) over the features; Bahdanau et al. (2015)."""

    _pydt_not_in_config = ("score_mode",)

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(use_scale=use_scale, dropout=dropout, **kwargs)

    def build(self, input_shape: Any) -> None:
        query, _, _ = self._checked(input_shape)
        self.scale = self.add_weight((query[-1],), "glorot_uniform", name="scale") if self.use_scale else None

    def _fits_one_operator(self) -> bool:
        return False

    def _scores(self, query: Any, key: Any) -> Any:
        both = ops.tanh(ops.add(ops.expand_dims(query, -2), ops.expand_dims(key, -3)))
        return ops.sum(both if self.scale is None else ops.multiply(both, self.scale), axis=-1)


def with_causality(shape: Sequence[int], window: int | None, causal: bool) -> np.ndarray | None:
    """(1, tq, tk) of 1 and 0: keys up to each query, fewer than `window` steps away; None for all."""
    if window is None and not causal:
        return None
    claim(shape[0] * shape[1], f"attention: a mask of {shape[0]} x {shape[1]}")
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None]
    allowed = np.ones((shape[0], shape[1]), bool)
    if causal:
        allowed &= columns <= rows
    if window is not None:
        allowed &= np.abs(rows - columns) < window
    return None if allowed.all() else allowed[None]


def attention_mask_of(
    query: Any, value: Any, query_mask: Any, value_mask: Any, key_mask: Any, given: Any, pattern: np.ndarray | None
) -> Any:
    """All masks together, (n, tq, tk) or what broadcasts to it; None for none.

    The one that is given may be (tq, tk), for all samples.
    """
    dtype = real(query.dtype)
    if given is not None and len(given.shape) == 2:
        given = ops.expand_dims(given, 0)
    parts = [
        None if query_mask is None else ops.expand_dims(_floats(query_mask, dtype), -1),
        None if value_mask is None else ops.expand_dims(_floats(value_mask, dtype), -2),
        None if key_mask is None else ops.expand_dims(_floats(key_mask, dtype), -2),
        None if pattern is None else pattern.astype(dtype),
        None if given is None else _floats(given, dtype),
    ]
    return masks.all_of(*parts)


def _floats(mask: Any, dtype: str) -> Any:
    """A mask of ones and zeros."""
    if hasattr(mask, "apply_op"):
        return mask if mask.dtype == dtype else ops.cast(mask, dtype)
    return (np.asarray(mask) != 0).astype(dtype)
