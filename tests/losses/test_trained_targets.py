"""Gradients of losses by their targets, which are Keras's."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

RNG = np.random.default_rng(0)
NAMES = (
    "MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError", "Huber",
    "LogCosh", "KLDivergence", "Poisson", "CosineSimilarity", "CategoricalCrossentropy", "BinaryCrossentropy",
)  # fmt: skip
CASES = [(name, {}) for name in NAMES]
CASES += [(name, {"from_logits": True}) for name in ("CategoricalCrossentropy", "BinaryCrossentropy")]
CASES += [(name, {"label_smoothing": 0.1}) for name in ("CategoricalCrossentropy", "BinaryCrossentropy")]
CASES += [("Huber", {"delta": 0.05})]
CASES += [(name, {}) for name in ("Hinge", "SquaredHinge", "CategoricalHinge")]


def distributions(count):
    values = RNG.random((count, 5)).astype("float32") + 0.1
    return values / values.sum(-1, keepdims=True)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_gradients_by_both_are_those_of_keras(name, options) -> None:
    keras = import_keras()
    if keras.backend.backend() != "torch":
        pytest.skip("takes gradients by PyTorch")
    import torch

    y_true, y_pred = distributions(4), distributions(4)
    operands = [torch.tensor(array, requires_grad=True) for array in (y_true, y_pred)]
    want = torch.autograd.grad(getattr(keras.losses, name)(**options)(*operands), operands)
    with pydtconv.GradientTape() as tape:
        tape.watch([y_true, y_pred])
        loss = getattr(pydtconv.losses, name)(**options)(y_true, y_pred)
    for found, gradient in zip(tape.gradient(loss, [y_true, y_pred]), want, strict=True):
        np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-4, atol=1e-6)
    given = getattr(pydtconv.losses, name)(**options)(y_true, y_pred)  # by the loss's own operator
    np.testing.assert_allclose(float(loss), float(given), rtol=1e-5)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_hinges_of_zeros_and_ones_have_keras_gradients(name) -> None:
    import_keras()
    import keras
    import torch

    y_true, y_pred = np.array([[0, 1, 1], [1, 0, 0]], "float32"), np.array([[0.3, -0.2, 0.5], [2, -3, 0.1]], "float32")
    operands = [torch.tensor(array, requires_grad=True) for array in (y_true, y_pred)]
    want = torch.autograd.grad(getattr(keras.losses, name)(*operands).sum(), operands)
    with pydtconv.GradientTape() as tape:
        tape.watch([y_true, y_pred])
        loss = pydtconv.ops.sum(getattr(pydtconv.losses, name)(y_true, y_pred))
    for found, gradient in zip(tape.gradient(loss, [y_true, y_pred]), want, strict=True):
        np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-5, atol=1e-6)


class Distiller(pydtconv.Model):
    """Two networks that learn from each other."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.teacher, self.student = pydtconv.layers.Dense(3), pydtconv.layers.Dense(3)
        self.teacher.trainable = not fixed

    def call(self, x):
        return self.student(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return pydtconv.losses.MeanSquaredError()(self.teacher(x), y_pred)


@pytest.mark.parametrize("fixed", [False, True])
def test_a_teacher_learns_in_fit_unless_it_is_frozen(fixed) -> None:
    x = RNG.normal(size=(8, 4)).astype("float32")
    model = Distiller(fixed)
    model(x)
    model.teacher(x)
    model.compile(pydtconv.optimizers.SGD(0.1))
    before = [layer.kernel.numpy() for layer in (model.teacher, model.student)]
    model.fit(x, x[:, :3], batch_size=8, verbose=0)
    changes = [layer.kernel.numpy() - old for layer, old in zip((model.teacher, model.student), before, strict=True)]
    assert np.abs(changes[1]).max() > 1e-4
    np.testing.assert_allclose(changes[0], 0 * changes[1] if fixed else -changes[1], rtol=1e-3, atol=1e-6)
    own = [node.op.name for node in model._pydt_steps.plans[-1].graph.nodes if "Elementwise" in type(node.op).__name__]
    assert bool(own) is fixed  # what is given takes one operator


def test_symbolic_targets_that_layers_make_are_trained():
    x = pydtconv.Input((3,))
    target = pydtconv.layers.Dense(2, name="target")(x)
    loss = pydtconv.losses.mean_squared_error(target, pydtconv.layers.Dense(2)(x))
    model = pydtconv.Model(x, pydtconv.ops.expand_dims(loss, -1))
    model.compile("sgd", "mse")
    before = model.get_layer("target").get_weights()[0]
    model.train_on_batch(np.ones((4, 3)), np.zeros((4, 1)))
    assert (model.get_layer("target").get_weights()[0] != before).any()
