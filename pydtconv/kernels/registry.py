"""Which kernel runs an operator: a table from (operator, device, dtype) to a class of kernels.

An operator (pydtconv/ops) declares what is computed; a kernel (see base.py) computes it on one device.  Kernels enter
themselves here with `register`; lookup.py finds them.

    @register(ops.Softmax)
    class SoftmaxKernel(Kernel[ops.Softmax]):
        def forward(self, p: Pass) -> Call: ...

A device is a package that registers its kernels when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydtconv.dtypes import BFLOAT16

if TYPE_CHECKING:
    from pydtconv.kernels.base import Kernel

#: dtypes of a kernel that also takes images in bfloat16, which come to it as uint16, their bits
IMAGES = ("float32", "float64", BFLOAT16)

#: dtypes of a kernel that leaves the arithmetic to what runs with any
ANY = ("any",)

KernelClass = TypeVar("KernelClass", bound="type[Kernel[Any]]")

#: by operator, device and dtype
kernels: dict[tuple[type, str, str], type[Kernel[Any]]] = {}


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
            if key in kernels:
                name = f"{key[0].__name__}, {device}, {key[2]}"
                raise ValueError(f"kernel of {name}: expected one, got {kernels[key].__name__} and {kernel.__name__}")
        kernels.update(dict.fromkeys(keys, kernel))
        return kernel

    return enter


def entries() -> Iterator[Entry]:
    """All rows of the table, of devices that have been loaded."""
    for (operator, device, dtype), kernel in kernels.items():
        yield Entry(operator, device, dtype, kernel)
