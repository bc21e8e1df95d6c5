"""`tf.train.Example` and what it is made of: named lists of bytes, floats or integers, as records of TFRecord files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from pydtconv.compat.tensorflow.arrays import Array, bytes_of
from pydtconv.compat.tensorflow.protobuf import BYTES, field, fields, signed, varint, varints


class Message:
    """Base of the messages: equal where their bytes are."""

    @classmethod
    def FromString(cls, serialized: Any) -> Any:
        """The message of these bytes.  Raises ValueError for others."""
        found = cls()
        found.ParseFromString(serialized)
        return found

    def ParseFromString(self, serialized: Any) -> int:
        """Becomes the message of these bytes; their number."""
        data = bytes_of(serialized)
        self.__init__()  # type: ignore[misc]
        self._read(data)
        return len(data)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes."""
        raise NotImplementedError

    def _read(self, data: bytes) -> None:
        raise NotImplementedError

    def CopyFrom(self, other: Any) -> None:
        """Becomes equal to another message of this class."""
        self.ParseFromString(other.SerializeToString())

    def ByteSize(self) -> int:
        """The number of bytes."""
        return len(self.SerializeToString())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.SerializeToString(True) == self.SerializeToString(True)

    __hash__ = None  # type: ignore[assignment]

    def _text(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._text()


def _block(name: str, text: str) -> str:
    """A part of a message's text, as Protocol Buffers write it."""
    return f"{name} {{\n{''.join(f'  {line}{chr(10)}' for line in text.splitlines())}}}\n"


class _Values(list[Any]):
    """The values of a list, each as its message has it."""

    def __init__(self, kind: type[_List], values: Iterable[Any] = ()) -> None:
        super().__init__(map(kind.checked, values))
        self._kind = kind

    def append(self, value: Any) -> None:
        super().append(self._kind.checked(value))

    def extend(self, values: Iterable[Any]) -> None:
        super().extend(map(self._kind.checked, values))

    add = append


class _List(Message):
    """A list of values of one kind, `value`."""

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self.value = _Values(type(self), np.asarray(value).tolist() if isinstance(value, np.ndarray) else value or ())

    @staticmethod
    def checked(value: Any) -> Any:
        raise NotImplementedError

    def _text(self) -> str:
        return "".join(f"value: {_value_text(each)}\n" for each in self.value)


def _value_text(value: Any) -> str:
    if isinstance(value, bytes):
        told = "".join(
            chr(c) if 32 <= c < 127 and chr(c) not in "\\\"'" else _ESCAPES.get(c) or f"\\{c:03o}" for c in value
        )
        return f'"{told}"'
    return str(np.float32(value)).removesuffix(".0") if isinstance(value, float) else str(value)


_ESCAPES = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


class BytesList(_List):
    """Strings of bytes."""

    @staticmethod
    def checked(value: Any) -> bytes:
        if isinstance(value, Array) or not isinstance(value, (bytes, np.bytes_)):
            raise TypeError(f"BytesList: expected bytes, got {value!r} of {type(value).__name__}")
        return bytes(value)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return b"".join(field(1, each) for each in self.value)

    def _read(self, data: bytes) -> None:
        self.value.extend(value for number, _, value in fields(data) if number == 1)


class FloatList(_List):
    """Floats of 32 bits."""

    @staticmethod
    def checked(value: Any) -> float:
        if isinstance(value, (str, bytes)) or np.ndim(value):
            raise TypeError(f"FloatList: expected a number, got {value!r} of {type(value).__name__}")
        return float(np.float32(value))

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return field(1, np.asarray(self.value, "<f4").tobytes()) if self.value else b""

    def _read(self, data: bytes) -> None:
        for number, _, value in fields(data):  # packed, or one by one
            if number == 1:
                list.extend(self.value, np.frombuffer(value, "<f4").tolist())


class Int64List(_List):
    """Integers of 64 bits."""

    @staticmethod
    def checked(value: Any) -> int:
        if isinstance(value, (str, bytes, float, np.floating)) or np.ndim(value):
            raise TypeError(f"Int64List: expected an integer, got {value!r} of {type(value).__name__}")
        found = int(value)
        if not -(1 << 63) <= found < 1 << 63:
            raise ValueError(f"Int64List: expected an integer of 64 bits, got {found}")
        return found

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return field(1, b"".join(map(varint, self.value))) if self.value else b""

    def _read(self, data: bytes) -> None:
        for number, kind, value in fields(data):
            if number == 1:
                list.extend(self.value, map(signed, varints(value) if kind == BYTES else [value]))


class Feature(Message):
    """One of `bytes_list`, `float_list`, `int64_list`."""

    _KINDS: ClassVar[dict[str, tuple[int, type[_List]]]] = {
        "bytes_list": (1, BytesList), "float_list": (2, FloatList), "int64_list": (3, Int64List),
    }  # fmt: skip

    def __init__(self, bytes_list: Any = None, float_list: Any = None, int64_list: Any = None) -> None:
        given = {"bytes_list": bytes_list, "float_list": float_list, "int64_list": int64_list}
        for name, (_, kind) in self._KINDS.items():
            if given[name] is not None and not isinstance(given[name], kind):
                raise TypeError(f"Feature: {name}: expected a {kind.__name__}, got {given[name]!r}")
            setattr(self, name, kind() if given[name] is None else given[name])
        self._set = next((name for name, value in given.items() if value is not None), None)

    def WhichOneof(self, name: str) -> str | None:
        """The name of the list that there is."""
        return self._set or next((each for each in self._KINDS if getattr(self, each).value), None)

    def HasField(self, name: str) -> bool:
        """Whether it is that list."""
        return self.WhichOneof("kind") == name

    @property
    def values(self) -> list[Any]:
        """What the list has."""
        which = self.WhichOneof("kind")
        return [] if which is None else getattr(self, which).value

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        which = self.WhichOneof("kind")
        return b"" if which is None else field(self._KINDS[which][0], getattr(self, which).SerializeToString())

    def _read(self, data: bytes) -> None:
        for number, _, value in fields(data):
            for name, (place, kind) in self._KINDS.items():
                if number == place:
                    setattr(self, name, kind.FromString(value))
                    self._set = name

    def _text(self) -> str:
        which = self.WhichOneof("kind")
        return "" if which is None else _block(which, getattr(self, which)._text())


class _Map(dict[str, Any]):
    """Messages by name; one that is not there is made where it is asked for."""

    def __init__(self, kind: type[Message], given: Mapping[str, Any] | None) -> None:
        super().__init__(given or {})
        self._kind = kind
        for name, value in self.items():
            if not isinstance(name, str) or not isinstance(value, kind):
                raise TypeError(f"expected a {kind.__name__} for {name!r}, got {value!r}")

    def __missing__(self, name: str) -> Any:
        found = self[name] = self._kind()
        return found

    def serialized(self, number: int, ordered: bool | None) -> bytes:
        items: Any = sorted(self.items()) if ordered else self.items()
        return b"".join(field(number, field(1, k.encode()) + field(2, v.SerializeToString(ordered))) for k, v in items)

    def read(self, number: int, data: bytes) -> None:
        for place, _, entry in fields(data):
            if place == number:
                parts = {inner: value for inner, _, value in fields(entry)}
                self[parts.get(1, b"").decode()] = self._kind.FromString(parts.get(2, b""))

    def text(self, field_name: str) -> str:
        parts = ((f'key: "{name}"\n' + _block("value", value._text())) for name, value in sorted(self.items()))
        return "".join(_block(field_name, part) for part in parts)


class _OfMap(Message):
    """A message of messages by name."""

    _NAME: ClassVar[str]

    @property
    def _map(self) -> _Map:
        return getattr(self, self._NAME)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return self._map.serialized(1, deterministic)

    def _read(self, data: bytes) -> None:
        self._map.read(1, data)

    def _text(self) -> str:
        return self._map.text(self._NAME)


class Features(_OfMap):
    """`feature`: features by name."""

    _NAME = "feature"

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature = _Map(Feature, feature)


class FeatureList(Message):
    """`feature`: features one after the other."""

    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature = list(feature)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return b"".join(field(1, each.SerializeToString(deterministic)) for each in self.feature)

    def _read(self, data: bytes) -> None:
        self.feature += [Feature.FromString(value) for number, _, value in fields(data) if number == 1]

    def _text(self) -> str:
        return "".join(_block("feature", each._text()) for each in self.feature)


class FeatureLists(_OfMap):
    """`feature_list`: lists of features by name."""

    _NAME = "feature_list"

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self.feature_list = _Map(FeatureList, feature_list)


class _OfParts(Message):
    """A message of other messages in its attributes."""

    _PARTS: ClassVar[dict[str, tuple[int, type[Message]]]]

    def __init__(self, **parts: Any) -> None:
        for name in parts.keys() - self._PARTS.keys():
            raise TypeError(f"{type(self).__name__}: expected {', '.join(self._PARTS)}, got {name!r}")
        for name, (_, kind) in self._PARTS.items():
            part = parts.get(name)
            if part is not None and not isinstance(part, kind):
                raise TypeError(f"{type(self).__name__}: {name}: expected a {kind.__name__}, got {part!r}")
            setattr(self, name, kind() if part is None else part)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        parts = (
            (number, getattr(self, name).SerializeToString(deterministic)) for name, (number, _) in self._PARTS.items()
        )
        return b"".join(field(number, content) for number, content in parts if content)

    def _read(self, data: bytes) -> None:
        for number, _, value in fields(data):
            for name, (place, kind) in self._PARTS.items():
                if number == place:
                    setattr(self, name, kind.FromString(value))

    def _text(self) -> str:
        return "".join(_block(name, getattr(self, name)._text()) for name in self._PARTS)


class Example(_OfParts):
    """`features`: the features of a sample."""

    _PARTS: ClassVar = {"features": (1, Features)}
    features: Features


class SequenceExample(_OfParts):
    """`context`: features of a sequence, and `feature_lists`: those of its steps."""

    _PARTS: ClassVar = {"context": (1, Features), "feature_lists": (2, FeatureLists)}
    context: Features
    feature_lists: FeatureLists


def table() -> dict[str, Any]:
    """The messages by name."""
    own = BytesList, FloatList, Int64List, Feature, Features, FeatureList, FeatureLists, Example, SequenceExample
    return {each.__name__: each for each in own}
