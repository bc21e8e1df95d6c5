"""Whether all processes are about to train the same model on the same data: what each of them sees, in lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config, tree
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph import MemoryLimitError
from pydtconv.graph.ir.variable import Variable
from pydtconv.support.digest import sampled
from pydtconv.trainers.training import Training

_PLAIN = (bool, int, float, str, type(None))
_WHAT = "the comparison of models"


class DisagreementError(RuntimeError):
    """Processes that should train one model have different ones, or different data."""


def described_start(kind: str, data: Any) -> list[str]:
    """What is about to run, before its data is looked at, which processes may have to do together."""
    return [f"a run of {kind!r}", f"data: {type(data).__name__}"]


def described(training: Training, kind: str, data: Any, options: str, single: bool) -> list[str]:
    """What must be equal in all processes; names of layers and variables may differ, and so may initial values."""
    what = f"a batch of {kind!r}" if single else f"a run of {kind!r}"
    lines = [what, options, f"config: floatx={config.floatx()!r}, epsilon={config.epsilon()}"]
    if kind == "train":
        lines.append(f"split: {training.split}")
    for i, layer in enumerate(training.layers):
        lines += _part(f"layer {i}", layer)
    for i, variable in enumerate(training.variables):
        lines.append(f"variable {i}: shape {variable.shape}, {variable.dtype}, trainable {variable.trainable}")
    if kind != "predict":
        if training.optimizer is not None:
            lines += _part("optimizer", training.optimizer)
        lines += _of_outputs(training)
        lines.append(f"metrics: {', '.join(metric.name for metric in training.metrics) or 'none'}")
        for metric in training.metrics:
            lines += _part(f"metric {metric.name}", metric)
    store = training.memory.store
    if kind == "train" and store is not None:
        lines += [f"gradient {i}: shape {variable.shape}" for i, variable in enumerate(store.variables)]
    return lines + list(_of_data(data))


def described_fit(settings: Mapping[str, Any], callbacks: Sequence[Any]) -> list[str]:
    """The arguments of fit that must be equal, and the callbacks that steer training with their settings.

    Others, which print or write, may be those of one process alone.
    """
    lines = [f"fit: {name}={value!r}" for name, value in settings.items()]
    for callback in callbacks:
        if callback.steers:
            kept = {
                name: value
                for name, value in vars(callback).items()
                if not name.startswith("_") and name not in ("verbose", "params", *callback.state_names)
            }
            name = type(callback).__name__
            lines += [f"callback: {name}", *(f"callback: {name} of {s}" for s in _plain_settings(kept))]
    return lines


def described_changes(training: Training) -> list[str]:
    """What callbacks may change in the middle of fit, which must stay equal."""
    lines = [] if training.optimizer is None else _part("optimizer", training.optimizer)
    return lines + [f"variable {i}: trainable {each.trainable}" for i, each in enumerate(training.variables)]


def _part(what: str, part: Any) -> list[str]:
    """A layer, an optimizer, a loss or a metric: its class and its settings."""
    kind = type(part).__name__
    function = getattr(part, "fn", getattr(part, "_pydt_fn", None))
    lines = [f"{what}: {kind}{_called(function)}"]
    try:
        settings = part.get_config()
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        settings = {}  # parts that a user writes may have none: then their classes alone are compared
    kept = {key: value for key, value in settings.items() if key != "name" and not key.endswith("_initializer")}
    return lines + [f"{what}: {kind} of {s}" for s in _plain_settings(kept)]


def _called(function: Any) -> str:
    return f" of {function.__qualname__}" if hasattr(function, "__qualname__") else ""


def _plain_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in sorted(settings.items()):
        if _is_plain(value):
            yield f"{key}={value!r}"
        elif hasattr(value, "__qualname__"):
            yield f"{key}={value.__qualname__}"


def _is_plain(value: Any) -> bool:
    """Numbers, words, and what is made of them; configurations of layers inside have names, and are left out."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return "layers" not in value and "name" not in value and all(map(_is_plain, value.values()))
    return isinstance(value, _PLAIN) and "object at 0x" not in str(value)


def _of_outputs(training: Training) -> Iterator[str]:
    for i, output in enumerate(training.outputs):
        yield f"loss {i}: weight {output.weight}"
        yield from _part(f"loss {i}", output.loss)


def _of_data(data: Any) -> Iterator[str]:
    for name in ("samples", "batch_size", "shuffle", "num_batches", "class_weight"):
        if hasattr(data, name):
            yield f"data: {name} {getattr(data, name)}"
    source = getattr(data, "source", None)
    order = getattr(source, "_pydt_order", None)
    if isinstance(order, np.ndarray):
        yield f"data: order {hashlib.sha256(order.tobytes()).hexdigest()[:16]}"
    told = getattr(source, "digest", None)
    if callable(told):
        yield f"data: files and settings {told()}"
    for line in getattr(data, "first_seen", None) or ():
        yield f"data: the first batch: {line}"
    for name in ("x", "y", "sample_weight"):
        for i, leaf in enumerate(tree.flatten(getattr(data, name, None))):
            if leaf is not None:
                yield f"data: {name}[{i}] of shape {leaf.shape}, {leaf.dtype}"
                yield f"data: {name}[{i}] with the values {sampled(leaf)}"


def check(lines: list[str], communicator: Communicator) -> None:
    """Raises DisagreementError, which names processes and the first difference of each, in all processes."""
    digest = hashlib.sha256("\n".join(lines).encode()).digest()
    told = communicator.allgather(np.frombuffer(digest, np.uint8), _WHAT)
    groups: dict[bytes, list[int]] = {}
    for rank in range(communicator.size):
        groups.setdefault(told[rank].tobytes(), []).append(rank)
    if len(groups) == 1:
        return
    expected, *others = ((ranks, communicator.bcast_object(lines, _WHAT, ranks[0])) for ranks in groups.values())
    found = []
    for ranks, theirs in others:
        first = next(pair for pair in _pairs(expected[1], theirs) if pair[0] != pair[1])
        found.append(f"expected on all ranks {first[0]!r}, got on {_named(ranks)} {first[1]!r}")
    different = sorted(rank for ranks, _ in others for rank in ranks)
    verb = "differs" if len(different) == 1 else "differ"
    raise DisagreementError(f"{_named(different)} {verb} from rank 0: {'; '.join(found)}")


def check_weights(variables: Sequence[Variable], communicator: Communicator) -> None:
    """Raises DisagreementError, in all processes, where these have trained to other values.

    Roundings may differ where processors do: norms are compared, to a thousandth.
    """
    variables = [variable for variable in variables if variable.cut is None]  # of the others each has another part
    norms = np.array([np.linalg.norm(variable.array) for variable in variables], "float64")
    told = communicator.allgather(norms, _WHAT)
    same = np.isclose(told, told[0], rtol=1e-3, atol=1e-6, equal_nan=True)
    if not same.all():
        rank, i = (int(places[0]) for places in np.nonzero(~same))
        raise DisagreementError(
            f"rank {rank} differs from rank 0: expected equal weights on all ranks, got variables "
            f"{variables[i].path!r} of the norms {told[0, i]:.6g} and {told[rank, i]:.6g}: has a callback set them?"
        )


def raise_for_all(error: Exception | None, communicator: Communicator) -> None:
    """Raises in all processes where one has an error: its own, or one that tells the first of the others'.

    Where memory limits are too small all raise MemoryLimitError, with what the process needs that needs most.
    """
    what = "the errors of all ranks before the first step"
    if not communicator.allreduce(np.array([float(error is not None)]), what)[0]:
        return
    own = None if error is None else (f"{type(error).__name__}: {error}", *_memory(error))
    every = [communicator.bcast_object(own, what, rank) for rank in range(communicator.size)]
    told = {rank: each for rank, each in enumerate(every) if each is not None}
    needs = {rank: (smallest, limit) for rank, (_, smallest, limit) in told.items() if smallest}
    if len(needs) == len(told):
        rank = max(needs, key=lambda rank: needs[rank][0])
        smallest, limit = needs[rank]
        raise MemoryLimitError(limit, smallest, f" on rank {rank}") from error
    if error is not None:
        raise error
    rank = min(told)
    raise RuntimeError(f"rank {rank} cannot take the first step: {told[rank][0]}")


def _memory(error: Exception) -> tuple[int, int]:
    """The bytes that a plan needs at least, and the limit; zeros where the error is another one."""
    return (error.smallest_bytes, error.limit) if isinstance(error, MemoryLimitError) else (0, 0)


def _named(ranks: Sequence[int]) -> str:
    return " and ".join(f"rank {rank}" for rank in ranks)


def _pairs(a: list[str], b: list[str]) -> Iterator[tuple[str, str]]:
    for i in range(max(len(a), len(b))):
        yield (a[i] if i < len(a) else "nothing more"), (b[i] if i < len(b) else "nothing more")
