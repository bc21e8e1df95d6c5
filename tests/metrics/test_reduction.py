"""Mean and Sum, and the mean of a function."""

import numpy as np
import pytest

from pydtconv import metrics


def test_mean_and_sum():
    mean, total = metrics.Mean(), metrics.Sum()
    assert mean.result() == 0
    for metric in mean, total:
        metric.update_state([1.0, 3.0], sample_weight=[1.0, 0.5])
        metric.update_state(np.array([[2.0, 4.0]]))
    assert mean.result() == pytest.approx((1 + 1.5 + 3) / 2.5)
    assert total.result() == pytest.approx(1 + 1.5 + 6)
