"""Pickles from others, read without running anything of them: the one reader for all of these.

A pickle is a program: it makes objects and calls what it names.  Here it may make dicts, lists, tuples, numbers, texts
and bytes, and may call only the functions that its reader gives for names.  There is a limit to the number of its
instructions.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, ClassVar

from pydtconv.files.reading import BadFileError

#: instructions that are followed: each takes some 250 bytes of memory at most, beyond the bytes of the file
_MOST = 1 << 20
#: those that make data, and call what `find_class` gives
_NAMES = """APPEND APPENDS BINBYTES BINBYTES8 BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINSTRING
    BINUNICODE EMPTY_DICT EMPTY_LIST EMPTY_TUPLE FRAME GLOBAL LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE
    NEWTRUE NONE PROTO SHORT_BINBYTES SHORT_BINSTRING SHORT_BINUNICODE STACK_GLOBAL STOP TUPLE TUPLE1 TUPLE2 TUPLE3"""


class _Instructions(dict[int, Callable[..., Any]]):
    """What follows an instruction, by its code."""

    def __init__(self, known: dict[int, Callable[..., Any]], what: str, most: int) -> None:
        super().__init__(known)
        self._what, self._most, self._left = what, most, most

    def __getitem__(self, code: int) -> Callable[..., Any]:
        self._left -= 1
        if self._left < 0:
            raise BadFileError(f"expected {self._what} by {self._most} instructions at most, found more in its pickle")
        return super().__getitem__(code)

    def __missing__(self, code: int) -> Callable[..., Any]:
        name = next((each.name for each in pickletools.opcodes if each.code == chr(code)), str(code))
        raise BadFileError(f"expected {self._what}, found the instruction {name} in its pickle")


class StandIn:
    """An object that stands for one of a class that a pickle names, and takes what the pickle says of its state."""

    def take(self, state: Any) -> None:
        raise NotImplementedError


class Unpickler(pickle._Unpickler):  # the one in Python: its memo is a dict, and its instructions can be others
    """Unpickles data.

    known: what stands for the names (module, name) that the data may have.  what: what it should be, for errors.
    most: instructions at most.  Bytes and texts of Python 2 become bytes.
    Raises BadFileError, and what else damaged pickles lead to.
    """

    stack: list[Any]
    pop_mark: Callable[[], list[Any]]
    read: Callable[[int], bytes]

    def __init__(self, data: bytes, known: Mapping[tuple[str, str], Any], what: str, most: int = _MOST) -> None:
        super().__init__(BytesIO(data), encoding="bytes")
        self._known, self._what = known, what
        self.dispatch = _Instructions(self._followed, what, most)  # type: ignore[misc]  # its own for each file

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise BadFileError(f"expected {self._what}, found {module}.{name} in it")
        return self._known[module, name]

    def _call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if type(arguments) is not tuple:
            raise BadFileError(f"expected the arguments of a call, found a {type(arguments).__name__}")
        self.stack.append(function(*arguments))

    def _build(self) -> None:
        """Attributes of dicts are left out."""
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, StandIn):
            target.take(state)
        elif type(target) is not OrderedDict:
            raise BadFileError(f"expected attributes of a dict, found some of a {type(target).__name__}")

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._enter(self.stack[-1], [key, value])

    def _set_items(self) -> None:
        items = self.pop_mark()
        self._enter(self.stack[-1], items)

    def _enter(self, target: Any, items: list[Any]) -> None:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(target, dict) or type(key) not in (str, int, bytes):
                raise BadFileError(f"expected a dict by names, found a {type(target).__name__} by {type(key).__name__}")
            target[key] = value

    def _byte_array(self) -> None:
        (count,) = struct.unpack("<Q", self.read(8))
        data = self.read(count)
        if len(data) < count:
            raise BadFileError(f"expected {self._what}, found {len(data)} of {count} bytes in its pickle")
        self.stack.append(bytearray(data))

    # tuples of tuples of the memo are small here, and endless to who hashes or prints them
    _followed: ClassVar[dict[int, Any]] = {
        **{code: pickle._Unpickler.dispatch[code] for code in (getattr(pickle, name)[0] for name in _NAMES.split())},
        pickle.BYTEARRAY8[0]: _byte_array,
        pickle.REDUCE[0]: _call,
        pickle.BUILD[0]: _build,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
    }
