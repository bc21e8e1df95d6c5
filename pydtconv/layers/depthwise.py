"""Depthwise convolution, and separable convolution: a depthwise one followed by a 1x1 one."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.layers import arguments
from pydtconv.layers.convolution import ConvLayer
from pydtconv.layers.input_spec import InputSpec
from pydtconv.serialization.configurable import builtin


class BaseDepthwise(ConvLayer):
    """What both share.  depthwise kernel: (kh, kw, ci, depth_multiplier)."""

    _kernel_name: str

    def _set_depthwise(self, depth_multiplier: Any, initializer: Any, regularizer: Any, constraint: Any) -> None:
        self.depth_multiplier = arguments.positive(type(self).__name__, "depth_multiplier", depth_multiplier)
        self._keep_arguments("depthwise", initializer, regularizer, constraint)
        if self.strides[0] != self.strides[1]:
            raise ValueError(f"{type(self).__name__}: strides: expected two equal integers, got {self.strides}")

    def _build_depthwise(self, input_shape: Any) -> int:
        ci = arguments.channels(self, input_shape, self.data_format)
        kernel = self._add_kept("depthwise", (*self.kernel_size, ci, self.depth_multiplier), name=self._kernel_name)
        setattr(self, self._kernel_name, kernel)
        self.input_spec = InputSpec(ndim=4, axes={arguments.channel_axis(self.data_format): ci})
        return ci * self.depth_multiplier

    def _depthwise(self, x: Any) -> Any:
        op = ops.DepthwiseConv(strides=self.strides, padding=self.padding, dilation=self.dilation_rate)
        return op(x, getattr(self, self._kernel_name))


@builtin
class DepthwiseConv2D(BaseDepthwise):
    """Each channel convolved with filters of its own: (n, ih, iw, ci) -> (n, oh, ow, ci * depth_multiplier)."""

    _kernel_name = "kernel"

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            rank=2,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            bias_constraint=bias_constraint,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self._set_depthwise(depth_multiplier, depthwise_initializer, depthwise_regularizer, depthwise_constraint)

    def build(self, input_shape: Any) -> None:
        self._build_bias(self._build_depthwise(input_shape))

    def _convolve(self, x: Any) -> Any:
        return self._depthwise(x)


@builtin
class SeparableConv2D(BaseDepthwise):
    """A depthwise convolution and a 1x1 one behind it: (n, ih, iw, ci) -> (n, oh, ow, filters)."""

    _kernel_name = "depthwise_kernel"

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            rank=2,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            bias_constraint=bias_constraint,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self._set_depthwise(depth_multiplier, depthwise_initializer, depthwise_regularizer, depthwise_constraint)
        self.filters = arguments.positive("SeparableConv2D", "filters", filters)
        self._keep_arguments("pointwise", pointwise_initializer, pointwise_regularizer, pointwise_constraint)

    def build(self, input_shape: Any) -> None:
        channels = self._build_depthwise(input_shape)
        self.pointwise_kernel = self._add_kept("pointwise", (1, 1, channels, self.filters), name="pointwise_kernel")
        self._build_bias(self.filters)

    def _convolve(self, x: Any) -> Any:
        return ops.Conv()(self._depthwise(x), self.pointwise_kernel)


SeparableConvolution2D = SeparableConv2D
