"""Ranks of a mesh that have one copy of weights and slots, in parts: each trains alone first, then with the others.

host_weights MESH PART ...
"""

import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import callbacks, config, constraints, distribution, layers, optimizers, replica, utils
from pydtconv.distribution.gradients import host_state
from pydtconv.distribution.gradients.shared_memory import NotSharedError
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.simulation.meshes import peak_bytes
from tests.distribution.spatial import mesh_of

SAMPLES, BATCH = 5, 2  # the last batch has one sample


def network(dtype="float64", **options):
    utils.set_random_seed(3)
    inputs = keras.Input((8, 6, 2))
    x = layers.Conv2D(4, 3, padding="same", use_bias=False, **options)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Dense(40, activation="relu", dtype=dtype)(layers.Flatten()(x))
    return keras.Model(inputs, layers.Dense(3)(x))


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(SAMPLES, 8, 6, 2)), rng.normal(size=(SAMPLES, 3))


def fitted(model, optimizer, epochs=2, told=()):
    model.compile(optimizer, "mse")
    losses = model.fit(*data(), BATCH, epochs, 0, list(told), shuffle=False).history["loss"]
    return [*model.get_weights(), *(variable.numpy() for variable in optimizer.variables), np.array(losses)]


def is_shared(model):
    return model._pydt_training.memory.store.shared


def twice(mesh, train):
    """What a training gives alone, and on the mesh."""
    distribution.set_distribution(None)
    one = train()
    distribution.set_distribution(distribution.SpatialParallel(mesh_of(mesh)))
    return one, train()


def check(found, expected, told, **tolerances):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, **{"rtol": 1e-9, "atol": 1e-10} | tolerances, err_msg=told)


def every_optimizer(mesh):
    """Of the package; those that need whole variables have weights of their own in each rank."""
    given = {"clipnorm": 0.1}, {"clipvalue": 0.01, "use_ema": True}, {"gradient_accumulation_steps": 2}
    kinds = [(name, {}) for name in optimizers.__all__ if isinstance(getattr(optimizers, name), type)]
    for name, options in [*kinds, *(("Adam", options) for options in given)]:
        if name in ("Optimizer", "LossScaleOptimizer"):
            continue
        models = []

        def train(name=name, options=options, models=models):
            models.append(network())
            return fitted(models[-1], getattr(optimizers, name)(0.01, **options), 1)

        one, several = twice(mesh, train)
        check(several, one, f"{name} {options}", rtol=1e-6)
        assert is_shared(models[-1]) == models[-1].optimizer.works_in_rows, name
        assert not is_shared(models[0])


def what_is_assigned(mesh):
    """By callbacks, to weights and slots, on all ranks; whoever writes past `assign` is refused."""

    def train():
        model, optimizer = network(), optimizers.Adam(0.01)

        def halve(epoch, logs):
            for variable in (model.trainable_variables[0], optimizer.variables[-1]):
                variable.assign(variable.numpy() / 2)
            if is_shared(model):
                with pytest.raises(ValueError, match="read-only"):
                    model.trainable_variables[1].value[...] = 0

        return fitted(model, optimizer, 3, [callbacks.LambdaCallback(on_epoch_end=halve)])

    check(*reversed(twice(mesh, train)), "assigned")


def what_one_rank_loads(mesh):
    """Rank 0's weights are those of all, when fit begins."""

    def train():
        model, optimizer = network(), optimizers.SGD(0.01, momentum=0.9)
        fitted(model, optimizer, 1)
        if replica.current().is_main or replica.current().size == 1:
            model.set_weights([weight / 2 for weight in model.get_weights()])
        model.fit(*data(), BATCH, verbose=0, shuffle=False)
        return model.get_weights()

    check(*reversed(twice(mesh, train)), "loaded")


def other_forms(mesh):
    """Variables of two dtypes, gradients by rows, constraints, steps with and without gradients in one place."""
    Graph.thresholds = Thresholds(applied_gradients=0, gradient_rows=1 << 10)
    one, several = twice(mesh, lambda: fitted(network("float32"), optimizers.Adam(0.01)))
    check(several, one, "two dtypes", rtol=1e-3, atol=1e-5)
    Graph.thresholds = Thresholds(applied_gradients=0)
    constrained = {"kernel_constraint": constraints.MaxNorm(0.5)}
    check(*reversed(twice(mesh, lambda: fitted(network(**constrained), optimizers.Adam(0.01)))), "constrained")

    def train():
        model, optimizer = network(), optimizers.Adam(0.01)
        found = fitted(model, optimizer)
        for keeps in (True, False):
            model._pydt_training.memory.keeps_gradients = keeps
            found += model.fit(*data(), BATCH, verbose=0, shuffle=False).history["loss"]
            assert is_shared(model) == (not keeps and replica.current().size > 1)
        return [*found[:-2], np.array(found[-2:]), *model.get_weights()]

    check(*reversed(twice(mesh, train)), "kept gradients")


class Failing:
    """A hook that raises in the middle of backward, once."""

    def __init__(self):
        self.at = None

    def before(self, index, step):
        if index == self.at:
            self.at = None
            raise ArithmeticError("in backward")

    def after(self, index, step):
        pass

    def gradient_ready(self, part):
        pass


def after_an_error(mesh):
    """Some weights have taken the step, the others not, in all ranks alike; training goes on."""
    distribution.set_distribution(distribution.SpatialParallel(mesh_of(mesh)))
    model, hook = network(), Failing()
    model.compile(optimizers.Adam(0.01), "mse")
    model.fit(*data(), BATCH, verbose=0, shuffle=False)
    training = model._pydt_training
    training.memory.hooks.append(hook)
    hook.at = len(training.plan.steps) - 2
    before = model.get_weights()
    with pytest.raises(ArithmeticError):
        model.fit(*data(), BATCH, verbose=0, shuffle=False)
    assert any((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))
    model.fit(*data(), BATCH, verbose=0, shuffle=False)
    assert is_shared(model)
    for weights in replica.current().collected(model.get_weights(), "the weights"):
        check(weights, model.get_weights(), "after an error", rtol=0, atol=0)


def no_room(mesh):
    """Each rank has weights of its own where they cannot be shared, and rank 0 says so."""

    def fails(*arguments):
        raise NotSharedError("/dev/shm on rank 0: none")

    real, host_state.shared_rows = host_state.shared_rows, fails
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        one, several = twice(mesh, lambda: fitted(network(), optimizers.Adam(0.01)))
    host_state.shared_rows = real
    check(several, one, "no room")
    said = [str(each.message) for each in told if "weights of its own" in str(each.message)]
    assert len(said) == replica.current().is_main


def predicted(mesh):
    """The plan of a rank says what `simulate` says of it."""
    distribution.set_distribution(None)
    model = network()
    model.compile(optimizers.Adam(0.01), "mse")
    axes = dict(zip(mesh_of(mesh).axis_names, mesh_of(mesh).shape, strict=True))
    simulated = peak_bytes(model, axes, BATCH, one_host=True)
    distribution.set_distribution(distribution.SpatialParallel(mesh_of(mesh)))
    plan = model.plan(BATCH // axes.get("batch", 1))
    assert plan.sharers == replica.current().size
    assert max(replica.current().collected(plan.peak_bytes, "the plans")) == simulated


def main(mesh, *parts):
    config.set_floatx("float64")
    Graph.thresholds = Thresholds(applied_gradients=0)
    distribution.initialize()
    for part in parts:
        globals()[part](mesh)
    print(f"rank {replica.current().rank}: {', '.join(parts)}: equal", flush=True)
