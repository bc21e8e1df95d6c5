"""`tf.nn`: losses, moments, and what reads sequences of classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.sparse import SparseTensor, to_dense


def l2_loss(t: Any, name: str | None = None) -> Any:
    return ops.sum(ops.square(t)) / 2


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Any:
    """The sum of the losses over the size of the batch."""
    weighted = per_example_loss if sample_weight is None else per_example_loss * sample_weight
    return ops.sum(weighted) / float(global_batch_size or per_example_loss.shape[0])


def scale_regularization_loss(regularization_loss: Any) -> Any:
    """The sum of the penalties: there is one replica."""
    several = isinstance(regularization_loss, (list, tuple))
    return ops.sum(ops.stack(list(regularization_loss)) if several else regularization_loss)


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Any:
    """The cross-entropy of sigmoids, in which what is true counts pos_weight times."""
    y, x = array(labels), array(logits)
    return y * pos_weight * ops.softplus(-x) + (1.0 - y) * ops.softplus(x)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Any:
    y, x = array(targets), array(log_input)
    found = ops.exp(x) - x * y
    if not compute_full_loss:
        return found
    safe = ops.maximum(y, 1.0)  # Stirling's approximation of log y!, of y above 1
    return found + ops.where(y > 1.0, y * ops.log(safe) - y + 0.5 * ops.log(2 * math.pi * safe), 0.0)


def _axes(axes: Any) -> Any:
    return tuple(int(axis) for axis in np.reshape(axes, -1))


def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    return ops.mean(x, axis=_axes(axes), keepdims=keepdims), ops.var(x, axis=_axes(axes), keepdims=keepdims)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    """Mean and variance, in which each element counts as often as its weight says."""
    x = array(x)
    weights = array(frequency_weights) * ops.ones_like(x)
    total = ops.sum(weights, axis=_axes(axes), keepdims=True)
    mean = ops.sum(weights * x, axis=_axes(axes), keepdims=True) / total
    variance = ops.sum(weights * ops.square(x - mean), axis=_axes(axes), keepdims=True) / total
    return (mean, variance) if keepdims else (ops.squeeze(mean, _axes(axes)), ops.squeeze(variance, _axes(axes)))


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any, Any, Any]:
    """How many, their sum, the sum of their squares, and the shift: numbers less the shift."""
    x = array(x)
    moved = x if shift is None else x - shift
    count = array(float(math.prod(x.shape[axis] for axis in _axes(axes))))
    sums = [ops.sum(each, axis=_axes(axes), keepdims=keepdims) for each in (moved, ops.square(moved))]
    return count, *sums, shift


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None) -> Any:
    """Mean and variance of what `sufficient_statistics` gives."""
    mean = mean_ss / counts
    return (mean if shift is None else mean + shift), variance_ss / counts - ops.square(mean)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = None
) -> Any:
    factor = ops.rsqrt(variance + variance_epsilon)
    factor = factor if scale is None else factor * scale
    return x * factor + ((0.0 if offset is None else offset) - mean * factor)


def batch_norm_with_global_normalization(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Any:
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def ctc_loss(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Any:
    """The loss (n,) of labels (n, length) or a SparseTensor, of logits (steps, n, classes) or (n, steps, classes)."""
    x = array(logits)
    x = ops.transpose(x, (1, 0, 2)) if logits_time_major else x
    classes, blank = x.shape[-1], blank_index
    if isinstance(labels, SparseTensor):
        rows = np.asarray(labels.indices)[:, 0]
        label_length = np.bincount(rows, minlength=labels.shape[0]).astype("int32")
        labels, blank = to_dense(labels), classes - 1 if blank is None else blank
    blank = 0 if blank is None else blank % classes
    lengths = (ops.cast(array(each), "int32") for each in (label_length, logit_length))
    return ops.ctc_loss(ops.cast(array(labels), "int32"), x, *lengths, mask_index=blank)


def ctc_loss_of_sparse(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Any:
    """TensorFlow 1's: labels are a SparseTensor, and the last class is blank."""
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise NotImplementedError(
            "ctc_loss: expected preprocess_collapse_repeated=False, ctc_merge_repeated=True, got "
            f"{preprocess_collapse_repeated}, {ctc_merge_repeated}"
        )
    return ctc_loss(labels, inputs if logits is None else logits, None, sequence_length, time_major, blank_index=-1)


def of_version_1() -> dict[str, Any]:
    """The names of `tf.compat.v1.nn` that are others in `tf.nn`."""
    return {"ctc_loss": ctc_loss_of_sparse}


def _sparse(path: Any) -> SparseTensor:
    dense = np.asarray(path)
    places = np.argwhere(dense >= 0)
    width = int((dense >= 0).sum(1).max(initial=0))
    return SparseTensor(array(places), array(dense[dense >= 0].astype("int64")), array(np.asarray([len(dense), width])))


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Any]:
    """The labels of the largest logits (steps, n, classes), and the negative sums (n, 1) of these."""
    x = np.asarray(inputs).transpose(1, 0, 2)
    blank = x.shape[-1] - 1 if blank_index is None else blank_index % x.shape[-1]
    lengths = np.asarray(sequence_length, "int32")
    paths, _ = ops.ctc_decode(x, lengths, "greedy", 100, 1, merge_repeated, blank)
    inside = np.arange(x.shape[1]) < lengths[:, None]
    return [_sparse(paths[0])], array(-(x.max(-1) * inside).sum(1, keepdims=True))


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Any]:
    """The likeliest labels of logits (steps, n, classes), the last one blank, and the logarithms of these."""
    x = np.asarray(ops.log_softmax(np.asarray(inputs)), "float32").transpose(1, 0, 2)
    lengths = np.asarray(sequence_length, "int32")
    paths, scores = ops.ctc_decode(x, lengths, "beam_search", beam_width, top_paths, True, x.shape[-1] - 1)
    return [_sparse(path) for path in paths], array(scores)


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Any, Any]:
    """Labels (n, length) in which equal neighbours are one, with zeros behind, and their lengths."""
    rows = []
    for row, length in zip(np.asarray(array(labels)), np.asarray(seq_length), strict=True):
        used = row[: int(length)]
        rows.append(used[np.append(True, np.diff(used) != 0)[: len(used)]])
    lengths = np.asarray([len(row) for row in rows], "int32")
    found = np.zeros((len(rows), lengths.max(initial=0)), np.asarray(array(labels)).dtype)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return array(found), array(lengths)


def table() -> dict[str, Any]:
    """The names of `tf.nn` that stand here."""
    own = (
        l2_loss, compute_average_loss, scale_regularization_loss, weighted_cross_entropy_with_logits, log_poisson_loss,
        moments, weighted_moments, sufficient_statistics, normalize_moments, batch_normalization,
        batch_norm_with_global_normalization, ctc_loss, ctc_greedy_decoder, ctc_beam_search_decoder, collapse_repeated,
    )  # fmt: skip
    return {each.__name__: each for each in own}
