"""SwapEMAWeights, against Keras where it is installed."""

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

X = np.linspace(-1, 1, 12, dtype="float32")[:, None]
Y = 2 * X + 1


def weight(model):
    return float(model.get_weights()[0][0, 0])


def figures(keras, swap_on_epoch):
    """val_loss and the weight at the end of each epoch; then the weight, evaluate's loss and a prediction."""
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9), "mse")
    swap, seen = keras.callbacks.SwapEMAWeights(swap_on_epoch), []
    look = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(weight(model)))
    arguments = {"epochs": 3, "batch_size": 4, "shuffle": False, "verbose": 0, "validation_data": (X, Y)}
    history = model.fit(X, Y, callbacks=[swap, look], **arguments).history
    loss = model.evaluate(X, Y, verbose=0, callbacks=[swap])
    predicted = model.predict(X[:1], verbose=0, callbacks=[swap])[0, 0]
    return [*history["val_loss"], *seen, weight(model), loss, predicted, weight(model)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("swap_on_epoch", [False, True])
def test_figures_are_those_of_keras(swap_on_epoch):
    keras = import_keras()
    np.testing.assert_allclose(figures(pydtconv, swap_on_epoch), figures(keras, swap_on_epoch), rtol=1e-5)


def test_callbacks_behind_it_see_the_averages_of_an_epoch():
    plain, swapped = figures(pydtconv, False), figures(pydtconv, True)
    assert plain[:3] == swapped[:3]  # val_loss is of the averages in both cases
    assert all(a > b for a, b in zip(plain[3:6], swapped[3:6], strict=True))  # the averages come behind
    assert swapped[5] == pytest.approx(swapped[6])  # and stay at the end


def test_an_optimizer_without_averages_is_refused():
    model = pydtconv.Sequential([pydtconv.layers.Input((1,)), pydtconv.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"use_ema=True, got <.*SGD"):
        model.evaluate(X, Y, verbose=0, callbacks=[pydtconv.callbacks.SwapEMAWeights()])


def test_averages_stay_where_training_ends_early():
    model = pydtconv.Sequential([pydtconv.layers.Input((1,)), pydtconv.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(pydtconv.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9), "mse")
    seen = []
    look = pydtconv.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(weight(model)))
    stop = pydtconv.callbacks.EarlyStopping("loss", patience=1, min_delta=10)
    model.fit(X, Y, epochs=9, verbose=0, callbacks=[pydtconv.callbacks.SwapEMAWeights(True), look, stop])
    assert len(seen) == 2
    assert weight(model) == seen[-1]


@pytest.mark.parametrize("run", ["test", "predict"])
def test_weights_come_back_where_evaluation_fails(run):
    model = pydtconv.Sequential([pydtconv.layers.Input((1,)), pydtconv.layers.Dense(1)])
    model.compile(pydtconv.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9), "mse")
    model.fit(X, Y, verbose=0)
    model.fit(X, Y, verbose=0)
    model.train_on_batch(X, Y)
    before = weight(model)

    def fail(batch, logs):
        raise OSError("no")

    failing = pydtconv.callbacks.LambdaCallback()
    setattr(failing, f"on_{run}_batch_end", fail)
    called = {"test": lambda **options: model.evaluate(X, Y, **options), "predict": lambda **o: model.predict(X, **o)}
    with pytest.raises(OSError, match="no"):
        called[run](verbose=0, callbacks=[pydtconv.callbacks.SwapEMAWeights(), failing])
    assert weight(model) == before


def test_more_epochs_go_on_from_the_weights_and_not_from_their_averages(tmp_path):
    def fit(folder, epochs):
        pydtconv.utils.set_random_seed(1)
        model = pydtconv.Sequential([pydtconv.layers.Input((1,)), pydtconv.layers.Dense(1)])
        model.compile(pydtconv.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9), "mse")
        backup = pydtconv.callbacks.BackupAndRestore(tmp_path / folder, delete_checkpoint=False)
        model.fit(X, Y, epochs=epochs, verbose=0, callbacks=[pydtconv.callbacks.SwapEMAWeights(True), backup])
        return weight(model)

    fit("two runs", 2)
    assert fit("two runs", 4) == fit("one run", 4)
