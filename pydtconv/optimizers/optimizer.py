"""What users give, ask and save of an optimizer, whichever it is; the steps are taken by its base class, `FlatStep`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Unpack

import numpy as np

from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.hooks import as_result
from pydtconv.naming import auto_name, checked_name
from pydtconv.optimizers.arguments import (
    DEFAULTS,
    Shared,
    as_learning_rate,
    check_numbers,
    check_values,
    is_rule,
    with_shared,
)
from pydtconv.optimizers.flat_step import FlatStep
from pydtconv.optimizers.scalar import Scalar
from pydtconv.optimizers.schedules import LearningRateSchedule, deserialize, serialize
from pydtconv.serialization.objects import arguments_of
from pydtconv.suggest import constructors, unknown_argument


class Optimizer(FlatStep):
    """Base of all optimizers.

    A subclass names its state in `slot_names` and writes `update` (see flat_step.py); or `build` and `update_step`, as
    in Keras (see by_variable.py).

    learning_rate: a float, a `LearningRateSchedule`, or a callable without arguments.
    weight_decay: the share of each variable, times the learning rate, taken away before its update.
    clipnorm, clipvalue, global_clipnorm: at most one; the largest norm of each variable's gradient, magnitude of each
    element, norm of all gradients together.
    use_ema: keeps moving averages of the variables, with ema_momentum, which replace the variables every
    ema_overwrite_frequency steps, and in any case by `finalize_variable_values`, which `fit` calls at its end.
    loss_scale_factor: the loss is multiplied by it before the gradients are taken, and the gradients divided by it.
    gradient_accumulation_steps: number of steps of which the mean gradient makes one update.
    """

    #: those of `slot_names` that stand in `variables` after the others, which are listed variable by variable
    last_slots: tuple[str, ...] = ()
    #: names of the method's own arguments, each also an attribute; the config holds them and those of all optimizers
    own_arguments: tuple[str, ...] = ()

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule | Callable[[], Any] = 0.01,
        **shared: Unpack[Shared],
    ) -> None:
        kind = type(self).__name__
        for name in shared:
            if name not in DEFAULTS:
                raise TypeError(unknown_argument(kind, name, *constructors(type(self))))
        values: dict[str, Any] = DEFAULTS | shared
        if self.goes_by_variable and type(self).update is not Optimizer.update:
            raise NotImplementedError(
                f"{kind} defines update_step(gradient, variable, learning_rate) and inherits an update on flat arrays, "
                "which it does not call: inherit from Optimizer, or write update(w, dw, slots, learning_rate, "
                "weight_decay)"
            )
        check_values(kind, values)
        self.name: str = checked_name(values.pop("name") or auto_name(kind))
        FlatStep.__init__(self, self.name)
        for name, value in values.items():
            setattr(self, name, value)
        self._pydt_steps = Scalar(0, "int64", "iteration")
        self._pydt_learning_rate = as_learning_rate(kind, learning_rate)
        for each in self._pydt_steps, self._pydt_learning_rate:
            if isinstance(each, Scalar):
                each.path = f"{self.name}/{each.name}"
        self._pydt_states: list[Variable] = []
        self.built = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = with_shared(cls.__init__)  # type: ignore[method-assign]

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

    # --- variables and their places --------------------------------------------------------------------------------
    def build(self, variables: Sequence[Variable], store: Any = None) -> None:
        """Makes the slots of variables that have none yet; those of variables that are gone are dropped.

        store: the ParameterStore, if there is one already: slots are made in its flat arrays at once.
        """
        initial = {name: self.slot_initial(name) for name in self.all_slots()}
        new = [variable for variable in variables if variable not in self._pydt_slots]
        self._pydt_slots.build(variables, initial, store)
        if self.use_ema:  # the first step sets them; those that join later begin where they are
            for variable in new:
                self._pydt_slots.of(variable)["average"].own_array[...] = variable.own_array
        if not self.built:
            self._pydt_states = self.make_states()
        self.built = True

    def variables_replaced(self) -> None:
        """Called after the variables were read from a file that has no state of the optimizer."""

    def make_states(self) -> list[Variable]:
        """Variables of the whole model that the method keeps besides iterations and learning rate."""
        return []

    def finalize_variable_values(self, var_list: Sequence[Variable] | None = None) -> None:
        """Replaces the variables, by default those of the last step, by their moving averages where use_ema."""
        if self.use_ema:
            store = self._pydt_slots.store
            averaged = self._pydt_slots.variables if store is None else store.variables
            for variable in averaged if var_list is None else var_list:
                if variable in self._pydt_slots and not variable.overwrite_with_gradient:
                    variable.assign(self._pydt_slots.of(variable)["average"].array)

    def averages(self) -> list[tuple[Variable, Variable]]:
        """(variable, its moving average) of all variables that have one; none without use_ema.

        Variables that gradients overwrite have none.
        """
        averaged = [variable for variable in self._pydt_slots.variables if not variable.overwrite_with_gradient]
        pairs = [(variable, self._pydt_slots.of(variable).get("average")) for variable in averaged]
        return [(variable, average) for variable, average in pairs if average is not None]

    # --- learning rate, iterations ---------------------------------------------------------------------------------
    @property
    def iterations(self) -> Any:
        """Updates done so far: an integer variable (an int where gradients are accumulated)."""
        if self.gradient_accumulation_steps:
            return int(self._pydt_steps) // self.gradient_accumulation_steps
        return self._pydt_steps

    @iterations.setter
    def iterations(self, value: Any) -> None:
        self._pydt_steps.assign(int(value) * (self.gradient_accumulation_steps or 1))

    @property
    def learning_rate(self) -> Any:
        """The rate of the next step: a variable that can be assigned, or a float where a schedule gives it."""
        return as_result(self._pydt_current_learning_rate())

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if is_rule(value):
            self._pydt_learning_rate = value
            return
        if not hasattr(value, "__float__") or math.prod(getattr(value, "shape", ())) != 1:
            raise ValueError(f"{type(self).__name__}: learning_rate: expected a number or a schedule, got {value!r}")
        if isinstance(self._pydt_learning_rate, LearningRateSchedule):
            rule = type(self._pydt_learning_rate).__name__
            raise TypeError(
                f"{type(self).__name__}: the learning rate follows {rule} and cannot be set; construct the "
                "optimizer with a float, or assign another schedule"
            )
        elif isinstance(self._pydt_learning_rate, Scalar):
            check_numbers(type(self).__name__, learning_rate=float(value))
            self._pydt_learning_rate.assign(value)
        else:
            self._pydt_learning_rate = as_learning_rate(type(self).__name__, float(value))

    def _pydt_current_learning_rate(self) -> Any:
        if isinstance(self._pydt_learning_rate, LearningRateSchedule):
            return float(self._pydt_learning_rate(int(self._pydt_steps)))
        return (
            self._pydt_learning_rate
            if isinstance(self._pydt_learning_rate, Scalar)
            else float(self._pydt_learning_rate())
        )

    # --- saving ----------------------------------------------------------------------------------------------------
    @property
    def variables(self) -> list[Variable]:
        """Iterations, learning rate (where it is a variable), then the slots, variable by variable."""
        rate = [self._pydt_learning_rate] if isinstance(self._pydt_learning_rate, Scalar) else []
        together = tuple(name for name in self.slot_names if name not in self.last_slots)
        groups = ("average",), ("gradient_accumulator",), together, *((name,) for name in self.last_slots)
        slots = [slot for names in groups for slot in self._pydt_slots.by_variable(names)]
        return [self._pydt_steps, *rate, *slots, *self._pydt_states, *self._pydt_added]

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
        rate: Any = self._pydt_learning_rate
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


Optimizer.__init__ = with_shared(Optimizer.__init__)  # type: ignore[method-assign]
