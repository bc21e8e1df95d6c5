"""What an optimizer needs that is written variable by variable, as Keras's are: `build` and `update_step`.

    class Signs(Optimizer):
        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, learning_rate * ops.sign(gradient))

Its step is not joined with backward, and is slower than one over flat arrays; `Optimizer.update` is written for those.
On a device with memory of its own it runs on the host: gradients and variables are copied there, and back.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

from pydtconv import initializers
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.own_names import OwnNames


class ByVariable(OwnNames):
    """Mixin of `Optimizer`: variables of one's own, in the order in which they were made, and their updates."""

    name: str
    weight_decay: float | None
    built: bool
    learning_rate: Any
    _pydt_slots: Any
    _pydt_rate: float
    #: for each of those that were added, the variable of the model that it belongs to, where that is known
    _pydt_added_for: Any = ()
    _pydt_former: tuple[str, ...] = (
        "_pydt_added",
        "_pydt_constrained",
        "_pydt_excluded",
        "_pydt_excluded_pattern",
        "_pydt_learning_rate",
        "_pydt_own_store",
        "_pydt_rate",
        "_pydt_runs",
        "_pydt_slots",
        "_pydt_states",
        "_pydt_steps",
        "_pydt_updates",
    )

    def __init__(self) -> None:
        self._pydt_added: list[Variable] = []
        self._pydt_added_for: list[Variable | None] = []

    @property
    def goes_by_variable(self) -> bool:
        """Whether the class has an `update_step`."""
        return hasattr(self, "update_step")

    # --- variables --------------------------------------------------------------------------------------------------
    def add_variable(
        self,
        shape: Sequence[int],
        initializer: Any = "zeros",
        dtype: str | None = None,
        aggregation: str = "none",
        layout: Any = None,
        name: str | None = None,
    ) -> Variable:
        """A variable that is kept and saved with the optimizer."""
        variable = Variable(
            initializers.get(initializer), tuple(shape), dtype, False, True, aggregation, name=name, layout=layout
        )
        variable.path = f"{self.name}/{variable.name}"
        self._pydt_added.append(variable)
        self._pydt_added_for.append(None)
        return variable

    def add_variable_from_reference(
        self, reference_variable: Variable, name: str | None = None, initializer: Any = "zeros"
    ) -> Variable:
        """A variable of the shape and type of another one."""
        told = f"{reference_variable.path.replace('/', '_')}_{name or 'var'}"
        shape, dtype = reference_variable.shape, reference_variable.dtype
        return self._pydt_add_for(reference_variable, shape, initializer, dtype, name=told)

    def _pydt_add_for(self, reference: Variable, *arguments: Any, **more: Any) -> Variable:
        """A variable of any shape that `update_step` needs for one of the model's alone."""
        variable = self.add_variable(*arguments, **more)
        self._pydt_added_for[-1] = reference
        return variable

    def add_optimizer_variables(
        self, trainable_variables: Sequence[Variable], name: Any, initializer: Any = "zeros"
    ) -> Any:
        """A list with a variable for each of these; for several names a tuple of lists."""
        names = [name] if isinstance(name, str) else list(name)
        starts = list(initializer) if isinstance(initializer, (list, tuple)) else [initializer] * len(names)
        if len(starts) != len(names):
            raise ValueError(f"initializer: expected one for each of {names}, got {len(starts)}")
        found: tuple[list[Variable], ...] = tuple([] for _ in names)
        for variable in trainable_variables:
            for each, start, of_name in zip(found, starts, names, strict=True):
                each.append(self.add_variable_from_reference(variable, of_name, start))
        return found[0] if isinstance(name, str) else found

    def state_bytes(self, variables: Sequence[Variable]) -> int:
        """Bytes of the variables of one's own, those that `build` would make for these where it has not been called."""
        return sum(state.host_array.nbytes for _, state in self.states_by_variable(variables))

    def states_by_variable(self, variables: Sequence[Variable]) -> list[tuple[Variable | None, Variable]]:
        """The variables of one's own, each behind the one of these that it belongs to, None where that is not known.

        Where `build` has not been called: those that it would make.
        """
        if not self.goes_by_variable:
            return []
        optimizer = self if self.built else copy.deepcopy(self)
        if not self.built:
            optimizer.build(list(variables))  # type: ignore[attr-defined]
        return list(itertools.zip_longest(optimizer._pydt_added_for, optimizer._pydt_added))

    def _get_variable_index(self, variable: Variable) -> int:
        """The place of a variable among those that the optimizer was built with."""
        for index, other in enumerate(self._pydt_slots.variables):
            if other is variable:
                return index
        raise KeyError(f"optimizer {self.name!r}: expected a variable that it was built with, got {variable.path!r}")

    def assign(self, variable: Variable, value: Any) -> None:
        """variable = value"""
        variable.assign(value)

    def assign_add(self, variable: Variable, value: Any) -> None:
        """variable += value"""
        variable.assign_add(value)

    def assign_sub(self, variable: Variable, value: Any) -> None:
        """variable -= value"""
        variable.assign_sub(value)

    # --- the step ---------------------------------------------------------------------------------------------------
    def ready(self, variables: Sequence[Variable], store: Any = None) -> None:
        """Builds, where it must; `build` of an optimizer by variables is called once, with the variables alone."""
        if not self.goes_by_variable:
            self.build(variables, store)  # type: ignore[attr-defined]
        elif not self.built:
            self.build(list(variables))  # type: ignore[attr-defined]
            self.built = True
        else:
            unknown = [variable.path for variable in variables if variable not in self._pydt_slots]
            if unknown:
                raise ValueError(
                    f"optimizer {self.name!r}: expected the variables that it was built with, got {unknown[0]!r}, too: "
                    "compile the model again, with a new optimizer"
                )

    def _pydt_update_variables(self, parts: Sequence[slice]) -> None:
        """The updates of the variables that lie in parts of the flat arrays, from the store's gradients on the host."""
        store = self._pydt_slots.store
        gradients = store.gradients
        variables = [variable for variable in store.variables if _lies_within(store.slice_of(variable), parts)]
        with tracing.paused():
            self._apply_weight_decay(variables)
            for variable in variables:
                gradient = store.of(variable, gradients)
                self.update_step(gradient, variable, self._pydt_rate)  # type: ignore[attr-defined]
        store.begin_update()  # moving averages are of values on the device

    def _apply_weight_decay(self, variables: Sequence[Variable]) -> None:
        if self.weight_decay:
            for variable in variables:
                if self._use_weight_decay(variable):
                    self._pydt_decay(variable, self.weight_decay)

    def _pydt_decay(self, variable: Variable, weight_decay: float) -> None:
        variable.assign_sub(variable.array * variable.array.dtype.type(weight_decay * self._pydt_rate))

    def _use_weight_decay(self, variable: Variable) -> bool:
        return self._pydt_decays(variable)  # type: ignore[attr-defined]

    def _overwrite_variable_with_gradient(self, variable: Variable) -> bool:
        return variable.overwrite_with_gradient


def _lies_within(part: slice, parts: Sequence[slice]) -> bool:
    return any(each.start <= part.start and part.stop <= each.stop for each in parts)
