"""Parameters, their gradients and the optimizer's slots: one flat array each.

Variables lie in the order in which backward completes their gradients, so that what is ready is always a prefix: an
optimizer step is one call over the arrays, a bucket of a reduction is a slice, a checkpoint is one write.

Where variables differ in dtype (a float64 layer in a float32 model) they still lie in that order, in the same arrays:
the elements of these are then words of the narrowest dtype's width, of which a wider number takes several.  Whoever
computes takes runs of neighbours of one dtype (`runs`) and looks at them as numbers (`numbers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np

from pydtconv.graph.ir.variable import Variable

#: elements between the starts of two variables are a multiple of this, so that each one is aligned for vectors
ALIGNMENT = 16


def lies_in(array: np.ndarray, flat: np.ndarray) -> bool:
    """Whether an array is a part of a flat array, or of what this is a part of."""
    return array.base is (flat if flat.base is None else flat.base)


class ParameterStore:
    """Flat arrays over trainable variables; moves each variable's value into `parameters`.

    variables: in order.  parameters, gradients: 1-D arrays of equal length; gaps between variables are zero.
    shared: whether other processes have these parameters, too.
    dtype: of the arrays: that of the variables, or an unsigned integer where these differ, for nobody to compute with.
    `gradients` is made when it is first asked for: steps that apply each gradient at once (`Plan.applies_gradients`) do
    without, and leave it as it is.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = list(variables)
        dtypes = list(dict.fromkeys(variable.dtype for variable in self.variables)) or ["float32"]
        self.itemsize = min(np.dtype(dtype).itemsize for dtype in dtypes)
        self.dtype = dtypes[0] if len(dtypes) == 1 else f"uint{8 * self.itemsize}"
        self._slices: dict[int, slice] = {}
        self._runs: list[tuple[slice, np.dtype[Any]]] = []
        position = 0
        for variable in self.variables:
            size = variable.own_array.nbytes // self.itemsize
            self._slices[id(variable)] = slice(position, position + size)
            start, position = position, position + -(-size // ALIGNMENT) * ALIGNMENT
            if self._runs and self._runs[-1][1] == variable.dtype:
                start = self._runs.pop()[0].start
            self._runs.append((slice(start, position), np.dtype(variable.dtype)))
        self.size = position
        self.parameters = np.zeros(self.size, self.dtype)
        self.shared = False
        self._gradients: np.ndarray | None = None
        self.slots: dict[str, np.ndarray] = {}
        for variable in self.variables:
            view = self.of(variable, self.parameters)
            view[...] = variable.own_array
            variable.value = view

    def __contains__(self, variable: Variable) -> bool:
        return id(variable) in self._slices

    @property
    def ids(self) -> Set[int]:
        """The ids of the variables."""
        return self._slices.keys()

    @property
    def holds_all(self) -> bool:
        """Whether no other store has taken one of the variables since."""
        return all(lies_in(variable.host_array, self.parameters) for variable in self.variables)

    def copy_into(self, flat: np.ndarray) -> None:
        """Copies the variables' values into a flat array of zeros."""
        for variable in self.variables:
            self.of(variable, flat)[...] = variable.host_array

    def place(self, parameters: np.ndarray, shared: bool = False) -> None:
        """Moves the variables into another flat array, which has their values.

        shared: other processes write there, too: `assign` gives a variable an array of its own.
        """
        self.parameters, self.shared = parameters, shared
        for variable in self.variables:
            view = self.of(variable, parameters)
            view.flags.writeable = not shared
            variable.value = view

    @property
    def overwritten(self) -> list[Variable]:
        """The variables that a step sets to their gradients."""
        return [v for v in self.variables if v.overwrite_with_gradient] if Variable.overwritten else []

    @property
    def gradients(self) -> np.ndarray:
        """The flat array of all gradients."""
        if self._gradients is None:
            self._gradients = np.zeros(self.size, self.dtype)
        return self._gradients

    @gradients.setter
    def gradients(self, array: np.ndarray) -> None:
        """Another array for them, 1-D, zeros; steps that write there must be bound anew (`Memory.generation`)."""
        if array.shape != (self.size,) or array.dtype != self.dtype:
            raise ValueError(f"gradients: expected {self.size} {self.dtype}, got {array.shape} {array.dtype}")
        self._gradients = array

    @property
    def working_parameters(self) -> Any:
        """The flat array of parameters where steps compute: another one on a device with memory of its own."""
        return self.parameters

    @property
    def working_gradients(self) -> Any:
        """That of the gradients."""
        return self.gradients

    def working_slot(self, flat: np.ndarray) -> Any:
        """That of a slot."""
        return flat

    def begin_update(self) -> None:
        """Makes sure that the working arrays have the values."""

    def watch_slots(self, slots: Sequence[Variable]) -> None:
        """Notes the variables that lie in the flat arrays of slots."""

    def slice_of(self, variable: Variable) -> slice:
        """Where the variable lies in each flat array."""
        try:
            return self._slices[id(variable)]
        except KeyError:
            raise KeyError(f"variable {variable.path!r} gets no gradient and is not in the store") from None

    def of(self, variable: Variable, flat: Any) -> Any:
        """A variable's part of a flat array, in the shape that it has here and its dtype."""
        return self.numbers(flat, self.slice_of(variable), variable.dtype).reshape(variable.host_array.shape)

    def numbers(self, flat: Any, part: slice, dtype: Any) -> Any:
        """A slice of a flat array, 1-D, in the dtype of the variables that lie there."""
        piece = flat[part]
        return piece if piece.dtype == dtype else piece.view(dtype)

    def runs(self, part: slice) -> Iterator[tuple[slice, np.dtype[Any]]]:
        """What a slice has of each run of variables of one dtype, and that dtype."""
        for run, dtype in self._runs:
            start, stop = max(run.start, part.start), min(run.stop, part.stop)
            if start < stop:
                yield slice(start, stop), dtype

    def gradient_of(self, variable: Variable) -> np.ndarray:
        """The gradient of a variable after a training run, in the variable's shape."""
        return self.of(variable, self.gradients)

    def put_gradient(self, variable: Variable, gradient: np.ndarray) -> None:
        """Writes a gradient where the optimizer reads it."""
        self.gradient_of(variable)[...] = gradient

    def slot(self, name: str) -> np.ndarray:
        """The flat array of an optimizer's slot; zeros when it is first asked for."""
        if name not in self.slots:
            self.slots[name] = np.zeros(self.size, self.dtype)
        return self.slots[name]
