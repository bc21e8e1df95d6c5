"""Dtype policies: the dtype of a layer's variables, and that in which it computes.  Names and meaning are Keras's.

- "float32", "float64": both are that;
- an integer dtype, such as "int32" or "uint8": of layers without weights that compute on integers alone;
- "mixed_bfloat16": variables, optimizer states and gradients of variables are float32, what lies between layers is
  bfloat16, sums and statistics are float32.  A layer with `dtype="float32"` inside stays as it is.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from pydtconv.dtypes import name_of
from pydtconv.suggest import refusal

__all__ = ["DTypePolicy", "FloatDTypePolicy", "deserialize", "get", "serialize"]

#: (compute dtype, variable dtype) by the policy's name
POLICIES = {
    "float32": ("float32", "float32"),
    "float64": ("float64", "float64"),
    "mixed_bfloat16": ("bfloat16", "float32"),
}
#: dtypes of layers that compute on integers; no global policy
INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: policies that others stand for, with a warning: filled while a script runs that does not know pydtconv
STANDS_FOR: dict[str, str] = {}
#: what serves instead of policies that Keras has
_INSTEAD = dict.fromkeys(("mixed_float16", "float16", "bfloat16"), "mixed_bfloat16")


class DTypePolicy:
    """How a layer computes, by a name of `POLICIES` or of a dtype of integers; None is the global policy.

    Raises ValueError for a name that is none of them, TypeError for what is no name.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = dtype_policy().name
        if not isinstance(name, str):
            raise TypeError(f"dtype policy: expected a name, such as 'mixed_bfloat16', got {name!r}")
        if name in STANDS_FOR:
            warnings.warn(f"dtype policy {name!r} is not here: {STANDS_FOR[name]!r} stands for it", stacklevel=2)
            name = STANDS_FOR[name]
        self._name = name
        self._compute_dtype, self._variable_dtype = _dtypes_of(name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def compute_dtype(self) -> str:
        """The dtype of what the layer reads and writes."""
        return self._compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype of the layer's variables, unless it says otherwise."""
        return self._variable_dtype

    @property
    def quantization_mode(self) -> None:
        """None: there is no quantization."""

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self.name}">'


def _dtypes_of(name: str) -> tuple[str, str]:
    if name in INTEGERS:
        return name, name
    if name not in POLICIES:
        raise ValueError(f"dtype policy: expected one of {', '.join(POLICIES)}, got {name!r}{_instead_of(name)}")
    return POLICIES[name]


def _instead_of(name: Any) -> str:
    return f"; instead of {name} use {_INSTEAD[name]}" if isinstance(name, str) and name in _INSTEAD else ""


_floatx = "float32"
_global: DTypePolicy | None = None


def set_default(floatx: str) -> None:
    """The policy where none is set; `config.set_floatx` calls it."""
    global _floatx
    _floatx = floatx


def dtype_policy() -> DTypePolicy:
    """The policy of layers that name none: what `set_dtype_policy` has set, else that of `config.floatx()`."""
    return DTypePolicy(_floatx) if _global is None else _global


def set_dtype_policy(policy: str | DTypePolicy) -> None:
    """Sets the policy of layers that are made from now on.  Raises ValueError for an unknown one."""
    global _global
    if not isinstance(policy, (str, DTypePolicy)):
        raise ValueError(f"set_dtype_policy: expected a name or a DTypePolicy, got {policy!r}")
    found = get(policy)
    if found.name in INTEGERS:
        raise ValueError(f"set_dtype_policy: expected one of {', '.join(POLICIES)}, got {found.name!r}")
    _global = found


def forget_dtype_policy() -> None:
    """Makes `config.floatx()` the policy again."""
    global _global
    _global = None


def get(identifier: Any) -> DTypePolicy:
    """The policy that a layer's `dtype` means: a name, a dtype, a policy, its config, or None for the global one."""
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return DTypePolicy(identifier)
    try:
        return DTypePolicy(name_of(identifier))
    except TypeError:
        name = getattr(identifier, "name", None)
        if not isinstance(name, str):
            raise ValueError(f"dtype: expected a name, a dtype or a DTypePolicy, got {identifier!r}") from None
        return DTypePolicy(name)


def gathering_dtype(owner: str, identifier: Any) -> str:
    """The dtype in which a loss or a metric adds up, by a policy, its name or a dtype: under mixed_bfloat16 float32.

    Raises ValueError, which names the owner, for what is none of these.
    """
    if isinstance(identifier, dict) or (isinstance(identifier, str) and identifier in {*POLICIES, *STANDS_FOR}):
        identifier = get(identifier)
    try:
        return name_of(getattr(identifier, "variable_dtype", identifier))
    except TypeError:
        expected = f"expected a dtype or one of {', '.join(POLICIES)}"
        raise ValueError(f"{owner}: dtype: {expected}, got {identifier!r}{_instead_of(identifier)}") from None


def serialize(policy: DTypePolicy) -> dict[str, Any]:
    """The policy as plain data, as Keras writes it."""
    return {"module": "keras", "class_name": "DTypePolicy", "config": policy.get_config(), "registered_name": None}


def deserialize(config: dict[str, Any], custom_objects: Any = None) -> DTypePolicy:
    """A policy of its plain data."""
    if config.get("class_name", "DTypePolicy") not in ("DTypePolicy", "FloatDTypePolicy"):
        raise ValueError(f"dtype policy: expected a DTypePolicy, got {config['class_name']!r}")
    return DTypePolicy(config.get("config", config).get("name"))


#: Keras's other name of it
FloatDTypePolicy = DTypePolicy


def set_policy_of_the_environment() -> None:
    """Sets the policy that PYDTCONV_DTYPE names, if any.  Raises ValueError for an unknown one."""
    name = os.environ.get("PYDTCONV_DTYPE", "").strip()
    if name:
        try:
            set_dtype_policy(name)
        except ValueError as error:
            raise ValueError(f"PYDTCONV_DTYPE: {error}") from None


set_policy_of_the_environment()


__getattr__ = refusal(__name__)
