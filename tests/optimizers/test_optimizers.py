"""Optimizers: steps against Keras (which rounds some scalars to float32), state, clipping, averaging, saving."""

import copy

import numpy as np
import pytest

import pydtconv
from pydtconv import optimizers
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers.arguments import DEFAULTS
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
SHAPES = [(3, 3, 2, 5), (5,), (37, 4), (1,)]
RATE = 2.0**-5  # exact in float32, in which Keras keeps it
CASES = {
    "sgd": ("SGD", {}),
    "sgd_momentum": ("SGD", {"momentum": 0.9}),
    "sgd_nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "sgd_decay": ("SGD", {"momentum": 0.5, "weight_decay": 0.25}),
    "rmsprop": ("RMSprop", {}),
    "rmsprop_all": ("RMSprop", {"rho": 0.8, "momentum": 0.5, "centered": True}),
    "adam": ("Adam", {}),
    "adam_amsgrad": ("Adam", {"amsgrad": True, "beta_1": 0.8}),
    "adamw": ("AdamW", {"weight_decay": 0.125}),
    "nadam": ("Nadam", {}),
    "adamax": ("Adamax", {}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
    "lion": ("Lion", {}),
    "ftrl": ("Ftrl", {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02, "beta": 0.1}),
    "lamb": ("Lamb", {"weight_decay": 0.125}),
    "adafactor": ("Adafactor", {}),
    "adafactor_all": ("Adafactor", {"clip_threshold": 0.5, "relative_step": False, "beta_2_decay": -0.5}),
    "muon": ("Muon", {"weight_decay": 0.125}),
    "muon_all": ("Muon", {"rms_rate": None, "nesterov": False, "exclude_layers": ["v1"], "ns_steps": 3}),
    "clipnorm": ("Adam", {"clipnorm": 0.5}),
    "clipvalue": ("SGD", {"clipvalue": 0.25, "momentum": 0.9}),
    "global_clipnorm": ("SGD", {"global_clipnorm": 0.75}),
    "accumulation": ("Adam", {"gradient_accumulation_steps": 2}),
    "ema": ("SGD", {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3}),
    "loss_scale": ("Adam", {"loss_scale_factor": 8.0}),
}


def variables(seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    return [Variable(rng.normal(size=shape), dtype=dtype, name=f"v{i}") for i, shape in enumerate(SHAPES)]


def gradients(step, seed=1):
    rng = np.random.default_rng((seed, step))
    return [rng.normal(size=shape) for shape in SHAPES]


def set_gradients(store, ours, step):
    for variable, gradient in zip(ours, gradients(step), strict=True):
        store.gradient_of(variable)[...] = gradient


def run(optimizer, ours, steps, store=None):
    store = store or ParameterStore(ours[::-1])
    for step in steps:
        set_gradients(store, ours, step)
        optimizer.apply(store)
    return store


@pytest.mark.parametrize("name", CASES)
def test_steps_are_keras_steps(name):
    keras = import_keras()
    kind, options = CASES[name]
    ours = variables()
    theirs = [keras.Variable(v.value.copy(), dtype="float64") for v in ours]
    optimizer = getattr(optimizers, kind)(learning_rate=RATE, **options)
    reference = getattr(keras.optimizers, kind)(learning_rate=RATE, **options)
    optimizer.build(ours)
    store = ParameterStore(ours[::-1])
    for step in range(10):
        run(optimizer, ours, [step], store)
        reference.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], theirs)
        for variable, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(variable.value, other.value.detach().numpy(), rtol=1e-6, atol=1e-8)
    optimizer.finalize_variable_values(ours)
    reference.finalize_variable_values(theirs)
    for variable, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(variable.value, other.value.detach().numpy(), rtol=1e-6, atol=1e-8)
    assert int(optimizer.iterations) == int(reference.iterations)
    assert len(optimizer.variables) == len(reference.variables)
    for variable, other in zip(optimizer.variables, reference.variables, strict=True):
        np.testing.assert_allclose(variable.value, other.value.detach().numpy(), rtol=1e-6, atol=1e-8)


def test_state_follows_the_variables_to_another_store():
    whole, moved = variables(), variables()
    optimizer, other = optimizers.Adam(0.01), optimizers.Adam(0.01)
    run(optimizer, whole, range(3))
    run(optimizer, whole, range(3, 6), optimizer._pydt_slots.store)
    run(other, moved, range(3))
    run(other, moved, range(3, 6), ParameterStore(moved))
    for a, b in zip(whole, moved, strict=True):
        np.testing.assert_array_equal(a.value, b.value)


def test_state_of_remaining_variables_is_kept_when_some_are_frozen():
    ours, reference = variables(), variables()
    optimizer, full = optimizers.SGD(0.1, momentum=0.9), optimizers.SGD(0.1, momentum=0.9)
    run(optimizer, ours, range(2))
    run(full, reference, range(4))
    frozen = [variable.numpy() for variable in ours[:2]]
    optimizer.build(ours[2:])
    store = ParameterStore(ours[2:])
    for step in (2, 3):
        for variable, gradient in zip(ours[2:], gradients(step)[2:], strict=True):
            store.gradient_of(variable)[...] = gradient
        optimizer.apply(store)
    for variable, value in zip(ours[:2], frozen, strict=True):
        np.testing.assert_array_equal(variable.value, value)
    for variable, other in zip(ours[2:], reference[2:], strict=True):
        np.testing.assert_array_equal(variable.value, other.value)


def test_another_optimizer_starts_afresh_on_the_same_store():
    ours, fresh = variables(), variables()
    first = optimizers.SGD(0.1, momentum=0.9, name="same")
    store = run(first, ours, range(3))
    start = [variable.numpy() for variable in ours]
    first.release()
    assert not store.slots
    second = optimizers.SGD(0.1, momentum=0.9, name="same")
    run(second, ours, [3], store)
    for variable, value in zip(fresh, start, strict=True):
        variable.assign(value)
    run(optimizers.SGD(0.1, momentum=0.9), fresh, [3])
    for a, b in zip(ours, fresh, strict=True):
        np.testing.assert_array_equal(a.value, b.value)


class _Signs(optimizers.SGD):
    """Keras's way to change gradients: `apply` with lists."""

    def apply(self, grads, trainable_variables=None):
        super().apply([pydtconv.ops.sign(gradient) for gradient in grads], trainable_variables)


@pytest.mark.parametrize("kind", ["fit", "train_step", "eager"])
def test_apply_of_a_subclass_may_take_lists(kind):
    class Own(pydtconv.Model):
        def train_step(self, data):
            return super().train_step(data)

    inputs = pydtconv.Input((3,))
    outputs = pydtconv.layers.Dense(2, use_bias=False)(pydtconv.layers.Dense(4, kernel_initializer="ones")(inputs))
    model = (Own if kind == "train_step" else pydtconv.Model)(inputs, outputs)
    model.compile(_Signs(0.25, momentum=0.5), "mse", run_eagerly=kind == "eager")
    x, y = np.random.default_rng(0).normal(size=(4, 3)), np.full((4, 2), 9.0)
    before = model.get_weights()
    model.fit(x, y, verbose=0)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_allclose(np.abs(new - old), 0.25, rtol=1e-5)
    model.fit(x, y, epochs=2, verbose=0)
    assert int(model.optimizer.iterations) == 3
    if kind == "fit":
        store = model._pydt_steps.memory.store
        model.fit(x, y, verbose=0)
        assert model._pydt_steps.memory.store is store


def test_set_weights_puts_the_state_of_one_into_another():
    for make in (lambda: optimizers.Adam(0.5), lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.5))):
        first, second = make(), make()
        weights = [Variable(np.ones(3)), Variable(np.ones(3))]
        first.apply([np.ones(3, "float32")], weights[:1])
        second.build(weights[1:])
        second.set_weights([variable.numpy() for variable in first.variables])
        for a, b in zip(first.variables, second.variables, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        with pytest.raises(ValueError, match="variables"):
            second.set_weights([np.zeros(3)])


def test_no_gradients_are_no_step():
    optimizer = optimizers.SGD(0.5)
    optimizer.apply([], [])
    assert int(optimizer.iterations) == 0


def test_variables_excluded_from_weight_decay_stay_so_where_it_is_set_later():
    w = [Variable(np.ones(3), name=name) for name in ("kernel", "bias")]
    optimizer = optimizers.SGD(0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer.apply([np.zeros(3, "float32")] * 2, w)
    optimizer.weight_decay = 0.5
    optimizer.apply([np.zeros(3, "float32")] * 2, w)
    np.testing.assert_array_equal([variable.numpy() for variable in w], [[0.75] * 3, [1.0] * 3])


def test_excluded_variables_do_not_decay():
    ours = variables()
    before = [variable.numpy() for variable in ours]
    optimizer = optimizers.AdamW(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[ours[3]], var_names=["v1"])
    store = ParameterStore(ours)
    optimizer.apply(store)
    for variable, value, decays in zip(ours, before, (True, False, True, False), strict=True):
        np.testing.assert_allclose(variable.value, value * (0.75 if decays else 1.0))


def test_saved_state_continues_the_same_run():
    straight, ours = variables(), variables()
    run(optimizers.Nadam(0.01), straight, range(6))
    optimizer = optimizers.Nadam(0.01)
    run(optimizer, ours, range(3))
    saved, weights = {}, [variable.numpy() for variable in ours]
    optimizer.save_own_variables(saved)
    again, restored = variables(), optimizers.Nadam.from_config(optimizer.get_config())
    for variable, value in zip(again, weights, strict=True):
        variable.assign(value)
    restored.build(ours[::-1])
    with pytest.raises(ValueError, match="expected shape"):
        restored.load_own_variables(saved | {"2": np.zeros(7)})
    restored = optimizers.Nadam.from_config(optimizer.get_config())
    restored.build(again[::-1])
    restored.load_own_variables(saved)
    run(restored, again, range(3, 6))
    for a, b in zip(straight, again, strict=True):
        np.testing.assert_array_equal(a.value, b.value)


def test_learning_rate_can_be_read_and_set():
    optimizer = optimizers.Adam(0.25)
    assert float(optimizer.learning_rate) == 0.25
    assert f"{optimizer.learning_rate:.2f}" == "0.25"
    optimizer.learning_rate = 0.5
    assert optimizer.learning_rate.numpy() == 0.5
    optimizer.learning_rate.assign(0.125)
    assert optimizer.get_config()["learning_rate"] == 0.125
    scheduled = optimizers.SGD(optimizers.schedules.ExponentialDecay(1.0, 1, 0.5))
    assert scheduled.learning_rate == 1.0
    with pytest.raises(TypeError, match="ExponentialDecay"):
        scheduled.learning_rate = 0.1
    for rate in "a", None, [0.1, 0.2], np.ones(2):
        with pytest.raises(ValueError, match="learning_rate: expected a number or a schedule, got"):
            optimizer.learning_rate = rate
    optimizer.learning_rate = np.float32(0.5)
    run(scheduled, variables(), range(2))
    assert scheduled.learning_rate == 0.25
    called = optimizers.SGD(lambda: 0.75)
    assert called.learning_rate == 0.75


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_config_round_trip(case):
    kind, options = case
    optimizer = getattr(optimizers, kind)(optimizers.schedules.CosineDecay(0.5, 10), **options)
    again = optimizers.deserialize(optimizers.serialize(optimizer))
    assert type(again) is type(optimizer)
    assert again.get_config() == optimizer.get_config()


def test_names():
    assert isinstance(optimizers.get("adam"), optimizers.Adam)
    assert isinstance(optimizers.get("SGD"), optimizers.SGD)
    assert isinstance(optimizers.get({"class_name": "RMSprop", "config": {"rho": 0.5}}), optimizers.RMSprop)
    with pytest.raises(ValueError, match="adam"):
        optimizers.get("adm")
    with pytest.raises(ValueError, match="optimizer"):
        optimizers.get(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clipnorm": 1.0, "clipvalue": 1.0}, "at most one of clipnorm"),
        ({"gradient_accumulation_steps": 1}, "gradient_accumulation_steps"),
        ({"use_ema": True, "ema_momentum": 2.0}, "ema_momentum"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"momentum": 1.5}, "momentum"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        optimizers.SGD(**options)


def test_unknown_argument_names_the_near_one():
    with pytest.raises(TypeError, match="weight_decay"):
        optimizers.SGD(weight_decy=0.1)


def test_an_update_step_beside_a_flat_update_is_refused():
    class Old(optimizers.Adam):
        def update_step(self, gradient, variable, learning_rate):
            pass

    with pytest.raises(NotImplementedError, match="inherits an update on flat arrays, which it does not call"):
        Old(0.1)


def test_own_optimizer():
    class Sign(optimizers.Optimizer):
        slot_names = ("count",)

        def update(self, w, dw, slots, learning_rate, weight_decay):
            slots["count"] += 1
            w -= learning_rate * np.sign(dw)

    ours = variables()
    before = [variable.numpy() for variable in ours]
    optimizer = Sign(0.5)
    run(optimizer, ours, [0])
    for variable, value, gradient in zip(ours, before, gradients(0), strict=True):
        np.testing.assert_allclose(variable.value, value - 0.5 * np.sign(gradient))
    assert optimizer.variables[-1].value.min() == 1


def test_constraints_are_applied_after_a_step():
    ours = variables()
    ours[0].constraint = lambda value: np.clip(value, 0, 0.1)
    run(optimizers.SGD(0.1), ours, [0])
    assert ours[0].value.min() >= 0
    assert ours[0].value.max() <= 0.1
    assert ours[2].value.min() < 0


def written_by_variable(of):
    class Momentum(of.optimizers.Optimizer):
        """Keras's way: variables made in build, an update for each variable, in functions of ops."""

        def __init__(self, learning_rate=0.01, beta=0.9, name="momentum", **kwargs):
            super().__init__(learning_rate=learning_rate, name=name, **kwargs)
            self.beta = beta

        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            self.means = self.add_optimizer_variables(variables, "mean")
            self.norms = [self.add_variable(shape=(), dtype=v.dtype, name="norm") for v in variables]

        def update_step(self, gradient, variable, learning_rate):
            ops, index = of.ops, self._get_variable_index(variable)
            rate, mean = ops.cast(learning_rate, variable.dtype), self.means[index]
            gradient = ops.cast(gradient, variable.dtype)
            step = ops.cast(self.iterations + 1, variable.dtype)
            self.assign(mean, ops.add(ops.multiply(mean, self.beta), ops.multiply(gradient, 1 - self.beta)))
            self.norms[index].assign_add(ops.sqrt(ops.sum(ops.square(gradient))))
            hat = ops.divide(mean, 1 - ops.power(ops.cast(self.beta, variable.dtype), step))
            self.assign_sub(variable, ops.multiply(rate, ops.sign(hat)) * self.norms[index])

        def get_config(self):
            return {**super().get_config(), "beta": self.beta}

    return Momentum


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.125, "clipnorm": 0.5},
        {"use_ema": True, "ema_momentum": 0.5},
        {"gradient_accumulation_steps": 2},
    ],
)
def test_an_optimizer_of_ones_own_by_variable_steps_as_in_keras(options):
    keras = import_keras()
    ours = variables()
    theirs = [keras.Variable(v.value.copy(), dtype="float64") for v in ours]
    optimizer = written_by_variable(pydtconv)(RATE, **options)
    reference = written_by_variable(keras)(RATE, **options)
    optimizer.build(ours)
    store = ParameterStore(ours[::-1])
    for step in range(4):
        run(optimizer, ours, [step], store)
        reference.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], theirs)
    assert len(optimizer.variables) == len(reference.variables)
    pairs = [*zip(ours, theirs, strict=True), *zip(optimizer.variables, reference.variables, strict=True)]
    for variable, other in pairs:
        np.testing.assert_allclose(variable.value, other.value.detach().numpy(), rtol=1e-6, atol=1e-8)
    assert type(optimizer).from_config(optimizer.get_config()).beta == 0.9


def test_an_optimizer_by_variable_trains_a_model_and_refuses_variables_that_it_was_not_built_with():
    model = pydtconv.Sequential([pydtconv.Input((3,)), pydtconv.layers.Dense(4), pydtconv.layers.Dense(1)])
    model.layers[0].trainable = False
    model.compile(written_by_variable(pydtconv)(0.002), "mse")
    x = np.ones((4, 3))
    first, *_, last = model.fit(x, x[:, :1] * 3, epochs=20, verbose=0).history["loss"]
    assert last < first / 2
    copied = copy.deepcopy(model)
    losses = [each.fit(x, x[:, :1] * 3, epochs=2, verbose=0).history["loss"] for each in (model, copied)]
    assert losses[0] == losses[1]
    model.layers[0].trainable = True
    with pytest.raises(ValueError, match="expected the variables that it was built with, got 'dense/kernel', too"):
        model.fit(x, x[:, :1], verbose=0)


@pytest.mark.parametrize("name", ["Muon", "Adafactor", "own"])
def test_a_plan_counts_the_variables_that_an_optimizer_makes_itself(name):
    """Before they are made, and as many as there are then."""

    class Own(optimizers.Optimizer):
        def build(self, variables):
            super().build(variables)
            self.first, self.second = self.add_optimizer_variables(variables, ["first", "second"])

        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, learning_rate * gradient)

    optimizer = Own(0.1) if name == "own" else getattr(optimizers, name)()
    model = pydtconv.Sequential([pydtconv.Input((6,)), pydtconv.layers.Dense(40), pydtconv.layers.Dense(3)])
    model.compile(optimizer, "mse")
    plan, without = model.plan(batch_size=4), (6 * 40 + 40 + 40 * 3 + 3) * 4
    assert not optimizer.built
    assert len(optimizer.variables) == 2  # iterations and learning rate
    model.train_on_batch(np.ones((4, 6), "float32"), np.ones((4, 3), "float32"))
    made = sum(variable.value.nbytes for variable in optimizer.variables[2:])
    assert plan.slot_bytes == made
    assert model.plan(batch_size=4).slot_bytes == made
    if name == "own":
        assert made == 2 * without


@pytest.mark.parametrize(
    "options",
    [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "adapt_vectors": True, "epsilon": 0.5, "trust_coefficient": 0.1}],
)
def test_lars_steps(options):
    """By the paper's formula; a variable of zeros, and one without gradients, step at the plain rate."""
    ours = [*variables(), Variable(np.zeros((2, 3)), dtype="float64"), Variable(np.ones((2, 2)), dtype="float64")]
    optimizer, store = optimizers.Lars(0.5, momentum=0.75, **options), ParameterStore(ours)
    optimizer.exclude_from_weight_decay([ours[2]])
    expected, momenta = [v.numpy() for v in ours], [np.zeros(v.shape) for v in ours]
    trust, epsilon = options.get("trust_coefficient", 0.001), options.get("epsilon", 0.0)
    for step in range(4):
        given = [*gradients(step), np.full((2, 3), step + 1.0), np.zeros((2, 2))]
        for variable, gradient in zip(ours, given, strict=True):
            store.gradient_of(variable)[...] = gradient
        optimizer.apply(store)
        for i, (w, g) in enumerate(zip(expected, given, strict=True)):
            adapts = w.ndim > 1 or options.get("adapt_vectors", False)
            decay = options.get("weight_decay", 0.0) if i != 2 and adapts else 0.0
            divisor = np.linalg.norm(g.ravel()) + decay * np.linalg.norm(w.ravel()) + epsilon
            ratio = trust * np.linalg.norm(w.ravel()) / divisor if adapts and divisor else 1.0
            momenta[i] = 0.75 * momenta[i] - 0.5 * (ratio or 1.0) * (g + decay * w)
            expected[i] = w + momenta[i]
    for variable, value in zip(ours, expected, strict=True):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-12, atol=1e-14)
    assert optimizers.get(optimizers.serialize(optimizer)).get_config() == optimizer.get_config()


def test_schedule_free_steps():
    """By its formula: Keras on torch reads the momentum of before after it has changed in place."""
    (ours,) = [Variable(np.random.default_rng(0).normal(size=(3, 4)), dtype="float64", name="v")]
    optimizer, store = optimizers.ScheduleFreeAdamW(RATE, warmup_steps=3), ParameterStore([ours])
    optimizer.build([ours])
    y, z, v, x = ours.numpy(), ours.numpy(), 0.0, ours.numpy()
    for t in range(1, 11):
        g = np.random.default_rng(t).normal(size=(3, 4))
        store.gradient_of(ours)[...] = g
        optimizer.apply(store)
        v = 0.999 * v + 0.001 * g**2
        z = z - RATE * min(t / 3, 1) * g / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        x = (1 - 1 / t) * x + z / t
        y = 0.1 * z + 0.9 * x
        np.testing.assert_allclose(ours.value, y, rtol=1e-9)


def test_optimizers_of_one_name_have_slots_of_their_own():
    weight = Variable(np.ones(3), dtype="float32", name="w")

    def step(optimizer, slope):
        with pydtconv.GradientTape() as tape:
            loss = pydtconv.ops.sum(weight * slope)
        optimizer.apply(tape.gradient(loss, [weight]), [weight])
        return weight.numpy()[0]

    first = optimizers.SGD(1.0, momentum=0.5)
    assert step(first, 2.0) == -1
    second = optimizers.SGD.from_config(first.get_config())
    assert second.name == first.name
    assert step(second, 4.0) == -5
    assert step(first, 2.0) == -8


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name != "name"])
def test_a_loss_scale_optimizer_takes_other_arguments_at_their_defaults_alone(name):
    """Configs of older versions hold them."""
    config = optimizers.LossScaleOptimizer(optimizers.SGD(0.5)).get_config()
    again = optimizers.LossScaleOptimizer.from_config(config | {name: DEFAULTS[name], "dynamic": True})
    assert isinstance(again.inner_optimizer, optimizers.SGD)
    for more in {name: 0.5}, {"dynamic": False}, {"foo": 1}:
        with pytest.raises(ValueError, match=f"LossScaleOptimizer: (unknown argument )?'?{next(iter(more))}"):
            optimizers.LossScaleOptimizer(optimizers.SGD(0.5), **more)


def test_pairs_in_the_wrong_order_are_told():
    variable = variables()[0]
    with pytest.raises(TypeError, match=r"expected pairs \(gradient, variable\), got array"):
        optimizers.SGD().apply_gradients([(variable, np.zeros(variable.shape))])


@pytest.mark.parametrize("name", [name for name in optimizers.__all__ if name[0].isupper() and name != "Optimizer"])
def test_units_without_gradients_stay_finite(name):
    """A row and a column of a matrix without gradients, as those of units that are never active."""
    value = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    gradient = value.copy()
    gradient[1] = gradient[:, 2] = 0
    inner = [optimizers.SGD()] if name == "LossScaleOptimizer" else []
    optimizer, variable = getattr(optimizers, name)(*inner), Variable(value)
    for _ in range(2):
        optimizer.apply([gradient], [variable])
    assert np.isfinite(np.asarray(variable.value)).all()
