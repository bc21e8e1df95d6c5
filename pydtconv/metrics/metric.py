"""Base of all metrics: state over batches, in NumPy, outside of the graph."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config, tree
from pydtconv.dtype_policies import gathering_dtype
from pydtconv.dtypes import real, real_array
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import Tensor, current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.hooks import as_result
from pydtconv.naming import auto_name, checked_name
from pydtconv.own_names import OwnNames
from pydtconv.serialization.budget import claim
from pydtconv.serialization.objects import arguments_of
from pydtconv.support.results import with_mask

__all__ = ["Metric"]


def recorded(method: Callable[..., Any]) -> Callable[..., Any]:
    """update_state or reset_state of a metric: where code is traced, a step of what runs later."""
    name = method.__name__

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        graph = current_graph()
        if graph is None:
            tracing.settle_outside()
            return method(self, *args, **kwargs)
        will = getattr(self, "will_be_updated", None)
        if will is not None and name == "update_state":
            will(*args, **kwargs)
        masks = [getattr(leaf, "_keras_mask", None) for leaf in tree.flatten((args, kwargs))]
        if any(mask is not None for mask in masks):
            return graph.update(self, "update_masked", (masks, *args), kwargs)
        return graph.update(self, name, args, kwargs)

    return wrapper


def recorded_result(method: Callable[..., Any]) -> Callable[..., Any]:
    """result of a metric: where code is traced, what it will be when the updates before it have run."""

    @functools.wraps(method)
    def wrapper(self: Any) -> Any:
        graph = current_graph()
        if graph is None:
            tracing.settle_outside()
            return as_result(method(self))
        return graph.result(lambda: method(self), f"the result of metric {self.name!r}")

    return wrapper


def to_keep(given: Any) -> Any:
    """What was given of a batch, in the same structure, as arrays that no later batch writes over."""

    def copied(leaf: Any) -> Any:
        return with_mask(np.array(leaf), getattr(leaf, "_keras_mask", None)) if isinstance(leaf, np.ndarray) else leaf

    return tree.map_structure(copied, given)


def given_to(metric: Any, given: Any) -> Any:
    """What a metric is given of a batch: copies where it is none of pydtconv's, as it may keep them."""
    code = (type(metric), getattr(metric, "_pydt_fn", None))
    ours = all(part is None or str(getattr(part, "__module__", "")).startswith("pydtconv.") for part in code)
    return given if ours else to_keep(given)


class Masks:
    """Mixin of what is updated with masks."""

    def update_masked(self, masks: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        """update_state(*args, **kwargs) with masks for their leaves, None where there is none."""
        leaves = [with_mask(leaf, mask) for leaf, mask in zip(tree.flatten((args, kwargs)), masks, strict=True)]
        args, kwargs = tree.pack_sequence_as((args, kwargs), leaves)
        self.update_state(*args, **kwargs)  # type: ignore[attr-defined]


class State(Variable):
    """A variable of a metric."""

    def __float__(self) -> float:
        return float(self.known())

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.known()[index]


class Gathered(State):
    """What a metric gathers in an attribute, as a variable: it has the attribute's value, and `assign` sets it."""

    def __init__(self, metric: Metric, name: str) -> None:
        self._of = metric, name
        super().__init__(getattr(metric, name), dtype=metric.dtype, trainable=False, name=name.strip("_"))
        self.path = f"{metric.name}/{self.name}"

    @property
    def _value(self) -> np.ndarray:
        metric, name = self._of
        return np.asarray(getattr(metric, name), metric.dtype)

    @_value.setter
    def _value(self, array: np.ndarray) -> None:
        pass

    def assign(self, value: Any) -> Gathered:
        """Sets the attribute.  Raises ValueError when the shape differs."""
        metric, name = self._of
        array = np.asarray(value, np.float64)
        if array.shape != self.shape:
            raise ValueError(f"variable {self.path!r}: expected shape {self.shape}, got {array.shape}")
        setattr(metric, name, array.copy() if array.shape else float(array))
        return self


class Metric(Masks, OwnNames):
    """A figure that is gathered over batches.

    Subclasses write `update_state(y_true, y_pred, sample_weight=None)` on arrays and `result()`; state that
    `reset_state` sets back comes from `add_variable`, or is named in `state_names`.
    """

    #: attributes besides the variables that are gathered, for checkpoints to keep
    state_names: tuple[str, ...] = ()
    #: those of them that `variables` shows, as Keras has them
    shown_names: tuple[str, ...] = ()
    _pydt_former: tuple[str, ...] = ("_pydt_dtype", "_pydt_states", "_pydt_fn", "_pydt_fn_kwargs")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("update_state", "reset_state"):
            if name in cls.__dict__:
                setattr(cls, name, recorded(cls.__dict__[name]))
        if "result" in cls.__dict__:
            cls.result = recorded_result(cls.result)  # type: ignore[method-assign]

    def __init__(self, dtype: str | None = None, name: str | None = None) -> None:
        self.name = checked_name(name or auto_name(type(self).__name__))
        self._pydt_dtype = None if dtype is None else real(gathering_dtype(type(self).__name__, dtype))
        self._pydt_states: list[tuple[State, Any]] = []

    @property
    def dtype(self) -> str:
        """The dtype that it was given, else `config.floatx()`; float32 where that is bfloat16 or mixed_bfloat16."""
        return self._pydt_dtype or config.floatx()

    @property
    def variables(self) -> list[State]:
        """Those made by `add_variable`, what is gathered in attributes, those of metrics that are attributes."""
        own: list[Any] = [state for state, _ in self._pydt_states]
        own += [Gathered(self, name) for name in self.shown_names if getattr(self, name, None) is not None]
        inner = [part.variables if isinstance(part, Metric) else [part] for part in self._pydt_inner()]
        return [*own, *(variable for part in inner for variable in part)]

    def _pydt_inner(self) -> list[Any]:
        """Metrics and variables that are attributes, or stand in lists and dicts that are."""
        own = {id(state) for state, _ in self._pydt_states}
        values = [value for name, value in vars(self).items() if not name.startswith("_")]
        leaves = [leaf for value in values for leaf in tree.flatten(value) if isinstance(leaf, (Metric, Variable))]
        return [leaf for leaf in leaves if id(leaf) not in own]

    def add_variable(
        self, shape: Sequence[int] = (), initializer: Any = "zeros", dtype: str | None = None, name: str | None = None
    ) -> State:
        """A variable; initializer: "zeros", "ones", a number, an array or a callable (shape, dtype) -> array."""
        named = {"zeros": 0.0, "ones": 1.0}
        start = named.get(initializer, initializer) if isinstance(initializer, str) else initializer
        if isinstance(start, str):
            raise ValueError(f"metric {self.name!r}: expected initializer 'zeros' or 'ones', got {initializer!r}")
        claim(16 * math.prod(shape), f"metric {self.name!r}: a state of shape {tuple(shape)}")
        start = start if callable(start) else np.broadcast_to(np.asarray(start), tuple(shape))
        state = State(start, tuple(shape), dtype or self.dtype, trainable=False, name=name or "state")
        state.path = f"{self.name}/{state.name}"
        self._pydt_states.append((state, state.array.copy()))
        return state

    def add_weight(
        self, shape: Sequence[int] = (), initializer: Any = "zeros", dtype: str | None = None, name: str | None = None
    ) -> State:
        """The same as `add_variable`."""
        if isinstance(shape, str):
            raise TypeError("add_weight: expected shape first and name=... by keyword, got a string as shape")
        return self.add_variable(shape, initializer, dtype, name)

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define update_state")

    def result(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define result")

    @recorded
    def reset_state(self) -> None:
        """Sets the state back to its start, that of metrics that are attributes, too, and other variables to 0."""
        for state, start in self._pydt_states:
            state.assign(start)
        for part in self._pydt_inner():
            if isinstance(part, Metric):
                part.reset_state()
            else:
                part.assign(np.zeros(part.shape))

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as plain data and arrays."""
        gathered = {name: getattr(self, name) for name in self.state_names}
        parts = self._pydt_inner()
        inner = [part.get_state() if isinstance(part, Metric) else part.array for part in parts]
        own = [state.array for state, _ in self._pydt_states]
        return {"variables": own, **gathered, **({"inner": inner} if inner else {})}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Puts back what `get_state` gave."""
        for (variable, _), value in zip(self._pydt_states, state["variables"], strict=True):
            variable.assign(value)
        for part, kept in zip(self._pydt_inner(), state.get("inner", ()), strict=True):
            if isinstance(part, Metric):
                part.set_state(kept)
            else:
                part.assign(kept)
        for name in self.state_names:
            setattr(self, name, state[name])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Updates the state and returns the result."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self._pydt_dtype}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Metric:
        return cls(**arguments_of(config))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def as_array(metric: Metric, name: str, value: Any) -> np.ndarray:
    """The value as an array.  Raises TypeError for symbolic tensors, which have no values yet, and complex numbers."""
    if isinstance(value, Tensor) and not value.graph.records:
        raise TypeError(f"metric {metric.name!r}: {name} is a symbolic tensor; metrics are updated with arrays, by fit")
    return real_array(f"metric {metric.name!r}: {name}", value)
