"""Whether all processes are about to train the same model on the same data: what each of them sees, in lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.distribution.communicator import Communicator
from pydtconv.trainers.training import Training

_PLAIN = (bool, int, float, str, tuple, list, type(None))


class DisagreementError(RuntimeError):
    """Processes that should train one model have different ones, or different data."""


def described(training: Training, kind: str, data: Any, options: str) -> list[str]:
    """What must be equal in all processes; names of layers and variables may differ."""
    lines = [f"a run of {kind!r}", options]
    for i, layer in enumerate(training.layers):
        kind_of_layer = type(layer).__name__
        lines += [f"layer {i}: {kind_of_layer}", *(f"layer {i}: {kind_of_layer} of {s}" for s in _settings(layer))]
    for i, variable in enumerate(training.variables):
        lines.append(f"variable {i}: shape {variable.shape}, {variable.dtype}, trainable {variable.trainable}")
    if kind != "predict":
        if training.optimizer is not None:
            name = type(training.optimizer).__name__
            lines += [f"optimizer: {name}", *(f"optimizer: {name} of {s}" for s in _settings(training.optimizer))]
        lines += [f"loss: {line}" for line in _losses(training)]
    store = training.memory.store
    if kind == "train" and store is not None:
        lines += [f"gradient {i}: shape {variable.shape}" for i, variable in enumerate(store.variables)]
    return lines + list(_of_data(data))


def _settings(part: Any) -> list[str]:
    try:
        config = part.get_config()
    except (NotImplementedError, TypeError, ValueError):
        return []
    plain = {key: value for key, value in config.items() if key != "name" and isinstance(value, _PLAIN)}
    return [f"{key}={value!r}" for key, value in sorted(plain.items()) if "object at 0x" not in repr(value)]


def _losses(training: Training) -> Iterator[str]:
    for output in training.outputs:
        reduction = getattr(output.loss, "reduction", None)
        yield f"{type(output.loss).__name__}, reduction {reduction}, weight {output.weight}"


def _of_data(data: Any) -> Iterator[str]:
    for name in ("samples", "batch_size", "shuffle", "num_batches"):
        if hasattr(data, name):
            yield f"data: {name} {getattr(data, name)}"
    order = getattr(getattr(data, "source", None), "_order", None)
    if isinstance(order, np.ndarray):
        yield f"data: order {hashlib.sha256(order.tobytes()).hexdigest()[:16]}"
    for name in ("x", "y", "sample_weight"):
        for i, leaf in enumerate(tree.flatten(getattr(data, name, None))):
            if leaf is not None:
                yield f"data: {name}[{i}] of shape {leaf.shape}, {leaf.dtype}"


def check(lines: list[str], communicator: Communicator) -> None:
    """Raises DisagreementError, which names a process and the first difference, in all processes."""
    digest = np.frombuffer(hashlib.sha256("\n".join(lines).encode()).digest(), np.uint8)
    told = communicator.gather(digest, "the comparison of models")
    different = [rank for rank in range(communicator.size) if not np.array_equal(told[rank], told[0])]
    if not different:
        return
    theirs = [communicator.broadcast_object(lines, "the comparison of models", root) for root in (0, different[0])]
    ranks = " and ".join(f"rank {rank}" for rank in different)
    first = next(
        (pair for pair in _pairs(*theirs) if pair[0] != pair[1]), ("the same, in another order", "another order")
    )
    raise DisagreementError(
        f"{ranks} {'differs' if len(different) == 1 else 'differ'} from rank 0: expected on all ranks "
        f"{first[0]!r}, got on rank {different[0]} {first[1]!r}"
    )


def _pairs(a: list[str], b: list[str]) -> Iterator[tuple[str, str]]:
    for i in range(max(len(a), len(b))):
        yield (a[i] if i < len(a) else "nothing more"), (b[i] if i < len(b) else "nothing more")
