"""Trains with accumulated gradients and writes what came out: accumulated FILE [mesh] [OPTION=VALUE ...].

FILE.rank.npz has weights and the optimizer's variables of each training, FILE.rank.json how often each has summed
gradients over ranks.  mesh: images are cut; OPTION=VALUE: of DataParallel.
"""

import ast
import contextlib
import json
import sys

import numpy as np

import pydtconv as keras
from pydtconv import GradientTape, callbacks, config, distribution, layers, optimizers, replica, utils

BATCH, STEPS, EPOCHS = 5, 4, 3
SAMPLES = 16  # the last batch has one sample: other ranks have none
NAMES = [name for name in optimizers.__all__ if isinstance(getattr(optimizers, name), type)]
NAMES = [name for name in NAMES if issubclass(getattr(optimizers, name), optimizers.Optimizer)]
NAMES = [name for name in NAMES if name not in ("Optimizer", "LossScaleOptimizer")]
OPTIONS = {
    "plain": {},
    "clipnorm": {"clipnorm": 0.01},
    "clipvalue": {"clipvalue": 0.002},
    "global_clipnorm": {"global_clipnorm": 0.02},
    "averaged": {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 5},
    "scaled": {"loss_scale_factor": 10.0},
    "decayed": {"weight_decay": 0.1, "global_clipnorm": 0.02},
}


class Counter:
    """Notes how often gradients were summed over ranks."""

    sums = 0

    def communicated(self, what, start, stop):
        pass

    def waited(self, what, start, stop):
        of_step = "bucket 1 of " in what or what == "the sums of the gradients"
        self.sums += of_step or what == "the sums of the accumulated gradients"


class KerasStep(keras.Model):
    def train_step(self, data):
        return super().train_step(data)


class Tape(keras.Model):
    def train_step(self, data):
        x, y = data
        with GradientTape() as tape:
            loss = self.optimizer.scale_loss(self.compute_loss(x, y, self(x, training=True)))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class Halves(keras.Model):
    """Two steps of optimizers by one tape, each by some of its gradients."""

    def train_step(self, data):
        x, y = data
        with GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        first, *others = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply([first], self.trainable_variables[:1])
        self.other.apply(others, self.trainable_variables[1:])
        return {"loss": loss}


class Clipping(keras.Model):
    """Code reads the gradients of each step."""

    def train_step(self, data):
        x, y = data
        with GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients = [keras.ops.clip(each, -0.002, 0.002) for each in tape.gradient(loss, self.trainable_variables)]
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


WAYS = {"fit": keras.Model, "train_step": KerasStep, "tape": Tape}


def network(kind, **given):
    utils.set_random_seed(7)
    inputs = keras.Input((8, 8, 2))
    x = layers.MaxPooling2D()(layers.Conv2D(3, 3, padding="same", activation="tanh")(inputs))
    return kind(inputs=inputs, outputs=layers.Dense(3, activation="softmax")(layers.Flatten()(x)), **given)


def data():
    rng = np.random.default_rng(1)
    return rng.normal(size=(SAMPLES, 8, 8, 2)), rng.integers(0, 3, SAMPLES)


def trained(kind, optimizer, **options):
    model = network(kind)
    model.compile(optimizer, "sparse_categorical_crossentropy")
    model.fit(*data(), BATCH, verbose=0, **{"epochs": EPOCHS, "shuffle": False} | options)
    return model, optimizer


def of(name, **options):
    return getattr(optimizers, name)(0.01, **{"gradient_accumulation_steps": STEPS} | options)


def halves():
    model = network(Halves)
    model.other = of("SGD", momentum=0.9)
    model.compile(of("Adam"), "sparse_categorical_crossentropy")
    model.fit(*data(), BATCH, EPOCHS, 0)
    return model, model.optimizer, model.other


def by_hand():
    """Whoever trains by batches may read the optimizer between them."""
    model, (x, y) = network(keras.Model), data()
    model.compile(of("Adam"), "sparse_categorical_crossentropy")
    for _ in range(6):
        model.train_on_batch(x, y)
    return model, model.optimizer


def then_by_hand():
    """`fit` ends in the midst of an accumulation, which goes on."""
    model, optimizer = trained(KerasStep, of("Adam", gradient_accumulation_steps=3))
    for _ in range(3):
        model.train_on_batch(*data())
    model.fit(*data(), BATCH, 2, 0)
    return model, optimizer


def frozen():
    """A layer is frozen while its gradients are accumulated, and thaws."""
    optimizer = of("Adam", gradient_accumulation_steps=3)
    model, _ = trained(keras.Model, optimizer, epochs=1)
    for trains in (False, True):
        model.layers[1].trainable = trains
        model.fit(*data(), BATCH, 1, 0, shuffle=False)
    return model, optimizer


class Breaking(utils.PyDataset):
    """Batches, of which one cannot be read in the second epoch."""

    epoch, whole = 0, False

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if (self.epoch, index, self.whole) == (1, 3, False):
            raise OSError("broken")
        return tuple(array[index * BATCH : (index + 1) * BATCH] for array in data())

    def on_epoch_end(self):
        self.epoch += 1


def resumed():
    """Goes on from a checkpoint in the midst of an accumulation."""
    folder = f"{sys.argv[1]}.saved"
    batches = Breaking()
    for _ in range(2):
        model = network(keras.Model)
        model.compile(of("Adam"), "sparse_categorical_crossentropy")
        backup = callbacks.BackupAndRestore(folder, save_freq=3)
        with contextlib.suppress(OSError):
            model.fit(batches, epochs=EPOCHS, verbose=0, callbacks=[backup], shuffle=False)
        batches.whole = True
    return model, model.optimizer


class Reading(callbacks.Callback):
    """A user's own, which may look at the optimizer after each step."""

    def on_train_batch_end(self, batch, logs=None):
        variables = [v.numpy() for v in self.model.optimizer.variables if "accumulator" in v.path]
        seen.append(np.concatenate([v.ravel() for v in variables]))


class Own(optimizers.SGD):
    """Reads the gradients of each step."""

    def apply(self, grads, trainable_variables=None):
        super().apply([grad * 2 for grad in grads], trainable_variables)


seen = []
#: name -> (training, sums of gradients over ranks)
OTHERS = {
    "halves": (halves, 6),
    "clipped_by_hand": (lambda: trained(Clipping, of("Adam")), 12),
    "by_hand": (by_hand, 6),
    "unequal": (lambda: trained(keras.Model, of("Adam", gradient_accumulation_steps=3)), 4 + 2),
    "unequal_tape": (lambda: trained(Tape, of("Adam", gradient_accumulation_steps=3)), 4 + 2),
    "then_by_hand": (then_by_hand, 4 + 2 + 3 + 2 + 2),
    "frozen": (frozen, 4 + 2),
    "resumed": (resumed, 3 + 4),  # updates; checkpoints, and what the broken run has left
    "read": (lambda: trained(keras.Model, of("Adam"), callbacks=[Reading()]), 12),
    "own_apply": (lambda: trained(keras.Model, Own(0.01, gradient_accumulation_steps=4)), 12),
}


def runs(mesh):
    ways = {"fit": keras.Model} if mesh else WAYS
    for way, kind in ways.items():
        for name in NAMES:
            yield f"{way} {name}", lambda kind=kind, name=name: trained(kind, of(name))
        for option, given in OPTIONS.items():
            yield f"{way} {option}", lambda kind=kind, given=given: trained(kind, of("Adam", **given))
    if not mesh:
        yield from ((name, run) for name, (run, _) in OTHERS.items())


def main(file, *options):
    config.set_floatx("float64")
    mesh = "mesh" in options
    if mesh:
        chosen = distribution.SpatialParallel(distribution.DeviceMesh((len(distribution.list_devices()),), ("height",)))
    else:
        given = {name: ast.literal_eval(value) for name, _, value in (option.partition("=") for option in options)}
        chosen = distribution.DataParallel(bucket_size=0.001, **given)
    distribution.set_distribution(chosen)
    found, sums = {}, {}
    for name, run in runs(mesh):
        seen.clear()
        replica.current().observer = counter = Counter()
        model, *own = run()
        variables = [*model.variables, *(variable for optimizer in own for variable in optimizer.variables)]
        found |= {f"{name}/{i}": np.array(variable.value) for i, variable in enumerate(variables)}
        found |= {f"{name}/seen{i}": array for i, array in enumerate(seen)}
        sums[name] = counter.sums
    np.savez(f"{file}.{replica.current().rank}.npz", **found)
    with open(f"{file}.{replica.current().rank}.json", "w") as out:
        json.dump(sums, out)
