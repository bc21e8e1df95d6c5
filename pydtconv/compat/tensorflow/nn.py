"""`tf.nn`: convolutions, pooling, dropout, and what else Keras's functions have under other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pydtconv import ops
from pydtconv import random as random_module
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.named import as_named

#: tensorflow's words for layouts, and Keras's
_LAYOUTS: dict[str | None, str] = {
    None: "channels_last",
    **dict.fromkeys(("NWC", "NHWC", "NDHWC"), "channels_last"),
    **dict.fromkeys(("NCW", "NCHW", "NCDHW"), "channels_first"),
}


def _layout(data_format: str | None) -> str:
    """Keras's word for it.  Raises ValueError for what is none."""
    if data_format not in _LAYOUTS:
        raise ValueError(f"data_format: expected one of {', '.join(map(str, _LAYOUTS))}, got {data_format!r}")
    return _LAYOUTS[data_format]


def _of_axes(value: Any, data_format: str | None, rank: int = 2) -> tuple[int, ...]:
    """Numbers for the spatial axes, of one number, of one for each of them, or of those of all axes."""
    given = [int(n) for n in np.reshape(value, -1)]
    if len(given) == rank + 2:
        given = given[1:-1] if _layout(data_format) == "channels_last" else given[2:]
    if len(given) not in (1, rank):
        raise ValueError(f"expected 1, {rank} or {rank + 2} numbers for {rank} axes of images, got {value!r}")
    return tuple(given * rank if len(given) == 1 else given)


def padded(x: Any, padding: Any) -> tuple[Any, str]:
    """The images and "same" or "valid"; where padding has pixels for each side of each axis they are added."""
    if isinstance(padding, str):
        return x, padding.lower()
    return ops.pad(x, tuple(tuple(int(n) for n in pair) for pair in padding)), "valid"


def _convolution(
    function: Callable[..., Any], x: Any, w: Any, strides: Any, padding: Any, form: str | None, rates: Any
) -> Any:
    rank = len(x.shape) - 2
    x, kind = padded(x, padding)
    spread = _of_axes(1 if rates is None else rates, form, rank)
    return function(x, *w, _of_axes(1 if strides is None else strides, form, rank), kind, _layout(form), spread)


def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    return _convolution(ops.conv, input, [filters], strides, padding, data_format, dilations)


def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    return convolution(input, filters, stride, padding, data_format, dilations)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    return _convolution(ops.depthwise_conv, input, [filter], strides, padding, data_format, dilations)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    filters = [depthwise_filter, pointwise_filter]
    return _convolution(ops.separable_conv, input, filters, strides, padding, data_format, dilations)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Any:
    return convolution(value, filters, 1, padding, None, rate)


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """What a convolution with these filters (..., co, ci) makes into gradients of its input, of output_shape."""
    rank, form = len(input.shape) - 2, _layout(data_format)
    kind, x = str(padding).lower(), array(input)
    if kind not in ("same", "valid"):
        raise NotImplementedError(f"tf.nn.conv_transpose: padding: expected 'SAME' or 'VALID', got {padding!r}")
    steps = _of_axes(strides, data_format, rank)
    spread = _of_axes(1 if dilations is None else dilations, data_format, rank)
    spatial = range(1, rank + 1) if form == "channels_last" else range(2, rank + 2)
    wanted = [int(n) for n in np.asarray(output_shape)]
    wanted = wanted if len(wanted) == rank else [wanted[axis] for axis in spatial]
    if kind == "same" and wanted == [x.shape[axis] * s for axis, s in zip(spatial, steps, strict=True)]:
        return ops.conv_transpose(x, filters, steps, "same", None, form, spread)
    y = ops.conv_transpose(x, filters, steps, "valid", None, form, spread)
    for axis, extent, s, k, d in zip(spatial, wanted, steps, filters.shape, spread, strict=False):
        reach = (k - 1) * d + 1
        read = -(-extent // s) if kind == "same" else (extent - reach) // s + 1
        if read != x.shape[axis]:
            raise ValueError(f"output_shape: expected extents of which a convolution makes {x.shape}, got {wanted}")
        left = max((x.shape[axis] - 1) * s + reach - extent, 0) // 2 if kind == "same" else 0
        key, missing = [slice(None)] * len(x.shape), max(left + extent - y.shape[axis], 0)
        y = ops.pad(y, tuple((0, missing if i == axis else 0) for i in range(len(x.shape)))) if missing else y
        key[axis] = slice(left, left + extent)
        y = y[tuple(key)]
    return y


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Any:
    return conv_transpose(value, filters, output_shape, 1, padding, None, rate)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The largest ("MAX") or mean ("AVG") of each window."""
    functions = {"MAX": ops.max_pool, "AVG": ops.average_pool}
    if pooling_type not in functions:
        raise ValueError(f"pooling_type: expected MAX or AVG, got {pooling_type!r}")
    if dilations is not None and np.max(dilations) > 1:
        raise NotImplementedError(f"tf.nn.pool: dilations: expected 1, got {dilations!r}")
    rank = len(input.shape) - 2
    extents = _of_axes(window_shape, data_format, rank)
    steps = _of_axes(1 if strides is None else strides, data_format, rank)
    if not isinstance(padding, str):
        raise NotImplementedError(f"padding: expected 'SAME' or 'VALID', got {padding!r}: use tf.pad")
    return functions[pooling_type](input, extents, steps, padding.lower(), _layout(data_format))


def _pooling(kind: str) -> Callable[..., Any]:
    def pooled(
        input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
    ) -> Any:
        return pool(input, ksize, kind, strides, padding, data_format)

    return pooled


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    if (
        _layout("NHWC" if data_format == "N...C" else "NCHW" if data_format == "NC..." else data_format)
        != _LAYOUTS[None]
    ):
        bias = ops.reshape(bias, (-1, *[1] * (len(value.shape) - 2)))
    return value + bias


def dropout(x: Any, rate: float, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Any:
    return random_module.dropout(x, rate, noise_shape, seed)


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """The rows of a table at ids, of at most this norm."""
    if isinstance(params, Sequence):
        raise NotImplementedError(f"tf.nn.embedding_lookup: params: expected one table, got {len(params)}")
    found = ops.take(params, ids, axis=0)
    if max_norm is None:
        return found
    axes = tuple(range(len(ids.shape if hasattr(ids, "shape") else np.shape(ids)), len(found.shape)))
    norm = ops.sqrt(ops.sum(ops.square(found), axis=axes, keepdims=True))
    return found * (max_norm / ops.maximum(norm, max_norm))


def crelu(features: Any, axis: int = -1, name: str | None = None) -> Any:
    """relu of the features and of their opposites, one behind the other."""
    return ops.relu(ops.concatenate([features, -features], axis=axis))


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Any:
    return ops.gelu(features, approximate)


def silu(features: Any, beta: Any = 1.0) -> Any:
    return features * ops.sigmoid(features * beta)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    return ops.log_softmax(logits, -1 if axis is None else axis)


class TopK(NamedTuple):
    """The largest elements, and where they are."""

    values: Any
    indices: Any


def top_k(input: Any, k: int = 1, sorted: bool = True, index_type: Any = "int32", name: str | None = None) -> TopK:
    values, places = ops.top_k(input, k, sorted)
    return TopK(values, ops.cast(places, index_type if isinstance(index_type, str) else np.dtype(index_type).name))


def _blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Any:
        return function(input, block_size, _layout(data_format))

    return of


def table() -> dict[str, Any]:
    """The names of `tf.nn` that stand here."""
    own = (
        convolution, conv1d, depthwise_conv2d, separable_conv2d, atrous_conv2d, atrous_conv2d_transpose, conv_transpose,
        pool, bias_add, dropout, embedding_lookup, crelu, gelu, silu, log_softmax, top_k,
    )  # fmt: skip
    largest, mean = _pooling("MAX"), _pooling("AVG")
    return {
        **{
            name: as_named(name, getattr(ops, name))
            for name in ("elu", "relu", "relu6", "selu", "softplus", "softsign")
        },
        **{name: as_named(name, getattr(ops, name)) for name in ("sigmoid", "tanh", "in_top_k")},
        **{each.__name__: each for each in own},
        **dict.fromkeys(("conv2d", "conv3d"), convolution),
        **dict.fromkeys(("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"), conv_transpose),
        **dict.fromkeys(("max_pool", "max_pool1d", "max_pool2d", "max_pool3d"), largest),
        **dict.fromkeys(("avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d"), mean),
        "swish": silu,
        "depth_to_space": _blocks(ops.depth_to_space),
        "space_to_depth": _blocks(ops.space_to_depth),
    }
