"""How outputs, losses and targets go together: what `compile` was given, brought to one loss for each output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import losses as losses_module
from pydtconv import tree
from pydtconv.suggest import near
from pydtconv.trainers.loss_groups import Group, function_of, groups_of

Shape = tuple[int | None, ...]


@dataclass
class Output:
    """One output of the model: its name, and the loss on it with its weight (None: not trained by itself).

    grouped: whether a loss of `Targets.groups` reads it.
    """

    name: str
    loss: losses_module.Loss | None = None
    weight: float | None = None
    grouped: bool = False

    @property
    def is_read(self) -> bool:
        """Whether a loss reads its targets."""
        return self.loss is not None or self.grouped


class Targets:
    """How the outputs of a model, their losses and the data's targets go together.

    reads_any: whether a `compute_loss` of the subclass reads targets of any structure, as `compile` has no loss.
    """

    def __init__(self, loss: Any, loss_weights: Any) -> None:
        self.loss = loss
        self.loss_weights = loss_weights
        self.outputs: list[Output] = []
        #: losses that are not of one output alone, which `outputs` have
        self.groups: list[Group] = []
        self.names: list[str] = []
        #: of the outputs where results of metrics are told; those of nested ones are the layers', as in Keras
        self.metric_names: list[str] = []
        self.by_name = False
        self.reads_any = False
        #: the outputs' numbers in their structure, where that is nested
        self.places: Any = None
        #: whether flattening changes the order of outputs, as that of a dict by its keys
        self.sorted = False

    def check_names(self) -> None:
        """Raises ValueError for what names no loss."""
        for identifier in identifiers_in(self.loss):
            if not is_named(identifier, "crossentropy", "ce"):
                losses_module.get(identifier)
        for weight in identifiers_in(self.loss_weights):
            if weight is not None and not isinstance(weight, (int, float, np.number)):
                raise ValueError(f"loss_weights: expected numbers, got {weight!r}")

    def scales(self) -> dict[str, float | None]:
        """The weight of each loss by its name."""
        weights = {output.name: output.weight for output in self.outputs}
        return weights | {group.name: group.weight for group in self.groups}

    def build(self, y_pred: Any, names: Sequence[str] | None, y: Any, own_loss: bool = False) -> None:
        """y_pred: the model's outputs (with .shape); names: of the flat outputs; y: a batch's targets or None.

        own_loss: whether the model's class has a `compute_loss` of its own.
        """
        flat = tree.flatten(y_pred)
        by_name = isinstance(y_pred, dict)
        self.places = _places(y_pred, len(flat))
        names = self.metric_names = _output_names(y_pred, names, len(flat))
        if self.places is not None:
            names = list(_paths(y_pred, iter(names)))
        places = tree.pack_sequence_as(y_pred, list(range(len(flat))))
        self.sorted = _places_by(places, places) != list(range(len(flat)))
        y = self._checked(y, "y")
        self.groups = groups_of(self.loss, self.loss_weights, places, names)
        losses = None if self.groups else self._checked(self.loss, "loss")
        specified = for_outputs("loss", losses, names, spread=True, complete=not by_name)
        given = None if self.groups else self._checked(self.loss_weights, "loss_weights")
        weights = for_outputs("loss_weights", given, names, spread=len(flat) == 1, complete=False)
        grouped = {place for group in self.groups for place in tree.flatten(group.places)}
        outputs = [Output(name, grouped=i in grouped) for i, name in enumerate(names)]
        targets = [None] * len(flat)
        wanted = [i for i, one in enumerate(specified) if one is not None or i in grouped]
        reads_any = own_loss and not wanted
        if y is not None and not (reads_any and not _fits(y, names)):
            targets = _arranged(y, "y", names, wanted)
        for output, one, weight, y_true, pred in zip(outputs, specified, weights, targets, flat, strict=True):
            if one is not None and y is not None and y_true is None:
                raise ValueError(f"y: expected targets of output {output.name!r}, which has a loss")
            output.loss = resolve_loss(one, None if y_true is None else y_true.shape, tuple(pred.shape))
            output.weight = None if weight is None else float(weight)
        for group in self.groups:
            group.losses = [(self._of_group(group, one, targets, flat), weight) for one, weight in group.losses]
        self.outputs, self.names, self.by_name, self.reads_any = outputs, names, by_name, reads_any

    @staticmethod
    def _of_group(group: Group, identifier: Any, targets: Sequence[Any], y_pred: Sequence[Any]) -> Any:
        if not isinstance(group.places, int):
            return function_of(identifier)
        target = targets[group.places]
        return resolve_loss(identifier, None if target is None else target.shape, tuple(y_pred[group.places].shape))

    def in_order(self, given: Any) -> Any:
        """A list over the outputs of what has their nested structure; anything else as it is."""
        found: list[Any] = [None] * len(tree.flatten(self.places))
        return found if self.places is not None and _put(given, self.places, found) else given

    def _checked(self, given: Any, argument: str) -> Any:
        """`in_order` of what is given.  Raises ValueError for a list whose order may be another than the outputs'."""
        found = self.in_order(given)
        unclear = self.sorted and (self.places is not None or argument == "sample_weight")
        if unclear and found is given and isinstance(given, (list, tuple)):
            raise ValueError(
                f"{argument}: expected the structure of the outputs, which has dicts, got a {type(given).__name__}"
            )
        return found

    def in_loss_order(self) -> list[str]:
        """The names of outputs in the order in which the losses of `compile` have them, as results list them."""
        if self.groups:
            return [group.name for group in self.groups]
        if self.places is not None:
            return [self.names[place] for place in _places_by(self.loss, self.places)]
        return list(self.loss) if self.by_name and isinstance(self.loss, dict) else self.names

    def are_own(self, y: Any) -> bool:
        """Whether targets do not go with the outputs, so that `compute_loss` alone reads them."""
        return self.reads_any and y is not None and not _fits(self.in_order(y), self.names)

    def fed(self, y: Any) -> list[Any]:
        """The arrays that a step reads of targets: over the outputs, or over a structure of their own."""
        return tree.flatten(y) if self.are_own(y) else self.arrange(y, "y")

    def arrange(self, y: Any, argument: str) -> list[Any]:
        """Targets (or sample weights) as a flat list over the outputs."""
        if argument == "y" and self.are_own(y):
            return [None] * len(self.names)
        wanted = [i for i, output in enumerate(self.outputs) if output.is_read]
        return _arranged(self._checked(y, argument), argument, self.names, wanted)

    def weights(self, sample_weight: Any) -> list[Any]:
        """Sample weights as a flat list over the outputs; a single array is for all of them."""
        if sample_weight is None or isinstance(sample_weight, np.ndarray):
            return [sample_weight] * len(self.names)
        leaves = tree.flatten(sample_weight)
        if len(leaves) == 1 and not isinstance(sample_weight, Mapping):
            return leaves * len(self.names)
        return self.arrange(sample_weight, "sample_weight")


def _places(y_pred: Any, count: int) -> Any:
    """The numbers of outputs in their structure, where one part of it is a structure; else None."""
    parts = y_pred.values() if isinstance(y_pred, dict) else y_pred if isinstance(y_pred, (list, tuple)) else ()
    return tree.pack_sequence_as(y_pred, list(range(count))) if any(map(tree.is_nested, parts)) else None


def _places_by(loss: Any, places: Any) -> list[int]:
    """The places in the order of the losses' own structure."""
    if isinstance(loss, Mapping) and isinstance(places, dict):
        return [place for key, part in loss.items() if key in places for place in _places_by(part, places[key])]
    if isinstance(loss, (list, tuple)) and isinstance(places, (list, tuple)):
        return [place for pair in zip(loss, places, strict=False) for place in _places_by(*pair)]
    return tree.flatten(places)


def _put(given: Any, places: Any, found: list[Any]) -> bool:
    """Whether all of what is given is put to its places, where it has their structure; dicts may leave out some."""
    if isinstance(places, int):
        found[places] = given
        return True
    if given is None:
        return True
    if isinstance(places, dict):
        fits = isinstance(given, Mapping) and given.keys() <= places.keys()
        return fits and all(_put(given[key], places[key], found) for key in given)
    fits = isinstance(given, (list, tuple)) and len(given) == len(places)
    return fits and all(_put(*pair, found) for pair in zip(given, places, strict=True))


def _paths(structure: Any, names: Iterator[str], path: str = "") -> Iterator[str]:
    """Keras's names of nested outputs: keys, and numbers of lists, with the name of the layer behind."""
    if isinstance(structure, dict):
        for key, part in sorted(structure.items()):
            if tree.is_nested(part):
                yield from _paths(part, names, f"{path}{key}/")
            else:
                next(names)
                yield f"{path}{key}"
        return
    for i, part in enumerate(structure):
        if tree.is_nested(part):
            yield from _paths(part, names, f"{path}{i}/")
        else:
            yield path + next(names)


def _fits(y: Any, names: list[str]) -> bool:
    """Whether targets have one array for each output, or stand under the outputs' names."""
    try:
        _arranged(y, "y", names, [])
    except ValueError:
        return False
    return True


def _arranged(y: Any, argument: str, names: list[str], wanted: Sequence[int]) -> list[Any]:
    """Flat over the outputs of these names; a list may leave out those that are not wanted."""
    count = len(names)
    if y is None:
        return [None] * count
    if not isinstance(y, np.ndarray) and isinstance(y, Mapping):
        unknown = [key for key in y if key not in names]
        if unknown:
            raise ValueError(
                f"{argument}: {unknown[0]!r} is no output of the model, which has {names}."
                f"{near(str(unknown[0]), names)}"
            )
        return [y.get(name) for name in names]
    leaves = tree.flatten(y)
    if len(leaves) == count:
        return leaves
    if len(leaves) == len(wanted):
        result: list[Any] = [None] * count
        for place, leaf in zip(wanted, leaves, strict=True):
            result[place] = leaf
        return result
    raise ValueError(f"{argument}: expected {count} arrays, for outputs {names}, got {len(leaves)}")


def _output_names(y_pred: Any, names: Sequence[str] | None, count: int) -> list[str]:
    """One for each output; several outputs of one layer are told apart by numbers."""
    if isinstance(y_pred, dict) and not any(map(tree.is_nested, y_pred.values())):
        keys = [str(key) for key in y_pred]
        order = sorted(keys)
        return order
    if names is not None and len(names) == count:
        different: list[str] = []
        for name in names:
            numbered = (f"{name}_{i}" for i in range(1, 2 * count))
            free = name if name not in different else next(one for one in numbered if one not in {*names, *different})
            different.append(free)
        return different
    return ["output"] if count == 1 else [f"output_{i + 1}" for i in range(count)]


def for_outputs(argument: str, value: Any, names: Sequence[str], spread: bool, complete: bool) -> list[Any]:
    """A flat list over the outputs of what was given as one thing, a list or a dict by name."""
    if value is None:
        return [None] * len(names)
    if isinstance(value, Mapping) and "class_name" not in value:
        unknown = [key for key in value if key not in names]
        if unknown:
            raise ValueError(
                f"{argument}: {unknown[0]!r} is no output of the model, which has {list(names)}."
                f"{near(str(unknown[0]), names)}"
            )
        missing = [name for name in names if name not in value]
        if complete and missing:
            raise ValueError(f"{argument}: expected an entry for each of {list(names)}, got none for {missing}")
        return [value.get(name) for name in names]
    if isinstance(value, (list, tuple)):
        if len(value) != len(names):
            raise ValueError(f"{argument}: expected {len(names)} entries, for outputs {list(names)}, got {len(value)}")
        return list(value)
    if not spread:
        raise ValueError(f"{argument}: expected a list or a dict for outputs {list(names)}, got {value!r}")
    return [value] * len(names)


def identifiers_in(given: Any) -> list[Any]:
    """All identifiers in a nested structure; a config is one."""
    if isinstance(given, Mapping) and "class_name" not in given:
        return [one for part in given.values() for one in identifiers_in(part)]
    if isinstance(given, (list, tuple)):
        return [one for part in given for one in identifiers_in(part)]
    return [given]


def is_named(identifier: Any, *names: str) -> bool:
    return isinstance(identifier, str) and identifier.lower() in names


def kind_of(target: Shape | None, prediction: Shape) -> str:
    """binary, sparse or categorical: what a target and a prediction of these shapes mean."""
    if prediction and prediction[-1] == 1:
        return "binary"
    if target is not None and (len(target) < len(prediction) or (target[-1] == 1 and (prediction[-1] or 0) > 1)):
        return "sparse"
    return "categorical"


def resolve_loss(identifier: Any, target: Shape | None, prediction: Shape) -> losses_module.Loss | None:
    """The loss of an identifier; "crossentropy" (or "ce") is chosen by shapes."""
    if identifier is None:
        return None
    if is_named(identifier, "crossentropy", "ce"):
        chosen = {
            "binary": losses_module.BinaryCrossentropy,
            "sparse": losses_module.SparseCategoricalCrossentropy,
            "categorical": losses_module.CategoricalCrossentropy,
        }
        return chosen[kind_of(target, prediction)]()
    return losses_module.as_loss(identifier)
