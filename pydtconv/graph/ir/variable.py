"""Variables: the parameters and states of layers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from pydtconv import config, hooks, tree
from pydtconv.dtypes import BFLOAT16, name_of, real_array
from pydtconv.extents import check, check_elements
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.deferred import ValueNeededError
from pydtconv.graph.ir.numpy_calls import call_ufunc
from pydtconv.graph.ir.tracing import Tracer
from pydtconv.kernels.array_calls import compute
from pydtconv.naming import checked_name
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.operators import Operators, equal
from pydtconv.serialization.budget import claim

#: what `Variable.aggregation` may be
AGGREGATIONS = ("none", "mean", "sum", "only_first_replica")
#: called when a variable begins or ceases to be trainable
trainable_changes: list[Callable[[], None]] = []
_numbers = count(1)


def _refuse_none(name: str, value: Any) -> None:
    """Raises ValueError for None, also among numbers, which NumPy makes a nan."""
    if value is None or (isinstance(value, (list, tuple)) and any(each is None for each in tree.flatten(value))):
        raise ValueError(f"variable {name!r}: expected numbers, got {value!r}")


def _usual_dtype(initializer: Any) -> str:
    """The dtype of a variable where none is given."""
    if isinstance(initializer, (np.ndarray, np.generic)):
        return initializer.dtype.name if initializer.dtype.kind in "iub" else config.floatx()
    kind = "f" if callable(initializer) or initializer is None else np.asarray(initializer).dtype.kind
    return {"i": "int32", "b": "bool"}.get(kind) or config.floatx()


def as_stored(
    source: str, pairs: Iterable[tuple[Variable, np.ndarray]], stacklevel: int = 4
) -> list[tuple[Variable, np.ndarray]]:
    """Variables with the values that a file has for them, in their dtypes.

    source: the file.  Values that are not finite, or are too large for the dtype, are taken: a run that diverged can be
    looked at.  A warning names the variables.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = [(variable, np.asarray(value).astype(variable.dtype, copy=False)) for variable, value in pairs]
    strange = [v.path for v, value in found if value.dtype.kind == "f" and not np.isfinite(value).all()]
    if strange:
        told = f"{source}: {len(strange)} variables hold values that are not finite: {', '.join(strange[:5])}"
        warnings.warn(told, stacklevel=stacklevel)
    return found


@hooks.variable.fill
class Variable(Operators):
    """An array that lives from step to step: a weight, a moving average, an optimizer's slot.

    `value` is the array itself, for the user; the package reads `array`.  A training plan moves it into a flat array
    (see parameter_store.py) and the variable then holds a view of that; so take it afresh instead of keeping it, and
    write through `assign`.
    mirror: where a device has the value, what brings it back (graph/memory/mirror.py).  cut: where this process has
    some of its columns, what knows the others (graph/memory/columns.py).
    moved: another number whenever the value of some variable is another array, or is on a device.
    """

    mirror: Any = None
    cut: Any = None
    #: plans and memory that are of this variable, and go with it
    kept: dict[Any, Any] | None = None
    moved: ClassVar[int] = 0
    #: how often `assign` has changed the value
    version = 0
    #: the variables whose `overwrite_with_gradient` is set, by their ids
    overwritten: ClassVar[WeakValueDictionary[int, Variable]] = WeakValueDictionary()

    def __init__(
        self,
        initializer: Callable[..., Any] | Any,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        trainable: bool = True,
        autocast: bool = True,
        aggregation: str | None = "none",
        synchronization: str = "auto",
        name: str | None = None,
        layout: Any = None,
        copy: bool = True,
    ) -> None:
        """initializer: an array, a callable (shape, dtype) -> array, or the name of an initializer.

        dtype: by default that of an array of integers or truth values, int32 for Python's integers, else
        `config.floatx()`.

        copy: False to keep the array itself.  aggregation: what processes that train together make of the values that
        code of theirs assigns: "mean" (by samples), "sum", "only_first_replica"; with "none" they must be equal.
        autocast, synchronization and layout are Keras's; only their defaults mean something here.
        """
        if isinstance(initializer, str):
            initializer = hooks.initializer(initializer)
        name, dtype = name or "variable", name_of(dtype or _usual_dtype(initializer))
        if dtype == BFLOAT16:
            raise ValueError(
                f"variable {name!r}: dtype: expected one such as float32, got 'bfloat16', which layers compute in"
            )
        if aggregation not in (None, *AGGREGATIONS):
            raise ValueError(f"variable {name!r}: aggregation: expected one of {AGGREGATIONS}, got {aggregation!r}")
        if layout is not None or synchronization != "auto":
            raise NotImplementedError(
                f"variable {name!r}: expected synchronization='auto', layout=None, got {synchronization!r}, {layout!r}"
            )
        if callable(initializer):
            if shape is None:
                raise ValueError(f"variable {name!r}: a callable initializer needs a shape")
            check(f"variable {name!r}: shape", tuple(shape), least=0)
            check_elements(f"variable {name!r}", shape)
            claim(math.prod(shape) * np.dtype(dtype).itemsize, f"variable {name!r}: of shape {tuple(shape)}")
            initializer = initializer(tuple(shape), dtype=dtype)
        _refuse_none(name, initializer)
        real_array(f"variable {name!r}", initializer)
        self.value: np.ndarray = np.array(initializer, dtype=dtype, order="C", copy=True if copy else None)
        if shape is not None and self.value.shape != tuple(shape):
            raise ValueError(f"variable {name!r}: expected shape {tuple(shape)}, got {self.value.shape}")
        self.name = checked_name(name)
        self.path = name
        self.trainable = trainable
        self.aggregation = aggregation or "none"
        self.regularizer = None
        self.constraint = None

    def _checked(self, name: str, value: Any) -> Any:
        if value is not None and not callable(value):
            raise ValueError(f"variable {self.path!r}: {name}: expected a function or None, got {value!r}")
        return value

    @property
    def regularizer(self) -> Any:
        """What adds to the loss, a function of the variable, or None."""
        return self._regularizer

    @regularizer.setter
    def regularizer(self, value: Any) -> None:
        self._regularizer = self._checked("regularizer", value)

    @property
    def constraint(self) -> Any:
        """What changes the variable after each update, a function of it, or None."""
        return self._constraint

    @constraint.setter
    def constraint(self, value: Any) -> None:
        self._constraint = self._checked("constraint", value)

    @property
    def trainable(self) -> bool:
        """Whether training changes it."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        changes = self.__dict__.get("_trainable", value) != value
        self._trainable = value
        for note in trainable_changes if changes else ():
            note()

    @property
    def overwrite_with_gradient(self) -> bool:
        """Whether optimizers set it to its gradient, in place of a step."""
        return id(self) in Variable.overwritten

    @overwrite_with_gradient.setter
    def overwrite_with_gradient(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"variable {self.path!r}: overwrite_with_gradient: expected True or False, got {value!r}")
        Variable.overwritten.pop(id(self), None)
        if value:
            Variable.overwritten[id(self)] = self

    @property
    def value(self) -> np.ndarray:
        """The array itself; in code that is traced, which has no values yet, the variable, which stands for it."""
        graph: Any = tracing.changed_by()
        if graph is not None and (graph.in_layer or (graph.records and graph.traced)):
            return self  # type: ignore[return-value]
        if graph is not None and graph.records:
            graph.asked(self)
        return hooks.as_result(self.array)

    @value.setter
    def value(self, array: np.ndarray) -> None:
        self._value = array
        Variable.moved = next(_numbers)

    @property
    def array(self) -> np.ndarray:
        """The array itself, whatever is traced."""
        tracing.settle_outside()
        if self.mirror is not None:
            self.mirror.to_host()
        return self._value if self.cut is None else self.cut.array(self)

    @property
    def own_array(self) -> np.ndarray:
        """What this process has of the array: all, or its columns."""
        return self.array if self.cut is None else self._value

    @property
    def host_array(self) -> np.ndarray:
        """The array on the host: what is in it may be older than what a device has."""
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape if self.cut is None else self.cut.shape

    @property
    def dtype(self) -> str:
        return self._value.dtype.name

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle gets: the value as the host has it, after all that was recorded before."""
        tracing.settle_outside()
        if self.mirror is not None:
            self.mirror.to_host()
        state = {name: value for name, value in self.__dict__.items() if name not in ("kept", "cut")}
        state |= {} if self.cut is None else {"_value": self.array}
        return state | ({"overwrite_with_gradient": True} if self.overwrite_with_gradient else {})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.overwrite_with_gradient = self.__dict__.pop("overwrite_with_gradient", False)

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)

    def watch(self, mirror: Any) -> None:
        """Notes that a device has the value."""
        self.mirror = mirror
        Variable.moved = next(_numbers)

    def numpy(self) -> np.ndarray:
        """A copy of the value.  Raises ValueNeededError, a TypeError, in code that is traced."""
        return self.known().copy()

    def known(self) -> np.ndarray:
        """The array itself, for Python code to go on with; as `numpy`, in code that is traced or recorded."""
        graph: Any = tracing.changed_by()
        if graph is not None and graph.records:
            graph.asked(self)
        elif graph is not None and graph.in_layer and graph.read_values is not None:
            if self.trainable or graph.has_assigned(self):
                raise ValueNeededError(
                    f"the value of variable {self.path!r} is not known while a layer's call is traced: expected the "
                    "variable itself, and functions of keras.ops instead of NumPy's"
                )
            graph.read_values.append(self)
        return self.array

    def assign(self, value: Any) -> Variable:
        """Overwrites the value in place; in code that is traced, each time that it runs.  Returns the variable.

        Raises ValueError when the shape differs.
        """
        graph: Any = tracing.changed_by()
        if graph is not None:
            graph.assign(self, value, None)
            return self
        _refuse_none(self.path, value)
        array = real_array(f"variable {self.path!r}", value).astype(self.dtype, copy=False)
        if array.shape != self.shape:
            raise ValueError(f"variable {self.path!r}: expected shape {self.shape}, got {array.shape}")
        if self.cut is not None:
            self.cut.assign(self, array)
        elif self.array.flags.writeable:
            self.array[...] = array
        else:  # other processes see it
            self.value = array.copy()
        self.version += 1
        return self

    def assign_add(self, value: Any) -> Variable:
        """Adds to the value; returns the variable."""
        return self._assign_sum(value, 1)

    def assign_sub(self, value: Any) -> Variable:
        """Takes away from the value; returns the variable."""
        return self._assign_sum(value, -1)

    def _assign_sum(self, value: Any, sign: int) -> Variable:
        graph: Any = tracing.changed_by()
        if graph is not None:
            graph.assign(self, value, sign)
        else:
            self.assign(self.array + sign * np.asarray(value, dtype=self.dtype))
        return self

    def __eq__(self, other: object) -> Any:
        return equal("equal", self, other, isinstance(other, Variable))

    def __ne__(self, other: object) -> Any:
        return equal("not_equal", self, other, isinstance(other, Variable))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(f"variable {self.path!r}: expected bool(variable.numpy()) where its value is to decide")

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def apply_op(self, op: Op, inputs: Sequence[Any]) -> Any:
        """Adds the op to the graph that is being traced, or computes at once when there is none."""
        for other in inputs:
            if hasattr(other, "apply_op") and not isinstance(other, Variable):
                return other.apply_op(op, inputs)
        graph: Tracer | None = tracing.current()
        if graph is not None:
            return graph.add(op, inputs)
        return compute(op, *(value.array if isinstance(value, Variable) else value for value in inputs))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.known(), dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(Variable, ufunc, method, inputs, kwargs)

    def __repr__(self) -> str:
        return f"<Variable {self.path} shape={self.shape} dtype={self.dtype} trainable={self.trainable}>"
