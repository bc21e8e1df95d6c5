"""Depthwise convolution, and separable convolution: a depthwise one followed by a pointwise one."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.convolution import ConvLayer, causal
from pydtconv.serialization.configurable import builtin


class BaseDepthwise(ConvLayer):
    """What they share.  depthwise kernel: (*kernel_size, ci, depth_multiplier)."""

    _kernel_name: str

    def __init__(
        self,
        rank: int,
        depth_multiplier: Any,
        depthwise_initializer: Any,
        depthwise_regularizer: Any,
        depthwise_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank=rank, **kwargs)
        kind = type(self).__name__
        self.depth_multiplier = arguments.positive(kind, "depth_multiplier", depth_multiplier)
        self._pydt_keep_arguments("depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)
        if self.padding == "causal" and self.data_format != "channels_last":
            raise ValueError(f"{kind}: padding='causal' needs data_format='channels_last'")

    def _build_depthwise(self, input_shape: Any) -> int:
        ci = arguments.channels(self, input_shape, self.data_format)
        kernel = self._pydt_add_kept(
            "depthwise", (*self.kernel_size, ci, self.depth_multiplier), name=self._kernel_name
        )
        setattr(self, self._kernel_name, kernel)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={arguments.channel_axis(self.data_format): ci})
        return ci * self.depth_multiplier

    def _depthwise(self, x: Any) -> Any:
        op = ops.DepthwiseConv(strides=self.strides, padding=causal(self), dilation=self.dilation_rate)
        return op(x, getattr(self, self._kernel_name))


class BaseDepthwiseConv(BaseDepthwise):
    """Each channel convolved with filters of its own: (n, *spatial, ci) -> (n, *out, ci * depth_multiplier)."""

    _kernel_name = "kernel"

    def build(self, input_shape: Any) -> None:
        self._build_bias(self._build_depthwise(input_shape))

    def _convolve(self, x: Any) -> Any:
        return self._depthwise(x)


class BaseSeparableConv(BaseDepthwise):
    """A depthwise convolution and a pointwise one behind it: (n, *spatial, ci) -> (n, *out, filters)."""

    _kernel_name = "depthwise_kernel"

    def __init__(
        self,
        rank: int,
        filters: int,
        pointwise_initializer: Any,
        pointwise_regularizer: Any,
        pointwise_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank=rank, **kwargs)
        self.filters = arguments.positive(type(self).__name__, "filters", filters)
        self._pydt_keep_arguments("pointwise", pointwise_initializer, pointwise_regularizer, pointwise_constraint)

    def build(self, input_shape: Any) -> None:
        channels = self._build_depthwise(input_shape)
        shape = (*[1] * self.rank, channels, self.filters)
        self.pointwise_kernel = self._pydt_add_kept("pointwise", shape, name="pointwise_kernel")
        self._build_bias(self.filters)

    def _convolve(self, x: Any) -> Any:
        return ops.Conv()(self._depthwise(x), self.pointwise_kernel)


@builtin
class DepthwiseConv1D(BaseDepthwiseConv):
    """Each channel of images of one axis convolved with filters of its own."""

    _paddings = ("valid", "same", "causal")

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = 1,
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
        super().__init__(rank=1, **arguments.given(locals()))


@builtin
class DepthwiseConv2D(BaseDepthwiseConv):
    """Each channel of images of two axes convolved with filters of its own."""

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
        super().__init__(rank=2, **arguments.given(locals()))


@builtin
class SeparableConv1D(BaseSeparableConv):
    """A depthwise convolution and a pointwise one behind it, of images of one axis."""

    _paddings = ("valid", "same", "causal")

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
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
        super().__init__(rank=1, **arguments.given(locals()))


@builtin
class SeparableConv2D(BaseSeparableConv):
    """A depthwise convolution and a pointwise one behind it, of images of two axes."""

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
        super().__init__(rank=2, **arguments.given(locals()))


SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
