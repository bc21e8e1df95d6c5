"""Layers that networks of tokens share: a token for the class, positions, a scale for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import initializers, layers, ops
from pydtconv.saving import register_keras_serializable


@register_keras_serializable(package="pydtconv")
class ClassToken(layers.Layer):
    """Puts a learned token in front of each sample's: (n, tokens, features) -> (n, 1 + tokens, features)."""

    def build(self, input_shape: Any) -> None:
        self.token = self.add_weight((1, 1, input_shape[-1]), "zeros", name="token")

    def call(self, inputs: Any) -> Any:
        ones = np.ones((inputs.shape[0], 1, 1), self.dtype)
        return ops.concatenate([ops.cast(ops.multiply(self.token, ones), inputs.dtype), inputs], axis=1)


@register_keras_serializable(package="pydtconv")
class PositionEmbedding(layers.Layer):
    """Adds a learned vector to each place: (n, tokens, features)."""

    def build(self, input_shape: Any) -> None:
        initializer = initializers.TruncatedNormal(stddev=0.02)
        self.positions = self.add_weight((1, *input_shape[1:]), initializer, name="positions")

    def call(self, inputs: Any) -> Any:
        return ops.add(inputs, self.positions)


@register_keras_serializable(package="pydtconv")
class LayerScale(layers.Layer):
    """Multiplies each channel by a learned number, at first `value`; Touvron et al. (ICCV 2021)."""

    def __init__(self, value: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.value = value

    def build(self, input_shape: Any) -> None:
        self.gamma = self.add_weight((input_shape[-1],), initializers.Constant(self.value), name="gamma")

    def call(self, inputs: Any) -> Any:
        return ops.multiply(inputs, self.gamma)
