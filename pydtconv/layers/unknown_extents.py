"""What stands for extents that are not known while shapes are inferred, and which of them go together."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydtconv.extents import SizeError
from pydtconv.ops.base import Spec

#: what stands for unknown extents where shapes are inferred: an extent that differs between the two is None; they are
#: so large and far apart that they differ behind several strides, too
PROBES = (331, 467)
#: the same for functions that extents can be too large for, as a padding to a size
_SMALL = (2, 3)
#: a factor of extents that have to be divisible
_DIVISIBLE = 60
#: factors of the first probe for windows and borders that are larger than it, along one axis or along all; that of the
#: second is twice as much, so that no window fits equally often into both
_LARGE, _LARGE_IN_ALL = 64, 32
#: how many numbers of a function, and guesses of its extents, are tried, and how many guesses for a layer
_MOST_NUMBERS, _MOST_GUESSES, _MOST_OF_LAYERS = 16, 64, 16
#: (spec, tensor): the spec of a tensor with numbers for the extents that are not known
Fill = Callable[[Spec, Any], Spec]
#: (number of the probe, tensor, axis): what stands for an extent that is not known
_Way = Callable[[int, Any, int], int]
_Extents = dict[tuple[int, int], int]


def probed(
    infer: Callable[[Fill], Any],
    merge: Callable[[Any, Any], Any],
    leaves: Sequence[Any],
    numbers: Sequence[int] | None = None,
) -> Any:
    """What `merge` makes of what `infer` finds for each of the probes.

    leaves: the tensors whose extents it asks for.  numbers: for a function, the numbers among its settings.  Raises the
    error of one probe for all extents where no way leads to a result.
    """
    errors: list[Exception] = []
    for way in _ways(leaves, numbers, errors):
        try:
            return merge(*(infer(functools.partial(_filled, functools.partial(way, i))) for i in range(len(PROBES))))
        except (ValueError, IndexError) as error:
            errors.append(error)
    raise errors[any(leaf.times != 1 for leaf in leaves)]


def with_short_axes(infer: Callable[[Fill], Any]) -> Any:
    """What `infer` finds where each extent that is not known is small."""
    return infer(functools.partial(_filled, lambda leaf, axis: _SMALL[0]))


def _filled(extent_of: Callable[[Any, int], int], spec: Spec, leaf: Any) -> Spec:
    shape = (extent_of(leaf, axis) if extent is None else extent for axis, extent in enumerate(spec.shape))
    return Spec(tuple(shape), spec.dtype)


def _ways(leaves: Sequence[Any], numbers: Sequence[int] | None, errors: Sequence[Exception]) -> Iterator[_Way]:
    """How extents that are not known are filled in.

    At first each is the batch, as often as a tensor has it; then the batch once: it may not be what they have in
    common.  Where that does not go together, it may have to be large, small, divisible, or one that is known, at last
    one of which a layer's `call` makes a shape of so many elements, as an error has said.
    """
    if any(leaf.times != 1 for leaf in leaves):
        yield lambda i, leaf, axis: PROBES[i] * getattr(leaf, "times", 1)
    yield lambda i, leaf, axis: PROBES[i]
    if not any(None in leaf.shape for leaf in leaves):
        return
    if numbers is None:
        for wide in (1, 2, 3):
            yield lambda i, leaf, axis, wide=wide: PROBES[i] * (_LARGE << i if axis == wide else 1)  # type: ignore[misc]
        yield lambda i, leaf, axis: PROBES[i] * (_LARGE_IN_ALL << i if axis else 1)
    most = _MOST_OF_LAYERS if numbers is None else _MOST_GUESSES
    numbers = numbers and list(dict.fromkeys(numbers))[:_MOST_NUMBERS]
    for factor in (1, *(numbers or ()), _DIVISIBLE):
        yield lambda i, leaf, axis, factor=factor: _SMALL[i] * factor  # type: ignore[misc]
    sizes = dict.fromkeys(error.size for error in errors if numbers is None and isinstance(error, SizeError))
    for known in (numbers, *([size] for size in sizes)):
        for guess in itertools.islice(_guesses(leaves, known), most):
            yield lambda i, leaf, axis, guess=guess: guess.get((id(leaf), axis), PROBES[i])  # type: ignore[misc]


def _guesses(leaves: Sequence[Any], numbers: Sequence[int] | None) -> Iterator[_Extents]:
    """Extents by tensor and axis, as few as possible: what others have at that place, as if they were broadcast.

    For a function, then all extents that other tensors have, its numbers, and what is left of the product of these.
    """
    known: dict[int, int] = {}
    places: _Extents = {}
    for leaf in leaves:
        for axis, extent in enumerate(leaf.shape):
            place = len(leaf.shape) - axis
            if extent is None:
                places[id(leaf), axis] = place
            elif extent > 1:
                known[place] = max(known.get(place, 0), extent)
    yield from _choices({key: [known[place]] for key, place in places.items() if place in known})
    if numbers is not None:
        extents = [(id(leaf), n) for leaf in leaves for n in leaf.shape if n is not None and n > 1]
        choices = {}
        for key in places:
            own = math.prod(n for owner, n in extents if owner == key[0])
            found = [n for owner, n in extents if owner != key[0]] + [*numbers, math.prod(numbers) // own]
            choices[key] = [n for n in dict.fromkeys(found) if n > 1]
        yield from _choices(choices)


def _choices(values: Mapping[tuple[int, int], Sequence[int]]) -> Iterator[_Extents]:
    """One value or more of these, the fewest first."""
    for count in range(1, len(values) + 1):
        for chosen in itertools.combinations(values, count):
            for extents in itertools.product(*(values[key] for key in chosen)):
                yield dict(zip(chosen, extents, strict=True))


@contextlib.contextmanager
def probes_untold(specs: Sequence[Spec]) -> Iterator[None]:
    """Errors that come from inside show None where an extent is not known, not what stood for it."""
    known = {extent for spec in specs for extent in spec.shape}
    try:
        yield
    except ValueError as error:
        told = [fill for fill in PROBES if None in known and fill not in known]
        if told and error.args and isinstance(error.args[0], str):
            pattern = rf"(?<![\w.])({'|'.join(map(str, told))})(?![\w.])"
            error.args = (re.sub(pattern, "None", error.args[0]), *error.args[1:])
        raise
