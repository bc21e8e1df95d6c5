"""Words of a vocabulary as indices or vectors: IntegerLookup and StringLookup."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import hooks, ops
from pydtconv.extents import check
from pydtconv.files.reading import open_regular
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.preprocessing.categories import MODES, batches_of, check_known, check_mode, encoded
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.lambdas import refuse_path
from pydtconv.support.fingerprints import key_of, string_bin
from pydtconv.support.strings import fingerprints


class _Lookup(Layer):
    """Index 0 is the mask's where there is one, then those of unknown values, then the vocabulary's.

    In vectors of classes the mask has no place: it counts as nothing.  "tf_idf" is "count" times a weight for each
    word: one of idf_weights, or log(1 + documents / (1 + documents with the word)), where a document is a row of what
    `adapt` sees.  Unknown values have the mean of the weights.  Several indices of unknown values are shared out by
    FarmHash's Fingerprint64 of the text, by SipHash where there is a salt.
    """

    def _start(
        self,
        max_tokens: int | None,
        unknown: int,
        mask: Any,
        vocabulary: Any,
        invert: bool,
        mode: str,
        idf_weights: Any,
        pad_to_max_tokens: bool,
        salt: Any,
        sparse: bool,
    ) -> None:
        name = type(self).__name__
        mode = check_mode(name, mode, (*MODES, "tf_idf"))
        if sparse:
            raise ValueError(f"{name}: sparse: is not supported, got {sparse!r}")
        if max_tokens is not None and max_tokens <= 1:
            raise ValueError(f"{name}: max_tokens: expected None or 2 or more, got {max_tokens}")
        if pad_to_max_tokens and (max_tokens is None or mode == "int"):
            raise ValueError(f"{name}: pad_to_max_tokens: expected max_tokens and vectors, got {max_tokens}, {mode!r}")
        if idf_weights is not None and (mode != "tf_idf" or vocabulary is None):
            raise ValueError(f"{name}: idf_weights: expected output_mode='tf_idf' and a vocabulary, got {mode!r}")
        if unknown < 0:
            raise ValueError(f"{name}: num_oov_indices: expected 0 or more, got {unknown}")
        check(f"{name}: num_oov_indices", unknown)
        self.max_tokens, self.num_oov_indices, self.mask_token = max_tokens, unknown, mask
        self.invert, self.output_mode = invert, mode
        if invert and mode != "int":
            raise ValueError(f"{name}: output_mode: expected 'int' with invert=True, got {mode!r}")
        self.sparse, self.pad_to_max_tokens, self.salt = False, bool(pad_to_max_tokens), key_of(name, salt)
        self.idf_weights: list[float] | None = None
        self.vocabulary: list[Any] | None = None
        self.autocast = False
        self._pydt_needs_no_build()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    def _head(self) -> list[Any]:
        """The tokens before the vocabulary's first word."""
        mask = [self.mask_token] * (self._first - self.num_oov_indices)
        return [*mask, *[self.oov_token] * self.num_oov_indices]  # type: ignore[attr-defined]

    @property
    def _first(self) -> int:
        """The index of the vocabulary's first word."""
        return self.num_oov_indices + (self.mask_token is not None and self.output_mode == "int")

    @property
    def _masked(self) -> int:
        """The index of the mask; in vectors of classes, one that is none of them."""
        return 0 if self.output_mode == "int" else -1

    def _tokens(self, values: Any) -> list[Any]:
        raise NotImplementedError

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """The words in the order of their indices; a path of a text file has one a line.

        idf_weights: a number for each, where output_mode is "tf_idf".
        """
        told = f"{type(self).__name__} {self.name!r}"
        if (idf_weights is None) == (self.output_mode == "tf_idf"):
            raise ValueError(f"{told}: idf_weights: expected them for 'tf_idf' alone, got {idf_weights!r}")
        if isinstance(vocabulary, str):
            refuse_path(f"{told}: vocabulary", vocabulary)
            with open_regular(vocabulary) as file:
                vocabulary = file.read().decode().splitlines()
        words = self._tokens(np.asarray(vocabulary).reshape(-1))
        weights = None if idf_weights is None else [float(weight) for weight in np.asarray(idf_weights).reshape(-1)]
        if weights is not None and len(weights) != len(words):
            raise ValueError(f"{told}: idf_weights: expected {len(words)} numbers, one a word, got {len(weights)}")
        headed = 0 < self._first <= len(words) and words[: self._first] == self._head()
        words = words[self._first :] if headed else words
        if len(set(words)) != len(words):
            raise ValueError(f"{told}: vocabulary: expected each word once")
        self.vocabulary = words
        self.idf_weights = weights if headed or weights is None else self._with_unknown(weights)

    def _with_unknown(self, weights: list[float]) -> list[float]:
        """The weights of words with those of unknown values before them."""
        return [float(np.mean(weights)) if weights else 0.0] * self._first + weights

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Takes the vocabulary from an array or batches: the most frequent words first."""
        counts: Counter[Any] = Counter()
        documents: Counter[Any] = Counter()
        rows = 0
        for i, batch in enumerate(batches_of(data)):
            if steps is not None and i >= steps:
                break
            counts.update(self._tokens(batch.reshape(-1)))
            for row in batch.reshape(len(batch) if batch.ndim else 1, -1) if self.output_mode == "tf_idf" else ():
                documents.update(set(self._tokens(row)))
                rows += 1
        counts.pop(self.mask_token, None)
        counts.pop(self.oov_token, None)  # type: ignore[attr-defined]
        words = [word for word, _ in sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)]
        room = None if self.max_tokens is None else self.max_tokens - self._first
        self.vocabulary = words[:room]
        if self.output_mode == "tf_idf":
            idf = [math.log(1 + rows / (1 + documents[word])) for word in self.vocabulary]
            self.idf_weights = self._with_unknown(idf)

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The words by index."""
        words = list(self.vocabulary or [])
        return [*self._head(), *words] if include_special_tokens else words

    def vocabulary_size(self) -> int:
        """The number of indices."""
        return self._first + len(self.vocabulary or [])

    def _known(self) -> list[Any]:
        if self.vocabulary is None:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected a vocabulary: give one, or call adapt(data)"
            )
        return self.vocabulary

    def _unknown_bins(self, values: Sequence[Any]) -> list[int]:
        """The indices of unknown values."""
        first = self._first - self.num_oov_indices
        if self.num_oov_indices == 1:
            return [first] * len(values)
        return [first + string_bin(str(value), self.num_oov_indices, self.salt) for value in values]

    def _of_array(self, values: np.ndarray) -> Any:
        places = {word: i + self._first for i, word in enumerate(self._known())}
        if self.mask_token is not None:
            places[self.mask_token] = self._masked
        tokens = self._tokens(values.reshape(-1))
        strange = [token for token in dict.fromkeys(tokens) if token not in places]
        if strange and not self.num_oov_indices:
            raise ValueError(f"{type(self).__name__} {self.name!r}: num_oov_indices=0, got words beside the vocabulary")
        places |= dict(zip(strange, self._unknown_bins(strange), strict=True))
        return self._encoded(np.array([places[token] for token in tokens], "int64").reshape(values.shape))

    def _places(self, values: Any, words: np.ndarray, mask: int | None, unknown: Any) -> Any:
        """The indices of integers of a tensor among the words; those of the mask and of unknown ones are given."""
        order = np.argsort(words)
        place = ops.mod(ops.searchsorted(words[order], values), max(len(words), 1))
        found = ops.take(words[order], place) if len(words) else values
        known = ops.equal(found, values) if len(words) else ops.not_equal(values, values)
        index = ops.take(order + self._first, place) if len(words) else values
        result = ops.where(known, index, np.int64(-1) if self.num_oov_indices == 0 else unknown)
        if mask is not None:
            result = ops.where(ops.equal(values, mask), np.int64(self._masked), result)
        return self._encoded(result)

    def _encoded(self, indices: Any) -> Any:
        size = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
        assert size is not None
        if self.output_mode != "tf_idf":
            return encoded(self.name, indices, self.output_mode, size)
        vectors = encoded(self.name, indices, "count", size)
        weights = np.zeros(size, str(vectors.dtype))
        weights[: self.vocabulary_size()] = self.idf_weights
        return ops.multiply(vectors, weights)

    def _pydt_own_config(self) -> dict[str, Any]:
        words = None if self.vocabulary is None else self.get_vocabulary(include_special_tokens=bool(self.idf_weights))
        return {**super()._pydt_own_config(), "vocabulary": words, "idf_weights": self.idf_weights}


@builtin
class IntegerLookup(_Lookup):
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
class StringLookup(_Lookup):
    """Strings of a vocabulary as indices, of arrays and in models of `Input(dtype="string")`.

    invert: the other way, of arrays only.
    """

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
        return [value.decode(self.encoding) if isinstance(value, bytes) else str(value) for value in values]

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
