"""`tf.strings`: functions of tensors of strings, which are bytes.

Where a function would give rows of different lengths (TensorFlow's RaggedTensor) it takes one string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import Array, array, bytes_of, in_bytes, name_of, scalar, text_of
from pydtconv.support.fingerprints import fingerprint64, siphash24

_CODECS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


def _each(function: Callable[[bytes], Any], value: Any, dtype: Any = "string") -> Any:
    """The function of each string of a tensor."""
    texts = in_bytes(value)
    found = np.empty(texts.shape, object)
    found.reshape(-1)[:] = [function(each) for each in texts.view(np.ndarray).reshape(-1)]
    return found.view(Array) if dtype == "string" else array(found.astype(dtype))


def _codec(encoding: str) -> str:
    if encoding not in _CODECS:
        raise ValueError(f"tf.strings: encoding: expected one of {', '.join(_CODECS)}, got {encoding!r}")
    return _CODECS[encoding]


def _one(name: str, value: Any) -> bytes:
    """A single string.  Raises NotImplementedError for several, whose results would be ragged."""
    if in_bytes(value).ndim:
        raise NotImplementedError(
            f"tf.strings.{name}: expected one string, got shape {tuple(in_bytes(value).shape)}, whose result is a "
            "RaggedTensor, which is not supported: map the function over the elements"
        )
    return bytes_of(in_bytes(value))


# --- parts ------------------------------------------------------------------------------------------------------------


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Array:
    """The parts of a string between separators, by default white space; of several, where all have as many parts."""
    between = None if sep is None or bytes_of(sep) == b"" else bytes_of(sep)
    texts = in_bytes(input)
    rows = [text.split(between, maxsplit) for text in texts.view(np.ndarray).reshape(-1)]
    counts = {len(row) for row in rows}
    if texts.ndim and len(counts) != 1:
        _one("split", input)
    found = np.empty((len(rows), *counts), object)
    for i, row in enumerate(rows):
        found[i] = row
    return found.reshape((*texts.shape, *counts)).view(Array)


def bytes_split(input: Any, name: str | None = None) -> Array:
    """The bytes of a string."""
    text = _one("bytes_split", input)
    return in_bytes([text[i : i + 1] for i in range(len(text))])


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Array:
    """The characters of a string."""
    codec = _codec(input_encoding)
    return in_bytes([each.encode(codec) for each in _one("unicode_split", input).decode(codec, errors)])


def unicode_decode(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, **kwargs: Any
) -> Array:
    """The code points of a string."""
    return array([ord(each) for each in _one("unicode_decode", input).decode(_codec(input_encoding), errors)], "int32")


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Array:
    """The string of code points along the last axis."""
    points, codec = np.asarray(input), _codec(output_encoding)
    rows = ["".join(map(chr, row)).encode(codec) for row in points.reshape(-1, points.shape[-1])]
    return in_bytes(rows).reshape(points.shape[:-1])


def unicode_transcode(
    input: Any, input_encoding: str, output_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> Array:  # fmt: skip
    """Strings in another encoding."""
    source, target = _codec(input_encoding), _codec(output_encoding)
    return _each(lambda text: text.decode(source, errors).encode(target), input)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Array:
    """Parts of strings from a place on, of at most so many bytes or characters; a negative place counts from the end.

    Raises ValueError for a place outside of the string.
    """

    def part(text: Any, start: int, size: int) -> bytes:
        whole = text if unit == "BYTE" else text.decode()
        if not -whole.__len__() <= start <= whole.__len__():
            raise ValueError(f"pos {start} out of range for string {text!r}")
        start += whole.__len__() if start < 0 else 0
        found = whole[start : start + size]
        return found if unit == "BYTE" else found.encode()

    texts, starts, sizes = np.broadcast_arrays(in_bytes(input), np.asarray(pos), np.asarray(len))
    found = [part(*each) for each in zip(texts.flat, starts.flat, sizes.flat, strict=True)]
    return in_bytes(found).reshape(texts.shape)


def ngrams(
    data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None, padding_width: int | None = None,
    preserve_short_sequences: bool = False, name: str | None = None,
) -> Array:  # fmt: skip
    """Runs of so many strings of a vector, joined."""
    texts = list(in_bytes(data).view(np.ndarray))
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    found: list[bytes] = []
    for width in widths:
        room = 0 if pad_values is None else width - 1 if padding_width is None else min(padding_width, width - 1)
        left, right = pad_values if isinstance(pad_values, (tuple, list)) else (pad_values or "", pad_values or "")
        padded = [*[bytes_of(left)] * room, *texts, *[bytes_of(right)] * room]
        runs = [padded[i : i + width] for i in range(len(padded) - width + 1)]
        if not runs and preserve_short_sequences and padded:
            runs = [padded]
        found += [bytes_of(separator).join(run) for run in runs]
    return in_bytes(found)


# --- joined -----------------------------------------------------------------------------------------------------------


def join(inputs: Any, separator: Any = "", name: str | None = None) -> Array:
    """Strings one behind the other, those of several tensors element by element."""
    texts = np.broadcast_arrays(*map(in_bytes, inputs))
    found = [bytes_of(separator).join(parts) for parts in zip(*(each.flat for each in texts), strict=True)]
    return in_bytes(found).reshape(texts[0].shape)


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: Any = "", name: str | None = None
) -> Array:
    """The strings of a tensor one behind the other: all, or those along axes, along the first one at once."""
    texts = in_bytes(inputs).view(np.ndarray)
    axes = range(texts.ndim)[::-1] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    places = [place % max(texts.ndim, 1) for place in axes][::-1]
    rows = np.moveaxis(texts, places, range(-len(places), 0)) if places else texts[..., None]
    outer = rows.shape[: rows.ndim - max(len(places), 1)]
    found = [bytes_of(separator).join(row) for row in rows.reshape(*outer, -1).reshape(int(np.prod(outer)), -1)]
    kept = [1 if i in places else n for i, n in enumerate(texts.shape)] if keepdims else outer
    return in_bytes(found).reshape(tuple(kept))


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: int, separator: Any = "", name: str | None = None
) -> Array:
    """The strings of each segment, joined."""
    texts, places = in_bytes(inputs).view(np.ndarray).reshape(-1), np.asarray(segment_ids).reshape(-1)
    return in_bytes([bytes_of(separator).join(texts[places == i]) for i in range(int(num_segments))])


# --- patterns and numbers ---------------------------------------------------------------------------------------------


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Array:
    """Strings with what fits a pattern replaced; `\\1` in the replacement is the first group."""
    fitting, new = re.compile(bytes_of(pattern)), bytes_of(rewrite).replace(rb"\0", rb"\g<0>")
    return _each(lambda text: fitting.sub(new, text, count=0 if replace_global else 1), input)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Array:
    """Whether a pattern fits whole strings."""
    fitting = re.compile(bytes_of(pattern))
    return _each(lambda text: fitting.fullmatch(text) is not None, input, "bool")


def to_number(input: Any, out_type: Any = "float32", name: str | None = None) -> Array:
    """The numbers that strings are.  Raises ValueError for a string that is none."""
    kind = name_of(out_type)

    def number(text: bytes) -> Any:
        try:
            return int(text) if "int" in kind else float(text)
        except ValueError:
            raise ValueError(f"StringToNumberOp could not correctly convert string: {text.decode()}") from None

    return _each(number, input, kind)


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False, width: int = -1, fill: str = "",
    name: str | None = None,
) -> Array:  # fmt: skip
    """Numbers as strings: floats with 6 digits behind the point, or as many as precision says."""
    x = np.asarray(input)
    digits = f".{precision}" if precision >= 0 else ""
    letter = {"f": "e" if scientific else "g" if shortest else "f"}.get(x.dtype.kind, "")
    form = f"{fill}{width if width > 0 else ''}{digits if letter else ''}{letter}"

    def written(value: Any) -> bytes:
        return (str(value).lower() if x.dtype.kind == "b" else format(value, form)).encode()

    return in_bytes([written(each.item()) for each in x.reshape(-1)]).reshape(x.shape)


def format_(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Array:
    """A template with the values of tensors at its placeholders."""
    several = isinstance(inputs, (list, tuple))
    texts = iter([_shown(np.asarray(array(each)), summarize) for each in (inputs if several else [inputs])])
    parts = template.split(placeholder)
    return scalar("".join(part + next(texts, "") for part in parts[:-1]).encode() + parts[-1].encode())


def _shown(x: np.ndarray, summarize: int) -> str:
    if not x.ndim:
        return f'"{text_of(x)}"' if x.dtype.kind == "O" else str(x)
    rows = [_shown(each, summarize) for each in map(np.asarray, x)]
    if 0 <= 2 * summarize < len(rows):
        rows = [*rows[:summarize], "...", *rows[len(rows) - summarize :]]
    return f"[{(' ' if x.ndim == 1 else chr(10) + ' ').join(rows)}]"


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Array:
    """The numbers of bytes or of characters."""
    return _each(lambda text: len(text if unit == "BYTE" else text.decode()), input, "int32")


def _cased(name: str) -> Callable[..., Array]:
    def cased(input: Any, encoding: str = "", name_: str | None = None, **kwargs: Any) -> Array:
        """Letters of ASCII alone, or of UTF-8."""
        if encoding:
            return _each(lambda text: getattr(text.decode(encoding), name)().encode(encoding), input)
        return _each(lambda text: getattr(text, name)(), input)

    return cased


def strip(input: Any, name: str | None = None) -> Array:
    """Strings without white space at their ends."""
    return _each(bytes.strip, input)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """For each string one of so many numbers, by FarmHash's Fingerprint64."""
    return _each(lambda text: fingerprint64(text) % int(num_buckets), input, "int64")


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """The same by SipHash of a key of two integers."""
    first, second = (int(each) for each in key)
    return _each(lambda text: siphash24((first, second), text) % int(num_buckets), input, "int64")


def table() -> dict[str, Any]:
    """The names of `tf.strings`."""
    own = (
        split, bytes_split, unicode_split, unicode_decode, unicode_encode, unicode_transcode, substr, ngrams, join,
        reduce_join, unsorted_segment_join, regex_replace, regex_full_match, to_number, as_string, length, strip,
        to_hash_bucket_fast, to_hash_bucket_strong,
    )  # fmt: skip
    found: dict[str, Any] = {each.__name__: each for each in own}
    return found | {"format": format_, "lower": _cased("lower"), "upper": _cased("upper")}
