"""A step of an optimizer on the flat arrays of a `ParameterStore`, whole or in parts.

The parameters of a model, their gradients and every slot of an optimizer lie in flat arrays of one order, so that a
step is one call of a kernel over the whole of them.  Only where variables differ (clipping by each one's norm,
exclusion from weight decay) is it one call per run of neighbours that agree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import kernels
from pydtconv.optimizers.bound_part import BoundPart
from pydtconv.optimizers.by_gradients import apply_gradients
from pydtconv.optimizers.clipping import Counted, Total, clip
from pydtconv.optimizers.flat_arrays import FlatArrays

Flat = np.ndarray
Arrays = Mapping[str, np.ndarray]


class FlatStep(FlatArrays):
    """What takes the steps of an `Optimizer`, which says at which rate and with what other arguments.

    `apply(store)` is a step: it reads `store.gradients` and changes `store.parameters`; the gradients may be changed,
    too (by clipping).  Where gradients arrive one after the other, a step is `begin`, `apply_part` for each slice of
    the flat arrays, and `end`.
    """

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    iterations: Any
    _pydt_steps: Any

    #: whether `update` runs on arrays of devices, too; a subclass with an `update` of its own says so itself
    runs_on_devices = False

    def __init__(self, name: str) -> None:
        FlatArrays.__init__(self, name)
        self._pydt_updates = True
        #: variables that are set to their gradients at the end of the step, and these
        self._pydt_aside: list[tuple[Variable, np.ndarray]] = []
        self._pydt_rate = 0.0
        #: whether a part's step is that of `update` alone
        self.only_updates = False

    # --- what subclasses write -------------------------------------------------------------------------------------
    def slot_initial(self, name: str) -> float:
        """The value that a slot starts with."""
        return 0.0

    def begin_step(self) -> None:
        """Called once before the updates of a step: for numbers that belong to the step and not to a variable."""

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        """One step on flat arrays of one length, in place.

        Takes learning_rate * weight_decay * w away from the parameters w, then changes them by the gradients dw and
        the arrays of `slot_names`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update")

    # --- the step --------------------------------------------------------------------------------------------------
    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """One step, with a gradient for each variable, by default for those that the optimizer was built with.

        grads: arrays, or what a `GradientTape` gave; None leaves a variable as it is.  A ParameterStore in their place
        holds gradients and variables both.
        """
        if isinstance(grads, ParameterStore):
            self.step_of(grads)
        else:
            apply_gradients(self, grads, trainable_variables)

    def step_of(self, store: ParameterStore) -> None:
        """One step with the gradients in a store, past what a subclass has for `apply`."""
        self.begin(store)
        self.apply_part(slice(0, store.parameters.size))
        self.end()

    def apply_store(self, store: ParameterStore) -> None:
        """The step of a training: that of `apply`, which a subclass may have written for lists, as in Keras."""
        if not _takes_lists(type(self).apply):
            self.apply(store)
            return
        self._pydt_bind(store)
        self.apply([store.gradient_of(variable) for variable in store.variables], store.variables)

    # --- its parts -------------------------------------------------------------------------------------------------
    @property
    def has_own_apply(self) -> bool:
        """Whether a subclass has an `apply` of its own, which is to see the gradients of each step."""
        return type(self).apply is not FlatStep.apply

    @property
    def works_in_parts(self) -> bool:
        """Whether `apply_part` may be called for some variables while the gradients of others are not there yet.

        Never where a subclass has an `apply` of its own, which would be gone past, nor where variables are overwritten.
        """
        whole = self.has_own_apply or self.global_clipnorm or self.goes_by_variable or Variable.overwritten
        return not whole

    @property
    def works_in_rows(self) -> bool:
        """Whether a part may also be a part of a variable."""
        return self.works_in_parts and not self.clipnorm

    @property
    def clips_norms(self) -> bool:
        """Whether the size of a step depends on norms of gradients."""
        return bool(self.clipnorm or self.global_clipnorm)

    def check_shards(self, variables: Sequence[Variable], option: str = "shard") -> None:
        """Raises NotImplementedError, by name, where a process cannot take the step of a part of variables alone.

        option: of the distribution, for messages.
        """
        kind, expected = type(self).__name__, f"{option}: expected an optimizer that updates each variable by itself"
        if self.has_own_apply:
            raise NotImplementedError(f"{kind}: {expected}, got one with an apply of its own")
        of_all = [state.path for variable, state in self.states_by_variable(variables) if variable is None]
        if of_all:
            raise NotImplementedError(f"{kind}: {expected}, got {of_all[0]!r}, which is of all: add_variable made it")
        path = next((variable.path for variable in variables if variable.overwrite_with_gradient), None)
        if path is not None:
            raise NotImplementedError(f"{kind}: {expected}, got variable {path!r}, which its gradient overwrites")

    def admits(self, store: ParameterStore, parts: Sequence[slice], total: Total) -> bool:
        """Whether a step may be taken with the gradients of all processes, of which this one has those in parts."""
        return True

    @property
    def updates_next(self) -> bool:
        """Whether the next step changes the variables; otherwise it only accumulates gradients."""
        steps = self.gradient_accumulation_steps
        return not steps or (int(self._pydt_steps) + 1) % steps == 0

    def accumulated(self, variable: Variable) -> np.ndarray:
        """The gradients of a variable that were accumulated since the last update, divided by the loss scale."""
        found: np.ndarray = self._pydt_slots.of(variable)["gradient_accumulator"].own_array
        return found

    def take_accumulated(self, variable: Variable, gradient: np.ndarray) -> None:
        """Adds to a gradient, before its step, what the step would add to it, and sets that to zero."""
        total = self.accumulated(variable)
        kernels.add_scaled(total.reshape(-1), self.loss_scale_factor or 1.0, gradient.reshape(-1))
        total.fill(0)

    def begin(self, store: Any) -> None:
        """Starts a step: `apply_part` follows for slices that together are all of the store, then `end`."""
        self._pydt_bind(store)
        store.begin_update()
        self._pydt_updates = self.updates_next
        self._pydt_aside = [(variable, self._pydt_set_aside(store, variable)) for variable in store.overwritten]
        if self._pydt_updates:
            self.begin_step()
        self._pydt_rate = float(self.learning_rate)
        changes = self.loss_scale_factor or self.clipnorm or self.clipvalue or self.global_clipnorm
        self.only_updates = not (self.gradient_accumulation_steps or changes or self.use_ema or self.goes_by_variable)

    def apply_part(self, part: slice, gradients: np.ndarray | None = None) -> None:
        """The step for one slice of the flat arrays, which holds whole variables unless `works_in_rows`.

        gradients: of the slice, 1-D, of one dtype, which may be changed; None for those in the store.
        """
        self._pydt_apply(self._pydt_taken(part, gradients), None)

    def apply_parts(self, parts: Sequence[slice], total: Total, counted: Counted | None = None) -> None:
        """The step for the slices that are this process's, of gradients in the store; others have the other slices.

        total: the sums of an array over all processes, for norms.  counted: whether this process adds a slice to them;
        others may have the same one.
        """
        self._pydt_apply([piece for part in parts for piece in self._pydt_taken(part)], total, counted)

    def accumulate(self, store: ParameterStore, parts: Sequence[slice]) -> None:
        """A step that only accumulates the gradients in the store; parts: see `apply_parts`."""
        self.begin(store)
        self._pydt_taken(slice(0, store.size))
        self._pydt_average_all([own for part in parts for own in store.runs(part)])
        self.end()

    def _pydt_taken(self, part: slice, gradients: np.ndarray | None = None) -> list[tuple[slice, np.ndarray]]:
        """The gradients of a slice in pieces of one dtype, without the loss scale; those that were accumulated, too."""
        store = self._pydt_slots.store
        if gradients is None:
            flat = store.working_gradients
            pieces = [(own, store.numbers(flat, own, dtype)) for own, dtype in store.runs(part)]
        else:
            pieces = [(part, gradients)]
        for own, dw in pieces:
            if self.loss_scale_factor:
                kernels.scale(dw, 1.0 / self.loss_scale_factor)
            if self.gradient_accumulation_steps:
                self._pydt_accumulate(own, dw, self.gradient_accumulation_steps)
        return pieces

    def _pydt_apply(
        self, pieces: Sequence[tuple[slice, np.ndarray]], total: Total | None, counted: Counted | None = None
    ) -> None:
        if self._pydt_updates:
            clip(self, self._pydt_slots.store, pieces, total, counted)
            if self.goes_by_variable:
                self._pydt_update_variables([own for own, _ in pieces])
            else:
                for own, dw in pieces:
                    self._pydt_update(own, dw)
        self._pydt_average_all([(own, dw.dtype) for own, dw in pieces])

    def end(self) -> None:
        """Ends a step."""
        self._pydt_steps.array[...] += 1
        for variable, value in self._pydt_aside:
            variable.assign(value)
        for variable in self._pydt_constrained:
            variable.assign(variable.constraint(variable.value))

    def _pydt_set_aside(self, store: Any, variable: Variable) -> np.ndarray:
        """What a variable will be set to at the end: its gradient, from here on zero for the step.

        Where gradients are accumulated it is the largest one, in each element, and the variable's own value before.
        """
        gradient = store.gradient_of(variable)
        value: np.ndarray = gradient.copy()
        gradient.fill(0)
        if self.gradient_accumulation_steps:
            largest = self.accumulated(variable)
            np.maximum(value, largest, out=value)
            largest[...] = 0 if self._pydt_updates else value
        return value if self._pydt_updates else variable.array.copy()

    def bind_part(self, part: slice, gradients: Any) -> BoundPart:
        """`apply_part` for a slice and gradients that stay where they are, as a call."""
        return BoundPart(self, part, gradients)

    @property
    def rate_and_decay(self) -> tuple[float, float]:
        """The learning rate of the step that has begun, and the weight decay."""
        return self._pydt_rate, float(self.weight_decay or 0.0)

    def _pydt_update(self, part: slice, gradients: np.ndarray) -> None:
        rate, decay = self.rate_and_decay
        for w, dw, slots, decays in self.runs_of_part(part, gradients):
            self.update(w, dw, slots, rate, decay if decays else 0.0)

    def _pydt_average_all(self, parts: Sequence[tuple[slice, Any]]) -> None:
        for part, dtype in parts if self.use_ema else ():
            self._pydt_average(part, dtype)

    def _pydt_average(self, part: slice, dtype: Any) -> None:
        store, steps = self._pydt_slots.store, int(self.iterations)
        parameters = store.numbers(store.working_parameters, part, dtype)
        average = store.numbers(store.working_slot(self._pydt_slots.flat["average"]), part, dtype)
        kernels.moving_average(parameters, self.ema_momentum if steps else 0.0, average)
        if self.ema_overwrite_frequency and (steps + 1) % self.ema_overwrite_frequency == 0:
            kernels.assign(parameters, average)

    def _pydt_accumulate(self, part: slice, gradients: np.ndarray, steps: int) -> None:
        store = self._pydt_slots.store
        flat = store.working_slot(self._pydt_slots.flat["gradient_accumulator"])
        total = store.numbers(flat, part, gradients.dtype)
        kernels.add_scaled(gradients, 1.0, total)
        if self._pydt_updates:
            kernels.take_mean(total, steps, gradients)

    def check_device(self, device: str) -> None:
        """Raises NotImplementedError, by name, for what is asked of the optimizer and has no kernel on a device."""
        if _takes_lists(type(self).apply):
            raise NotImplementedError(f"{type(self).__name__}: apply of its own: expected device cpu, got {device}")
        if self.goes_by_variable:
            return  # its step runs on the host
        if not self.runs_on_devices or ("update" in vars(type(self)) and not vars(type(self)).get("runs_on_devices")):
            raise NotImplementedError(
                f"{type(self).__name__}: expected an optimizer with kernels for device {device}, got one without; "
                "one that overrides update_step, and not update, runs there by the host"
            )


def _takes_lists(apply: Callable[..., None]) -> bool:
    """Whether it is a subclass's that takes gradients and variables as lists."""
    if apply is FlatStep.apply:
        return False
    named = [p for p in inspect.signature(apply).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return len(named) > 2  # the optimizer, gradients, variables
