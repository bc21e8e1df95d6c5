"""Buckets: slices of the flat array of gradients, each of which is reduced by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pydtconv.distribution.gradients.all_reduce import pieces_of
from pydtconv.distribution.mpi.communicator import Request
from pydtconv.graph.memory.parameter_store import ParameterStore


@dataclass
class Bucket:
    """A slice of the flat array, of variables of one dtype.  names: of its first and its last variable; missing:
    gradients still to come; words: of the flat array, in a number of the dtype.  cut: whether it is of variables of
    which each process has some columns.

    request: of its reduction, from when that has started until the sum is about to be read; done: whether it is there.
    """

    part: slice
    names: tuple[str, str]
    dtype: str
    variables: int
    words: int = 1
    cut: bool = False
    missing: int = 0
    request: Request | None = None
    done: bool = False

    @property
    def place(self) -> slice:
        """The slice, counted in numbers of the dtype."""
        return slice(self.part.start // self.words, self.part.stop // self.words)

    def in_words(self, part: slice) -> slice:
        """A slice that is counted in numbers of the dtype, in the flat array."""
        return slice(part.start * self.words, part.stop * self.words)

    def numbers(self, flat: np.ndarray) -> np.ndarray:
        """A flat array as numbers of the dtype."""
        return flat if flat.dtype == self.dtype else flat.view(self.dtype)


#: what each process has of a bucket, by rank, counted in its numbers
Pieces = Callable[[Bucket], list[slice]]


def equal_pieces(bucket: Bucket, count: int) -> list[slice]:
    """Pieces for so many processes, wherever variables begin and end."""
    return pieces_of(bucket.place, count)


class WholeVariables:
    """Pieces of whole variables for so many processes, which have about as many bytes each.  nbytes: of a bucket."""

    def __init__(self, store: ParameterStore, nbytes: int, count: int) -> None:
        self._pieces: dict[int, list[slice]] = {}
        self._loads = [0] * count
        variables = iter(store.variables)
        for bucket in buckets_of(store, nbytes):
            starts = [store.slice_of(next(variables)).start for _ in range(bucket.variables)]
            parts = self._shared_out([*starts, bucket.part.stop])
            words = bucket.words
            self._pieces[bucket.part.start] = [slice(part.start // words, part.stop // words) for part in parts]

    def __call__(self, bucket: Bucket) -> list[slice]:
        return self._pieces[bucket.part.start]

    def _shared_out(self, ends: list[int]) -> list[slice]:
        """For each process neighbours among the variables of a bucket, or none.

        The one that has least so far gets the first ones, until it has what all would have on average; then the next.
        """
        loads = self._loads
        level = (sum(loads) + ends[-1] - ends[0]) / len(loads)
        ranks = sorted(range(len(loads)), key=loads.__getitem__)
        found = [slice(ends[0], ends[0])] * len(loads)
        first = ends[0]
        for start, stop in itertools.pairwise(ends):
            if len(ranks) > 1 and start > first and loads[ranks[0]] + (stop - start) / 2 > level:
                ranks, first = ranks[1:], start
            loads[ranks[0]] += stop - start
            found[ranks[0]] = slice(first, stop)
        return found


def buckets_of(store: ParameterStore, nbytes: int) -> list[Bucket]:
    """Neighbouring variables of one dtype, together of at most nbytes, or a single one that is larger.

    Those with columns have buckets of their own.
    """
    starts = [store.slice_of(variable).start for variable in store.variables] + [store.size]
    kinds = [(variable.dtype, variable.cut is not None) for variable in store.variables]
    limit = max(nbytes // store.itemsize, 1)
    found: list[Bucket] = []
    first = 0
    for i in range(1, len(starts)):
        if i == len(kinds) or starts[i + 1] - starts[first] > limit or kinds[i] != kinds[first]:
            names, (dtype, cut) = (store.variables[first].path, store.variables[i - 1].path), kinds[first]
            words = np.dtype(dtype).itemsize // store.itemsize
            found.append(Bucket(slice(starts[first], starts[i]), names, dtype, i - first, words, cut))
            first = i
    return found
