"""`Layer`: weights and a function of tensors; the base of all layers and models."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydtconv import dtype_policies, regularizers, tree
from pydtconv.dtype_policies import DTypePolicy
from pydtconv.dtypes import FLOATING
from pydtconv.graph.ir.graph import Graph, Tensor, current_graph
from pydtconv.layers.base import context, layer_tree, masks
from pydtconv.layers.base.array_calls import call_on_arrays
from pydtconv.layers.base.input_spec import check_inputs
from pydtconv.layers.base.locks import turn_of
from pydtconv.layers.base.symbolic import KerasTensor, Node, Operation, infer_outputs, symbolic_leaves
from pydtconv.layers.base.weights import Weights
from pydtconv.ops.shape import Cast
from pydtconv.own_names import PREFIX
from pydtconv.suggest import constructors, unknown_argument


class Layer(Weights, Operation):
    """A function of tensors with weights.

    A layer defines `build(input_shape)`, which makes the weights by `add_weight`, and `call(inputs)`, which computes
    with `pydtconv.ops` and other layers; `call` may take `training` (True in a training step).  Calling the layer
    - on symbolic tensors (`Input(...)` and what follows from it) records the call for a functional model,
    - on NumPy arrays computes at once,
    - on tensors of a graph, as a model does when it is traced, adds the layer's nodes to that graph.
    """

    #: whether layers of this class support masking from the start
    carries_masks = False
    #: whether `call` takes tensors of integers; else they become floats before
    reads_integers = True
    #: whether `dtype` may be one of integers, to which all that the layer reads is cast; None: where it reads them
    computes_integers: bool | None = None
    _pydt_build_shapes: Any
    _pydt_dtype_policy: DTypePolicy

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(trainable, bool):
            raise ValueError(f"{type(self).__name__}: trainable: expected True or False, got {trainable!r}")
        self._pydt_start_tracking()
        Operation.__init__(self, name)
        self.dtype_policy = dtype
        self.activity_regularizer = regularizers.get(activity_regularizer)
        self.autocast = autocast
        self.built = False
        self.supports_masking = self.carries_masks or type(self).compute_mask is not Layer.compute_mask
        self.input_spec: Any = None
        object.__setattr__(self, "_pydt_build_shapes", None)
        if not trainable:
            Weights.trainable.fset(self, False)  # type: ignore[attr-defined]
        input_dim = kwargs.pop("input_dim", None)
        input_shape = kwargs.pop("input_shape", None if input_dim is None else (input_dim,))
        if input_shape is not None:
            shape = tuple(input_shape) if isinstance(input_shape, Iterable) else (input_shape,)
            object.__setattr__(self, "_pydt_input_shape_arg", shape)
        if kwargs:
            raise ValueError(unknown_argument(type(self).__name__, next(iter(kwargs)), *constructors(type(self))))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls.build = _building(cls.build)  # type: ignore[method-assign]

    def _pydt_needs_no_build(self) -> None:
        """For constructors of layers without weights: they are built, unless a subclass has a `build`."""
        self.built = type(self).build is Layer.build

    # -- to be defined by subclasses -------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Makes the weights.  By default builds the layers inside, by tracing `call` on inputs of this shape.

        A subclass's `build` may call this one at its end, as in Keras, where it only says that the layer is built.
        """
        if type(self).build is not Layer.build:
            self.built = True
        else:
            self._pydt_build_by_calling(input_shape)

    def _pydt_build_by_calling(self, input_shape: Any) -> None:
        """Builds the layers inside, as `call` meets them on inputs of this shape."""
        if type(self).call is not Layer.call and _takes_one(self.call):
            inputs = tree.map_shape_structure(lambda shape: KerasTensor(shape, self.dtype), input_shape)
            infer_outputs(self._pydt_traced_call, (inputs,), {})

    def call(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"layer {type(self).__name__} has no call()")

    # -- calling ------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_pydt_dtype_policy" not in self.__dict__:
            self.name  # noqa: B018  which says so
        if len(args) > 1:
            args, kwargs = _with_training_named(type(self).call, args, kwargs)
        args, kwargs = self._pydt_convert_arguments(args, kwargs)
        graph = current_graph()
        if graph is not None and graph.records:
            args, kwargs = graph.taken_in(self, args, kwargs)  # type: ignore[attr-defined]
        leaves = tree.flatten((args, kwargs))
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            return self._pydt_traced_call(*args, **kwargs)
        if any(isinstance(leaf, KerasTensor) for leaf in leaves):
            return self._pydt_symbolic_call(args, kwargs)
        if graph is not None:
            return self._pydt_traced_call(*args, **kwargs)
        with turn_of(self).taken():
            training = bool(kwargs.get("training") or context.training())
            return self._pydt_call_on_arrays(args, kwargs, training)

    def _pydt_call_on_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool) -> Any:
        return call_on_arrays(self, self._pydt_array_dtype, args, kwargs, training)

    def _pydt_convert_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Hook: models bring their inputs into their own structure here."""
        return args, kwargs

    @property
    def _pydt_array_dtype(self) -> str:
        """Hook: what floats of arrays become that the layer is called on."""
        return self.dtype

    def _pydt_symbolic_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with turn_of(self).taken():
            self._pydt_check_and_build(args, kwargs)
            outputs = self.compute_output_spec(*args, **kwargs)
            Node(self, args, kwargs, outputs)
        return outputs

    def _pydt_traced_call(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the layer's nodes to the graph that is being traced."""
        if self.autocast:
            args = tuple(map(self._pydt_autocast_all, args))
            kwargs = {k: v if "mask" in k else self._pydt_autocast_all(v) for k, v in kwargs.items()}
        self._pydt_check_and_build(args, kwargs)
        graph = _graph_of((args, kwargs))
        masked = masks.have_masks((args, kwargs))
        if masked:
            kwargs = masks.with_masks(_call_defaults(type(self).call), self._pydt_named_arguments(args, kwargs), kwargs)
        defaults, outermost = _call_defaults(type(self).call), not context.is_calling()
        training = kwargs.pop("training", None)
        if training is None:
            training = context.training()
        if training is None and outermost:
            training = defaults.get("training")
        if training is None and not graph.runs_once:
            training = graph.training
        if "training" in defaults and not (training is None and defaults["training"] is None):
            kwargs["training"] = bool(training)
        training = None if training is None else bool(training)
        with context.calling(self, training), graph.scope(self.name), context.naming_errors(self):
            outputs = self.call(*args, **kwargs)
            if outputs is None and outermost and not graph.runs_once:
                raise ValueError(
                    f"layer {self.name!r}: {type(self).__name__}.call: expected it to return tensors, got None"
                )
            for leaf in tree.flatten(outputs) if outermost else ():
                if isinstance(leaf, Tensor):
                    leaf.graph.check_open()
            self.built = True
            if self.supports_masking and (masked or type(self).compute_mask is not Layer.compute_mask):
                first = args[0] if args else next(iter(kwargs.values()))
                mask = kwargs.get("mask")
                masks.carry(self, first, outputs, masks.masks_of(first) if mask is None else mask)
            if self.activity_regularizer is not None:
                for output in tree.flatten(outputs):
                    self.add_loss(self.activity_regularizer(output) / float(output.shape[0] if output.shape else 1))
        return outputs

    def _pydt_autocast_all(self, argument: Any) -> Any:
        """Hook: an argument of `call`, whatever its structure, in the dtype in which the layer computes."""
        return tree.map_structure(self._pydt_autocast, argument)

    def _pydt_autocast(self, leaf: Any, dtype: str | None = None) -> Any:
        """Floats in a dtype, by default that in which the layer computes, and integers where it does not read them."""
        wanted = dtype or self.compute_dtype
        if not isinstance(leaf, Tensor) or leaf.dtype == wanted or (leaf.dtype not in FLOATING and self.reads_integers):
            return leaf
        found = Cast(wanted)(leaf)
        if masks.mask_of(leaf) is not None:
            masks.set_mask(found, masks.mask_of(leaf))
        return found

    def _pydt_check_and_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.built or not args or args[0] is None:
            self._pydt_check_given(args, kwargs)
        first = args[0] if args else next((v for v in kwargs.values() if _has_shape(v)), None)
        if self.input_spec is not None and first is not None and not isinstance(first, dict):
            check_inputs(self, self.input_spec, first)
        if self._pydt_build_shapes is None and first is not None and _has_shape(first):
            object.__setattr__(self, "_pydt_build_shapes", tree.map_structure(_shape_of_any_batch, first))
        if self.built or type(self).build is Layer.build or context.is_building(self):
            return
        try:
            self._pydt_with_shapes(self.build, args, kwargs, _shape_of_any_batch)
        except (TypeError, AttributeError) as error:
            if first is None or _has_shape(first):
                raise
            given = f"got {first!r}, which has no shape"
            raise ValueError(f"{type(self).__name__} {self.name!r}: expected a tensor, {given}") from error

    def _pydt_check_given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises TypeError where an argument of `call` is missing, and ValueError where the first one is None."""
        given, needed = self._pydt_named_arguments(args, kwargs), _needed(self.call)
        missing = [name for name in needed if name not in given and name not in kwargs]
        if missing:
            raise TypeError(f"{type(self).__name__} {self.name!r}: missing argument {missing[0]!r}")
        if needed and given.get(needed[0], self) is None:
            raise ValueError(f"{type(self).__name__} {self.name!r}: {needed[0]}: expected a tensor, got None")

    def _pydt_with_shapes(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], shape: Callable[[Any], Any]
    ) -> Any:
        """Calls a method with the shapes of a call's arguments, by the names that it has for them, or of the first.

        Raises ValueError where it needs several, of which one has another name.
        """
        shapes = {
            f"{name}_shape": tree.map_structure(shape, value)
            for name, value in self._pydt_named_arguments(args, kwargs).items()
            if _has_shape(value)
        }
        wanted = {name: shapes[name] for name in inspect.signature(method).parameters if name in shapes}
        needed = _needed(method)
        if len(needed) > 1 and not wanted.keys() >= set(needed):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: {method.__name__}: expected one argument, or <argument of call>"
                f"_shape for each, got {', '.join(needed)}"
            )
        return method(**wanted) if len(wanted) > 1 else method(next(iter(shapes.values()), None))

    def _pydt_named_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        kwargs = {name: value for name, value in kwargs.items() if name != "training"}  # which `call` need not take
        bound = inspect.signature(self.call).bind_partial(*args, **kwargs).arguments
        return {name: value for name, value in bound.items() if name != "kwargs"}

    # -- shapes --------------------------------------------------------------------------------------------------------

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Symbolic outputs for symbolic inputs."""
        if type(self).compute_output_shape is not Layer.compute_output_shape:
            first = args[0] if args else next(iter(kwargs.values()))
            dtype = symbolic_leaves((args, kwargs))[0].dtype
            dtype = self.compute_dtype if self.autocast and (dtype in FLOATING or not self.reads_integers) else dtype
            shape = self._pydt_with_shapes(self.compute_output_shape, args, kwargs, lambda x: x.shape)
            outputs = tree.map_shape_structure(lambda s: KerasTensor(s, dtype), shape)
            carries = self.supports_masking and type(self).compute_mask is Layer.compute_mask
            if carries and isinstance(first, KerasTensor) and isinstance(outputs, KerasTensor):
                outputs.mask_spec = first.mask_spec
            return outputs
        return infer_outputs(self._pydt_traced_call, args, kwargs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape (or a structure of shapes) for an input shape; builds the layer."""
        if type(self).call is Layer.call:
            raise NotImplementedError(f"layer {type(self).__name__} has no compute_output_shape() and no call()")
        inputs = tree.map_shape_structure(lambda shape: KerasTensor(shape, self.dtype), input_shape)
        outputs = infer_outputs(self._pydt_traced_call, (inputs,), {})
        return tree.map_structure(lambda x: x.shape, outputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the output, for a layer that supports masking: by default that of the (first) input."""
        return mask

    # -- the rest -----------------------------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Adds a tensor, or the sum of its elements, to the loss of what is being traced; to be used in `call`."""
        graph = current_graph()
        if graph is None:
            raise RuntimeError(f"layer {self.name!r}: add_loss can only be used inside call()")
        for tensor in tree.flatten(loss):
            graph.add_loss(self, tensor)

    @property
    def metrics(self) -> list[Any]:
        """Metrics that are attributes of the layer and of the layers inside."""
        inner = [metric for layer in self._pydt_layers for metric in layer.metrics]
        return list({id(metric): metric for metric in [*self._pydt_own_metrics, *inner]}.values())

    @property
    def metrics_variables(self) -> list[Any]:
        """The variables of `metrics`."""
        return [variable for metric in self.metrics for variable in metric.variables]

    @property
    def losses(self) -> list[Any]:
        """What the last call has added by `add_loss`, and the penalties of trainable weights.

        The former are tensors where a `GradientTape` or a `train_step` is recorded, and numbers after a call on arrays
        and after a step of `fit`, `evaluate` or `predict` that is not the subclass's.
        """
        graph: Any = current_graph()
        if graph is None:
            graph = context.recordings.get(self, lambda: None)()
        added = graph.losses_of(self._pydt_flatten_layers()) if graph is not None and graph.records else []
        return [*added, *(v.regularizer(v) for v in self.trainable_variables if v.regularizer is not None)]

    @property
    def dtype_policy(self) -> DTypePolicy:
        """How the layer computes; setting it takes whatever a layer's `dtype` may be."""
        return self._pydt_dtype_policy

    @dtype_policy.setter
    def dtype_policy(self, policy: Any) -> None:
        try:
            found = dtype_policies.get(policy)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{type(self).__name__} {self.name!r}: {error}") from None
        integers = self.reads_integers if self.computes_integers is None else self.computes_integers
        if found.compute_dtype not in FLOATING and not integers:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: dtype: expected one of floats, in which the layer computes, got "
                f"{found.name!r}"
            )
        if found != self.__dict__.get("_pydt_dtype_policy"):
            object.__setattr__(self, "_pydt_dtype_policy", found)
            layer_tree.changed()

    @property
    def dtype(self) -> str:
        """The dtype of the layer's variables."""
        return self._pydt_dtype_policy.variable_dtype

    @property
    def compute_dtype(self) -> str:
        """The dtype in which the layer computes: that of what it reads and writes."""
        return self._pydt_dtype_policy.compute_dtype

    @property
    def input_dtype(self) -> str:
        """The dtype to which inputs are cast."""
        return self.compute_dtype

    @property
    def variable_dtype(self) -> str:
        return self._pydt_dtype_policy.variable_dtype

    @property
    def path(self) -> str:
        return self.name

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain data."""
        config = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": dtype_policies.serialize(self._pydt_dtype_policy),
            **self._pydt_own_config(),
        }
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        return config

    def get_build_config(self) -> dict[str, Any] | None:
        return None if self._pydt_build_shapes is None else {"input_shape": self._pydt_build_shapes}

    def build_from_config(self, config: dict[str, Any]) -> None:
        if not config or self.built:
            return
        if set(config) == {"input_shape"}:
            self.build(config["input_shape"])
        else:
            self.build(**(config.get("shapes_dict") or config))

    def _pydt_children(self, *more: str) -> Iterator[tuple[str, Any]]:
        """(attribute, value) of all that may hold layers, in the order in which files name them; see object_paths.py.

        more: attributes beside the object's own.
        """
        names = {*vars(self), *more}
        for name in in_order(name for name in names if not name.startswith(PREFIX)):
            value = getattr(self, name)
            if isinstance(value, (Layer, list, tuple, dict)):
                yield name, value

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def in_order(names: Iterable[str]) -> list[str]:
    """Names of attributes by the alphabet, private ones last."""
    return sorted(names, key=lambda name: f"~{name}" if name.startswith("_") else name)


def _building(build: Callable[..., None]) -> Callable[..., None]:
    """build, which afterwards has marked the layer as built and noted the shape."""

    @functools.wraps(build)
    def wrapper(self: Layer, *args: Any, **kwargs: Any) -> None:
        with context.building(self), self._pydt_new_weights_or_none():
            build(self, *args, **kwargs)
        if args or kwargs:
            object.__setattr__(self, "_pydt_build_shapes", args[0] if args else next(iter(kwargs.values())))
        self.built = True

    return wrapper


#: by the function, which may be that of a class that is gone
_defaults: weakref.WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = weakref.WeakKeyDictionary()


def _call_defaults(call: Callable[..., Any]) -> dict[str, Any]:
    """Default values of the parameters of a `call` by name; None where there is none."""
    found = _defaults.get(call)
    if found is None:
        parameters = inspect.signature(call).parameters
        found = {name: None if p.default is p.empty else p.default for name, p in parameters.items()}
        _defaults[call] = found
    return found


def _with_training_named(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a `call` with `training`, and what comes after it, by name."""
    names = list(_call_defaults(call))[1:]
    if "training" not in names[: len(args)] or len(args) > len(names):
        return args, kwargs
    kinds = {parameter.kind for parameter in inspect.signature(call).parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return args, kwargs
    place = names.index("training")
    return args[:place], {**dict(zip(names[place:], args[place:], strict=False)), **kwargs}


def _needed(call: Callable[..., Any]) -> list[str]:
    """The parameters of a `call` that have no default and that nobody else gives."""
    parameters = inspect.signature(call).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in kinds and p.name != "training" and "mask" not in p.name
    ]


def _has_shape(value: Any) -> bool:
    leaves = tree.flatten(value)
    return bool(leaves) and all(hasattr(leaf, "shape") for leaf in leaves)


def _shape_of_any_batch(x: Any) -> tuple[int | None, ...]:
    """x's shape; a layer is built for every batch size, so that the one of a graph is not part of it."""
    return (None, *x.shape[1:]) if isinstance(x, Tensor) and x.shape else tuple(x.shape)


def _graph_of(structure: Any) -> Graph:
    for leaf in tree.flatten(structure):
        if isinstance(leaf, Tensor):
            return leaf.graph
    graph = current_graph()
    if graph is None:
        raise ValueError("expected tensors of a graph")
    return graph


def _takes_one(call: Callable[..., Any]) -> bool:
    """Whether one input is all that a call needs; a layer of several is built when it is called."""
    needed = [
        p
        for p in inspect.signature(call).parameters.values()
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    return len(needed) <= 1
