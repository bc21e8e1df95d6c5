"""Learning-rate schedules against Keras."""

import numpy as np
import pytest

from pydtconv.optimizers import schedules
from tests.real_keras import import_keras

CASES = {
    "exponential": ("ExponentialDecay", (0.5, 7, 0.9)),
    "exponential_staircase": ("ExponentialDecay", (0.5, 7, 0.9, True)),
    "inverse": ("InverseTimeDecay", (0.5, 7, 0.3)),
    "inverse_staircase": ("InverseTimeDecay", (0.5, 7, 0.3, True)),
    "piecewise": ("PiecewiseConstantDecay", ([5, 11], [1.0, 0.5, 0.25])),
    "polynomial": ("PolynomialDecay", (0.5, 12, 0.01, 2.0)),
    "polynomial_cycle": ("PolynomialDecay", (0.5, 6, 0.01, 0.5, True)),
    "cosine": ("CosineDecay", (0.5, 12, 0.1)),
    "cosine_warmup": ("CosineDecay", (0.0, 12, 0.1, "CosineDecay", 0.5, 5)),
    "restarts": ("CosineDecayRestarts", (0.5, 4, 2.0, 0.5, 0.1)),
    "restarts_even": ("CosineDecayRestarts", (0.5, 4, 1.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_keras_values(name):
    keras = import_keras()
    kind, given = CASES[name]
    ours, theirs = getattr(schedules, kind)(*given), getattr(keras.optimizers.schedules, kind)(*given)
    for step in range(25):
        assert ours(step) == pytest.approx(float(theirs(step)), rel=1e-5, abs=1e-7)
    assert ours.get_config() == theirs.get_config()
    again = schedules.deserialize(schedules.serialize(ours))
    assert again(9) == ours(9)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="one value more"):
        schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="decay_steps"):
        schedules.CosineDecay(0.1, 0)
    with pytest.raises(ValueError, match="CosineDecay"):
        schedules.deserialize({"class_name": "CosinDecay", "config": {}})


def test_linear_scaling_warms_up_to_the_scaled_rate():
    schedule = schedules.LinearScaling(schedules.ExponentialDecay(0.1, 10, 0.5), 4.0, warmup_steps=20)
    np.testing.assert_allclose([schedule(step) for step in (0, 10, 20, 30)], [0.1, 0.05 * 2.5, 0.025 * 4, 0.0125 * 4])
    copied = schedules.deserialize(schedules.serialize(schedule))
    assert copied(15) == schedule(15)
    assert schedules.LinearScaling(0.1, 4.0)(0) == pytest.approx(0.4)
    with pytest.raises(ValueError, match="expected warmup_steps to be 0 or more, got -1"):
        schedules.LinearScaling(0.1, 4.0, -1)
