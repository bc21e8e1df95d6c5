"""Losses of `compile` that read several outputs together, and several losses of one output.

As in Keras: a list or tuple that is of another type than the outputs' structure where it stands, or that stands for one
output, holds losses that all read what is there; one loss that stands for a structure of outputs reads that structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydtconv import losses as losses_module
from pydtconv import ops, tree


@dataclass
class Group:
    """Losses of one output, or of a structure of outputs: `places` has the outputs' numbers.

    weight: of the only loss; several are weighted where they are added.
    """

    name: str
    places: Any
    losses: list[tuple[Any, float | None]]

    @property
    def weight(self) -> float | None:
        return self.losses[0][1] if len(self.losses) == 1 else None

    def __call__(self, y: Sequence[Any], y_pred: Sequence[Any], weights: Sequence[Any]) -> Any:
        """The losses' sum, of flat lists over the outputs."""
        at = [tree.map_structure(flat.__getitem__, self.places) for flat in (y, y_pred)]
        missing = any(part is None for part in tree.flatten(at[0]))
        if missing:
            raise ValueError(f"y: expected targets of all outputs that loss {self.name!r} reads")
        values = []
        for loss, weight in self.losses:
            if isinstance(self.places, int):
                value = loss(*at, weights[self.places])
            else:
                value = ops.mean(loss(*at))
            values.append(value if weight is None or len(self.losses) == 1 else ops.multiply(value, weight))
        return sum(values[1:], values[0])


def groups_of(loss: Any, loss_weights: Any, places: Any, names: Sequence[str]) -> list[Group]:
    """The groups of nested losses; none where each loss is of one output.

    places: the outputs' numbers in their structure.  Raises ValueError for weights that are not as many as losses.
    """
    by_name = isinstance(loss, Mapping) and not isinstance(places, dict) and loss.keys() == set(names)
    if by_name:
        loss, loss_weights = (_in_order(given, places, names) for given in (loss, loss_weights))
    if not _is_grouped(loss, places, top=not by_name):
        return []
    found = list(_walk(loss, places, names, ""))
    flat = [None] * len(found) if loss_weights is None else tree.flatten(loss_weights)
    if len(flat) != len(found):
        raise ValueError(f"loss_weights: expected a number for each of {len(found)} losses, got {len(flat)}")
    groups: dict[str, Group] = {}
    for (name, at, identifier), weight in zip(found, flat, strict=True):
        if identifier is None:
            continue
        group = groups.setdefault(name, Group(name, at, []))
        group.losses.append((identifier, None if weight is None else float(weight)))
    return list(groups.values())


def _in_order(given: Any, places: Any, names: Sequence[str]) -> Any:
    """What stands under the outputs' names as a list, or for the only output."""
    if not isinstance(given, Mapping):
        return given
    found = [given.get(name) for name in names]
    return found[0] if isinstance(places, int) else found


def _is_leaf(loss: Any) -> bool:
    return not isinstance(loss, (list, tuple)) and (not isinstance(loss, Mapping) or "class_name" in loss)


def _is_grouped(loss: Any, places: Any, top: bool = False) -> bool:
    """Whether a loss stands for a structure of outputs, or several stand for one output or one structure."""
    if _is_leaf(loss):
        return loss is not None and not top and not isinstance(places, int)
    if isinstance(loss, Mapping):
        return isinstance(places, dict) and any(
            _is_grouped(one, places[key]) for key, one in loss.items() if key in places
        )
    if all(map(_is_leaf, loss)) and len(loss) == len(tree.flatten(places)):
        return isinstance(places, int) and not top
    if not isinstance(places, type(loss)):
        return True
    return len(loss) == len(places) and any(_is_grouped(*pair) for pair in zip(loss, places, strict=True))


def _walk(loss: Any, places: Any, names: Sequence[str], path: str) -> Iterator[tuple[str, Any, Any]]:
    """(name, places, identifier) of each loss; None where there is none."""
    if _is_leaf(loss):
        inside = [names[place] for place in tree.flatten(places)]
        yield inside[0] if isinstance(places, int) else path.strip("/") or "_".join(inside), places, loss
    elif isinstance(loss, Mapping):
        unknown = [key for key in loss if not isinstance(places, dict) or key not in places]
        if unknown:
            raise ValueError(f"loss: {path + str(unknown[0])!r} is no output of the model, which has {list(names)}")
        for key, one in loss.items():
            yield from _walk(one, places[key], names, f"{path}{key}/")
    elif all(map(_is_leaf, loss)) and len(loss) == len(tree.flatten(places)):
        for place, one in zip(tree.flatten(places), loss, strict=True):
            yield from _walk(one, place, names, path)
    elif not isinstance(places, type(loss)):
        for one in loss:
            yield from _walk(one, places, names, path)
    else:
        for i, (one, place) in enumerate(zip(loss, places, strict=False)):
            yield from _walk(one, place, names, f"{path}{i}/")


def function_of(identifier: Any) -> Any:
    """The loss of a structure of outputs: a function (y_true, y_pred).  Raises ValueError for anything else."""
    if not callable(identifier) or isinstance(identifier, losses_module.Loss):
        raise ValueError(f"loss: of several outputs together: expected a function (y_true, y_pred), got {identifier!r}")
    return identifier
