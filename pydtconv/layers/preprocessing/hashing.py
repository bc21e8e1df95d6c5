"""Categories without a vocabulary: Hashing and HashedCrossing, of arrays, and of tensors of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config, hooks, ops, tree
from pydtconv.dtype_policies import INTEGERS
from pydtconv.layers.base.arguments import positive, refuse
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.layers.preprocessing.categories import MODES, check_mode, encoded, remainders
from pydtconv.ops.functions.tables.hashing import bins, cross_bins, hash_bins
from pydtconv.serialization.configurable import builtin
from pydtconv.support.fingerprints import key_of
from pydtconv.support.strings import fingerprints, reads_strings


def _categories(layer: Layer, values: Any) -> Any:
    """Integers or strings as an array, of objects for strings; tensors as they are."""
    if hasattr(values, "apply_op"):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "iuUSO":
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: expected integers or strings, got an array of {array.dtype}"
        )
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    return array if array.dtype.kind in "iu" else array.astype(object)


def _dtype(dtype: Any, output_mode: str) -> Any:
    """The dtype that is given, by default int64 for bins and floatx for vectors."""
    return ("int64" if output_mode == "int" else config.floatx()) if dtype is None else dtype


class _Hashed(Layer):
    """Base: `_bins` gives the bins of what it is called with."""

    num_bins: int
    output_mode: str
    #: whether its tensors are those of strings, which are fingerprints
    _of_strings = False

    def _start(self, num_bins: Any, output_mode: str, modes: Sequence[str], sparse: bool) -> None:
        kind = type(self).__name__
        refuse(kind, sparse=sparse or None)
        if output_mode == "int" and self.compute_dtype not in INTEGERS:
            raise ValueError(f"{kind}: dtype: expected one of integers with output_mode='int', got {self.dtype!r}")
        self.num_bins = positive(kind, "num_bins", num_bins)
        self.output_mode = check_mode(kind, output_mode, modes)
        self.sparse = False
        self.autocast = False
        self._pydt_needs_no_build()

    def _bins(self, inputs: Any) -> Any:
        raise NotImplementedError

    @hooks.returning
    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        leaves = tree.flatten(inputs)
        if any(isinstance(leaf, KerasTensor) for leaf in leaves):
            self._of_strings = any(isinstance(leaf, KerasTensor) and reads_strings(leaf) for leaf in leaves)
        symbolic = any(hasattr(leaf, "apply_op") for leaf in leaves)
        return super().__call__(inputs, *args, **kwargs) if symbolic else self.call(inputs)

    def call(self, inputs: Any) -> Any:
        found = encoded(self.name, self._bins(inputs), self.output_mode, self.num_bins)
        return ops.cast(found, self.compute_dtype)


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
        super().__init__(**{**kwargs, "dtype": _dtype(kwargs.get("dtype"), output_mode)})
        self._start(num_bins, output_mode, MODES, sparse)
        self.mask_value = mask_value
        self.salt = key_of("Hashing", salt)

    def _bins(self, inputs: Any) -> Any:
        values, salt = _categories(self, inputs), None if self.salt is None else tuple(self.salt)
        if self._of_strings and hasattr(values, "apply_op"):
            return self._bins_of_fingerprints(values)
        settings = {"num_bins": self.num_bins, "mask_value": self.mask_value, "salt": salt}
        return bins("hash_bins", [values], **settings) if hasattr(values, "apply_op") else hash_bins(values, **settings)

    def _bins_of_fingerprints(self, values: Any) -> Any:
        if self.salt is not None:
            raise ValueError(f"Hashing {self.name!r}: salt: expected None for strings in tensors, got {self.salt}")
        masked = int(self.mask_value is not None and self.num_bins > 1)
        found = ops.add(remainders(ops.cast(values, "int64"), self.num_bins - masked), masked)
        if not masked:
            return found
        mask = int(fingerprints(np.array(self.mask_value, object)))
        return ops.where(ops.equal(values, mask), np.int64(0), found)


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
        super().__init__(name=name, dtype=_dtype(dtype, output_mode), **kwargs)
        self._start(num_bins, output_mode, MODES[:2], sparse)

    def _bins(self, inputs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(f"HashedCrossing {self.name!r}: expected a list of two features or more, got {inputs!r}")
        features = [_categories(self, feature) for feature in inputs]
        shapes = [tuple(feature.shape) for feature in features]
        if len(set(shapes)) > 1 or len(shapes[0]) > 2 or shapes[0][1:] not in ((), (1,)):
            raise ValueError(
                f"HashedCrossing {self.name!r}: expected features of one shape, (), (n,) or (n, 1), got {shapes}"
            )
        if any(hasattr(feature, "apply_op") for feature in features):
            return bins("cross_bins", features, num_bins=self.num_bins)
        return cross_bins(*features, num_bins=self.num_bins)
