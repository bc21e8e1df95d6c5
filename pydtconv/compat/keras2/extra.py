"""Names that modules of Keras 1 and 2 had and Keras 3 has not: what they are here, or what to write instead."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import pydtconv.constraints as own_constraints
import pydtconv.losses as own_losses
import pydtconv.optimizers as own_optimizers
import pydtconv.regularizers as own_regularizers
from pydtconv import config, ops, saving
from pydtconv.callbacks import Callback
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import refused, taking
from pydtconv.initializers import Ones, RandomNormal, RandomUniform, Zeros
from pydtconv.layers import Input, InputLayer, InputSpec, Layer
from pydtconv.models.model import Model
from pydtconv.models.sequential import Sequential
from pydtconv.support.symbolic import get_source_inputs, is_keras_tensor


@saving.register_keras_serializable(package="keras2")
class ThresholdedReLU(Layer):
    """x where it is above theta, else 0."""

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = float(np.asarray(theta))

    def call(self, inputs: Any) -> Any:
        return inputs * ops.cast(inputs > self.theta, inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "theta": self.theta}


#: layers that are not here, and what to write instead
NO_LAYERS = {
    "CategoryCrossing": "HashedCrossing",
    "Highway": "two Dense layers: t * h(x) + (1 - t) * x",
    "LocallyConnected1D": "Conv1D shares its weights; a layer of your own with ops.einsum does not",
    "LocallyConnected2D": "Conv2D shares its weights; a layer of your own with ops.einsum does not",
    "MaxoutDense": "Dense(units * k), Reshape((units, k)) and Lambda(lambda x: ops.max(x, axis=-1))",
    "RandomHeight": "RandomZoom(height_factor, 0.0)",
    "RandomWidth": "RandomZoom(0.0, width_factor)",
    "Recurrent": "RNN(cell)",
    "ParametricSoftplus": "Activation('softplus') or PReLU",
    "SReLU": "PReLU",
    "WeightRegularizer": "regularizers.L1L2",
}
NO_UTILS = {
    "HDF5Matrix": "h5py.File(path)[name][start:end]",
    "GeneratorEnqueuer": "fit(generator)",
    "OrderedEnqueuer": "fit(sequence), PyDataset(workers=)",
    "convert_all_kernels_in_model": "weights of Theano are not read here",
    "convert_dense_weights_data_format": "set_weights",
    "convert_kernel": "weights of Theano are not read here",
    "H5Dict": "h5py.File",
    "ask_to_proceed_with_overwrite": "Path(path).exists()",
    "func_dump": "a registered function",
    "func_load": "a registered function",
}


def _refusing(table: dict[str, str]) -> dict[str, Any]:
    return {name: refused(name, f"write {instead}") for name, instead in table.items()}


def layers() -> dict[str, Any]:
    """Names of `keras.layers`."""
    return {"PreprocessingLayer": Layer, "ThresholdedReLU": ThresholdedReLU, **_refusing(NO_LAYERS)}


def engine() -> dict[str, Any]:
    """Names of `keras.engine`, which are elsewhere now."""
    return {
        "Container": Model, "Functional": Model, "Input": Input, "InputLayer": InputLayer, "InputSpec": InputSpec,
        "Layer": Layer, "Model": Model, "Network": Model, "Sequential": Sequential,
        "get_source_inputs": get_source_inputs, "is_keras_tensor": is_keras_tensor, **saved(),
    }  # fmt: skip


def saved() -> dict[str, Any]:
    """Names of `keras.engine.saving`."""
    from pydtconv.compat.keras2 import files

    return files.table()


def models() -> dict[str, Any]:
    """Names of `keras.models`."""
    return {
        "Graph": refused("Graph", "write Model(inputs, outputs)"),
        "Input": Input,
        "model_from_config": saving.deserialize_keras_object,
        "model_from_yaml": refused("model_from_yaml", "write model_from_json"),
    }


# -- utils -------------------------------------------------------------------------------------------------------------


def probas_to_classes(y_pred: Any) -> Any:
    """The likeliest class; of one probability, whether it is above a half."""
    y = np.asarray(y_pred)
    return y.argmax(axis=1) if y.ndim > 1 and y.shape[1] > 1 else (y > 0.5).astype("int32")


def multi_gpu_model(model: Any, gpus: Any = None, **_: Any) -> Any:
    """The model: there is one device."""
    noticed.once("multi_gpu_model", "multi_gpu_model: the model itself is taken: there is one device")
    return model


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """One integer, or n of them, as n.  Raises ValueError for others."""
    found = (value,) * n if isinstance(value, (int, np.integer)) else tuple(value)
    if len(found) != n:
        raise ValueError(f"{name}: expected an integer or {n} integers, got {value!r}")
    return tuple(map(int, found))


def normalize_padding(value: str) -> str:
    """The padding in lower case.  Raises ValueError for an unknown one."""
    if value.lower() not in ("valid", "same", "causal", "full"):
        raise ValueError(f"padding: expected 'valid', 'same' or 'causal', got {value!r}")
    return value.lower()


def normalize_data_format(value: str | None) -> str:
    """The data format, by default that of `keras.config`.  Raises ValueError for an unknown one."""
    found = (value or config.image_data_format()).lower()
    if found not in ("channels_first", "channels_last"):
        raise ValueError(f"data_format: expected 'channels_first' or 'channels_last', got {value!r}")
    return found


def conv_output_length(length: int | None, size: int, padding: str, stride: int, dilation: int = 1) -> int | None:
    """The extent behind a convolution."""
    if length is None:
        return None
    reach = size + (size - 1) * (dilation - 1)
    found = {"same": length, "causal": length, "valid": length - reach + 1, "full": length + reach - 1}[padding]
    return (found + stride - 1) // stride


def conv_input_length(length: int | None, size: int, padding: str, stride: int) -> int | None:
    """The extent before a convolution."""
    if length is None:
        return None
    pad = {"same": size // 2, "valid": 0, "full": size - 1}[padding]
    return (length - 1) * stride - 2 * pad + size


def deconv_output_length(
    length: int | None, size: int, padding: str, output_padding: int | None = None, stride: int = 1, dilation: int = 1
) -> int | None:
    """The extent behind a transposed convolution."""
    if length is None:
        return None
    reach = size + (size - 1) * (dilation - 1)
    if output_padding is None:
        more = {"same": 0, "valid": max(reach - stride, 0), "full": 2 - stride - reach}[padding]
        return length * stride + more
    return conv_input_length(length, reach, padding, stride) + output_padding  # type: ignore[operator]


def deconv_length(
    length: int | None, stride: int, size: int, padding: str, output_padding: int | None = None, dilation: int = 1
) -> int | None:
    """`deconv_output_length` with its arguments in an older order."""
    return deconv_output_length(length, size, padding, output_padding, stride, dilation)


def has_arg(fn: Any, name: str, accept_all: bool = False) -> bool:
    """Whether a function takes an argument by this name; accept_all: also where it takes any."""
    found = inspect.signature(fn).parameters
    return (
        name in found and found[name].kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD)
    ) or (accept_all and any(each.kind is inspect.Parameter.VAR_KEYWORD for each in found.values()))


def to_list(x: Any) -> list[Any]:
    """A list as it is, else one of x alone."""
    return x if isinstance(x, list) else [x]


def unpack_singleton(x: Any) -> Any:
    """The element of a list of one, else x."""
    return x[0] if len(x) == 1 else x


def utils() -> dict[str, Any]:
    """Names of `keras.utils` and of modules in it."""
    from pydtconv import utils as own

    functions = (
        conv_input_length, conv_output_length, deconv_length, deconv_output_length, has_arg, multi_gpu_model,
        normalize_data_format, normalize_padding, normalize_tuple, probas_to_classes, to_list, unpack_singleton,
    )  # fmt: skip
    return {
        **{each.__name__: each for each in functions},
        "categorical_probas_to_classes": probas_to_classes,
        "count_params": lambda weights: int(sum(np.prod(w.shape) for w in weights)),
        "plot": own.plot_model,
        "print_summary": lambda model, **kwargs: model.summary(**kwargs),
        **_refusing(NO_UTILS),
    }


def obtain_input_shape(
    input_shape: Any, default_size: int, min_size: int, data_format: str | None = None, require_flatten: bool = True,
    weights: Any = None, include_top: Any = None, dim_ordering: Any = None,
) -> Any:  # fmt: skip
    """The shape of a network's images, as Keras 2's applications checked it.  Raises ValueError for too small ones."""
    first = (data_format or config.image_data_format()) == "channels_first" or dim_ordering == "th"
    need = require_flatten if include_top is None else include_top
    usual = (3, default_size, default_size) if first else (default_size, default_size, 3)
    if weights == "imagenet" and need:
        if input_shape is not None and tuple(input_shape) != usual:
            raise ValueError(f"input_shape: expected {usual} with include_top and these weights, got {input_shape}")
        return usual
    if input_shape is None:
        return usual if need else ((3, None, None) if first else (None, None, 3))
    extents = [n for n in (input_shape[1:] if first else input_shape[:2]) if n is not None]
    if any(n < min_size for n in extents):
        raise ValueError(f"input_shape: expected {min_size} or more rows and columns, got {tuple(input_shape)}")
    return tuple(input_shape)


def imagenet_utils() -> dict[str, Any]:
    """Names of `keras.applications.imagenet_utils`."""
    return {"_obtain_input_shape": obtain_input_shape, "obtain_input_shape": obtain_input_shape}


def ops_image() -> dict[str, Any]:
    """Functions of `keras.ops.image` whose first argument was image."""

    def renamed(name: str) -> Any:
        function = getattr(ops.image, name)
        return taking(function, {"image": next(iter(inspect.signature(function).parameters))})

    return {name: renamed(name) for name in ("affine_transform", "extract_patches", "resize", "rgb_to_grayscale")}


# -- functions and strings ---------------------------------------------------------------------------------------------


def regularizers() -> dict[str, Any]:
    """Names of `keras.regularizers`."""
    both = own_regularizers.L1L2
    return {
        "L1L2Regularizer": both, "WeightRegularizer": both, "ActivityRegularizer": both,
        **{name: lambda l1=0.01, l2=0.01: both(l1, l2) for name in ("l1l2", "activity_l1l2")},
        "activity_l1": own_regularizers.L1, "activity_l2": own_regularizers.L2,
    }  # fmt: skip


def constraints() -> dict[str, Any]:
    """Names of `keras.constraints`."""
    return {
        "maxnorm": own_constraints.MaxNorm, "nonneg": own_constraints.NonNeg, "unitnorm": own_constraints.UnitNorm,
    }  # fmt: skip


def initializers() -> dict[str, Any]:
    """Names of `keras.initializers`."""
    return {"zero": Zeros, "one": Ones, "uniform": RandomUniform, "normal": RandomNormal}


def losses() -> dict[str, Any]:
    """Names of `keras.losses`."""
    divergence, cosine = own_losses.kl_divergence, own_losses.cosine_similarity
    return {
        "huber_loss": own_losses.huber, "kullback_leibler_divergence": divergence, "cosine_proximity": cosine,
        "cosine": cosine,
    }  # fmt: skip


def metrics() -> dict[str, Any]:
    """Names of `keras.metrics`; means over batches that Keras 2 took out are refused."""
    classes = {
        "precision": "Precision()", "recall": "Recall()", "fmeasure": "F1Score()", "fbeta_score": "FBetaScore()",
        "matthews_correlation": "a Metric of your own: a mean over batches is none",
    }  # fmt: skip
    return {**losses(), **_refusing(classes)}


def optimizers() -> dict[str, Any]:
    """Names of `keras.optimizers`."""
    names = "SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam"
    return {
        **{name.lower(): getattr(own_optimizers, name) for name in names},
        "TFOptimizer": refused("TFOptimizer", "write an optimizer of keras.optimizers"),
    }


def callbacks() -> dict[str, Any]:
    """Names of `keras.callbacks`."""
    return {"BaseLogger": type("BaseLogger", (Callback,), {"__init__": _base_logger})}


def _base_logger(self: Any, stateful_metrics: Any = None) -> None:
    """Means are taken by the metrics."""
    Callback.__init__(self)


def install() -> None:
    """Lets old names of initializers, losses and metrics stand as strings."""
    known = saving.get_custom_objects()
    names = {"zero": Zeros, "one": Ones, **losses()}
    patches.undo(lambda: [known.pop(name, None) for name in names])
    known.update(names)
