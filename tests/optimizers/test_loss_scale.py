"""Steps of `LossScaleOptimizer`, and variables that gradients overwrite, beside Keras."""

import copy
import gc
import pickle

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops, optimizers
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
#: what is not finite, by step; two steps that double the scale lie between
BROKEN = {2: np.inf, 3: np.nan, 8: -np.inf}
KINDS = [name for name in optimizers.__all__ if isinstance(cls := getattr(optimizers, name), type)]
# ScheduleFreeAdamW: Keras on torch reads a momentum after it has changed in place; Keras has no LARS
KINDS = [name for name in KINDS if name not in ("Optimizer", "LossScaleOptimizer", "ScheduleFreeAdamW", "Lars")]
INNER = {
    **{name: lambda k, name=name: getattr(k.optimizers, name)(0.125) for name in KINDS},
    "momentum": lambda k: k.optimizers.SGD(0.125, momentum=0.5, weight_decay=0.25),
    "accumulation": lambda k: k.optimizers.Adam(0.125, gradient_accumulation_steps=2),
    "global_clipnorm": lambda k: k.optimizers.Adam(0.125, global_clipnorm=0.5),
}


def numbers(values):
    return [np.array(value.detach() if hasattr(value, "detach") else value) for value in values]


def compare(ours, theirs):
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own.numpy(), numbers([other.value])[0], rtol=1e-6, atol=1e-8)


def variables(k, overwritten=()):
    rng = np.random.default_rng(0)
    found = [k.Variable(rng.normal(size=shape), dtype="float64") for shape in ((3, 4), (5,))]
    for index in overwritten:
        found[index].overwrite_with_gradient = True
    return found


def gradients(step):
    rng = np.random.default_rng(step + 1)
    return [64 * rng.normal(size=shape) for shape in ((3, 4), (5,))]


@pytest.mark.parametrize("name", INNER)
def test_steps_are_keras_steps(name):
    keras = import_keras()
    ours, theirs = variables(pydtconv), variables(keras)
    optimizer, other = (
        k.optimizers.LossScaleOptimizer(INNER[name](k), initial_scale=64.0, dynamic_growth_steps=2)
        for k in (pydtconv, keras)
    )
    for step in range(10):
        found = gradients(step)
        found[1][2] = BROKEN.get(step, found[1][2])
        optimizer.apply(found, ours)
        other.apply([keras.ops.convert_to_tensor(each) for each in found], theirs)
        compare(ours, theirs)
        if name not in ("Adafactor", "Nadam"):  # Keras forgets variables that these make as attributes
            compare(optimizer.variables, other.variables)
        assert float(optimizer.scale_loss(1.0)) == float(other.scale_loss(1.0))
    assert int(optimizer.iterations) == int(other.iterations)
    assert optimizer.inner_optimizer.loss_scale_factor is None


@pytest.mark.parametrize("way", ["fit", "train_step", "eager"])
def test_fit_leaves_out_batches_whose_gradients_are_not_finite(way):
    """One batch is infinite; Keras on the other side trains without a plan."""
    keras = import_keras()
    x = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")
    y = x[:, :2] ** 2
    x[4] = np.inf
    start, found = None, []
    for k in pydtconv, keras:
        inputs = k.Input((3,))
        model = k.Model(inputs, k.layers.Dense(2)(k.layers.Dense(4, activation="relu")(inputs)))
        if k is pydtconv and way == "train_step":

            class Own(pydtconv.Model):
                def train_step(self, data):
                    return super().train_step(data)

            model = Own(inputs, model.outputs)
        start = start or model.get_weights()
        model.set_weights(start)
        optimizer = k.optimizers.LossScaleOptimizer(k.optimizers.Adam(0.0625), 64.0, 2)
        model.compile(optimizer, "mse", run_eagerly=k is pydtconv and way == "eager")
        model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
        found.append((model.get_weights(), numbers(v.value for v in optimizer.variables)))
    for own, other in zip(found[0], found[1], strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_loop_of_ones_own_reads_the_scale_of_each_step():
    layer = layers.Dense(1, use_bias=False, kernel_initializer="ones")
    layer.build((None, 2))
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.5), 8.0, 1)
    seen = []

    @pydtconv.function
    def step(x):
        with pydtconv.GradientTape() as tape:
            loss = optimizer.scale_loss(ops.sum(layer(x)))
        optimizer.apply(tape.gradient(loss, layer.trainable_weights), layer.trainable_weights)
        return loss

    for _ in range(3):
        seen.append(float(step(np.ones((1, 2), "float32"))))
    assert seen == [16.0, 16.0, 0.0]  # 8 * 2, 16 * 1, 32 * 0
    np.testing.assert_array_equal(layer.get_weights()[0], [[-0.5], [-0.5]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaled", [False, True])
def test_variables_are_overwritten_with_their_gradients_as_in_keras(kind, scaled):
    keras = import_keras()
    ours, theirs = variables(pydtconv, [0]), variables(keras, [0])
    options = {"gradient_accumulation_steps": 2 if kind < "G" else None, "global_clipnorm": 0.5, "weight_decay": 0.5}
    options |= {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}
    found = []
    for k in pydtconv, keras:
        inner = getattr(k.optimizers, kind)(0.125, **options)
        found.append(k.optimizers.LossScaleOptimizer(inner, 64.0) if scaled else inner)
    for step in range(5):
        found[0].apply(gradients(step), ours)
        found[1].apply([keras.ops.convert_to_tensor(each) for each in gradients(step)], theirs)
        compare(ours, theirs)
    found[0].finalize_variable_values(ours)
    found[1].finalize_variable_values(theirs)
    compare(ours, theirs)


def test_what_is_to_be_overwritten_is_known_of_copies_and_forgotten_with_the_variable():
    layer = layers.Layer()
    weight = layer.add_weight((2,), overwrite_with_gradient=True)
    optimizer = optimizers.SGD(0.5)
    assert weight.overwrite_with_gradient
    assert not optimizer.works_in_parts
    for again in copy.deepcopy(weight), pickle.loads(pickle.dumps(weight)):
        assert again.overwrite_with_gradient
        again.overwrite_with_gradient = False
        assert not copy.copy(again).overwrite_with_gradient
    weight.overwrite_with_gradient = False
    gc.collect()  # of failed tests
    assert not Variable.overwritten
    assert optimizer.works_in_parts


def test_gradients_of_others_that_are_not_finite_leave_out_a_step():
    """Where each process has a part of the gradients."""
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.1), 8.0)
    store = ParameterStore(variables(pydtconv))
    store.gradients.fill(2.0)
    part = slice(0, store.slice_of(store.variables[0]).stop)
    assert not optimizer.admits(store, [part], lambda own: own + 1)
    assert float(optimizer.dynamic_scale) == 4.0
    assert (store.gradients == 2.0).all()
    assert optimizer.admits(store, [part], lambda own: own)
    assert (store.gradients[part] == 0.5).all()
    assert (store.gradients[part.stop :] == 2.0).all()


def test_a_device_needs_kernels_of_the_inner_optimizer():
    class Own(optimizers.SGD):
        def update(self, w, dw, slots, learning_rate, weight_decay):
            w -= learning_rate * dw

    optimizers.LossScaleOptimizer(optimizers.SGD(0.5)).check_device("gpu")
    optimizer = optimizers.LossScaleOptimizer(Own(0.5))
    with pytest.raises(NotImplementedError, match="Own: expected an optimizer with kernels for device gpu"):
        optimizer.check_device("gpu")
    assert not optimizer.works_in_parts
    assert not optimizer.works_in_rows


def test_a_scale_that_cannot_be_is_said():
    for scale in 0, -1.0, np.inf, "large":
        with pytest.raises(ValueError, match="LossScaleOptimizer: initial_scale: expected a"):
            optimizers.LossScaleOptimizer(optimizers.SGD(0.5), scale)
    weight, optimizer = Variable(np.ones(2)), optimizers.LossScaleOptimizer(optimizers.SGD(0.5), 2.0**-148)
    broken = [np.full(2, np.inf, "float32")]
    optimizer.apply(broken, [weight])
    optimizer.apply(broken, [weight])
    with pytest.raises(FloatingPointError, match="no gradients were finite until the scale had become 0"):
        optimizer.apply(broken, [weight])
    np.testing.assert_array_equal(weight.value, 1)
