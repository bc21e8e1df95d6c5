"""Random networks of signals, volumes and sequences: layers of one and three axes, attention, normalizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pydtconv
from pydtconv import layers
from tests.fuzz.networks import Grow, Net, activation_of, closed, grown

#: by the number of axes: convolutions and poolings, and the extents that are drawn below
KINDS = {
    1: (
        (layers.Conv1D, layers.Conv1DTranspose, layers.DepthwiseConv1D, layers.SeparableConv1D),
        (layers.MaxPooling1D, layers.AveragePooling1D),
        40,
    ),
    3: ((layers.Conv3D, layers.Conv3DTranspose), (layers.MaxPooling3D, layers.AveragePooling3D), 8),
}
GLOBAL = {
    1: (layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D, layers.Flatten),
    3: (layers.GlobalAveragePooling3D, layers.GlobalMaxPooling3D, layers.Flatten),
}
TOKENS = 11


def signals(random: np.random.Generator) -> Net:
    return _of_axes(random, 1)


def volumes(random: np.random.Generator) -> Net:
    return _of_axes(random, 3)


def _of_axes(random: np.random.Generator, rank: int) -> Net:
    extents = random.integers(1, KINDS[rank][2], rank)
    inputs = pydtconv.Input((*(int(v) for v in extents), int(random.integers(1, 6))))
    growth = (*_windows(rank), *COMMON)
    x = grown(inputs, growth, random)[-1]
    return closed(inputs, GLOBAL[rank][random.integers(3)]()(x), random)


def sequences(random: np.random.Generator) -> Net:
    """Vectors, or tokens that are embedded, through attention, dense layers and normalizations."""
    length, width = int(random.integers(1, 14)), int(random.choice((2, 4, 6, 8, 12)))
    whole = None
    if random.random() < 0.4:
        inputs = pydtconv.Input((length,), dtype="int32")
        whole = random.integers(0, TOKENS, (5, length)).astype("int32")
        start = layers.Embedding(TOKENS, width)(inputs)
    else:
        inputs = pydtconv.Input((length, width))
        start = inputs
    x = grown(start, (_attention, _attention, _feed_forward, *_windows(1), *COMMON), random)[-1]
    return closed(inputs, GLOBAL[1][random.integers(3)]()(x), random, whole)


def _windows(rank: int) -> tuple[Grow, ...]:
    """Convolutions and poolings of so many axes."""
    convolutions, poolings, _ = KINDS[rank]

    def convolution(x: Any, live: list[Any], random: np.random.Generator) -> Any:
        kind = convolutions[random.integers(len(convolutions))]
        options: dict[str, Any] = {
            "kernel_size": int(random.integers(1, 4 if rank == 3 else 7)),
            "strides": int(random.choice((1, 1, 1, 2))),
            "padding": str(random.choice(("same", "same", "valid"))),
            "use_bias": bool(random.random() < 0.5),
            "activation": activation_of(random) if random.random() < 0.5 else None,
        }
        if rank == 1 and kind is layers.Conv1D and random.random() < 0.2:
            options |= {"padding": "causal"}
        if options["strides"] == 1 and random.random() < 0.2:
            options["dilation_rate"] = 2
        if kind is layers.DepthwiseConv1D:
            return kind(depth_multiplier=int(random.integers(1, 3)), **options)(x)
        return kind(int(random.integers(1, 9)), **options)(x)

    def pooling(x: Any, live: list[Any], random: np.random.Generator) -> Any:
        kind = poolings[random.integers(len(poolings))]
        size = int(random.integers(2, 4))
        return kind(size, strides=int(random.integers(1, 3)), padding=str(random.choice(("same", "valid"))))(x)

    return convolution, convolution, pooling


def _attention(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    """Of itself, or of whatever else is a sequence; with a residual now and then."""
    sequences = [other for other in live if len(other.shape) == 3]
    if len(x.shape) != 3:
        return x
    other = sequences[random.integers(len(sequences))] if random.random() < 0.4 else x
    heads, size = int(random.integers(1, 4)), int(random.integers(1, 9))
    value_dim = int(random.integers(1, 9)) if random.random() < 0.3 else None
    layer = layers.MultiHeadAttention(heads, size, value_dim=value_dim, use_bias=bool(random.random() < 0.7))
    y = layer(x, other, use_causal_mask=bool(random.random() < 0.3))
    return layers.Add()([x, y]) if random.random() < 0.6 else y


def _feed_forward(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    y = layers.Dense(int(random.integers(1, 20)), activation=activation_of(random))(layers.LayerNormalization()(x))
    return layers.Add()([x, layers.Dense(x.shape[-1])(y)])


def _group_normalization(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    divisors = [d for d in range(1, x.shape[-1] + 1) if x.shape[-1] % d == 0]
    return layers.GroupNormalization(int(random.choice(divisors)))(x)


def _merged(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    others = [other for other in live if other.shape == x.shape]
    kind: Callable[..., Any] = (layers.Add, layers.Multiply, layers.Maximum, layers.Concatenate)[random.integers(4)]
    return kind()([x, others[random.integers(len(others))]])


def _arithmetic(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    """Operators of Python on symbolic tensors."""
    kind = random.integers(4)
    if kind == 0:
        return 0.5 * x + 1.0
    if kind == 1:
        return x[:, : max(x.shape[1] // 2, 1)]
    if kind == 2:
        return x - x[..., :1]
    return pydtconv.ops.tanh(x) * pydtconv.ops.sigmoid(x)


COMMON: tuple[Grow, ...] = (
    _merged,
    _arithmetic,
    _group_normalization,
    lambda x, live, random: layers.BatchNormalization()(x),
    lambda x, live, random: layers.LayerNormalization()(x),
    lambda x, live, random: layers.RMSNormalization()(x),
    lambda x, live, random: layers.UnitNormalization()(x),
    lambda x, live, random: layers.Activation(activation_of(random) or "linear")(x),
    lambda x, live, random: layers.Dense(int(random.integers(1, 9)), activation=activation_of(random))(x),
    lambda x, live, random: layers.Softmax()(x),
    lambda x, live, random: layers.Dropout(0.0)(x),
)
