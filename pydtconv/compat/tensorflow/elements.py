"""The elements of a data set: as arrays, as arguments of a function, made ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.pipeline import Pipeline
from pydtconv.compat.tensorflow.ragged import RaggedTensor
from pydtconv.compat.tensorflow.sparse import SparseTensor


def as_array(value: Any) -> Any:
    """A leaf of an element as a tensor; a data set, as of `window`, and ragged rows, as they are."""
    return value if isinstance(value, (Pipeline, RaggedTensor)) else array(value)


def joined(value: Any) -> Any:
    """Lists of numbers or of arrays as one array, as TensorFlow reads them."""
    if isinstance(value, list):
        return array(value)
    if isinstance(value, tuple):
        return tuple(map(joined, value))
    if isinstance(value, dict):
        return {key: joined(part) for key, part in value.items()}
    return value


def called(function: Callable[..., Any], element: Any) -> Any:
    """The function of an element; of a tuple the parts are its arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def as_elements(value: Any) -> Any:
    """What a function has made as an element: lists are joined to arrays."""
    if isinstance(value, list):
        return array(np.stack([np.asarray(array(item)) for item in value])) if value else array(value)
    if isinstance(value, tuple):
        return tuple(map(as_elements, value))
    if isinstance(value, dict):
        return {key: as_elements(part) for key, part in value.items()}
    return value if isinstance(value, SparseTensor) else as_array(value)


def made(value: Any) -> Any:
    """What a function has returned as an element: a list, as of `numpy_function`, stands for a tuple."""
    return as_elements(tuple(value) if isinstance(value, list) else value)


class _End:
    """Ends a queue, with the error that ended the source."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def ahead(source: Iterator[Any], room: int) -> Iterator[Any]:
    """The elements of source, which a thread makes while the reader is busy."""
    waiting: queue.Queue[Any] = queue.Queue(room)
    stopped = threading.Event()

    def put(item: Any) -> None:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        error: BaseException | None = None
        try:
            for item in source:
                put(item)
                if stopped.is_set():
                    return
        except BaseException as caught:
            error = caught
        put(_End(error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopped.set()
