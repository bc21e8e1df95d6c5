"""Words of a vocabulary as indices or vectors: IntegerLookup and StringLookup."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import hooks, ops
from pydtconv.layers.preprocessing.categories import check_known
from pydtconv.layers.preprocessing.vocabulary import Vocabulary
from pydtconv.serialization.configurable import builtin
from pydtconv.support.strings import decoded, fingerprints


@builtin
class IntegerLookup(Vocabulary):
    """Integers of a vocabulary as indices (invert: the other way)."""

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int = -1,
        vocabulary: Any = None,
        vocabulary_dtype: str = "int64",
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if oov_method not in ("floormod", "farmhash"):
            raise ValueError(f"IntegerLookup: oov_method: expected 'floormod' or 'farmhash', got {oov_method!r}")
        if salt is not None and oov_method != "farmhash":
            raise ValueError(f"IntegerLookup: salt: expected None for oov_method={oov_method!r}, got {salt!r}")
        if vocabulary_dtype != "int64":
            raise ValueError(f"IntegerLookup: vocabulary_dtype: expected 'int64', got {vocabulary_dtype!r}")
        self.oov_token, self.vocabulary_dtype, self.oov_method = oov_token, vocabulary_dtype, oov_method
        self._start(
            max_tokens, num_oov_indices, mask_token, vocabulary, invert, output_mode, idf_weights, pad_to_max_tokens,
            salt, sparse,
        )  # fmt: skip

    def _tokens(self, values: Any) -> list[int]:
        try:
            return [int(value) for value in np.asarray(values).astype("int64")]
        except OverflowError:
            raise ValueError(f"IntegerLookup {self.name!r}: expected integers of 64 bits, got {values!r}") from None

    @hooks.returning
    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.num_oov_indices == 0 and not self.invert:
            known = [*self._known(), *([] if self.mask_token is None else [self.mask_token])]
            expected = "values of the vocabulary, with num_oov_indices=0"
            check_known(self, inputs, lambda values: np.isin(values, known), expected)
        if self.oov_method == "farmhash" and self.num_oov_indices > 1 and not self.invert:
            if hasattr(inputs, "apply_op"):
                raise ValueError(f"IntegerLookup {self.name!r}: oov_method='farmhash' is of arrays alone, got a tensor")
            return self._of_array(np.asarray(inputs))
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any) -> Any:
        words = np.array(self._known(), "int64")
        values = ops.cast(inputs, "int64")
        if self.invert:
            place = ops.subtract(values, self._first)
            inside = ops.logical_and(ops.greater_equal(place, 0), ops.less(place, len(words)))
            known = ops.take(words, ops.mod(place, len(words))) if len(words) else values
            result = ops.where(inside, known, np.int64(self.oov_token))
            if self._first == self.num_oov_indices:
                return result
            return ops.where(ops.equal(values, 0), np.int64(self.mask_token), result)
        unknown = ops.add(ops.mod(values, max(self.num_oov_indices, 1)), self._first - self.num_oov_indices)
        return self._places(values, words, self.mask_token, unknown)


@builtin
class StringLookup(Vocabulary):
    """Strings of a vocabulary as indices, of arrays and in models of `Input(dtype="string")`.

    invert: the other way, of arrays only.
    """

    _only_in_keras = ("oov_method",)

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str = "[UNK]",
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.oov_token, self.encoding = oov_token, encoding
        self._start(
            max_tokens, num_oov_indices, mask_token, vocabulary, invert, output_mode, idf_weights, pad_to_max_tokens,
            salt, sparse,
        )  # fmt: skip

    def _tokens(self, values: Any) -> list[str]:
        return decoded(values, self.encoding)

    @hooks.returning
    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(inputs, "apply_op"):
            if self.invert or self.salt is not None:
                raise ValueError(f"StringLookup {self.name!r}: invert, salt: are of arrays alone, got a tensor")
            return super().__call__(inputs, *args, **kwargs)
        values = np.asarray(inputs)
        self._known()
        if self.invert:
            table, at = np.array([*self.get_vocabulary(), self.oov_token]), values.astype("int64")
            return table[np.where((at >= 0) & (at < len(table)), at, -1)]
        return self._of_array(values)

    def call(self, inputs: Any) -> Any:
        """Of a tensor of fingerprints."""
        values, count = ops.cast(inputs, "int64"), max(self.num_oov_indices, 1)
        words = fingerprints(np.array(self._known(), object))
        mask = None if self.mask_token is None else int(fingerprints(np.array(self.mask_token, object)))
        unsigned = ops.where(ops.less(values, 0), np.int64((1 << 64) % count), np.int64(0))
        unknown = ops.mod(ops.add(ops.mod(values, count), unsigned), count)
        return self._places(values, words, mask, ops.add(unknown, self._first - self.num_oov_indices))
