"""Bases of transforms: which are tried."""

import pytest

from pydtconv.conv import ConvProblem, bases, tuning

SEVEN_SMOOTH = [n for n in range(2, 257) if bases.is_length(n)]


@pytest.mark.parametrize(
    ("extent", "expected"), [(32, [32]), (34, [35, 36, 40, 42, 45, 48, 49, 50, 54, 56, 60, 63, 64]), (257, [])]
)
def test_images_are_interpolated_to_the_next_power_of_two(extent, expected):
    p = ConvProblem(1, extent, extent, 2, 2, (3, 3))
    assert bases.interpolated(p) == [(n, n) for n in expected]


def test_padding_counts_and_axes_of_different_lengths_are_interpolated_each():
    p = ConvProblem(1, 5, 11, 2, 2, (3, 3), padding="same")
    assert bases.interpolated(p) == [(high, wide) for high in (7, 8) for wide in (14, 15, 16)]
    assert bases.interpolated(ConvProblem.of((1, 6, 2), (3, 2, 2))) == [(1, n) for n in (6, 7, 8)]


def test_tuning_tries_all_of_them_where_asked():
    p = ConvProblem(4, 36, 36, 4, 4, (5, 5))
    usual, every = (tuning.Bench(all_bases).names(p, "forward") for all_bases in (False, True))
    assert every[0] == usual[0]
    assert set(usual) <= set(every)
    assert len(set(every)) == len(every)
    assert {f"fft {n}x{n}" for n in SEVEN_SMOOTH if 36 <= n <= 64} <= set(every)
    assert not {"fft 63x63", "fft 64x64"} & set(usual)
