"""Functions of `keras.backend` that Keras 3 still gives as `tensorflow.keras.backend`, which losses of scripts use.

Each is a function of `pydtconv.ops` under its old name, with the defaults that it had there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops, random
from pydtconv.backend import int_shape
from pydtconv.compat.keras2 import backend as keras2_backend
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.functions import l2_normalize, shape
from pydtconv.graph.ir.variable import Variable


def backend() -> str:
    """ "tensorflow": what a script has for that backend (its tapes, functions, pipelines) is there."""
    return "tensorflow"


def argmax(x: Any, axis: int = -1) -> Any:
    return ops.argmax(x, axis)


def argmin(x: Any, axis: int = -1) -> Any:
    return ops.argmin(x, axis)


def batch_flatten(x: Any) -> Any:
    return ops.reshape(x, (-1, int(np.prod(x.shape[1:]))))


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    return ops.binary_crossentropy(target, output, from_logits=from_logits)


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    return ops.categorical_crossentropy(target, output, from_logits=from_logits, axis=axis)


def cast(x: Any, dtype: Any) -> Any:
    return array(x, dtype)


def cast_to_floatx(x: Any) -> Any:
    return array(x, config.floatx())


def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    return ops.clip(x, min_value, max_value)


def concatenate(tensors: Sequence[Any], axis: int = -1) -> Any:
    return ops.concatenate(tensors, axis)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    found = array(value, dtype or config.floatx())
    return found if shape is None else array(np.broadcast_to(found, shape).copy())


def count_params(x: Any) -> int:
    return int(np.prod(x.shape))


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The losses (n, 1) of labels (n, length) of probabilities (n, steps, classes), of which the last one is blank.

    A label that is the blank's or above ends a sample's labels, as TensorFlow's `tf.compat.v1.nn.ctc_loss` has it.
    """
    lengths = [ops.cast(ops.reshape(each, (-1,)), "int32") for each in (label_length, input_length)]
    logits, blank = ops.log(y_pred + config.epsilon()), y_pred.shape[-1] - 1
    labels = ops.cast(y_true, "int32")
    inside = ops.equal(ops.cumsum(ops.cast(ops.greater_equal(labels, blank), "int32"), axis=1), 0)
    lengths[0] = ops.minimum(lengths[0], ops.sum(ops.cast(inside, "int32"), axis=1))
    found = ops.ctc_loss(ops.where(inside, labels, 0), logits, *lengths, mask_index=blank)
    return ops.expand_dims(found, 1)


def ctc_decode(
    y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Any]:
    """The likeliest labels (n, length), -1 behind their ends, of each path, and the logarithms of their likelihood."""
    logits = ops.log(ops.add(y_pred, config.epsilon()))
    strategy = "greedy" if greedy else "beam_search"
    blank = y_pred.shape[-1] - 1
    lengths = ops.cast(ops.reshape(input_length, (-1,)), "int32")
    paths, scores = ops.ctc_decode(logits, lengths, strategy, beam_width, top_paths, mask_index=blank)
    return [array(path) for path in paths], array(scores)


def dot(x: Any, y: Any) -> Any:
    """The sum over the last axis of x and the last but one of y."""
    return ops.matmul(x, y) if len(y.shape) <= 2 else ops.tensordot(x, y, axes=([-1], [len(y.shape) - 2]))


def dtype(x: Any) -> str:
    return str(x.dtype)


def flatten(x: Any) -> Any:
    return ops.reshape(x, (-1,))


def gather(reference: Any, indices: Any) -> Any:
    return ops.take(reference, indices, axis=0)


def get_value(x: Any) -> Any:
    return np.array(x)


def ndim(x: Any) -> int:
    return len(x.shape)


def one_hot(indices: Any, num_classes: int) -> Any:
    return ops.one_hot(indices, num_classes)


def permute_dimensions(x: Any, pattern: Sequence[int]) -> Any:
    return ops.transpose(x, tuple(pattern))


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: str | None = None, seed: int | None = None
) -> Any:
    return array(random.normal(tuple(shape), mean, stddev, dtype, seed))


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: str | None = None, seed: int | None = None
) -> Any:
    return array(random.uniform(tuple(shape), minval, maxval, dtype, seed))


def relu(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    from pydtconv import activations

    return activations.relu(x, negative_slope=alpha, max_value=max_value, threshold=threshold)


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    return ops.repeat(x, rep, axis)


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str = "channels_last", interpolation: str = "nearest"
) -> Any:
    h, w = x.shape[1:3] if data_format == "channels_last" else x.shape[2:4]
    size = int(h * height_factor), int(w * width_factor)
    return ops.image.resize(x, size, interpolation=interpolation, data_format=data_format)


def reverse(x: Any, axes: Any) -> Any:
    return ops.flip(x, axes)


def set_value(x: Any, value: Any) -> None:
    x.assign(value)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    return ops.sparse_categorical_crossentropy(target, output, from_logits=from_logits, axis=axis)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    values = [value() if callable(value) else value for value in (then_expression, else_expression)]
    return ops.where(condition, *values)


def update(x: Any, new_x: Any) -> Any:
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    return x.assign_sub(decrement)


def variable(value: Any, dtype: str | None = None, name: str | None = None, constraint: Any = None) -> Variable:
    found = np.array(array(value, dtype or config.floatx()))
    return Variable(found, found.shape, found.dtype.name, name=name)


def table() -> dict[str, Any]:
    """The functions by name."""
    same = (
        "abs", "all", "any", "arange", "cos", "cumprod", "cumsum", "elu", "equal", "exp", "expand_dims", "eye",
        "greater", "greater_equal", "hard_sigmoid", "in_top_k", "less", "less_equal", "log", "logsumexp", "max",
        "maximum", "mean", "min", "minimum", "not_equal", "ones", "ones_like", "prod", "reshape", "round", "sigmoid",
        "sign", "sin", "softmax", "softplus", "softsign", "sqrt", "square", "squeeze", "stack", "std", "stop_gradient",
        "sum", "tanh", "tile", "transpose", "var", "zeros", "zeros_like",
    )  # fmt: skip
    own = (
        argmax, argmin, batch_flatten, binary_crossentropy, cast, cast_to_floatx, categorical_crossentropy, clip,
        concatenate, constant, count_params, ctc_batch_cost, ctc_decode, dot, dtype, flatten, gather, get_value,
        int_shape, l2_normalize, ndim, one_hot, permute_dimensions, random_normal, random_uniform, relu,
        repeat_elements, resize_images, reverse, set_value, shape, sparse_categorical_crossentropy, switch, update,
        update_add, update_sub, variable,
    )  # fmt: skip
    found = {name: getattr(ops, name) for name in same} | {each.__name__: each for each in own}
    return keras2_backend.table() | found | {"backend": backend, "eval": get_value, "pow": ops.power}
