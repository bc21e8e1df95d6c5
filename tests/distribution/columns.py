"""Trains networks with dense layers whose columns ranks share; on the mesh "alone" in one process.

Files in FOLDER have what came out of each training, of each rank.
"""

import copy
import itertools
import os
import signal

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import callbacks, config, distribution, layers, losses, optimizers, regularizers, replica, utils
from tests.distribution import accumulated

SAMPLES, BATCH, EPOCHS = 10, 3, 1  # the last batch has one sample: other ranks along "batch" have none
ACTIVATIONS = ("linear", "relu", "gelu", "tanh", "softmax")
#: that work element by element
NAMES = [name for name in accumulated.NAMES if not getattr(optimizers, name)().goes_by_variable]
OPTIONS = {name: given for name, given in accumulated.OPTIONS.items() if name != "plain"} | {
    "accumulated": {"gradient_accumulation_steps": 2},
    "accumulated, averaged": {"gradient_accumulation_steps": 3, "use_ema": True, "clipnorm": 0.02},
}


def network(activation="relu", use_bias=True, kind=keras.Model, dtype=None, **given):
    """Images, then dense layers: two with columns, of which one has a normalization behind it, and one without."""
    utils.set_random_seed(7)
    inputs = keras.Input((9, 6, 2))
    x = layers.Conv2D(4, 3, activation="tanh", dtype=dtype)(inputs)
    x = layers.Dense(12, activation, use_bias, name="fc1", dtype=dtype, **given)(layers.Flatten()(x))
    x = layers.Dropout(0.2)(x)
    x = layers.LayerNormalization()(layers.Dense(24, activation, use_bias, name="fc2", dtype=dtype)(x))
    return kind(inputs, layers.Dense(4, name="fc3", dtype=dtype)(x))


def data():
    rng = np.random.default_rng(1)
    return rng.normal(size=(SAMPLES, 9, 6, 2)), rng.integers(0, 4, SAMPLES)


def results(model, history, x):
    found = {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    found |= {f"slot{i:02}": variable.numpy() for i, variable in enumerate(model.optimizer.variables)}
    found |= {f"history {name}": np.array(values) for name, values in history.history.items()}
    found["evaluated"] = np.array(model.evaluate(x, data()[1], batch_size=BATCH, verbose=0))
    return found | {"predicted": model.predict(x, batch_size=BATCH, verbose=0)}


def trained(optimizer="sgd", epochs=EPOCHS, listeners=(), **given):
    model, (x, y) = network(**given), data()
    model.compile(optimizer, losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(x, y, BATCH, epochs, 0, list(listeners), validation_data=(x, y), shuffle=False)
    return results(model, history, x)


RUNS = {
    f"{name}, {activation}, {bias}": lambda name=name, activation=activation, bias=bias: trained(
        getattr(optimizers, name)(0.01), activation=activation, use_bias=bias
    )
    for name, activation, bias in zip(NAMES, itertools.cycle(ACTIVATIONS), itertools.cycle((True, False)))
} | {
    **{name: lambda given=given: trained(optimizers.Adam(0.01, **given)) for name, given in OPTIONS.items()},
    "LossScaleOptimizer": lambda: trained(optimizers.LossScaleOptimizer(optimizers.Adam(0.01), 4.0, 3)),
    "regularized": lambda: trained(
        kernel_regularizer=regularizers.L1L2(0.01, 0.02), bias_regularizer="l2", activity_regularizer="l2"
    ),
    "orthogonal": lambda: trained(kernel_regularizer=regularizers.OrthogonalRegularizer(0.1)),
}


def mesh_of(text):
    parts = dict(part.split("=") for part in text.split(","))
    return distribution.DeviceMesh([int(extent) for extent in parts.values()], list(parts))


def use(mesh, *columns, **given):
    shared = None if mesh == "alone" else distribution.SpatialParallel(mesh_of(mesh), columns=columns, **given)
    distribution.set_distribution(shared)


def main(folder, names, *meshes):
    """One training after the other, each on the next mesh.  names: of trainings, with ";" between them; "all"."""
    config.set_floatx("float64")
    meshes = itertools.cycle(meshes)
    for name in RUNS if names == "all" else names.split(";"):
        mesh = next(meshes)
        use(mesh, "fc1", "*2", bucket_size=0.002, shared_memory="batch" not in mesh)
        np.savez(f"{folder}/{name} {replica.current().rank if mesh != 'alone' else 'alone'}.npz", **RUNS[name]())


def lives(folder, mesh):
    """Variables with columns are read and assigned, saved, loaded, frozen and made whole again."""
    config.set_floatx("float64")
    use(mesh, "fc1", "*2", bucket_size=0.002)
    found, (x, y), here = {}, data(), replica.current()

    def note(model, state=True):
        found.update((f"{len(found):03}", weight) for weight in model.get_weights())
        found.update((f"{len(found):03}", variable.numpy()) for variable in model.optimizer.variables * state)

    def compiled(model, optimizer, **given):
        model.compile(optimizer, losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(x, y, BATCH, 1, 0, shuffle=False, **given)
        return model

    model = network()
    if here.is_main:  # all begin with what it has
        model.set_weights([np.cos(np.arange(weight.size)).reshape(weight.shape) / 3 for weight in model.get_weights()])
    histograms = callbacks.TensorBoard(f"{folder}/events of {mesh}", histogram_freq=1)  # by the first rank alone
    note(compiled(model, optimizers.Adam(0.01, use_ema=True), callbacks=[histograms]))
    found["called"], found["called layer"] = model(x), model.get_layer("fc2")(np.ones((2, 12)))
    if here.partition is not None:
        sizes = {variable.path: variable.host_array.size for variable in model._pydt_training.memory.store.variables}
        assert sizes == {v.path: v.array.size // (1 if v.cut is None else here.size) for v in model.trainable_variables}
        assert sum(v.cut is not None for v in model.trainable_variables) == 4
    model.save(f"{folder}/{mesh}.keras")
    here.meet("the file")
    model = keras.models.load_model(f"{folder}/{mesh}.keras")
    model.train_on_batch(x, y)
    model.save_weights(f"{folder}/{mesh}.weights.h5")
    here.meet("the file")
    note(model)
    model.set_weights([weight * 1.01 for weight in model.get_weights()])
    found["evaluated"] = np.array(model.evaluate(x, y, verbose=0))
    model.load_weights(f"{folder}/{mesh}.weights.h5")
    model.fit(x, y, BATCH, 1, 0, shuffle=False)
    assert all(v.cut is None or v.cut.whole is None for v in (*model.variables, *model.optimizer.variables))
    for trains in (False, True):
        model.get_layer("fc1").trainable = trains
        note(compiled(model, optimizers.Adagrad(0.1)))
    gradients = [np.ones(variable.shape) for variable in model.trainable_variables]
    model.optimizer.apply(gradients, model.trainable_variables)
    note(model)
    with keras.GradientTape() as tape:
        loss = keras.ops.mean(keras.ops.square(model(x[:2], training=False)))
    model.optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    note(compiled(model, model.optimizer, memory_limit="1MiB"))
    found["copied"] = copy.deepcopy(model).predict(x, verbose=0)
    use(mesh if mesh != "model=2" else "batch=2")  # whole
    note(compiled(model, optimizers.SGD(0.1, momentum=0.9)))
    use(mesh, "fc*")
    note(compiled(model, model.optimizer))
    distribution.set_distribution(None)
    found["predicted"] = model.predict(x, verbose=0)
    np.savez(f"{folder}/lives {mesh} {here.rank}.npz", **found)
    use(mesh, "fc1", "fc2")
    np.savez(f"{folder}/mixed {mesh} {here.rank}.npz", **trained(dtype="mixed_bfloat16"))
    if mesh != "alone":
        use(mesh, "fc*")
        with pytest.raises(NotImplementedError, match="columns: expected the step of fit, got a train_step"):
            compiled(network(kind=accumulated.KerasStep), "sgd")
        use(mesh, "fc1" if here.is_main else "fc2")
        with pytest.raises(RuntimeError, match=r"columns fc1'?.*columns fc2'?"):
            trained()


def resumed(folder, mesh, epochs):
    """Trains from a checkpoint on, if there is one."""
    config.set_floatx("float64")
    use(mesh, "fc1", "fc2")
    listeners = [callbacks.BackupAndRestore(f"{folder}/saved", delete_checkpoint=False)] * (epochs != "all")
    found = trained(optimizers.Adam(0.01), 3 if epochs == "all" else int(epochs), listeners)
    np.savez(f"{folder}/resumed {mesh} {epochs} {replica.current().rank}.npz", **found)


def until(what):
    """Rank 1 dies, or is stopped, in the third step."""
    use("model=2", "fc*")

    def end(step, logs):
        if step == 2 and replica.current().rank == 1:
            os.kill(os.getpid(), signal.SIGKILL if what == "die" else signal.SIGSTOP)

    trained(epochs=9, listeners=[callbacks.LambdaCallback(on_train_batch_begin=end)])
    print("not reached", flush=True)
