"""Hash functions of bytes whose values are the same everywhere: FarmHash's Fingerprint64 and SipHash-2-4.

Fingerprint64 is Google's, described at https://github.com/google/farmhash; SipHash is that of Aumasson and Bernstein
(2012).  All numbers are unsigned and of 64 bits.
"""

from __future__ import annotations

import struct
from typing import Any

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_CAT = 0xC6A4A7935BD1E995
#: the four starting words of SipHash
_SIP = tuple(int.from_bytes(part, "big") for part in (b"somepseu", b"dorandom", b"lygenera", b"tedbytes"))


def fingerprint64(data: bytes) -> int:
    """FarmHash's Fingerprint64 of bytes."""
    n = len(data)
    if n <= 16:
        return _of_up_to_16(data)
    if n <= 64:
        return _of_up_to_64(data)
    return _of_blocks(data)


def key_of(name: str, salt: Any) -> list[int] | None:
    """The key of SipHash of a salt: two numbers, or one that is both; None stays it."""
    pair = [salt, salt] if isinstance(salt, int) else salt
    if pair is not None and (len(pair) != 2 or not all(0 <= int(part) < 1 << 64 for part in pair)):
        raise ValueError(f"{name}: salt: expected one or two numbers from 0 to 2**64 - 1, got {salt!r}")
    return None if pair is None else [int(part) for part in pair]


def string_bin(text: str, count: int, key: list[int] | None) -> int:
    """Which of so many bins a text belongs to: by Fingerprint64, by SipHash where there is a key."""
    data = text.encode()
    return (fingerprint64(data) if key is None else siphash24((key[0], key[1]), data)) % count


def fingerprint_cat64(first: int, second: int) -> int:
    """One fingerprint of two in their order."""
    result = (first ^ _CAT ^ (_shift_mix(second * _CAT & _MASK) * _CAT)) * _CAT & _MASK
    return _shift_mix(_shift_mix(result) * _CAT & _MASK)


def siphash24(key: tuple[int, int], data: bytes) -> int:
    """SipHash of two rounds a word and four at the end."""
    v = [start ^ key[i % 2] for i, start in enumerate(_SIP)]
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        v = _sip_round(_sip_round(v))
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        v = _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _sip_round(v: list[int]) -> list[int]:
    a, b, c, d = v
    a, c = (a + b) & _MASK, (c + d) & _MASK
    b, d = _left(b, 13) ^ a, _left(d, 16) ^ c
    a, c = (_left(a, 32) + d) & _MASK, (c + b) & _MASK
    d, b = _left(d, 21) ^ a, _left(b, 17) ^ c
    return [a, b, _left(c, 32), d]


def _left(value: int, by: int) -> int:
    """The bits moved to the left, in a circle."""
    return (value << by | value >> (64 - by)) & _MASK


def _right(value: int, by: int) -> int:
    """The bits of a sum, moved to the right, in a circle."""
    return _left(value & _MASK, 64 - by)


def _shift_mix(value: int) -> int:
    return value ^ value >> 47


def _word(data: bytes, place: int) -> int:
    """Eight bytes from a place (from the end where it is negative), the lowest first."""
    return int.from_bytes(data[place:][:8], "little")


def _mixed(u: int, v: int, factor: int) -> int:
    """Two numbers as one."""
    a = _shift_mix((u ^ v) * factor & _MASK)
    return _shift_mix((v ^ a) * factor & _MASK) * factor & _MASK


def _of_up_to_16(data: bytes) -> int:
    n = len(data)
    factor = _K2 + 2 * n & _MASK
    if n >= 8:
        a, b = _word(data, 0) + _K2 & _MASK, _word(data, -8)
        return _mixed(_right(b, 37) * factor + a & _MASK, (_right(a, 25) + b) * factor & _MASK, factor)
    if n >= 4:
        first, last = (int.from_bytes(part, "little") for part in (data[:4], data[-4:]))
        return _mixed(n + (first << 3), last, factor)
    if n:
        y, z = data[0] + (data[n >> 1] << 8), n + (data[-1] << 2)
        return _shift_mix((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _of_up_to_64(data: bytes) -> int:
    n = len(data)
    factor = _K2 + 2 * n & _MASK
    a, b = _word(data, 0) * (_K1 if n <= 32 else _K2) & _MASK, _word(data, 8)
    c, d = _word(data, -8) * factor & _MASK, _word(data, -16) * _K2 & _MASK
    y = _right(a + b, 43) + _right(c, 30) + d & _MASK
    z = _mixed(y, a + _right(b + _K2, 18) + c & _MASK, factor)
    if n <= 32:
        return z
    e, f = _word(data, 16) * factor & _MASK, _word(data, 24)
    g, h = (y + _word(data, -32)) * factor & _MASK, (z + _word(data, -24)) * factor & _MASK
    return _mixed(_right(e + f, 43) + _right(g, 30) + h & _MASK, e + _right(f + a & _MASK, 18) + g & _MASK, factor)


def _of_blocks(data: bytes) -> int:
    """Bytes of more than one block of 64."""
    n, seed = len(data), 81
    y = seed * _K1 + 113 & _MASK
    z = _shift_mix(y * _K2 + 113 & _MASK) * _K2 & _MASK
    x, v, w = seed * _K2 + _word(data, 0) & _MASK, (0, 0), (0, 0)
    for place in range(0, (n - 1) // 64 * 64, 64):
        x, y, z, v, w = _block(data[place : place + 64], x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1) & _MASK
    w = (w[0] + (n - 1 & 63), w[1])
    v = (v[0] + w[0] & _MASK, v[1])
    w = (w[0] + v[0] & _MASK, w[1])
    x, y, z, v, w = _block(data[-64:], x, y, z, v, w, factor, 9)
    first = _mixed(v[0], w[0], factor) + _shift_mix(y) * _K0 + z
    return _mixed(first & _MASK, _mixed(v[1], w[1], factor) + x & _MASK, factor)


def _block(
    data: bytes, x: int, y: int, z: int, v: tuple[int, int], w: tuple[int, int], factor: int, more: int
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """The state after 64 bytes.  more: the weight of the state in itself, 1 but for the last block."""
    x = _right(x + y + v[0] + _word(data, 8), 37) * factor & _MASK
    y = _right(y + v[1] + _word(data, 48), 42) * factor & _MASK
    x ^= w[1] * more & _MASK
    y = y + v[0] * more + _word(data, 40) & _MASK
    z = _right(z + w[0], 33) * factor & _MASK
    v = _weak(data[:32], v[1] * factor, x + w[0])
    w = _weak(data[32:], z + w[1], y + _word(data, 16))
    return z, y, x, v, w


def _weak(data: bytes, a: int, b: int) -> tuple[int, int]:
    """32 bytes and two seeds as two numbers."""
    first, second, third, fourth = struct.unpack("<4Q", data)
    a += first
    b = _right(b + a + fourth, 21)
    c = a
    a += second + third
    b += _right(a, 44)
    return a + fourth & _MASK, b + c & _MASK
