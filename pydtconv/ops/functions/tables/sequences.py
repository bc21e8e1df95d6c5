"""Connectionist temporal classification: its loss, and the sequences that a network's output stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import Backward, Rule, no_gradient

Shape = tuple[int, ...]


def _loss_shape(target: Shape, output: Shape, target_length: Shape, output_length: Shape, mask_index: int) -> Shape:
    expected = "expected target (n, labels), output (n, steps, classes), target_length (n,), output_length (n,)"
    if [len(shape) for shape in (target, output, target_length, output_length)] != [2, 3, 1, 1]:
        raise ValueError(expected)
    if not 0 <= mask_index < output[-1]:
        raise ValueError(f"expected mask_index in [0, {output[-1]}), got {mask_index}")
    return (output[0],)


def _check_lengths(name: str, lengths: np.ndarray, most: int) -> None:
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= most):
        raise ValueError(f"ctc_loss: {name}: expected 0 to {most}, got {lengths.min()} to {lengths.max()}")


def _log_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype("float64")
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


class _Paths:
    """All alignments of labels with steps, in logarithms (Graves et al., ICML 2006).

    A label sequence is walked with blanks around each label: 2 labels + 1 states.  A step stays, goes on by one state,
    or by two from a label to a different one.  n: samples, t: steps, s: states.
    """

    def __init__(
        self, target: np.ndarray, output: np.ndarray, lengths: np.ndarray, steps: np.ndarray, blank: int
    ) -> None:
        _loss_shape(target.shape, output.shape, lengths.shape, steps.shape, blank)
        if len({len(each) for each in (target, output, lengths, steps)}) != 1:
            raise ValueError(
                "ctc_loss: expected as many samples of each, got target, output, target_length, output_length of "
                f"{len(target)}, {len(output)}, {len(lengths)}, {len(steps)}"
            )
        _check_lengths("target_length", lengths, target.shape[1])
        _check_lengths("output_length", steps, output.shape[1])
        labels = np.where(np.arange(target.shape[1]) < lengths[:, None], target, blank).astype(np.int64)
        if labels.size and not (labels.min() >= 0 and labels.max() < output.shape[-1]):
            raise ValueError(
                f"ctc_loss: target: expected classes from 0 to {output.shape[-1] - 1}, got "
                f"{labels.min()} to {labels.max()}"
            )
        self.blank, self.lengths, self.steps = blank, lengths.astype(np.int64), steps.astype(np.int64)
        self.states = np.full((len(labels), 2 * labels.shape[1] + 1), blank, np.int64)
        self.states[:, 1::2] = labels
        self.log_p = _log_softmax(output)
        self.scores = np.take_along_axis(self.log_p, self.states[:, None, :], 2)  # (n, t, s)
        skips = np.zeros(self.states.shape, bool)
        skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]  # a label may be the class of the blank, as in Keras
        self.skips = np.where(skips, 0.0, -np.inf)

    def _ends(self) -> np.ndarray:
        """0 at the states in which a path may end: the last label and the blank behind it; -inf elsewhere."""
        last, place = 2 * self.lengths[:, None], np.arange(self.states.shape[1])
        return np.where((place == last) | (place == last - 1), 0.0, -np.inf)

    def forward(self) -> np.ndarray:
        """(n, t + 1, s): log of the sum over all ways through the first t steps that end in state s."""
        n, t, s = self.scores.shape
        alpha = np.full((n, t + 1, s + 2), -np.inf)  # two states before the first one, which no path is in
        alpha[:, 0, 2] = 0.0
        for step in range(t):
            before = alpha[:, step]
            one = np.full((n, s), -np.inf) if step == 0 else before[:, 1:-1]
            two = np.where(np.arange(s) == 1, 0.0, -np.inf) if step == 0 else before[:, :-2] + self.skips
            alpha[:, step + 1, 2:] = np.logaddexp(np.logaddexp(before[:, 2:], one), two) + self.scores[:, step]
        return alpha[:, :, 2:]

    def likelihood(self, alpha: np.ndarray) -> np.ndarray:
        """(n,): log of the probability of the labels."""
        last = np.take_along_axis(alpha, self.steps[:, None, None], 1)[:, 0]
        return np.logaddexp.reduce(last + self._ends(), axis=1)

    def backward(self) -> np.ndarray:
        """(n, t, s): log of the sum over all ways from state s at step t to an end, without step t's own score."""
        n, t, s = self.scores.shape
        beta, ends = np.full((n, t, s), -np.inf), self._ends()
        for step in reversed(range(t)):
            if step + 1 < t:
                after = np.full((n, s + 2), -np.inf)
                after[:, :s] = beta[:, step + 1] + self.scores[:, step + 1]
                skipped = np.full((n, s), -np.inf)
                skipped[:, :-2] = (after[:, :s] + self.skips)[:, 2:]
                beta[:, step] = np.logaddexp(np.logaddexp(after[:, :s], after[:, 1:-1]), skipped)
            beta[:, step] = np.where((self.steps == step + 1)[:, None], ends, beta[:, step])
        return beta


def _ctc_loss(
    target: np.ndarray, output: np.ndarray, target_length: np.ndarray, output_length: np.ndarray, mask_index: int
) -> np.ndarray:
    with np.errstate(all="ignore"):
        paths = _Paths(target, output, target_length, output_length, mask_index)
        return -paths.likelihood(paths.forward())


def _ctc_loss_gradient(b: Backward, mask_index: int) -> Any:
    """By the logits: the softmax minus the portion of all paths that are in a class at this step."""
    with np.errstate(all="ignore"):
        target, output, lengths, steps = b.x
        paths = _Paths(target, output, lengths, steps, mask_index)
        alpha = paths.forward()
        portions = np.exp(alpha[:, 1:] + paths.backward() - paths.likelihood(alpha)[:, None, None])
        dx = np.exp(paths.log_p)
    at = np.arange(dx.shape[0])[:, None, None], np.arange(dx.shape[1])[:, None], paths.states[:, None, :]
    np.subtract.at(dx, at, portions)
    dx *= b.dy[0][:, None, None]
    dx[np.arange(dx.shape[1]) >= paths.steps[:, None]] = 0
    return None, dx, None, None


def _greedy(inputs: np.ndarray, lengths: np.ndarray, merge_repeated: bool, blank: int) -> Any:
    n, steps, _ = inputs.shape
    inside = np.arange(steps) < lengths[:, None]
    best = np.where(inside, inputs.argmax(axis=-1), blank)
    kept = best != blank
    if merge_repeated:
        kept[:, 1:] &= best[:, 1:] != best[:, :-1]
    decoded = np.full((1, n, steps), -1)
    for row, sample, keep in zip(decoded[0], best, kept, strict=True):
        row[: keep.sum()] = sample[keep]
    return decoded, -np.where(inside, inputs.max(axis=-1, initial=-np.inf), 0).sum(axis=1)[:, None]


def _best_sequences(log_p: np.ndarray, beam_width: int, blank: int) -> list[tuple[tuple[int, ...], float]]:
    """Label sequences of one sample (steps, classes) with their log probabilities, the best first.

    Prefix beam search (Hannun et al., 2014): each prefix keeps the scores of its ways that end in its last label and in
    a blank, since only behind a blank the same label comes again.
    """
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (-np.inf, 0.0)}
    for step in log_p:
        found: dict[tuple[int, ...], list[float]] = {}
        for prefix, (label_score, blank_score) in beams.items():
            total = np.logaddexp(label_score, blank_score)
            for label, score in enumerate(step):
                if label == blank:
                    _add(found, prefix, 1, total + score)
                elif prefix and label == prefix[-1]:
                    _add(found, prefix, 0, label_score + score)
                    _add(found, (*prefix, label), 0, blank_score + score)
                else:
                    _add(found, (*prefix, label), 0, total + score)
        ranked = sorted(found.items(), key=lambda item: -np.logaddexp(item[1][0], item[1][1]))
        beams = {prefix: (scores[0], scores[1]) for prefix, scores in ranked[:beam_width]}
    return sorted(
        ((p, float(np.logaddexp(scores[0], scores[1]))) for p, scores in beams.items()), key=lambda item: -item[1]
    )


def _add(found: dict[tuple[int, ...], list[float]], prefix: tuple[int, ...], kind: int, score: float) -> None:
    if score != -np.inf:
        scores = found.setdefault(prefix, [-np.inf, -np.inf])
        scores[kind] = float(np.logaddexp(scores[kind], score))


def _ctc_decode(
    inputs: np.ndarray,
    sequence_lengths: np.ndarray,
    strategy: str,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
    mask_index: int | None,
) -> Any:
    _decoded_shape(inputs.shape, sequence_lengths.shape, strategy, beam_width, top_paths, merge_repeated, mask_index)
    n, steps, classes = inputs.shape
    inputs = inputs if inputs.dtype.kind == "f" else inputs.astype(np.float32)
    if len(sequence_lengths) != n:
        raise ValueError(f"ctc_decode: expected {n} sequence_lengths, got {len(sequence_lengths)}")
    blank = classes - 1 if mask_index is None else mask_index
    if strategy == "greedy":
        return _greedy(inputs, sequence_lengths, merge_repeated, blank)
    decoded, scores = np.full((top_paths, n, steps), -1), np.full((n, top_paths), -np.inf)
    log_p = _log_softmax(inputs)
    for sample, length in enumerate(sequence_lengths.astype(int)):
        found = _best_sequences(log_p[sample, :length], beam_width, blank)
        for path, (labels, score) in enumerate(found[:top_paths]):
            decoded[path, sample, : len(labels)] = labels
            scores[sample, path] = score
    return decoded, scores


def _decoded_shape(
    inputs: Shape,
    lengths: Shape,
    strategy: str,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
    mask_index: int | None,
) -> list[Shape]:
    if strategy not in ("greedy", "beam_search"):
        raise ValueError(f"strategy: expected 'greedy' or 'beam_search', got {strategy!r}")
    if len(inputs) != 3 or len(lengths) != 1:
        raise ValueError(
            f"expected inputs (n, steps, classes) and sequence_lengths (n,), got {tuple(inputs)} and {tuple(lengths)}"
        )
    if mask_index is not None and not 0 <= mask_index < inputs[-1]:
        raise ValueError(f"expected mask_index in [0, {inputs[-1]}) or None, got {mask_index}")
    paths = 1 if strategy == "greedy" else top_paths
    return [(paths, inputs[0], inputs[1]), (inputs[0], paths)]


ROWS: list[Row] = [
    (
        "ctc_loss(target, output, target_length, output_length, mask_index=0)",
        "-log of the probability of target's labels (n, labels) under output's logits (n, steps, classes), summed over "
        "all alignments (connectionist temporal classification; Graves et al., ICML 2006); shape (n,).  mask_index is "
        "the class of the blank; the lengths (n,) say how many labels and steps count.  Infinite where there are too "
        "few steps for the labels.",
        Rule(_ctc_loss, _ctc_loss_gradient, _loss_shape, "second"),
    ),
    (
        "ctc_decode(inputs, sequence_lengths, strategy='greedy', beam_width=100, top_paths=1, merge_repeated=True, "
        "mask_index=0)",
        "Label sequences of logits (n, steps, classes): int32 (top_paths, n, steps), filled with -1, and scores "
        "(n, top_paths).  'greedy': the best class of each step, and minus the sum of its logits; 'beam_search': the "
        "top_paths best of beam_width sequences, and their log probabilities.",
        Rule(_ctc_decode, no_gradient, _decoded_shape, ("int32", "float")),
    ),
]
_FUNCTIONS = functions_of(__name__, ROWS, {"ctc_loss": 4, "ctc_decode": 2})
globals().update(_FUNCTIONS)
__all__ = exported(_FUNCTIONS, nn="ctc_loss ctc_decode")
