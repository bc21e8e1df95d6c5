"""Views with any offset and strides, and storages that live several times."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pydtconv.graph.memory.buffer_assignment import ALIGNMENT, assign_offsets
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.ops.base import Spec


def boxes() -> list[tuple[View, tuple[slice, ...]]]:
    """Random boxes of an image, channel slices and rows among them, with the slices that NumPy would take."""
    rng = np.random.default_rng(0)
    shape = (2, 5, 4, 6)
    whole = fresh("x", "activation", Spec(shape))
    whole.buffer.offset = 64
    found = [(whole, (slice(None),) * 4)]
    for _ in range(40):
        start = [int(rng.integers(extent)) for extent in shape]
        stop = [int(rng.integers(first + 1, extent + 1)) for first, extent in zip(start, shape, strict=True)]
        if rng.random() < 0.5:
            start[:3], stop[:3] = [0, 0, 0], list(shape[:3])
        spec = Spec(tuple(b - a for a, b in zip(start, stop, strict=True)))
        slices = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
        found.append((whole.part(tuple(start), spec), slices))
    return found


def test_parts_are_what_numpy_slices() -> None:
    arena = np.arange(64 + 4 * 240 + 64, dtype=np.uint8)
    image = np.ndarray((2, 5, 4, 6), np.float32, arena, 64)
    image[...] = np.arange(240).reshape(image.shape)
    for view, slices in boxes():
        np.testing.assert_array_equal(view.array(arena), image[slices])
        assert view.is_slice is not image[slices].flags.c_contiguous or 1 in view.spec.shape


def test_overlap_of_boxes_is_told_exactly() -> None:
    met = 0
    marks = np.zeros((2, 5, 4, 6), int)
    for (a, slices), (b, others) in itertools.combinations(boxes(), 2):
        marks[...] = 0
        marks[slices] += 1
        marks[others] += 1
        together = bool((marks == 2).any())
        met += together
        if a.is_slice and b.is_slice:
            assert a.overlaps(b) is b.overlaps(a) is together
        elif together:
            assert a.overlaps(b)
            assert b.overlaps(a)
    assert 100 < met < 700


def test_views_of_different_buffers_share_nothing() -> None:
    a, b = fresh("a", "activation", Spec((4,))), fresh("b", "activation", Spec((4,)))
    assert not a.overlaps(b)
    assert a.overlaps(View(a.buffer, Spec((2, 2))))
    assert not View(a.buffer, Spec((2,))).overlaps(View(a.buffer, Spec((2,)), 8))


def storage(nbytes: int, *lives: tuple[int, int]) -> Storage:
    return Storage("s", "activation", nbytes, list(lives))


def test_memory_between_two_lives_is_used_by_others() -> None:
    rests, other = storage(1000, (0, 2), (8, 9)), storage(1000, (3, 7))
    assert assign_offsets([rests, other]) == 1024
    assert rests.offset == other.offset == 0
    always = storage(1000, (0, 9))
    assert assign_offsets([always, storage(1000, (3, 7))]) == 2048


@pytest.mark.parametrize("seed", range(20))
def test_storages_that_live_at_the_same_time_do_not_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    storages = []
    for _ in range(40):
        ends = np.sort(rng.choice(60, 2 * int(rng.integers(1, 4)), replace=False))
        storages.append(storage(int(rng.integers(1, 2000)), *((int(a), int(b)) for a, b in ends.reshape(-1, 2))))
    arena = assign_offsets(storages)
    for a, b in itertools.combinations(storages, 2):
        together = any(a.lives_at(step) and b.lives_at(step) for step in range(60))
        assert not (together and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes)
    assert arena == max(-(-(each.offset + each.nbytes) // ALIGNMENT) * ALIGNMENT for each in storages)


def test_a_use_after_a_release_begins_a_life() -> None:
    each = storage(4)
    for step in (3, 5):
        each.touch(step)
    each.release()
    for step in (9, 11):
        each.touch(step)
    each.touch(0)
    assert each.lives == [(0, 5), (9, 11)]
    assert [step for step in range(13) if each.lives_at(step)] == [0, 1, 2, 3, 4, 5, 9, 10, 11]


def test_another_order_is_tried_where_gaps_make_the_arena_too_large() -> None:
    rows = [(4096, (5, 5)), (4096, (3, 4)), (3072, (0, 0)), (1024, (4, 5)), (4096, (2, 3))]
    assert assign_offsets([storage(nbytes, life) for nbytes, life in rows], 9216) == 9216
    assert assign_offsets([storage(nbytes, life) for nbytes, life in rows], 8192) == 8192
    found = [storage(nbytes, life) for nbytes, life in rows]
    assert assign_offsets(found) == 8192  # what lives at one time
    assert max(each.offset + each.nbytes for each in found) == 8192
    for a, b in itertools.combinations(found, 2):
        together = a.first <= b.last and b.first <= a.last
        assert not (together and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes)
