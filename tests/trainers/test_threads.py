"""One model used by several threads at once, and several models: each gets the values that it gets alone."""

import contextlib
import copy
import dis
import itertools
import pickle
import sys
import threading

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.engine import limits
from pydtconv.layers.base.locks import Turn, turn_of
from pydtconv.utils import set_random_seed

THREADS, ROUNDS = 4, 12


@pytest.fixture(autouse=True)
def hurried_threads():
    """Threads take turns at Python's lock as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Runs functions in threads that start at once; raises what one of them raised."""
    errors, start = [], threading.Barrier(len(works))

    def run(work):
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def made_model(rate=0.1):
    model = keras.Sequential(
        [keras.Input((8, 8, 2)), layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(4)]
    )
    model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    return model


def batch(size, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((size, 8, 8, 2), "float32"), rng.standard_normal((size, 4), "float32")


REQUESTS = {
    "predict": lambda model, x, y: model.predict(x, batch_size=4, verbose=0),
    "predict_on_batch": lambda model, x, y: model.predict_on_batch(x),
    "call": lambda model, x, y: model(x),
    "evaluate": lambda model, x, y: np.array(model.evaluate(x, y, batch_size=4, verbose=0)),
    "test_on_batch": lambda model, x, y: np.array(model.test_on_batch(x, y)),
}


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_requests_of_two_shapes_get_their_own_values(request_of):
    model = made_model()
    data = [batch(size, size) for size in (3, 10)]
    expected = [request_of(model, *each) for each in data]

    def work(first):
        for i in range(ROUNDS):
            which = (first + i) % 2
            np.testing.assert_array_equal(request_of(model, *data[which]), expected[which])

    together(*[lambda first=i: work(first) for i in range(THREADS)])


def test_fit_is_not_disturbed_by_evaluate_and_predict():
    data, other = batch(24), batch(10, 1)
    alone, beside = made_model(), made_model()
    beside.set_weights(alone.get_weights())
    expected = alone.fit(*data, batch_size=4, epochs=3, shuffle=False, verbose=0).history
    found, done = {}, threading.Event()

    def train():
        found.update(beside.fit(*data, batch_size=4, epochs=3, shuffle=False, verbose=0).history)
        done.set()

    def ask():
        while not done.is_set():
            beside.evaluate(*other, batch_size=4, verbose=0)
            beside.predict(other[0], batch_size=4, verbose=0)

    together(train, ask)
    assert found == expected
    for one, another in zip(beside.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_array_equal(one, another)


def test_evaluate_is_not_disturbed_by_fit():
    model, data, other = made_model(rate=0.0), batch(24), batch(10, 1)
    expected = model.evaluate(*other, batch_size=4, verbose=0)
    done = threading.Event()

    def train():
        model.fit(*data, batch_size=4, epochs=4, verbose=0)
        done.set()

    def ask():
        while not done.is_set():
            assert model.evaluate(*other, batch_size=4, verbose=0) == expected

    together(train, ask)
    assert model.evaluate(*other, batch_size=4, verbose=0) == expected


def test_weights_are_read_between_two_steps():
    data = batch(24)
    alone, beside = made_model(), made_model()
    beside.set_weights(alone.get_weights())
    states = [[w.tobytes() for w in alone.get_weights()]]
    note = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_: states.append([w.tobytes() for w in alone.get_weights()])
    )
    alone.fit(*data, batch_size=4, epochs=3, shuffle=False, verbose=0, callbacks=[note])
    done = threading.Event()

    def train():
        beside.fit(*data, batch_size=4, epochs=3, shuffle=False, verbose=0)
        done.set()

    def ask():
        while not done.is_set():
            assert [w.tobytes() for w in beside.get_weights()] in states

    together(train, ask)


def test_two_fits_of_one_model_come_one_after_the_other():
    model, data = made_model(), batch(12)
    order = []
    notes = [
        keras.callbacks.LambdaCallback(on_epoch_end=lambda *_, name=name: order.append(name)) for name in ("a", "b")
    ]
    together(*[lambda note=note: model.fit(*data, epochs=3, verbose=0, callbacks=[note]) for note in notes])
    assert order in (["a"] * 3 + ["b"] * 3, ["b"] * 3 + ["a"] * 3)
    assert model._pydt_position is None


def test_two_models_trained_at_once_are_those_trained_one_after_the_other():
    data = batch(24)

    def trained(seed):
        set_random_seed(seed)
        model = keras.Sequential([keras.Input((8, 8, 2)), layers.Flatten(), layers.Dropout(0.5), layers.Dense(4)])
        model.compile("adam", "mse")
        history = model.fit(*data, batch_size=4, epochs=3, verbose=0).history
        return history, [w.tobytes() for w in model.get_weights()]

    expected = {seed: trained(seed) for seed in (1, 2)}
    found = {}
    together(*[lambda seed=seed: found.__setitem__(seed, trained(seed)) for seed in (1, 2)])
    assert found == expected


def test_models_that_share_layers_take_turns():
    whole = made_model()
    part = keras.Model(whole.inputs, whole.layers[0].output)
    data = batch(12)
    expected = part.predict(data[0], batch_size=4, verbose=0)
    assert turn_of(whole) is turn_of(part)
    whole.compile(keras.optimizers.SGD(0.0), "mse")
    done = threading.Event()

    def train():
        whole.fit(*data, batch_size=4, epochs=4, verbose=0)
        done.set()

    def ask():
        while not done.is_set():
            np.testing.assert_array_equal(part.predict(data[0], batch_size=4, verbose=0), expected)

    together(train, ask)


def test_predictions_follow_weights_that_another_model_moves_meanwhile():
    whole = made_model()
    part = keras.Model(whole.inputs, whole.layers[0].output)
    x, y = batch(8)
    found = []

    def train_whole(step, logs):
        whole.train_on_batch(x, y)
        found.append(part(x[4:]))

    outputs = part.predict(
        x, batch_size=4, verbose=0, callbacks=[keras.callbacks.LambdaCallback(), _AfterPredict(train_whole)]
    )
    np.testing.assert_allclose(outputs[4:], found[0], rtol=1e-5)


class _AfterPredict(keras.callbacks.Callback):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def on_predict_batch_end(self, batch, logs=None):
        self.function(batch, logs)


def test_callbacks_of_fit_may_evaluate_and_fit():
    data, other = batch(24), batch(10, 1)
    alone, asked = made_model(), made_model()
    asked.set_weights(alone.get_weights())
    expected = alone.fit(*data, batch_size=4, epochs=2, shuffle=False, verbose=0, memory_limit=1 << 28).history
    met, second = [], keras.Sequential([asked.layers[0], layers.Flatten(), layers.Dense(4)])
    second.compile(keras.optimizers.SGD(0.0), "mse")

    def ask(*_):
        asked.evaluate(*other, verbose=0)
        second.fit(*other, verbose=0)
        met.append((limits.current().memory, asked._pydt_position is None))

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=ask)
    found = asked.fit(
        *data, batch_size=4, epochs=2, shuffle=False, verbose=0, memory_limit=1 << 28, callbacks=[callback]
    )
    assert found.history == expected
    assert set(met) == {(1 << 28, False)}
    assert limits.current().memory is None


def test_a_step_within_a_step_is_refused():
    class Asks(layers.NumpyLayer):
        def forward(self, x):
            model.predict(np.zeros((2, 3), "float32"), verbose=0)
            return x

    model = keras.Sequential([keras.Input((3,)), Asks()])
    with pytest.raises(RuntimeError, match="a step is running"):
        model.predict(np.zeros((4, 3), "float32"), verbose=0)


def test_a_layer_is_built_once():
    for _ in range(5):
        layer = layers.Dense(3)
        together(*[lambda layer=layer: layer(np.ones((2, 4), "float32")) for _ in range(THREADS)])
        assert len(layer.weights) == 2


def test_names_are_given_once():
    names = []
    together(*[lambda: names.extend(layers.ReLU().name for _ in range(50)) for _ in range(THREADS)])
    assert len(set(names)) == len(names)


def test_scopes_of_custom_objects_are_those_of_a_thread():
    inside, left = threading.Barrier(2), threading.Barrier(2)

    def first():
        with keras.saving.custom_object_scope({"one": 1}):
            inside.wait()
            left.wait()
            assert keras.saving.get_registered_object("one") == 1
            assert keras.saving.get_registered_object("two") is None

    def second():
        with keras.saving.custom_object_scope({"two": 2}):
            inside.wait()
        left.wait()

    together(first, second)


def test_turns_are_not_copied():
    turn = Turn()
    with turn.taken():
        assert copy.deepcopy(turn) is not turn
        assert isinstance(pickle.loads(pickle.dumps(turn)), Turn)


def test_turns_that_are_joined_are_one_lock():
    a, b, c = (layers.ReLU() for _ in range(3))
    first, second = keras.Sequential([a, b]), keras.Sequential([b, c])
    turns = [turn_of(first), turn_of(second)]
    assert turns[0].root is turns[1].root is turn_of(a)
    order = []

    def second_turn():
        with turns[1].taken():
            order.append("other")

    with turns[0].taken():
        other = threading.Thread(target=second_turn)
        other.start()
        other.join(0.05)
        order.append("first")
    other.join()
    assert order == ["first", "other"]


def test_ctrl_c_leaves_no_turn_taken():
    """Wherever the interpreter looks for signals: behind calls."""
    steps = list(dis.get_instructions(Turn.taken.__wrapped__))
    places = {after.offset for before, after in itertools.pairwise(steps) if before.opname == "CALL"}
    seen = set()

    def interrupt(frame, event, arg):
        if frame.f_code is not Turn.taken.__wrapped__.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in places - seen:
            seen.add(frame.f_lasti)
            raise KeyboardInterrupt
        return interrupt

    done, usual = False, sys.gettrace()  # one that measures what tests cover
    while not done:
        turn, free = Turn(), []
        sys.settrace(interrupt)
        with contextlib.suppress(KeyboardInterrupt), turn.taken():
            done = True
        sys.settrace(usual)
        other = threading.Thread(target=lambda turn=turn, free=free: free.append(turn._lock.acquire(False)))
        other.start()
        other.join()
        assert free == [True]


def test_a_callback_of_fit_may_fit():
    model, data, histories = made_model(), batch(8), []
    notes = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: histories.append(model.fit(*data, epochs=1, verbose=0)) if len(histories) < 2 else None
    )
    outer = model.fit(*data, epochs=3, verbose=0, callbacks=[notes])
    assert outer is model.history
    assert outer.epoch == [0, 1, 2]
    assert [history.epoch for history in histories] == [[0], [0]]
