"""The algebra of intervals, against NumPy: every window of every part of an axis, computed from what the part reads."""

import itertools

import numpy as np
import pytest

from pydtconv.ops.base import Window
from pydtconv.ops.layout import (
    any_empty,
    balanced,
    difference,
    intersection,
    pieces,
    shifted,
    window_outputs,
    window_padding,
    window_reads,
)


def forward(window, x, outputs):
    """The windows' weighted sums, with weights of which no two are equal."""
    weights = 2.0 ** np.arange(window.kernel)
    y = np.zeros(outputs)
    for i, k in itertools.product(range(outputs), range(window.kernel)):
        place = i * window.stride - window.before + k * window.dilation
        y[i] += weights[k] * x[place] if 0 <= place < len(x) else 0
    return y


def transposed(window, x, outputs):
    weights = 2.0 ** np.arange(window.kernel)
    y = np.zeros(outputs)
    for i, k in itertools.product(range(len(x)), range(window.kernel)):
        place = i * window.stride - window.before + k * window.dilation
        if 0 <= place < outputs:
            y[place] += weights[k] * x[i]
    return y


def cases(kernels, extents):
    for kernel, stride, dilation in itertools.product(kernels, (1, 2, 3), (1, 2, 3)):
        reach = (kernel - 1) * dilation + 1
        for before, after in ((0, 0), (1, 2), (reach // 2, (reach - 1) // 2), (reach - 1, reach - 1)):
            for extent in extents:
                if extent + before + after >= reach:
                    yield Window(kernel, stride, dilation, before, after), extent


def check(window, extent, parts):
    """Each part of the output, from the interval that it reads and the padding that goes with it."""
    apply = transposed if window.transposed else forward
    x = np.random.default_rng(0).normal(size=extent)
    if window.transposed:
        outputs = (extent - 1) * window.stride + window.reach - window.before - window.after
    else:
        outputs = window.outputs(extent)
    if outputs < 1:
        return 0
    whole = apply(window, x, outputs)
    seen = 0
    for partition in (window_outputs(window, balanced(extent, parts), outputs), balanced(outputs, parts)):
        assert partition[0][0] == 0
        assert partition[-1][1] == outputs
        assert all(a[1] == b[0] for a, b in itertools.pairwise(partition))
        for start, stop in partition:
            read = window_reads(window, (start, stop), extent)
            if start == stop or read[0] == read[1]:
                assert not whole[start:stop].any()
                continue
            before, after = window_padding(window, (start, stop), read)
            assert before >= 0
            part = Window(window.kernel, window.stride, window.dilation, before, after, window.transposed)
            count = part.outputs(read[1] - read[0]) if not window.transposed else stop - start
            assert count == stop - start
            found = apply(part, x[slice(*read)], count)
            np.testing.assert_allclose(found, whole[start:stop], rtol=1e-12, atol=1e-12)
            seen += 1
    return seen


def test_parts_of_windows_are_parts_of_the_whole():
    assert sum(check(window, extent, 3) for window, extent in cases((1, 3), (5, 11))) > 400


def test_parts_of_transposed_windows_are_parts_of_the_whole():
    found = 0
    for window, extent in cases((1, 2, 3), (4, 7)):
        turned = Window(window.kernel, window.stride, window.dilation, window.before, window.after, True)
        found += check(turned, extent, 3)
    assert found > 400


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("parts", [1, 2, 4, 5])
def test_all_windows(turned, parts):
    for w, extent in cases((1, 2, 3, 4, 5), (1, 2, 6, 7, 13, 20)):
        check(Window(w.kernel, w.stride, w.dilation, w.before, w.after, turned), extent, parts)


def test_balanced_parts_differ_by_one():
    for extent, parts in itertools.product(range(12), range(1, 6)):
        sizes = [stop - start for start, stop in balanced(extent, parts)]
        assert sum(sizes) == extent
        assert max(sizes) - min(sizes) <= 1
        assert sizes == sorted(sizes, reverse=True)
        assert any_empty(balanced(extent, parts)) == (extent < parts)


def test_shifted():
    assert shifted(((0, 4), (4, 8)), 3, 5) == ((0, 1), (1, 5))
    assert shifted(((0, 4), (4, 8)), 5, 3) == ((0, 0), (0, 3))
    assert shifted(((0, 4), (4, 8)), -2, 11) == ((0, 6), (6, 11))


def box_of(mask_shape, box):
    mask = np.zeros(mask_shape, int)
    mask[tuple(slice(*interval) for interval in box)] = 1
    return mask


def test_boxes_are_sets_of_elements():
    intervals = [(0, 2), (1, 4), (2, 3), (3, 6)]
    boxes = list(itertools.product(intervals, intervals))
    for a, b in itertools.product(boxes, boxes):
        both, first, second = intersection(a, b), box_of((6, 6), a), box_of((6, 6), b)
        np.testing.assert_array_equal(np.zeros((6, 6)) if both is None else box_of((6, 6), both), first * second)
        left = sum((box_of((6, 6), part) for part in difference(a, b)), np.zeros((6, 6), int))
        np.testing.assert_array_equal(left, first * (1 - second))


def test_each_element_comes_from_one_process():
    """Halos beyond one neighbour, corners, copies: the nearest process that holds an element gives it."""
    rows, columns = balanced(9, 3), balanced(7, 2)
    held = list(itertools.product(rows, columns))
    for index, (row, column) in enumerate(held):
        need = ((max(row[0] - 4, 0), min(row[1] + 4, 9)), (max(column[0] - 1, 0), min(column[1] + 2, 7)))
        found = pieces(need, held, index)
        total = sum(box_of((9, 7), box) for _, box in found)
        np.testing.assert_array_equal(total, box_of((9, 7), need))
        assert all(intersection(box, held[other]) == box for other, box in found)
        assert (index, held[index]) in found
    copies = [((0, 5),), ((5, 9),), ((0, 5),), ((5, 9),)]
    assert pieces(((3, 7),), copies, 2) == [(2, ((3, 5),)), (1, ((5, 7),))]
    with pytest.raises(ValueError, match="expected every element"):
        pieces(((0, 9),), [((0, 5),)], 0)
