"""Old arguments of callbacks, and results under their old names."""

import copy
import pickle

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, layers
from pydtconv.compat.keras2 import callbacks as old
from pydtconv.compat.keras2.logs import PAIRS, Results

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
X, Y = np.random.default_rng(0).random((8, 3)).astype("float32"), np.eye(2)[np.arange(8) % 2]


def made():
    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(2, activation="softmax")])
    model.compile("sgd", "mse", metrics=["accuracy"])
    return model


def test_every_pair_of_names_is_found_both_ways():
    for a, b in PAIRS:
        for asked, there in ((a, b), (b, a), (f"val_{a}", f"val_{b}"), (f"val_out_{a}", f"val_out_{b}")):
            results = Results({there: 3.0})
            assert asked in results
            with pytest.warns(FutureWarning, match=asked) if asked in (a, b) else pytest.warns(FutureWarning):
                assert results[asked] == results.get(asked) == 3.0
            assert dict(results) == {there: 3.0}
            assert list(results) == [there]
    assert type(pickle.loads(pickle.dumps(results))) is type(copy.copy(results)) is dict
    assert Results({}).get("acc", 7) == 7
    with pytest.raises(KeyError):
        Results({})["acc"]


@pytest.fixture(autouse=True)
def forget():
    from pydtconv.compat.keras2 import noticed

    noticed.forget()


def test_callbacks_and_histories_find_old_names(tf, tmp_path):
    seen, of_batches = [], []

    class Own(callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            of_batches.append(logs.get("acc"))

        def on_test_batch_end(self, batch, logs=None):
            of_batches.append(logs.get("acc"))

        def on_epoch_end(self, epoch, logs=None):
            seen.append((logs.get("acc"), logs["val_acc"], len(self.validation_data)))

    checkpoint = callbacks.ModelCheckpoint(f"{tmp_path}/{{epoch}}-{{val_acc:.1f}}.h5", monitor="val_acc", period=2)
    reduce = callbacks.ReduceLROnPlateau(monitor="val_acc", epsilon=0.1, patience=1)
    history = made().fit(X, Y, epochs=4, validation_data=(X, Y), callbacks=[checkpoint, reduce, Own()], verbose=0)
    assert history.history["val_acc"] == history.history["val_accuracy"]
    assert [acc for acc, _, _ in seen] == history.history["acc"]
    assert seen[0][2] == 2
    assert of_batches[::2] == history.history["acc"]
    assert of_batches[1::2] == history.history["val_acc"]
    assert reduce.min_delta == 0.1
    assert sorted(path.name[0] for path in tmp_path.glob("*.h5")) == ["2", "4"]


def test_every_old_argument_is_taken(tf, tmp_path):
    values = {
        "batch_size": 32, "write_grads": True, "embeddings_layer_names": None, "embeddings_data": None,
        "epsilon": 0.1, "count_mode": "steps", "stateful_metrics": None,
    }  # fmt: skip
    for name, rows in old.ROWS.items():
        needed = {"log_dir": str(tmp_path)} if name == "TensorBoard" else {}
        getattr(callbacks, name)(**needed, **{key: values[key] for key in rows})
    with pytest.raises(ValueError, match="period: expected"):
        callbacks.ModelCheckpoint("x.h5", period=0)
    with pytest.raises(TypeError, match="write it by name"):
        callbacks.ModelCheckpoint("x.h5", "loss", 0, False, False, "auto", 5)


def test_files_of_any_name_are_written(tf, tmp_path):
    model = made()
    for name, weights in (("a.hdf5", True), ("b", True), ("c.hdf5", False), ("d.model", False)):
        saver = callbacks.ModelCheckpoint(str(tmp_path / name), save_weights_only=weights)
        model.fit(X, Y, callbacks=[saver], verbose=0)
        if weights:
            other = made()
            other.load_weights(tmp_path / name)
        else:
            other = tf.keras.models.load_model(tmp_path / name)
        np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
