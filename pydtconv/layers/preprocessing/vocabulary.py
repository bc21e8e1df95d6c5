"""`Vocabulary`: the base of layers that look words up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.extents import check
from pydtconv.files.reading import open_regular
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import infer_outputs
from pydtconv.layers.preprocessing.categories import MODES, batches_of, check_mode, encoded
from pydtconv.serialization.lambdas import refuse_path
from pydtconv.support.fingerprints import key_of, string_bin


class Vocabulary(Layer):
    """Base of lookups.  Index 0 is the mask's where there is one, then those of unknown values, then the vocabulary's.

    In vectors of classes the mask has no place: it counts as nothing.  "tf_idf" is "count" times a weight for each
    word: one of idf_weights, or log(1 + documents / (1 + documents with the word)), where a document is a row of what
    `adapt` sees.  Unknown values have the mean of the weights.  Several indices of unknown values are shared out by
    FarmHash's Fingerprint64 of the text, by SipHash where there is a salt.
    """

    #: arguments in Keras's configs that are not here
    _only_in_keras: tuple[str, ...] = ()

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
        if pad_to_max_tokens and max_tokens is None:
            raise ValueError(f"{name}: pad_to_max_tokens: expected max_tokens, got None")
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
        self._edition = 0
        self._size_in_file: int | None = None
        self._weights_in_file: Any = None
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
        if self.max_tokens is not None and self._first + len(words) > self.max_tokens:
            got = f"{self._first + len(words)} with those of masks and unknown values"
            raise ValueError(f"{told}: vocabulary: expected up to max_tokens={self.max_tokens} words, got {got}")
        self._set(words)
        self.idf_weights = weights if headed or weights is None else self._with_unknown(weights)

    def _set(self, words: list[Any]) -> None:
        """Another vocabulary, which steps to come are traced with."""
        self.vocabulary = words
        self._edition += 1

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
            for words in self._documents(batch):
                counts.update(words)
                if self.output_mode == "tf_idf":
                    documents.update(set(words))
                    rows += 1
        counts.pop(self.mask_token, None)
        counts.pop(self.oov_token, None)  # type: ignore[attr-defined]
        words = [word for word, _ in sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)]
        room = None if self.max_tokens is None else self.max_tokens - self._first
        self._set(words[:room])
        if self.output_mode == "tf_idf":
            idf = [math.log(1 + rows / (1 + documents[word])) for word in self._known()]
            self.idf_weights = self._with_unknown(idf)

    def _documents(self, batch: np.ndarray) -> Iterable[list[Any]]:
        """The tokens of each document; where nothing depends on documents, of all together."""
        rows = len(batch) if batch.ndim and self.output_mode == "tf_idf" else 1
        return map(self._tokens, batch.reshape(rows, -1))

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The words by index."""
        words = list(self.vocabulary or [])
        return [*self._head(), *words] if include_special_tokens else words

    def vocabulary_size(self) -> int:
        """The number of indices."""
        if self.vocabulary is None and self._size_in_file is not None:
            return self._size_in_file
        return self._first + len(self.vocabulary or [])

    def _known(self) -> list[Any]:
        if self.vocabulary is None:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected a vocabulary: give one, or call adapt(data)"
            )
        return self.vocabulary

    def _places_of_words(self) -> dict[Any, int]:
        """The index of each word, and of the mask."""
        places = {word: i + self._first for i, word in enumerate(self._known())}
        return places if self.mask_token is None else {**places, self.mask_token: self._masked}

    def _unknown_bins(self, values: Sequence[Any]) -> list[int]:
        """The indices of unknown values."""
        first = self._first - self.num_oov_indices
        if self.num_oov_indices == 1:
            return [first] * len(values)
        return [first + string_bin(str(value), self.num_oov_indices, self.salt) for value in values]

    def _of_array(self, values: np.ndarray) -> Any:
        places = self._places_of_words()
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

    @property
    def _depth(self) -> int:
        """The elements of vectors."""
        return self.max_tokens if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    def _weights(self, dtype: str) -> np.ndarray:
        """The weight of each element of vectors."""
        weights = np.zeros(self._depth, dtype)
        weights[: self.vocabulary_size()] = self.idf_weights
        return weights

    def _encoded(self, indices: Any) -> Any:
        if self.output_mode != "tf_idf":
            return encoded(self.name, indices, self.output_mode, self._depth)
        vectors = encoded(self.name, indices, "count", self._depth)
        return ops.multiply(vectors, self._weights(str(vectors.dtype)))

    # -- files: ours have the vocabulary in the config, those of Keras beside it ---------------------------------------
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The layer of a config, which may be Keras's."""
        own = {name: value for name, value in config.items() if name not in ("vocabulary_size", *cls._only_in_keras)}
        layer = super().from_config(own)
        layer._size_in_file = config.get("vocabulary_size")
        return layer

    def compute_output_spec(self, inputs: Any) -> Any:
        """The symbolic output, before the vocabulary of a file is read, too."""
        if self.vocabulary is not None or self._size_in_file is None:
            return super().compute_output_spec(inputs)
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        return infer_outputs(lambda x: encoded(self.name, ops.cast(x, "int64"), mode, self._depth), (inputs,), {})

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Reads the weights of words that Keras has in a file."""
        self._weights_in_file = store.get("idf_weights")

    def load_assets(self, folder: Any) -> None:
        """Reads the vocabulary that Keras has in a file."""
        file = Path(folder, "vocabulary.txt")
        if self.vocabulary is None and file.exists():
            words = file.read_text("utf-8").rstrip("\n").split("\n")
            weights = self._weights_in_file
            self.set_vocabulary(words, None if weights is None else np.asarray(weights)[: len(words)])

    def _pydt_own_config(self) -> dict[str, Any]:
        words = None if self.vocabulary is None else self.get_vocabulary(include_special_tokens=bool(self.idf_weights))
        return {**super()._pydt_own_config(), "vocabulary": words, "idf_weights": self.idf_weights}
