"""`merge` and `Merge` of Keras 1, and Keras 1's names of convolutions."""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import LAYERS, SIZES, old_sizes, translated


class _Merge(layers.Layer):
    """What a class of a script that has `_merge_function(inputs)` is made of."""

    def call(self, inputs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(f"{type(self).__name__}: expected a list of two tensors or more, got {inputs!r}")
        return self._merge_function(list(inputs))

    def _merge_function(self, inputs: list[Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected a method _merge_function(inputs)")


_MODES = {
    "sum": layers.Add, "mul": layers.Multiply, "ave": layers.Average, "max": layers.Maximum,
}  # fmt: skip


def Merge(
    layers: Any = None,
    mode: Any = "sum",
    concat_axis: int = -1,
    dot_axes: Any = -1,
    output_shape: Any = None,
    output_mask: Any = None,
    arguments: dict[str, Any] | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> Any:
    """The layer of a mode: "sum", "mul", "ave", "max", "concat", "dot", "cos", or a function of a list of tensors.

    Raises NotImplementedError for layers: a Sequential has one input.
    """
    if layers is not None or kwargs or output_mask is not None:
        raise NotImplementedError(
            "Merge(layers): expected mode= alone: a Sequential has one input; write "
            "Model([left.input, right.input], concatenate([left.output, right.output]))"
        )
    return _merging(mode, concat_axis, dot_axes, output_shape, arguments, name)


def _merging(mode: Any, concat_axis: int, dot_axes: Any, output_shape: Any, arguments: Any, name: str | None) -> Any:
    noticed.once("merge", "merge and Merge are old names: write add, multiply, concatenate, dot, average or maximum")
    if callable(mode):
        return layers.Lambda(mode, output_shape=output_shape, arguments=arguments, name=name)
    if mode == "concat":
        return layers.Concatenate(axis=concat_axis, name=name)
    if mode in ("dot", "cos"):
        axes = tuple(x[0] if isinstance(x, (list, tuple)) else x for x in _pair(dot_axes))
        return layers.Dot(axes, normalize=mode == "cos", name=name)
    if mode not in _MODES:
        raise ValueError(
            f"merge: mode: expected a function or one of {', '.join(_MODES)}, concat, dot, cos, got {mode!r}"
        )
    return _MODES[mode](name=name)


def _pair(axes: Any) -> Any:
    return (axes, axes) if isinstance(axes, int) else axes


def merge(
    inputs: Any,
    mode: Any = "sum",
    concat_axis: int = -1,
    dot_axes: Any = -1,
    output_shape: Any = None,
    output_mask: Any = None,
    arguments: dict[str, Any] | None = None,
    name: str | None = None,
) -> Any:
    """The tensors merged by a mode, as by `Merge`."""
    return _merging(mode, concat_axis, dot_axes, output_shape, arguments, name)(inputs)


class _OldName(type):
    """The class of a layer under Keras 1's name: calling it makes the layer, whose class is the new one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        new = vars(cls).get("stands_for")
        if new is None:  # a class of the script
            return super().__call__(*args, **kwargs)
        if cls.__name__.startswith("Deconvolution") and len(args) > 3 and not isinstance(args[3], int):
            kwargs, args = {"output_shape": args[3], **kwargs}, args[:3] + args[4:]
        args, kwargs = old_sizes(new.__name__, args, kwargs, new.__name__ in SIZES)
        return new(*args, **translated(cls.__name__, LAYERS[new.__name__], kwargs))

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, vars(cls).get("stands_for", ())) or super().__instancecheck__(instance)


#: Keras 1's names of layers
OLD_CLASSES = {
    "Convolution1D": "Conv1D", "Convolution2D": "Conv2D", "Convolution3D": "Conv3D", "AtrousConvolution1D": "Conv1D",
    "AtrousConvolution2D": "Conv2D", "AtrousConv2D": "Conv2D", "AtrousConv1D": "Conv1D",
    "Deconvolution2D": "Conv2DTranspose", "Deconv2D": "Conv2DTranspose", "SeparableConvolution2D": "SeparableConv2D",
    "TimeDistributedDense": "Dense", "CuDNNLSTM": "LSTM", "CuDNNGRU": "GRU",
}  # fmt: skip


def table() -> dict[str, Any]:
    """The names in `keras.layers`."""
    found: dict[str, Any] = {"Merge": Merge}
    for name, new in OLD_CLASSES.items():
        cls = getattr(layers, new)
        found[name] = _OldName(name, (cls,), {"stands_for": cls, "__module__": __name__})
    return found
