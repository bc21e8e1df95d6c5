"""Plans in the memory of a model, and in that of loops with a tape."""

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, layers, ops, optimizers
from pydtconv.engine import limits
from pydtconv.engine.workspace import Workspace, default
from pydtconv.graph import MemoryLimitError
from pydtconv.loops.function import Function
from pydtconv.utils import set_random_seed
from tests.loops.small_models import numbers, small_model


def encoder():
    return keras.Sequential(
        [layers.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3, activation="tanh")]
    )


def head_of(shared, units):
    model = keras.Sequential([shared, layers.Dense(units)])
    model.compile(optimizers.Adam(0.01), "mse")
    return model


def data(units):
    rng = np.random.default_rng(units)
    return rng.normal(size=(8, 4)).astype("float32"), rng.normal(size=(8, units)).astype("float32")


def test_models_that_train_the_same_weights_keep_their_plans():
    """Each takes the weights back; none is traced or planned anew."""
    set_random_seed(1)
    shared = encoder()
    models = [head_of(shared, units) for units in (1, 2)]
    traced = []
    shared.layers[0].call = lambda x, call=shared.layers[0].call, **kw: (traced.append(1), call(x, **kw))[1]
    for _ in range(4):
        for model, units in zip(models, (1, 2), strict=True):
            model.train_on_batch(*data(units))
    plans = [model._pydt_steps.plans for model in models]
    assert [len(each) for each in plans] == [1, 1]
    count = len(traced)
    for model, units in zip(models, (1, 2), strict=True):
        model.train_on_batch(*data(units))
        assert model._pydt_steps.plans[-1] in [each[0] for each in plans]
    assert len(traced) == count
    assert np.isfinite(models[0].evaluate(*data(1), verbose=0))


def test_models_that_train_the_same_weights_give_what_one_gives_that_has_both_heads():
    set_random_seed(1)
    shared = encoder()
    models = [head_of(shared, units) for units in (1, 2)]
    start = [[np.array(w) for w in model.get_weights()] for model in models]
    for _ in range(3):
        for model, units in zip(models, (1, 2), strict=True):
            model.compile(optimizers.SGD(0.1), "mse")
            model.train_on_batch(*data(units))
    kept = [model.get_weights() for model in models]
    for model, weights in zip(models, start, strict=True):
        model.set_weights(weights)
    weights = [np.array(w, "float64") for w in start[0][:4]]
    heads = [[np.array(w, "float64") for w in each[4:]] for each in start]
    for _ in range(3):
        for head, units in zip(heads, (1, 2), strict=True):
            _by_hand(weights, head, *data(units))
    for model, head in zip(kept, heads, strict=True):
        for found, expected in zip(model, (*weights, *head), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def _by_hand(weights, head, x, y, rate=0.1):
    """A step of gradient descent of two tanh layers and a linear one, in place."""
    w1, b1, w2, b2 = weights
    w3, b3 = head
    h1 = np.tanh(x @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    d3 = 2 * (h2 @ w3 + b3 - y) / y.size
    d2 = d3 @ w3.T * (1 - h2**2)
    d1 = d2 @ w2.T * (1 - h1**2)
    for array, gradient in zip(
        (w3, b3, w2, b2, w1, b1), (h2.T @ d3, d3.sum(0), h1.T @ d2, d2.sum(0), x.T @ d1, d1.sum(0)), strict=True
    ):
        array -= rate * gradient


def network():
    set_random_seed(2)
    x = inputs = keras.Input((32, 32, 4))
    for _ in range(6):
        x = layers.Conv2D(8, 3, padding="same", activation="tanh")(x)
    return keras.Model(inputs, ops.mean(x, axis=(1, 2)))


def trained_by_tape(steps=2):
    """Weights after some steps of a loop with a tape, and the largest arena that it had."""
    model, optimizer = network(), optimizers.SGD(0.1)

    @keras.function
    def step(x):
        with keras.GradientTape() as tape:
            loss = ops.mean(ops.square(model(x, training=True)))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )
        return loss

    x = np.random.default_rng(0).normal(size=(8, 32, 32, 4)).astype("float32")
    for _ in range(steps):
        step(x)
    return model.get_weights(), default().host.arena.nbytes


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr("pydtconv.engine.workspace._default", {})


def test_a_loop_with_a_tape_stays_within_its_limit(fresh, tmp_path, monkeypatch):
    weights, free = trained_by_tape()
    limit = int(0.9 * free)
    for options in {}, {"offload": tmp_path}:
        monkeypatch.setattr("pydtconv.engine.workspace._default", {})
        with keras.memory_limit(limit, **options):
            limited, arena = trained_by_tape()
            assert limits.current().memory == limit
        assert limits.current() == limits.NONE
        assert 0 < arena <= limit
        for found, expected in zip(limited, weights, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_fit_is_within_the_limit_around_it_and_has_its_own_where_it_says_one(fresh):
    model = network()
    model.compile("sgd", "mse")
    x, y = np.zeros((8, 32, 32, 4), "float32"), np.zeros((8, 8), "float32")
    model.fit(x, y, 8, verbose=0)
    free = model._pydt_steps.plans[-1].peak_bytes
    with keras.memory_limit(int(0.9 * free)):
        model.fit(x, y, 8, verbose=0)
        assert model._pydt_steps.plans[-1].peak_bytes <= 0.9 * free
        model.fit(x, y, 8, verbose=0, memory_limit=2 * free)
        assert model._pydt_steps.plans[-1].peak_bytes == free
    with keras.memory_limit("1KiB"), pytest.raises(MemoryLimitError):
        model.fit(x, y, 8, verbose=0)


def test_another_thread_has_no_limit():
    found = []
    with keras.memory_limit("1GiB"):
        thread = threading.Thread(target=lambda: found.append(limits.current()))
        thread.start()
        thread.join()
    assert found == [limits.NONE]


def test_the_end_of_a_limit_waits_for_the_run_of_another_thread(fresh, tmp_path):
    workspace, ended = default(), threading.Event()
    workspace.host.use_scratch_file(str(tmp_path), 4096)

    def within():
        with keras.memory_limit("1GiB"):
            pass
        ended.set()

    thread = threading.Thread(target=within)
    with workspace.lock:  # as a run has it
        thread.start()
        assert not ended.wait(0.1)
        assert workspace.host.scratch_file.nbytes >= 4096
    thread.join()
    assert workspace.host.scratch_file.nbytes == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("many",), "limit: expected bytes"),
        ((None,), "limit: expected bytes"),
        (("1GB", "/nowhere"), "offload: expected a folder"),
    ],
)
def test_what_is_no_limit_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told), keras.memory_limit(*arguments):
        pass
    assert limits.current() == limits.NONE


@pytest.mark.parametrize("wrap", [lambda step: step, keras.function], ids=["tape", "function"])
def test_a_model_that_was_dropped_is_kept_by_nothing(wrap):
    def trained():
        model, optimizer = small_model(), keras.optimizers.Adam()

        def step(x):
            with GradientTape() as tape:
                loss = ops.mean(ops.square(model(x)))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights, strict=True))
            return loss

        for _ in range(2):
            float(wrap(step)(numbers(4, 6, 6, 2)))
        return weakref.ref(model.weights[0])

    variables = [trained() for _ in range(3)]
    gc.collect()
    assert [variable() for variable in variables] == [None] * 3


def test_a_recording_of_another_thread_has_a_number_of_its_own():
    workspace, numbers = Workspace(), []
    workspace.host.state.step = 9
    other = threading.Thread(target=lambda: numbers.append(workspace.next_step()))

    class Running:
        def run(self, arrays):
            other.start()
            other.join(0.05)

    with workspace.lock:
        workspace.run(Running(), [], 5)
    other.join()
    assert numbers == [10]
    assert workspace.host.state.step == 10


@pytest.mark.parametrize("eager", [False, True], ids=["tape", "function"])
def test_batches_of_steps_before_do_not_wait_for_the_garbage_collector(eager):
    model, optimizer = keras.Sequential([keras.Input((250_000,)), layers.Dense(1)]), keras.optimizers.SGD()

    def step(x):
        with GradientTape() as tape:
            loss = ops.mean(ops.square(model(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights, strict=True))
        return loss

    step = Function(step, eager=True) if eager else step
    batch = np.ones((2, 250_000), "float32")
    float(step(batch))
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(5):
            float(step(batch))
        assert tracemalloc.get_traced_memory()[0] < batch.nbytes
    finally:
        tracemalloc.stop()
        gc.enable()
