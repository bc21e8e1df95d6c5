"""Identity, and Lambda: a function as a layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from pydtconv import activations, tree
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization import lambdas
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.objects import lambda_as_data
from pydtconv.serialization.registry import custom_object_scope


@builtin
class Identity(Layer):
    """The input itself."""

    carries_masks = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        return inputs


def _agree(got: Sequence[int | None], expected: Sequence[int | None]) -> bool:
    return all(a == b or None in (a, b) for a, b in zip(got, expected, strict=True))


@builtin
class Lambda(Layer):
    """function(inputs, **arguments), written in `pydtconv.ops`; it may take `training`.

    output_shape is Keras's, without the batch; shapes are inferred here, and checked against it where it is given, but
    for extents of None.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(function):
            raise ValueError(f"Lambda: function: expected a callable, got {function!r}")
        if mask is not None:
            raise ValueError("Lambda: masks are not supported: expected mask=None")
        self.function = function
        self.output_shape = output_shape
        self.mask = None
        self.arguments = dict(arguments or {})
        self._pydt_needs_no_build()

    def _pydt_own_config(self) -> dict[str, Any]:
        """The config; the code of lambdas as this layer of Keras has it, which is not as elsewhere."""
        config = super()._pydt_own_config()
        for name in ("function", "output_shape"):
            value = getattr(self, name)
            if lambdas.is_lambda(value):
                config[name] = lambda_as_data(value) or config[name]
        return config

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None, safe_mode: bool | None = None
    ) -> Any:
        """The layer of a config; safe_mode: False takes the code of lambda functions in it."""
        unsafe = lambdas.safe_mode_scope(False) if safe_mode is False else nullcontext()
        if config.get("function") in activations.__all__:  # whose configs are names
            config = {**config, "function": activations.get(config["function"])}
        with unsafe, custom_object_scope(custom_objects or {}):
            return super().from_config(config)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        kwargs = dict(self.arguments)
        if "training" in inspect.signature(self.function).parameters:
            kwargs["training"] = training
        outputs = self.function(inputs, **kwargs)
        if self.output_shape is not None and not callable(self.output_shape):
            expected = tuple(self.output_shape)
            for y in tree.flatten(outputs):
                got = tuple(y.shape[1:])
                if tree.is_shape(expected) and not (len(got) == len(expected) and _agree(got, expected)):
                    raise ValueError(f"Lambda {self.name!r}: output_shape: expected {expected}, got {got}")
        return outputs
