"""Rows of the table: what computes, element by element, by products and by moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.graph import Node, Tensor
from pydtconv.interchange.onnx.export_functions import cast
from pydtconv.interchange.onnx.export_table import activation, aligned, finish, layout, place_of, row, window
from pydtconv.interchange.onnx.writer import Writer

# element-wise


@row(ops.Activation)
def _activation(w: Writer, node: Node) -> None:
    first, op = layout(w, node.inputs[0]), node.op
    assert isinstance(op, ops.Activation)
    x = w.read(node.inputs[0], first)
    w.set(node.outputs[0], activation(w, node.outputs[0], x, op.kind, op.alpha, op.beta, op.gamma), first)


@row(ops.Bias)
def _bias(w: Writer, node: Node) -> None:
    x, b = node.inputs
    first = layout(w, x)
    name = w.read(x, first)
    maker = w.maker(name)
    joins = maker is not None and maker.op_type in ("Conv", "ConvTranspose", "Gemm") and len(maker.input) == 2
    if joins and w.array_of(b) is not None and w.readers[x] == 1 and name == maker.output[0]:
        maker.input.append(w.value(b))
        w.set(node.outputs[0], name, first)
        return
    w.set(node.outputs[0], w.emit("Add", name, aligned(w, b, len(x.shape), first)), first)


@row(ops.Add)
def _add(w: Writer, node: Node) -> None:
    op, rank = node.op, len(node.outputs[0].shape)
    assert isinstance(op, ops.Add)
    first = layout(w, *node.inputs)
    names = [aligned(w, tensor, rank, first) for tensor in node.inputs]
    total = names[0]
    for name in names[1:]:
        total = w.emit("Add", total, name)
    if op.average:
        total = w.emit("Div", total, w.scalar(len(names), node.outputs[0]))
    finish(w, node, total, first, op.alpha)


@row(ops.Cast)
def _cast(w: Writer, node: Node) -> None:
    first = layout(w, node.inputs[0])
    name = cast(w, w.read(node.inputs[0], first), node.inputs[0].dtype, node.outputs[0].dtype)
    w.set(node.outputs[0], name, first)


# convolutions and products


def _filters(w: Writer, tensor: Tensor, order: Sequence[int], shape: Sequence[int] | None = None) -> str:
    """Filters in ONNX's order of axes; shape: to bring them into before."""
    name = w.weights(tensor, lambda array: (array if shape is None else array.reshape(shape)).transpose(order))
    if name is None:
        name = w.value(tensor)
        name = w.transposed(name if shape is None else w.reshaped(name, shape), order)
    return name


@row(ops.Conv, ops.DepthwiseConv, ops.ConvTranspose)
def _convolution(w: Writer, node: Node) -> None:
    op, (x, kernel) = node.op, node.inputs[:2]
    rank = len(x.shape)
    spatial = range(rank - 2)
    size, strides, dilations, pads = window(node)
    more: dict[str, Any] = {}
    if isinstance(op, ops.DepthwiseConv):
        ci, multiplier = kernel.shape[-2:]
        filters = _filters(w, kernel, (rank - 1, rank - 2, *spatial), (*size, 1, (ci or 0) * (multiplier or 0)))
        more["group"] = ci
    else:
        filters = _filters(w, kernel, (rank - 1, rank - 2, *spatial))
        more["group"] = op.groups if isinstance(op, ops.Conv) else None
    if isinstance(op, ops.ConvTranspose):
        reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
        before, after = pads[: rank - 2], pads[rank - 2 :]
        more["output_padding"] = [
            int(node.outputs[0].shape[i + 1] - (strides[i] * (x.shape[i + 1] - 1) + reach[i] - before[i] - after[i]))  # type: ignore[operator]
            for i in spatial
        ]
    bias = op.bias_of(node.inputs)  # type: ignore[attr-defined]
    names = [w.first(x), filters, *([] if bias is None else [w.value(bias)])]
    kind = "ConvTranspose" if isinstance(op, ops.ConvTranspose) else "Conv"
    y = w.emit(kind, *names, kernel_shape=size, strides=strides, dilations=dilations, pads=pads, **more)
    if op.residual:
        y = w.emit("Add", y, w.first(node.inputs[-1]))
    finish(w, node, y, True, op.alpha)  # type: ignore[attr-defined]


@row(ops.Dense)
def _dense(w: Writer, node: Node) -> None:
    op, (x, kernel) = node.op, node.inputs[:2]
    assert isinstance(op, ops.Dense)
    bias = op.bias_of(node.inputs)
    names = [w.value(x), w.value(kernel), *([] if bias is None else [w.value(bias)])]
    y = w.emit("Gemm", *names) if len(x.shape) == 2 else w.emit("MatMul", *names[:2])
    y = w.emit("Add", y, names[2]) if len(x.shape) != 2 and bias is not None else y
    y = w.emit("Add", y, w.value(node.inputs[-1])) if op.residual else y
    finish(w, node, y, False, op.alpha)


@row(ops.MatMul)
def _matmul(w: Writer, node: Node) -> None:
    w.set(node.outputs[0], w.emit("MatMul", *map(w.value, node.inputs)))


@row(ops.Contract)
def _contract(w: Writer, node: Node) -> None:
    op = node.op
    assert isinstance(op, ops.Contract)
    w.set(node.outputs[0], w.emit("Einsum", *map(w.value, node.inputs), equation=f"{op.a},{op.b}->{op.c}"))


@row(ops.TakeRows)
def _rows(w: Writer, node: Node) -> None:
    index, table = node.inputs
    w.set(node.outputs[0], w.emit("Gather", w.value(table), cast(w, w.value(index), index.dtype, "int64"), axis=0))


@row(ops.Attention)
def _attention(w: Writer, node: Node) -> None:
    """Transposes to (n, heads, tokens, features), and two products around a softmax."""
    op, (q, k, v) = node.op, node.inputs[:3]
    assert isinstance(op, ops.Attention)
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    if op.rate and op.always:
        raise ValueError("export: Attention with dropout outside of training has no ONNX operator")
    if op.zero_empty and mask is not None:
        raise ValueError("export: Attention with zero_empty and a mask has no ONNX operator")
    _, heads, kv_heads, tq, tk, d, dv = op.sizes(*(tensor.spec for tensor in node.inputs))
    scaled = w.emit("Mul", w.value(q), w.scalar(op.factor(d), q))
    queries = w.transposed(scaled, (0, 2, 1, 3))
    keys, values = w.transposed(w.value(k), (0, 2, 3, 1)), w.transposed(w.value(v), (0, 2, 1, 3))
    if heads != kv_heads:
        queries = w.emit("Reshape", queries, w.integers([0, kv_heads, heads // kv_heads, tq, d]))
        keys, values = (w.emit("Unsqueeze", name, w.integers([2])) for name in (keys, values))
    scores = w.emit("MatMul", queries, keys)
    if heads != kv_heads:
        scores = w.emit("Reshape", scores, w.integers([0, heads, tq, tk]))
    least = w.scalar(-1e30, q)
    if op.causal:
        scores = w.emit("Where", w.constant(np.tril(np.ones((tq, tk), bool))), scores, least)
    if mask is not None:
        scores = w.emit("Where", cast(w, w.value(mask), mask.dtype, "bool"), scores, least)
    shares = w.emit("Softmax", scores, axis=-1)
    if heads != kv_heads:
        shares = w.emit("Reshape", shares, w.integers([0, kv_heads, heads // kv_heads, tq, tk]))
    y = w.emit("MatMul", shares, values)
    if heads != kv_heads:
        y = w.emit("Reshape", y, w.integers([0, heads, tq, dv]))
    w.set(node.outputs[0], w.transposed(y, (0, 2, 1, 3)))


#: ONNX's activations of recurrent operators, by ours
_RECURRENT = {"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu", "softsign": "Softsign"}


def _activations(op: ops.Recurrence) -> list[str]:
    return [op.gate_activation] * (op.cell != "simple") + [op.state_activation] * (1 + (op.cell == "lstm"))


def has_operator(op: ops.Recurrence) -> bool:
    """Whether ONNX has the recurrence; the steps of others are in the trace."""
    return not op.has_mask and _RECURRENT.keys() >= set(_activations(op))


def _products(w: Writer, z: Tensor, columns: np.ndarray) -> tuple[str, str, str | None]:
    """x, weights and bias of z = x weights + bias: those of a dense layer, or z itself and the identity.

    What the dense layer has written is taken back where nothing else reads it.
    """
    bias = z.node.inputs[1] if z.node is not None and isinstance(z.node.op, ops.Bias) else None
    product = z if bias is None else z.node.inputs[0]  # type: ignore[union-attr]
    dense = product.node
    in_order = bool((columns == np.arange(len(columns))).all())
    known = bias is None or in_order or w.array_of(bias) is not None
    alone = w.readers[z] == 1 and w.readers[product] == 1
    plain = dense is not None and isinstance(dense.op, ops.Dense) and dense.op.activation is None
    if not (plain and known and alone) or len(dense.inputs) != 2 or w.array_of(dense.inputs[1]) is None:  # type: ignore[union-attr]
        eye = np.eye(len(columns), dtype=real(z.dtype))
        return w.value(z), w.constant(eye[None, columns]), None
    for tensor in {z, product}:
        w.nodes.remove(w.maker(w.value(tensor)))
    own = None
    if bias is not None:
        own = w.value(bias) if in_order else w.weights(bias, lambda array: array[columns])
    kernel = w.weights(dense.inputs[1], lambda array: array[:, columns].T[None])  # type: ignore[union-attr]
    return w.value(dense.inputs[0]), str(kernel), own  # type: ignore[union-attr]


@row(ops.Recurrence)
def _recurrence(w: Writer, node: Node) -> None:
    """One of ONNX's operators, with the products of the inputs."""
    op = node.op
    assert isinstance(op, ops.Recurrence)
    given = dict(zip(op.places, node.inputs, strict=True))
    activations = _activations(op)
    z, units = given["z"], given["w"].shape[0] or 0
    kind, order = {"simple": ("RNN", [0]), "lstm": ("LSTM", [0, 3, 1, 2])}.get(op.cell, ("GRU", [0, 1, 2]))
    width = len(order) * units
    columns = np.concatenate([np.arange(gate * units, (gate + 1) * units) for gate in order])
    dtype = real(z.dtype)
    weights = w.weights(given["w"], lambda array: array[:, columns].T[None])
    if weights is None:
        raise ValueError("export: recurrent layers whose weights are computed have no ONNX operator")
    x, kernel, own = _products(w, z, columns)
    names = [w.transposed(x, (1, 0, 2)), kernel, weights]
    zeros = w.constant(np.zeros(width, dtype))
    parts = [own or zeros, w.value(given["b"]) if "b" in given else zeros]
    bias = w.reshaped(w.emit("Concat", *parts, axis=0), (1, 2 * width)) if own or "b" in given else ""
    states = [w.emit("Unsqueeze", w.value(given[name]), w.integers([0])) for name in ("h0", "c0") if name in given]
    names += [bias, "", *states] if states else [bias] if bias else []
    y, *last = w.emit(
        kind,
        *names,
        outputs=2 + (kind == "LSTM"),
        hidden_size=units,
        direction="reverse" if op.backwards else "forward",
        activations=[_RECURRENT[each] for each in activations],
        linear_before_reset=int(op.cell == "gru") if kind == "GRU" else None,
    )
    last = [w.emit("Squeeze", name, w.integers([0])) for name in last]
    if op.sequences:
        y = w.transposed(w.emit("Squeeze", y, w.integers([1])), (1, 0, 2))
        if op.backwards:
            ends = w.integers([-1]), w.integers([np.iinfo("int64").min]), w.integers([1]), w.integers([-1])
            y = w.emit("Slice", y, *ends)
    w.set(node.outputs[0], y if op.sequences else last[0])
    for tensor, name in zip(node.outputs[1:], last, strict=True):
        w.set(tensor, name)


# normalization, softmax


@row(ops.BatchNorm)
def _batch_norm(w: Writer, node: Node) -> None:
    op, x = node.op, node.inputs[0]
    assert isinstance(op, ops.BatchNorm)
    if not op.frozen and op.always:
        raise ValueError("export: batch normalization by the batch's own moments (training=True) has no ONNX operator")
    c, dtype = x.shape[-1], real(x.dtype)
    gamma = w.value(node.inputs[1]) if op.scale else w.constant(np.ones(c or 0, dtype))
    beta = op.beta_of(node.inputs)
    names = [gamma, w.constant(np.zeros(c or 0, dtype)) if beta is None else w.value(beta)]
    names += [w.value(node.inputs[i]) for i in op.state]
    finish(w, node, w.emit("BatchNormalization", w.first(x), *names, epsilon=op.epsilon), True, op.alpha)


@row(ops.LayerNorm)
def _layer_norm(w: Writer, node: Node) -> None:
    op, x = node.op, node.inputs[0]
    assert isinstance(op, ops.LayerNorm)
    lead, rank = op.lead(len(x.shape)), len(x.shape)
    shape, name = x.shape[lead:], w.value(x)
    rest = [w.value(tensor) for tensor in node.inputs[1:]]
    gamma = rest.pop(0) if op.scale else w.constant(np.ones(shape, real(x.dtype)))
    if not op.rms:
        y = w.emit("LayerNormalization", name, gamma, *rest, axis=lead, epsilon=op.epsilon)
    else:
        square = w.emit("ReduceMean", w.emit("Mul", name, name), w.integers(range(lead, rank)), keepdims=1)
        root = w.emit("Sqrt", w.emit("Add", square, w.scalar(op.epsilon, x)))
        y = w.emit("Mul", w.emit("Div", name, root), gamma)
        y = w.emit("Add", y, rest[0]) if rest else y
    w.set(node.outputs[0], y)


@row(ops.Softmax, ops.LogSoftmax)
def _softmax(w: Writer, node: Node) -> None:
    first, x = layout(w, node.inputs[0]), node.inputs[0]
    axis = place_of(node.op.axis, len(x.shape), first)  # type: ignore[attr-defined]
    w.set(node.outputs[0], w.emit(type(node.op).__name__, w.read(x, first), axis=axis), first)
