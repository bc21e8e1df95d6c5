"""Kernels: what runs an operator on a device.

base: what a kernel is, and the arrays it is bound to.  registry: which kernel runs which operator, by device and dtype.
lookup: finds it there.  eager: operators on NumPy arrays, at once.  cpu: the kernels of this machine, a file for each
file of `ops`; they alone call the compiled extensions.

A new kernel is a class under `register`; docs/guides/writing-an-operator.md shows one.
"""

from pydtconv.kernels.array_calls import compute
from pydtconv.kernels.base import BackwardReductions, Call, Kernel, Pass, Prologue, RunState, in_parts, scratch
from pydtconv.kernels.lookup import DEVICES, find
from pydtconv.kernels.registry import ANY, MissingKernelError, register

__all__ = [
    "ANY",
    "DEVICES",
    "BackwardReductions",
    "Call",
    "Kernel",
    "MissingKernelError",
    "Pass",
    "Prologue",
    "RunState",
    "compute",
    "find",
    "in_parts",
    "register",
    "scratch",
]
