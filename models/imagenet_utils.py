"""What the networks of `keras.applications` share: images as they were trained on, and names of the 1000 classes."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import config, ops, utils

__all__ = ["decode_predictions", "preprocess_input"]

_CLASS_INDEX = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json"
#: by mode: divisor of all, then mean and deviation of the channels, and whether these are turned from RGB to BGR
_MODES: dict[str, tuple[float, tuple[float, ...], tuple[float, ...], bool]] = {
    "caffe": (1.0, (103.939, 116.779, 123.68), (1.0, 1.0, 1.0), True),
    "tf": (127.5, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), False),
    "torch": (255.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), False),
}


def preprocess_input(x: Any, data_format: str | None = None, mode: str = "caffe") -> Any:
    """RGB images of 0 to 255, (h, w, c) or (n, h, w, c), as the networks of a mode take them.

    mode: "caffe": BGR less the mean of ImageNet; "tf": from -1 to 1; "torch": 0 to 1 less mean over deviation.
    An array of floats is changed in place, as Keras does.  Raises ValueError for another mode or data_format.
    """
    if mode not in _MODES:
        raise ValueError(f"preprocess_input: mode: expected one of {', '.join(_MODES)}, got {mode!r}")
    data_format = config.image_data_format() if data_format is None else data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            f"preprocess_input: data_format: expected 'channels_last' or 'channels_first', got {data_format!r}"
        )
    divisor, mean, deviation, turned = _MODES[mode]
    axis = len(x.shape) - (1 if data_format == "channels_last" else 3)
    if not hasattr(x, "apply_op"):
        return _on_array(np.asarray(x), mode, axis)
    if mode == "tf":
        return x / divisor - 1.0
    if turned:
        parts = ops.split(x, 3, axis)
        x = ops.concatenate(parts[::-1], axis)
    shape = [1] * len(x.shape)
    shape[axis] = 3
    scale = np.reshape(1 / (divisor * np.array(deviation)), shape).astype(x.dtype)
    return x * scale - np.reshape(np.array(mean) / np.array(deviation), shape).astype(x.dtype)


def _on_array(x: np.ndarray, mode: str, axis: int) -> np.ndarray:
    divisor, mean, deviation, turned = _MODES[mode]
    if not np.issubdtype(x.dtype, np.floating):
        x = x.astype(config.floatx())
    if mode == "tf":
        x /= divisor
        x -= 1.0
        return x
    if turned:
        x = np.flip(x, axis)
    shape = [1] * x.ndim
    shape[axis] = 3
    if divisor != 1:
        x /= divisor
    x -= np.reshape(mean, shape).astype(x.dtype)
    if mode == "torch":
        x /= np.reshape(deviation, shape).astype(x.dtype)
    return x


@functools.cache
def _class_index() -> dict[str, list[str]]:
    path = utils.get_file(
        "imagenet_class_index.json",
        _CLASS_INDEX,
        cache_subdir="models",
        file_hash="c2c37ea517e94d9795004a39431a14cb",
    )
    with open(path) as file:
        return json.load(file)


def decode_predictions(preds: Any, top: int = 5) -> list[list[tuple[str, str, float]]]:
    """The `top` likeliest classes of each sample, as (WordNet name, description, score), for preds of (n, 1000).

    The names come from a file that Keras publishes; it is downloaded once.  Raises ValueError for another shape.
    """
    preds = np.asarray(preds)
    if preds.ndim != 2 or preds.shape[1] != 1000:
        raise ValueError(f"decode_predictions: preds: expected shape (samples, 1000), got {preds.shape}")
    index = _class_index()
    best = np.argsort(preds, axis=1)[:, ::-1][:, :top]
    return [[(*index[str(i)], row[i]) for i in order] for row, order in zip(preds, best, strict=True)]


def preprocessing(mode: str | None) -> Callable[..., Any]:
    """The `preprocess_input` of a module of `keras.applications`; None: the images as they are."""

    def preprocess_input(x: Any, data_format: str | None = None) -> Any:
        return x if mode is None else _preprocess(x, data_format, mode)

    preprocess_input.__doc__ = (
        "x itself: the networks take images of 0 to 255."
        if mode is None
        else f'RGB images of 0 to 255 as these networks take them: mode "{mode}" of imagenet_utils.preprocess_input.'
    )
    return preprocess_input


_preprocess = preprocess_input
