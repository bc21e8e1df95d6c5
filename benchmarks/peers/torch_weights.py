"""Weights of a network of ours in PyTorch's order of axes, for modules of torch_networks.py; made without PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np


def in_torch_order(model: Any) -> dict[str, list[np.ndarray]]:
    """Arrays of each layer that has weights, by its name.  Their shapes may miss axes of one element."""
    from pydtconv import layers

    found: dict[str, list[np.ndarray]] = {}
    parts = [part for outer in model.layers for part in getattr(outer, "layers", [outer])]
    flattened = None  # the shape of images before they became vectors, which the next layer with weights reads
    for layer in parts:
        if isinstance(layer, layers.Flatten):
            flattened = layer.input.shape[1:]
        if layer.weights and not isinstance(layer, layers.Normalization):  # whose numbers are in its config
            found[layer.name] = _weights(layer, flattened)
            flattened = None
    return found


def _weights(layer: Any, flattened: tuple[int, ...] | None) -> list[np.ndarray]:
    kind, values = type(layer).__name__, [np.asarray(weight.value) for weight in layer.weights]
    if kind == "MultiHeadAttention":
        *three, output, bias = values
        kernels, biases = three[0::2], three[1::2]
        heads = [kernel.reshape(kernel.shape[0], -1) for kernel in kernels]
        bias_of_heads = np.hstack([each.ravel() for each in biases])
        return [np.hstack(heads).T, bias_of_heads, output.reshape(-1, output.shape[-1]).T, bias]
    if kind == "SeparableConv2D":
        return [_kernel("DepthwiseConv2D", values[0], None), *(_kernel("Conv2D", v, None) for v in values[1:])]
    return [_kernel(kind, value, flattened) for value in values]


def _kernel(kind: str, value: np.ndarray, flattened: tuple[int, ...] | None) -> np.ndarray:
    if kind == "DepthwiseConv2D" and value.ndim > 1:
        return value.transpose(2, 3, 0, 1).reshape(-1, 1, *value.shape[:2])
    if "Conv" in kind and value.ndim > 2:
        return value.transpose(value.ndim - 1, value.ndim - 2, *range(value.ndim - 2))
    if kind == "Dense" and value.ndim == 2:
        if flattened is not None:  # from channels last to channels first
            value = np.moveaxis(value.reshape(*flattened, -1), -2, 0).reshape(value.shape)
        return value.T
    return value
