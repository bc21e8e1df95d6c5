"""`tf.strings`, on Python's strings and arrays of them: what pipelines make of names of files and labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import Text, array, name_of


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _each(function: Callable[[str], Any], value: Any) -> Any:
    """The function of a string, or of each of an array's."""
    if isinstance(value, (str, bytes)) or np.ndim(value) == 0:
        found = function(_one(value))
        return Text(found) if isinstance(found, str) else found
    return np.vectorize(lambda each: function(_text(each)))(np.asarray(value))


def _one(value: Any) -> str:
    return _text(value if isinstance(value, (str, bytes)) else np.asarray(value).item())


def split(input: Any, sep: str | None = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts of a string between separators."""
    return np.asarray(_one(input).split(sep, maxsplit))


def unicode_split(input: Any, input_encoding: str = "UTF-8", name: str | None = None, **kwargs: Any) -> Any:
    """The characters of a string."""
    return np.asarray(list(_one(input)))


def join(inputs: Any, separator: str = "", name: str | None = None) -> Any:
    """Strings one behind the other, those of arrays element by element."""
    texts = [np.asarray(each if not isinstance(each, bytes) else _text(each)) for each in inputs]
    shape = np.broadcast_shapes(*(each.shape for each in texts))
    if not shape:
        return Text(separator.join(str(each) for each in texts))
    whole = [np.broadcast_to(each, shape).reshape(-1) for each in texts]
    return np.asarray([separator.join(map(_text, parts)) for parts in zip(*whole, strict=True)]).reshape(shape)


def reduce_join(inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: Any = None) -> Any:
    """The strings of an array one behind the other: all, or those along an axis."""
    texts = np.asarray(inputs)
    if axis is None:
        return Text(separator.join(map(_text, texts.reshape(-1))))
    rows = np.moveaxis(texts, axis, -1)
    found = np.asarray([separator.join(map(_text, row)) for row in rows.reshape(-1, rows.shape[-1])])
    found = found.reshape(rows.shape[:-1])
    return np.expand_dims(found, axis) if keepdims else found


def regex_replace(input: Any, pattern: str, rewrite: str, replace_global: bool = True, name: Any = None) -> Any:
    """Strings with what fits a pattern replaced."""
    return _each(lambda text: re.sub(pattern, rewrite, text, count=0 if replace_global else 1), input)


def regex_full_match(input: Any, pattern: str, name: str | None = None) -> Any:
    """Whether a pattern fits whole strings."""
    return _each(lambda text: re.fullmatch(pattern, text) is not None, input)


def substr(input: Any, pos: int, len: int, unit: str = "BYTE", name: str | None = None) -> Any:
    """Parts of strings."""
    return _each(lambda text: text[pos:][:len], input)


def to_number(input: Any, out_type: Any = "float32", name: str | None = None) -> Any:
    """The numbers that strings tell."""
    return array(_each(float, input), name_of(out_type))


def as_string(input: Any, precision: int = -1, name: str | None = None) -> Any:
    """Numbers as strings."""
    x = np.asarray(input)

    form = f".{precision}f" if precision >= 0 else "f" if x.dtype.kind == "f" else ""

    def told(value: Any) -> str:
        return format(value, form)

    return told(x.item()) if not x.ndim else np.vectorize(told)(x)


def table() -> dict[str, Any]:
    """The names of `tf.strings`."""
    own = split, unicode_split, join, reduce_join, regex_replace, regex_full_match, substr, to_number, as_string
    found: dict[str, Any] = {each.__name__: each for each in own}
    return found | {
        "length": lambda input, unit="BYTE", name=None: _each(len, input),
        "lower": lambda input, encoding="", name=None: _each(str.lower, input),
        "upper": lambda input, encoding="", name=None: _each(str.upper, input),
        "strip": lambda input, name=None: _each(str.strip, input),
    }
