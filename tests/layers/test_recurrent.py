"""Recurrent layers beside Keras's own: outputs, states, masks, weights after steps of training, files."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

STEPS, FEATURES, UNITS = 5, 3, 4
rng = np.random.default_rng(0)
X = rng.normal(size=(6, STEPS, FEATURES)).astype("float32")
X[0, 3:] = 0  # masked behind, before, between, and everywhere
X[1, :2] = 0
X[2, 1:3] = 0
X[3] = 0
STATE = rng.normal(size=(6, UNITS)).astype("float32")

#: by layer, the arguments that it has beside those of all
KINDS = {
    "SimpleRNN": [{}, {"activation": "relu", "use_bias": False}],
    "LSTM": [{}, {"unit_forget_bias": False, "recurrent_activation": "hard_sigmoid"}, {"activation": "softsign"}],
    "GRU": [{}, {"reset_after": False}, {"reset_after": False, "activation": "elu"}, {"use_bias": False}],
}
OPTIONS = [
    {},
    {"return_sequences": True},
    {"return_state": True, "go_backwards": True},
    {"return_sequences": True, "return_state": True, "unroll": True, "go_backwards": True},
    {"return_sequences": True, "zero_output_for_mask": True},
    {"zero_output_for_mask": True},
]


def minimal_cell(k):
    class MinimalCell(k.layers.Layer):
        """Keras's example of a cell of one's own."""

        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = self.state_size = units

        def build(self, input_shape):
            self.kernel = self.add_weight(shape=(input_shape[-1], self.units), initializer="uniform", name="kernel")
            self.recurrent_kernel = self.add_weight(shape=(self.units, self.units), name="recurrent_kernel")
            self.built = True

        def call(self, inputs, states):
            output = k.ops.matmul(inputs, self.kernel) + k.ops.matmul(states[0], self.recurrent_kernel)
            return output, [output]

    return MinimalCell


def branches(k, kind, masked):
    """Layers of a kind with all options."""
    of = k.layers
    if kind in KINDS:
        every = [{**own, **options} for own in KINDS[kind] for options in OPTIONS]
        # Keras on PyTorch cannot unroll with a mask backwards
        return [getattr(of, kind)(UNITS, **{**each, "unroll": "unroll" in each and not masked}) for each in every]
    if kind == "Bidirectional":
        modes = ("concat", "sum", "mul", "ave", None)
        every = [of.Bidirectional(of.GRU(UNITS, **options), mode) for options in OPTIONS[1:2] for mode in modes]
        every += [of.Bidirectional(of.LSTM(UNITS, return_state=True), mode) for mode in ("concat", None)]
        return [*every, of.Bidirectional(of.LSTM(UNITS), backward_layer=of.SimpleRNN(UNITS, go_backwards=True))]
    cells = [of.SimpleRNNCell(UNITS), of.LSTMCell(UNITS), of.GRUCell(UNITS), of.GRUCell(UNITS, reset_after=False)]
    stacks = [of.LSTMCell(3), minimal_cell(k)(2), of.GRUCell(UNITS)], [of.GRUCell(3), of.SimpleRNNCell(2)]
    every = [of.RNN(cell, **{**options, "unroll": False}) for cell, options in zip(cells, OPTIONS, strict=False)]
    every += [of.RNN(minimal_cell(k)(UNITS), **{**options, "unroll": False}) for options in OPTIONS]
    backwards = {"go_backwards": True, "return_sequences": True}
    return every + [of.RNN(stack, **options) for stack in stacks for options in (*OPTIONS[:2], backwards)]


#: of a convolutional LSTM, on videos that are made of the sequences
VIDEOS = [
    {"strides": 2, "padding": "same", "return_sequences": True},
    {"dilation_rate": 2, "return_state": True, "go_backwards": True, "recurrent_activation": "hard_sigmoid"},
    {"data_format": "channels_first", "return_sequences": True, "unit_forget_bias": False, "use_bias": False},
]


def videos(k, rank):
    """A model with an output for each way of a convolutional LSTM, on sequences (n, steps, places * 2)."""
    places = {1: (9,), 2: (5, 6), 3: (5, 5, 5)}[rank]
    x = k.Input((2, *places, 2))
    channels_first = k.layers.Permute((1, rank + 2, *range(2, rank + 2)))(x)
    outputs = []
    for options in VIDEOS:
        y = getattr(k.layers, f"ConvLSTM{rank}D")(2, 3, **options)(channels_first if "data_format" in options else x)
        outputs += y if isinstance(y, (tuple, list)) else [y]
    return k.Model(x, outputs)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutional_as_keras(rank, tmp_path):
    keras = import_keras()
    ours, theirs = videos(pydtconv, rank), videos(keras, rank)
    x = np.random.default_rng(rank).normal(size=(2, *ours.input_shape[1:])).astype("float32")
    same_after_training(ours, theirs, x)
    ours.save(tmp_path / "ours.keras")
    again = keras.saving.load_model(tmp_path / "ours.keras")
    for found, expected in zip(again.predict(x, verbose=0), ours.predict(x, verbose=0), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def same_after_training(ours, theirs, x):
    """Compares outputs of equal weights, and weights and losses after steps of training."""
    keras = import_keras()
    assert [w.shape for w in ours.weights] == [tuple(w.shape) for w in theirs.weights]
    assert [w.name for w in ours.weights] == [w.name for w in theirs.weights]
    ours.set_weights(theirs.get_weights())
    y = theirs.predict(x, verbose=0)
    assert [each.shape[1:] for each in y] == [tuple(shape[1:]) for shape in ours.output_shape]
    targets = [np.ones_like(each) for each in y]
    for k, each in ((pydtconv, ours), (keras, theirs)):
        each.compile(k.optimizers.SGD(0.1, momentum=0.9), ["mse"] * len(y))
    for found, expected in zip(ours.predict(x, verbose=0), y, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    for _ in range(3):
        loss, expected = (each.train_on_batch(x, targets) for each in (ours, theirs))
        np.testing.assert_allclose(np.ravel(loss)[0], np.ravel(expected)[0], rtol=1e-5)
    for w, found, expected in zip(ours.weights, ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=w.path)


def model(k, kind, masked):
    """A model with an output for each branch and each of its states."""
    x, state = k.Input((STEPS, FEATURES)), k.Input((UNITS,))
    inputs = k.layers.Masking()(x) if masked else x
    outputs = []
    for layer in branches(k, kind, masked):
        given = {}
        if not masked and kind in KINDS:  # with both, Keras passes no mask on
            given["initial_state"] = [state, state] if kind == "LSTM" else [state]
        elif not masked and kind == "Bidirectional":
            states = {"GRU": 1, "LSTM": 2}[type(layer.forward_layer).__name__]
            if type(layer.backward_layer) is type(layer.forward_layer):
                given["initial_state"] = [state] * (2 * states)
        y = layer(inputs, **given)
        outputs += y if isinstance(y, (tuple, list)) else [y]
    flat = [each for y in outputs for each in (y if isinstance(y, list) else [y])]
    return k.Model([x, state], flat)


@pytest.mark.parametrize("masked", [False, True], ids=["states", "masks"])
@pytest.mark.parametrize("kind", [*KINDS, "Bidirectional", "RNN"])
def test_as_keras(kind, masked):
    keras = import_keras()
    same_after_training(model(pydtconv, kind, masked), model(keras, kind, masked), [X, STATE])


def text_model(k):
    words = k.Input((None,), dtype="int32")
    x = k.layers.Embedding(9, 4, mask_zero=True)(words)
    x = k.layers.Bidirectional(k.layers.LSTM(3, return_sequences=True, dropout=0.2), name="both")(x)
    x = k.layers.GRU(4, return_sequences=True, recurrent_dropout=0.3, reset_after=False)(x)
    x = k.layers.RNN([k.layers.GRUCell(3), k.layers.SimpleRNNCell(2, dropout=0.1)], return_sequences=True)(x)
    return k.Model(words, k.layers.SimpleRNN(2, go_backwards=True, seed=3)(x))


def test_files_both_ways(tmp_path):
    keras = import_keras()
    ours, theirs = text_model(pydtconv), text_model(keras)
    assert [w.path.split("/")[-1] for w in ours.weights] == [w.path.split("/")[-1] for w in theirs.weights]
    words = np.array([[3, 4, 0, 0], [1, 2, 8, 5], [7, 0, 0, 0]])
    expected = theirs.predict(words, verbose=0)
    theirs.save(tmp_path / "theirs.keras")
    theirs.save_weights(tmp_path / "theirs.weights.h5")
    read = pydtconv.saving.load_model(tmp_path / "theirs.keras")
    np.testing.assert_allclose(read.predict(words, verbose=0), expected, atol=1e-5)
    ours.load_weights(tmp_path / "theirs.weights.h5")
    np.testing.assert_allclose(ours.predict(words, verbose=0), expected, atol=1e-5)
    ours.save(tmp_path / "ours.keras")
    ours.save_weights(tmp_path / "ours.weights.h5")
    theirs.load_weights(tmp_path / "ours.weights.h5")
    for k in (keras, pydtconv):
        again = k.saving.load_model(tmp_path / "ours.keras")
        np.testing.assert_allclose(again.predict(words, verbose=0), expected, atol=1e-5)
    for own, other in zip(ours.layers[2:], theirs.layers[2:], strict=True):
        mine, their = own.get_config(), other.get_config()
        assert mine.keys() == (their.keys() - {"activity_regularizer"}) | (mine.keys() & {"seed"})


def test_stateful_as_keras():
    keras = import_keras()
    models = []
    for k in (pydtconv, keras):
        inputs = k.Input(batch_shape=(6, STEPS, FEATURES))
        x = k.layers.LSTM(UNITS, stateful=True, return_sequences=True)(inputs)
        models.append(k.Model(inputs, k.layers.RNN(k.layers.GRUCell(2), stateful=True)(x)))
    ours, theirs = models
    ours.set_weights(theirs.get_weights())
    for model in models:
        model.compile("sgd", "mse")
    for reset in (False, False, True):
        y = [model.predict(X, batch_size=6, verbose=0) for model in models]
        np.testing.assert_allclose(*y, atol=1e-5)
        if reset:
            for model in models:
                [layer.reset_state() for layer in model.layers[1:]]
    ours.train_on_batch(X, np.ones((6, 2)))  # Keras on PyTorch cannot
    state = ours.layers[2].states[0].numpy()
    ours.layers[1].trainable = ours.layers[2].trainable = False
    np.testing.assert_array_equal(ours.predict(X, batch_size=6, verbose=0), ours.layers[2].states[0].numpy())
    assert (ours.layers[2].states[0].numpy() != state).any()
    with pytest.raises(ValueError, match="stateful: expected batches of 6 samples"):
        ours.layers[1](X[:2])
    with pytest.raises(ValueError, match="stateful: expected a batch size that is known"):
        layers.GRU(2, stateful=True)(pydtconv.Input((3, 4)))


def test_stateful_layers_expect_one_process(monkeypatch):
    monkeypatch.setattr(pydtconv.replica.Replica, "parts", 2)
    with pytest.raises(NotImplementedError, match=r"stateful: expected one process, got 2: each has other samples"):
        layers.GRU(2, stateful=True)(X)


@pytest.mark.parametrize("subclassed", [False, True])
def test_stateful_training_resumes_bit_for_bit(subclassed, tmp_path):
    class Own(pydtconv.Model):
        def __init__(self):
            super().__init__()
            self.first, self.last = layers.LSTM(3, stateful=True), layers.Dense(1)

        def call(self, x):
            return self.last(self.first(x))

    def trained(name, epochs):
        pydtconv.utils.set_random_seed(1)
        inputs = pydtconv.Input(batch_shape=(3, STEPS, FEATURES))
        x = layers.Bidirectional(layers.GRU(2, stateful=True, return_sequences=True))(inputs)
        model = Own() if subclassed else pydtconv.Model(inputs, layers.ConvLSTM1D(1, 1, stateful=True)(x[..., None]))
        model.compile("adam", "mse")
        kept = pydtconv.callbacks.BackupAndRestore(tmp_path / name, delete_checkpoint=False)
        y = np.ones((6, *model.predict(X, 3, verbose=0).shape[1:]))
        model.fit(X, y, 3, epochs, verbose=0, callbacks=[kept])
        return [*model.get_weights(), model.predict(X, 3, verbose=0)]

    whole = trained("whole", 4)
    trained("parts", 2)
    for found, expected in zip(trained("parts", 4), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
def test_dropout_is_the_same_in_all_steps(name):
    x = np.ones((64, 3, 8), "float32")
    options = {"kernel_initializer": "ones", "recurrent_initializer": "zeros", "activation": "linear", "dropout": 0.5}
    cell = {} if name == "SimpleRNN" else {"recurrent_activation": "linear"}
    layer = getattr(layers, name)(1, return_sequences=True, **options, **cell)
    y = layer(x, training=True)
    np.testing.assert_array_equal(layer(x), np.broadcast_to(layer(x)[:1], layer(x).shape))
    assert np.unique(y[:, 0]).size > 3
    if name == "SimpleRNN":  # without a state, equal inputs give equal outputs
        np.testing.assert_array_equal(y, np.broadcast_to(y[:, :1], y.shape))
    state = getattr(layers, name)(4, recurrent_dropout=0.5, seed=1)
    assert np.abs(state(x, training=True) - state(x)).max() > 1e-3
    model = pydtconv.Sequential([pydtconv.Input((3, 8)), state, layers.Dense(1)])
    model.compile("adam", "mse")
    first, *_, last = model.fit(x, np.ones(64), epochs=9, verbose=0).history["loss"]
    assert last < first


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: layers.SimpleRNN(4, recurrent_dropout=0.5), (5, 3)),
        (lambda: layers.LSTM(4, recurrent_dropout=0.5), (5, 3)),
        (lambda: layers.GRU(4, recurrent_dropout=0.5), (5, 3)),
        (lambda: layers.GRU(4, recurrent_dropout=0.5, reset_after=False), (5, 3)),
        (lambda: layers.LSTM(4, dropout=0.5), (5, 3)),
        (lambda: layers.RNN([layers.LSTMCell(4, recurrent_dropout=0.5), layers.GRUCell(3)]), (5, 3)),
        (lambda: layers.ConvLSTM1D(2, 3, recurrent_dropout=0.5), (3, 6, 2)),
    ],
)
def test_dropout_is_drawn_anew_in_each_step_of_training(make, shape):
    model = pydtconv.Sequential([pydtconv.Input(shape), make()])
    model.compile(pydtconv.optimizers.SGD(0.0), "mse")
    x, y = np.random.default_rng(0).normal(size=(4, *shape)), np.zeros((4, *model.output_shape[1:]))
    losses = model.fit(x, y, epochs=4, verbose=0).history["loss"]
    assert len(set(losses)) == 4


def test_each_call_on_arrays_draws_anew_in_each_step_of_a_cell():
    class Noisy(layers.Layer):
        state_size = 4

        def __init__(self):
            super().__init__()
            self.noise = layers.GaussianNoise(1.0, seed=3)

        def call(self, inputs, states, training=False):
            return self.noise(states[0], training=training), states

    layer, x = layers.RNN(Noisy(), return_sequences=True), np.ones((2, 5, 4), "float32")
    first, second = np.array(layer(x, training=True)), np.array(layer(x, training=True))
    assert np.unique([first, second]).size == 2 * first.size


@pytest.mark.parametrize("after", [False, True])
def test_gates_have_an_activation_each(after):
    """As softmax, which is over a gate's units."""

    def softmax(x):
        return np.exp(x) / np.exp(x).sum(-1, keepdims=True)

    x = np.random.default_rng(0).normal(size=(3, 1, 2))
    state = np.random.default_rng(1).normal(size=(3, 4))
    layer = layers.GRU(4, recurrent_activation="softmax", use_bias=False, reset_after=after, dtype="float64")
    y = layer(x, initial_state=[state])
    kernel, recurrent = layer.get_weights()
    (zu, zr, zk), (wu, wr, wk) = (np.split(a, 3, axis=1) for a in (x[:, 0] @ kernel, recurrent))
    u, r = softmax(zu + state @ wu), softmax(zr + state @ wr)
    k = np.tanh(zk + (r * (state @ wk) if after else (r * state) @ wk))
    np.testing.assert_allclose(y, u * state + (1 - u) * k, rtol=1e-9)


def test_mixed_bfloat16_and_float64():
    results = []
    for dtype in ("float64", "mixed_bfloat16"):
        pydtconv.utils.set_random_seed(3)
        inputs = pydtconv.Input((STEPS, FEATURES), dtype="float32")
        x = layers.Masking(dtype=dtype)(inputs)
        x = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True, dtype=dtype), dtype=dtype)(x)
        model = pydtconv.Model(inputs, layers.LSTM(2, dtype=dtype)(x))
        model.compile("sgd", "mse")
        assert model.layers[-1].compute_dtype == dtype.replace("mixed_", "")
        results.append([model.train_on_batch(X, np.ones((6, 2))) for _ in range(3)])
    np.testing.assert_allclose(*results, rtol=0.02)


def test_second_derivatives():
    x = np.random.default_rng(1).normal(size=(2, 3, 2))
    layer = layers.LSTM(2, dtype="float64")
    layer(x)

    def penalty(at):
        with pydtconv.GradientTape() as tape:
            tape.watch(at)
            y = pydtconv.ops.sum(layer(at))
        return pydtconv.ops.sum(pydtconv.ops.square(tape.gradient(y, at)))

    with pydtconv.GradientTape() as tape:
        tape.watch(x)
        value = penalty(x)
    found = tape.gradient(value, x).numpy()
    v = np.random.default_rng(2).normal(size=x.shape)
    numeric = (float(penalty(x + 1e-5 * v)) - float(penalty(x - 1e-5 * v))) / 2e-5
    np.testing.assert_allclose((found * v).sum(), numeric, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.LSTM(0), "units: expected an integer of 1 or more, got 0"),
        (lambda: layers.GRU(2, dropout=1.5), "dropout: expected a number from 0 to 1, got 1.5"),
        (lambda: layers.GRU(2, unit=3), "unit"),
        (lambda: layers.LSTM(2, use_cudnn=True), "use_cudnn: expected 'auto' or False, got True"),
        (lambda: layers.RNN(layers.Dense(2)), "cell: expected an object with call"),
        (lambda: layers.LSTM(2)(np.ones((2, 3), "float32")), r"expected 3 dimensions, got shape \(2, 3\)"),
        (lambda: layers.LSTM(2)(X, initial_state=[STATE]), "initial_state: expected 2 states, got 1"),
        (lambda: layers.LSTM(2)(X, initial_state=[STATE, STATE]), r"h0: expected shape \(6, 2\), got \(6, 4\)"),
        *(
            (lambda make=make: make()(X[:, :0], training=True), r"expected one step or more, got shape \(6, 0, 3\)")
            for make in (
                lambda: layers.LSTM(2),
                lambda: layers.GRU(2, recurrent_dropout=0.5),
                lambda: layers.RNN(minimal_cell(pydtconv)(2)),
            )
        ),
        (lambda: layers.Bidirectional(layers.Dense(2)), "layer: expected a recurrent layer with go_backwards"),
        (lambda: layers.Bidirectional(layers.LSTM(2), "max"), "merge_mode: expected one of"),
        (
            lambda: layers.Bidirectional(layers.LSTM(2), backward_layer=layers.LSTM(2)),
            "backward_layer: expected go_backwards=True",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
