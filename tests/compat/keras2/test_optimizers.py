"""Old arguments of optimizers; `decay` beside rate / (1 + decay step) in float64."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, optimizers
from pydtconv.compat.keras2 import optimizers as old

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
CLASSES = [
    getattr(optimizers, name)
    for name in optimizers.__all__
    if isinstance(getattr(optimizers, name), type)
    and issubclass(getattr(optimizers, name), optimizers.Optimizer)
    and name not in ("Optimizer", "LossScaleOptimizer")
]


def model_of(optimizer):
    model = pydtconv.Sequential([pydtconv.Input((2,)), layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.compile(optimizer, "mse")
    return model


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_optimizer_takes_lr_and_decay(tf, cls):
    found = cls(lr=0.25, decay=0.5)
    assert float(found.learning_rate) == float(found.lr) == 0.25
    assert found.get_config() == {**cls(learning_rate=0.25, name=found.name).get_config(), "decay": 0.5}
    again = cls.from_config(found.get_config())
    assert again.get_config() == found.get_config()
    found.lr = 0.125
    assert float(found.learning_rate) == 0.125
    assert "decay" not in cls(lr=0.1).get_config()


def test_decay_is_that_of_keras_2(tf):
    rate, decay, w = 0.1, 0.3, np.array([1.0, 1.0])
    x, y = np.array([[1.0, 2.0]]), np.array([[5.0]])
    model = model_of(optimizers.SGD(lr=rate, decay=decay))
    for step in range(6):
        if step == 4:  # a callback may set the rate: the decay goes on
            rate = 0.02
            tf.keras.backend.set_value(model.optimizer.lr, rate)
        model.train_on_batch(x, y)
        w = w - rate / (1 + decay * step) * 2 * (x @ w - y[0]) * x[0]
        np.testing.assert_allclose(model.get_weights()[0][:, 0], w, rtol=2e-5)
        assert old.rate_at(rate, decay, step) == rate / (1 + decay * step)
    assert float(model.optimizer.learning_rate) == 0.02


def test_decay_of_every_optimizer_is_a_schedule(tf):
    x, y = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[5.0], [1.0]])
    for cls in CLASSES:
        found, expected = (
            model_of(cls(lr=0.1, decay=0.5)),
            model_of(cls(learning_rate=optimizers.schedules.InverseTimeDecay(0.1, 1, 0.5))),
        )
        for _ in range(3):
            for model in found, expected:
                model.train_on_batch(x, y)
        np.testing.assert_allclose(found.get_weights()[0], expected.get_weights()[0], rtol=1e-5, err_msg=cls.__name__)


def test_a_changed_default_warns(tf):
    for name, rate in old.OLD_RATES.items():
        with pytest.warns(FutureWarning, match=f"it was {rate}"):
            getattr(optimizers, name)()


def test_what_cannot_be_kept_is_refused(tf):
    with pytest.raises(ValueError, match="schedule"):
        optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 1, 0.5), decay=0.1)
    with pytest.raises(ValueError, match=r"expected 0\.004"):
        optimizers.Nadam(lr=0.1, schedule_decay=0.1)
    with pytest.raises(TypeError, match="got both lr, the old name, and learning_rate"):
        optimizers.Adam(0.1, lr=0.2)
    with pytest.raises(ValueError, match="decay: expected a number of 0 or more"):
        optimizers.Adam(decay=-1)
