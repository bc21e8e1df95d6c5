"""`Model`: layers that are trained together; written as a subclass with `call`, or made of symbolic tensors.

`Functional` is the class of those that are made of symbolic tensors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.dtypes import FLOATING
from pydtconv.layers.base import layer_tree
from pydtconv.layers.base.input_spec import check_inputs, shape_hint
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.models.code_of_users import runs_no_code_of_users
from pydtconv.models.functional_config import functional_config, functional_from_config
from pydtconv.models.network import Network, cut_at
from pydtconv.models.state_tree import set_state_tree, state_tree
from pydtconv.models.summary import print_summary
from pydtconv.serialization.objects import serialize_keras_object
from pydtconv.serialization.registry import custom_object_scope
from pydtconv.support.strings import are_fingerprints, reads_strings, without_strings
from pydtconv.trainers import Trainer


class Model(Trainer, Layer):
    """A group of layers with training and saving.

    `Model(inputs=..., outputs=...)` makes a functional model of the calls between symbolic tensors (see `Input`).  A
    subclass makes its layers in `__init__` and uses them in `call(inputs, training=None)`; it may also pass inputs and
    outputs to `super().__init__`.

    Threads may share a model: predictions, evaluations, calls, steps of training, reading and writing of weights take
    turns, also with those of models that share layers; each call returns what it returns alone.  One `fit` at a time.
    """

    #: the recorded calls of a functional model; None for one that defines `call`
    _pydt_network: Network | None = None
    _pydt_former: tuple[str, ...] = (
        *Layer._pydt_former,
        "_pydt_network",
        "_pydt_input_layer",
        "_pydt_edits",
        "_pydt_in_order",
        "_pydt_compile_config",
        "_pydt_compiled_metrics",
        "_pydt_targets",
        "_pydt_loss_tracker",
        "_pydt_loss_trackers",
    )

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Model and _is_functional(args, kwargs):
            return Layer.__new__(Functional, *args, **kwargs)
        return Layer.__new__(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        inputs = outputs = None
        if _is_functional(args, kwargs):
            inputs = kwargs.pop("inputs", args[0] if args else None)
            outputs = kwargs.pop("outputs", args[-1] if len(args) > 1 else None)
            if len(args) == 3:
                outputs, kwargs["name"] = args[1], args[2]
        elif args:
            raise TypeError(
                f"{type(self).__name__}: expected inputs and outputs or no positional arguments, got {args!r}"
            )
        trainable = kwargs.pop("trainable", None)
        Layer.__init__(self, **kwargs)
        Trainer.__init__(self)
        if inputs is not None:
            self._pydt_set_network(inputs, outputs)
        if trainable is not None:
            self.trainable = trainable

    def _pydt_set_network(self, inputs: Any, outputs: Any) -> None:
        if any(isinstance(x, KerasTensor) and not x.node.is_input for x in tree.flatten(inputs)):
            inputs, outputs = cut_at(inputs, outputs)
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:  # which Keras gives by itself, too
            outputs = outputs[0]
        network, known = Network(inputs, outputs), set(map(id, self._pydt_layers))
        object.__setattr__(self, "_pydt_network", network)
        self._pydt_layers.extend(layer for layer in network.layers if id(layer) not in known)
        layer_tree.changed()
        self.built = True

    # -- copies -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle gets: first the operations in the order of their calls.

        Each then finds what it was called on done, so that deep networks take no deep recursion.
        """
        state = super().__getstate__()
        first = self._pydt_layers if self._pydt_network is None else self.operations
        return {"_pydt_in_order": list(first), **state}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "_pydt_in_order"})

    # -- calling -------------------------------------------------------------------------------------------------------

    def _pydt_autocast(self, leaf: Any, dtype: str | None = None) -> Any:
        """The layers of a functional model cast for themselves: one that is float32 may read its inputs."""
        return leaf if self._pydt_network is not None else super()._pydt_autocast(leaf, dtype)

    @property
    def _pydt_array_dtype(self) -> str:
        inputs = () if self._pydt_network is None else self._pydt_network.flat_inputs
        return "float64" if any(x.dtype == "float64" for x in inputs) else self.dtype

    def _pydt_call_on_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool) -> Any:
        """A model of the package's own layers runs the step of `predict`, so that it is traced and planned once."""
        if not training and len(args) == 1 and kwargs.keys() <= {"training"} and self._pydt_runs_no_code_of_users:
            found = self._pydt_called_on(args[0])
            if found is not None:
                return found
        return super()._pydt_call_on_arrays(args, kwargs, training)

    @property
    def _pydt_runs_no_code_of_users(self) -> bool:
        """Whether a call runs no Python code but that of this package, which does the same each time."""
        return layer_tree.known(self, "runs no code of users", runs_no_code_of_users)

    if TYPE_CHECKING:  # a subclass's takes what it needs

        def call(self, *args: Any, **kwargs: Any) -> Any: ...

    else:

        def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
            """What the model computes: to be written by a subclass that is made without inputs and outputs."""
            if self._pydt_network is None:
                raise NotImplementedError(f"model {type(self).__name__} has no call(), and no inputs and outputs")
            return self._pydt_network.replay(self._pydt_standardized(inputs), training)

    def build(self, input_shape: Any) -> None:
        if self._pydt_network is None:
            self._pydt_build_by_calling(input_shape)

    def _pydt_convert_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._pydt_network is not None and any(map(reads_strings, self._pydt_network.flat_inputs)):
            args, kwargs = tree.map_structure(without_strings, (args, kwargs))
            self._pydt_note_texts(args[0] if args else kwargs.get("inputs"))
        return args, kwargs

    def _pydt_note_texts(self, inputs: Any) -> None:
        """Lets layers know how many words the texts of a batch have, before it is traced."""
        if self._pydt_network is not None and self._pydt_network.readers:
            flat = self._pydt_flat(inputs)
            for place, layer in self._pydt_network.readers:
                if are_fingerprints(flat[place]):
                    layer.note_longest(np.asarray(flat[place]))

    def _pydt_check_and_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # a model that has not defined `build` is built by its first call
        if type(self).build is not Model.build:
            super()._pydt_check_and_build(args, kwargs)
            return
        inputs = args[0] if args else kwargs.get("inputs")
        if self.input_spec is not None:
            check_inputs(self, self.input_spec, inputs)
        if self._pydt_build_shapes is None:
            shapes = tree.map_structure(lambda x: (None, *x.shape[1:]) if hasattr(x, "shape") else None, inputs)
            object.__setattr__(self, "_pydt_build_shapes", shapes)

    def _pydt_standardized(self, inputs: Any) -> list[Any]:
        """Tensors for the network's flat inputs.  Raises ValueError where structure, rank or extents do not fit."""
        assert self._pydt_network is not None
        return [
            None if x is None else self._pydt_fitted(x, to)
            for x, to in zip(self._pydt_flat(inputs), self._pydt_network.flat_inputs, strict=True)
        ]

    def _pydt_input_dtypes(self, inputs: Any) -> list[str | None]:
        """Of each array of inputs the dtype in which the model reads it, None for its own floats.

        That is its Input's; a model of a class of its own reads integers as they are.
        """
        leaves = tree.flatten(inputs)
        dtypes: list[str | None] = [None] * len(leaves)
        if self._pydt_network is None:
            dtypes = [leaf.dtype.name for leaf in leaves]
        else:
            places = self._pydt_flat(tree.pack_sequence_as(inputs, list(range(len(leaves)))))
            for place, tensor in zip(places, self._pydt_network.flat_inputs, strict=True):
                dtypes[place] = tensor.dtype
        return dtypes

    def _pydt_flat(self, inputs: Any) -> list[Any]:
        """The inputs in the order of the network's.  Raises ValueError where the structure does not fit."""
        assert self._pydt_network is not None
        wanted = self._pydt_network.inputs
        if isinstance(inputs, dict) and not isinstance(wanted, dict):
            wanted = {x.name: x for x in self._pydt_network.flat_inputs}
            flat = [self._pydt_picked(inputs, wanted)[name] for name in wanted]
        else:
            flat = tree.flatten(self._pydt_picked(inputs, wanted))
        expected = self._pydt_network.flat_inputs
        if len(flat) != len(expected):
            alike = len(expected) == 1 and len({getattr(x, "shape", None) for x in flat}) == 1
            hint = "; a list is of inputs, np.stack makes one array of samples" if alike and flat else ""
            raise ValueError(f"model {self.name!r}: expected {len(expected)} inputs, got {len(flat)}{hint}")
        for x, wanted in zip(flat, expected, strict=True):
            if x is None and not wanted.node.operation.optional:  # type: ignore[attr-defined]
                raise ValueError(f"model {self.name!r}: input {wanted.name!r}: expected a tensor, got None")
        return flat

    def _pydt_picked(self, inputs: Any, wanted: Any) -> Any:
        """Inputs in the wanted structure, without entries of dicts that it does not have.

        Other lists are taken in the order of the flat inputs where no dict has another order.  Raises ValueError.
        """
        if isinstance(wanted, dict) and isinstance(inputs, dict):
            missing = [key for key in wanted if key not in inputs]
            if missing:
                raise ValueError(f"model {self.name!r}: input {missing[0]!r} is missing: got {sorted(inputs)}")
            return {key: self._pydt_picked(inputs[key], part) for key, part in wanted.items()}
        many = isinstance(wanted, (list, tuple)) and isinstance(inputs, (list, tuple))
        if many and len(wanted) == len(inputs):
            return [self._pydt_picked(*pair) for pair in zip(inputs, wanted, strict=True)]
        if isinstance(inputs, dict) or not _are_in_order(wanted):
            names, given = tree.map_structure(lambda x: x.name, wanted), tree.map_structure(lambda x: "...", inputs)
            raise ValueError(f"model {self.name!r}: inputs: expected the structure {names}, got {given}")
        return inputs

    def _pydt_fitted(self, x: Any, to: KerasTensor) -> Any:
        """x in the input's dtype, with an axis of extent 1 at the end added or dropped where that makes it fit.

        Floats of another width stay what they are, for layers cast them to their own, but where an Input is float64.
        """
        floats = x.dtype in FLOATING and to.dtype in FLOATING and to.dtype != "float64"
        if x.dtype != to.dtype and not (floats and self._pydt_array_dtype == self.dtype):
            x = ops.cast(x, to.dtype)
        shape = tuple(x.shape)
        if len(shape) == len(to.shape) - 1 and to.shape[-1] == 1:
            x = ops.reshape(x, (*(-1 if e is None else e for e in shape), 1))
        elif len(shape) == len(to.shape) + 1 and shape[-1] == 1:
            x = ops.reshape(x, tuple(-1 if e is None else e for e in shape[:-1]))
        if not self._pydt_takes(to.shape, tuple(x.shape)):
            shape = tuple(x.shape)
            told = f"expected shape {to.shape}, got {shape}{shape_hint(to.shape, shape)}"
            raise ValueError(f"model {self.name!r}: input {to.name!r}: {told}")
        return x

    def _pydt_takes(self, wanted: tuple[int | None, ...], got: tuple[int | None, ...]) -> bool:
        """Whether an input of a shape can be read as one of the wanted shape; the batch is free."""
        same = len(wanted) == len(got)
        return same and all(e is None or f is None or e == f for e, f in zip(wanted[1:], got[1:], strict=True))

    # -- layers --------------------------------------------------------------------------------------------------------

    @property
    def layers(self) -> list[Layer]:
        """The layers directly inside; of a functional model first those of its graph, in its order."""
        first = [] if self._pydt_network is None else self._pydt_network.layers
        return list({id(layer): layer for layer in (*first, *self._pydt_layers)}.values())

    @property
    def operations(self) -> list[Any]:
        """The layers and single ops of a functional model."""
        return list(self._pydt_network.operations) if self._pydt_network is not None else self.layers

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """The layer of a name or at an index of `layers`.  Raises ValueError when there is none."""
        if (name is None) == (index is None):
            raise ValueError(f"get_layer: expected either name or index, got {name!r} and {index!r}")
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f"get_layer: index {index}: model {self.name!r} has {len(layers)} layers")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"get_layer: model {self.name!r} has no layer {name!r}: it has {[x.name for x in layers]}")

    def _pydt_graph_attribute(self, name: str) -> Network:
        if self._pydt_network is None:
            raise AttributeError(f"model {self.name!r} has no {name}: it is not made of symbolic tensors")
        return self._pydt_network

    @property
    def inputs(self) -> list[KerasTensor]:
        return self._pydt_graph_attribute("inputs").flat_inputs

    @property
    def outputs(self) -> list[KerasTensor]:
        return self._pydt_graph_attribute("outputs").flat_outputs

    @property
    def input(self) -> Any:
        network = self._pydt_graph_attribute("input")
        return _single(network.inputs)

    @property
    def output(self) -> Any:
        network = self._pydt_graph_attribute("output")
        return _single(network.outputs)

    @property
    def input_shape(self) -> Any:
        return tree.map_structure(lambda x: x.shape, _single(self._pydt_graph_attribute("input_shape").inputs))

    @property
    def output_shape(self) -> Any:
        return tree.map_structure(lambda x: x.shape, _single(self._pydt_graph_attribute("output_shape").outputs))

    @property
    def input_names(self) -> list[str]:
        return [x.name for x in self.inputs]

    @property
    def output_names(self) -> list[str]:
        return [x._keras_history.operation.name for x in self.outputs if x._keras_history is not None]

    # -- summary, configs, files --------------------------------------------------------------------------------------

    def summary(
        self,
        line_length: int | None = None,
        positions: list[float] | None = None,
        print_fn: Callable[[str], Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: tuple[str, str] | None = None,
    ) -> None:
        """Prints a table of the layers with output shapes and numbers of parameters."""
        print_summary(self, line_length, positions, print_fn, expand_nested, show_trainable, layer_range)

    def get_config(self) -> dict[str, Any]:
        if self._pydt_network is not None and type(self).__init__ is Model.__init__:
            return functional_config(self._pydt_network, self.name, self.trainable)
        return super().get_config()

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """A model made of `get_config`'s result."""
        with custom_object_scope(custom_objects or {}):
            if "input_layers" in config:
                return functional_from_config(cls, config)
            return super().from_config(config)

    def to_json(self, **kwargs: Any) -> str:
        """The model's config as JSON; kwargs are json.dumps's."""
        return json.dumps(serialize_keras_object(self), **kwargs)

    def save(self, filepath: str | Path | IO[bytes], overwrite: bool = True, **kwargs: Any) -> None:
        """Writes config and weights to a `.keras` file; see saving.save_model."""
        from pydtconv.models.model_files import save_model

        save_model(self, filepath, overwrite=overwrite, **kwargs)

    def save_weights(self, filepath: str | Path, overwrite: bool = True, max_shard_size: float | None = None) -> None:
        """Writes the weights to a `.weights.h5` file in Keras's layout, whole or not at all.

        max_shard_size: GiB of each of several files; see saving.save_weights.
        """
        from pydtconv.models.weight_files import save_weights

        save_weights(self, filepath, overwrite, max_shard_size)

    def load_weights(self, filepath: str | Path, skip_mismatch: bool = False, **kwargs: Any) -> None:
        """Reads the weights of a `.weights.h5`, `.keras` or `.h5` file (of Keras 2 and 3), or of a network of the zoo
        those of a `.safetensors` or `.pth` file.

        Where they do not fit, raises ValueError naming layer, expected and found shapes, before anything is changed;
        with skip_mismatch those layers keep their weights instead.  by_name, objects_to_skip: see saving.load_weights.
        """
        from pydtconv.models.weight_files import load_weights

        by_name, skipped = kwargs.pop("by_name", False), kwargs.pop("objects_to_skip", None)
        if kwargs:
            raise ValueError(f"load_weights: unknown arguments: {', '.join(map(repr, kwargs))}")
        load_weights(self, filepath, skip_mismatch=skip_mismatch, by_name=by_name, objects_to_skip=skipped)

    def get_state_tree(self, value_format: str = "backend_tensor") -> dict[str, Any]:
        """The values of trainable, non-trainable, optimizer's and metrics' variables, nested by their paths.

        value_format: "backend_tensor" or "numpy_array", which are the same here: arrays.
        Raises ValueError where two variables have one path.
        """
        return state_tree(self, value_format)

    def set_state_tree(self, state_tree: Mapping[str, Any]) -> None:
        """Sets variables as `get_state_tree` gave them; parts and paths may be left out.

        Raises ValueError, before anything is changed, for paths that the model has not.
        """
        set_state_tree(self, state_tree)

    def export(
        self,
        filepath: str | Path,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes what `predict` computes to an ONNX file: export("net.onnx", format="onnx").

        Images keep their layout, the batch is free.  input_signature: `InputSpec`s, for inputs whose shapes are not
        known.  opset_version: of ONNX's operators.  verbose: whether to print a line.

        Raises ValueError for another format, and for what ONNX has no operator for, by its name and layer.
        """
        if format != "onnx":
            raise ValueError(f"export: format: expected 'onnx', got {format!r}: pydtconv writes no other format")
        opset = kwargs.pop("opset_version", None)
        if kwargs:
            raise ValueError(f"export: unknown arguments: {', '.join(map(repr, kwargs))}")
        from pydtconv.interchange.onnx.exporter import export_onnx

        export_onnx(self, filepath, input_signature, opset)
        if verbose:
            print(f"Saved ONNX artifact at '{filepath}'.")

    def _pydt_children(self, *more: str) -> Iterator[tuple[str, Any]]:
        if self._pydt_network is None:
            yield from super()._pydt_children("layers", *more)
        else:
            yield "layers", self.layers
            yield from super()._pydt_children(*more)


class Functional(Model):
    """A model of the recorded calls between symbolic inputs and outputs (single tensors, lists or dicts)."""

    _pydt_first_call = 1

    @property
    def layers(self) -> list[Any]:
        assert self._pydt_network is not None
        return self._pydt_network.layers


def _is_functional(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return (
        len(args) in (2, 3) or (len(args) == 1 and "outputs" in kwargs) or ("inputs" in kwargs and "outputs" in kwargs)
    )


def _are_in_order(structure: Any) -> bool:
    """Whether flattening a structure leaves all in the order in which it stands there: dicts are sorted."""
    if isinstance(structure, dict):
        places = type(structure)((key, place) for place, key in enumerate(structure))
        return tree.flatten(places) == list(places.values()) and all(map(_are_in_order, structure.values()))
    return not isinstance(structure, (list, tuple)) or all(map(_are_in_order, structure))


def _single(structure: Any) -> Any:
    return structure[0] if isinstance(structure, list) and len(structure) == 1 else structure
