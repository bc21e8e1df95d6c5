"""RNN: a cell over all steps of a sequence; StackedRNNCells."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import ops, replica, tree
from pydtconv.graph import is_unrolled, traced_loop
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor, infer_outputs
from pydtconv.layers.recurrent_cells import GatedCell, UnitsCell
from pydtconv.ops.base import Spec
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object


@builtin
class StackedRNNCells(Layer):
    """Cells, each of which reads the output of the one before; its states are theirs, in their order."""

    def __init__(self, cells: Sequence[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            check_cell("StackedRNNCells", cell)
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        last = self.cells[-1]
        size = getattr(last, "output_size", None)
        return size if size is not None else states_of(last.state_size)[0]

    def get_initial_state(self, batch_size: int | None = None) -> list[Any]:
        return [initial_state_of(cell, batch_size, self.compute_dtype) for cell in self.cells]

    def build(self, input_shape: Any) -> None:
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(input_shape)
                cell.built = True
            size = getattr(cell, "output_size", None)
            input_shape = (input_shape[0], size if size is not None else states_of(cell.state_size)[0])

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        new = []
        for cell, own in zip(self.cells, states, strict=True):
            nested = isinstance(own, (list, tuple))
            inputs, after = call_cell(cell, inputs, list(own) if nested else [own], training)
            new.append(after if nested else after[0])
        return inputs, new

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "cells": [serialize_keras_object(cell) for cell in self.cells]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Layer:
        cells = [deserialize_keras_object(cell, custom_objects) for cell in config["cells"]]
        return cls(cells, **{name: value for name, value in config.items() if name != "cells"})


def check_cell(layer: str, cell: Any) -> None:
    """Raises ValueError for what is no cell."""
    for name in ("call", "state_size"):
        if name not in dir(cell):
            raise ValueError(
                f"{layer}: cell: expected an object with call(inputs, states) and state_size, got {cell!r}"
            )
    if not isinstance(cell.state_size, (list, tuple, int, np.integer)):
        raise ValueError(
            f"{layer}: cell: state_size: expected an integer, or one for each state, got {cell.state_size!r}"
        )


def states_of(state_size: Any) -> list[Any]:
    return list(state_size) if isinstance(state_size, (list, tuple)) else [state_size]


def initial_state_of(cell: Any, batch_size: Any, dtype: str) -> list[Any]:
    """The states that a cell starts from; by default zeros."""
    if hasattr(cell, "get_initial_state"):
        found = cell.get_initial_state(batch_size=batch_size)
        return list(found) if isinstance(found, (list, tuple)) else [found]
    return [ops.zeros((batch_size, size), dtype=dtype) for size in states_of(cell.state_size)]


def call_cell(cell: Any, inputs: Any, states: list[Any], training: bool) -> tuple[Any, list[Any]]:
    """A step: the output and the states."""
    takes = isinstance(cell, Layer) and "training" in inspect.signature(cell.call).parameters
    call = cell if callable(cell) else cell.call
    output, new = call(inputs, states, **({"training": training} if takes else {}))
    return output, list(new) if isinstance(new, (list, tuple)) else [new]


@builtin
class RNN(Layer):
    """A cell, or several stacked, over the steps of (n, steps, ...).

    return_sequences: the outputs of all steps (n, steps, ...), else that of the last.  return_state: the last states
    follow the output.  go_backwards: the last step is the first one, and outputs are in the order of the steps that are
    made.  stateful: each batch starts from the states that the one before has left; the batch size must be known.
    zero_output_for_mask: of masked steps, the outputs are 0, else that of the step before.  Masked steps leave states
    as they are.

    Known cells (SimpleRNNCell, LSTMCell, GRUCell) run as one operator.  So do others, and dropout of states: the step
    has a plan of its own.  With unroll=True, and where Python code of a step asks for values, all steps are in the
    graph, one behind the other.
    """

    carries_masks = True
    computes_integers = False
    _pydt_outputs = 1  # beside states
    #: of a stateful layer, between batches
    states: Any = None

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        cell = StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else cell
        check_cell(type(self).__name__, cell)
        super().__init__(**kwargs)
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.unroll = unroll
        self.zero_output_for_mask = zero_output_for_mask

    @property
    def state_size(self) -> list[Any]:
        return states_of(self.cell.state_size)

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((sequences_shape[0], *sequences_shape[2:]))
            self.cell.built = True

    def get_initial_state(self, batch_size: int | None = None) -> list[Any]:
        """The states of a batch of this size before its first step."""
        return initial_state_of(self.cell, batch_size, self.compute_dtype)

    def _pydt_run_variables(self) -> list[Any]:
        return [] if self.states is None else tree.flatten(self.states)

    def reset_state(self) -> None:
        """Sets the states of a stateful layer to 0."""
        for variable in self._pydt_run_variables():
            variable.assign(np.zeros(variable.shape, variable.dtype))

    reset_states = reset_state

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        found = tree.flatten(mask)[0] if mask is not None else None
        found = found if self.return_sequences else None
        return [found, *[None] * len(tree.flatten(self.state_size))] if self.return_state else found

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of one step, and so many of them as there are steps."""
        given = self._pydt_named_arguments(args, kwargs)
        sequences = given["sequences"]
        if not isinstance(sequences, KerasTensor):
            return infer_outputs(self._pydt_traced_call, args, kwargs)
        if self.stateful and sequences.shape[0] is None:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: stateful: expected a batch size that is known, as of "
                f"Input(batch_shape=...), got inputs of shape {tuple(sequences.shape)}"
            )
        steps = sequences.shape[1]
        one = KerasTensor((sequences.shape[0], 1, *sequences.shape[2:]), sequences.dtype)
        if sequences.mask_spec is not None:
            one.mask_spec = Spec((sequences.shape[0], 1), sequences.mask_spec.dtype)
        given = {**given, "sequences": one}
        if isinstance(given.get("mask"), KerasTensor):
            given["mask"] = KerasTensor((sequences.shape[0], 1), given["mask"].dtype)
        outputs = infer_outputs(self._pydt_traced_call, (), given | ({"training": False}))
        flat = tree.flatten(outputs)
        for output in flat[: self._pydt_outputs] if self.return_sequences else ():
            output.shape = (output.shape[0], steps, *output.shape[2:])
            if output.mask_spec is not None:
                output.mask_spec = Spec((output.shape[0], steps), output.mask_spec.dtype)
        return outputs

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False) -> Any:
        if not sequences.shape[1]:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected one step or more, got shape {tuple(sequences.shape)}"
            )
        states = self._pydt_first_states(sequences, initial_state)
        mask = tree.flatten(mask)[0] if mask is not None else None
        output, states = _scan(self, self.cell, sequences, states, mask, training, self.return_sequences)
        if self.stateful:
            for variable, state in zip(tree.flatten(self.states), tree.flatten(states), strict=True):
                variable.assign(ops.cast(state, variable.dtype))
        return (output, *states) if self.return_state else output

    def _pydt_first_states(self, sequences: Any, given: Any) -> Any:
        """The states before the first step in the structure of the cell's; None for zeros."""
        n = sequences.shape[0]
        if self.stateful:
            if replica.current().parts > 1:
                raise NotImplementedError(
                    f"{type(self).__name__} {self.name!r}: stateful: expected one process, got "
                    f"{replica.current().parts}: each has other samples, which leave it other states"
                )
            if self.states is None:
                zeros = [np.zeros(tuple(s.shape), self.variable_dtype) for s in tree.flatten(self.get_initial_state(n))]
                made = [Variable(zero, trainable=False, name="rnn_state") for zero in zeros]
                structure = self.get_initial_state(n)
                # of a run, not of the model: no file has them
                object.__setattr__(self, "states", tree.pack_sequence_as(structure, made))
            expected = tree.flatten(self.states)[0].shape[0]
            if n != expected:
                raise ValueError(
                    f"{type(self).__name__} {self.name!r}: stateful: expected batches of {expected} samples, as the "
                    f"first one had, got {n}"
                )
        if given is None and self.stateful:
            given = self.states
        if given is None:
            return None
        count = len(tree.flatten(self.get_initial_state(1)))
        if len(tree.flatten(given)) != count:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: initial_state: expected {count} states, got "
                f"{len(tree.flatten(given))}"
            )
        given = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), given)
        return tree.pack_sequence_as(self.get_initial_state(1), tree.flatten(given))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return config | ({"cell": serialize_keras_object(self.cell)} if "cell" in self._pydt_config_fields else {})

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Layer:
        if "cell" not in config:
            return super().from_config(dict(config))
        cell = deserialize_keras_object(config["cell"], custom_objects)
        return cls(cell, **{name: value for name, value in config.items() if name != "cell"})


def _scan(layer: RNN, cell: Any, x: Any, states: Any, mask: Any, training: bool, sequences: bool) -> tuple[Any, Any]:
    """The output (of all steps with sequences) and the last states of a cell that starts from states; None: zeros."""
    if isinstance(cell, StackedRNNCells) and type(cell).call is StackedRNNCells.call:
        last, new = len(cell.cells) - 1, []
        for i, each in enumerate(cell.cells):
            own = None if states is None else states_of(states[i])
            x = ops.flip(x, 1) if i and layer.go_backwards else x  # outputs are in the order of the steps that are made
            x, after = _scan(layer, each, x, own, mask, training, sequences or i < last)
            new.append(after)
        return x, new
    known = isinstance(cell, UnitsCell) and type(cell).call is GatedCell.call
    if known and cell._pydt_kinds is not None and not (training and cell.recurrent_dropout):
        return _at_once(layer, cell, x, states, mask, training, sequences)
    return _step_by_step(layer, cell, x, states, mask, training, sequences)


def _at_once(
    layer: RNN, cell: UnitsCell, x: Any, states: list[Any] | None, mask: Any, training: bool, sequences: bool
) -> tuple[Any, list[Any]]:
    assert cell._pydt_kinds is not None
    if not cell.built:
        cell.build((x.shape[0], *x.shape[2:]))
    bias = cell._pydt_biases[1]
    given = states or []
    op = ops.Recurrence(
        cell._pydt_cell,
        *cell._pydt_kinds,
        backwards=layer.go_backwards,
        sequences=sequences,
        zero_output=layer.zero_output_for_mask,
        has_bias=bias is not None,
        has_state=bool(given),
        has_mask=mask is not None,
    )
    if is_unrolled(op):
        return _step_by_step(layer, cell, x, states, mask, training, sequences)
    z = cell._pydt_products(x, training, sequence=True)
    more = [each for each in (bias, *given, mask) if each is not None]
    y, *new = op(z, cell.recurrent_kernel, *more)
    return y, new


def _step_by_step(
    layer: RNN, cell: Any, x: Any, states: list[Any] | None, mask: Any, training: bool, sequences: bool
) -> tuple[Any, list[Any]]:
    n, steps = x.shape[:2]
    shared = isinstance(cell, GatedCell) and type(cell).call is GatedCell.call
    if shared:
        if not cell.built:
            cell.build((n, *x.shape[2:]))
        x = cell._pydt_products(x, training, sequence=True)
        factors = cell._pydt_state_factors(x[:, 0], training)
    if states is None:
        states = cell._pydt_first_states(x[:, 0]) if shared else initial_state_of(cell, n, layer.compute_dtype)

    def step(states: list[Any], x: Any) -> tuple[list[Any], Any]:
        if shared:
            new = cell._pydt_step(x, states, factors)
            return new, new[0]
        y, new = call_cell(cell, x, states, training)
        return new, y

    if not layer.unroll:
        backwards, zero = layer.go_backwards, layer.zero_output_for_mask
        options = {"backwards": backwards, "aligned": False, "stacked": sequences, "mask": mask, "zero_output": zero}
        found = traced_loop(step, states, x, steps, axis=1, **options)
        if found is not None:
            return found[1], found[0]
    output, outputs = None, []
    for t in reversed(range(steps)) if layer.go_backwards else range(steps):
        new, y = step(states, x[:, t])
        if mask is None:
            output, states = y, new
        else:
            kept = ops.cast(mask[:, t], "bool")
            held = ops.zeros_like(y) if output is None or layer.zero_output_for_mask else output
            output = _chosen(kept, y, held)
            states = tree.map_structure(lambda a, b, kept=kept: _chosen(kept, a, b), new, states)
        outputs.append(output)
    return (ops.stack(outputs, axis=1) if sequences else output), states


def _chosen(kept: Any, a: Any, b: Any) -> Any:
    """a for samples that are kept (n,), else b."""
    return ops.where(ops.reshape(kept, (-1, *[1] * (len(a.shape) - 1))), a, b)
