"""Settings that change between steps."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers, ops

#: for each setting another value than its default
OTHERS = {
    "conv_precision": "strict", "conv_tuning": 1.0, "conv_variant": "BASE", "conv_workspace_limit": 0,
    "device": "host", "epsilon": 1e-3, "float32_matmul_precision": "high", "floatx": "float64",
    "image_data_format": "channels_first", "num_threads": 3,
}  # fmt: skip
#: which layers have from when they are made
OF_LAYERS = {"dtype_policy"}


def test_all_settings_are_among_these():
    assert {name.removeprefix("set_") for name in dir(config) if name.startswith("set_")} == {*OTHERS, *OF_LAYERS}


@pytest.mark.parametrize("name", OTHERS)
def test_steps_are_traced_anew_where_a_setting_changes(name):
    before, now = config.of_kernels(), getattr(config, name)()
    set_to = getattr(config, f"set_{name}")
    set_to(OTHERS[name])
    try:
        assert config.of_kernels() != before
    finally:
        set_to(now)
    assert config.of_kernels() == before


def test_steps_read_the_epsilon_of_now(request):
    request.addfinalizer(lambda: config.set_epsilon(1e-7))
    model = keras.Sequential([layers.Input((2,)), layers.Identity()])
    model.compile("sgd", "binary_crossentropy")
    loss = keras.function(lambda y: ops.categorical_crossentropy(np.eye(1, 2, dtype="float32"), y))
    x, y = np.zeros((1, 2), "float32"), np.ones((1, 2), "float32")
    for epsilon in (1e-7, 1e-3):
        config.set_epsilon(epsilon)
        np.testing.assert_allclose(model.evaluate(x, y, verbose=0), -np.log(epsilon), rtol=1e-3)
        np.testing.assert_allclose(loss(np.eye(2, dtype="float32")[1:]), -np.log(epsilon), rtol=1e-3)
