"""Random graphs of layers and functions in both libraries: the same operations, and weights and files both ways.

A graph is drawn twice by one seed, once for each library, and the outputs are compared after weights went over.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pydtconv
from pydtconv import tree
from tests.fuzz import trials
from tests.real_keras import import_keras

GRAPHS = 10
ROWS, CHANNELS = 4, 5
BATCH = 3

#: of (n, ROWS, CHANNELS) or (n, CHANNELS), and the same again
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "sigmoid": lambda k, x: k.ops.sigmoid(x),
    "reciprocal": lambda k, x: 2 / (x * x + 1.5),
    "negative": lambda k, x: 1 - x,
    "normalize": lambda k, x: k.ops.normalize(x, axis=-1),
    "rms": lambda k, x: k.ops.rms_normalization(x),
    "layer norm": lambda k, x: k.ops.layer_normalization(x),
    "glu": lambda k, x: k.ops.glu(k.ops.concatenate([x, x], axis=-1)),
    "softmax": lambda k, x: k.ops.softmax(x),
    "flip": lambda k, x: k.ops.flip(x, axis=-1),
    "roll": lambda k, x: k.ops.roll(x, 1, axis=-1),
    "cumsum": lambda k, x: k.ops.tanh(k.ops.cumsum(x, axis=-1)),
    "sort": lambda k, x: k.ops.sort(x, axis=-1),
    "diff": lambda k, x: k.ops.concatenate([k.ops.diff(x, axis=-1), x[..., :1]], axis=-1),
    "relative": lambda k, x: x / (k.ops.logsumexp(x, axis=-1, keepdims=True) + 3.0),
    "spread": lambda k, x: x - k.ops.std(x, axis=-1, keepdims=True),
    "where": lambda k, x: k.ops.where(x > 0.1, x, 0.3),
    "halves": lambda k, x: k.ops.concatenate(k.ops.split(x, [2], axis=-1)[::-1], axis=-1),
    "relu": lambda k, x: k.activations.relu(x, negative_slope=0.1),
    "clip": lambda k, x: k.ops.clip(x, -0.7, 0.6),
    "gelu": lambda k, x: k.activations.gelu(x),
    "abs": lambda k, x: abs(x) ** 2,
}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda k, x, y: x + y,
    "subtract": lambda k, x, y: k.ops.subtract(x, y),
    "multiply": lambda k, x, y: x * y,
    "maximum": lambda k, x, y: k.ops.maximum(x, y),
    "divide": lambda k, x, y: x / (k.ops.square(y) + 1.0),
    "stack": lambda k, x, y: k.ops.mean(k.ops.stack([x, y], axis=1), axis=1),
    "layer add": lambda k, x, y: k.layers.Add()([x, y]),
    "layer concatenate": lambda k, x, y: k.layers.Dense(CHANNELS)(k.layers.Concatenate()([x, y])),
    "einsum": lambda k, x, y: k.ops.einsum("...c,...c->...c", x, y),
}
#: of (n, ROWS, CHANNELS), a row of it
ONE_ROW: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda k, x: x[:, 0],
    "last": lambda k, x: x[:, -1, :],
    "unstack": lambda k, x: k.ops.unstack(x, axis=1)[2],
    "mean": lambda k, x: k.ops.mean(x, axis=1),
    "var": lambda k, x: k.ops.var(x, axis=1),
    "norm": lambda k, x: k.ops.norm(x, axis=1),
    "logsumexp": lambda k, x: k.ops.logsumexp(x, axis=1),
    "amax": lambda k, x: k.ops.amax(x, axis=1),
    "squeeze": lambda k, x: k.ops.squeeze(x[:, 1:2], axis=1),
    "pooling": lambda k, x: k.layers.GlobalAveragePooling1D()(x),
    "flatten": lambda k, x: k.layers.Dense(CHANNELS)(k.layers.Flatten()(x)),
    "take": lambda k, x: k.ops.take(x, 1, axis=1),
}
#: of (n, CHANNELS), as many rows
MANY_ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "stack": lambda k, x: k.ops.stack([x, 2 * x, x, -x], axis=1),
    "repeat": lambda k, x: k.ops.repeat(k.ops.expand_dims(x, 1), ROWS, axis=1),
    "layer": lambda k, x: k.layers.RepeatVector(ROWS)(x),
    "tile": lambda k, x: k.ops.tile(x[:, None], (1, ROWS, 1)),
}
LAYERS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda k: k.layers.Dense(CHANNELS),
    "dense, tanh": lambda k: k.layers.Dense(CHANNELS, activation="tanh", use_bias=False),
    "normalization": lambda k: k.layers.LayerNormalization(),
    "batch normalization": lambda k: k.layers.BatchNormalization(),
    "chain": lambda k: k.Sequential([k.layers.Dense(CHANNELS), k.layers.ReLU(), k.layers.Dense(CHANNELS)]),
    "network": lambda k: _inner(k),
}


def _inner(k: Any) -> Any:
    """A model as a layer, whose own order matters."""
    x = k.Input((CHANNELS,))
    a, b = k.layers.Dense(CHANNELS)(x), k.layers.Dense(CHANNELS)(x)
    return k.Model(x, k.layers.Dense(CHANNELS)(k.ops.std(a, axis=-1, keepdims=True) * b) + b)


def model_of(k: Any, random: np.random.Generator) -> Any:
    """The graph that these random numbers say."""

    def one_of(table: dict[str, Any]) -> Any:
        return table[str(random.choice(list(table)))]

    shapes = [(ROWS, CHANNELS) if random.random() < 0.7 else (CHANNELS,) for _ in range(random.integers(1, 4))]
    inputs = [k.Input(shape, name=f"in_{'cab'[i]}") for i, shape in enumerate(shapes)]
    tensors, used = list(inputs), []
    for _ in range(random.integers(4, 16)):
        x = tensors[random.integers(len(tensors))]
        kind = random.random()
        if kind < 0.35:
            shared = [layer for layer in used if random.random() < 0.3 and len(x.shape) == 2]
            layer = shared[0] if shared else one_of(LAYERS)(k)
            if len(x.shape) == 2:
                used.append(layer)
            elif isinstance(layer, k.Model):
                layer = k.layers.Conv1D(CHANNELS, 3, padding="same")
            tensors.append(layer(x))
        elif kind < 0.6:
            tensors.append(one_of(UNARY)(k, x))
        elif kind < 0.8:
            others = [y for y in tensors if len(y.shape) == len(x.shape)]
            tensors.append(one_of(BINARY)(k, x, others[random.integers(len(others))]))
        else:
            tensors.append(one_of(ONE_ROW if len(x.shape) == 3 else MANY_ROWS)(k, x))
    count = min(int(random.integers(1, 5)), len(tensors) - len(inputs))
    places = random.permutation(np.arange(len(inputs), len(tensors)))[:count]
    chosen = [tensors[place] for place in places]
    chosen = [k.layers.Dense(CHANNELS)(x) if random.random() < 0.6 else x for x in chosen]
    kind = random.integers(4)
    outputs = chosen if kind == 0 else tuple(chosen) if kind == 1 else {f"o{i}": x for i, x in enumerate(chosen)}
    if kind == 3:
        outputs = {"z": chosen[0], "a": chosen[1:]} if len(chosen) > 1 else chosen[0]
    as_dict = random.random() < 0.3
    return k.Model({x.name: x for x in inputs} if as_dict else inputs, outputs)


def run(seed: int) -> None:
    try:
        keras = import_keras()
    except pytest.skip.Exception as reason:
        trials.count("graphs", f"skipped: {reason}")
        return
    for index in range(GRAPHS):
        trials.keep("graph.txt", f"seed {seed}, graph {index}".encode())
        try:
            trials.count(try_graph(keras, (seed, index)), "right")
        except Exception as error:
            raise AssertionError(f"seed {seed}, graph {index}: {error}") from error


def try_graph(keras: Any, seed: tuple[int, ...]) -> str:
    """Compares one graph; gives the way that its weights went.  Raises AssertionError where something differs."""
    models = []
    for k in (keras, pydtconv):
        k.utils.clear_session(free_memory=False)
        models.append(model_of(k, np.random.default_rng(seed)))
    theirs, ours = models
    random = np.random.default_rng((*seed, 1))
    for model in models:
        names = [[each.name for each in part] for part in (model.operations, model.layers)]
        names.append([variable.path for variable in model.variables])
        if model is theirs:
            expected = names
    assert names == expected, f"names are {names}, expected {expected}"
    data = [random.standard_normal((BATCH, *x.shape[1:])).astype("float32") for x in theirs.inputs]
    data = dict(zip([x.name for x in theirs.inputs], data, strict=True)) if isinstance(theirs.input, dict) else data
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        way = str(random.choice(list(WAYS)))
        ours, theirs = WAYS[way](ours, theirs, Path(folder), random)
    compare(theirs.predict(data, verbose=0), ours.predict(data, verbose=0))
    return way


def compare(expected: Any, found: Any) -> None:
    """The outputs in one structure, where files make lists of tuples."""
    structures = [json.dumps(tree.map_structure(lambda _: 0, each), sort_keys=True) for each in (found, expected)]
    assert structures[0] == structures[1], f"outputs are {structures[0]}, expected {structures[1]}"
    for a, b in zip(tree.flatten(expected), tree.flatten(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-4)


def _drawn(model: Any, random: np.random.Generator) -> None:
    """Weights of which no two are equal."""
    model.set_weights([random.uniform(0.1, 0.8, w.shape).astype("float32") for w in model.get_weights()])


def _arrays(ours: Any, theirs: Any, folder: Path, random: np.random.Generator) -> tuple[Any, Any]:
    _drawn(theirs, random)
    ours.set_weights(theirs.get_weights())
    return ours, theirs


def _weights_of_keras(ours: Any, theirs: Any, folder: Path, random: np.random.Generator) -> tuple[Any, Any]:
    _drawn(theirs, random)
    theirs.save_weights(folder / "a.weights.h5")
    ours.load_weights(folder / "a.weights.h5")
    return ours, theirs


def _our_weights(ours: Any, theirs: Any, folder: Path, random: np.random.Generator) -> tuple[Any, Any]:
    _drawn(ours, random)
    ours.save_weights(folder / "a.weights.h5")
    theirs.load_weights(folder / "a.weights.h5")
    return ours, theirs


def _file_of_keras(name: str) -> Callable[..., tuple[Any, Any]]:
    def way(ours: Any, theirs: Any, folder: Path, random: np.random.Generator) -> tuple[Any, Any]:
        _drawn(theirs, random)
        _train(theirs, random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.save(folder / name)
        ours = pydtconv.saving.load_model(folder / name)
        _compare_slots(ours, theirs)
        return ours, theirs

    return way


def _our_file(ours: Any, theirs: Any, folder: Path, random: np.random.Generator) -> tuple[Any, Any]:
    _drawn(ours, random)
    _train(ours, random)
    ours.save(folder / "a.keras")
    theirs = import_keras().saving.load_model(folder / "a.keras")
    _compare_slots(ours, theirs)
    return ours, theirs


def _train(model: Any, random: np.random.Generator) -> None:
    """One step, so that the slots of an optimizer hold something."""
    if not model.trainable_variables:
        return
    model.compile("adam", "mse")
    x = tree.map_structure(lambda t: random.standard_normal((BATCH, *t.shape[1:])).astype("float32"), model.input)
    y = tree.map_structure(lambda t: random.standard_normal((BATCH, *t.shape[1:])).astype("float32"), model.output)
    model.fit(x, y, epochs=1, verbose=0)


def _compare_slots(ours: Any, theirs: Any) -> None:
    if not theirs.trainable_variables:
        return
    found, expected = ours.optimizer.variables, theirs.optimizer.variables
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a.value), np.asarray(b.value.detach()), rtol=1e-5, atol=1e-7)


WAYS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "arrays": _arrays,
    "weights of Keras": _weights_of_keras,
    "our weights": _our_weights,
    "file of Keras": _file_of_keras("a.keras"),
    "old file of Keras": _file_of_keras("a.h5"),
    "our file": _our_file,
}
