"""Evaluates a traced graph with PyTorch: every operator by PyTorch's own, gradients by autograd.

The graph must be as traced (before a plan rewrites it), so that fused operators are compared with their parts.  Works
in float64 or float32 as the graph does.  What it does not know it refuses by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from pydtconv.graph import Graph, Node, Tensor


def evaluate(graph: Graph, inputs: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Outputs by name, and gradients of the loss by variable path."""
    values: dict[Tensor, torch.Tensor] = {}
    parameters: dict[str, torch.Tensor] = {}
    for name, tensor in graph.inputs.items():
        array = np.asarray(inputs[name])
        values[tensor] = torch.tensor(array.astype(tensor.dtype))
    for tensor in graph.parameters:
        assert tensor.variable is not None
        values[tensor] = torch.tensor(tensor.variable.value, requires_grad=tensor.variable.trainable)
        parameters[tensor.variable.path] = values[tensor]
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor.constant is not None:
                values[tensor] = torch.tensor(tensor.constant)
        result = _apply(node, [values[tensor] for tensor in node.inputs], graph.training)
        for tensor, value in zip(node.outputs, result if isinstance(result, tuple) else (result,), strict=True):
            assert tuple(value.shape) == tensor.shape, node
            values[tensor] = value
    if graph.loss is not None:
        values[graph.loss].backward()
    outputs = {name: values[tensor].detach().numpy() for name, tensor in graph.outputs.items()}
    gradients = {path: value.grad.numpy() for path, value in parameters.items() if value.grad is not None}
    return outputs, gradients


def _apply(node: Node, x: list[torch.Tensor], training: bool) -> Any:
    kind = type(node.op).__name__
    rule = globals().get(f"_{kind.lower()}")
    if rule is None:
        raise NotImplementedError(f"no rule for operator {kind}")
    return rule(node.op, *x) if kind != "BatchNorm" else _batchnorm(node.op, *x, training=training)


def _first(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)


def _last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _sides(op: Any, node_input: torch.Tensor, kernel: tuple[int, int]) -> list[int]:
    """Padding as F.pad wants it: left, right, top, bottom."""
    if op.padding == "valid":
        return [0, 0, 0, 0]
    if op.padding != "same":
        (top, bottom), (left, right) = op.padding
        return [left, right, top, bottom]
    sides = []
    strides, dilation = (_pair(value) for value in (op.strides or kernel, getattr(op, "dilation", 1)))
    for axis in (1, 0):
        size, reach = node_input.shape[2 + axis], (kernel[axis] - 1) * dilation[axis] + 1
        total = max((-(-size // strides[axis]) - 1) * strides[axis] + reach - size, 0)
        sides += [total // 2, total - total // 2]
    return sides


def _conv(op: Any, x: torch.Tensor, w: torch.Tensor, *b: torch.Tensor) -> torch.Tensor:
    x = _first(x)
    x = F.pad(x, _sides(op, x, tuple(w.shape[:2])))
    groups = getattr(op, "groups", 1)
    return _last(F.conv2d(x, w.permute(3, 2, 0, 1), *b, stride=op.strides, dilation=op.dilation, groups=groups))


def _depthwiseconv(op: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    kh, kw, ci, multiplier = w.shape
    x = _first(x)
    x = F.pad(x, _sides(op, x, (kh, kw)))
    w = w.permute(2, 3, 0, 1).reshape(ci * multiplier, 1, kh, kw)
    return _last(F.conv2d(x, w, stride=op.strides, dilation=op.dilation, groups=ci))


def _bias(op: Any, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x + b


def _dense(op: Any, x: torch.Tensor, w: torch.Tensor, *b: torch.Tensor) -> torch.Tensor:
    return x @ w + (b[0] if b else 0)


def _activation(op: Any, x: torch.Tensor) -> torch.Tensor:
    functions = {
        "relu": torch.relu,
        "relu6": F.relu6,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "linear": lambda v: v,
        "leaky_relu": lambda v: F.leaky_relu(v, op.parameters[0]),
        "silu": F.silu,
    }
    return functions[op.kind](x)


def _add(op: Any, *x: torch.Tensor) -> torch.Tensor:
    total = sum(x[1:], x[0])
    return total / len(x) if op.average else total


def _multiply(op: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * b


def _batchnorm(op: Any, x: torch.Tensor, *rest: torch.Tensor, training: bool) -> torch.Tensor:
    parameters = list(rest)
    gamma = parameters.pop(0) if op.scale else torch.ones(x.shape[-1], dtype=x.dtype)
    beta = parameters.pop(0) if op.center else torch.zeros(x.shape[-1], dtype=x.dtype)
    mean, variance = parameters
    if training and not op.frozen and x.dtype == torch.bfloat16:  # under autocast: by PyTorch's own, in one rounding
        return _last(F.batch_norm(_first(x), None, None, gamma, beta, True, 0, op.epsilon))
    if training and not op.frozen:
        axes = tuple(range(x.dim() - 1))
        mean, variance = x.mean(axes), x.var(axes, unbiased=False)
    return (x - mean) / torch.sqrt(variance + op.epsilon) * gamma + beta


def _maxpool(op: Any, x: torch.Tensor) -> torch.Tensor:
    x = _first(x)
    x = F.pad(x, _sides(op, x, op.pool_size), value=float("-inf"))
    return _last(F.max_pool2d(x, op.pool_size, op.strides or op.pool_size))


def _averagepool(op: Any, x: torch.Tensor) -> torch.Tensor:
    x = _first(x)
    sides = _sides(op, x, op.pool_size)
    counted = torch.ones_like(x) if not op.count_include_pad else None
    total = F.avg_pool2d(F.pad(x, sides), op.pool_size, op.strides or op.pool_size)
    if counted is not None:
        total = total / F.avg_pool2d(F.pad(counted, sides), op.pool_size, op.strides or op.pool_size)
    return _last(total)


def _globalaveragepool(op: Any, x: torch.Tensor) -> torch.Tensor:
    return x.mean((1, 2), keepdim=op.keepdims)


def _globalmaxpool(op: Any, x: torch.Tensor) -> torch.Tensor:
    return x.amax((1, 2), keepdim=op.keepdims)


def _concatenate(op: Any, *x: torch.Tensor) -> torch.Tensor:
    return torch.cat(x, op.axis)


def _pad(op: Any, x: torch.Tensor) -> torch.Tensor:
    assert op.mode == "constant"
    return F.pad(x, [size for sides in reversed(op.padding) for size in sides], value=op.value)


def _reshape(op: Any, x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], *[-1 if extent is None else extent for extent in op.shape[1:]])


def _transpose(op: Any, x: torch.Tensor) -> torch.Tensor:
    return x.permute(op.axes)


def _softmax(op: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, op.axis)


def _crossentropy(op: Any, y_pred: torch.Tensor, y_true: torch.Tensor) -> torch.Tensor:
    logs = torch.log_softmax(y_pred, op.axis) if op.from_logits else torch.log(y_pred)
    if op.kind == "sparse":
        return -torch.gather(logs, -1, y_true.long().reshape(-1, 1))[:, 0]
    return -(y_true * logs).sum(op.axis)


def _weightedmean(op: Any, values: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    total = (values * weights[0] if weights else values).sum()
    return total / values.numel() if op.reduction in ("sum_over_batch_size", "mean") else total


def _weightedsum(op: Any, *x: torch.Tensor) -> torch.Tensor:
    weights = op.weights or (1.0,) * len(x)
    return sum((w * value for w, value in zip(weights, x, strict=True)), torch.zeros((), dtype=x[0].dtype))


def _l1l2penalty(op: Any, w: torch.Tensor) -> torch.Tensor:
    return op.l1 * w.abs().sum() + op.l2 * w.square().sum()
