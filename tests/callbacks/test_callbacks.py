"""Callbacks on small models."""

import csv
import warnings

import numpy as np
import pytest

from pydtconv import callbacks, layers, models, optimizers, saving

X = np.linspace(-1, 1, 12, dtype="float32")[:, None]
Y = 2 * X + 1


def line(rate=0.1):
    model = models.Sequential([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizers.SGD(rate), "mse")
    return model


class Scripted(callbacks.Callback):
    """Puts given values of val_loss into the logs."""

    def __init__(self, values):
        self.values = values
        self.weights = []

    def on_epoch_end(self, epoch, logs=None):
        logs["val_loss"] = self.values[epoch]
        self.weights.append(self.model.get_weights())


def run(model, values, *others, **arguments):
    script = Scripted(values)
    history = model.fit(X, Y, epochs=len(values), verbose=0, callbacks=[script, *others], **arguments)
    return script, history


def test_order_of_calls():
    calls = []

    class Recorder(callbacks.Callback):
        def __getattribute__(self, name):
            if name.startswith("on_") and "batch" not in name[:8]:
                return lambda *args: calls.append(name)
            return super().__getattribute__(name)

        def on_train_batch_begin(self, batch, logs=None): ...
        def on_train_batch_end(self, batch, logs=None): ...
        def on_test_batch_end(self, batch, logs=None): ...
        def on_epoch_begin(self, epoch, logs=None): ...
        def on_epoch_end(self, epoch, logs=None): ...
        def on_train_begin(self, logs=None): ...
        def on_train_end(self, logs=None): ...
        def on_test_begin(self, logs=None): ...
        def on_test_end(self, logs=None): ...

    line().fit(X, Y, batch_size=6, validation_data=(X, Y), verbose=0, callbacks=[Recorder()])
    step = ["on_train_batch_begin", "on_train_batch_end"]
    validation = ["on_test_begin", "on_test_batch_end", "on_test_batch_end", "on_test_end"]
    assert calls == ["on_train_begin", "on_epoch_begin", *step, *step, *validation, "on_epoch_end", "on_train_end"]


def test_steps_per_execution_groups_the_calls():
    seen = []
    model = line()
    model.compile("sgd", "mse", steps_per_execution=2)
    model.fit(
        X,
        Y,
        batch_size=4,
        verbose=0,
        callbacks=[callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))],
    )
    assert seen == [1, 3]
    assert int(model.optimizer.iterations) == 3


#: steps_per_epoch and steps_per_execution: ends of calls, steps, whether there is a warning, of Keras on JAX in two
#: epochs of 5 batches
EXECUTIONS = {
    (None, 2): ([1, 3, 5, 1, 3, 5], 10, False),
    (1, 2): ([1, 1], 4, False),
    (3, 2): ([1, 3, 1], 5, True),
    (4, 2): ([1, 3, 1], 5, True),
    (5, 2): ([1, 3, 5, 1, 3, 5], 10, False),
    (6, 2): ([1, 3, 5, 1, 3, 5], 10, False),
    (None, 3): ([2, 5, 2, 5], 10, False),
    (1, 3): ([2, 2], 5, False),
    (3, 3): ([2, 2], 5, False),
    (4, 3): ([2, 5, 2, 5], 10, False),
    (6, 3): ([2, 5, 2, 5], 10, False),
    (3, 4): ([3, 3], 5, False),
    (5, 4): ([3, 7, 3, 7], 10, False),
}


@pytest.mark.parametrize(("steps", "execution"), EXECUTIONS)
def test_steps_per_execution_that_does_not_divide_the_steps_of_an_epoch(steps, execution):
    calls, inputs = [], layers.Input((1,))
    model = models.Model(inputs, layers.Dense(1)(inputs))
    model.compile("sgd", "mse", steps_per_execution=execution)
    seen = callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: calls.append(batch))
    x = np.ones((10, 1), "float32")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(x, x, 2, steps_per_epoch=steps, epochs=2, verbose=0, callbacks=[seen])
    warned = any("ran out of data" in str(each.message) for each in told)
    assert (calls, int(model.optimizer.iterations), warned) == EXECUTIONS[steps, execution]


def test_attributes_of_a_lambda_callback():
    assert callbacks.LambdaCallback(helper=print).helper is print


def test_early_stopping_stops_and_restores_the_best():
    model = line()
    stop = callbacks.EarlyStopping(patience=2, restore_best_weights=True)
    script, history = run(model, [3.0, 1.0, 2.0, 1.5, 0.1], stop)
    assert history.epoch == [0, 1, 2, 3]
    assert stop.stopped_epoch == 3
    for a, b in zip(model.get_weights(), script.weights[1], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("options", "values", "epochs"),
    [
        ({"min_delta": 0.5, "patience": 1}, [3.0, 2.8, 2.0, 1.9, 1.0], 2),
        ({"mode": "max", "patience": 1}, [1.0, 2.0, 1.5, 3.0], 3),
        ({"baseline": 0.5, "patience": 2}, [3.0, 2.0, 2.5, 1.0], 3),
        ({"start_from_epoch": 3, "patience": 1}, [1.0, 2.0, 3.0, 2.0, 2.5, 1.0], 5),
    ],
)
def test_early_stopping_options(options, values, epochs):
    _, history = run(line(), values, callbacks.EarlyStopping(**options))
    assert len(history.epoch) == epochs


def test_early_stopping_without_its_result_warns():
    with pytest.warns(UserWarning, match="val_loss"):
        line().fit(X, Y, verbose=0, callbacks=[callbacks.EarlyStopping("val_loss")])


def test_learning_rates():
    _, history = run(
        line(0.5), [1.0, 1.0, 1.0, 0.5, 0.5], callbacks.ReduceLROnPlateau(patience=2, factor=0.5, min_lr=0.2)
    )
    assert history.history["learning_rate"] == [0.5, 0.5, 0.5, 0.25, 0.25]
    model = line(0.5)
    history = model.fit(
        X, Y, epochs=3, verbose=0, callbacks=[callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)]
    )
    assert history.history["learning_rate"] == [0.25, 0.125, 0.0625]
    model.fit(X, Y, epochs=1, verbose=0, callbacks=[callbacks.LearningRateScheduler(lambda epoch: 1.0)])
    assert float(model.optimizer.learning_rate) == 1.0
    with pytest.raises(ValueError, match="number"):
        model.fit(X, Y, verbose=0, callbacks=[callbacks.LearningRateScheduler(lambda epoch: "fast")])


def test_checkpoints(tmp_path):
    model = line()
    best = callbacks.ModelCheckpoint(
        tmp_path / "best-{epoch:02d}-{val_loss:.1f}.weights.h5", save_best_only=True, save_weights_only=True
    )
    steps = callbacks.ModelCheckpoint(tmp_path / "s{epoch}-{batch}.weights.h5", save_weights_only=True, save_freq=2)
    script, _ = run(model, [3.0, 4.0, 1.0], best, steps, batch_size=4)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "best-01-3.0.weights.h5",
        "best-03-1.0.weights.h5",
        "s1-2.weights.h5",
        "s2-1.weights.h5",
        "s2-3.weights.h5",
        "s3-2.weights.h5",
    ]
    other = line()
    other.load_weights(tmp_path / "best-01-3.0.weights.h5")
    for a, b in zip(other.get_weights(), script.weights[0], strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match=r"weights\.h5"):
        callbacks.ModelCheckpoint(tmp_path / "x.keras", save_weights_only=True)
    with pytest.raises(KeyError, match="val_acc"):
        run(model, [1.0], callbacks.ModelCheckpoint(str(tmp_path / "{val_acc}.weights.h5"), save_weights_only=True))


def test_the_best_of_a_result_that_is_not_there_is_saved_until_there_is_one(tmp_path):
    model = line()
    best = callbacks.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_best_only=True, save_weights_only=True)
    with pytest.warns(UserWarning, match="'val_loss' is not there"):
        model.fit(X, Y, epochs=5, verbose=0, callbacks=[best], validation_data=(X, Y), validation_freq=[3])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.weights.h5", "2.weights.h5", "3.weights.h5"]


def test_checkpoints_of_whole_models_may_be_h5_files(tmp_path):
    model = line()
    run(model, [1.0], callbacks.ModelCheckpoint(tmp_path / "model.h5"))
    loaded = saving.load_model(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])


def test_csv_logger(tmp_path):
    path = tmp_path / "log.csv"
    model = line()
    first = model.fit(X, Y, epochs=2, verbose=0, callbacks=[callbacks.CSVLogger(path)])
    model.fit(X, Y, epochs=3, initial_epoch=2, verbose=0, callbacks=[callbacks.CSVLogger(path, append=True)])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]
    assert [float(row["loss"]) for row in rows[:2]] == first.history["loss"]


def test_terminate_on_nan(capsys):
    model = line()
    bad = X.copy()
    bad[6] = np.nan
    model.fit(bad, Y, batch_size=6, shuffle=False, epochs=3, verbose=0, callbacks=[callbacks.TerminateOnNaN()])
    assert int(model.optimizer.iterations) == 2
    assert "Invalid loss" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="loss"):
        line().fit(bad, Y, verbose=0, callbacks=[callbacks.TerminateOnNaN(raise_error=True)])


def test_progress_is_plain_lines_where_there_is_no_terminal(capsys):
    line().fit(X, Y, batch_size=4, epochs=2, validation_split=0.25, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Epoch 1/2"
    assert lines[1].startswith("3/3 - ")
    assert "loss: " in lines[1]
    assert "val_loss: " in lines[1]
    assert len(lines) == 4


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    history = line().fit(
        X, Y, epochs=2, validation_split=0.25, verbose=0, callbacks=[callbacks.TensorBoard(tmp_path, histogram_freq=1)]
    )
    for folder, name in ("train", "loss"), ("validation", "val_loss"):
        (path,) = (tmp_path / folder).iterdir()
        found = {
            event.step: value
            for event in EventFileLoader(str(path)).Load()
            for value in event.summary.value
            if value.tag == "epoch_loss"
        }
        assert sorted(found) == [0, 1]
        assert found[1].tensor.float_val[0] == pytest.approx(history.history[name][1], rel=1e-5)
    with pytest.raises(ValueError, match="profile_batch"):
        callbacks.TensorBoard(tmp_path, profile_batch=2)


def test_wrong_callbacks():
    with pytest.raises(TypeError, match="Callback"):
        line().fit(X, Y, verbose=0, callbacks=["early"])
    with pytest.raises(TypeError, match="on_nothing"):
        callbacks.LambdaCallback(on_nothing=print)


def test_csv_logger_goes_on_behind_a_row_without_an_end(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss\n0,1.0")
    history = line().fit(X, Y, verbose=0, callbacks=[callbacks.CSVLogger(path, append=True)]).history
    assert path.read_text().splitlines() == ["epoch,loss", "0,1.0", f"0,{history['loss'][0]}"]


def test_csv_logger_says_which_results_have_no_column(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss\n0,1.0\n")
    model = line()
    model.compile("sgd", "mse", metrics=["mae"])
    with pytest.warns(UserWarning, match=r"log.csv: expected a column for 'mae', got loss: it is not written") as told:
        model.fit(X, Y, epochs=3, initial_epoch=1, verbose=0, callbacks=[callbacks.CSVLogger(path, append=True)])
    assert len(told) == 1
    assert len(path.read_text().splitlines()) == 4


def test_predictions_of_several_batches_reach_the_callback_whole():
    seen = []

    class Look(callbacks.Callback):
        def on_predict_batch_end(self, batch, logs=None):
            seen.append(logs["outputs"])

    inputs = layers.Input((1,))
    model = models.Model(inputs, layers.Dense(2)(inputs))
    model.compile("sgd", "mse", steps_per_execution=3)
    x = np.arange(23, dtype="float32")[:, None]
    for data, size in (x, 2), ((x[i : i + 2] for i in range(0, 23, 2)), None):
        seen.clear()
        whole = model.predict(data, batch_size=size, verbose=0, callbacks=[Look()])
        assert [len(part) for part in seen] == [6, 6, 6, 5]
        np.testing.assert_array_equal(np.concatenate(seen), whole)
