"""What C functions return: each status is the error that says what it means."""

import numpy as np
import pytest

from pydtconv._ext import norm, optimizers, ukr


def statistics(workspace=1 << 16):
    norm.bind_statistics(np.ones((5, 3), "float32"), *np.empty((2, 3), "float32"))(np.empty(workspace, np.uint8))


def test_a_binding_says_what_the_function_returned():
    statistics()
    with pytest.raises(ValueError, match="the workspace is smaller than the C kernel needs"):
        statistics(workspace=1)
    arrays, numbers = np.ones((4, 3), "float32"), (1e-3, 0.9, 0.999, 1e-7)
    with pytest.raises(ValueError, match="the C kernel got sizes or strides that contradict each other"):
        optimizers.adam(*arrays, *numbers, 0)  # of step 0


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (1, "gemm: this problem is not supported"),
        (2, "gemm: the workspace is too small"),
        (3, "gemm: sizes or strides contradict each other"),
        (4, "gemm: no micro-kernel could be chosen"),
        (9, "gemm: status 9"),
    ],
)
def test_each_status_of_a_product_has_its_words(status, told):
    ukr.check(0, "gemm")
    with pytest.raises(RuntimeError, match=told):
        ukr.check(status, "gemm")
