"""Categories without a vocabulary: Hashing and HashedCrossing, of arrays, before a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.layers.arguments import positive, refuse
from pydtconv.layers.layer import Layer
from pydtconv.layers.preprocessing.categories import MODES, check_mode, encoded
from pydtconv.layers.symbolic import KerasTensor
from pydtconv.serialization.configurable import builtin
from pydtconv.utils.fingerprints import fingerprint64, fingerprint_cat64, key_of, string_bin

#: what the fingerprint of a cross begins with, as TensorFlow has it
_CROSS_KEY = 0xDECAFCAFFE


def _categories(layer: Layer, values: Any) -> np.ndarray:
    """Integers or strings as an array of objects: int or str."""
    if hasattr(values, "apply_op"):
        raise ValueError(f"{type(layer).__name__} {layer.name!r}: expected an array, got a symbolic tensor")
    array = np.asarray(values)
    if array.dtype.kind not in "iuUSO":
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: expected integers or strings, got an array of {array.dtype}"
        )
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    return array.astype(object)


class _Hashed(Layer):
    """What is called with arrays: `_bins` gives their bins."""

    num_bins: int
    output_mode: str

    def _start(self, num_bins: Any, output_mode: str, modes: Sequence[str], sparse: bool) -> None:
        kind = type(self).__name__
        refuse(kind, sparse=sparse or None)
        self.num_bins = positive(kind, "num_bins", num_bins)
        self.output_mode = check_mode(kind, output_mode, modes)
        self.sparse = False
        self.autocast = False
        self._pydt_needs_no_build()

    def _bins(self, inputs: Any) -> np.ndarray:
        raise NotImplementedError

    def compute_output_shape(self, input_shape: Sequence[Any]) -> tuple[int | None, ...]:
        """The shape of what arrays of this shape, or the features of these shapes, become."""
        several = bool(input_shape) and isinstance(input_shape[0], (list, tuple))
        indices = KerasTensor(input_shape[0] if several else input_shape, "int64")
        found: tuple[int | None, ...] = encoded(self.name, indices, self.output_mode, self.num_bins).shape
        return found

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return encoded(self.name, self._bins(inputs), self.output_mode, self.num_bins)


@builtin
class Hashing(_Hashed):
    """Integers or strings (as text) as bins 0 to num_bins - 1, by FarmHash's Fingerprint64.

    mask_value: what has bin 0 for itself, where there are others.
    salt: one number or two, with which SipHash is taken instead.
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: Any = None,
        salt: Any = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._start(num_bins, output_mode, MODES, sparse)
        self.mask_value = mask_value
        self.salt = key_of("Hashing", salt)

    def _bins(self, inputs: Any) -> np.ndarray:
        masked = int(self.mask_value is not None and self.num_bins > 1)
        count = self.num_bins - masked

        def bin_of(value: Any) -> int:
            if masked and value == self.mask_value:
                return 0
            return string_bin(str(value), count, self.salt) + masked

        values = _categories(self, inputs)
        return np.array([bin_of(value) for value in values.reshape(-1)], "int64").reshape(values.shape)


@builtin
class HashedCrossing(_Hashed):
    """Features as one: the bin of their values together.  Each is (), (n,) or (n, 1), of integers or strings."""

    def __init__(
        self,
        num_bins: int,
        output_mode: str = "int",
        sparse: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        self._start(num_bins, output_mode, MODES[:2], sparse)

    def _bins(self, inputs: Any) -> np.ndarray:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(f"HashedCrossing {self.name!r}: expected a list of two features or more, got {inputs!r}")
        features = [_categories(self, feature) for feature in inputs]
        shapes = [feature.shape for feature in features]
        if len(set(shapes)) > 1 or len(shapes[0]) > 2 or shapes[0][1:] not in ((), (1,)):
            raise ValueError(
                f"HashedCrossing {self.name!r}: expected features of one shape, (), (n,) or (n, 1), got {shapes}"
            )

        def bin_of(values: Sequence[Any]) -> int:
            number = _CROSS_KEY
            for value in values:
                own = fingerprint64(value.encode()) if isinstance(value, str) else int(value) % (1 << 64)
                number = fingerprint_cat64(number, own)
            return number % self.num_bins

        columns = zip(*(feature.reshape(-1) for feature in features), strict=True)
        return np.array([bin_of(values) for values in columns], "int64").reshape(shapes[0])
