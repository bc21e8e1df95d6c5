"""What all optimizers share: learning rate, iterations, clipping, weight decay, averaging, accumulation.

The parameters of a model, their gradients and every slot of an optimizer lie in flat arrays of one order (the model's
`ParameterStore`), so that a step is one call of a kernel over the whole of them.  Only where variables differ (clipping
by each one's norm, exclusion from weight decay) is it one call per run of neighbours that agree.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Unpack

import numpy as np

from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.naming import auto_name
from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import (
    DEFAULTS,
    Shared,
    as_learning_rate,
    check_names,
    check_numbers,
    check_values,
    is_rule,
    with_shared,
)
from pydtconv.optimizers.bound_part import BoundPart
from pydtconv.optimizers.by_gradients import apply_gradients
from pydtconv.optimizers.by_variable import ByVariable
from pydtconv.optimizers.clipping import clip, within
from pydtconv.optimizers.scalar import Scalar
from pydtconv.optimizers.schedules import LearningRateSchedule, deserialize, serialize
from pydtconv.optimizers.slots import Slots
from pydtconv.serialization.objects import arguments_of

Flat = np.ndarray
Arrays = Mapping[str, np.ndarray]


class Optimizer(ByVariable):
    """Base of all optimizers.

    A subclass names its state in `slot_names` and writes `update`; or `build` and `update_step`, as in Keras (see
    by_variable.py).  `apply(store)` takes a step: it reads
    `store.gradients` and changes `store.parameters`; the gradients may be changed too (by clipping).  Where gradients
    arrive one after the other, a step is `begin`, `apply_part` for each slice of the flat arrays, and `end`.

    learning_rate: a float, a `LearningRateSchedule`, or a callable without arguments.
    weight_decay: the share of each variable, times the learning rate, taken away before its update.
    clipnorm, clipvalue, global_clipnorm: at most one; the largest norm of each variable's gradient, magnitude of each
    element, norm of all gradients together.
    use_ema: keeps moving averages of the variables, with ema_momentum, which replace the variables every
    ema_overwrite_frequency steps, and in any case by `finalize_variable_values`, which `fit` calls at its end.
    loss_scale_factor: the loss is multiplied by it before the gradients are taken, and the gradients divided by it.
    gradient_accumulation_steps: number of steps of which the mean gradient makes one update.
    """

    #: whether `update` runs on arrays of devices, too; a subclass with an `update` of its own says so itself
    runs_on_devices = False
    #: names of the flat arrays that the method keeps besides the parameters
    slot_names: tuple[str, ...] = ()
    #: those of them that stand in `variables` after the others, which are listed variable by variable
    last_slots: tuple[str, ...] = ()
    #: names of the method's own arguments, each also an attribute; the config holds them and those of all optimizers
    own_arguments: tuple[str, ...] = ()

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule | Callable[[], Any] = 0.01,
        **shared: Unpack[Shared],
    ) -> None:
        kind = type(self).__name__
        check_names(kind, shared)
        values: dict[str, Any] = DEFAULTS | shared
        if self.goes_by_variable and type(self).update is not Optimizer.update:
            raise NotImplementedError(
                f"{kind} defines update_step(gradient, variable, learning_rate) and inherits an update on flat arrays, "
                "which it does not call: inherit from Optimizer, or write update(w, dw, slots, learning_rate, "
                "weight_decay)"
            )
        ByVariable.__init__(self)
        check_values(kind, values)
        self.name: str = values.pop("name") or auto_name(kind)
        self.weight_decay: float | None
        self.clipnorm: float | None
        self.clipvalue: float | None
        self.global_clipnorm: float | None
        self.use_ema: bool
        self.ema_momentum: float
        self.ema_overwrite_frequency: int | None
        self.loss_scale_factor: float | None
        self.gradient_accumulation_steps: int | None
        for name, value in values.items():
            setattr(self, name, value)
        self._excluded: list[Variable] = []
        self._excluded_pattern: re.Pattern[str] | None = None
        self._steps = Scalar(0, "int64", "iteration")
        self._learning_rate = as_learning_rate(kind, learning_rate)
        self._slots = Slots(self.name)
        self._states: list[Variable] = []
        self._runs: list[tuple[slice, bool]] = []
        self._constrained: list[Variable] = []
        self._updates = True
        self._rate = 0.0
        #: whether a part's step is that of `update` alone, and what arrays it is bound to
        self.only_updates, self.binding = False, object()
        self.built = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = with_shared(cls.__init__)  # type: ignore[method-assign]

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
        if self._slots.store is not store:
            self._bind(store)
        self.apply([store.gradient_of(variable) for variable in store.variables], store.variables)

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """One step by pairs (gradient, variable); returns `iterations`.  Raises TypeError for other pairs."""
        grads, variables = zip(*grads_and_vars, strict=True)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise TypeError(f"apply_gradients: expected pairs (gradient, variable), got {variable!r} as a variable")
        self.apply(list(grads), list(variables))
        with tracing.paused():
            return self.iterations

    def scale_loss(self, loss: Any) -> Any:
        """The loss times `loss_scale_factor`, by which `apply` divides the gradients."""
        return loss if self.loss_scale_factor is None else loss * float(self.loss_scale_factor)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets all variables, in the order of `variables`.  Raises ValueError where number or shapes differ."""
        self.load_own_variables({str(i): value for i, value in enumerate(weights)})

    @property
    def works_in_parts(self) -> bool:
        """Whether `apply_part` may be called for some variables while the gradients of others are not there yet.

        Never where a subclass has an `apply` of its own, which would be gone past.
        """
        return type(self).apply is Optimizer.apply and not self.global_clipnorm and not self.goes_by_variable

    def begin(self, store: Any) -> None:
        """Starts a step: `apply_part` follows for slices that together are all of the store, then `end`."""
        if self._slots.store is not store:
            self._bind(store)
        store.begin_update()
        accumulated = self.gradient_accumulation_steps
        self._updates = not accumulated or (int(self._steps) + 1) % accumulated == 0
        if self._updates:
            self.begin_step()
        self._rate = float(self._current_learning_rate())
        changes = self.loss_scale_factor or self.clipnorm or self.clipvalue or self.global_clipnorm
        self.only_updates = not (accumulated or changes or self.use_ema or self.goes_by_variable)

    @property
    def works_in_rows(self) -> bool:
        """Whether a part may also be a part of a variable."""
        return self.works_in_parts and not self.clipnorm

    def apply_part(self, part: slice, gradients: np.ndarray | None = None) -> None:
        """The step for one slice of the flat arrays, which holds whole variables unless `works_in_rows`.

        gradients: of the slice, 1-D, of one dtype, which may be changed; None for those in the store.
        """
        store = self._slots.store
        if gradients is None:
            flat = store.working_gradients
            pieces = [(own, store.numbers(flat, own, dtype)) for own, dtype in store.runs(part)]
        else:
            pieces = [(part, gradients)]
        for own, dw in pieces:
            if self.loss_scale_factor:
                kernels.scale(dw, 1.0 / self.loss_scale_factor)
            if self.gradient_accumulation_steps:
                self._accumulate(own, dw, self.gradient_accumulation_steps)
        if self._updates:
            clip(self, store, pieces)
            if self.goes_by_variable:
                self._update_variables()
            else:
                for own, dw in pieces:
                    self._update(own, dw)
        if self.use_ema:
            for own, dw in pieces:
                self._average(own, dw.dtype)

    def end(self) -> None:
        """Ends a step."""
        self._steps.value[...] += 1
        for variable in self._constrained:
            variable.assign(variable.constraint(variable.value))

    def _accumulate(self, part: slice, gradients: np.ndarray, steps: int) -> None:
        store = self._slots.store
        flat = store.working_slot(self._slots.flat["gradient_accumulator"])
        total = store.numbers(flat, part, gradients.dtype)
        kernels.add_scaled(gradients, 1.0, total)
        if self._updates:
            np.divide(total, steps, out=gradients)
            total.fill(0)

    def bind_part(self, part: slice, gradients: Any) -> BoundPart:
        """`apply_part` for a slice and gradients that stay where they are, as a call."""
        return BoundPart(self, part, gradients)

    @property
    def rate_and_decay(self) -> tuple[float, float]:
        """The learning rate of the step that has begun, and the weight decay."""
        return self._rate, float(self.weight_decay or 0.0)

    def _update(self, part: slice, gradients: np.ndarray) -> None:
        rate, decay = self.rate_and_decay
        for w, dw, slots, decays in self.runs_of_part(part, gradients):
            self.update(w, dw, slots, rate, decay if decays else 0.0)

    def runs_of_part(self, part: slice, gradients: Any) -> Iterator[tuple[Any, Any, dict[str, Any], bool]]:
        """Parameters, gradients and slots of the neighbours in a slice that agree on weight decay, and whether they
        have it.
        """
        store, flat, dtype = self._slots.store, self._slots.flat, gradients.dtype
        for run, decays in self._runs:
            both = slice(max(run.start, part.start), min(run.stop, part.stop))
            if both.start < both.stop:
                slots = {name: store.numbers(store.working_slot(flat[name]), both, dtype) for name in self.slot_names}
                own = gradients[within(part, both, dtype.itemsize // store.itemsize)]
                yield store.numbers(store.working_parameters, both, dtype), own, slots, decays

    def _average(self, part: slice, dtype: Any) -> None:
        store, steps = self._slots.store, int(self.iterations)
        parameters = store.numbers(store.working_parameters, part, dtype)
        average = store.numbers(self._slots.flat["average"], part, dtype)
        kernels.moving_average(parameters, self.ema_momentum if steps else 0.0, average)
        if self.ema_overwrite_frequency and (steps + 1) % self.ema_overwrite_frequency == 0:
            parameters[...] = average

    def check_device(self, device: str) -> None:
        """Raises NotImplementedError, by name, for what is asked of the optimizer and has no kernel on a device."""
        if _takes_lists(type(self).apply):
            raise NotImplementedError(f"{type(self).__name__}: apply of its own: expected device cpu, got {device}")
        for name in ("use_ema", "gradient_accumulation_steps"):
            if getattr(self, name):
                raise NotImplementedError(
                    f"{type(self).__name__}: {name}: expected it unset on device {device}, got {getattr(self, name)!r}"
                )
        if not self.runs_on_devices or ("update" in vars(type(self)) and not vars(type(self)).get("runs_on_devices")):
            raise NotImplementedError(
                f"{type(self).__name__}: expected an optimizer with kernels for device {device}, got one without"
            )

    # --- variables and their places --------------------------------------------------------------------------------
    def build(self, variables: Sequence[Variable], store: Any = None) -> None:
        """Makes the slots of variables that have none yet; those of variables that are gone are dropped.

        store: the ParameterStore, if there is one already: slots are made in its flat arrays at once.
        """
        initial = {name: self.slot_initial(name) for name in self.all_slots()}
        new = [variable for variable in variables if variable not in self._slots]
        self._slots.build(variables, initial, store)
        if self.use_ema:  # the first step sets them; those that join later begin where they are
            for variable in new:
                self._slots.of(variable)["average"].value[...] = variable.value
        if not self.built:
            self._states = self.make_states()
        self.built = True

    def variables_replaced(self) -> None:
        """Called after the variables were read from a file that has no state of the optimizer."""

    def make_states(self) -> list[Variable]:
        """Variables of the whole model that the method keeps besides iterations and learning rate."""
        return []

    def all_slots(self) -> tuple[str, ...]:
        """Names of all flat arrays that the optimizer keeps."""
        average = ("average",) if self.use_ema else ()
        accumulator = ("gradient_accumulator",) if self.gradient_accumulation_steps else ()
        return average + accumulator + self.slot_names

    def _bind(self, store: Any) -> None:
        """Moves the slots into flat arrays of the store's order."""
        extra = [variable for variable in store.variables if variable not in self._slots]
        if extra:
            self.ready([*self._slots.variables, *extra])
        self._slots.bind(store, self.all_slots())
        self._runs = list(self._runs_of(store))
        self.binding = object()
        self._constrained = [v for v in store.variables if getattr(v, "constraint", None) is not None]

    def release(self) -> None:
        """Takes the slots out of the flat arrays, for another optimizer to use the store; they keep their values."""
        self._slots.release()

    def _runs_of(self, store: Any) -> Iterator[tuple[slice, bool]]:
        """Slices of neighbours that agree on weight decay, together all of the flat array."""
        if not (self._excluded or self._excluded_pattern):
            yield slice(0, store.parameters.size), True
            return
        start, decays = 0, True
        for variable in store.variables:
            part, wants = store.slice_of(variable), self._decays(variable)
            if wants != decays and part.start > start:
                yield slice(start, part.start), decays
                start = part.start
            decays = wants
        yield slice(start, store.parameters.size), decays

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Variables that do not decay: by themselves, or by regular expressions that occur in their names."""
        self._excluded = list(var_list or ())
        self._excluded_pattern = re.compile("|".join(sorted(set(var_names)))) if var_names else None
        self._slots.store = None

    def _decays(self, variable: Variable) -> bool:
        if any(other is variable for other in self._excluded):
            return False
        return not (self._excluded_pattern and self._excluded_pattern.search(variable.name))

    def finalize_variable_values(self, var_list: Sequence[Variable] | None = None) -> None:
        """Replaces the variables, by default those of the last step, by their moving averages where use_ema."""
        if self.use_ema:
            store = self._slots.store
            averaged = self._slots.variables if store is None else store.variables
            for variable in averaged if var_list is None else var_list:
                if variable in self._slots:
                    variable.assign(self._slots.of(variable)["average"].value)

    def averages(self) -> list[tuple[Variable, Variable]]:
        """(variable, its moving average) of all variables that have one; none without use_ema."""
        pairs = [(variable, self._slots.of(variable).get("average")) for variable in self._slots.variables]
        return [(variable, average) for variable, average in pairs if average is not None]

    # --- learning rate, iterations ---------------------------------------------------------------------------------
    @property
    def iterations(self) -> Any:
        """Updates done so far: an integer variable (an int where gradients are accumulated)."""
        if self.gradient_accumulation_steps:
            return int(self._steps) // self.gradient_accumulation_steps
        return self._steps

    @iterations.setter
    def iterations(self, value: Any) -> None:
        self._steps.assign(int(value) * (self.gradient_accumulation_steps or 1))

    @property
    def learning_rate(self) -> Any:
        """The rate of the next step: a variable that can be assigned, or a float where a schedule gives it."""
        return self._current_learning_rate()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if is_rule(value):
            self._learning_rate = value
        elif isinstance(self._learning_rate, LearningRateSchedule):
            raise TypeError(
                f"{type(self).__name__}: the learning rate follows {type(self._learning_rate).__name__} and cannot be "
                "set; construct the optimizer with a float, or assign another schedule"
            )
        elif isinstance(self._learning_rate, Scalar):
            check_numbers(type(self).__name__, learning_rate=float(value))
            self._learning_rate.assign(value)
        else:
            self._learning_rate = as_learning_rate(type(self).__name__, float(value))

    def _current_learning_rate(self) -> Any:
        if isinstance(self._learning_rate, LearningRateSchedule):
            return float(self._learning_rate(int(self._steps)))
        return self._learning_rate if isinstance(self._learning_rate, Scalar) else float(self._learning_rate())

    # --- saving ----------------------------------------------------------------------------------------------------
    @property
    def variables(self) -> list[Variable]:
        """Iterations, learning rate (where it is a variable), then the slots, variable by variable."""
        rate = [self._learning_rate] if isinstance(self._learning_rate, Scalar) else []
        together = tuple(name for name in self.slot_names if name not in self.last_slots)
        groups = ("average",), ("gradient_accumulator",), together, *((name,) for name in self.last_slots)
        slots = [slot for names in groups for slot in self._slots.by_variable(names)]
        return [self._steps, *rate, *slots, *self._states, *self._added]

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Writes all variables into a mapping, under "0", "1", ..."""
        for i, variable in enumerate(self.variables):
            store[str(i)] = variable.numpy()

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Reads all variables from a mapping.  Raises ValueError, before anything is changed, where they do not fit."""
        variables = self.variables
        if len(store.keys()) != len(variables):
            raise ValueError(
                f"optimizer {self.name!r}: expected {len(variables)} variables, got {len(store.keys())}"
                + ("" if self.built else "; the optimizer is not built yet: call build(model.trainable_variables)")
            )
        values = [np.asarray(store[str(i)]) for i in range(len(variables))]
        for variable, value in zip(variables, values, strict=True):
            if variable.shape != value.shape:
                raise ValueError(f"variable {variable.path!r}: expected shape {variable.shape}, got {value.shape}")
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def get_config(self) -> dict[str, Any]:
        """The arguments, as they can be written to JSON."""
        rate: Any = self._learning_rate
        if isinstance(rate, LearningRateSchedule):
            rate = serialize(rate)
        elif isinstance(rate, Scalar):
            rate = float(rate)
        config = {"learning_rate": rate}
        for argument in (*DEFAULTS, *self.own_arguments):
            config[argument] = getattr(self, argument)
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Optimizer:
        """The optimizer of a config."""
        arguments = dict(config)
        rate = arguments.pop("learning_rate", None)
        if isinstance(rate, Mapping):
            rate = deserialize(rate, custom_objects)
        return cls(**({} if rate is None else {"learning_rate": rate}), **arguments_of(arguments))


def _takes_lists(apply: Callable[..., None]) -> bool:
    """Whether it is a subclass's that takes gradients and variables as lists."""
    if apply is Optimizer.apply:
        return False
    named = [p for p in inspect.signature(apply).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return len(named) > 2  # the optimizer, gradients, variables


Optimizer.__init__ = with_shared(Optimizer.__init__)  # type: ignore[method-assign]
