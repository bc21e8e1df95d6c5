"""Texts as the numbers of their words: TextVectorization."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv.extents import check
from pydtconv.layers.base.arguments import positive
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.layers.preprocessing.vocabulary import Vocabulary
from pydtconv.ops.functions.tables.texts import of_texts
from pydtconv.serialization.configurable import builtin
from pydtconv.support.strings import are_strings, decoded, keep_strings, reads_strings, strings_of

_PUNCTUATION = b"!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
_STANDARDIZE = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
_SPLIT = ("whitespace", "character")


@builtin
class TextVectorization(Vocabulary):
    """Texts () or (n,) or (..., 1) as indices of their words (..., T), or as vectors (..., words).

    standardize: what a text becomes first; letters are those of ASCII.  A function takes an array of strings and gives
    another one of its shape.  split: "whitespace", "character", None (a string is a word), or a function that gives
    the words of each of several texts, or where it raises NotImplementedError for them, those of one.
    ngrams: runs of up to so many words, or of the lengths in a tuple, joined by spaces.
    output_mode: "int": 0 fills rows up to output_sequence_length or the longest one, and 1 stands for words that are
    not in the vocabulary; "multi_hot", "count", "tf_idf": a vector of floatx for a text; "one_hot": one for each word.
    pad_to_max_tokens: vectors have max_tokens elements, however many words there are.

    In a model it reads an `Input(dtype="string")`.  There rows as long as the longest one are for an input of the model
    itself; inside of other models they need an output_sequence_length.
    """

    oov_token = "[UNK]"
    _pydt_places: tuple[list[str], dict[bytes, int]] | None = None

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: Any = "lower_and_strip_punctuation",
        split: Any = "whitespace",
        ngrams: Any = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: Any = None,
        idf_weights: Any = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        for argument, value, known in (("standardize", standardize, _STANDARDIZE), ("split", split, _SPLIT)):
            if value is not None and value not in known and not callable(value):
                expected = f"one of {', '.join(map(repr, known))}, None or a function"
                raise ValueError(f"TextVectorization: {argument}: expected {expected}, got {value!r}")
        if ragged:
            raise ValueError(f"TextVectorization: ragged: is not supported, got {ragged!r}")
        if output_sequence_length is not None:
            if output_mode != "int":
                expected = f"None with output_mode={output_mode!r}"
                raise ValueError(
                    f"TextVectorization: output_sequence_length: expected {expected}, got {output_sequence_length!r}"
                )
            output_sequence_length = positive("TextVectorization", "output_sequence_length", output_sequence_length)
        self.standardize, self.split, self.encoding = standardize, split, encoding
        self.ngrams = ngrams if ngrams is None or isinstance(ngrams, int) else tuple(ngrams)
        lengths = self.ngrams if isinstance(self.ngrams, tuple) else (1 if ngrams is None else ngrams,)
        if not lengths or not all(isinstance(n, int) for n in lengths):
            raise ValueError(f"TextVectorization: ngrams: expected None, an integer or a tuple of some, got {ngrams!r}")
        check("TextVectorization: ngrams", lengths, 1)
        self.output_sequence_length, self.ragged = output_sequence_length, False
        keep_strings()
        self._longest: int | None = None
        self._start(
            max_tokens, 1, "", vocabulary, False, output_mode, idf_weights, pad_to_max_tokens, None, sparse
        )  # fmt: skip

    # -- words -----------------------------------------------------------------------------------------------------
    def _tokens(self, values: Any) -> list[str]:
        return decoded(values, self.encoding)

    def _in_bytes(self, texts: Any) -> np.ndarray:
        """Strings as bytes, in an array of objects."""
        array = np.asarray(texts)
        if not are_strings(array):
            raise ValueError(f"TextVectorization {self.name!r}: expected strings, got an array of {array.dtype}")
        found = np.empty(array.shape, object)
        found.reshape(-1)[:] = [each if isinstance(each, bytes) else str(each).encode() for each in array.flat]
        return found

    def _standardized(self, texts: Any) -> np.ndarray:
        """The texts as bytes."""
        found = self._in_bytes(texts)
        if callable(self.standardize):
            return self._in_bytes(self.standardize(np.array(self._tokens(found.flat), str).reshape(found.shape)))
        if self.standardize is None:
            return found
        low = self.standardize.startswith("lower")
        stripped = _PUNCTUATION if self.standardize.endswith("punctuation") else b""
        found.reshape(-1)[:] = [(each.lower() if low else each).translate(None, stripped) for each in found.flat]
        return found

    def _rows(self, values: Any) -> tuple[list[list[bytes]], tuple[int, ...]]:
        """The words of each text, and the shape of the texts."""
        texts = self._standardized(values)
        if self.split is None:
            rows = texts.reshape(-1, texts.shape[-1] if texts.ndim else 1)
            return [self._runs(list(row)) for row in rows], texts.shape[:-1]
        if texts.ndim > 1:
            if texts.shape[-1] != 1:
                expected = "texts of one axis, or a last axis of 1"
                raise ValueError(f"TextVectorization {self.name!r}: expected {expected}, got shape {texts.shape}")
            texts = texts[..., 0]
        return [self._runs(row) for row in self._split(texts.reshape(-1))], texts.shape

    def _split(self, texts: np.ndarray) -> Iterable[list[bytes]]:
        if self.split == "whitespace":
            return (text.split() for text in texts)
        if self.split == "character":
            return ([each.encode() for each in text.decode("utf-8", "replace")] for text in texts)
        strings = np.array(self._tokens(texts), str)
        try:
            rows = list(self.split(strings))
        except NotImplementedError:
            rows = [self.split(text) for text in strings]
        if len(rows) != len(texts):
            raise ValueError(
                f"TextVectorization {self.name!r}: split: expected words of {len(texts)} texts, got {len(rows)}"
            )
        return (list(self._in_bytes(np.asarray(row, object))) for row in rows)

    def _runs(self, words: list[bytes]) -> list[bytes]:
        """The words, or runs of them."""
        if self.ngrams is None:
            return words
        lengths = range(1, min(self.ngrams, len(words)) + 1) if isinstance(self.ngrams, int) else self.ngrams
        return [b" ".join(words[i : i + n]) for n in lengths for i in range(len(words) - n + 1)]

    def _documents(self, batch: np.ndarray) -> Iterable[list[str]]:
        return map(self._tokens, self._rows(batch)[0])

    # -- numbers ---------------------------------------------------------------------------------------------------
    @hooks.returning
    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(inputs, "apply_op"):
            return self._of_array(inputs)
        if isinstance(inputs, KerasTensor) and not reads_strings(inputs):
            raise ValueError(f"TextVectorization {self.name!r}: expected an Input(dtype='string'), got {inputs}")
        return super().__call__(inputs, *args, **kwargs)

    def _places_of_words(self) -> dict[Any, int]:
        """The index of each word, as bytes; kept until there is another vocabulary."""
        known, places = self._known(), self._pydt_places
        if places is None or places[0] is not known:
            words = {str(word).encode(self.encoding): i for word, i in super()._places_of_words().items()}
            places = known, words
            object.__setattr__(self, "_pydt_places", places)
        return places[1]

    def _of_array(self, values: Any) -> Any:
        rows, shape = self._rows(values)
        places = self._places_of_words()
        numbers = [[places.get(word, self._first - 1) for word in row] for row in rows]
        if self.output_mode == "int":
            filled = self._filled(numbers, 0)
            return (
                filled[0, 0] if self.split is None and not np.ndim(values) else filled.reshape(*shape, filled.shape[1])
            )
        size = self._depth
        if self.output_mode == "one_hot":
            filled = self._filled(numbers, size)
            return np.eye(size + 1, size, dtype=config.floatx())[filled].reshape(*shape, filled.shape[1], size)
        found = np.zeros((len(rows), size + 1), config.floatx())  # the last one counts what fills
        for vector, row in zip(found, numbers, strict=True):
            if self.output_mode == "multi_hot":
                vector[row] = 1
            else:
                np.add.at(vector, row, 1)
        found = found[:, :size]
        return (found * self._weights(config.floatx()) if self.output_mode == "tf_idf" else found).reshape(*shape, size)

    def _filled(self, rows: Sequence[list[int]], value: int) -> np.ndarray:
        length = self.output_sequence_length
        found = np.full((len(rows), max(map(len, rows), default=0) if length is None else length), value, "int64")
        for target, row in zip(found, rows, strict=True):
            target[: len(row)] = row[: len(target)]
        return found

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape; T is None where it is that of the longest text."""
        shape = tuple(input_shape)
        outer = shape[:-1] if len(shape) > 1 or self.split is None else shape
        length = (
            shape[-1] if self.split is None and self.output_sequence_length is None else self.output_sequence_length
        )
        if self.output_mode == "int":
            return (*outer, length)
        return (*outer, *((length,) if self.output_mode == "one_hot" else ()), self._depth)

    def compute_output_spec(self, inputs: Any) -> Any:
        """The symbolic output."""
        return KerasTensor(self.compute_output_shape(inputs.shape), self._output_dtype)

    @property
    def _output_dtype(self) -> str:
        return "int64" if self.output_mode == "int" else config.floatx()

    def note_longest(self, texts: Any) -> None:
        """How many words the longest text of the batch to come has, where that is the extent of the output."""
        if self.output_sequence_length is None and self.output_mode in ("int", "one_hot") and self.split is not None:
            self._longest = max(1, *map(len, self._rows(strings_of(texts))[0]))

    def call(self, inputs: Any) -> Any:
        """Of a tensor of fingerprints."""
        self._known()
        inner: Any = tuple(
            self._longest if n is None else n for n in self.compute_output_shape((0, *inputs.shape[1:]))[1:]
        )
        if None in inner:
            raise ValueError(
                f"TextVectorization {self.name!r}: output_sequence_length: expected an integer in a model that is "
                "inside of another one, got None"
            )
        return of_texts(inputs, self._of_array, inner, self._output_dtype)
