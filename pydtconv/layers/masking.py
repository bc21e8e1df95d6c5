"""Masking: leaves out the steps of sequences that consist of one value."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.layers.base import masks
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


@builtin
class Masking(Layer):
    """(n, steps, features) with the steps set to 0, and masked from here on, whose features all are mask_value."""

    carries_masks = True
    computes_integers = False

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value
        self._pydt_needs_no_build()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return ops.max(masks.differs(inputs, self.mask_value), axis=-1)

    def call(self, inputs: Any) -> Any:
        kept = ops.max(masks.differs(inputs, self.mask_value), axis=-1, keepdims=True)
        outputs = ops.multiply(inputs, kept)
        masks.set_mask(outputs, ops.squeeze(kept, -1))
        return outputs
