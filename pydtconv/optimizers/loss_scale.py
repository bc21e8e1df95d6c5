"""`LossScaleOptimizer`: a loss that is scaled as Keras does it, so that small gradients of float16 do not vanish.

There is no float16 here, and bfloat16 has the range of float32: it serves scripts, and trainings whose gradients are
not always finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import DEFAULTS, check_numbers
from pydtconv.optimizers.clipping import Total
from pydtconv.optimizers.optimizer import Optimizer
from pydtconv.optimizers.scalar import Scalar
from pydtconv.serialization.objects import arguments_of, deserialize_keras_object, serialize_keras_object

#: what is the optimizer's own; everything else is the inner one's
_OWN = frozenset(
    {
        "inner_optimizer", "initial_scale", "dynamic_growth_steps", "step_counter", "dynamic_scale", "get_config",
        "from_config", "variables", "save_own_variables", "load_own_variables", "set_weights", "scale_loss", "apply",
        "apply_store", "apply_gradients", "step_of", "has_own_apply", "works_in_parts", "works_in_rows", "check_device",
        "check_shards", "admits", "_scaling", "_pydt_own_store",
    }
)  # fmt: skip


class LossScaleOptimizer(Optimizer):
    """Multiplies the loss by a scale, and divides the gradients by it before the step of the inner optimizer.

    A step whose gradients are not all finite is left out and halves the scale; `dynamic_growth_steps` steps one after
    the other that are finite double it.
    initial_scale: the first one.  The inner optimizer's own `loss_scale_factor` is taken away.
    """

    def __init__(
        self,
        inner_optimizer: Any,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **others: Any,
    ) -> None:
        for key, value in others.items():  # older configs hold these with their defaults
            if key == "dynamic" and value is not True:
                raise ValueError(
                    "LossScaleOptimizer: dynamic: expected True; loss_scale_factor is the inner optimizer's"
                )
            if key != "dynamic" and (key not in DEFAULTS or key == "name"):
                raise ValueError(f"LossScaleOptimizer: unknown argument {key!r}")
            if key != "dynamic" and value != DEFAULTS[key]:
                raise ValueError(f"LossScaleOptimizer: {key}: expected it on the inner optimizer, got {value!r}")
        if not isinstance(inner_optimizer, Optimizer):
            raise ValueError(f"LossScaleOptimizer: inner_optimizer: expected an Optimizer, got {inner_optimizer!r}")
        check_numbers("LossScaleOptimizer", initial_scale=initial_scale)
        if initial_scale <= 0:
            raise ValueError(f"LossScaleOptimizer: initial_scale: expected a number above 0, got {initial_scale!r}")
        self.initial_scale = initial_scale
        self.dynamic_growth_steps = dynamic_growth_steps
        values = {"iteration": 0, "learning_rate": 0.0, "step_counter": 0, "dynamic_scale": float(initial_scale)}
        self._scaling = [
            Scalar(value, "int64" if isinstance(value, int) else "float32", key) for key, value in values.items()
        ]
        self.step_counter, self.dynamic_scale = self._scaling[2:]
        inner_optimizer.loss_scale_factor = None
        self.inner_optimizer = inner_optimizer
        if name is not None:
            self.name = name

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__(self, "__dict__")
        if name in _OWN or name.startswith("__") or "inner_optimizer" not in own:
            return object.__getattribute__(self, name)
        return getattr(own["inner_optimizer"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = object.__getattribute__(self, "__dict__")
        if name in _OWN or "inner_optimizer" not in own:
            object.__setattr__(self, name, value)
        else:
            setattr(own["inner_optimizer"], name, value)

    @property
    def variables(self) -> list[Variable]:
        """Those of the scale, among which are two of Keras's that nothing changes, and those of the inner optimizer."""
        return [*self._scaling, *self.inner_optimizer.variables]

    @property
    def has_own_apply(self) -> bool:
        """True: all gradients of a step are looked at before one of them is used."""
        return True

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale, which is a variable where code is traced."""
        return loss * self.dynamic_scale

    def step_of(self, store: ParameterStore) -> None:
        """The inner optimizer's step, where the gradients in a store are finite.  Raises as `admits` does."""
        if self.admits(store, [slice(0, store.size)]):
            self.inner_optimizer.apply_store(store)

    def admits(self, store: ParameterStore, parts: Sequence[slice], total: Total | None = None) -> bool:
        """Whether the gradients are finite: then they are divided by the scale.  Sets the scale of the next step.

        Raises FloatingPointError where the scale has become 0.
        """
        if not self.dynamic_scale:
            raise FloatingPointError("LossScaleOptimizer: no gradients were finite until the scale had become 0")
        runs = [run for part in parts for run in store.runs(part)]
        gradients = [store.numbers(store.working_gradients, part, dtype) for part, dtype in runs]
        bad = np.array([float(any(map(kernels.has_nonfinite, gradients)))])
        finite = not (bad if total is None else total(bad)).any()
        if finite:
            kept = [(own, own.copy()) for own in map(store.gradient_of, store.overwritten)]
            for each in gradients:
                kernels.scale(each, 1 / float(self.dynamic_scale))
            for own, gradient in kept:
                own[...] = gradient
        steps = int(self.step_counter) + 1 if finite else 0
        grows = steps == self.dynamic_growth_steps
        self.step_counter.assign(0 if grows else steps)
        if grows or not finite:
            self.dynamic_scale.assign(float(self.dynamic_scale) * (2.0 if grows else 0.5))
        return finite

    def check_shards(self, variables: Sequence[Variable], option: str = "shard") -> None:
        self.inner_optimizer.check_shards(variables, option)

    def check_device(self, device: str) -> None:
        self.inner_optimizer.check_device(device)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.inner_optimizer.name,
            "inner_optimizer": serialize_keras_object(self.inner_optimizer),
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Optimizer:
        arguments = arguments_of({key: value for key, value in config.items() if key != "inner_optimizer"})
        return cls(deserialize_keras_object(config["inner_optimizer"], custom_objects), **arguments)
