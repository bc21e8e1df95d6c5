"""Convolutions under the names and argument orders of `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import config
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.convolution_transpose import ConvTranspose


def _channels_last(function: Callable[[Any], Any], x: Any, data_format: str | None) -> Any:
    """function on NHWC, for inputs of either format; None is the format set in config."""
    data_format = data_format or config.image_data_format()
    if data_format == "channels_last":
        return function(x)
    if data_format != "channels_first":
        raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    from pydtconv.ops import transpose

    return transpose(function(transpose(x, (0, 2, 3, 1))), (0, 3, 1, 2))


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """Two-dimensional convolution; the groups follow from the channels of inputs and kernel."""

    def apply(x: Any) -> Any:
        channels, inner = x.shape[-1], kernel.shape[2]
        if channels % inner:
            raise ValueError(
                f"kernel: expected a divisor of {channels} input channels as third dimension, got {kernel.shape}"
            )
        return Conv(strides, padding, dilation_rate, groups=channels // inner)(x, kernel)

    return _channels_last(apply, inputs, data_format)


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """Convolution of each channel by itself; kernel (kh, kw, channels, multiplier)."""
    return _channels_last(lambda x: DepthwiseConv(strides, padding, dilation_rate)(x, kernel), inputs, data_format)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """Transposed convolution; kernel (kh, kw, filters, channels)."""
    op = ConvTranspose(strides, padding, dilation_rate, output_padding=output_padding)
    return _channels_last(lambda x: op(x, kernel), inputs, data_format)
