"""Convolutions."""

from __future__ import annotations

from typing import Any

from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.convolution_transpose import ConvTranspose
from pydtconv.ops.functions.operands import as_padding
from pydtconv.ops.functions.shape import with_channels_last
from pydtconv.ops.parts import exported

__all__ = exported(nn="conv conv_transpose depthwise_conv separable_conv")


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """Convolution along one to three axes; the groups follow from the channels of inputs and kernel."""

    padding = as_padding(padding)

    def apply(x: Any) -> Any:
        channels, inner = x.shape[-1], kernel.shape[-2]
        if channels % inner:
            raise ValueError(
                f"kernel: expected a divisor of {channels} input channels as last dimension but one, got {kernel.shape}"
            )
        return Conv(strides, padding, dilation_rate, groups=channels // inner)(x, kernel)

    return with_channels_last(apply, inputs, data_format)


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """Convolution of each channel by itself; kernel (*kernel_size, channels, multiplier)."""
    op = DepthwiseConv(strides, as_padding(padding), dilation_rate)
    return with_channels_last(lambda x: op(x, kernel), inputs, data_format)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """A depthwise convolution and a pointwise one, of kernel (1, ..., channels * multiplier, filters), behind it."""
    deep = DepthwiseConv(strides, as_padding(padding), dilation_rate)
    return with_channels_last(lambda x: Conv()(deep(x, depthwise_kernel), pointwise_kernel), inputs, data_format)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    """Transposed convolution; kernel (*kernel_size, filters, channels)."""
    op = ConvTranspose(strides, as_padding(padding), dilation_rate, output_padding=output_padding)
    return with_channels_last(lambda x: op(x, kernel), inputs, data_format)
