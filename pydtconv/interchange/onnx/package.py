"""The package `onnx`, an extra: it knows the format, and is imported when a file is written or read."""

from __future__ import annotations

import importlib
from typing import Any


def import_onnx(what: str) -> Any:
    """The module; what: who asks for it.  Raises ImportError that says how to install it."""
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise ImportError(f"{what}: ONNX files need the package onnx: pip install 'pydtconv[onnx]'") from error
