"""Layers made of others: Wrapper, TimeDistributed, Pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from pydtconv import ops
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.masks import mask_of
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object


@builtin
class Wrapper(Layer):
    """A layer around another one, `layer`; subclasses write `call`."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(f"{type(self).__name__}: layer: expected a layer, got {layer!r}")
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any) -> None:
        """Builds the layer for inputs of this shape."""
        if not self.layer.built:
            self.layer.build(input_shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layer": serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Layer:
        arguments = {key: value for key, value in config.items() if key not in ("layer", "trainable")}
        layer, built_for = config["layer"], None
        if isinstance(layer, dict):  # the wrapper builds it, and names its variables
            built_for = (layer.get("build_config") or {}).get("input_shape")
            layer = {key: value for key, value in layer.items() if key != "build_config"}
        inner = deserialize_keras_object(layer, custom_objects)
        if built_for is not None:
            object.__setattr__(inner, "_pydt_build_shapes", built_for)
        wrapper = cls(inner, **arguments)
        if config.get("trainable") is False:  # of the wrapper itself: the layer's own config says what it is
            object.__setattr__(wrapper, "_pydt_trainable", False)
        return wrapper


@builtin
class TimeDistributed(Wrapper):
    """The layer on each step of (n, steps, ...), such as the frames of videos, with the same weights.

    Batch normalization inside takes its statistics of all steps together; Keras 3 takes those of each step.
    """

    carries_masks = True

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 3:
            raise ValueError(
                f"TimeDistributed {self.name!r}: expected inputs (n, steps, ...), got shape {tuple(input_shape)}"
            )
        super().build((input_shape[0], *input_shape[2:]))

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """mask (n, steps, ...): the layer is given each step's, where its `call` takes one."""
        n, steps, *rest = inputs.shape
        given = {}
        if mask is not None:
            if tuple(mask.shape[:2]) != (n, steps):
                raise ValueError(
                    f"TimeDistributed {self.name!r}: mask: expected ({n}, {steps}, ...) for an input of shape "
                    f"{tuple(inputs.shape)}, got shape {tuple(mask.shape)}"
                )
            if _takes(self.layer, "mask"):
                given["mask"] = ops.reshape(mask, (n * steps, *mask.shape[2:]))
        y = self.layer(ops.reshape(inputs, (n * steps, *rest)), **given)
        return ops.reshape(y, (n, steps, *y.shape[1:]))


@builtin
class Pipeline(Layer):
    """Layers one behind the other, such as changes of images before a network."""

    def __init__(self, layers: Sequence[Any], name: str | None = None) -> None:
        super().__init__(name=name)
        for layer in layers:
            if not callable(layer):
                raise ValueError(f"Pipeline: layers: expected layers, got {layer!r}")
        self._pipeline_layers = list(layers)

    @property
    def layers(self) -> list[Any]:
        """The layers, in their order."""
        return list(self._pipeline_layers)

    def call(self, inputs: Any, training: bool = True, mask: Any = None) -> Any:
        """mask: of the inputs; behind the first layer it is the mask of what the layer before gave."""
        x = inputs
        for layer in self._pipeline_layers:
            given = {"training": training} if mask is None else {"training": training, "mask": mask}
            x = layer(x, **{key: value for key, value in given.items() if _takes(layer, key)})
            mask = mask_of(x)
        return x

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "layers": [serialize_keras_object(layer) for layer in self._pipeline_layers]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Layer:
        layers = config.get("layers")
        if not isinstance(layers, (list, tuple)):
            raise ValueError(f"{cls.__name__}.from_config: layers: expected a list of configs, got {layers!r}")
        return cls([deserialize_keras_object(each, custom_objects) for each in layers], config.get("name"))


def _takes(layer: Any, argument: str) -> bool:
    return isinstance(layer, Layer) and argument in inspect.signature(layer.call).parameters
