"""Which kernel runs an operator: a table from (operator, device, dtype) to a class of kernels.

An operator (pydtconv/ops) declares what is computed; a kernel (see base.py) computes it on one device.  Kernels enter
themselves here with `register`.  A plan looks up the kernel of each node with `find` when it is built; an operator that
is applied to arrays does so at once.

    @register(ops.Softmax)
    class SoftmaxKernel(Kernel[ops.Softmax]):
        def forward(self, p: Pass) -> Call: ...

A device is a package that registers its kernels when it is imported.  `DEVICES` names the packages; each is imported
when a kernel of its device is first looked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydtconv.dtypes import BFLOAT16

if TYPE_CHECKING:
    from pydtconv.kernels.base import Kernel

#: the packages of kernels by device
DEVICES = {"cpu": "pydtconv.kernels.cpu", "gpu": "pydtconv.kernels.gpu", "host": "pydtconv.kernels.gpu"}

#: devices that run the kernels of another one
_SAME = {"host": "gpu"}

#: dtypes of a kernel that also takes images in bfloat16, which come to it as uint16, their bits
IMAGES = ("float32", "float64", BFLOAT16)

#: dtypes of a kernel that leaves the arithmetic to what runs with any
ANY = ("any",)

KernelClass = TypeVar("KernelClass", bound="type[Kernel[Any]]")

_kernels: dict[tuple[type, str, str], type[Kernel[Any]]] = {}


class Entry(NamedTuple):
    """One row of the table."""

    operator: type
    device: str
    dtype: str
    kernel: type[Kernel[Any]]


class MissingKernelError(ValueError, NotImplementedError):
    """No kernel runs this operator on this device in this dtype."""


def register(
    *operators: type, device: str = "cpu", dtypes: Sequence[str] = ("float32", "float64")
) -> Callable[[KernelClass], KernelClass]:
    """Enters the decorated class as the kernel of these operators on a device, for each of the dtypes.

    dtypes: values of `Op.kernel_dtype`, or ANY.  Raises ValueError where there is such an entry already.
    """

    def enter(kernel: KernelClass) -> KernelClass:
        keys = [(operator, device, dtype) for operator in operators for dtype in dtypes]
        for key in keys:
            if key in _kernels:
                name = f"{key[0].__name__}, {device}, {key[2]}"
                raise ValueError(f"kernel of {name}: expected one, got {_kernels[key].__name__} and {kernel.__name__}")
        _kernels.update(dict.fromkeys(keys, kernel))
        return kernel

    return enter


def find(op: Any, device: str, dtype: str) -> Kernel[Any]:
    """The kernel that runs an operator.  Raises MissingKernelError, ValueError for a device that is not known.

    An operator class without an entry of its own is run by the kernel of the class that it derives from.
    """
    own = load(device)
    for operator in type(op).__mro__:
        kernel = _kernels.get((operator, own, dtype))
        if kernel is None and dtype != BFLOAT16:  # whose bits NumPy would take for integers
            kernel = _kernels.get((operator, own, ANY[0]))
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
    return any((operator, own, dtype) in _kernels for operator in type(op).__mro__)


def load(device: str) -> str:
    """Imports the kernels of a device, "gpu:1" as "gpu"; returns the name by which they are entered.

    Raises ValueError for a device that is not known.
    """
    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise ValueError(f"device: expected one of {', '.join(DEVICES)}, got {device!r}")
    importlib.import_module(DEVICES[kind])
    return _SAME.get(kind, kind)


def entries() -> Iterator[Entry]:
    """All rows of the table, of devices that have been loaded."""
    for (operator, device, dtype), kernel in _kernels.items():
        yield Entry(operator, device, dtype, kernel)
