"""Trains with shards of the optimizer's state: shards FOLDER, shards FOLDER resume WAY.

FOLDER/WAY.rank.npz has weights and the optimizer's variables of each training; WAY.rank.json errors and memory.
"""

import contextlib
import json
import mmap
import struct
import sys

import numpy as np

import pydtconv as keras
from pydtconv import callbacks, config, constraints, distribution, layers, optimizers, replica, utils
from pydtconv.distribution.gradients.reduction import Reduction
from tests.distribution import accumulated

#: all trainings
WHOLE_WAYS = {"unsharded": {}, "optimizer": {"shard": "optimizer"}}
#: a few of them
WAYS = WHOLE_WAYS | {
    "gradients": {"shard": "gradients"},
    "gradients, sent": {"shard": "gradients", "shared_memory": False},
    "optimizer, blocking": {"shard": "optimizer", "shared_memory": False, "overlap": False},
    "unsharded, bfloat16": {"wire": "bfloat16"},
    "optimizer, bfloat16": {"shard": "optimizer", "wire": "bfloat16"},
}
FEW = ("Adam", "Lamb", "by variable", "clipnorm", "two dtypes", "thawed in fit", "accumulated, averaged")
#: each option of Optimizer, and what goes with it
OPTIONS = {name: given for name, given in accumulated.OPTIONS.items() if name != "plain"} | {
    "initial": {"use_ema": True, "weight_decay": 0.1},
    "accumulated": {"gradient_accumulation_steps": 3},
    "accumulated, averaged": {"gradient_accumulation_steps": 3, "use_ema": True, "loss_scale_factor": 4.0},
}
SAMPLES, BATCH, EPOCHS = 11, 5, 2


def network(kind=keras.Model, **given):
    """Variables that buckets of 2 KiB cut, of two dtypes, one of them constrained where it is given."""
    utils.set_random_seed(7)
    inputs = keras.Input((8, 8, 2))
    x = layers.Conv2D(5, 3, activation="tanh")(inputs)
    x = layers.Dense(33, "tanh", **given)(layers.Flatten()(x))
    return kind(inputs, layers.Dense(3, activation="softmax")(layers.Dropout(0.1)(x)))


def data():
    rng = np.random.default_rng(1)
    return rng.normal(size=(SAMPLES, 8, 8, 2)), rng.integers(0, 3, SAMPLES)


def trained(optimizer, epochs=EPOCHS, **given):
    model = network(given.pop("kind", keras.Model), **given.pop("layer", {}))
    model.compile(optimizer, "sparse_categorical_crossentropy")
    model.fit(*data(), BATCH, epochs, 0, shuffle=False, **given)
    return model


def results(model):
    found = {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    return found | {f"slot{i:02}": variable.numpy() for i, variable in enumerate(model.optimizer.variables)}


class OwnStep(keras.Model):
    def train_step(self, data):
        return super().train_step(data)


class ByVariable(optimizers.Adafactor):
    """Adafactor, with momentum in a variable of its own, and decay."""

    def build(self, variables):
        super().build(variables)
        self.weight_decay = 0.1
        self.momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient, variable, learning_rate):
        momentum = self.momentums[self._get_variable_index(variable)]
        momentum.assign(0.9 * momentum.numpy() + gradient)
        super().update_step(momentum.numpy(), variable, learning_rate)


class Own(optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        super().apply(grads, trainable_variables)


RUNS = (
    {name: lambda name=name: trained(getattr(optimizers, name)(0.01)) for name in accumulated.NAMES}
    | {name: lambda given=given: trained(optimizers.Adam(0.01, **given)) for name, given in OPTIONS.items()}
    | {
        "two dtypes": lambda: trained(optimizers.AdamW(0.01), layer={"dtype": "float32"}),
        "constrained": lambda: trained(optimizers.Adagrad(0.1), layer={"kernel_constraint": constraints.MaxNorm(0.5)}),
        "by variable": lambda: trained(ByVariable(0.01, **OPTIONS["accumulated, averaged"], global_clipnorm=0.02)),
        "accumulated, read": lambda: read(),
        "excluded": lambda: excluded(),
        "thawed": lambda: thawed(),
        "thawed in fit": lambda: trained(optimizers.Adam(0.01), 3, callbacks=[Freezes()]),
        "by variable, thawed": lambda: thawed(optimizers.Muon),
        "by hand": lambda: by_hand(),
        "swapped": lambda: trained(
            optimizers.Adam(0.01, use_ema=True), callbacks=[callbacks.SwapEMAWeights()], validation_data=data()
        ),
        "own apply": lambda: trained(Own(0.01)),
        "own step": lambda: trained(optimizers.SGD(0.01), kind=OwnStep),
        "LossScaleOptimizer": lambda: trained(optimizers.LossScaleOptimizer(optimizers.Adam(0.01), 4.0, 3)),
    }
)


def excluded():
    optimizer = optimizers.AdamW(0.01, weight_decay=0.3)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return trained(optimizer)


def thawed(kind=optimizers.Adam):
    """A layer is frozen, and thaws: variables move to other flat arrays."""
    model = trained(kind(0.01))
    for trains in (False, True):
        model.layers[1].trainable = trains
        model.compile(model.optimizer, "sparse_categorical_crossentropy")
        model.fit(*data(), BATCH, 1, 0, shuffle=False)
    return model


class Freezes(callbacks.Callback):
    """The same within fit."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.layers[1].trainable = epoch > 0


def read():
    """Gradients that wait for an update are read, and so they are between others that nobody reads."""
    model = trained(optimizers.Adam(0.01, gradient_accumulation_steps=5), 1)
    for _ in range(8):
        model.train_on_batch(*data())
    return model


def by_hand():
    model = trained(optimizers.Adam(0.01), 1)
    for _ in range(3):
        model.train_on_batch(*data())
    model.save(f"{sys.argv[1]}/by_hand.keras")
    model = keras.models.load_model(f"{sys.argv[1]}/by_hand.keras")
    model.train_on_batch(*data())
    return model


def resident(array):
    """Bytes of an array that are in memory."""
    page = mmap.PAGESIZE
    first, last = array.ctypes.data // page, -(-(array.ctypes.data + array.nbytes) // page)
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(8 * first)
        flags = struct.unpack(f"{last - first}Q", file.read(8 * (last - first)))
    return page * sum(flag >> 63 for flag in flags)


class Memory(callbacks.History):
    """Notes what the state of this process takes within training, as a part of what it would take whole."""

    part = None
    reads_state = False

    def on_epoch_end(self, epoch, logs=None):
        slots = self.model.optimizer._pydt_slots
        made = [variable.host_array for variable in self.model.optimizer._pydt_added]
        arrays = [*slots.flat.values(), *(array for array in made if array.ndim > 1), slots.store.gradients]
        self.part = sum(map(resident, arrays)) / sum(array.nbytes for array in arrays)


def part_in_memory(optimizer):
    distribution.set_distribution(distribution.DataParallel(bucket_size=0.5, shard="gradients", shared_memory=False))
    inputs = x = keras.Input((16,))
    for _ in range(12):
        x = layers.Dense(512, activation="tanh")(x)
    model = keras.Model(inputs, layers.Dense(2)(x))
    model.compile(optimizer, "mse")
    noted = Memory()
    model.fit(np.ones((12, 16)), np.ones((12, 2)), 4, 1, 0, callbacks=[noted])
    assert model.optimizer.variables[3].numpy().all()
    return noted.part


def broken_off():
    """Backward ends with an error in one step, after rank 0 has updated a bucket that no other has."""
    distribution.set_distribution(distribution.DataParallel(bucket_size=0.002, **WAYS["gradients, sent"]))
    model, optimizer = network(), optimizers.Adam(0.01)
    model.compile(optimizer, "sparse_categorical_crossentropy")
    gradient_ready, rank = Reduction.gradient_ready, replica.current().rank

    def breaks(reduction, part):
        gradient_ready(reduction, part)
        step = replica.current()._steps[reduction.store]
        if int(optimizer.iterations) == 2 and reduction.complete_buckets == 2:
            if rank == 0:
                reduction.communicator.wait(Done(reduction), "the first bucket")
                step._update_next()
            raise KeyError("on purpose")

    Reduction.gradient_ready = breaks
    with contextlib.suppress(KeyError):
        model.fit(*data(), BATCH, EPOCHS, 0, shuffle=False)
    Reduction.gradient_ready = gradient_ready
    model.fit(*data(), BATCH, EPOCHS, 0, shuffle=False)
    return model


class Done:
    def __init__(self, reduction):
        self.reduction = reduction

    def Test(self):
        self.reduction._carry_on()
        return self.reduction.buckets[0].done


def main(folder, *resumes):
    config.set_floatx("float64")
    distribution.initialize()
    if resumes:
        epochs, way = resumes
        distribution.set_distribution(distribution.DataParallel(bucket_size=0.002, **WAYS[way]))
        kept = callbacks.BackupAndRestore(f"{folder}/kept", delete_checkpoint=False)
        model = trained(optimizers.Adam(0.01, use_ema=True), int(epochs), callbacks=[kept])
        np.savez(f"{folder}/resumed{epochs}.{replica.current().rank}.npz", **results(model))
        return
    for way, options in WAYS.items():
        distribution.set_distribution(distribution.DataParallel(bucket_size=0.002, **options))
        rank, told, found = replica.current().rank, {}, {}
        for name in RUNS if way in WHOLE_WAYS else FEW:
            try:
                model = RUNS[name]()
            except NotImplementedError as error:
                told[name] = str(error)
            else:
                found |= {f"{name}: {key}": value for key, value in results(model).items()}
        np.savez(f"{folder}/{way}.{rank}.npz", **found)
        with open(f"{folder}/{way}.{rank}.json", "w") as file:
            json.dump(told, file)
    np.savez(f"{folder}/broken.{rank}.npz", **results(broken_off()))
    with open(f"{folder}/memory.{rank}.json", "w") as file:
        json.dump({name: part_in_memory(name) for name in ("adam", "schedulefreeadamw")}, file)
