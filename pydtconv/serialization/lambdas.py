"""The code of lambda functions in files, as Keras writes it: marshalled, in base64.

Such code can do anything once it is called.  It is made a function again only where safe mode is off: inside
`safe_mode_scope(False)`, which `load_model(..., safe_mode=False)` enters, or after
`config.enable_unsafe_deserialization`.

The bytes are those of one version of Python.  Files of ours say which; in files of Keras the instructions are looked
at.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import dis
import marshal
import opcode
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydtconv import config

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

#: None: no scope says anything
_safe_mode: ContextVar[bool | None] = ContextVar("_safe_mode", default=None)

#: whether a config is being read
_reading: ContextVar[bool] = ContextVar("_reading", default=False)

_REFUSED = (
    "the file holds the code of a Python lambda, which could do anything when it runs. If you trust where the file "
    "comes from, load it with safe_mode=False, or call config.enable_unsafe_deserialization() before. Without its "
    "code: pass custom_objects={'<lambda>': function}"
)


def in_safe_mode() -> bool:
    """Whether code of files is refused: what the innermost scope says, else what holds for the process."""
    said = _safe_mode.get()
    return said if said is not None else not config.unsafe_deserialization()


@contextmanager
def safe_mode_scope(safe_mode: bool) -> Iterator[None]:
    """Inside, the code of lambda functions is refused, or taken where safe_mode is False.

    As with Keras, True does not take back what `enable_unsafe_deserialization` allowed.
    """
    token = _safe_mode.set(bool(safe_mode) and not config.unsafe_deserialization())
    try:
        yield
    finally:
        _safe_mode.reset(token)


@contextmanager
def reading() -> Iterator[None]:
    """Inside, objects are made of a config, and what it names is not trusted in safe mode."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


def refuse_path(what: str, path: str) -> None:
    """Raises ValueError where a config that is read in safe mode names a file."""
    if _reading.get() and in_safe_mode():
        raise ValueError(
            f"{what}: expected values, got the path {path!r}: a config may name no file. If you trust where it comes "
            "from, load it with safe_mode=False, or call config.enable_unsafe_deserialization() before"
        )


def is_lambda(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__name__ == "<lambda>"


def dumped(function: types.FunctionType) -> dict[str, Any]:
    """{"code", "defaults", "closure"} as Keras writes them, and the version of Python that reads the code.

    Defaults and values of the closure are objects still.
    """
    code = base64.encodebytes(marshal.dumps(function.__code__)).decode("ascii")
    closure = tuple(cell.cell_contents for cell in function.__closure__) if function.__closure__ else None
    return {"code": code, "defaults": function.__defaults__, "closure": closure, "python": PYTHON}


def function_of(parts: Mapping[str, Any], names: Mapping[str, Any]) -> types.FunctionType:
    """The function of what `dumped` gives, or of Keras's {"value": [code, defaults, closure]}.

    names: what its code finds as global names, besides `keras`, `ops`, `np` and Python's own.
    Raises ValueError in safe mode, and for code of another version of Python.
    """
    if in_safe_mode():
        raise ValueError(_REFUSED)
    text, defaults, closure = (
        parts["value"] if "value" in parts else (parts[k] for k in ("code", "defaults", "closure"))
    )
    written = parts.get("python", PYTHON)
    if written != PYTHON:
        raise ValueError(_of_another_python(f"Python {written}"))
    try:
        code = marshal.loads(base64.decodebytes(text.encode("ascii")))
    except (binascii.Error, EOFError, TypeError, UnicodeEncodeError, ValueError) as error:
        raise ValueError(_of_another_python("another version of Python, or damaged")) from error
    if not isinstance(code, types.CodeType) or not _can_run_here(code):
        raise ValueError(_of_another_python("another version of Python, or damaged"))
    cells = tuple(value if isinstance(value, types.CellType) else types.CellType(value) for value in closure or ())
    return types.FunctionType(code, _globals(names), code.co_name, tuple(defaults) if defaults else None, cells)


def _of_another_python(whose: str) -> str:
    return (
        f"the code of the lambda in the file is of {whose}, and this is Python {PYTHON}: pass "
        "custom_objects={'<lambda>': function}, or save the model again with a named function"
    )


def _globals(names: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    from pydtconv import hooks

    root = sys.modules[hooks.__package__]
    known = {"keras": root, "ops": hooks.public_room("ops"), "np": np, "numpy": np}
    return {**known, **names, "__builtins__": builtins, "__name__": "<lambda of a file>"}


def _can_run_here(code: types.CodeType) -> bool:
    """Whether the instructions look like ones of this Python: names, cache words and places of constants."""
    caches, instructions = getattr(opcode, "_inline_cache_entries", {}), code.co_code
    place, argument, resumes = 0, 0, False
    while place < len(instructions):
        op = instructions[place]
        argument = argument << 8 | instructions[place + 1]
        name = dis.opname[op]
        if name.startswith("<") or name == "CACHE" or (name == "LOAD_CONST" and argument >= len(code.co_consts)):
            return False
        resumes = resumes or name == "RESUME"
        argument = argument if name == "EXTENDED_ARG" else 0
        words = (caches.get(name, 0) if isinstance(caches, dict) else caches[op]) if caches else 0
        place += 2 + 2 * words
        if any(instructions[place - 2 * words : place]):
            return False
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return resumes and place == len(instructions) and all(_can_run_here(constant) for constant in inner)
