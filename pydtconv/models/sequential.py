"""`Sequential`: layers one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import dtype_policies, tree
from pydtconv.layers.base import layer_tree
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.layers.input_layer import InputLayer
from pydtconv.models.model import Model
from pydtconv.models.network import Network
from pydtconv.naming import auto_name
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object
from pydtconv.support.strings import are_fingerprints


class Sequential(Model):
    """A chain of layers.  It is built at once when it begins with an Input, else by the first data that it sees."""

    _pydt_input_layer: InputLayer | None

    def __init__(self, layers: Sequence[Any] | None = None, trainable: bool = True, name: str | None = None) -> None:
        super().__init__(name=name)
        object.__setattr__(self, "_pydt_input_layer", None)
        for layer in layers or ():
            self.add(layer, rebuild=False)
        self._pydt_rebuild()
        if not trainable:
            self.trainable = False

    def _pydt_track(self, value: Any) -> None:
        """Layers that are attributes are no part of the chain, nor of the weights, as in Keras."""
        if not isinstance(value, Layer):
            super()._pydt_track(value)

    def _pydt_release(self, gone: Any) -> None:
        """What has left an attribute stays in the chain."""

    def add(self, layer: Any, rebuild: bool = True) -> None:
        """Puts a layer (or an Input) at the end."""
        if isinstance(layer, KerasTensor) and layer.node.is_input:
            layer = layer.node.operation
        if not isinstance(layer, Layer):
            raise ValueError(f"Sequential.add: expected a layer, got {layer!r}")
        if isinstance(layer, InputLayer):
            if self._pydt_input_layer is not None or self._pydt_layers:
                raise ValueError(f"Sequential.add: {layer!r}: an Input can only come first, and once")
            object.__setattr__(self, "_pydt_input_layer", layer)
            return
        if any(other.name == layer.name and other is not layer for other in self._pydt_layers):
            raise ValueError(f"Sequential.add: the model {self.name!r} has a layer named {layer.name!r} already")
        if not self._pydt_layers and self._pydt_input_layer is None:
            shape = getattr(layer, "_pydt_input_shape_arg", None)
            if shape is not None:
                object.__setattr__(self, "_pydt_input_layer", InputLayer(shape=shape))
            elif isinstance(layer, Model) and layer._pydt_network is not None:
                object.__setattr__(self, "_pydt_input_layer", InputLayer(batch_shape=layer.input_shape))
        before = self.__dict__.get("_pydt_network"), self.built
        self._pydt_layers.append(layer)
        try:
            self._pydt_edited(rebuild)
        except Exception:  # it does not fit: the model is as it was
            self._pydt_layers.pop()
            object.__setattr__(self, "_pydt_network", before[0])
            self.built = before[1]
            layer_tree.changed()
            raise

    def pop(self, rebuild: bool = True) -> Layer:
        """Takes the last layer off."""
        if not self._pydt_layers:
            raise ValueError(f"Sequential.pop: the model {self.name!r} has no layers")
        layer = self._pydt_layers.pop()
        self._pydt_edited(rebuild)
        return layer

    def _pydt_edited(self, rebuild: bool) -> None:
        """Other layers are there: steps of this model, and of those around it, are traced anew."""
        object.__setattr__(self, "_pydt_edits", self.__dict__.get("_pydt_edits", 0) + 1)
        layer_tree.changed()
        if rebuild:
            self._pydt_rebuild()

    def _pydt_rebuild(self) -> None:
        object.__setattr__(self, "_pydt_network", None)
        self.built = False
        if self._pydt_input_layer is not None and self._pydt_layers:
            self._pydt_build_on(self._pydt_input_layer.output)

    def _pydt_build_on(self, x: Any) -> None:
        y = x
        for layer in self._pydt_layers:
            try:
                y = layer(y)
            except NotImplementedError:
                if type(layer).compute_output_spec is Layer.compute_output_spec:
                    raise
                return  # a layer of a user's whose shapes nobody knows: the layers are called one after the other
        object.__setattr__(self, "_pydt_network", Network(x, y))
        self.built = True
        auto_name("Functional")  # Keras makes one here, so that later ones count from it

    def build(self, input_shape: Any = None) -> None:
        """Builds the layers for an input shape with its batch (None where it is not known)."""
        if self._pydt_network is not None:
            return
        if input_shape is None or not self._pydt_layers:
            raise ValueError(f"Sequential.build: the model {self.name!r} needs layers and an input shape")
        self._pydt_build_for(input_shape)

    def _pydt_build_for(self, input_shape: Any, dtype: str | None = None) -> None:
        object.__setattr__(self, "_pydt_input_layer", InputLayer(batch_shape=tuple(input_shape), dtype=dtype))
        assert self._pydt_input_layer is not None
        self._pydt_build_on(self._pydt_input_layer.output)

    def _pydt_check_and_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._pydt_check_given(args, kwargs)
        x = args[0] if args else kwargs["inputs"]
        if self._pydt_network is not None or isinstance(x, (Mapping, list, tuple)):
            return
        if not hasattr(x, "shape"):
            raise ValueError(f"{type(self).__name__} {self.name!r}: expected a tensor, got {x!r}")
        shape = (None, *x.shape[1:])
        if type(self).build is Sequential.build and self._pydt_layers and not self._pydt_layers[0].autocast:
            self._pydt_build_for(shape, "int64" if str(x.dtype) == "int64" else None)  # fingerprints keep all bits
        else:
            self.build(shape)

    def _pydt_note_texts(self, inputs: Any) -> None:
        """The first batch of strings makes an Input for them."""
        if self._pydt_network is None and isinstance(inputs, np.ndarray) and are_fingerprints(inputs):
            self._pydt_build_for((None, *inputs.shape[1:]), "string")
        super()._pydt_note_texts(inputs)

    def _pydt_input_dtypes(self, inputs: Any) -> list[str | None]:
        """Images are floats where an Input does not say otherwise; what a dict holds besides stays what it is."""
        if self._pydt_network is None and not isinstance(inputs, (Mapping, list, tuple)):
            return [None] * len(tree.flatten(inputs))
        return super()._pydt_input_dtypes(inputs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """A dict or list, such as images with masks, goes from layer to layer, where no images built the model."""
        if self._pydt_network is not None:
            return super().call(inputs, training, mask)
        y: Any = inputs
        for layer in self._pydt_layers:
            takes = training is not None and "training" in inspect.signature(layer.call).parameters
            y = layer(y, training=training) if takes else layer(y)
        return y

    def _pydt_takes(self, wanted: tuple[int | None, ...], got: tuple[int | None, ...]) -> bool:
        """Extents may be others than those that built it, where the layers allow it."""
        return len(wanted) == len(got)

    @property
    def layers(self) -> list[Layer]:
        return list(self._pydt_layers)

    def get_config(self) -> dict[str, Any]:
        first = [] if self._pydt_input_layer is None else [self._pydt_input_layer]
        config: dict[str, Any] = {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": dtype_policies.serialize(self.dtype_policy),
        }
        config["layers"] = [serialize_keras_object(layer) for layer in [*first, *self._pydt_layers]]
        if self._pydt_network is not None:
            config["build_input_shape"] = self.input_shape
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        layers: list[Any] = []
        for i, layer in enumerate(config["layers"]):  # one that stands there twice is one
            first = config["layers"].index(layer)
            layers.append(layers[first] if first < i else deserialize_keras_object(layer, custom_objects))
        model = cls(layers, name=config.get("name"))
        shape = config.get("build_input_shape")
        if model._pydt_network is None and shape and model._pydt_layers:
            model.build(tuple(shape))
        if not config.get("trainable", True):  # of the model itself: each layer's own config says what it is
            object.__setattr__(model, "_pydt_trainable", False)
        return model
