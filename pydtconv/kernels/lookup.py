"""Finds the kernel of an operator in the registry; the kernels of a device are imported when one is first looked for.

A plan looks up the kernel of each node with `find` when it is built; an operator that is applied to arrays does so at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv.dtypes import BFLOAT16
from pydtconv.kernels.base import Kernel
from pydtconv.kernels.registry import ANY, MissingKernelError, entries, kernels


def _import_cpu() -> None:
    from pydtconv.kernels import cpu  # noqa: F401


def _import_gpu() -> None:
    from pydtconv.kernels import gpu  # noqa: F401


#: by a device's kind: the name by which its kernels are entered, and what imports them
DEVICES: dict[str, tuple[str, Callable[[], None]]] = {
    "cpu": ("cpu", _import_cpu),
    "gpu": ("gpu", _import_gpu),
    "host": ("gpu", _import_gpu),
}


def find(op: Any, device: str, dtype: str) -> Kernel[Any]:
    """The kernel that runs an operator.  Raises MissingKernelError, ValueError for a device that is not known.

    An operator class without an entry of its own is run by the kernel of the class that it derives from.
    """
    own = load(device)
    for operator in type(op).__mro__:
        kernel = kernels.get((operator, own, dtype))
        if kernel is None and dtype != BFLOAT16:  # whose bits NumPy would take for integers
            kernel = kernels.get((operator, own, ANY[0]))
        if kernel is not None:
            made = kernel(op)
            made.device = device
            return made
    known = [f"{entry.device} {entry.dtype}" for entry in entries() if entry.operator in type(op).__mro__]
    raise MissingKernelError(
        f"operator {type(op).__name__}: expected a kernel for device {device} and dtype {dtype}, "
        f"got kernels for {', '.join(known) or 'none'}"
    )


def supports(op: Any, device: str, dtype: str) -> bool:
    """Whether an operator has a kernel for this dtype itself, not only one that runs with any."""
    own = load(device)
    return any((operator, own, dtype) in kernels for operator in type(op).__mro__)


def load(device: str) -> str:
    """Imports the kernels of a device, "gpu:1" as "gpu"; returns the name by which they are entered.

    Raises ValueError for a device that is not known.
    """
    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise ValueError(f"device: expected one of {', '.join(DEVICES)}, got {device!r}")
    name, import_kernels = DEVICES[kind]
    import_kernels()
    return name
