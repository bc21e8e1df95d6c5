"""keras.backend's functions of dtypes, against what Keras 3 answers."""

from __future__ import annotations

import pytest

from pydtconv import backend


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((), "float32"),
        ((None,), "float32"),
        (("bfloat16", "float16"), "float32"),
        (("bfloat16", "float32"), "float32"),
        (("bfloat16", "int32"), "bfloat16"),
        (("bfloat16", float), "bfloat16"),
        (("bfloat16", int, bool), "bfloat16"),
        (("float16", float), "float16"),
        (("float16", "bfloat16", "float64"), "float64"),
        (("int8", int), "int8"),
        (("int32", float), "float32"),
        (("bool", int), "int32"),
        ((int, float), "float32"),
        ((int,), "int32"),
        (("bool", bool), "bool"),
    ],
)
def test_common_dtypes_are_those_of_keras(dtypes: tuple[object, ...], expected: str) -> None:
    assert backend.result_type(*dtypes) == backend.result_type(*reversed(dtypes)) == expected
