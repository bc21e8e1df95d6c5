"""The choice of algorithms on any device: what `pydtconv.conv` tells of it.

Convolutions on devices with memory of their own have other algorithms (pydtconv/kernels/gpu/convolutions).  device: as
`config.set_device` takes it, None for the active one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv import config, hooks
from pydtconv.conv import selection
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import Choice
from pydtconv.naming import device_name


def _of(device: str | None) -> tuple[str, Any]:
    """Its name, and the table of its algorithms; None for the CPU."""
    name = config.device() if device is None else device_name(device)
    return name, None if name == "cpu" else hooks.device_algorithms()


def explain(p: ConvProblem, direction: str, device: str | None = None) -> dict[str, str | None]:
    """For every algorithm of the table None where it can do this pass of p, else the reason why not.

    What `config.set_float32_matmul_precision` does not allow has a reason, too; a layer may ask for it by name.
    """
    _, table = _of(device)
    found: dict[str, str | None] = (selection if table is None else table).explain(p, direction)
    return found


def algorithms(p: ConvProblem, direction: str, device: str | None = None) -> list[str]:
    """Names of the algorithms that may be chosen for this pass of p: those measured, fastest first, then by the model.

    Of those that support it, within the active precision and workspace limit; at least one.  On a device of its own
    memory those that have not been measured are in the order of the table.
    """
    name, table = _of(device)
    found: list[str] = selection.algorithms(p, direction) if table is None else table.algorithms(p, direction, name)
    return found


def choose(
    p: ConvProblem,
    direction: str,
    algorithm: str | Mapping[str, str] | None = None,
    variant: str | None = None,
    device: str | None = None,
) -> Choice:
    """The algorithm of a pass and why: an explicit one, the variant's, or the first of `algorithms`.

    algorithm: a name, or names by direction; None or "auto" leave the choice open.  variant: None for the active one.
    A variant's algorithm that does not support p falls back to the first.  Raises ValueError for an explicit one.
    """
    name, table = _of(device)
    if table is None:
        return selection.choose(p, direction, algorithm, variant)
    found: Choice = table.choose(p, direction, algorithm, None, name, variant)
    return found


def workspace_bytes(p: ConvProblem, direction: str, algorithm: str, device: str | None = None) -> int:
    """Bytes of scratch memory of this pass with the threads now set.  Raises ValueError where it is not supported."""
    name, table = _of(device)
    if table is None:
        return selection.workspace_bytes(p, direction, algorithm)
    chosen = table.choose(p, direction, algorithm, None, name).algorithm
    return int(table.TABLE[chosen].workspace(p, direction))
