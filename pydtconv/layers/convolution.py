"""Convolutions of images of one to three axes: Conv1D, Conv2D, Conv3D."""

from __future__ import annotations

from typing import Any

from pydtconv import activations, ops
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


class ConvLayer(Layer):
    """What all convolutions share: geometry, bias, activation, and the turn of channels_first at the border."""

    reads_integers = False

    _paddings: tuple[str, ...] = ("valid", "same")

    def __init__(
        self,
        rank: int,
        kernel_size: Any,
        strides: Any,
        padding: str,
        data_format: str | None,
        dilation_rate: Any,
        activation: Any,
        use_bias: bool,
        bias_initializer: Any,
        bias_regularizer: Any,
        bias_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        kind = type(self).__name__
        self.rank = rank
        self.kernel_size = arguments.integers(kind, "kernel_size", kernel_size, rank)
        self.strides = arguments.integers(kind, "strides", strides, rank)
        self.dilation_rate = arguments.integers(kind, "dilation_rate", dilation_rate, rank)
        self.padding = arguments.choice(kind, "padding", padding, self._paddings)
        self.data_format = arguments.format_of(kind, data_format)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self._pydt_keep_arguments("bias", bias_initializer, bias_regularizer, bias_constraint)
        self.bias: Any = None
        self.input_spec = InputSpec(ndim=rank + 2)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"{kind}: strides > 1 and dilation_rate > 1 cannot be combined, got {self.strides} and "
                f"{self.dilation_rate}"
            )

    def _build_bias(self, filters: int) -> None:
        if self.use_bias:
            self.bias = self._pydt_add_kept("bias", (filters,))

    def _convolve(self, x: Any) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        y = self._convolve(arguments.to_channels_last(inputs, self.data_format))
        if self.bias is not None:
            y = ops.Bias()(y, self.bias)
        activation = activations.linear if self.activation is None else self.activation  # a script may take it away
        if self.data_format == "channels_first" and not activations.is_elementwise(activation):
            return activation(arguments.from_channels_last(y, self.data_format))  # its axes are those of the output
        return arguments.from_channels_last(activation(y), self.data_format)


class BaseConv(ConvLayer):
    """Convolutions with kernel (*kernel_size, ci // groups, filters).

    algorithm: the name of one of `pydtconv.conv`'s algorithms, or names by direction; None for the active variant.
    """

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        *,
        algorithm: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            rank=rank,
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
        kind = type(self).__name__
        self.filters = arguments.positive(kind, "filters", filters)
        self.groups = arguments.positive(kind, "groups", groups)
        self._pydt_keep_arguments("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self.algorithm = algorithm
        if self.filters % self.groups:
            raise ValueError(f"{kind}: filters: expected a multiple of groups={self.groups}, got {filters}")

    def build(self, input_shape: Any) -> None:
        ci = arguments.channels(self, input_shape, self.data_format)
        if ci % self.groups:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: the input's channels: expected a multiple of "
                f"groups={self.groups}, got {ci} in shape {tuple(input_shape)}"
            )
        self.kernel = self._pydt_add_kept("kernel", (*self.kernel_size, ci // self.groups, self.filters))
        self._build_bias(self.filters)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={arguments.channel_axis(self.data_format): ci})

    def _sides(self) -> Any:
        """The padding as the operator takes it."""
        return self.padding

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """The convolution of inputs, in the layer's data_format; subclasses override it to change the kernel."""
        y = self._convolution(arguments.to_channels_last(inputs, self.data_format), kernel)
        return arguments.from_channels_last(y, self.data_format)

    def _convolution(self, x: Any, kernel: Any) -> Any:
        op = ops.Conv(
            strides=self.strides,
            padding=self._sides(),
            dilation=self.dilation_rate,
            groups=self.groups,
            algorithm=self.algorithm,
        )
        return op(x, kernel)

    def _convolve(self, x: Any) -> Any:
        if type(self).convolution_op is BaseConv.convolution_op:
            return self._convolution(x, self.kernel)
        inputs = arguments.from_channels_last(x, self.data_format)
        return arguments.to_channels_last(self.convolution_op(inputs, self.kernel), self.data_format)


@builtin
class Conv1D(BaseConv):
    """1D convolution: (n, iw, ci) -> (n, ow, filters); padding may also be "causal" (channels_last)."""

    _paddings = ("valid", "same", "causal")

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank=1, **arguments.given(locals()))
        if self.padding == "causal" and self.data_format != "channels_last":
            raise ValueError("Conv1D: padding='causal' needs data_format='channels_last'")

    def _sides(self) -> Any:
        return causal(self)


@builtin
class Conv2D(BaseConv):
    """2D convolution: (n, ih, iw, ci) -> (n, oh, ow, filters), or with the channels first in both."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank=2, **arguments.given(locals()))


@builtin
class Conv3D(BaseConv):
    """3D convolution: (n, id, ih, iw, ci) -> (n, od, oh, ow, filters), or with the channels first in both."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1, 1),
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank=3, **arguments.given(locals()))


def causal(layer: ConvLayer) -> Any:
    """The padding of a layer of one axis: for "causal" as many pixels as make no output read a later input."""
    if layer.padding != "causal":
        return layer.padding
    return ((layer.dilation_rate[0] * (layer.kernel_size[0] - 1), 0),)


Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution3D = Conv3D
