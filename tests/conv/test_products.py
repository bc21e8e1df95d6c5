"""Which products of matrices take Strassen's algorithm: those that a pointwise convolution would."""

import pytest

from pydtconv import config
from pydtconv.conv import ConvProblem, calibrated, choose
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.products import strassen_levels

LARGE, SMALL = (2048, 2048, 2048), (1024, 1024, 1024)


@pytest.fixture(autouse=True)
def _default():
    yield
    config.set_conv_precision("fast")
    config.set_conv_variant("AUTO")
    config.set_conv_workspace_limit(None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_taken_where_a_pointwise_convolution_takes_it(dtype):
    sizes = [LARGE, SMALL, (4096, 1024, 4096), (256, 4096, 4096), (12544, 512, 512), (1, 8192, 8192), (5, 3, 2)]
    for m, n, k in sizes:
        p = ConvProblem(m, 1, 1, k, n, 1, dtype=dtype)
        assert strassen_levels(m, n, k, dtype) == (choose(p, "forward").algorithm == "strassen")
    assert strassen_levels(*LARGE, dtype) == 1
    assert strassen_levels(*SMALL, dtype) == 0


def test_it_is_never_taken_where_the_model_says_that_it_loses():
    taken = 0
    for m in (64, 512, 1536, 4096, 16384):
        for n in (256, 1024, 2048, 4096):
            for k in (256, 1024, 2048, 4096):
                p = ConvProblem.of((1, 1, m, k), (1, 1, k, n))
                seconds = {name: TABLE[name].seconds(p, "forward") for name in ("strassen", "convgemm", "direct")}
                levels = strassen_levels(m, n, k, "float32")
                assert not levels or seconds["strassen"] == min(seconds.values())
                taken += levels
    assert 5 < taken < 40


def test_the_settings_of_convolutions_leave_it_out():
    config.set_conv_precision("strict")
    assert strassen_levels(*LARGE, "float32") == 0
    config.set_conv_precision("fast")
    config.set_conv_variant("CGT")
    assert strassen_levels(*LARGE, "float32") == 0
    config.set_conv_variant("AUTO")
    config.set_conv_workspace_limit(1 << 20)
    assert strassen_levels(*LARGE, "float32") == 0
    config.set_conv_workspace_limit(None)
    assert strassen_levels(*LARGE, "float32") == 1


def test_a_calibration_moves_the_choice(monkeypatch):
    slow = calibrated.Calibration(calibrated.Machine(1e11, 1e10, 0.0), 1.0, {("convgemm", "forward"): _cheap()})
    monkeypatch.setattr(calibrated, "in_force", lambda dtype="float32": slow)
    monkeypatch.setattr(calibrated, "state", lambda dtype: (dtype, 0, 0, -1))
    assert strassen_levels(*LARGE, "float32") == 0


def _cheap():
    return calibrated.times(calibrated.known("convgemm", "forward", "float32"), 0.5)


def test_what_is_no_image_has_the_classic_product():
    assert strassen_levels(0, 5, 5, "float32") == 0
    assert strassen_levels(5, 5, 0, "float32") == 0
    assert strassen_levels(10**9, 10**6, 10**6, "float32") == 0
