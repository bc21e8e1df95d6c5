"""`tf.nn`: convolutions, pooling, losses and what else Keras's functions have under other names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv import random as random_module


def _of_axes(value: Any, count: int) -> tuple[int, ...]:
    """A number for each spatial axis, of one number, of one for each of them, or of those of all axes of an image."""
    given = [int(n) for n in value] if isinstance(value, Sequence) else [int(value)]
    given = given[1:-1] if len(given) == count + 2 else given
    return tuple(given * count if len(given) == 1 else given)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    spread = _of_axes(dilations or 1, 2)
    return ops.conv(input, filters, _of_axes(strides, 2), padding.lower(), _layout(data_format), spread)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    spread = _of_axes(dilations or 1, 2)
    return ops.depthwise_conv(input, filter, _of_axes(strides, 2), padding.lower(), _layout(data_format), spread)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC", name: str | None = None
) -> Any:
    return ops.max_pool(input, _of_axes(ksize, 2), _of_axes(strides, 2), padding.lower(), _layout(data_format))


def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC", name: str | None = None
) -> Any:
    return ops.average_pool(input, _of_axes(ksize, 2), _of_axes(strides, 2), padding.lower(), _layout(data_format))


def _layout(data_format: str) -> str:
    return "channels_last" if data_format == "NHWC" else "channels_first"


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    return value + bias


def dropout(x: Any, rate: float, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Any:
    return random_module.dropout(x, rate, noise_shape, seed)


def l2_loss(t: Any, name: str | None = None) -> Any:
    return ops.sum(ops.square(t)) / 2


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None, max_num_samples: Any = None
) -> Any:
    """The sum of the losses over the size of the batch."""
    weighted = per_example_loss if sample_weight is None else per_example_loss * sample_weight
    return ops.sum(weighted) / float(global_batch_size or per_example_loss.shape[0])


def scale_regularization_loss(regularization_loss: Any) -> Any:
    """The sum of the penalties: there is one replica."""
    several = isinstance(regularization_loss, (list, tuple))
    return ops.sum(ops.stack(list(regularization_loss)) if several else regularization_loss)


def table() -> dict[str, Any]:
    """The names of `tf.nn` that stand here."""
    own = (
        conv2d, depthwise_conv2d, max_pool2d, avg_pool2d, bias_add, dropout, l2_loss, compute_average_loss,
        scale_regularization_loss,
    )  # fmt: skip
    found = {each.__name__: each for each in own}
    return found | {"avg_pool": avg_pool2d, "max_pool": max_pool2d, "top_k": ops.top_k, "in_top_k": ops.in_top_k}
