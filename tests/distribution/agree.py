"""What differs on rank 1, and what rank 1 alone asks for: agree FOLDER.  Each rank writes what it found, by case."""

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np

import pydtconv as keras
from pydtconv import callbacks, config, distribution, layers, losses, metrics, profiling, replica, utils
from pydtconv.distribution.data_parallel.agreement import DisagreementError
from pydtconv.distribution.mpi.communicator import Communicator


class Batches(utils.PyDataset):
    def __init__(self, x, y, length=4):
        super().__init__()
        self.x, self.y, self.length = x, y, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        part = slice(index * 8, index * 8 + 8)
        return self.x[part], self.y[part]


def model_of(loss=None, metrics=("accuracy",), **options):
    model = keras.Sequential([keras.Input((4,)), layers.Dense(6, activation="relu", **options), layers.Dense(3)])
    model.compile("sgd", loss or losses.SparseCategoricalCrossentropy(from_logits=True), metrics=list(metrics))
    return model


def split(patches):
    model = model_of()
    model.compile("sgd", model.loss, split=patches)
    return model


def trace():
    return f"{sys.argv[1]}/trace.json"


def arrays(seed=0, samples=32):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(samples, 4)).astype("float32"), rng.integers(0, 3, samples)


def fit(model=None, data=None, epochs=1, **options):
    x, y = data or arrays()
    return (model or model_of()).fit(x, y, batch_size=8, epochs=epochs, verbose=0, **options)


def custom_loss(y_true, y_pred):
    return losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)


def other_loss(y_true, y_pred):
    return losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)


def large(seed):
    """Data of which only a sample is compared."""
    x, y = arrays(samples=1 << 17)
    x[::7] += seed
    return x, y


# what each rank does, by whether it is the one that differs
DIFFER = {
    "values": lambda other: fit(data=arrays(int(other))),
    "large": lambda other: fit(data=large(int(other))),
    "labels": lambda other: fit(data=(arrays()[0], arrays(int(other))[1])),
    "length": lambda other: fit(data=arrays(samples=24 if other else 32)),
    "dtype": lambda other: fit(data=(arrays()[0].astype("float64" if other else "float32"), arrays()[1])),
    "weights": lambda other: fit(sample_weight=np.full(32, 1.0 + other)),
    "validation": lambda other: fit(validation_data=arrays(3 + other)),
    "evaluate": lambda other: model_of().evaluate(*arrays(int(other)), verbose=0),
    "predict": lambda other: model_of().predict(arrays(int(other))[0], verbose=0),
    "dataset": lambda other: model_of().fit(Batches(*arrays(int(other))), verbose=0),
    "batches": lambda other: model_of().fit(Batches(*arrays(), length=4 - other), verbose=0),
    "generator": lambda other: model_of().fit(iter([arrays(int(other))] * 2), verbose=0),
    "metrics": lambda other: fit(model_of(metrics=["mse"] if other else ["mae"])),
    "fewer metrics": lambda other: fit(model_of(metrics=[] if other else ["accuracy"])),
    "top k": lambda other: fit(model_of(metrics=[metrics.SparseTopKCategoricalAccuracy(1 + other)])),
    "loss": lambda other: fit(model_of(losses.SparseCategoricalCrossentropy(from_logits=not other))),
    "loss function": lambda other: fit(model_of(other_loss if other else custom_loss)),
    "regularizer": lambda other: fit(model_of(kernel_regularizer=keras.regularizers.L2(0.5 if other else 0.25))),
    "epochs": lambda other: fit(epochs=3 if other else 2),
    "frequency": lambda other: fit(validation_data=arrays(), validation_freq=1 + other),
    "callback": lambda other: fit(callbacks=[callbacks.EarlyStopping("loss", patience=3 + other)]),
    "other validation": lambda other: fit(validation_data=arrays() if other else None),
    "other data": lambda other: model_of().fit(iter([arrays()] * 4), verbose=0) if other else fit(),
    "other call": lambda other: model_of().train_on_batch(*arrays()) if other else fit(),
    "split": lambda other: fit(split("0.5:2x2" if other else None)),
    "profiler": lambda other: fit(callbacks=[profiling.Profiler(steps=2 + other, path=trace())]),
    "profiler of one": lambda other: fit(callbacks=[profiling.Profiler(steps=2)] if other else [], trace=trace()),
    "one callback": lambda other: fit(callbacks=[callbacks.TerminateOnNaN()] if other else []),
}


#: what one rank alone is refused
REFUSED = {
    "input": lambda other: fit(data=(np.zeros((32, 5 if other else 4), "float32"), arrays()[1])),
    "class": lambda other: fit(data=(arrays()[0], arrays()[1] + (7 if other else 0))),
}


class Stops(callbacks.Callback):
    """Counts, and asks for the end on rank 1 by itself."""

    def __init__(self, here, kind, number):
        super().__init__()
        self.here, self.kind, self.number, self.count = here, kind, number, 0

    def _seen(self, kind, number, name):
        self.count += kind == self.kind
        if self.here and (kind, number) == (self.kind, self.number):
            setattr(self.model, name, True)

    def on_train_batch_end(self, batch, logs=None):
        self._seen("train", batch, "stop_training")

    def on_epoch_end(self, epoch, logs=None):
        self._seen("epoch", epoch, "stop_training")

    def on_test_batch_end(self, batch, logs=None):
        self._seen("test", batch, "stop_evaluating")

    def on_predict_batch_end(self, batch, logs=None):
        self._seen("predict", batch, "stop_predicting")


def stopped_early(here, moment):
    """What is done where a callback asks for the end before the first batch."""
    model, (x, y) = model_of(), arrays()
    name = {"train": "stop_training", "epoch": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}
    asks = {f"on_{moment}_begin": lambda *arguments, **named: here and setattr(model, name[moment], True)}
    listener = callbacks.LambdaCallback(**asks)
    if moment in ("train", "epoch"):
        history = fit(model, epochs=3, callbacks=[listener])
        return [len(history.epoch), int(model.optimizer.iterations.numpy())]
    if moment == "test":
        model.evaluate(x, y, batch_size=8, verbose=0, callbacks=[listener])
        return [model.stop_evaluating]
    return [len(model.predict(x, batch_size=8, verbose=0, callbacks=[listener]))]


def stopped(here, kind, number, folder):
    listener = Stops(here, kind, number)
    x, y = arrays()
    model = model_of()
    if kind in ("train", "epoch"):
        backup = callbacks.BackupAndRestore(folder, delete_checkpoint=False)
        fit(model, epochs=4, callbacks=[listener, backup])
        first = listener.count
        fit(model, epochs=4, callbacks=[listener, backup])  # which has come to its end
        return [first, listener.count]
    if kind == "test":
        model.evaluate(x, y, batch_size=8, verbose=0, callbacks=[listener])
        return [listener.count]
    predictions = model.predict(x, batch_size=8, verbose=0, callbacks=[listener])
    return [listener.count, len(predictions)]


def saved_again(here, path):
    """The bias that each rank reads of a file that rank 0 has written by itself before."""
    model = model_of()
    zeros, ones = ([np.full_like(weight, value) for weight in model.get_weights()] for value in (0, 1))
    model.set_weights(zeros)
    if here.is_main:
        model.save_weights(path)
    here.meet("the first file")
    model.set_weights(ones)
    if here.is_main:
        time.sleep(0.5)  # the others are there first
    model.save_weights(path, overwrite=True)
    model.set_weights(zeros)
    model.load_weights(path)
    return model.get_weights()[1].tolist()


def loaded_by_rank_0(here, path):
    """Weights and steps of an optimizer after a fit, before which rank 0 alone has loaded another training's."""

    def adam():
        model = model_of()
        model.compile("adam", "mse")
        return model

    model, (x, _) = adam(), arrays()
    fit(model, (x, x[:, :3]))
    if here.is_main:
        model.save_weights(path)
    model = adam()
    if here.is_main:
        model.load_weights(path)
    fit(model, (x, x[:, :3]), shuffle=False)
    return [weight.tolist() for weight in model.get_weights()], int(model.optimizer.iterations)


def scopes():
    """How many communicators and threads it takes to enter scopes again."""
    made, init = [], Communicator.__init__

    def count(self, *arguments):
        made.append(self)
        init(self, *arguments)

    model, counts = model_of(), []
    Communicator.__init__ = count
    for _ in range(3):
        with distribution.DataParallel(wire="bfloat16").scope():
            fit(model)
        counts.append([len(made), threading.active_count()])
    Communicator.__init__ = init
    return [b - a for a, b in zip(counts[0], counts[-1], strict=True)]


def main(folder):
    distribution.set_distribution(distribution.DataParallel())
    here = replica.current()
    found = {}
    for case, act in DIFFER.items():
        utils.set_random_seed(1)
        try:
            act(here.rank == 1)
            found[case] = ""
        except DisagreementError as error:
            found[case] = str(error)
    for case, act in REFUSED.items():
        try:
            act(here.rank == 1)
        except (ValueError, RuntimeError) as error:
            found[f"refused {case}"] = str(error)
    config.set_epsilon(1e-6 if here.rank == 1 else 1e-7)
    try:
        fit()
    except DisagreementError as error:
        found["config"] = str(error)
    config.set_epsilon(1e-7)
    for kind, number in (("train", 1), ("epoch", 1), ("test", 1), ("predict", 2)):
        found[f"stop {kind}"] = stopped(here.rank == 1, kind, number, f"{folder}/saved-{kind}")
    for moment in ("train", "epoch", "test", "predict"):
        found[f"stop before {moment}"] = stopped_early(here.rank == 1, moment)
    found["saved again"] = saved_again(here, f"{folder}/saved.weights.h5")
    found["loaded by rank 0"] = loaded_by_rank_0(here, f"{folder}/adam.weights.h5")
    found["scopes"] = scopes()
    fit(callbacks=[callbacks.History()] if here.rank else [callbacks.CSVLogger(f"{folder}/log.csv")])
    Path(folder, f"{here.rank}.json").write_text(json.dumps(found))
