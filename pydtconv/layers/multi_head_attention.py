"""MultiHeadAttention, and what it shares with GroupedQueryAttention."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Sequence
from typing import Any

from pydtconv import constraints, initializers, ops, regularizers
from pydtconv.dtypes import real
from pydtconv.layers.attention import attention_mask_of, with_causality
from pydtconv.layers.base import masks
from pydtconv.layers.base.arguments import positive
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.seeds import seed_of_call
from pydtconv.layers.einsum_dense import EinsumDense
from pydtconv.serialization.configurable import builtin
from pydtconv.support.random import next_seed

_NEVER = 1e9  # what is taken from the scores of masked keys


class ProjectedAttention(Layer):
    """Attention of heads that are projections of query, key and value, and a projection of what comes of it."""

    reads_integers = False

    carries_masks = True

    #: set by subclasses: of softmax(scores) in training; whether projections have a bias; fewer steps than these away
    dropout: float
    use_bias: bool
    sliding_window: int | None
    kernel_initializer: Any
    bias_initializer: Any
    _shapes: dict[str, Any]

    def _keep_common(
        self,
        dropout: float,
        use_bias: bool,
        sliding_window: int | None,
        flash_attention: bool | None,
        kernel: Sequence[Any],
        bias: Sequence[Any],
        use_gate: bool,
        seed: int | None,
    ) -> None:
        """Keeps the arguments that both kinds have; kernel, bias: initializer, regularizer, constraint."""
        name = type(self).__name__
        if not 0 <= dropout < 1:
            raise ValueError(f"{name}: dropout: expected a number from 0 to below 1, got {dropout!r}")
        if flash_attention and dropout > 0:
            raise ValueError(f"{name}: dropout: expected 0 with flash_attention=True, got {dropout!r}")
        self.dropout = dropout
        self.use_bias = use_bias
        self.sliding_window = None if sliding_window is None else positive(name, "sliding_window", sliding_window)
        self.flash_attention = flash_attention
        for weight, (initializer, regularizer, constraint) in (("kernel", kernel), ("bias", bias)):
            setattr(self, f"{weight}_initializer", initializers.get(initializer))
            setattr(self, f"{weight}_regularizer", regularizers.get(regularizer))
            setattr(self, f"{weight}_constraint", constraints.get(constraint))
        self.use_gate = use_gate
        self.seed = seed
        self.own_seed = next_seed() if seed is None else seed

    def _pydt_check_and_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if (args[1] if len(args) > 1 else kwargs.get("value", self)) is None:
            raise ValueError(f"{type(self).__name__} {self.name!r}: value: expected a tensor, got None")
        super()._pydt_check_and_build(args, kwargs)

    def _projection(
        self, equation: str, shape: Sequence[int | None], bias_axes: str, name: str, activation: Any = None
    ) -> EinsumDense:
        """A layer of its own initial values; shape: of the result behind the batch."""
        return EinsumDense(
            equation,
            tuple(shape),
            activation=activation,
            bias_axes=bias_axes if self.use_bias else None,
            name=name,
            dtype=self.dtype_policy,
            kernel_initializer=copy.deepcopy(self.kernel_initializer),
            bias_initializer=copy.deepcopy(self.bias_initializer),
            kernel_regularizer=self.kernel_regularizer,  # type: ignore[attr-defined]
            bias_regularizer=self.bias_regularizer,  # type: ignore[attr-defined]
            kernel_constraint=self.kernel_constraint,  # type: ignore[attr-defined]
            bias_constraint=self.bias_constraint,  # type: ignore[attr-defined]
        )

    def _attend(
        self, query: Any, key: Any, value: Any, scale: float, mask: Any, causal: bool, training: bool, scores: bool
    ) -> tuple[Any, Any]:
        """(n, tq, heads, features), and the weights (n, heads, tq, tk) where `scores` asks for them.

        query, key, value (n, tokens, heads, features); mask (n, tq, tk) or (n, heads, tq, tk), or None.
        """
        rate = self.dropout if training else 0.0
        if mask is not None and len(mask.shape) == 3:
            mask = ops.expand_dims(mask, 1)
        if not scores:
            op = ops.Attention(
                scale, causal, rate, seed_of_call(self) if rate else None, always=True, zero_empty=self.dropout > 0
            )
            return (op(query, key, value) if mask is None else op(query, key, value, mask)), None
        groups = query.shape[2] // key.shape[2]
        n, tq, heads, d = query.shape
        tk, kv_heads, dv = value.shape[1:]
        grouped = ops.reshape(query, (n, tq, kv_heads, groups, d))
        weights = ops.multiply(ops.einsum("bqhgd,bkhd->bhgqk", grouped, key), scale)
        weights = self._softmax_of(ops.reshape(weights, (n, heads, tq, tk)), mask, causal)
        kept = ops.Dropout(rate=rate, seed=seed_of_call(self), always=True)(weights) if rate else weights
        y = ops.einsum("bhgqk,bkhd->bqhgd", ops.reshape(kept, (n, kv_heads, groups, tq, tk)), value)
        return ops.reshape(y, (n, tq, heads, dv)), weights

    @staticmethod
    def _softmax_of(scores: Any, mask: Any, causal: bool) -> Any:
        """softmax over the keys that a query may attend to; 0 for the others, also where there are none."""
        pattern = with_causality(scores.shape[-2:], None, causal)
        allowed = masks.all_of(None if pattern is None else pattern.astype(real(scores.dtype)), mask)
        if allowed is None:
            return ops.softmax(scores)
        kept = ops.add(ops.multiply(scores, allowed), ops.multiply(ops.add(allowed, -1.0), _NEVER))
        return ops.multiply(ops.softmax(kept), allowed)

    def get_build_config(self) -> dict[str, Any] | None:
        return None if self._pydt_build_shapes is None else {"shapes_dict": self._shapes}

    def build_from_config(self, config: dict[str, Any]) -> None:
        if config and not self.built:
            self.build(**{name: tuple(shape) for name, shape in config["shapes_dict"].items()})

    def _keep_shapes(self, query_shape: Any, value_shape: Any, key_shape: Any) -> None:
        shapes = {"query_shape": query_shape, "value_shape": value_shape, "key_shape": key_shape}
        known = {name: tuple(shape) for name, shape in shapes.items() if shape is not None}
        object.__setattr__(self, "_shapes", known)

    def compute_output_shape(self, query_shape: Any, value_shape: Any = None, key_shape: Any = None) -> Any:
        """The shape of the result: query's, but for the features."""
        return tuple(query_shape)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        from pydtconv.layers.base.symbolic import infer_outputs

        return infer_outputs(self._pydt_traced_call, args, kwargs)


@builtin
class MultiHeadAttention(ProjectedAttention):
    """softmax(q k^T / sqrt(key_dim)) v for each of num_heads heads, projected; Vaswani et al. (NeurIPS 2017).

    query (n, tq, features), value (n, tk, features), key (n, tk, features), value where it is absent; further axes
    between are tokens as well, or, where attention_axes does not name them, parts of the batch.  value_dim: key_dim
    where it is absent.  output_shape: features of the result, query's where it is absent.  sliding_window: a query
    attends to keys fewer than so many steps away.  use_gate: the result is multiplied by sigmoid(a projection of the
    query) before it is projected.  flash_attention makes no difference: scores are in cache alone, unless they are
    asked for.
    """

    _pydt_not_in_config = ("flash_attention", "output_shape")
    query_dense: EinsumDense
    key_dense: EinsumDense
    value_dense: EinsumDense
    output_dense: EinsumDense
    _gate_dense: EinsumDense

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | Sequence[int] | None = None,
        attention_axes: int | Sequence[int] | None = None,
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
        self.num_heads = positive("MultiHeadAttention", "num_heads", num_heads)
        self.key_dim = positive("MultiHeadAttention", "key_dim", key_dim)
        self.value_dim = self.key_dim if not value_dim else positive("MultiHeadAttention", "value_dim", value_dim)
        self._keep_common(
            dropout, use_bias, sliding_window, flash_attention,
            (kernel_initializer, kernel_regularizer, kernel_constraint),
            (bias_initializer, bias_regularizer, bias_constraint), use_gate, seed,
        )  # fmt: skip
        features = (output_shape,) if isinstance(output_shape, int) else output_shape
        for count in features or ():
            positive("MultiHeadAttention", "output_shape", count)
        self._output_features = tuple(features) if features else None
        self.attention_axes = (attention_axes,) if isinstance(attention_axes, int) else attention_axes

    def build(  # type: ignore[override]
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> None:
        self._keep_shapes(query_shape, value_shape, key_shape)
        key_shape = value_shape if key_shape is None else key_shape
        if tuple(value_shape[1:-1]) != tuple(key_shape[1:-1]):
            raise ValueError(
                f"MultiHeadAttention {self.name!r}: expected value and key of the same tokens, got shapes "
                f"{tuple(value_shape)} and {tuple(key_shape)}"
            )
        heads = {"query": (query_shape, self.key_dim), "key": (key_shape, self.key_dim)}
        if self.use_gate:
            heads["gate"] = (query_shape, self.value_dim)
        heads["value"] = (value_shape, self.value_dim)
        for name, (shape, features) in heads.items():
            tokens = "abcdefg"[: len(shape) - 1]
            dense = self._projection(
                f"{tokens}x,xyz->{tokens}yz",
                (*(None,) * (len(shape) - 2), self.num_heads, features),
                "yz",
                name,
                "sigmoid" if name == "gate" else None,
            )
            dense.build(shape)
            setattr(self, "_gate_dense" if name == "gate" else f"{name}_dense", dense)
        tokens = "abcdefg"[: len(query_shape) - 1]
        outputs = self._output_features or (query_shape[-1],)
        result = "uvw"[: len(outputs)]
        self.output_dense = self._projection(
            f"{tokens}yz,yz{result}->{tokens}{result}",
            (*(None,) * (len(query_shape) - 2), *outputs),
            result,
            "attention_output",
        )
        self.output_dense.build((*query_shape[:-1], self.num_heads, self.value_dim))

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
        tokens = tuple(query.shape[1:-1]), tuple(value.shape[1:-1])
        q, k, v = self.query_dense(query), self.key_dense(value if key is None else key), self.value_dense(value)
        gate = self._gate_dense(query) if self.use_gate else None
        q, k, v = _of_one_batch(*(self._as_tokens(x) for x in (q, k, v)))
        own = type(self)._compute_attention is not MultiHeadAttention._compute_attention
        pattern = with_causality((q.shape[1], k.shape[1]), self.sliding_window, causal=own and use_causal_mask)
        mask = attention_mask_of(q, v, query_mask, value_mask, key_mask, attention_mask, pattern)
        if mask is not None and self._free_axes(len(query.shape)):
            raise ValueError(f"MultiHeadAttention {self.name!r}: expected no masks with attention_axes, got some")
        if own:
            more: dict[str, Any] = {"training": training, "return_attention_scores": return_attention_scores}
            known = inspect.signature(self._compute_attention).parameters
            y, scores = self._compute_attention(q, k, v, mask, **{k: v for k, v in more.items() if k in known})
        else:
            y, scores = self._attend(
                q, k, v, self._inverse_sqrt_key_dim, mask, use_causal_mask, bool(training), return_attention_scores
            )
        y = self._from_tokens(y, (max(query.shape[0], value.shape[0]), *query.shape[1:]))
        y = self.output_dense(y if gate is None else ops.multiply(y, gate))
        if query_mask is not None:
            masks.set_mask(y, query_mask)
        if not return_attention_scores:
            return y
        if not self._free_axes(len(query.shape)):
            scores = ops.reshape(scores, (*scores.shape[:2], *tokens[0], *tokens[1]))
        return y, scores

    # --- what subclasses of Keras's layer override and read: heads are (n, tokens, heads, features) -------------------
    _dot_product_equation = "aecd,abcd->acbe"
    _combine_equation = "acbe,aecd->abcd"
    _num_heads = property(lambda self: self.num_heads)
    _key_dim = property(lambda self: self.key_dim)
    _value_dim = property(lambda self: self.value_dim)
    _inverse_sqrt_key_dim = property(lambda self: 1 / math.sqrt(self.key_dim))

    def _compute_attention(
        self,
        query: Any,
        key: Any,
        value: Any,
        attention_mask: Any = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> tuple[Any, Any]:
        """The heads of the result, and the weights (n, heads, tq, tk); a subclass may have another one."""
        scale = self._inverse_sqrt_key_dim
        return self._attend(query, key, value, scale, attention_mask, False, bool(training), scores=True)

    def _masked_softmax(self, attention_scores: Any, attention_mask: Any = None) -> Any:
        """softmax over the keys of scores (n, heads, tq, tk) that a mask (n, tq, tk) leaves."""
        if attention_mask is not None and len(attention_mask.shape) == 3:
            attention_mask = ops.expand_dims(attention_mask, 1)
        return self._softmax_of(attention_scores, attention_mask, causal=False)

    def _dropout_layer(self, inputs: Any, training: bool | None = None) -> Any:
        rate = self.dropout if training else 0.0
        return ops.Dropout(rate=rate, seed=seed_of_call(self), always=True)(inputs) if rate else inputs

    def _free_axes(self, rank: int) -> list[int]:
        """Axes between batch and features that are not attended over, of an input of so many axes."""
        if self.attention_axes is None:
            return []
        named = {axis % rank if axis >= 0 else axis % (rank + 1) - 1 for axis in self.attention_axes}
        return [axis for axis in range(1, rank - 1) if axis not in named]

    def _order(self, rank: int) -> tuple[int, ...]:
        """Axes of heads (n, axes, heads, features), those that are not attended over behind the batch."""
        free = self._free_axes(rank)
        return (0, *free, *(axis for axis in range(1, rank - 1) if axis not in free), rank - 1, rank)

    def _as_tokens(self, x: Any) -> Any:
        """Heads (n, axes, heads, features) as (n, tokens, heads, features)."""
        rank = len(x.shape) - 1
        free = self._free_axes(rank)
        if free:
            x = ops.transpose(x, self._order(rank))
        if rank == 3:
            return x
        count = 1 + len(free)
        lead, tokens = math.prod(x.shape[:count]), math.prod(x.shape[count:-2])
        return ops.reshape(x, (lead, tokens, *x.shape[-2:]))

    def _from_tokens(self, y: Any, query_shape: tuple[int, ...]) -> Any:
        """The reverse, for a query of this shape."""
        rank = len(query_shape)
        if rank == 3:
            return y
        order = self._order(rank)
        heads = (*query_shape[:-1], *y.shape[-2:])
        y = ops.reshape(y, tuple(heads[axis] for axis in order))
        return ops.transpose(y, tuple(order.index(d) for d in range(len(order)))) if self._free_axes(rank) else y

    def compute_output_shape(self, query_shape: Any, value_shape: Any = None, key_shape: Any = None) -> Any:
        """The shape of the result: query's, but for the features."""
        return (*query_shape[:-1], *(self._output_features or query_shape[-1:]))

    def _pydt_own_config(self) -> dict[str, Any]:
        return {**super()._pydt_own_config(), "output_shape": self._output_features}


def _of_one_batch(*tokens: Any) -> list[Any]:
    """Each (n, tokens, heads, features); one of a single sample serves all."""
    n = max(x.shape[0] for x in tokens)
    return [ops.broadcast_to(x, (n, *x.shape[1:])) if x.shape[0] == 1 < n else x for x in tokens]
