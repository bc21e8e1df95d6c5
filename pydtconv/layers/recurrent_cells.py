"""Cells of recurrent layers: what one step computes.

A cell has `state_size`, an integer or one for each of its states, and `call(inputs, states)`, which returns the output
and the states after the step.  The cells here also say which products all steps of a sequence can share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import activations, ops, tree
from pydtconv.layers.base.arguments import given, positive
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.seeds import seed_of_call
from pydtconv.ops.kinds import FROM_OUTPUT
from pydtconv.ops.recurrence import GATES, step
from pydtconv.serialization.configurable import builtin
from pydtconv.support.random import next_seed


def share(layer: str, name: str, value: Any) -> float:
    """A rate of dropout.  Raises ValueError for what is no number from 0 to 1."""
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{layer}: {name}: expected a number from 0 to 1, got {value!r}")
    return float(value)


class GatedCell(Layer):
    """A cell with dropout of its inputs and of its state: each is drawn once for all steps of a sequence."""

    activation: Any
    recurrent_activation: Any = staticmethod(activations.linear)
    use_bias: bool
    reset_after = False
    unit_forget_bias = False
    state_size: Any
    kernel: Any
    recurrent_kernel: Any
    bias: Any
    bias_initializer: Any
    bias_regularizer: Any
    bias_constraint: Any

    def _pydt_keep(self, arguments: dict[str, Any]) -> None:
        """Keeps the arguments of a constructor that all cells have, and removes them."""
        kind = type(self).__name__
        self.use_bias = arguments.pop("use_bias")
        for name in ("activation", "recurrent_activation"):
            if name in arguments:
                setattr(self, name, activations.get(arguments.pop(name)))
        for weight, argument in (("kernel", "kernel"), ("recurrent_kernel", "recurrent"), ("bias", "bias")):
            parts = [arguments.pop(f"{argument}_{part}") for part in ("initializer", "regularizer", "constraint")]
            self._pydt_keep_arguments(argument, *parts)
            if weight != argument:
                self._pydt_keep_arguments(weight, *parts)
        self.dropout = share(kind, "dropout", arguments.pop("dropout"))
        self.recurrent_dropout = share(kind, "recurrent_dropout", arguments.pop("recurrent_dropout"))
        self.seed = arguments.pop("seed")
        self.own_seed = next_seed() if self.seed is None else self.seed

    @property
    def _pydt_cell(self) -> str:
        """Its name in `ops.recurrence.GATES`."""
        raise NotImplementedError

    @property
    def _pydt_gates(self) -> int:
        return GATES[self._pydt_cell]

    def _pydt_factors(self, x: Any, rate: float, each_gate: bool, shape: Sequence[int]) -> list[Any] | None:
        """What multiplies x in training: one array, or one for each gate; None for no dropout."""
        if not 0 < rate < 1:
            return None
        draw = [
            ops.Dropout(rate=rate, noise_shape=tuple(shape), seed=(seed_of_call(self) + i) % 2**63, always=True)
            for i in range(self._pydt_gates if each_gate and self._pydt_gates > 1 else 1)
        ]
        return [dropout(ops.ones_like(x)) for dropout in draw]

    def _pydt_state_factors(self, z: Any, training: bool) -> list[Any] | None:
        """Like a gate of z, the inputs' part of a step: states may be constants, which are drawn for once."""
        if not (training and self.recurrent_dropout):
            return None
        like = ops.split(z, self._pydt_gates, axis=self._pydt_axis)[0]
        return self._pydt_factors(like, self.recurrent_dropout, True, like.shape)

    def _pydt_products(self, x: Any, training: bool, sequence: bool) -> Any:
        """The inputs' part of all gates, (n, steps, ...) of a sequence, else (n, ...)."""
        x = ops.cast(x, self.compute_dtype)
        shape = (x.shape[0], 1, *x.shape[2:]) if sequence else x.shape
        each_gate = self._pydt_masks_each_gate or self.recurrent_dropout > 0
        factors = self._pydt_factors(x, self.dropout, each_gate, shape) if training else None
        if factors is None or len(factors) == 1:
            z = self._pydt_product(x if factors is None else x * factors[0], self.kernel, sequence)
        else:
            parts = zip(factors, ops.split(self.kernel, len(factors), axis=-1), strict=True)
            z = [self._pydt_product(x * f, kernel, sequence) for f, kernel in parts]
            z = ops.concatenate(z, axis=self._pydt_axis)
        bias = self._pydt_biases[0]
        return z if bias is None else self._pydt_add_bias_to(z, bias)

    def _pydt_add_bias_to(self, z: Any, bias: Any) -> Any:
        return ops.Bias()(z, bias)

    @property
    def _pydt_axis(self) -> int:
        """The axis of channels, counted from the end."""
        return -1

    _pydt_masks_each_gate = False

    def _pydt_product(self, x: Any, kernel: Any, sequence: bool) -> Any:
        return ops.Dense()(x, kernel)

    @property
    def _pydt_biases(self) -> tuple[Any, Any]:
        """That of the inputs' part, and that of the state's; None where there is none."""
        if self.bias is None or not (self.reset_after and self.use_bias):
            return self.bias, None
        return self.bias[0], self.bias[1]

    def _pydt_step(self, z: Any, states: Sequence[Any], factors: list[Any] | None) -> list[Any]:
        return step(
            self._pydt_cell, self.activation, self.recurrent_activation, z, states, self.recurrent_kernel,
            self._pydt_biases[1], factors,
        )  # fmt: skip

    def _pydt_add_bias(self, shape: tuple[int, ...], units: int) -> Any:
        """The bias, with ones for the forget gate of four where the cell wants them."""
        initializer = self.bias_initializer

        def make(_: Any, dtype: Any = None) -> Any:
            parts = [initializer((count,), dtype=dtype) for count in (units, 2 * units)]
            return np.concatenate([parts[0], np.ones(units, dtype), parts[1]])

        return self.add_weight(
            shape,
            make if self.unit_forget_bias else initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
            name="bias",
        )

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        """The output (n, units) and the states after a step, for inputs (n, features)."""
        nested = isinstance(states, (list, tuple))
        before = list(states) if nested else [states]
        z = self._pydt_products(inputs, training, sequence=False)
        new = self._pydt_step(z, before, self._pydt_state_factors(z, training))
        return new[0], new if nested else new[0]

    def get_initial_state(self, batch_size: int | None = None) -> list[Any]:
        """Zeros (batch_size, size) for each state."""
        sizes = self.state_size if isinstance(self.state_size, (list, tuple)) else [self.state_size]
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in sizes]

    def _pydt_first_states(self, z: Any) -> list[Any]:
        """The states to start from beside z, the inputs' part of a step."""
        return tree.flatten(self.get_initial_state(z.shape[0]))


class UnitsCell(GatedCell):
    """A cell whose states are vectors of `units`."""

    _pydt_not_in_config = ("implementation",)

    def _pydt_start(self, arguments: dict[str, Any]) -> None:
        kwargs = {name: arguments.pop(name) for name in ("name", "dtype", "trainable") if name in arguments}
        self.implementation = arguments.pop("implementation", 2)
        units, rest = arguments.pop("units"), arguments
        own = {name: rest.pop(name) for name in tuple(rest) if name in CELL_ARGUMENTS}
        super().__init__(**kwargs, **rest)
        self.units = positive(type(self).__name__, "units", units)
        self._pydt_keep(own)
        states = 2 if self._pydt_cell == "lstm" else 1
        self.state_size = [self.units] * states if states > 1 else self.units
        self.output_size = self.units

    @property
    def _pydt_kinds(self) -> tuple[str, str] | None:
        """Both activations by the names that operators have for them; None where one is another function."""
        names = [getattr(each, "__name__", "") for each in (self.activation, self.recurrent_activation)]
        own = zip(names, (self.activation, self.recurrent_activation), strict=True)
        if any(name not in FROM_OUTPUT or getattr(activations, name, None) is not each for name, each in own):
            return None
        return names[0], names[1]

    def build(self, input_shape: Any) -> None:
        width = self._pydt_gates * self.units
        if input_shape[-1] is None:
            raise ValueError(f"{type(self).__name__} {self.name!r}: the number of features must be known")
        self.kernel = self._pydt_add_kept("kernel", (input_shape[-1], width))
        self.recurrent_kernel = self._pydt_add_kept("recurrent_kernel", (self.units, width))
        self.bias = None
        if self.use_bias:
            self.bias = self._pydt_add_bias((2, width) if self.reset_after else (width,), self.units)


@builtin
class SimpleRNNCell(UnitsCell):
    """h = activation(x kernel + bias + h recurrent_kernel); x (n, features), h (n, units)."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
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
        self._pydt_start(given(locals()))

    _pydt_cell = "simple"


@builtin
class LSTMCell(UnitsCell):
    """Long short-term memory, Hochreiter and Schmidhuber (1997); x (n, features), states h and c (n, units).

    unit_forget_bias: the bias of the forget gate begins as 1, as Jozefowicz et al. (2015) recommend.
    implementation: 1 and 2 compute the same.
    """

    def __init__(
        self,
        units: int,
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
        arguments = given(locals())
        forget = arguments.pop("unit_forget_bias")
        self._pydt_start(arguments)
        self.unit_forget_bias = forget

    _pydt_cell = "lstm"


@builtin
class GRUCell(UnitsCell):
    """Gated recurrent unit, Cho et al. (2014); x (n, features), h (n, units).

    reset_after: the reset gate multiplies h recurrent_kernel, which has a bias of its own then; else it multiplies h.
    implementation: 1 and 2 compute the same.
    """

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        reset_after: bool = True,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        arguments = given(locals())
        after = arguments.pop("reset_after")
        self._pydt_start(arguments)
        self.reset_after = after

    @property
    def _pydt_cell(self) -> str:
        return "gru" if self.reset_after else "gru_before"


#: arguments of all cells
CELL_ARGUMENTS = (
    "activation", "recurrent_activation", "use_bias", "kernel_initializer", "recurrent_initializer",
    "bias_initializer", "kernel_regularizer", "recurrent_regularizer", "bias_regularizer", "kernel_constraint",
    "recurrent_constraint", "bias_constraint", "dropout", "recurrent_dropout", "seed",
)  # fmt: skip
