"""Bidirectional: a recurrent layer forwards and backwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv import ops
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.recurrent import RNN
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object

_MODES = ("sum", "mul", "concat", "ave", None)


@builtin
class Bidirectional(Layer):
    """Two recurrent layers over (n, steps, ...), one of which walks backwards, and both outputs merged.

    layer: made anew from its config, as `forward_layer`.  backward_layer: the same with go_backwards by default.
    merge_mode: "concat" (along the features), "sum", "mul", "ave", or None for both outputs.  With return_state, the
    states of both follow; initial_state has those of both.  Of masked steps, sequences are 0.  weights: of both.
    """

    carries_masks = True
    computes_integers = False
    _pydt_not_in_config = ("layer", "weights", "backward_layer")

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        for name, each in (("layer", layer), ("backward_layer", backward_layer)):
            if not isinstance(each, Layer) and not (each is None and name == "backward_layer"):
                raise ValueError(f"Bidirectional: {name}: expected a recurrent layer, got {each!r}")
        missing = [name for name in ("go_backwards", "return_sequences", "return_state") if not hasattr(layer, name)]
        if missing:
            raise ValueError(f"Bidirectional: layer: expected a recurrent layer with {missing[0]}, got {layer!r}")
        if merge_mode not in _MODES:
            raise ValueError(f"Bidirectional: merge_mode: expected one of {_MODES}, got {merge_mode!r}")
        super().__init__(**kwargs)
        self.forward_layer: Any = _copy_of(layer, "forward_")
        self.backward_layer: Any = backward_layer or _copy_of(layer, "backward_", go_backwards=True)
        self._pydt_check_layers()
        both: tuple[Any, Any] = (self.forward_layer, self.backward_layer)
        for each in both:
            each.zero_output_for_mask = each.return_sequences
        self.merge_mode = merge_mode
        self.stateful = getattr(layer, "stateful", False)
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.input_spec = layer.input_spec
        object.__setattr__(self, "_pydt_first_weights", weights)

    def _pydt_check_layers(self) -> None:
        forward, backward = self.forward_layer, self.backward_layer
        if forward.go_backwards == backward.go_backwards:
            raise ValueError(
                f"Bidirectional: backward_layer: expected go_backwards={not forward.go_backwards}, as it is not layer's"
            )
        for name in ("stateful", "return_sequences", "return_state"):
            own, other = getattr(forward, name, False), getattr(backward, name, False)
            if own != other:
                raise ValueError(f"Bidirectional: backward_layer: expected {name}={own} as layer has, got {other}")

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape)
        if self._pydt_first_weights:
            half = len(self._pydt_first_weights) // 2
            self.forward_layer.set_weights(self._pydt_first_weights[:half])
            self.backward_layer.set_weights(self._pydt_first_weights[half:])

    _pydt_first_weights: Any = None

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False) -> Any:
        half = None if initial_state is None else len(initial_state) // 2
        given = (None, None) if initial_state is None else (initial_state[:half], initial_state[half:])
        y, back = (
            layer(sequences, initial_state=own, mask=mask, training=training)
            for layer, own in zip((self.forward_layer, self.backward_layer), given, strict=True)
        )
        states: tuple[Any, ...] = ()
        if self.return_state:
            states = (*y[1:], *back[1:])
            y, back = y[0], back[0]
        if self.return_sequences:
            back = ops.flip(back, axis=1)
        output = self._pydt_merged(y, back)
        if not self.return_state:
            return output
        return (*output, *states) if self.merge_mode is None else (output, *states)

    def _pydt_merged(self, y: Any, back: Any) -> Any:
        if self.merge_mode == "concat":
            return ops.concatenate([y, back], axis=-1)
        if self.merge_mode == "sum":
            return y + back
        if self.merge_mode == "ave":
            return (y + back) / 2.0
        return y * back if self.merge_mode == "mul" else (y, back)

    @property
    def _pydt_outputs(self) -> int:
        return 2 if self.merge_mode is None else 1

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        return RNN.compute_output_spec(self, *args, **kwargs)  # type: ignore[arg-type]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        found = mask if self.return_sequences else None
        outputs = [found, found] if self.merge_mode is None else [found]
        if not self.return_state:
            return outputs if self.merge_mode is None else found
        return [*outputs, *[None] * (2 * len(self.forward_layer.state_size))]

    def reset_state(self) -> None:
        """Sets the states of stateful layers to 0."""
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    reset_states = reset_state

    @property
    def states(self) -> Any:
        """The states of stateful layers, forwards and backwards; None before the first batch."""
        own = self.forward_layer.states, self.backward_layer.states
        return None if None in own else (*own[0], *own[1])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "layer": serialize_keras_object(self.forward_layer),
            "backward_layer": serialize_keras_object(self.backward_layer),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Layer:
        layers = {
            name: deserialize_keras_object(config[name], custom_objects)
            for name in ("layer", "backward_layer")
            if config.get(name) is not None
        }
        return cls(**{**config, **layers})


def _copy_of(layer: Layer, prefix: str, **changes: Any) -> Layer:
    """A layer of the same config, with a name that begins so."""
    config = serialize_keras_object(layer)
    name = prefix + layer.name.removeprefix(prefix)
    config = {**config, "config": {**config["config"], "name": name, **changes}}
    config.pop("build_config", None)
    return deserialize_keras_object(config)
