"""PyTorch modules of layers of tokens: attention with one product for query, key and value, and PyTorch's own fused
`scaled_dot_product_attention`; normalization and dense layers on images in channels-last order.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.peers.torch_elements import Apply

Layer = dict[str, Any]


class ClassToken(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)


class Parameter(nn.Module):
    """x + parameter, or x * parameter."""

    def __init__(self, shape: list[int], scales: bool) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.full(shape, 1e-6 if scales else 0.0))
        self.scales = scales

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.value if self.scales else x + self.value


class SelfAttention(nn.Module):
    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        n, tokens, features = x.shape
        parts = self.inputs(x).view(n, tokens, 3, self.heads, features // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.output(y.transpose(1, 2).reshape(n, tokens, features))


class ChannelsLast(nn.Module):
    """A module of vectors on images (n, c, h, w): a view where the image is stored channels last."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def on_vectors(layer: Layer, module: nn.Module) -> nn.Module:
    """The module, on the channels of images where the layer's input is images."""
    return ChannelsLast(module) if len(layer["input_shape"] or ()) == 4 else module


def module_of(layer: Layer) -> nn.Module | None:
    """The module of a layer of tokens; None for others."""
    kind, config, shape = layer["kind"], layer["config"], layer["input_shape"]
    if kind == "LayerNormalization":
        return on_vectors(layer, nn.LayerNorm(shape[-1], eps=config["epsilon"]))
    if kind == "ClassToken":
        return ClassToken(shape[-1])
    if kind == "PositionEmbedding":
        return Parameter([1, *shape[1:]], scales=False)
    if kind == "LayerScale":
        return Parameter([shape[-1], 1, 1] if len(shape) == 4 else [shape[-1]], scales=True)
    if kind == "MultiHeadAttention" and shape[-1] == config["num_heads"] * config["key_dim"]:
        return SelfAttention(shape[-1], config["num_heads"])
    if kind == "Reshape" and "target_shape" in config and len(shape) == 4:
        tokens = math.prod(shape[1:3])
        if config["target_shape"] == [tokens, shape[3]]:
            return Apply(lambda x: x.flatten(2).transpose(1, 2))
    if kind == "GetItem" and layer["arguments"][0][1:] == [0]:
        return Apply(lambda x: x[:, 0])
    if kind == "Reshape" and "newshape" in config:
        target = config["newshape"]
        return Apply(lambda x: x.reshape(target))
    return None
