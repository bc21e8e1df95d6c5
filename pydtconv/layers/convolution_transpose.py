"""Transposed convolution: the gradient of a convolution as a layer, for larger images of one to three axes."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.convolution import ConvLayer
from pydtconv.serialization.configurable import builtin


class BaseConvTranspose(ConvLayer):
    """(n, *spatial, ci) -> (n, *out, filters) with kernel (*kernel_size, filters, ci).

    "same" gives oh = ih * strides, "valid" (ih - 1) * strides + max(kernel, strides); output_padding, of less than
    strides, chooses among the sizes that a convolution with these strides maps to the input's.
    """

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any,
        output_padding: Any,
        kernel_initializer: Any,
        kernel_regularizer: Any,
        kernel_constraint: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank=rank, kernel_size=kernel_size, strides=strides, **kwargs)
        kind = type(self).__name__
        self.filters = arguments.positive(kind, "filters", filters)
        self.output_padding = None
        if output_padding is not None:
            self.output_padding = arguments.integers(kind, "output_padding", output_padding, rank, allow_zero=True)
            if any(extra >= stride for extra, stride in zip(self.output_padding, self.strides, strict=True)):
                raise ValueError(
                    f"{kind}: output_padding: expected less than strides={self.strides}, got {self.output_padding}"
                )
        self._pydt_keep_arguments("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)

    def build(self, input_shape: Any) -> None:
        ci = arguments.channels(self, input_shape, self.data_format)
        self.kernel = self._pydt_add_kept("kernel", (*self.kernel_size, self.filters, ci))
        self._build_bias(self.filters)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={arguments.channel_axis(self.data_format): ci})

    def _convolve(self, x: Any) -> Any:
        op = ops.ConvTranspose(
            strides=self.strides,
            padding=self.padding,
            dilation=self.dilation_rate,
            output_padding=self.output_padding,
        )
        return op(x, self.kernel)


@builtin
class Conv1DTranspose(BaseConvTranspose):
    """The transposed convolution of Conv1D."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
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


@builtin
class Conv2DTranspose(BaseConvTranspose):
    """The transposed convolution of Conv2D."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
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
class Conv3DTranspose(BaseConvTranspose):
    """The transposed convolution of Conv3D."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        output_padding: Any = None,
        dilation_rate: Any = (1, 1, 1),
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


Convolution1DTranspose = Conv1DTranspose
Convolution2DTranspose = Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose
