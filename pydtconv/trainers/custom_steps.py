"""Steps that a user writes: `train_step`, `test_step`, `predict_step` of a subclass, and the functions made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pydtconv import replica, tree
from pydtconv.engine import Workspace, limits
from pydtconv.layers.base import attribute_values, layer_tree
from pydtconv.loops import Function
from pydtconv.support.sequences import pack_x_y_sample_weight
from pydtconv.trainers import strategy
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.tracing import loss_scale, undivided

KINDS = ("train", "test", "predict")


class CustomSteps:
    """The steps of one model that its class writes itself; each is traced once for each shape of batch.

    `make_train_function` and its kin are asked for the function of an iterator, as in Keras, where a class has its own.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._functions: dict[str, Function] = {}
        self._made: dict[str, Callable[[Iterator[Any]], Any]] = {}
        self._workspace: Workspace | None = None  # that of the functions

    def has(self, kind: str) -> bool:
        """Whether steps of this kind are the user's, or are to run as Python."""
        model = self._model
        return (
            model._pydt_overrides(f"{kind}_step") or model._pydt_overrides(f"make_{kind}_function") or model.run_eagerly
        )

    def check(self, kind: str) -> None:
        """Raises NotImplementedError for what such steps do not do, or several processes cannot share."""
        here, model = replica.current(), self._model
        name = type(model).__name__
        for option, given in ("split", model.split), ("offload", limits.current().offload):
            if given is not None and kind == "train" and model.run_eagerly:
                raise NotImplementedError(f"{name}: {option}: expected None with run_eagerly, got {given!r}")
        model._pydt_steps.use_device()
        model._pydt_steps.check_device(kind, limits.current().offload if kind == "train" else None)
        if here.size == 1:
            return
        made = [f"make_{kind}_function" for kind in KINDS if model._pydt_overrides(f"make_{kind}_function")]
        if made or model.run_eagerly:
            told = made[0] if made else "run_eagerly"
            raise NotImplementedError(f"{name}: {told} expects one process, got {here.size}: override train_step")

    def forget(self) -> None:
        """Drops all that was traced."""
        self._functions.clear()
        self._made.clear()
        self._workspace = None

    def function(self, kind: str) -> Function:
        """The step as a function of a batch's data."""
        workspace = self._model._pydt_steps.workspace
        if self._workspace is not workspace:  # that of another device
            self.forget()
            self._workspace = workspace
        if kind not in self._functions:
            step = getattr(self._model, f"{kind}_step")
            eager = bool(self._model.run_eagerly)
            self._functions[kind] = Function(step, workspace, eager, self._state, self._attributes)
        return self._functions[kind]

    def run(self, kind: str, batch: Batch) -> Any:
        """What the step returns for a batch, as arrays; in prediction, of this process's share."""
        if kind == "train":
            before_step(self._model)
        workspace = self.function(kind).workspace
        shared = strategy.current().running(self._model._pydt_training, kind, batch)
        with workspace.running_around(), shared as workspace.sharing, undivided():
            try:
                result = self._run(kind, batch)
            finally:
                workspace.sharing = None
        _note_built(self._model)
        return result

    def _run(self, kind: str, batch: Batch) -> Any:
        data = batch.x if batch.whole else pack_x_y_sample_weight(batch.x, batch.y, batch.sample_weight)
        if not self._model._pydt_overrides(f"make_{kind}_function"):
            return self.function(kind)(data)
        if kind not in self._made:
            made = getattr(self._model, f"make_{kind}_function")()
            self._made[kind] = made if callable(made) else getattr(self._model, f"{kind}_function")
        return tree.map_structure(np.asarray, self._made[kind](iter([data])))

    def logs(self, kind: str, batch: Batch) -> dict[str, Any]:
        """What a step of training or testing has returned, by name, as numbers."""
        found = self.run(kind, batch)
        if found is None:
            return {}
        if not isinstance(found, Mapping):
            raise ValueError(f"{kind}_step: expected a dict of results by name, got {type(found).__name__}")
        return as_numbers(found)

    def _state(self) -> Any:
        trained = tuple(id(variable) for variable in self._model.trainable_variables)
        split = self._model._pydt_steps.draw("train", renewed=False)
        return trained, loss_scale(self._model), split, replica.current().partition

    def _attributes(self) -> int:
        return attribute_values.of_model(self._model)


def _note_built(model: Any) -> None:
    """A model whose steps do not call it, such as a GAN, is built where its layers are."""
    if model.built or not type(model).build.__module__.startswith("pydtconv."):
        return
    layers = model._pydt_flatten_layers(include_self=False)
    if layers and all(layer.built for layer in layers):
        model.built = True


def before_step(model: Any) -> None:
    """Lets those layers change their weights that do so before each step of training."""
    for layer in layer_tree.known(model, "before_step", _stepping):
        layer.before_step()


def _stepping(model: Any) -> list[Any]:
    return [layer for layer in model._pydt_flatten_layers() if hasattr(layer, "before_step")]


def as_numbers(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Results by name, by the alphabet: those in dicts inside come up, scalars are floats."""
    found: dict[str, Any] = {}
    for name, value in sorted(logs.items()):
        if isinstance(value, Mapping):
            found.update(as_numbers(value))
        else:
            found[name] = float(value) if np.ndim(value) == 0 else np.asarray(value)
    return found
