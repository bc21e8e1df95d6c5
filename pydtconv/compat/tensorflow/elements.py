"""The elements of a data set: as arrays, as arguments of a function, made ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import array


def as_array(value: Any) -> Any:
    if isinstance(value, (str, bytes)) or (isinstance(value, np.ndarray) and value.dtype.kind in "OSU"):
        return value
    return array(value)


def joined(value: Any) -> Any:
    """Lists of numbers or of arrays as one array, as TensorFlow reads them."""
    if isinstance(value, list):
        return np.asarray(value)
    if isinstance(value, tuple):
        return tuple(map(joined, value))
    if isinstance(value, dict):
        return {key: joined(part) for key, part in value.items()}
    return value


def called(function: Callable[..., Any], element: Any) -> Any:
    return function(*element) if isinstance(element, tuple) else function(element)


def as_elements(value: Any) -> Any:
    if isinstance(value, list):
        return array(np.stack([np.asarray(item) for item in value])) if value else value
    if isinstance(value, tuple):
        return tuple(map(as_elements, value))
    return {key: as_elements(part) for key, part in value.items()} if isinstance(value, dict) else as_array(value)


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
