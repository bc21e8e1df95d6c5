"""Slots: the arrays that an optimizer keeps for each variable, in flat arrays of the store's order."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.columns import rearrange
from pydtconv.graph.memory.parameter_store import lies_in

_count = itertools.count()


class Slots:
    """The slots of one optimizer, which keep their values when variables move to another store.

    variables: those that have slots, in order.  store: the ParameterStore that the slots are bound to, None where they
    are to be bound before the next step.  flat: the store's array of each slot by its name.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._key = f"{owner}/{next(_count)}"  # optimizers of one name have slots of their own
        self.variables: list[Variable] = []
        self.store: Any = None
        self.flat: dict[str, np.ndarray] = {}
        self._of: dict[int, dict[str, Variable]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle gets: arrays of each slot's own; they are bound to a store before the next step."""
        slots = [(variable, self._of[id(variable)]) for variable in self.variables]
        return {"owner": self.owner, "slots": slots}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["owner"])  # type: ignore[misc]
        self.variables = [variable for variable, _ in state["slots"]]
        self._of = {id(variable): slots for variable, slots in state["slots"]}

    def __contains__(self, variable: Variable) -> bool:
        return id(variable) in self._of

    def of(self, variable: Variable) -> Mapping[str, Variable]:
        """The slots of a variable by name."""
        return self._of[id(variable)]

    def by_variable(self, names: Sequence[str]) -> Iterator[Variable]:
        """The slots of these names, variable by variable; those that there are."""
        for variable in self.variables:
            slots = self.of(variable)
            yield from (slots[name] for name in names if name in slots)

    def build(self, variables: Sequence[Variable], initial: Mapping[str, float], store: Any = None) -> None:
        """Makes slots with the values of `initial` for variables that have none; those of variables gone are dropped.

        store: the ParameterStore, if there is one already: slots are made in its flat arrays at once.
        """
        previous = self._of
        self.variables = list(variables)
        self._of = {}
        for variable in self.variables:
            kept = previous.get(id(variable))
            self._of[id(variable)] = kept if kept is not None else self._make(variable, initial, store)
        if [*previous] != [*self._of]:
            self.store = None

    def _make(self, variable: Variable, initial: Mapping[str, float], store: Any) -> dict[str, Variable]:
        slots = {}
        for name, value in initial.items():
            if store is not None and variable in store:
                start = store.of(variable, self._flat_in(store, name))
            else:
                start = np.zeros(variable.host_array.shape, variable.dtype)
            if value:
                start.fill(value)
            slots[name] = Variable(
                start, dtype=variable.dtype, trainable=False, name=f"{variable.name}_{name}", copy=False
            )
            slots[name].cut = None if variable.cut is None else variable.cut.of_slot()
            slots[name].path = f"{self.owner}/{variable.path.replace('/', '_')}_{name}"
        return slots

    def bind(self, store: Any, names: Iterable[str]) -> None:
        """Moves the slots into flat arrays of the store, whose variables all have some."""
        self.flat = {}
        for name in names:
            flat = self.flat[name] = self._flat_in(store, name)
            for variable in store.variables:
                own, slot = store.of(variable, flat), self.of(variable)[name]
                rearrange(slot, None if variable.cut is None else variable.cut.columns, keeps=False)
                if not lies_in(slot.own_array, flat):
                    own[...] = slot.own_array
                    slot.value = own
        self.store = store
        store.watch_slots([slot for slots in self._of.values() for slot in slots.values()])

    def copy_into(self, flats: Mapping[str, np.ndarray]) -> None:
        """Copies the slots of these names into flat arrays of the store's order."""
        for name, flat in flats.items():
            for variable in self.store.variables:
                self.store.of(variable, flat)[...] = self.of(variable)[name].host_array

    def place(self, flats: Mapping[str, np.ndarray], shared: bool) -> None:
        """Moves the slots into other flat arrays, which have their values.  shared: see ParameterStore."""
        for name, flat in flats.items():
            self.flat[name] = self.store.slots[f"{self._key}/{name}"] = flat
            for variable in self.store.variables:
                view = self.store.of(variable, flat)
                view.flags.writeable = not shared
                self.of(variable)[name].value = view

    def holds(self, store: Any) -> bool:
        """Whether they are bound to a store, and all lie in its flat arrays."""
        return self.store is store and all(
            lies_in(self.of(variable)[name].host_array, flat)
            for name, flat in self.flat.items()
            for variable in store.variables
        )

    def _flat_in(self, store: Any, name: str) -> Any:
        """The store's array of a slot, which goes when the optimizer does."""
        key = f"{self._key}/{name}"
        if key not in store.slots:
            weakref.finalize(self, _drop, weakref.ref(store), key)
        return store.slot(key)

    def release(self) -> None:
        """Takes the slots out of the flat arrays; they keep their values."""
        if self.store is not None:
            for slots in self._of.values():
                for slot in slots.values():
                    slot.value = slot.own_array.copy()
            for name in self.flat:
                self.store.slots.pop(f"{self._key}/{name}", None)
        self.store, self.flat = None, {}


def _drop(store: Any, key: str) -> None:
    if store() is not None:
        store().slots.pop(key, None)
