"""`Program`: a traced recording that runs again and again, on other data, from the plans of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.dtypes import FLOATING
from pydtconv.engine import Bound, Workspace
from pydtconv.engine.sharing import Sharing
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.deferred import Deferred
from pydtconv.graph.ir.graph import Tensor
from pydtconv.hooks import as_result
from pydtconv.loops.actions import Action, Apply, read
from pydtconv.loops.derivatives import Derivative
from pydtconv.loops.recorded_tensor import Handle
from pydtconv.loops.recording import Recording
from pydtconv.loops.stages import Part, parts_of

_GRADIENTS = "the sums of the gradients"


class _Stage:
    """The bound parts of a stage, with what goes in and comes out, and the actions behind them.

    direct: the action that is an optimizer's step by the gradients as the first part leaves them; None where none is.
    own: gradients that only a step of an optimizer reads.
    """

    def __init__(
        self, parts: list[tuple[Part, Bound]], actions: list[Action], direct: Apply | None, own: Collection[Tensor]
    ) -> None:
        self.runs = parts
        self.actions = actions
        self.direct = direct
        by_variables = {given for part, _ in parts for given in part.trained.values()}
        #: gradients by variables that something else reads
        self.gradients = [[x for x in part.outputs.values() if x in by_variables and x not in own] for part, _ in parts]
        #: gradients by other tensors
        self.others = [
            [x for name, x in part.outputs.items() if name[0] == "g" and x not in by_variables] for part, _ in parts
        ]


class Program:
    """inputs: what is fed at each run, in order.  result: structure of handles and deferred values."""

    def __init__(self, recording: Recording, inputs: Sequence[Tensor], result: Any) -> None:
        self.workspace: Workspace = recording.workspace
        self.inputs = list(inputs)
        self.result = tree.map_structure(recording.inner, result)
        #: in their order, in which processes that have parts of images put them together
        self._ends = dict.fromkeys(leaf for leaf in tree.flatten(self.result) if isinstance(leaf, Tensor))
        self._stages: list[_Stage] = []
        self._told: str | None = None
        self._bind(recording)

    def _bind(self, recording: Recording) -> None:
        """Plans the stages, the last one first: what each is asked for follows from those behind it."""
        asked = dict(self._ends)
        self._own_steps, own = _own_steps(recording, self._ends.keys())
        for stage in range(recording.stage, -1, -1):
            actions = recording.actions[stage]
            direct = _direct(recording, stage, asked)
            for action in actions:
                if action is not direct:
                    asked.update(dict.fromkeys(action.tensors()))
            wanted = [tensor for tensor in asked if recording.stage_of(tensor) == stage]
            parts = parts_of(recording, stage, wanted)
            for part in parts:
                asked.update(dict.fromkeys(t for t in part.inputs.values() if recording.stage_of(t) < stage))
            alone = direct is not None and len(parts) == 1
            bound = [part.bind(self.workspace, direct.optimizer if direct and alone else None) for part in parts]
            if actions or parts:
                self._stages.insert(0, _Stage(list(zip(parts, bound, strict=True)), actions, direct, own))

    def run(self, arrays: Sequence[np.ndarray]) -> Any:
        """One run; returns the results as arrays of their own, and what metrics have given."""
        workspace = self.workspace
        sharing = workspace.sharing
        tracing.settle_outside()
        with workspace.lock:
            if sharing is not None:
                sharing.check(self.told)
            step_number = workspace.next_step()
            values: dict[Tensor, Any] = dict(zip(self.inputs, arrays, strict=True))
            left = sum(len(stage.runs) for stage in self._stages)
            for stage in self._stages:
                first: Bound | None = None
                for i, (part, bound) in enumerate(stage.runs):
                    first = first or bound
                    found = part.run(bound, values, workspace, step_number)
                    left -= 1
                    for name, tensor in part.outputs.items():  # views of the arena, which the next part writes over
                        keeps = left == 0 and tensor not in self._ends and not name.startswith("g")
                        values[tensor] = found[name] if keeps else found[name].copy()
                    if sharing is not None:
                        if not part.again:
                            sharing.ran(bound.executor)
                        _share(sharing, stage.gradients[i], stage.others[i], values)
                for action in stage.actions:
                    if action is not stage.direct:
                        action.run(values, workspace, action in self._own_steps)
                    elif first is not None and not first.executor.plan.applies_gradients:
                        assert first.memory.store is not None
                        workspace.step(stage.direct.optimizer, first.memory.store, own=True)
            if sharing is not None:
                sharing.settle()
                self._share_results(sharing, values)
            return tree.map_structure(lambda leaf: _value(leaf, values), self.result)

    @property
    def told(self) -> str:
        """What processes that share a batch exchange in a run: equal where their programs differ in samples alone."""
        if self._told is None:
            self._told = "\n".join(_told(stage) for stage in self._stages) + f"\n{len(self._numbers())} results"
        return self._told

    def _numbers(self) -> list[Tensor]:
        """The results that are single numbers."""
        ends = [leaf for leaf in tree.flatten(self.result) if isinstance(leaf, Tensor) and leaf.node is not None]
        return [end for end in dict.fromkeys(ends) if end.shape == () and end.dtype in FLOATING]

    def _share_results(self, sharing: Sharing, values: dict[Tensor, Any]) -> None:
        numbers = self._numbers()
        own = [np.asarray(values[number]) for number in numbers]
        if own:
            values.update(zip(numbers, sharing.mean(own, "the mean of the results"), strict=True))


def _told(stage: _Stage) -> str:
    """What is exchanged in a stage, in words."""
    parts = [f"gradients of {[tuple(each.shape) for each in gradients]}" for gradients in stage.gradients]
    for action in stage.actions:
        about = getattr(action, "metric", None) or getattr(action, "variable", None)
        shapes = [variable.shape for variable in action.changes()]
        parts.append(f"{type(action).__name__} {type(about).__name__} {shapes} {action is stage.direct}")
    return "; ".join(parts)


def _share(sharing: Sharing, gradients: Sequence[Tensor], others: Sequence[Tensor], values: dict[Tensor, Any]) -> None:
    """Makes what a graph has found by this process's samples that of all."""
    if gradients:
        own = [np.asarray(values[gradient]) for gradient in gradients]
        values.update(zip(gradients, sharing.total(own, _GRADIENTS), strict=True))
    for tensor in others:  # each sample's own
        values[tensor] = values[tensor] / np.asarray(sharing.portion or 1.0, values[tensor].dtype)


def _value(leaf: Any, values: Any) -> Any:
    if isinstance(leaf, Deferred):
        return leaf.value
    found = read(leaf, values)
    return as_result(found.copy() if isinstance(leaf, Tensor) and leaf.node is None else found)


def _own_steps(recording: Recording, ends: Collection[Tensor]) -> tuple[set[Action], set[Tensor]]:
    """Steps of optimizers by gradients by variables that nothing else reads, and these gradients."""
    derivatives = [each for stage in recording.derivatives for each in stage]
    actions = [action for stage in recording.actions for action in stage]
    readers = Counter(ends)
    for each in (*(node.inputs for node in recording.nodes), *(d.ends for d in derivatives)):
        readers.update(each)
    for action in actions:
        readers.update(action.tensors())
    given = {gradient for d in derivatives for source, gradient in d.given.items() if source.variable is not None}
    alone = {gradient for gradient in given if readers[gradient] == 1}
    steps = [
        each for each in actions if isinstance(each, Apply) and len({*each.tensors()} & alone) == len(each.gradients)
    ]
    return {*steps}, {gradient for step in steps for gradient in step.tensors()}


def _direct(recording: Recording, stage: int, asked: Any) -> Apply | None:
    """The step of an optimizer that takes all gradients of the stage's first derivative as they are.

    None where a further derivative by these variables, or an earlier step of theirs, would leave its gradients, or the
    variables, in another place before.
    """
    derivatives: list[Derivative] = recording.derivatives[stage]
    first = next((each for each in derivatives if not each.again), None)
    if first is None:
        return None
    given = {gradient: source for source, gradient in first.given.items()}
    readers = [a for later in recording.actions[stage:] for a in later if not given.keys().isdisjoint(a.tensors())]
    if len(readers) != 1 or not isinstance(readers[0], Apply) or readers[0] not in recording.actions[stage]:
        return None
    action = readers[0]
    pairs = list(zip(action.gradients, action.variables, strict=True))
    whole = len(pairs) == len(given) and all(
        isinstance(gradient, Tensor) and gradient in given and given[gradient].variable is variable
        for gradient, variable in pairs
    )
    trained = set(map(id, action.variables))
    before = recording.actions[stage][: recording.actions[stage].index(action)]
    others: list[Any] = [variable for each in before if isinstance(each, Apply) for variable in each.variables]
    others += [source.variable for each in derivatives if each is not first for source in each.given]
    alone = trained.isdisjoint(map(id, others))
    return action if whole and alone and given.keys().isdisjoint(asked) else None


__all__ = ["Handle", "Program"]
