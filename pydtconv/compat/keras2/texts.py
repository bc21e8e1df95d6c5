"""`keras.preprocessing.text` of Keras 2: words of texts as numbers, the most frequent one first."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import Rows, taking

FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
#: from (how often a word is in a text, how many words the text has, what its number weighs) to an entry of a matrix
MODES: dict[str, Callable[[int, int, float], float]] = {
    "binary": lambda count, words, weight: 1.0,
    "count": lambda count, words, weight: count,
    "freq": lambda count, words, weight: count / words,
    "tfidf": lambda count, words, weight: (1 + np.log(count)) * weight,
}


def text_to_word_sequence(input_text: str, filters: str = FILTERS, lower: bool = True, split: str = " ") -> list[str]:
    """The words of a text, which end at `split` and at the characters of `filters`."""
    text = input_text.lower() if lower else input_text
    return [word for word in text.translate(dict.fromkeys(map(ord, filters), split)).split(split) if word]


def hashing_trick(
    text: str,
    n: int,
    hash_function: Any = None,
    filters: str = FILTERS,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], Iterable[str]] | None = None,
) -> list[int]:
    """A number from 1 to n - 1 for each word, which several words may share.

    hash_function: "md5", a function of a word, or None: Python's `hash`, which each process has anew.  analyzer: gives
    the words of a text.  Raises ValueError for n below 2 and for unknown functions.
    """
    if n < 2:
        raise ValueError(f"hashing_trick: n: expected 2 or more, got {n!r}")
    function = {None: hash, "md5": _md5}.get(hash_function, hash_function)
    if not callable(function):
        raise ValueError(f"hashing_trick: hash_function: expected None, 'md5' or a function, got {hash_function!r}")
    words = text_to_word_sequence(text, filters, lower, split) if analyzer is None else analyzer(text)
    return [int(function(word) % (n - 1) + 1) for word in words]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


def one_hot(
    input_text: str,
    n: int,
    filters: str = FILTERS,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], Iterable[str]] | None = None,
) -> list[int]:
    """`hashing_trick` with Python's `hash`."""
    return hashing_trick(input_text, n, None, filters, lower, split, analyzer)


class Tokenizer:
    """Numbers words by how often they are in texts: 1 is the most frequent one, or oov_token, if there is one.

    num_words: only numbers below it are given.  filters, lower, split: as of `text_to_word_sequence`.  char_level:
    characters are the words.  oov_token: stands for words that are not known.  analyzer: gives the words of a text.
    document_count: texts that were seen before.  nb_words: num_words of Keras 1.
    """

    analyzer: Any = None  # pickles of older versions have none

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: Any = None,
        analyzer: Callable[[str], Iterable[str]] | None = None,
        *,
        document_count: int = 0,
        nb_words: int | None = None,
    ) -> None:
        if nb_words is not None:
            noticed.once("nb_words", "Tokenizer: nb_words is an old argument: write num_words")
        self.num_words = nb_words if num_words is None else num_words
        self.filters = filters
        self.lower = lower
        self.split = split
        self.char_level = char_level
        self.oov_token = oov_token
        self.analyzer = analyzer
        self.document_count = document_count
        self.word_counts: dict[str, int] = OrderedDict()
        self.word_docs: dict[str, int] = defaultdict(int)
        self.index_docs: dict[int, int] = defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Counts the words of texts, or of lists of words, and numbers all words anew."""
        for text in texts:
            self.document_count += 1
            words = list(self._words(text))
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        known = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        known = known if self.oov_token is None else [self.oov_token, *known]
        self.word_index = {word: number for number, word in enumerate(known, 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        self.index_docs.update({self.word_index[word]: count for word, count in self.word_docs.items()})

    def fit_on_sequences(self, sequences: Sequence[Iterable[int]]) -> None:
        """Counts in how many lists of numbers each number is, for "tfidf"."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] += 1

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of the words of each text; words without one are left out, or oov_token."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """`texts_to_sequences`, one by one."""
        for text in texts:
            yield [number for number, _ in self._known((self.word_index.get(word), word) for word in self._words(text))]

    def sequences_to_texts(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """The words of each list of numbers, with blanks between them."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Iterable[Iterable[int]]) -> Iterator[str]:
        """`sequences_to_texts`, one by one."""
        for sequence in sequences:
            pairs = ((n if n in self.index_word else None, self.index_word.get(n)) for n in sequence)
            yield " ".join(word for _, word in self._known(pairs))

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray:
        """`sequences_to_matrix` of the numbers of texts."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Sequence[Sequence[int]], mode: str = "binary") -> np.ndarray:
        """An array (n, num_words) of what each list of numbers has of each number.

        mode: "binary" (whether), "count" (how often), "freq" (its share), "tfidf" (the log of its count, times the log
        of how few texts have it).  Raises ValueError for other modes, and where words or texts are not known.
        """
        width = self.num_words or (len(self.word_index) + 1 if self.word_index else 0)
        if not width:
            raise ValueError("Tokenizer: expected num_words, or fit_on_texts before sequences_to_matrix")
        if mode not in MODES:
            raise ValueError(f"Tokenizer: mode: expected one of {', '.join(MODES)}, got {mode!r}")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Tokenizer: mode 'tfidf': expected fit_on_texts or fit_on_sequences before")
        found = np.zeros((len(sequences), width))
        for row, sequence in zip(found, sequences, strict=True):
            for number, count in Counter(n for n in sequence if n < width).items():
                weight = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
                row[number] = MODES[mode](count, len(sequence), weight)
        return found

    def get_config(self) -> dict[str, Any]:
        """What `tokenizer_from_json` reads; tables are texts of JSON."""
        plain = ("num_words", "filters", "lower", "split", "char_level", "oov_token", "document_count")
        return {
            **{name: getattr(self, name) for name in plain},
            **{name: json.dumps(getattr(self, name)) for name in TABLES},
        }

    def to_json(self, **kwargs: Any) -> str:
        """The tokenizer as JSON; kwargs go to `json.dumps`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)

    def _words(self, text: Any) -> Iterable[str]:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return text
            return [word.lower() for word in text] if isinstance(text, list) else text.lower()
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def _known(self, pairs: Iterable[tuple[int | None, Any]]) -> Iterator[tuple[int, Any]]:
        """Numbers and words; oov_token stands for those that are not known, or whose number is too high."""
        other = self.word_index.get(self.oov_token)
        for number, word in pairs:
            if number is not None and not (self.num_words and number >= self.num_words):
                yield number, word
            elif other is not None:
                yield other, self.index_word[other]


#: tables of a Tokenizer, and whether their keys are numbers, which JSON has as texts
TABLES = {"word_counts": False, "word_docs": False, "index_docs": True, "index_word": True, "word_index": False}


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The Tokenizer that `Tokenizer.to_json` wrote."""
    config = dict(json.loads(json_string)["config"])
    tables = {name: json.loads(config.pop(name)) for name in TABLES}
    tokenizer = Tokenizer(**config)
    for name, numbered in TABLES.items():
        getattr(tokenizer, name).update({int(k) if numbered else k: v for k, v in tables[name].items()})
    return tokenizer


def table() -> dict[str, Any]:
    """The names; `text` was the first argument of two of them."""
    old: Rows = {"text": "input_text"}
    return {
        "Tokenizer": Tokenizer,
        "hashing_trick": hashing_trick,
        "one_hot": taking(one_hot, old),
        "text_to_word_sequence": taking(text_to_word_sequence, old),
        "tokenizer_from_json": tokenizer_from_json,
    }
