"""How many taps of a convolution meet a pixel, counted without a walk through them."""

from __future__ import annotations


def taps_met(written: int, taps: int, stride: int, dilation: int, before: int, read: int) -> int:
    """Pairs of an output o < written and a tap t < taps for which 0 <= o * stride - before + t * dilation < read."""
    # tap t meets the outputs from ceil((before - t * dilation) / stride) to ceil((read + before - ...) / stride) - 1
    return _outputs_below(read + before, written, taps, stride, dilation) - _outputs_below(
        before, written, taps, stride, dilation
    )


def _outputs_below(limit: int, written: int, taps: int, stride: int, dilation: int) -> int:
    """The sum over taps t of ceil((limit - t * dilation) / stride), each at least 0 and at most `written`."""
    some = min(max(-(-limit // dilation), 0), taps)  # the later taps add nothing
    all_of = min(max(-(((written - 1) * stride - limit) // dilation), 0), some)  # the first ones add `written`
    first = limit - (some - 1) * dilation + stride - 1
    return all_of * written + _floor_sum(some - all_of, stride, dilation, first)


def _floor_sum(n: int, m: int, a: int, b: int) -> int:
    """The sum of (a * i + b) // m over i < n, by Euclid's algorithm; a and b are 0 or more."""
    total = 0
    while n > 0:
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        top = a * n + b
        n, b = divmod(top, m)
        m, a = a, m
    return total
