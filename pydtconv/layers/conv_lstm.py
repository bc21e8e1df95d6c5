"""ConvLSTM: recurrent layers of signals, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.layers.base.arguments import channel_axis, choice, format_of, given, integers, positive
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.recurrent_cells import CELL_ARGUMENTS, GatedCell
from pydtconv.layers.recurrent_layers import OfCell, named, with_arguments_of_cell
from pydtconv.serialization.configurable import builtin


@builtin
class ConvLSTMCell(GatedCell):
    """An LSTM whose products are convolutions, Shi et al. (NeurIPS 2015); states (n, ..., filters).

    The convolution of the state has strides of 1 and as many places in its result as in it.
    """

    _pydt_cell = "lstm"
    _pydt_masks_each_gate = True
    _pydt_not_in_config = ("rank",)

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        arguments, kind = given(locals()), f"ConvLSTM{rank}D"
        super().__init__(**kwargs)
        self.rank = rank
        self.filters = positive(kind, "filters", filters)
        self.kernel_size = integers(kind, "kernel_size", kernel_size, rank)
        self.strides = integers(kind, "strides", strides, rank)
        self.padding = choice(kind, "padding", padding, ("valid", "same"))
        self.data_format = format_of(kind, data_format)
        self.dilation_rate = integers(kind, "dilation_rate", dilation_rate, rank)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"{kind}: expected strides or dilation_rate of 1, got {self.strides} and {self.dilation_rate}"
            )
        self.unit_forget_bias = unit_forget_bias
        self._pydt_keep({name: arguments[name] for name in CELL_ARGUMENTS})
        self.state_size = [self.filters, self.filters]
        self.output_size = self.filters

    def build(self, input_shape: Any) -> None:
        axis = channel_axis(self.data_format)
        extents = input_shape[1:-1] if axis == -1 else input_shape[2:]
        if None in extents or input_shape[axis] is None:
            raise ValueError(
                f"ConvLSTM{self.rank}D {self.name!r}: expected images whose extents are known, got shape "
                f"{tuple(input_shape)}"
            )
        width = 4 * self.filters
        self.kernel = self._pydt_add_kept("kernel", (*self.kernel_size, input_shape[axis], width))
        self.recurrent_kernel = self._pydt_add_kept("recurrent_kernel", (*self.kernel_size, self.filters, width))
        self.bias = None
        if self.use_bias:
            self.bias = self._pydt_add_bias((width,), self.filters)
        self._extents = tuple(
            -(-extent // stride) if self.padding == "same" else (extent - (size - 1) * dilation - 1) // stride + 1
            for extent, stride, size, dilation in zip(
                extents, self.strides, self.kernel_size, self.dilation_rate, strict=True
            )
        )

    def get_initial_state(self, batch_size: int | None = None) -> list[Any]:
        last = self.data_format == "channels_last"
        shape = (*self._extents, self.filters) if last else (self.filters, *self._extents)
        return [ops.zeros((batch_size, *shape), dtype=self.compute_dtype) for _ in range(2)]

    def _pydt_first_states(self, z: Any) -> list[Any]:
        """Computed from z: constants of images, of all samples, would be large."""
        return [ops.zeros_like(ops.split(z, 4, axis=self._pydt_axis)[0])] * 2

    @property
    def _pydt_axis(self) -> int:
        return -1 if self.data_format == "channels_last" else -1 - self.rank

    def _pydt_product(self, x: Any, kernel: Any, sequence: bool) -> Any:
        if sequence:
            y = self._pydt_product(ops.reshape(x, (-1, *x.shape[2:])), kernel, sequence=False)
            return ops.reshape(y, (*x.shape[:2], *y.shape[1:]))
        return ops.conv(x, kernel, self.strides, self.padding, self.data_format, self.dilation_rate)

    def _pydt_add_bias_to(self, z: Any, bias: Any) -> Any:
        return z + (bias if self._pydt_axis == -1 else ops.reshape(bias, (-1, *[1] * self.rank)))

    def _pydt_step(self, z: Any, states: Sequence[Any], factors: list[Any] | None) -> list[Any]:
        h, c = states
        kernels = ops.split(self.recurrent_kernel, 4, axis=-1) if factors else [self.recurrent_kernel]
        parts = [
            ops.conv(x, kernel, 1, "same", self.data_format)
            for x, kernel in zip([h * f for f in factors] if factors else [h], kernels, strict=True)
        ]
        product = ops.concatenate(parts, axis=self._pydt_axis) if factors else parts[0]
        i, forget, k, o = ops.split(z + product, 4, axis=self._pydt_axis)
        gate, activation = self.recurrent_activation, self.activation
        c = gate(forget) * c + gate(i) * activation(k)
        return [gate(o) * activation(c), c]


@builtin
@with_arguments_of_cell
class ConvLSTM1D(OfCell):
    """A convolutional LSTM over signals (n, steps, width, channels); see `ConvLSTMCell` and `RNN`."""

    _pydt_cell_class, _pydt_cell_name = ConvLSTMCell, "conv_lstm_cell"

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs: Any,
    ) -> None:
        self._pydt_start({"rank": 1, **named(locals())}, kwargs)
        self.input_spec = InputSpec(ndim=4)


@builtin
@with_arguments_of_cell
class ConvLSTM2D(OfCell):
    """A convolutional LSTM over images (n, steps, height, width, channels); see `ConvLSTMCell` and `RNN`."""

    _pydt_cell_class, _pydt_cell_name = ConvLSTMCell, "conv_lstm_cell"

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs: Any,
    ) -> None:
        self._pydt_start({"rank": 2, **named(locals())}, kwargs)
        self.input_spec = InputSpec(ndim=5)


@builtin
@with_arguments_of_cell
class ConvLSTM3D(OfCell):
    """A convolutional LSTM over volumes (n, steps, depth, height, width, channels); see `ConvLSTMCell` and `RNN`."""

    _pydt_cell_class, _pydt_cell_name = ConvLSTMCell, "conv_lstm_cell"

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs: Any,
    ) -> None:
        self._pydt_start({"rank": 3, **named(locals())}, kwargs)
        self.input_spec = InputSpec(ndim=6)
