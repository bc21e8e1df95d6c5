"""Inputs of functional models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import BFLOAT16, COMPLEX, name_of
from pydtconv.extents import check
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor, Node
from pydtconv.naming import auto_name


class InputLayer(Layer):
    """An input of a model: shape without the batch, dtype, and a name by which dicts of arrays are matched.

    optional: whether None may be given for it.
    """

    def __init__(
        self,
        shape: Sequence[int | None] | None = None,
        batch_size: int | None = None,
        dtype: Any = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        batch_shape: Sequence[int | None] | None = None,
        input_tensor: Any = None,
        optional: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if sparse or ragged or input_tensor is not None:
            raise ValueError("InputLayer: sparse, ragged and tensor inputs are not supported")
        shape = kwargs.pop("input_shape", shape)
        batch_shape = kwargs.pop("batch_input_shape", batch_shape)
        super().__init__(name=name or auto_name("input_layer"), **kwargs)
        if (shape is None) == (batch_shape is None):
            raise ValueError(f"InputLayer: expected either shape or batch_shape, got {shape!r} and {batch_shape!r}")
        if batch_shape is None:
            batch_shape = (batch_size, *_checked("shape", shape))
        elif batch_size is not None:
            raise ValueError("InputLayer: batch_size cannot be given together with batch_shape")
        self.batch_shape = _checked("batch_shape", batch_shape)
        is_string = isinstance(dtype, str) and dtype == "string"
        self._input_dtype = "string" if is_string else config.floatx() if dtype is None else name_of(dtype)
        if self._input_dtype in COMPLEX:
            raise TypeError(f"Input: dtype: expected a real one, got {self._input_dtype}")
        if self._input_dtype == BFLOAT16:
            raise ValueError("Input: dtype: expected one such as float32, got 'bfloat16': layers round what they read")
        self.sparse, self.ragged, self.optional = False, False, bool(optional)
        self.built = True
        Node(self, (), {}, KerasTensor(self.batch_shape, "int64" if is_string else self.dtype, name=self.name))

    @property
    def dtype(self) -> str:
        """The dtype of the tensor; of strings, whose tensor holds their fingerprints as int64, "string"."""
        return self._input_dtype

    @property
    def batch_size(self) -> int | None:
        return self.batch_shape[0]

    def call(self, inputs: Any = None) -> Any:
        return inputs

    def get_config(self) -> dict[str, Any]:
        return {
            "batch_shape": self.batch_shape,
            "dtype": self.dtype,
            "sparse": False,
            "ragged": False,
            "name": self.name,
            "optional": self.optional,
        }


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    dtype: Any = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: Sequence[int | None] | None = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> KerasTensor:
    """A symbolic tensor that is a model's input; shape is without the batch.

    optional: None may be given for it, which the layers that read it then get in its place.
    """
    layer = InputLayer(shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name)
    return layer.output


def _checked(name: str, shape: Any) -> tuple[int | None, ...]:
    if isinstance(shape, int):
        shape = (shape,)
    if any(extent is not None and not (isinstance(extent, (int, np.integer)) and extent >= 1) for extent in shape):
        raise ValueError(f"InputLayer: {name}: expected integers of 1 or more, or None, got {tuple(shape)}")
    check(f"InputLayer: {name}", shape := tuple(None if extent is None else int(extent) for extent in shape))
    return shape
