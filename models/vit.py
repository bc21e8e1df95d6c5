"""Vision Transformers (A. Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021; the sizes Ti and S of H.
Touvron et al., "Training data-efficient image transformers", ICML 2021).

Images below 64 pixels are cut into patches of 4x4 pixels instead of 16x16.  As a script it trains on CIFAR-10.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pydtconv import initializers, layers
from pydtconv.applications.blocks import SMALL
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10
from pydtconv.applications.tokens import ClassToken, PositionEmbedding

__all__ = ["ViT", "ViTS16", "ViTTi16"]

_EPSILON = 1e-6


_ORDER = ("input_shape", "classes", "patch_size", "hidden", "depth", "heads", "mlp", "dropout", "weights", "name")
_HEAD = partial(layers.Dense, name="head")


@own((224, 224, 3), classifier=_HEAD, order=_ORDER)
def ViT(
    images: Any,
    patch_size: int | None = None,
    hidden: int = 192,
    depth: int = 12,
    heads: int = 3,
    mlp: int | None = None,
    dropout: float = 0.0,
) -> Any:
    """Patches as tokens, a class token, learned positions, and `depth` blocks that normalize first.

    input_shape: (height, width, channels), multiples of patch_size, which is 16, or 4 below 64 pixels, where it is
    absent.  hidden: features of a token.  heads: divides hidden.  mlp: features between the two dense layers of a
    block, 4 * hidden where it is absent.  dropout: in the blocks, and of the attention.  The defaults are ViT-Ti.
    Without a top its features are all tokens, that of the class first.
    """
    rows, columns = images.shape[1:3]
    patch = patch_size or (16 if rows >= SMALL else 4)
    if rows % patch or columns % patch:
        expected = f"expected multiples of {patch} rows and columns, got {tuple(images.shape[1:])}"
        raise ValueError(f"ViT: input_shape: {expected}")
    if hidden % heads:
        raise ValueError(f"ViT: heads: expected a divisor of {hidden}, got {heads}")
    x = layers.Conv2D(hidden, patch, strides=patch, name="patches")(images)
    x = layers.Reshape((rows // patch * (columns // patch), hidden))(x)
    x = PositionEmbedding(name="positions")(ClassToken(name="class_token")(x))
    for number in range(depth):
        x = _block(x, hidden, heads, mlp or 4 * hidden, dropout, f"block{number}")
    norm = layers.LayerNormalization(epsilon=_EPSILON, name="norm")
    return x, [lambda x: x[:, 0], norm], [norm]


@own((224, 224, 3), classifier=_HEAD)
def ViTTi16(images: Any) -> Any:
    """ViT-Ti/16: 192 features, 3 heads.  input_shape: (height, width, channels), multiples of 16."""
    return ViT.__wrapped__(images, 16)


@own((224, 224, 3), classifier=_HEAD)
def ViTS16(images: Any) -> Any:
    """ViT-S/16: 384 features, 6 heads.  input_shape: (height, width, channels), multiples of 16."""
    return ViT.__wrapped__(images, 16, hidden=384, heads=6)


def _block(x: Any, hidden: int, heads: int, mlp: int, dropout: float, name: str) -> Any:
    """x + attention(norm(x)), then the same with two dense layers."""
    normalized = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_norm1")(x)
    attention = layers.MultiHeadAttention(heads, hidden // heads, dropout=dropout, name=f"{name}_attention")
    x = layers.Add(name=f"{name}_add1")([x, _dropped(attention(normalized, normalized), dropout)])
    y = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_norm2")(x)
    y = layers.Dense(mlp, activation="gelu", kernel_initializer=_dense(), name=f"{name}_dense1")(y)
    y = layers.Dense(hidden, kernel_initializer=_dense(), name=f"{name}_dense2")(_dropped(y, dropout))
    return layers.Add(name=f"{name}_add2")([x, _dropped(y, dropout)])


def _dense() -> Any:
    return initializers.TruncatedNormal(stddev=0.02)


def _dropped(x: Any, rate: float) -> Any:
    return layers.Dropout(rate)(x) if rate else x


if __name__ == "__main__":
    train_on_cifar10(ViT, learning_rate=0.01)
