"""The weights of a layer and of the layers inside it: creation, order, freezing, copying in and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pydtconv import constraints, initializers, regularizers
from pydtconv.dtypes import FLOATING, name_of
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base import attribute_values, context, layer_tree
from pydtconv.layers.base.locks import turn_of
from pydtconv.layers.base.tracking import inside, is_tracked, tracked
from pydtconv.own_names import PREFIX, KerasName, OwnNames, reserved
from pydtconv.support.uninterrupted import uninterrupted


class _SetByInit:
    """An attribute that `Layer.__init__` sets.  Before that RuntimeError is raised."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        raise RuntimeError(f"{owner.__name__}.__init__ must call super().__init__()")


class Weights(OwnNames):
    """The part of `Layer` that holds variables and sublayers."""

    if TYPE_CHECKING:
        name: str
        built: bool
    else:
        name = built = activity_regularizer = _SetByInit()
    _pydt_layers: list[Any]
    _pydt_own_metrics: list[Any]
    _pydt_trainable_variables: list[Variable]
    _pydt_non_trainable_variables: list[Variable]
    _pydt_trainable: bool
    _flatten_layers = KerasName("_pydt_flatten_layers")
    _pydt_former: tuple[str, ...] = (
        "_pydt_layers",
        "_pydt_trainable_variables",
        "_pydt_non_trainable_variables",
        "_pydt_trainable",
        "_pydt_own_metrics",
        "_pydt_recorded",
        "_pydt_inbound_nodes",
        "_pydt_dtype_policy",
        "_pydt_build_shapes",
        "_pydt_input_shape_arg",
        "_pydt_set_by_itself",
        "_pydt_calls_on_arrays",
        "_pydt_turn",
        "_pydt_structure_entry",
        "_pydt_watched",
    )

    @property
    def variable_dtype(self) -> str:
        raise NotImplementedError

    def _pydt_start_tracking(self) -> None:
        """Makes the lists of what joins, once: with the first attribute, which may be set before `__init__` runs."""
        if "_pydt_layers" not in self.__dict__:
            put = object.__setattr__
            put(self, "_pydt_layers", [])
            put(self, "_pydt_trainable_variables", [])
            put(self, "_pydt_non_trainable_variables", [])
            put(self, "_pydt_trainable", True)
            put(self, "_pydt_own_metrics", [])

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle gets, in which lists and dicts are plain ones, with the names of those."""
        watched = [name for name, value in self.__dict__.items() if is_tracked(value)]
        return {**self.__dict__, **({"_pydt_watched": watched} if watched else {})}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        for name in self.__dict__.pop("_pydt_watched", ()):
            if name in self.__dict__:
                object.__setattr__(self, name, tracked(self.__dict__[name], self))

    def _pydt_track(self, value: Any) -> None:
        """Notes what joins the layer; a frozen layer freezes it."""
        if isinstance(value, Weights):
            if value is not self and not any(layer is value for layer in self._pydt_layers):
                self._pydt_layers.append(value)
                if not self._pydt_trainable:
                    value.trainable = False
                layer_tree.changed()
        elif isinstance(value, Variable):
            if not any(v is value for v in self._pydt_own_variables()):
                (self._pydt_trainable_variables if value.trainable else self._pydt_non_trainable_variables).append(
                    value
                )
                value.trainable = value.trainable and self._pydt_trainable
                layer_tree.changed()
        elif hasattr(value, "update_state") and not any(metric is value for metric in self._pydt_own_metrics):
            self._pydt_own_metrics.append(value)
            layer_tree.changed()
        elif isinstance(value, (set, frozenset)) and any(isinstance(each, (Weights, Variable)) for each in value):
            raise ValueError(
                f"{type(self).__name__}: expected layers in a list, a tuple or a dict, which have an order, got them "
                f"in a {type(value).__name__}"
            )

    def _pydt_release(self, gone: Any) -> None:
        left = [layer for layer in inside(gone) if isinstance(layer, Weights)]
        if not left or self.__dict__.get("_pydt_network") is not None:
            return
        places = [value for name, value in vars(self).items() if not name.startswith(PREFIX)]
        held = {id(layer) for layer in inside(places)}
        gone_ones = {id(layer) for layer in left} - held
        object.__setattr__(self, "_pydt_layers", [layer for layer in self._pydt_layers if id(layer) not in gone_ones])
        layer_tree.changed()

    def _pydt_replaced(self, gone: Any, item: Any) -> None:
        self._pydt_release(gone)
        attribute_values.note_item(gone, item)

    def _pydt_own_variables(self) -> list[Variable]:
        return self._pydt_trainable_variables + self._pydt_non_trainable_variables

    def _pydt_run_variables(self) -> list[Variable]:
        """Those of a run, which checkpoints of training have, and files of the model have not."""
        return []

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        if name.startswith(PREFIX):
            raise AttributeError(f"{type(self).__name__}: {reserved(name)}")
        self._pydt_start_tracking()
        old = self.__dict__.get(name)
        attribute_values.note(self, name, value)
        object.__setattr__(self, name, tracked(value, self))
        if old is not value and isinstance(old, (Weights, list, tuple, dict)):
            self._pydt_release(old)

    def add_variable(self, *args: Any, **kwargs: Any) -> Variable:
        """Another name of `add_weight`."""
        return self.add_weight(*args, **kwargs)

    def add_weight(
        self,
        shape: Sequence[int] | None = None,
        initializer: Any = None,
        dtype: str | None = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: str = "none",
        overwrite_with_gradient: bool = False,
        name: str | None = None,
    ) -> Variable:
        """A new variable of the layer.

        initializer: an initializer, its name, or a function (shape, dtype) -> array; by default glorot_uniform for
        floats and zeros for the rest.  regularizer, constraint: objects, names or None.  aggregation: as of `Variable`.
        overwrite_with_gradient: whether optimizers set it to its gradient, in place of a step.  autocast is Keras's;
        only its default means something here.
        """
        if isinstance(shape, str):
            raise ValueError(
                f"{type(self).__name__}.add_weight: shape: expected extents, got {shape!r}: pass a name as name=..."
            )
        if autocast is not True:
            raise ValueError(f"{type(self).__name__}.add_weight: autocast: expected True, got {autocast!r}")
        if context.is_calling(self) and not context.is_building(self):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: call: expected weights to be made in __init__ or build, got "
                f"add_weight({name!r}) in call"
            )
        if context.builds_again(self):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: build: the layer is built already, and has its weights"
            )
        path = context.path_of(self.name)
        dtype = dtype or self.variable_dtype
        if initializer is None:
            initializer = "glorot_uniform" if name_of(dtype) in FLOATING else "zeros"
        name = name or f"variable_{len(self._pydt_own_variables())}"
        make = initializers.get(initializer)
        extents = () if shape is None else tuple(shape)
        variable = Variable(
            make, extents, dtype, trainable and self._pydt_trainable, aggregation=aggregation, name=name
        )
        variable.path = "/".join([*path, name])
        variable.overwrite_with_gradient = overwrite_with_gradient
        variable.regularizer = regularizers.get(regularizer)
        variable.constraint = constraints.get(constraint)
        (self._pydt_trainable_variables if trainable else self._pydt_non_trainable_variables).append(variable)
        layer_tree.changed()
        return variable

    @contextmanager
    def _pydt_new_weights_or_none(self) -> Iterator[None]:
        """Takes back the weights that are made within, where an exception ends it: they will be made again."""
        groups = self._pydt_trainable_variables, self._pydt_non_trainable_variables
        counts, built = [len(group) for group in groups], self.built
        try:
            yield
        except BaseException:
            for group, count in zip(groups, counts, strict=True):
                del group[count:]
            self.built = built
            layer_tree.changed()
            raise

    def _pydt_keep_arguments(self, weight: str, initializer: Any, regularizer: Any, constraint: Any) -> None:
        """Keeps a constructor's arguments of a weight as `<weight>_initializer`, `_regularizer` and `_constraint`."""
        setattr(self, f"{weight}_initializer", initializers.get(initializer))
        setattr(self, f"{weight}_regularizer", regularizers.get(regularizer))
        setattr(self, f"{weight}_constraint", constraints.get(constraint))

    def _pydt_add_kept(self, weight: str, shape: Sequence[int], name: str | None = None) -> Variable:
        """A new variable, made with the arguments that `_pydt_keep_arguments` kept; called `weight` by default."""
        return self.add_weight(
            shape,
            getattr(self, f"{weight}_initializer"),
            regularizer=getattr(self, f"{weight}_regularizer"),
            constraint=getattr(self, f"{weight}_constraint"),
            name=name or weight,
        )

    @property
    def trainable(self) -> bool:
        """Whether the layer's trainable weights take part in training; setting it sets all layers inside, too."""
        return self._pydt_trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        value = bool(value)
        if value != self._pydt_trainable:
            object.__setattr__(self, "_pydt_trainable", value)
            layer_tree.changed()
        for variable in self._pydt_trainable_variables:
            variable.trainable = value
        for layer in self._pydt_layers:
            layer.trainable = value

    @property
    def weights(self) -> list[Variable]:
        """All variables, the layer's own first (trainable, then not), then those of the layers inside, in order."""
        return list(layer_tree.known(self, "weights", lambda layer: list(layer._pydt_walk_weights())))

    def _pydt_walk_weights(self) -> Iterator[Variable]:
        seen: set[int] = set()
        for variable in self._pydt_own_variables():
            seen.add(id(variable))
            yield variable
        for layer in self._pydt_layers:
            for variable in layer._pydt_walk_weights():
                if id(variable) not in seen:
                    seen.add(id(variable))
                    yield variable

    @property
    def variables(self) -> list[Variable]:
        return self.weights

    @property
    def trainable_weights(self) -> list[Variable]:
        """The variables that training changes by their gradient; none when the layer is frozen."""
        if not self.trainable:
            return []
        return list(
            layer_tree.known(self, "trainable_weights", lambda layer: [v for v in layer.weights if v.trainable])
        )

    @property
    def non_trainable_weights(self) -> list[Variable]:
        return [variable for variable in self.weights if not (self.trainable and variable.trainable)]

    @property
    def trainable_variables(self) -> list[Variable]:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        return self.non_trainable_weights

    def count_params(self) -> int:
        """The number of scalars in all weights.  Raises ValueError when the layer is not built."""
        if not self.built:
            raise ValueError(f"layer {self.name!r} is not built: its weights are not known before its input shape is")
        return sum(variable.value.size for variable in self.weights)

    def get_weights(self) -> list[np.ndarray]:
        """Copies of all weights, in the order of `weights`."""
        with turn_of(self).taken():
            return [variable.numpy() for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets all weights.  Raises ValueError, before anything is changed, when their number or a shape differs."""
        variables = self.weights
        if len(weights) != len(variables):
            raise ValueError(
                f"layer {self.name!r}: set_weights: expected {len(variables)} arrays, got {len(weights)}"
                + (" (the layer is not built yet)" if not self.built else "")
            )
        for variable, value in zip(variables, weights, strict=True):
            if np.shape(value) != variable.shape:
                raise ValueError(
                    f"layer {self.name!r}: set_weights: {variable.path}: expected shape {variable.shape}, "
                    f"got {np.shape(value)}"
                )
        with turn_of(self).taken(), uninterrupted():
            for variable, value in zip(variables, weights, strict=True):
                variable.assign(value)

    @property
    def _pydt_writes_itself(self) -> bool:
        """Whether a subclass says what a file has of it."""
        return type(self).save_own_variables is not Weights.save_own_variables

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Writes the variables that are not those of layers inside into a mapping, under "0", "1", ...

        A subclass may write other arrays, too, for its `load_own_variables` to read.
        """
        for i, variable in enumerate(self._pydt_own_variables()):
            store[str(i)] = variable.numpy()

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Reads what `save_own_variables` wrote.  Raises ValueError where it is not of these variables."""
        variables = self._pydt_own_variables()
        if len(store) != len(variables):
            raise ValueError(f"layer {self.name!r}: expected {len(variables)} variables, found {len(store)}")
        for i, variable in enumerate(variables):
            variable.assign(store[str(i)])

    def _pydt_flatten_layers(self, include_self: bool = True, recursive: bool = True) -> list[Any]:
        found: list[Any] = [self] if include_self else []
        for layer in self._pydt_layers:
            found.append(layer)
            if recursive:
                found.extend(layer._pydt_flatten_layers(include_self=False))
        return list({id(layer): layer for layer in found}.values())
