"""Old arguments of constructors and functions, by class: the table, and what translates a call by it.

A row is an old name, or several that go together, and what it is now: a new name, or a function from the old values to
the new arguments.  A function raises where a meaning cannot be kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from pydtconv import constraints, layers, losses, regularizers
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.models.model import Model
from pydtconv.preprocessing.generator import ImageDataGenerator

Key = str | tuple[str, ...]
Row = str | Callable[..., dict[str, Any]]
Rows = Mapping[Key, Row]


def dropped(*_: Any) -> dict[str, Any]:
    """An argument that changes no result."""
    return {}


def only(*allowed: Any) -> Row:
    """An argument that means nothing with these values, and is refused with others."""

    def row(value: Any) -> dict[str, Any]:
        if value not in allowed:
            raise ValueError(
                f"expected {' or '.join(map(repr, allowed))}, got {value!r}: there is nothing like it here"
            )
        return {}

    return row


def data_format(value: Any) -> dict[str, Any]:
    """Keras 1's dim_ordering.  Raises ValueError for an unknown one."""
    known = {"tf": "channels_last", "th": "channels_first", "default": None, None: None}
    if value not in known:
        raise ValueError(f"dim_ordering: expected 'tf', 'th' or 'default', got {value!r}")
    return {"data_format": known[value]}


def initial(name: str) -> Row:
    """An initializer under Keras 1's names of it."""
    renamed = {"zero": "zeros", "one": "ones", "uniform": "random_uniform", "normal": "random_normal"}
    return lambda value: {name: renamed.get(value, value) if isinstance(value, str) else value}


def together(name: str) -> Row:
    """Several numbers as one tuple."""
    return lambda *values: {name: values}


def mode_of_normalization(value: Any) -> dict[str, Any]:
    """BatchNormalization's mode, of which 0 is what there is."""
    if value != 0:
        told = "1: LayerNormalization is near it" if value == 1 else "there is no layer with batch statistics in tests"
        raise ValueError(f"BatchNormalization: mode: expected 0, got {value!r}: {told}")
    return {}


def forget_bias(value: Any) -> dict[str, Any]:
    """Of ones or zeros, as unit_forget_bias.  Raises ValueError for other initializers."""
    known = {"one": True, "ones": True, "zero": False, "zeros": False}
    if value not in known:
        raise ValueError(f"forget_bias_init: expected 'one' or 'zero', got {value!r}: use bias_initializer")
    return {"unit_forget_bias": known[value]}


def sides(value: Any) -> dict[str, Any]:
    """ZeroPadding2D's dict of sides."""
    if not isinstance(value, dict):
        return {"padding": value}
    names = ("top_pad", "bottom_pad"), ("left_pad", "right_pad")
    return {"padding": tuple((value.get(a, 0), value.get(b, 0)) for a, b in names)}


def reduction(value: Any) -> dict[str, Any]:
    """The reduction of a loss; "auto" was the mean over samples."""
    return {"reduction": "sum_over_batch_size" if value == "auto" else value}


_BIAS: Rows = {
    "b_regularizer": "bias_regularizer", "b_constraint": "bias_constraint", "bias": "use_bias",
}  # fmt: skip
_KERNEL: Rows = {
    "init": initial("kernel_initializer"), "W_regularizer": "kernel_regularizer", "W_constraint": "kernel_constraint",
    **_BIAS,
}  # fmt: skip
_ORDERED: Rows = {"dim_ordering": data_format}
_SEQUENCE: Rows = {
    ("input_length", "input_dim"): together("input_shape"),
    "input_dim": lambda value: {"input_shape": (None, value)},
}
_CONVOLUTION: Rows = {
    "nb_filter": "filters", "border_mode": "padding", "subsample": "strides", "atrous_rate": "dilation_rate",
    **_ORDERED, **_KERNEL,
}  # fmt: skip
_ROWS_COLUMNS: Rows = {("nb_row", "nb_col"): together("kernel_size")}
_IMAGES: Rows = {**_CONVOLUTION, **_ROWS_COLUMNS}
_POOLING: Rows = {"border_mode": "padding", **_ORDERED}
_POOLING_1D: Rows = {"pool_length": "pool_size", "stride": "strides", "border_mode": "padding"}
_RATE: Rows = {"p": "rate"}

_STEPS: Rows = {
    "inner_init": initial("recurrent_initializer"), "U_regularizer": "recurrent_regularizer",
    "dropout_W": "dropout", "dropout_U": "recurrent_dropout", "consume_less": dropped, "implementation": dropped,
    **_KERNEL,
}  # fmt: skip
_RECURRENT: Rows = {"output_dim": "units", **_SEQUENCE, **_STEPS}
_GATES: Rows = {"inner_activation": "recurrent_activation"}
_FORGET: Rows = {"forget_bias_init": forget_bias}

#: old arguments of layers
LAYERS: dict[str, Rows] = {
    "ActivityRegularization": {"l": "l2"},
    "BatchNormalization": {
        "mode": mode_of_normalization, "beta_init": initial("beta_initializer"),
        "gamma_init": initial("gamma_initializer"), "fused": dropped, "virtual_batch_size": only(None),
        "adjustment": only(None), "trainable_weights": dropped,
    },
    "Conv1D": {
        "nb_filter": "filters", "filter_length": "kernel_size", "subsample_length": "strides",
        "border_mode": "padding", "atrous_rate": "dilation_rate", **_SEQUENCE, **_KERNEL,
    },
    "Conv2D": _IMAGES,
    "Conv2DTranspose": {**_IMAGES, "output_shape": dropped},
    "Conv3D": {
        **_CONVOLUTION, ("kernel_dim1", "kernel_dim2", "kernel_dim3"): together("kernel_size"),
    },
    "DepthwiseConv2D": {
        "init": initial("depthwise_initializer"), "border_mode": "padding", "subsample": "strides", **_ORDERED, **_BIAS,
    },
    "SeparableConv2D": {
        "nb_filter": "filters", "border_mode": "padding", "subsample": "strides", **_ORDERED, **_BIAS,
        **_ROWS_COLUMNS, "init": lambda value: {f"{part}_initializer": value for part in ("depthwise", "pointwise")},
    },
    "Dense": {"output_dim": "units", **_KERNEL},
    **dict.fromkeys(("Dropout", "GaussianDropout", "SpatialDropout1D"), _RATE),
    **{name: {**_RATE, **_ORDERED} for name in ("SpatialDropout2D", "SpatialDropout3D")},
    "Embedding": {
        "init": initial("embeddings_initializer"), "W_regularizer": "embeddings_regularizer",
        "W_constraint": "embeddings_constraint", "dropout": only(0, 0.0),
        "input_length": lambda value: {"input_shape": (value,)},
    },
    "GaussianNoise": {"sigma": "stddev"},
    "LeakyReLU": {"alpha": lambda value: {"negative_slope": float(np.asarray(value))}},
    "PReLU": {"init": initial("alpha_initializer")},
    **dict.fromkeys(("MaxPooling1D", "AveragePooling1D"), _POOLING_1D),
    **{f"{kind}Pooling{n}D": _POOLING for kind in ("Max", "Average") for n in (2, 3)},
    **{f"Global{kind}Pooling{n}D": _ORDERED for kind in ("Max", "Average") for n in (2, 3)},
    "UpSampling1D": {"length": "size"},
    **{f"{kind}{n}D": _ORDERED for kind in ("UpSampling", "Cropping") for n in (2, 3)},
    "ZeroPadding2D": {"padding": sides, **_ORDERED},
    "ZeroPadding3D": _ORDERED,
    "InputLayer": {"input_dtype": "dtype"},
    "SimpleRNN": _RECURRENT,
    "GRU": {**_RECURRENT, **_GATES},
    "LSTM": {**_RECURRENT, **_GATES, **_FORGET},
    "ConvLSTM2D": {**_IMAGES, **_STEPS, **_GATES, **_FORGET},
}  # fmt: skip


#: arguments that had a default
DEFAULTS: dict[str, dict[str, Any]] = {
    "AveragePooling1D": {"pool_size": 2},
    "AveragePooling2D": {"pool_size": (2, 2)},
    "AveragePooling3D": {"pool_size": (2, 2, 2)},
}


def of_batch(shape: Any) -> dict[str, Any]:
    """The extents without the batch, which is open here."""
    return {"input_shape": tuple(shape)[1:]}


#: old arguments of every layer
EVERY_LAYER: Rows = {"batch_input_shape": of_batch, "input_dtype": only("float32", None)}
#: those of regularizers, constraints and models
OTHERS: dict[type, Rows] = {
    losses.Loss: {"reduction": reduction},
    regularizers.L1: {"l": "l1"},
    regularizers.L2: {"l": "l2"},
    constraints.MaxNorm: {"m": "max_value"},
    Model: {"input": "inputs", "output": "outputs"},
    ImageDataGenerator: _ORDERED,
}


#: those of methods
METHODS: dict[tuple[type, str], Rows] = {
    (ImageDataGenerator, "flow_from_dataframe"): {
        "class_mode": lambda value: {"class_mode": "raw" if value == "other" else value},
        "has_ext": only(True), "drop_duplicates": dropped, "sort": dropped,
    },
}  # fmt: skip


def translated(where: str, rows: Rows, kwargs: dict[str, Any], *taken: str) -> dict[str, Any]:
    """The arguments with their new names; each old one warns once.

    taken: new names that were given by place.  Raises TypeError where an argument comes under both names.
    """
    if not kwargs:
        return kwargs
    for key, row in rows.items():
        names = (key,) if isinstance(key, str) else key
        if not all(name in kwargs for name in names):
            continue
        values = [kwargs.pop(name) for name in names]
        new = {row: values[0]} if isinstance(row, str) else row(*values)
        for name, value in new.items():
            if name in kwargs or name in taken:
                raise TypeError(f"{where}: got both {' and '.join(names)}, the old name, and {name}")
            if (name,) != names or value is not values[0]:
                told = ", ".join(f"{each}={new[each]!r}" if len(str(new[each])) < 30 else each for each in new)
                noticed.once(names[0], f"{where}: {', '.join(names)} is an old argument: write {told}")
        if not new:
            noticed.once(names[0], f"{where}: {', '.join(names)} is an old argument, which means nothing here")
        kwargs.update(new)
    return kwargs


def taking(function: Callable[..., Any], rows: Rows) -> Callable[..., Any]:
    """The function, which takes old arguments, too."""

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **translated(function.__name__, rows, kwargs))

    return renamed


def _of_sizes(args: tuple[Any, ...], kwargs: dict[str, Any], count: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keras 1's (filters, rows, columns, init, activation, weights) by place: sizes as one tuple, the rest by name."""
    sizes, rest = args[1 : 1 + count], args[1 + count :]
    return (args[0], tuple(sizes)), {**dict(zip(("init", "activation", "weights"), rest, strict=False)), **kwargs}


#: layers whose sizes Keras 1 took one by one, and how many they are
SIZES = {"Conv2D": 2, "Conv3D": 3, "SeparableConv2D": 2, "Conv2DTranspose": 2}


def old_sizes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], old: bool) -> tuple[tuple[Any, ...], Any]:
    """The arguments of a layer, with sizes that were given one by one taken together.

    old: whether the layer was made under a name that Keras 3 has not, or no longer uses.
    """
    count = SIZES.get(name)
    if count is None or len(args) < 2 or not all(isinstance(x, (int, np.integer)) for x in args[1 : 1 + count]):
        return args, kwargs
    rows = LAYERS[name]
    old = old or any(key in kwargs for key in rows if isinstance(key, str))
    if len(args) == 2 and count == 2 and "nb_col" in kwargs:
        return (args[0], (args[1], kwargs.pop("nb_col"))), kwargs
    if len(args) < 1 + count:
        return args, kwargs
    if old:
        noticed.once(f"{name}(sizes)", f"{name}{args}: Keras 1's form: write kernel_size={args[1 : 1 + count]}")
        return _of_sizes(args, kwargs, count)
    if noticed.any_yet() and count == 2:
        noticed.once(
            f"{name}(strides)",
            f"{name}{args[:3]}: {args[2]} is strides, as in Keras 3 and tf.keras; Keras 1 to 2.3 took it as a part of "
            "kernel_size: write kernel_size= and strides=",
        )
    return args, kwargs


def _with_weights(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    weights = kwargs.pop("weights", None)
    original(self, *args, **translated(type(self).__name__, EVERY_LAYER, kwargs))
    if weights is not None:
        noticed.once("weights", f"{type(self).__name__}: weights is an old argument: write set_weights after build")
        build = self.build

        def building(*args: Any, **kwargs: Any) -> None:
            object.__delattr__(self, "build")
            build(*args, **kwargs)
            self.set_weights(weights)

        object.__setattr__(self, "build", building)


def install() -> None:
    """Lets the classes take their old arguments."""
    for name, rows in LAYERS.items():
        cls = getattr(layers, name)
        patches.around(cls, "__init__", _old(name, rows))
    patches.around(layers.Layer, "__init__", _with_weights)
    for cls, rows in OTHERS.items():
        patches.around(cls, "__init__", _old(cls.__name__, rows))
    for (cls, name), rows in METHODS.items():
        patches.put(cls, name, taking(getattr(cls, name), rows))
    patches.put(Model, "__new__", staticmethod(_of_model(Model.__new__)))


def _old(name: str, rows: Rows) -> Callable[..., Any]:
    def wrapper(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = old_sizes(name, args, kwargs, False)
        kwargs = translated(name, rows, kwargs)
        original(self, *args, **(kwargs if args else {**DEFAULTS.get(name, {}), **kwargs}))

    return wrapper


def _of_model(new: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(cls: type, *args: Any, **kwargs: Any) -> Any:
        return new(cls, *args, **translated("Model", OTHERS[Model], kwargs))

    return wrapper


def refused(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function of an old name that says what to write instead."""

    def function(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not here: {instead}")

    function.__name__ = name
    return function
