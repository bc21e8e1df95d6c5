"""The flat arrays of a `ParameterStore` that an optimizer goes over: its slots, and which variables decay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers.by_variable import ByVariable
from pydtconv.optimizers.clipping import within
from pydtconv.optimizers.slots import Slots


class FlatArrays(ByVariable):
    """Slots in the order of a store's variables.  binding: another object whenever they lie in other arrays."""

    use_ema: bool
    gradient_accumulation_steps: int | None

    #: names of the flat arrays that the method keeps besides the parameters
    slot_names: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        ByVariable.__init__(self)
        self._pydt_slots = Slots(name)
        self._pydt_excluded: list[Variable] = []
        self._pydt_excluded_pattern: re.Pattern[str] | None = None
        self._pydt_runs: list[tuple[slice, bool]] = []
        self._pydt_constrained: list[Variable] = []
        self.binding = object()

    def all_slots(self) -> tuple[str, ...]:
        """Names of all flat arrays that the optimizer keeps."""
        average = ("average",) if self.use_ema else ()
        accumulator = ("gradient_accumulator",) if self.gradient_accumulation_steps else ()
        return average + accumulator + self.slot_names

    def _pydt_bind(self, store: Any) -> None:
        """Moves the slots into flat arrays of the store's order, where they are not there yet."""
        if self._pydt_slots.store is store:
            return
        extra = [variable for variable in store.variables if variable not in self._pydt_slots]
        if extra:
            self.ready([*self._pydt_slots.variables, *extra])
        self._pydt_slots.bind(store, self.all_slots())
        self._pydt_runs = list(self._pydt_runs_of(store))
        self.binding = object()
        self._pydt_constrained = [v for v in store.variables if getattr(v, "constraint", None) is not None]

    def runs_of_part(self, part: slice, gradients: Any) -> Iterator[tuple[Any, Any, dict[str, Any], bool]]:
        """Parameters, gradients and slots of the neighbours in a slice that agree on weight decay, and whether they
        have it.
        """
        store, flat, dtype = self._pydt_slots.store, self._pydt_slots.flat, gradients.dtype
        for run, decays in self._pydt_runs:
            both = slice(max(run.start, part.start), min(run.stop, part.stop))
            if both.start < both.stop:
                slots = {name: store.numbers(store.working_slot(flat[name]), both, dtype) for name in self.slot_names}
                own = gradients[within(part, both, dtype.itemsize // store.itemsize)]
                yield store.numbers(store.working_parameters, both, dtype), own, slots, decays

    def flat_slots(self, store: ParameterStore) -> Mapping[str, np.ndarray]:
        """The flat arrays of all slots, in the store's order."""
        self._pydt_bind(store)
        return self._pydt_slots.flat

    def holds_slots(self, store: ParameterStore) -> bool:
        """Whether the slots lie in flat arrays of the store's order."""
        return self._pydt_slots.holds(store)

    def copy_slots_into(self, flats: Mapping[str, np.ndarray]) -> None:
        """Copies the slots into flat arrays."""
        self._pydt_slots.copy_into(flats)

    def place_slots(self, flats: Mapping[str, np.ndarray], shared: bool = False) -> None:
        """Moves the slots into other flat arrays, which have their values.  shared: see ParameterStore."""
        self._pydt_slots.place(flats, shared)
        self.binding = object()

    def release(self) -> None:
        """Takes the slots out of the flat arrays, for another optimizer to use the store; they keep their values."""
        self._pydt_slots.release()

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Variables that do not decay: by themselves, or by regular expressions that occur in their names."""
        self._pydt_excluded = list(var_list or ())
        self._pydt_excluded_pattern = re.compile("|".join(sorted(set(var_names)))) if var_names else None
        self._pydt_slots.store = None

    def _pydt_decays(self, variable: Variable) -> bool:
        if any(other is variable for other in self._pydt_excluded):
            return False
        return not (self._pydt_excluded_pattern and self._pydt_excluded_pattern.search(variable.name))

    def _pydt_runs_of(self, store: Any) -> Iterator[tuple[slice, bool]]:
        """Slices of neighbours that agree on weight decay, together all of the flat array."""
        if not (self._pydt_excluded or self._pydt_excluded_pattern):
            yield slice(0, store.parameters.size), True
            return
        start, decays = 0, True
        for variable in store.variables:
            part, wants = store.slice_of(variable), self._pydt_decays(variable)
            if wants != decays and part.start > start:
                yield slice(start, part.start), decays
                start = part.start
            decays = wants
        yield slice(start, store.parameters.size), decays
