"""Lists of losses for one output, and losses of several outputs together, beside Keras: history and weights."""

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(8, 3)).astype("float32")
Y1, Y2 = RANDOM.normal(size=(8, 1)).astype("float32"), RANDOM.integers(0, 2, (8, 1)).astype("float32")


def both_of(k):
    """A loss of a structure: the mean distance of its two parts."""

    def loss(y_true, y_pred):
        pairs = zip(*(y.values() if isinstance(y, dict) else y for y in (y_true, y_pred)), strict=True)
        return sum(k.ops.mean(k.ops.abs(t - p), axis=-1) for t, p in pairs)

    return loss


#: structure of outputs and targets, losses (of a module, which stands for Keras), their weights
CASES = {
    "one output": (lambda a, b: a, lambda k: ["mse"], None),
    "one output by name": (lambda a, b: a, lambda k: {"a": ["mse"]}, None),
    "nested": (lambda a, b: a, lambda k: [["mse"]], None),
    "list in list": (lambda a, b: [a, b], lambda k: ["mse", ["binary_crossentropy"]], [0.1, 2.0]),
    "list in dict": (lambda a, b: {"a": a, "b": b}, lambda k: {"a": "mse", "b": ["binary_crossentropy"]}, None),
    "structure in tuple": (lambda a, b: (a, b), lambda k: [both_of(k), ("mse", "mae")], None),
    "weighted": (lambda a, b: [a, b], lambda k: (both_of(k), ["mse", None]), (0.5, [2.0, None])),
    "structure in dict": (lambda a, b: {"a": a, "b": b}, lambda k: [both_of(k), {"a": "mse", "b": "mae"}], None),
    "inner": (lambda a, b: {"x": {"a": a, "b": b}, "z": a}, lambda k: {"x": both_of(k), "z": "mse"}, None),
}


def trained(k, structure, loss, weights, start=None):
    x = k.Input((3,))
    a, b = k.layers.Dense(1, name="a")(x), k.layers.Dense(1, activation="sigmoid", name="b")(x)
    model = k.Model(x, structure(a, b))
    if start is not None:
        model.set_weights(start)
    start = model.get_weights()
    model.compile(k.optimizers.SGD(0.1), loss(k), loss_weights=weights)
    history = model.fit(X, structure(Y1, Y2), batch_size=4, epochs=2, shuffle=False, verbose=0).history
    return history, model.get_weights(), start


@pytest.mark.parametrize("name", CASES)
def test_losses(name):
    ours, weights, start = trained(pydtconv, *CASES[name])
    theirs, expected, _ = trained(import_keras(), *CASES[name], start)
    assert ours.keys() == theirs.keys()
    for key, values in theirs.items():
        np.testing.assert_allclose(ours[key], values, rtol=1e-4, err_msg=key)
    for mine, other in zip(weights, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)


def test_several_losses_of_one_output_are_added():
    """Keras takes the same steps; its history has the last one's value alone."""
    both, weights, start = trained(pydtconv, lambda a, b: [a, b], lambda k: ["mse", ["mse", "mae"]], [1.0, 0.5, 2.0])
    _, expected, _ = trained(
        import_keras(), lambda a, b: [a, b], lambda k: ["mse", ["mse", "mae"]], [1.0, 0.5, 2.0], start
    )
    assert sorted(both) == ["a_loss", "b_loss", "loss"]
    np.testing.assert_allclose(both["loss"], np.add(both["a_loss"], both["b_loss"]), rtol=1e-6)
    for mine, other in zip(weights, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "weights", "message"),
    [
        (["mse", ["mse", "mae"]], [1.0, 2.0], "loss_weights: expected a number for each of 3 losses, got 2"),
        (
            ("mse", ["mse", "mae"]),
            None,
            r"of several outputs together: expected a function \(y_true, y_pred\), got 'mse'",
        ),
    ],
)
def test_what_cannot_be(loss, weights, message):
    with pytest.raises(ValueError, match=message):
        trained(pydtconv, lambda a, b: [a, b], lambda k: loss, weights)
