"""What "auto" means: the metric that is watched says whether less is better, or its name, or nobody."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, metrics

rng = np.random.default_rng(0)
X = rng.normal(size=(64, 6)).astype("float32")
Y = (X[:, :1] > 0).astype("float32")


def compiled(*given):
    model = keras.Sequential([keras.Input((6,)), layers.Dense(1, activation="sigmoid")])
    model.set_weights([np.full((6, 1), -0.1), np.zeros(1)])
    model.compile(keras.optimizers.SGD(1.0), "binary_crossentropy", metrics=list(given))
    return model


@pytest.mark.parametrize(
    ("metric", "mode"),
    [
        (metrics.AUC(name="roc"), "max"),
        (metrics.AUC(curve="PR", name="pr"), "max"),
        (metrics.Recall(name="sens"), "max"),
        (metrics.BinaryAccuracy(name="ba"), "max"),
        (metrics.MeanSquaredError(name="acc_err"), "min"),
        (metrics.MeanAbsoluteError(name="auc_loss"), "min"),
        ("accuracy", "max"),
        ("mse", "min"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "val_"])
def test_metrics_tell(metric, mode, prefix):
    model = compiled(metric)
    watched = prefix + (metric if isinstance(metric, str) else metric.name)
    callback = keras.callbacks.EarlyStopping(monitor=watched, patience=5)
    model.fit(X, Y, epochs=1, verbose=0, callbacks=[callback], validation_data=(X, Y))
    assert callback.mode == mode


def test_the_best_of_a_metric_by_another_name_is_kept(tmp_path):
    model, path = compiled(metrics.AUC(name="roc")), tmp_path / "best.weights.h5"
    stopping = keras.callbacks.EarlyStopping(monitor="roc", patience=2, restore_best_weights=True)
    saving = keras.callbacks.ModelCheckpoint(path, monitor="roc", save_best_only=True, save_weights_only=True)
    history = model.fit(X, Y, batch_size=16, epochs=5, shuffle=False, verbose=0, callbacks=[stopping, saving]).history
    assert saving.best == max(history["roc"]) > history["roc"][0]


def dice(y_true, y_pred):
    return abs(y_true - y_pred)


def test_a_function_of_ones_own_does_not_tell():
    callback = keras.callbacks.EarlyStopping(monitor="dice")
    with pytest.raises(ValueError, match="EarlyStopping: mode: expected 'min' or 'max' for 'dice'"):
        compiled(dice).fit(X, Y, epochs=1, verbose=0, callbacks=[callback])
    given = keras.callbacks.EarlyStopping(monitor="dice", mode="max")
    compiled(dice).fit(X, Y, epochs=1, verbose=0, callbacks=[given])


def test_results_of_outputs():
    inputs = keras.Input((6,))
    outputs = [layers.Dense(1, activation="sigmoid", name=name)(inputs) for name in "ab"]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", ["mse", "mse"], metrics=[[metrics.AUC(name="roc")], ["mae"]])
    watching = [keras.callbacks.EarlyStopping(monitor=name) for name in ("a_roc", "b_mae", "b_loss", "loss")]
    model.fit(X, [Y, Y], epochs=1, verbose=0, callbacks=watching)
    assert [callback.mode for callback in watching] == ["max", "min", "min", "min"]


def test_a_metric_of_ones_own_may_tell():
    class Overlap(metrics.MeanMetricWrapper):
        _direction = "up"

        def __init__(self):
            super().__init__(dice, name="err")

    callback = keras.callbacks.EarlyStopping(monitor="err")
    compiled(Overlap()).fit(X, Y, epochs=1, verbose=0, callbacks=[callback])
    assert callback.mode == "max"


def test_a_result_of_several_numbers_is_refused():
    inputs = keras.Input((6,))
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(inputs))
    model.compile("sgd", "categorical_crossentropy", metrics=[metrics.F1Score(name="f1")])
    with pytest.raises(ValueError, match=r"EarlyStopping: monitor: expected one number, got .* of 'f1'"):
        model.fit(X, np.hstack([Y, 1 - Y]), verbose=0, callbacks=[keras.callbacks.EarlyStopping("f1")])
