"""Bindings say everything once: a function's precision is picked by an array's type or a dtype, in dtconv_any.h."""

import re
from pathlib import Path

import pytest

from pydtconv._ext import conv, elem, gemm, norm, ukr, winograd
from pydtconv.conv import ConvProblem

ROOT = Path(__file__).parents[2]
NAMES = re.findall(r"#define dtconv_(\w+)\(", (ROOT / "cext" / "include" / "dtconv_any.h").read_text())
BINDINGS = sorted((ROOT / "pydtconv" / "_ext").glob("*.p[yx][xd]"))


@pytest.mark.parametrize("path", BINDINGS, ids=lambda path: path.name)
def test_no_binding_names_the_function_of_one_precision(path):
    words = set(re.findall(r"\bdtconv_\w+", path.read_text()))
    assert not words & {f"dtconv_{precision}{name}" for precision in "sdh" for name in NAMES}


def test_each_name_is_of_a_binding():
    text = "".join(path.read_text() for path in BINDINGS)
    assert len(NAMES) > 60
    assert [name for name in NAMES if f"dtconv_{name}(" not in text] == []


def test_a_dtype_that_the_library_has_not():
    sizes = ConvProblem(1, 4, 4, 2, 3, (3, 3)).sizes
    for call in (
        lambda: gemm.workspace_bytes(2, 3, 4, "float16"),
        lambda: norm.batchnorm_workspace(2, 3, "float16"),
        lambda: conv.workspace_bytes(sizes, "direct", "forward", "float16"),
        lambda: conv.bias_backward_workspace(3, "float16"),
        lambda: winograd.filters_bytes(sizes, False, "float16"),
        lambda: ukr.table("float16"),
    ):
        with pytest.raises(ValueError, match="dtype: expected float32, float64 or bfloat16, got float16"):
            call()


def test_arrays_of_two_dtypes_are_refused():
    import numpy as np

    layout = np.array([1, 2, 3, 1, 1], np.int64)
    with pytest.raises((TypeError, ValueError)):
        elem.bind_copy(1.0, False, layout, np.ones(3, "float32"), np.ones(3, "float64"))
