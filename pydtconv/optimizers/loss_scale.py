"""`LossScaleOptimizer`: for scripts that were written for float16, whose small gradients vanish.

bfloat16 has the range of float32, and gradients of variables are float32: nothing is scaled here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers.arguments import DEFAULTS
from pydtconv.optimizers.optimizer import Optimizer
from pydtconv.serialization.objects import arguments_of, deserialize_keras_object, serialize_keras_object

#: what is the optimizer's own; everything else is the inner one's
_OWN = frozenset(
    {
        "inner_optimizer", "initial_scale", "dynamic_growth_steps", "get_config", "from_config", "variables",
        "_scaling", "save_own_variables", "load_own_variables", "set_weights",
    }
)  # fmt: skip


class LossScaleOptimizer(Optimizer):
    """The inner optimizer under Keras's name for one that scales losses: the steps are those of the inner one.

    initial_scale, dynamic_growth_steps: Keras's; they mean nothing here, for there is no float16.
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
        self.initial_scale = initial_scale
        self.dynamic_growth_steps = dynamic_growth_steps
        values = {"iteration": 0, "learning_rate": 0.0, "step_counter": 0, "dynamic_scale": float(initial_scale)}
        self._scaling = [
            Variable(value, dtype="int64" if isinstance(value, int) else "float32", trainable=False, name=key)
            for key, value in values.items()
        ]
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
        """Those that Keras keeps of the scale, which stay as they are, and those of the inner optimizer."""
        return [*self._scaling, *self.inner_optimizer.variables]

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
