"""SimpleRNN, LSTM, GRU: `RNN` around a cell of their own."""

from __future__ import annotations

from typing import Any, ClassVar

from pydtconv.layers.base.arguments import given
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.recurrent import RNN
from pydtconv.layers.recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from pydtconv.serialization.configurable import builtin

#: what is the layer's and not its cell's
_OF_LAYER = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "activity_regularizer")


class OfCell(RNN):
    """A layer that makes its cell; the cell's arguments are attributes of the layer, too."""

    _pydt_not_in_config = ("cell", "use_cudnn")
    _pydt_cell_class: ClassVar[Any]
    _pydt_cell_name: ClassVar[str]

    def _pydt_start(self, own: dict[str, Any], kwargs: dict[str, Any]) -> None:
        """own: the arguments of the constructor, kwargs: the others."""
        of_layer = {name: own.pop(name) for name in _OF_LAYER if name in own}
        cudnn = own.pop("use_cudnn", "auto")
        if cudnn not in ("auto", True, False):
            raise ValueError(f"{type(self).__name__}: use_cudnn: expected 'auto', True or False, got {cudnn!r}")
        if cudnn is True:
            raise ValueError(
                f"{type(self).__name__}: use_cudnn: expected 'auto' or False, got True: layers run on CPUs"
            )
        if "implementation" in kwargs:
            own["implementation"] = kwargs.pop("implementation")
        shared = {name: kwargs[name] for name in ("dtype", "trainable") if kwargs.get(name) is not None}
        cell = self._pydt_cell_class(**own, **shared, name=self._pydt_cell_name)
        super().__init__(cell, **of_layer, **kwargs)

    use_cudnn = "auto"


def _of_cell(name: str) -> Any:
    return property(lambda self: getattr(self.cell, name))


def with_arguments_of_cell(cls: Any) -> Any:
    """The class, with the arguments of its cell as properties."""
    for name in cls._pydt_cell_class._pydt_config_fields:
        setattr(cls, name, _of_cell(name))
    return cls


def named(names: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor whose `locals()` these are, without those in its kwargs."""
    return given(names | {"kwargs": {}})


@builtin
@with_arguments_of_cell
class SimpleRNN(OfCell):
    """h = activation(x kernel + bias + h recurrent_kernel) for each step x of (n, steps, features); see `RNN`."""

    _pydt_cell_class, _pydt_cell_name = SimpleRNNCell, "simple_rnn_cell"

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
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._pydt_start(named(locals()), kwargs)
        self.input_spec = InputSpec(ndim=3)


@builtin
@with_arguments_of_cell
class LSTM(OfCell):
    """Long short-term memory over (n, steps, features); see `LSTMCell` and `RNN`.  Its states are h and c."""

    _pydt_cell_class, _pydt_cell_name = LSTMCell, "lstm_cell"

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
        unroll: bool = False,
        use_cudnn: Any = "auto",
        **kwargs: Any,
    ) -> None:
        self._pydt_start(named(locals()), kwargs)
        self.input_spec = InputSpec(ndim=3)


@builtin
@with_arguments_of_cell
class GRU(OfCell):
    """Gated recurrent units over (n, steps, features); see `GRUCell` and `RNN`."""

    _pydt_cell_class, _pydt_cell_name = GRUCell, "gru_cell"

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
        unroll: bool = False,
        reset_after: bool = True,
        use_cudnn: Any = "auto",
        **kwargs: Any,
    ) -> None:
        self._pydt_start(named(locals()), kwargs)
        self.input_spec = InputSpec(ndim=3)
