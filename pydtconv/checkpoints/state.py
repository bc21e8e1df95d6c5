"""Everything that training depends on, taken out of a model within `fit` and put back into one."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import replica
from pydtconv.checkpoints.files import CheckpointError
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base.asset_files import read_assets, written_assets
from pydtconv.layers.base.object_paths import walk, walk_held
from pydtconv.metrics import Mean
from pydtconv.optimizers import Optimizer
from pydtconv.support import random
from pydtconv.support.uninterrupted import uninterrupted


class MismatchError(CheckpointError):
    """A whole checkpoint of another model or another optimizer."""


def training_state(model: Any, callbacks: Sequence[Any], finished: bool = False) -> dict[str, Any]:
    """The state of a model that is being trained, as plain data and arrays (views, valid until the next step).

    weights and other variables, what layers write for themselves, the optimizer's slots, learning rate and iterations,
    the position in epoch and data with the data's order, states of random numbers, of metrics and of callbacks.
    """
    if model._pydt_position.steps:
        model._pydt_position.gathering.resume()
    run = model._pydt_steps.memory.state
    return {
        "position": model._pydt_position.get_state(finished),
        "weights": {f"{path}/{i}": variable.array for path, i, variable in _variables(model)},
        "own": {path: _written(layer) for path, layer in _writing(model)},
        "assets": {name: np.frombuffer(data, np.uint8) for name, data in written_assets(model).items()},
        "optimizer": _optimizer_state(model, model.optimizer),
        "optimizers": {name: _optimizer_state(model, optimizer) for name, optimizer in _others(model)},
        "random": random.get_state(),
        "run": {"seed": run.seed, "step": run.step},
        "layer_seeds": {path: layer.own_seed for path, layer in _seeded(model)},
        "metrics": _metrics_state(model) if model._pydt_position.steps else None,
        "callbacks": {name: callback.get_state() for name, callback in _named(callbacks)},
    }


def check_state(model: Any, state: Mapping[str, Any]) -> None:
    """Raises MismatchError, naming expected and found, where the state is of another model or optimizer."""
    with _structure():
        wanted = {f"{path}/{i}": variable for path, i, variable in _variables(model)}
        _check_arrays(f"model {model.name!r}", wanted, state["weights"])
        for optimizer, found in _with_states(model, state):
            _check_optimizer(model, optimizer, found)
        for part in ("position", "random", "run", "layer_seeds", "callbacks"):
            if not isinstance(state[part], dict):
                raise MismatchError(f"expected {part!r} of its state to be a mapping, found {state[part]!r:.100}")
        if state["metrics"] is not None:
            losses = len(model._pydt_loss_trackers)
            metrics = [type(m).__name__ for m in model._pydt_kept_metrics[: len(model._pydt_kept_metrics) - losses]]
            kinds = state["metrics"]["kinds"]
            kept = kinds[: len(kinds) - len(state["metrics"]["losses"])]
            if metrics != kept:
                raise MismatchError(f"expected the metrics {metrics} within an epoch, found {kept}")


def restore_training(model: Any, callbacks: Sequence[Any], state: Mapping[str, Any], position: bool = True) -> None:
    """Puts a state back into a model within `fit`.

    position: False within an epoch that was begun with it, when what callbacks did at its beginning is put right.
    Raises MismatchError where it is of another model or has another structure, and ValueError where an epoch going on
    was of other batches; all is as it was then.
    """
    check_state(model, state)
    before = _small_parts(model, callbacks)
    try:
        with _structure():
            _put(model, callbacks, state, position)
    except ValueError:
        _put(model, callbacks, before, position)
        raise
    # these fit, as check_state has found: they come last, for nothing to be changed when something else does not
    with uninterrupted():
        _put_weights(model, state)


def _put_weights(model: Any, state: Mapping[str, Any]) -> None:
    for path, i, variable in _variables(model):
        variable.assign(state["weights"][f"{path}/{i}"])
    for path, layer in _writing(model):
        if path in state.get("own", {}):
            layer.load_own_variables(state["own"][path])
    assets = state.get("assets", {})
    read_assets(model, "the checkpoint", assets, lambda name: assets[name].tobytes())
    for optimizer, found in _with_states(model, state):
        for i, variable in enumerate(optimizer.variables):
            variable.assign(found["variables"][str(i)])


def _small_parts(model: Any, callbacks: Sequence[Any]) -> dict[str, Any]:
    """A state without weights and slots: all that `_put` changes."""
    run = model._pydt_steps.memory.state
    return {
        "position": model._pydt_position.get_state(False),
        "random": random.get_state(),
        "run": {"seed": run.seed, "step": run.step},
        "layer_seeds": {path: layer.own_seed for path, layer in _seeded(model)},
        "metrics": copy.deepcopy(_metrics_state(model)),
        "callbacks": {name: copy.deepcopy(callback.get_state()) for name, callback in _named(callbacks)},
    }


def _put(model: Any, callbacks: Sequence[Any], state: Mapping[str, Any], position: bool) -> None:
    if position:
        model._pydt_position.set_state(state["position"])
    run = model._pydt_steps.memory.state
    run.seed, run.step = int(state["run"]["seed"]), int(state["run"]["step"])
    _restore_seeds(model, state["layer_seeds"])
    if state["metrics"] is not None:
        model._pydt_position.gathering.resume()
        _restore_metrics(model, state["metrics"])
    here = replica.current()
    for name, callback in _named(callbacks):
        if name in state["callbacks"] and (here.is_main or not callback.main_only):
            callback.set_state(state["callbacks"][name])
    try:
        random.set_state(state["random"])
    except ValueError as error:
        raise MismatchError(f"expected states of random numbers; {error}") from error


@contextlib.contextmanager
def _structure() -> Iterator[None]:
    """Around what reads a state: what a whole file of another structure leads to is a MismatchError."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise MismatchError(f"expected a state of training as `training_state` makes it; {reason}") from error


def _variables(model: Any) -> Iterator[tuple[str, int, Variable]]:
    """(path of the layer, index, variable) of the model and all layers inside."""
    for path, layer in walk(model):
        for i, variable in enumerate([*layer._pydt_own_variables(), *layer._pydt_run_variables()]):
            yield path or "model", i, variable


def _writing(model: Any) -> Iterator[tuple[str, Any]]:
    """(path, layer) of the layers that write for themselves what a file has of them, beside their variables."""
    for path, layer in walk(model):
        if layer._pydt_writes_itself:
            yield path or "model", layer


def _written(layer: Any) -> dict[str, np.ndarray]:
    state: dict[str, Any] = {}
    layer.save_own_variables(state)
    return {key: np.array(value) for key, value in state.items()}


def _seeded(model: Any) -> Iterator[tuple[str, Any]]:
    """(path, layer) of the layers that have drawn a seed for themselves."""
    for path, layer in walk(model):
        if getattr(layer, "own_seed", None) is not None and getattr(layer, "seed", 0) is None:
            yield path, layer


def _restore_seeds(model: Any, seeds: Mapping[str, int]) -> None:
    changed = False
    for path, layer in _seeded(model):
        if path in seeds and layer.own_seed != seeds[path]:
            layer.own_seed = seeds[path]
            changed = True
    if changed:
        model._pydt_steps.forget()  # seeds are part of the steps that were traced


def _metrics_state(model: Any) -> dict[str, Any]:
    """Of the metrics within an epoch; between two they are set back anyway."""
    metrics = model._pydt_kept_metrics
    kinds = [type(metric).__name__ for metric in metrics]
    return {
        "kinds": kinds,
        "losses": list(model._pydt_loss_trackers),
        "states": [m.get_state() for m in model._pydt_kept_metrics],
    }


def _restore_metrics(model: Any, kept: Mapping[str, Any]) -> None:
    for name in kept["losses"]:
        model._pydt_loss_trackers.setdefault(name, Mean(name=f"{name}_loss"))
    if len(kept["states"]) != len(model._pydt_kept_metrics):
        raise MismatchError(f"expected states of {len(model._pydt_kept_metrics)} metrics, found {len(kept['states'])}")
    for metric, state in zip(model._pydt_kept_metrics, kept["states"], strict=True):
        metric.set_state(state)


def _optimizer_state(model: Any, optimizer: Any) -> dict[str, Any]:
    """of: the names of the variables that it was built with, None for those that are not the model's."""
    names = {id(variable): f"{path}/{i}" for path, i, variable in _variables(model)}
    values = {str(i): variable.array for i, variable in enumerate(optimizer.variables)}
    of = [names.get(id(variable)) for variable in optimizer._pydt_slots.variables]
    return {"kind": type(optimizer).__name__, "variables": values, "of": of}


def _others(model: Any) -> list[tuple[str, Any]]:
    """Optimizers that the model holds beside that of compile, for a step of its own, by their places."""
    return [(path, optimizer) for path, optimizer in walk_held(model, Optimizer) if optimizer is not model.optimizer]


def _with_states(model: Any, state: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """(optimizer, its state) of all that there are in both."""
    yield model.optimizer, state["optimizer"]
    kept = state.get("optimizers", {})
    yield from ((optimizer, kept[name]) for name, optimizer in _others(model) if name in kept)


def _check_optimizer(model: Any, optimizer: Any, found: Mapping[str, Any]) -> None:
    """Raises MismatchError where the state is that of another one.  Builds one that has not run, as it was built."""
    kind = type(optimizer).__name__
    if found["kind"] != kind:
        raise MismatchError(f"expected the state of the optimizer {kind}, found that of {found['kind']}")
    if not optimizer.built and found.get("of"):  # which a step of one's own does when it first runs
        known = {f"{path}/{i}": variable for path, i, variable in _variables(model)}
        optimizer.ready([known[name] for name in found["of"]])
    slots = {str(i): variable for i, variable in enumerate(optimizer.variables)}
    _check_arrays(f"optimizer {kind}", slots, found["variables"])


def _named(callbacks: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """(name, callback): the class and the how-manieth of it."""
    counts: dict[str, int] = {}
    for callback in callbacks:
        kind = type(callback).__name__
        counts[kind] = counts.get(kind, -1) + 1
        yield f"{kind}/{counts[kind]}", callback


def _check_arrays(what: str, wanted: Mapping[str, Variable], found: Mapping[str, np.ndarray]) -> None:
    if not isinstance(found, dict) or not all(isinstance(value, np.ndarray) for value in found.values()):
        raise MismatchError(f"{what}: expected arrays by name, found {type(found).__name__} of something else")
    if wanted.keys() != found.keys():
        other = sorted(wanted.keys() ^ found.keys())
        raise MismatchError(
            f"{what}: expected {len(wanted)} variables, found {len(found)}, which differ in {', '.join(other[:3])}"
        )
    for name, variable in wanted.items():
        value = found[name]
        if variable.shape != value.shape or variable.dtype != value.dtype.name:
            raise MismatchError(
                f"{what}: {variable.path} ({name}): expected {variable.dtype} {variable.shape}, "
                f"found {value.dtype} {value.shape}"
            )
