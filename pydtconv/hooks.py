"""What lower rooms ask of upper ones: each hook is called below and filled, under its name, by the room that answers.

Imports run downwards only.  A room that needs something from above calls a hook of this page; the room that has it
fills the hook when it is imported:

    @hooks.compute.fill
    def compute(op, *inputs): ...

A hook that is called before it was filled has the package's root, which stands above all rooms, import that room.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_import_room: Callable[[str], Any] | None = None


def set_importer(importer: Callable[[str], Any]) -> None:
    """importer: imports the room that fills the hook of a name; given by the package's root."""
    global _import_room
    _import_room = importer


class Hook:
    """A function that an upper room defines.  usual: stands in its place until a room fills the hook, if any does."""

    __slots__ = ("_function", "_usual", "name")

    def __init__(self, name: str, usual: Callable[..., Any] | None = None) -> None:
        self.name = name
        self._function = self._usual = usual

    def fill(self, function: Any) -> Any:
        """Takes the function (or class), which is returned."""
        self._function = function
        return function

    def reset(self) -> None:
        """Takes back what has filled it."""
        self._function = self._usual

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            assert _import_room is not None
            _import_room(self.name)
            assert self._function is not None, self.name
        return self._function(*args, **kwargs)


def _as_it_is(value: Any) -> Any:
    return value


def returning(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose results a user gets: they go through `as_result`."""

    @functools.wraps(function)
    def given(*args: Any, **kwargs: Any) -> Any:
        return as_result(function(*args, **kwargs))

    return given


class Returning:
    """Base of classes whose instances a user calls: what `__call__` of a subclass gives goes through `as_result`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            cls.__call__ = returning(vars(cls)["__call__"])  # type: ignore[method-assign]


#: (op, *arrays, training=False): an operator on NumPy arrays, computed at once
compute = Hook("compute")
#: (arrays): the recording in which operators on these arrays go, as a tape watches one of them; else None
recording_of = Hook("recording_of", lambda arrays: None)
#: (): the graph in which operators that draw go, for each run to draw anew, as code is traced for many; else None
graph_of_draws = Hook("graph_of_draws", lambda: None)
#: (function, states, xs, steps, ...): a loop of the graph that is traced (graph/runtime/traced_loop.py); else None
traced_loop = Hook("traced_loop", lambda *args, **kwargs: None)
#: (array): the array as a tensor of the recording that is open here, else as it is
recorded = Hook("recorded", _as_it_is)
#: (array or float): what a function returns to the user, who may want another class of arrays than NumPy's
as_result = Hook("as_result", _as_it_is)
#: (function, arrays): the function of tensors that have the arrays' values, run as it is written; its arrays
run_as_written = Hook("run_as_written")
#: the class GradientTape
tape = Hook("tape")
#: (name): the initializer of a name
initializer = Hook("initializer")
#: the class Variable
variable = Hook("variable")
#: (name): the device of a name; raises DeviceError where it cannot be used
device = Hook("device")
#: (name, kind, x, sizes, axes, norm): a Fourier transform of a device's array
transform_on_device = Hook("transform_on_device")
#: (problem, direction, *arrays): a pass of a convolution on a device's arrays
convolve_on_device = Hook("convolve_on_device")
#: (): the table of algorithms of devices with memory of their own
device_algorithms = Hook("device_algorithms")
#: (path): a callback that writes the time line of some steps of `fit` there
tracer = Hook("tracer")
#: (name): a public room, such as "layers", in which a file's names are looked up
public_room = Hook("public_room")
