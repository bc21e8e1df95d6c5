"""`tf.nn`: convolutions, pooling, losses and what else Keras's functions have under other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydtconv import ops
from pydtconv import random as random_module


def _of_axes(value: Any, data_format: str) -> tuple[int, int]:
    """A number for both spatial axes, of one number, of one for each of them, or of those of all axes of an image."""
    given = [int(n) for n in value] if isinstance(value, Sequence) else [int(value)]
    if len(given) == 4:
        given = given[1:3] if _layout(data_format) == "channels_last" else given[2:]
    return given[0], given[-1]


def _layout(data_format: str | None) -> str:
    """Keras's word for it.  Raises ValueError for what is none."""
    known = {None: "channels_last", "NHWC": "channels_last", "NCHW": "channels_first"}
    if data_format not in known:
        raise ValueError(f"data_format: expected NHWC or NCHW, got {data_format!r}")
    return known[data_format]


def _padding(padding: Any) -> str:
    """ "same" or "valid".  Raises NotImplementedError for pixels on each side, which `tf.pad` adds."""
    if not isinstance(padding, str):
        raise NotImplementedError(f"padding: expected 'SAME' or 'VALID', got {padding!r}: use tf.pad")
    return padding.lower()


def _convolution(
    function: Callable[..., Any], x: Any, w: Any, strides: Any, padding: Any, form: str, rates: Any
) -> Any:
    spread = _of_axes(rates or 1, form)
    return function(x, w, _of_axes(strides, form), _padding(padding), _layout(form), spread)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    return _convolution(ops.conv, input, filters, strides, padding, data_format, dilations)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    return _convolution(ops.depthwise_conv, input, filter, strides, padding, data_format, dilations)


def _pooling(function: Callable[..., Any]) -> Callable[..., Any]:
    def pool(
        input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
    ) -> Any:
        extents, steps = _of_axes(ksize, data_format), _of_axes(strides, data_format)
        return function(input, extents, steps, _padding(padding), _layout(data_format))

    return pool


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    if _layout(data_format) == "channels_first":
        bias = ops.reshape(bias, (-1, *[1] * (len(value.shape) - 2)))
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
    own = conv2d, depthwise_conv2d, bias_add, dropout, l2_loss, compute_average_loss, scale_regularization_loss
    largest, mean = _pooling(ops.max_pool), _pooling(ops.average_pool)
    pools = {"max_pool": largest, "max_pool2d": largest, "avg_pool": mean, "avg_pool2d": mean}
    return {each.__name__: each for each in own} | pools | {"top_k": ops.top_k, "in_top_k": ops.in_top_k}
