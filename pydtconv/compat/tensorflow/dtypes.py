"""`tf.float32` and the other dtypes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

#: dtypes by TensorFlow's names
NAMES = (
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat16", "complex64", "complex128", "string",
)  # fmt: skip
_OTHER_NAMES = {"half": "float16", "double": "float64"}
_FURTHER = {**_OTHER_NAMES, "float": "float32"}
#: dtypes of NumPy's arrays for those that NumPy does not name so
_IN_MEMORY = {"bfloat16": "uint16", "string": "object"}


class DType(str):
    """A dtype: its name as a string, which also equals NumPy's dtype, with TensorFlow's attributes.

    All that a NumPy dtype has (`kind`, `itemsize`, ...) is there, too.
    """

    _numpy: np.dtype[Any]
    _is_numeric = True  # as numpy.testing asks the class of an array's dtype

    def __new__(cls, name: str) -> DType:
        found = super().__new__(cls, name)
        found._numpy = np.dtype(_IN_MEMORY.get(name, name))
        return found

    @property
    def name(self) -> str:
        """The name."""
        return str.__str__(self)

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's type of the elements."""
        return object if self.name == "string" else self._numpy.type

    @property
    def kind(self) -> str:
        """NumPy's letter for the kind of numbers."""
        return self._numpy.kind

    @property
    def base_dtype(self) -> DType:
        """The dtype itself: there are no dtypes of references."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of the parts of a complex number; of other numbers the dtype itself."""
        return as_dtype({"complex64": "float32", "complex128": "float64"}.get(self.name, self))

    @property
    def is_floating(self) -> bool:
        return "float" in self.name

    @property
    def is_integer(self) -> bool:
        return "int" in self.name

    @property
    def is_unsigned(self) -> bool:
        return self.name.startswith("uint")

    @property
    def is_complex(self) -> bool:
        return self.name.startswith("complex")

    @property
    def is_bool(self) -> bool:
        return self.name == "bool"

    @property
    def is_numeric(self) -> bool:
        return self.name not in ("bool", "string")

    @property
    def is_numpy_compatible(self) -> bool:
        return True

    @property
    def is_quantized(self) -> bool:
        return False

    @property
    def size(self) -> int:
        """Bytes of an element; 1 of a string, as TensorFlow has it."""
        return 1 if self.name == "string" else self._numpy.itemsize

    def _limit(self, which: str) -> Any:
        if self.name == "bool":
            return which == "max"
        if self.name == "bfloat16":  # 8 bits of precision: 255 * 2**120
            return 3.3895313892515355e38 * (1 if which == "max" else -1)
        if not (self.is_floating or self.is_integer):
            raise TypeError(f"tf.{self.name}.{which}: expected a dtype of real numbers, got {self.name}")
        return getattr((np.finfo if self.is_floating else np.iinfo)(self.as_numpy_dtype), which)

    @property
    def min(self) -> Any:
        """The smallest number."""
        return self._limit("min")

    @property
    def max(self) -> Any:
        """The largest number."""
        return self._limit("max")

    @property
    def limits(self) -> tuple[Any, Any]:
        """0 and the largest integer, or 0 and 1 of floats: what images of the dtype hold."""
        return (0, 1) if self.is_floating else (0, self.max)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the other dtype is this one."""
        return self == other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.dtype(_IN_MEMORY.get(self.name, self.name)), name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType) or type(other) is str:
            return str.__eq__(self, other)
        try:
            return other is not None and str.__eq__(self, as_dtype(other))
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"tf.{self.name}"


class _StringDType(DType):
    """`tf.string`."""

    _is_numeric = False


def as_dtype(type_value: Any) -> DType:
    """The dtype of a name, a NumPy dtype or a type of numbers.  Raises TypeError for what is none."""
    if isinstance(type_value, DType):
        return type_value
    try:
        return _known(type_value)
    except TypeError:  # no key, or no dtype
        raise TypeError(f"as_dtype: expected one of {', '.join(NAMES)}, got {type_value!r}") from None


@cache
def _known(value: Any) -> DType:
    if isinstance(value, str) and value in (*NAMES, *_FURTHER):
        return (_StringDType if value == "string" else DType)(_FURTHER.get(value, value))
    if value is str or value is bytes or value is object:
        return _known("string")
    if value is float:
        return DType("float32")
    if value is int:
        return DType("int32")
    found = np.dtype(value)
    if found.kind in "OSU":
        return _known("string")
    return _known(found.name) if found.name in NAMES else DType(found.name)


def table() -> dict[str, Any]:
    """The dtypes by name."""
    return {name: as_dtype(name) for name in (*NAMES, *_OTHER_NAMES)}
