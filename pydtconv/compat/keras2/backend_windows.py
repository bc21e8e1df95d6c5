"""Convolutions, pooling and windows of `keras.backend` of Keras 2.3; each function takes one to three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import config, ops
from pydtconv.compat.tensorflow import nn


def conv(
    x: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    form = data_format or config.image_data_format()
    if padding == "causal":
        along = 1 if form == "channels_last" else 2
        front = _one(dilation_rate) * (kernel.shape[0] - 1)
        x = ops.pad(x, tuple((front if axis == along else 0, 0) for axis in range(3)))
        padding = "valid"
    return ops.conv(x, kernel, strides, padding, form, dilation_rate)


def _one(value: Any) -> int:
    return int(value[0] if isinstance(value, (list, tuple)) else value)


def conv_transpose(
    x: Any, kernel: Any, output_shape: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    """Gradients of a convolution's input, of output_shape with the batch; kernel (..., filters, channels)."""
    last = (data_format or config.image_data_format()) == "channels_last"
    rank = len(x.shape) - 2
    wanted = list(output_shape)[1 : rank + 1] if last else list(output_shape)[2:]
    form = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[rank][not last]
    return nn.conv_transpose(x, kernel, wanted, strides, padding.upper(), form, dilation_rate)


def depthwise_conv2d(
    x: Any, depthwise_kernel: Any, strides: Any = (1, 1), padding: str = "valid", data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Any:  # fmt: skip
    form = data_format or config.image_data_format()
    return ops.depthwise_conv(x, depthwise_kernel, strides, padding, form, dilation_rate)


def separable_conv(
    x: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = 1, padding: str = "valid",
    data_format: str | None = None, dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    form = data_format or config.image_data_format()
    return ops.separable_conv(x, depthwise_kernel, pointwise_kernel, strides, padding, form, dilation_rate)


def pool(
    x: Any, pool_size: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
    pool_mode: str = "max",
) -> Any:  # fmt: skip
    if pool_mode not in ("max", "avg"):
        raise ValueError(f"pool_mode: expected 'max' or 'avg', got {pool_mode!r}")
    function = ops.max_pool if pool_mode == "max" else ops.average_pool
    return function(x, pool_size, strides, padding, data_format or config.image_data_format())


def local_conv(
    inputs: Any, kernel: Any, kernel_size: Any, strides: Any, output_shape: Any = None, data_format: str | None = None
) -> Any:
    """A convolution that has weights of its own at each place.

    kernel (places, elements of a window, filters): a window's elements are in the order of its axes and the channels,
    the channels first with "channels_first".
    """
    rank, last = len(inputs.shape) - 2, (data_format or config.image_data_format()) == "channels_last"
    size, steps = ((each,) * rank if isinstance(each, int) else tuple(each) for each in (kernel_size, strides))
    spatial = inputs.shape[1:-1] if last else inputs.shape[2:]
    counts = [(n - k) // s + 1 for n, k, s in zip(spatial, size, steps, strict=True)]
    windows = []
    for place in range(kernel.shape[0]):
        key: list[slice] = []
        rest = place
        for count, k, s in reversed(list(zip(counts, size, steps, strict=True))):
            rest, at = divmod(rest, count)
            key.insert(0, slice(at * s, at * s + k))
        whole = slice(None)
        part = inputs[(whole, *key, whole) if last else (whole, whole, *key)]
        windows.append(ops.reshape(part, (-1, kernel.shape[1])))
    y = ops.einsum("pnf,pfo->npo" if last else "pnf,pfo->nop", ops.stack(windows), kernel)
    return ops.reshape(y, (-1, *counts, kernel.shape[2]) if last else (-1, kernel.shape[2], *counts))


def local_conv1d(inputs: Any, kernel: Any, kernel_size: Any, strides: Any, data_format: str | None = None) -> Any:
    return local_conv(inputs, kernel, kernel_size, strides, None, data_format)


def resize_volumes(
    x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str = "channels_last"
) -> Any:
    """Each voxel as often as the factors say."""
    first = 1 if data_format == "channels_last" else 2
    for axis, factor in enumerate((depth_factor, height_factor, width_factor), first):
        x = ops.repeat(x, int(factor), axis)
    return x


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    return ops.pad(x, ((0, 0), tuple(padding), (0, 0)))


def spatial_padding(x: Any, padding: Any = 1, data_format: str | None = None) -> Any:
    rank = len(x.shape) - 2
    each: Sequence[Any] = (padding,) * rank if isinstance(padding, int) else padding
    pairs = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair, pair) for pair in each]
    last = (data_format or config.image_data_format()) == "channels_last"
    return ops.pad(x, ((0, 0), *pairs, (0, 0)) if last else ((0, 0), (0, 0), *pairs))


def table() -> dict[str, Any]:
    """The functions by name."""
    return {
        **dict.fromkeys(("conv1d", "conv2d", "conv3d"), conv),
        **dict.fromkeys(("conv2d_transpose", "conv3d_transpose"), conv_transpose),
        **dict.fromkeys(("separable_conv1d", "separable_conv2d"), separable_conv),
        **dict.fromkeys(("pool2d", "pool3d"), pool),
        "depthwise_conv2d": depthwise_conv2d,
        "local_conv1d": local_conv1d,
        "local_conv2d": local_conv,
        "resize_volumes": resize_volumes,
        "spatial_2d_padding": spatial_padding,
        "spatial_3d_padding": spatial_padding,
        "temporal_padding": temporal_padding,
    }
