"""How networks are put together: features, a top or a pooling, weights of a file.

A network of `keras.applications` is one row: its name, the function of its features, and what differs from the rule.
Arguments, defaults, layer names and weights are Keras's; tests build both and compare them.  `own.py` has the rule of
the zoo's own networks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydtconv import Input, KerasTensor, Model, Sequential, config, initializers, layers, replica, utils
from pydtconv.models.weight_files import Leeway, read_file
from pydtconv.support.messages import tell

#: from (x, classes, activation) to the network's output
Top = Callable[[Any, int, Any], Any]


class Arguments(NamedTuple):
    """The arguments that all networks have."""

    include_top: bool
    weights: str | os.PathLike[str] | None
    input_tensor: Any
    input_shape: Any
    pooling: str | None
    classes: int
    classifier_activation: Any
    name: str | None


def channel_axis() -> int:
    return 3 if config.image_data_format() == "channels_last" else 1


def channels(x: Any) -> int:
    return x.shape[channel_axis()]


def batch_norm(x: Any, name: str | None = None, **options: Any) -> Any:
    return layers.BatchNormalization(axis=channel_axis(), name=name, **options)(x)


def rows_and_columns(shape: Any) -> tuple[int | None, int | None]:
    """Those of a shape without the batch."""
    return tuple(shape[:2]) if config.image_data_format() == "channels_last" else tuple(shape[1:])


def before_stride(x: Any, kernel: int) -> tuple[tuple[int, int], ...]:
    """Padding that lets a "valid" convolution of stride 2 see what TensorFlow's "same" sees."""
    half = kernel // 2
    adjust = [1 if extent is None else 1 - extent % 2 for extent in rows_and_columns(x.shape[1:])]
    return tuple((half - a, half) for a in adjust)


def make_divisible(value: float, divisor: int = 8) -> int:
    """value rounded to a multiple of the divisor, by no more than 10% down."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def dense_top(
    dropout: float = 0.0,
    pool: str | None = "avg_pool",
    make_initializer: Callable[[], Any] = initializers.GlorotUniform,
) -> Top:
    """Global average pooling, dropout where it is not 0, and a dense layer, which gets an initializer of its own."""

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = layers.GlobalAveragePooling2D(name=pool)(x)
        if dropout > 0:
            x = layers.Dropout(dropout, name="top_dropout")(x)
        initializer = make_initializer()
        return layers.Dense(classes, activation=activation, kernel_initializer=initializer, name="predictions")(x)

    return top


def shape_of_images(given: Arguments, size: int | None, least: int) -> tuple[int | None, ...]:
    """The input shape: the one that is given, else size x size for a network with a top, else any."""
    last, shape = config.image_data_format() == "channels_last", given.input_shape
    name, top = given.name, given.include_top and size is not None
    if shape is None:
        extent = size if top else None
        return (extent, extent, 3) if last else (3, extent, extent)
    shape = tuple(shape)
    if len(shape) != 3:
        raise ValueError(f"{name}: input_shape: expected three integers, got {given.input_shape!r}")
    count = shape[-1 if last else 0]
    if count not in (1, 3):
        warnings.warn(f"{name}: input_shape: expected 1 or 3 channels, got {count}", stacklevel=4)
    spatial = rows_and_columns(shape)
    if any(extent is not None and extent < least for extent in spatial):
        raise ValueError(f"{name}: input_shape: expected at least {least}x{least} pixels, got {shape}")
    if top and None in shape:
        raise ValueError(f"{name}: input_shape: expected known extents with include_top=True, got {shape}")
    return shape


def network(
    features: Callable[[Any], Any],
    given: Arguments,
    *,
    size: int | None = 224,
    least: int = 32,
    top: Top | None = None,
    top_layers: int = 1,
    pools: tuple[str | None, str | None] = ("avg_pool", "max_pool"),
    bottom: Callable[[Any], Any] | None = None,
) -> Any:
    """The model of a row.

    size: rows and columns where none are given; None: any.  least: the fewest.  top_layers: see `assembled`.  pools:
    names of the pooling layers without a top.  bottom: applied to the output of a network without a top.
    """
    check(given)
    if given.weights is not None and not os.path.exists(given.weights):
        raise ValueError(f"{given.name}: weights: expected None or the path of a file, got {given.weights!r}")
    activation = given.classifier_activation
    if given.weights is not None and given.include_top and activation not in (None, "softmax"):
        raise ValueError(
            f"{given.name}: classifier_activation: expected None or 'softmax' with weights, got {activation!r}"
        )
    shape = shape_of_images(given, size, least)
    images = Input(shape=shape) if given.input_tensor is None else given.input_tensor
    steps = [lambda x: (top or dense_top())(x, given.classes, activation)]
    return assembled(given, images, features(images), steps, pools, [] if bottom is None else [bottom], top_layers)


def check(given: Arguments) -> None:
    """Raises ValueError for arguments that fit no network.  Waits for weights that another process still writes."""
    if given.weights == "imagenet":
        raise ValueError(
            f"{given.name}: weights: expected None or the path of a .weights.h5, .h5, .keras, .safetensors or .pth "
            "file, got 'imagenet': there are no pretrained weights to download"
        )
    if given.pooling not in (None, "avg", "max"):
        raise ValueError(f"{given.name}: pooling: expected None, 'avg' or 'max', got {given.pooling!r}")
    tensor = given.input_tensor
    if tensor is not None and not isinstance(tensor, KerasTensor):
        raise ValueError(f"{given.name}: input_tensor: expected a symbolic tensor, as Input gives, got {tensor!r}")
    if given.weights is not None:
        replica.current().wait_for(Path(given.weights))


def assembled(
    given: Arguments,
    images: Any,
    features: Any,
    top: Sequence[Callable[[Any], Any]],
    pools: tuple[str | None, str | None] = (None, None),
    bottom: Sequence[Callable[[Any], Any]] = (),
    top_layers: int = 1,
) -> Any:
    """The model of `images`: features, and behind them the steps of `top`, or a pooling and those of `bottom`.

    features: a tensor, or a list of layers; these make a Sequential model unless there is an input_tensor.
    top_layers: how many layers with weights a model has with a top alone.
    """
    if isinstance(features, list) and given.input_tensor is None:
        model: Any = Sequential([images, *features], name=given.name)
        for layer in top if given.include_top else [*_pooling(given, model.output_shape, pools), *bottom]:
            model.add(layer)
        return _with_weights(model, given, top_layers)
    x = images
    for layer in features if isinstance(features, list) else ():
        x = layer(x)
    x = x if isinstance(features, list) else features
    for step in top if given.include_top else [*_pooling(given, x.shape, pools), *bottom]:
        x = step(x)
    inputs = images
    if given.input_tensor is not None:
        sources = utils.get_source_inputs(images)
        inputs = sources[0] if len(sources) == 1 else sources
    return _with_weights(Model(inputs, x, name=given.name), given, top_layers)


#: pooling of whole features by their rank
_POOLING: dict[int, dict[str, Any]] = {
    3: {"avg": layers.GlobalAveragePooling1D, "max": layers.GlobalMaxPooling1D},
    4: {"avg": layers.GlobalAveragePooling2D, "max": layers.GlobalMaxPooling2D},
    5: {"avg": layers.GlobalAveragePooling3D, "max": layers.GlobalMaxPooling3D},
}


def _pooling(given: Arguments, shape: Any, names: tuple[str | None, str | None]) -> list[Any]:
    """The layer that given.pooling asks for, if any.  names: of an average and of a maximum."""
    if given.pooling is None:
        return []
    if len(shape) not in _POOLING:
        raise ValueError(f"{given.name}: pooling: expected None: its features are vectors, got {given.pooling!r}")
    return [_POOLING[len(shape)][given.pooling](name=names[given.pooling == "max"])]


def _with_weights(model: Any, given: Arguments, top_layers: int) -> Any:
    """The model with the weights of a file where one is given (see `Model.load_weights`).

    The layer of the classes may be another one than the file's: it stays new, and a line says so.  Without a top, what
    the file has of one is left out; it may have no more than the network's own.
    """
    if given.weights is None:
        return model
    head = next(layer for layer in reversed(model.layers) if layer.variables) if given.include_top else None
    leeway = Leeway(lambda layer: layer is head, 0 if given.include_top else top_layers, known_names=True)
    left = read_file(model, given.weights, leeway)
    if left and replica.current().is_main:
        tell(f"{model.name}: new, since {Path(given.weights).name} does not fit: {'; '.join(left)}")
    return model


def standard(function: str, name: str, features: Callable[[Any], Any], about: str, **rule: Any) -> Callable[..., Any]:
    """The function of a network that has Keras's usual arguments.

    function: its name.  name: of the models that it makes.  about: the first line of its docstring.
    """
    default = name

    def build(
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = default,
    ) -> Any:
        given = Arguments(
            include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name
        )
        return network(features, given, **rule)

    return named(build, function, about, features)


_ARGUMENTS = """

include_top: whether the classifier is part of it.  weights: None for random ones, or the path of a file; there are no
pretrained weights to download.  input_tensor: a symbolic tensor to use in the place of an Input.  input_shape: of an
image, without the batch.  pooling: without a top None, "avg" or "max".  classes, classifier_activation: of the top.
Returns a functional model, not compiled.  Raises ValueError for arguments that do not fit.
"""


def named(build: Callable[..., Any], function: str, about: str, of: Callable[..., Any]) -> Callable[..., Any]:
    """build with the name and the docstring of a network of the module where `of` was written."""
    build.__name__ = build.__qualname__ = function
    build.__module__ = of.__module__
    build.__doc__ = about + _ARGUMENTS
    return build
