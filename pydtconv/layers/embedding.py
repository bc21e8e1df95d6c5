"""Embedding: a vector for each number; ReversibleEmbedding goes back to numbers, too."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.dtypes import FLOATING
from pydtconv.layers.base import masks
from pydtconv.layers.base.arguments import positive, refuse
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


@builtin
class Embedding(Layer):
    """Numbers 0 ... input_dim - 1 of shape (n, ...) to rows of `embeddings`: (n, ..., output_dim).

    mask_zero: 0 stands for what is not there, and is masked from here on.  weights: the embeddings to begin with.
    """

    _pydt_not_in_config = ("weights", "lora_rank", "lora_alpha", "quantization_config")

    computes_integers = False

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        weights: Any = None,
        lora_rank: Any = None,
        lora_alpha: Any = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse("Embedding", lora_rank=lora_rank, lora_alpha=lora_alpha, quantization_config=quantization_config)
        kwargs.pop("input_length", None)  # of older versions of Keras
        super().__init__(**{"autocast": False, **kwargs})
        self.input_dim = positive("Embedding", "input_dim", input_dim)
        self.output_dim = positive("Embedding", "output_dim", output_dim)
        self._pydt_keep_arguments("embeddings", embeddings_initializer, embeddings_regularizer, embeddings_constraint)
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        if weights is not None:
            self.build(None)
            self.set_weights(weights if isinstance(weights, (list, tuple)) and len(weights) == 1 else [weights])

    def build(self, input_shape: Any = None) -> None:
        if not self.built:
            self.embeddings = self._pydt_add_kept("embeddings", (self.input_dim, self.output_dim))

    def call(self, inputs: Any) -> Any:
        return ops.cast(ops.TakeRows()(inputs, self.embeddings), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if not self.mask_zero:
            return None
        numbers = inputs if inputs.dtype in FLOATING else ops.cast(inputs, self.dtype)
        return masks.differs(numbers, 0)


@builtin
class ReversibleEmbedding(Embedding):
    """An Embedding that is called with reverse=True, too: vectors (..., output_dim) to logits (..., input_dim).

    tie_weights: the product is with the transposed `embeddings`; False: with weights of its own.  reverse_dtype: of
    the product and the logits, by default that in which the layer computes.  logit_soft_cap: a number c, logits x
    become c tanh(x / c).
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        reverse_dtype: str | None = None,
        logit_soft_cap: float | None = None,
        **kwargs: Any,
    ) -> None:
        if logit_soft_cap is not None and not logit_soft_cap > 0:
            raise ValueError(f"ReversibleEmbedding: logit_soft_cap: expected a number above 0, got {logit_soft_cap!r}")
        self.tie_weights = tie_weights
        self.reverse_dtype = reverse_dtype
        self.logit_soft_cap = logit_soft_cap
        kept = embeddings_initializer, embeddings_regularizer, embeddings_constraint
        super().__init__(input_dim, output_dim, *kept, mask_zero, **kwargs)

    def build(self, input_shape: Any = None) -> None:
        if self.built:
            return
        super().build(input_shape)
        if not self.tie_weights:
            self.reverse_embeddings = self._pydt_add_kept(
                "embeddings", (self.output_dim, self.input_dim), name="reverse_embeddings"
            )

    def call(self, inputs: Any, reverse: bool = False) -> Any:
        if not reverse:
            outputs = super().call(inputs)
            mask = super().compute_mask(inputs)
            if mask is not None:
                masks.set_mask(outputs, mask)
            return outputs
        dtype = self.reverse_dtype or self.compute_dtype
        kernel = ops.transpose(self.embeddings) if self.tie_weights else self.reverse_embeddings
        logits = ops.matmul(ops.cast(inputs, dtype), ops.cast(kernel, dtype))
        if self.logit_soft_cap is None:
            return logits
        return ops.multiply(ops.tanh(ops.divide(logits, self.logit_soft_cap)), self.logit_soft_cap)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: `call` lets the mask go with vectors; logits have none."""
        return None
