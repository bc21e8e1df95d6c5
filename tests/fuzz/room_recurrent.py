"""Random recurrent networks in both libraries: equal weights, five steps of training, and the same numbers after them.

Keras runs on the backend that KERAS_BACKEND names, by default PyTorch.  Kinds, cells, stacks, directions, masks, first
states, states that stay, arguments of layers and optimizers are drawn.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import pydtconv
from tests.fuzz import trials
from tests.real_keras import import_keras

NETWORKS = int(os.environ.get("FUZZ_NETWORKS", "10"))
BATCH, STEPS, WORDS = 4, 6, 9
#: the largest difference of losses, weights and outputs, of numbers of about one; Keras has losses in float32
CLOSE = {"float32": 1e-5, "float64": 1e-6}


class Draw:
    """Random choices; the same ones for both libraries."""

    def __init__(self, seed: Any) -> None:
        self.random = np.random.default_rng(seed)

    def of(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)


def _gates(draw: Draw, kind: str) -> dict[str, Any]:
    """Arguments of a layer or a cell."""
    found: dict[str, Any] = {"units": draw.of(1, 3, 4, 8), "use_bias": draw.chance(0.8)}
    found["activation"] = draw.of("tanh", "tanh", "sigmoid", "softsign", "relu", None)
    if draw.chance(0.3):
        found |= {"kernel_regularizer": "l2", "recurrent_constraint": draw.of("unit_norm", None)}
    if kind != "SimpleRNN":
        found["recurrent_activation"] = draw.of("sigmoid", "sigmoid", "hard_sigmoid", "tanh")
    if kind == "LSTM":
        found["unit_forget_bias"] = draw.chance(0.7)
    if kind == "GRU":
        found["reset_after"] = draw.chance(0.6)
    return found


def _layer(k: Any, draw: Draw, sequences: bool, stateful: bool, state: bool) -> tuple[Any, Any]:
    """A layer, and the sizes of its states."""
    backwards = draw.chance(0.25)
    options = {
        "return_sequences": sequences,
        "return_state": state,
        "go_backwards": backwards,
        "unroll": draw.chance(0.2) and not backwards,
        "stateful": stateful,
        "zero_output_for_mask": draw.chance(0.3),
    }
    kinds = [draw.of("SimpleRNN", "LSTM", "GRU") for _ in range(draw.of(1, 1, 1, 2, 3))]
    gates = [_gates(draw, kind) for kind in kinds]
    sizes = [[each["units"]] * 2 if kind == "LSTM" else each["units"] for each, kind in zip(gates, kinds, strict=True)]
    sizes = sizes[0] if len(kinds) == 1 and kinds[0] == "LSTM" else sizes
    if len(kinds) > 1 or draw.chance(0.2):
        cells = [getattr(k.layers, f"{kind}Cell")(**each) for kind, each in zip(kinds, gates, strict=True)]
        return k.layers.RNN(cells if len(cells) > 1 else cells[0], **options), sizes
    layer = getattr(k.layers, kinds[0])(**gates[0], **options)
    if stateful or state or draw.chance(0.6):
        return layer, sizes
    del options["go_backwards"]
    options["unroll"] = False  # with masks, Keras's unrolled backward steps zero the outputs of other steps
    backward = getattr(k.layers, draw.of("LSTM", "GRU"))(units=gates[0]["units"], go_backwards=True, **options)
    forward = getattr(k.layers, kinds[0])(**gates[0], **options)
    merge = draw.of("concat", "sum", "mul", "ave")
    return k.layers.Bidirectional(forward, merge, backward_layer=backward if draw.chance(0.5) else None), sizes


def model_of(k: Any, draw: Draw) -> Any:
    """The network that these random numbers say."""
    stateful = draw.chance(0.2) and os.environ.get("KERAS_BACKEND") != "jax"  # whose compiled steps lose the states
    if draw.chance(0.15):
        return _images(k, draw, stateful)
    whole, words = {"batch_size": BATCH} if stateful else {}, draw.chance(0.4)
    if words:
        inputs = k.Input((STEPS,), dtype="int32", name="x", **whole)
        x = k.layers.Embedding(WORDS, 3, mask_zero=draw.chance(0.8))(inputs)
    else:
        inputs = k.Input((STEPS, 3), name="x", **whole)
        x = k.layers.Masking(0.0)(inputs) if draw.chance(0.5) else inputs
    count, found, given = draw.of(1, 1, 2, 3), [], [inputs]
    for i in range(count):
        sequences, state = i < count - 1 or draw.chance(0.5), draw.chance(0.3)
        layer, sizes = _layer(k, draw, sequences, stateful, state)
        kwargs = {}
        if draw.chance(0.3) and not stateful and type(layer).__name__ not in ("Bidirectional", "RNN"):
            first = k.Input((3,), name=f"first{i}")
            given.append(first)
            kwargs = {"initial_state": pydtconv.tree.map_structure(lambda n: k.layers.Dense(n, "tanh")(first), sizes)}  # noqa: B023
        x = layer(x, **kwargs)
        if state:
            x, *states = x
            found += pydtconv.tree.flatten(states)
        if sequences and draw.chance(0.3):
            x = k.layers.TimeDistributed(k.layers.Dense(4, "tanh"))(x)
    if len(x.shape) == 3:
        x = k.layers.GlobalAveragePooling1D()(x) if draw.chance(0.5) else k.layers.Flatten()(x)
    x = k.layers.Concatenate()([x, *found]) if found else x
    return k.Model(given, k.layers.Dense(2)(x))


def _images(k: Any, draw: Draw, stateful: bool) -> Any:
    """Convolutional LSTMs."""
    rank = draw.of(1, 2, 2)
    inputs = k.Input((3, *[4] * rank, 2), name="x", batch_size=BATCH if stateful else None)
    x = inputs
    for sequences in draw.of((False,), (True,), (True, False)):
        x = getattr(k.layers, f"ConvLSTM{rank}D")(
            filters=draw.of(1, 3), kernel_size=draw.of(1, 2, 3), padding="same", strides=1,
            return_sequences=sequences, go_backwards=draw.chance(0.3), stateful=stateful, use_bias=draw.chance(0.8),
            activation=draw.of("tanh", "relu"), recurrent_activation=draw.of("sigmoid", "hard_sigmoid"),
            unit_forget_bias=draw.chance(0.7),
        )(x)  # fmt: skip
    return k.Model(inputs, k.layers.Dense(2)(k.layers.Flatten()(x)))


def data_of(model: Any, draw: Draw, dtype: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs, with masked steps behind, before, between and everywhere, and targets."""
    found = {}
    for tensor in model.inputs:
        shape = (BATCH, *tensor.shape[1:])
        if str(tensor.dtype) == "int32":
            found[tensor.name] = draw.random.integers(1, WORDS, shape).astype("int32")
        else:
            found[tensor.name] = draw.random.uniform(-1, 1, shape).astype(dtype)
        if tensor.name == "x" and len(shape) < 4:
            x = found["x"]
            x[0, draw.of(2, STEPS) :] = 0
            x[1, : draw.of(0, 2)] = 0
            x[2, 1 : draw.of(1, 3)] = 0
            x[3, draw.of(0, STEPS) :] = 0
    return found, draw.random.uniform(-1, 1, (BATCH, 2)).astype(dtype)


def run(seed: int) -> None:
    try:
        keras = import_keras("tensorflow", "jax")
    except pytest.skip.Exception as reason:
        trials.count("networks", f"skipped: {reason}")
        return
    for index in range(NETWORKS):
        trials.keep("network.txt", f"seed {seed}, network {index}".encode())
        try:
            trials.count(*try_network(keras, (seed, index)))
        except Exception as error:
            raise AssertionError(f"seed {seed}, network {index}: {error}") from error


def try_network(keras: Any, seed: tuple[int, ...]) -> tuple[str, str]:
    """Compares one network; gives its dtype, and how it went.  Raises AssertionError where something differs."""
    dtype = Draw((*seed, 1)).of("float32", "float32", "float64")
    before, models = pydtconv.config.floatx(), []
    try:
        for k in (keras, pydtconv):
            k.config.set_floatx(dtype)
            k.utils.clear_session(free_memory=False)
            models.append(model_of(k, Draw(seed)))
        return dtype, _compare(*models, Draw((*seed, 2)), keras, dtype)
    finally:
        for k in (keras, pydtconv):
            k.config.set_floatx(before)


def _trained(k: Any, model: Any, draw: Draw, dtype: str) -> tuple[list[float], list[np.ndarray]]:
    """Losses of five steps, and the weights and outputs after them."""
    model.set_weights([draw.random.uniform(-0.5, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])
    momentum, rate = draw.of((0.875, 1 / 64), (0.0, 1 / 16))  # which float32 holds
    x, y = data_of(model, draw, dtype)
    model.compile(k.optimizers.SGD(rate, momentum), "mse")
    losses = [float(model.train_on_batch(x, y)) for _ in range(5)]
    return losses, [*model.get_weights(), np.asarray(model.predict_on_batch(x))]


def _compare(theirs: Any, ours: Any, draw: Draw, keras: Any, dtype: str) -> str:
    found, expected = ([variable.path for variable in model.weights] for model in (ours, theirs))
    assert found == expected, f"weights are {found}, expected {expected}"
    state = draw.random.bit_generator.state
    try:
        losses, arrays = _trained(keras, theirs, draw, dtype)
    except Exception as error:  # some backends have no stateful training, unrolled masks, or nested states
        return f"not in Keras: {type(error).__name__}"
    if not np.isfinite(losses).all() or max(losses) > 100:  # means of no step, and what grows without end
        return "no numbers"
    if losses[-1] > losses[0]:  # rounding grows with them
        return "diverges"
    draw.random.bit_generator.state = state
    close, (own_losses, own) = CLOSE[dtype], _trained(pydtconv, ours, draw, dtype)
    np.testing.assert_allclose(own_losses, losses, rtol=1e-5, atol=1e-6, err_msg="losses")  # float32 in Keras
    for name, a, b in zip([*found, "outputs"], own, arrays, strict=True):
        np.testing.assert_allclose(a, b, rtol=close, atol=close, err_msg=name)
    return "right"
