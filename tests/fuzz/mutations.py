"""Hypothesis strategies of damaged files: bytes changed, cut, doubled, swapped between files, sizes made extreme."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hypothesis import strategies as st

#: numbers that sizes and offsets go wrong at
_EXTREME = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, 1 << 61)
_EXTREME += (1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


@st.composite
def damaged(draw: st.DrawFn, wholes: Sequence[bytes]) -> bytes:
    """One of the files after one to four changes."""
    data = draw(st.sampled_from(wholes))
    for _ in range(draw(st.integers(1, 4))):
        data = draw(st.sampled_from(_CHANGES))(draw, data, wholes)
    return data


def _place(draw: st.DrawFn, data: bytes) -> int:
    """Mostly near the beginning or the end, where headers and tables are."""
    end = max(len(data) - 1, 0)
    near = min(end, 600)
    return draw(st.one_of(st.integers(0, near), st.integers(end - near, end), st.integers(0, end)))


def _flip(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + bytes([(data[at] if data else 0) ^ draw(st.integers(1, 255))]) + data[at + 1 :]


def _number(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    at, form = _place(draw, data), draw(st.sampled_from(("B", "<H", ">H", "<I", ">I", "<Q", ">Q")))
    size = struct.calcsize(form)
    value = draw(st.sampled_from(_EXTREME)) & ((1 << 8 * size) - 1)
    return data[:at] + struct.pack(form, value) + data[at + size :]


def _cut(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    return data[: _place(draw, data)]


def _remove(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + data[at + draw(st.integers(1, 64)) :]


def _insert(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    at = _place(draw, data)
    return data[:at] + draw(st.binary(min_size=1, max_size=32)) + data[at:]


def _double(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    at, other = _place(draw, data), _place(draw, data)
    return data[:at] + data[other : other + 256] + data[at:]


def _swap(draw: st.DrawFn, data: bytes, wholes: Sequence[bytes]) -> bytes:
    """The end of another file behind the beginning of this one."""
    other, at = draw(st.sampled_from(wholes)), _place(draw, data)
    return data[:at] + other[at:]


_CHANGES = (_flip, _flip, _number, _number, _cut, _remove, _insert, _double, _swap)
