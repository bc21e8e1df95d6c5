"""ViT and ConvNeXt against PyTorch from equal weights: outputs and gradients in float64, and ten steps in float32."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications
from pydtconv.applications.convnext import _convnext

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.slow

SIZE, CLASSES, BATCH = 32, 10, 3


class Weights:
    """The weights of a model of ours, taken in order, as parameters of PyTorch."""

    def __init__(self, model, dtype):
        self.parameters = [torch.tensor(w.numpy().astype(dtype), requires_grad=True) for w in model.weights]
        self.left = iter(self.parameters)

    def take(self, count):
        return [next(self.left) for _ in range(count)]


def norm(x, weights):
    return F.layer_norm(x, x.shape[-1:], *weights, eps=1e-6)


def conv(x, kernel, bias, **options):
    """x channels last, kernel (kh, kw, ci, co)."""
    y = F.conv2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), bias, **options)
    return y.permute(0, 2, 3, 1)


def vit(x, weights, depth, heads):
    x = conv(x, *weights.take(2), stride=4).flatten(1, 2)
    (token,), (positions,) = weights.take(1), weights.take(1)
    x = torch.cat([token.expand(len(x), -1, -1), x], 1) + positions
    for _ in range(depth):
        first = weights.take(2)
        wq, bq, wk, bk, wv, bv, wo, bo = weights.take(8)
        second, (w1, b1, w2, b2) = weights.take(2), weights.take(4)
        y = norm(x, first)
        q, k, v = (torch.einsum("btc,chd->bhtd", y, w) + b[:, None] for w, b in ((wq, bq), (wk, bk), (wv, bv)))
        scores = torch.softmax(q @ k.transpose(-1, -2) / (wq.shape[2] ** 0.5), -1)
        x = x + torch.einsum("bhtd,hdc->btc", scores @ v, wo) + bo
        x = x + F.gelu(norm(x, second) @ w1 + b1) @ w2 + b2
    head_norm = weights.take(2)
    w, b = weights.take(2)
    return norm(x[:, 0], head_norm) @ w + b


def build_vit():
    return applications.ViT((SIZE, SIZE, 3), CLASSES, hidden=24, depth=2, heads=3)


def logits(model):
    """The model without its softmax."""
    model.layers[-1].activation = keras.activations.linear
    return model


def twins(dtype):
    keras.utils.set_random_seed(3)
    keras.config.set_floatx(dtype)
    model = logits(build_vit())
    rng = np.random.default_rng(1)
    model.set_weights([w.numpy() + 0.1 * rng.standard_normal(w.shape) for w in model.weights])
    x = rng.standard_normal((BATCH, SIZE, SIZE, 3)).astype(dtype)
    return model, x, rng.integers(0, CLASSES, BATCH)


def loss_of(model, dtype, x, y, parameters=None):
    weights = Weights(model, dtype)
    if parameters is not None:
        weights.parameters = parameters
        weights.left = iter(parameters)
    outputs = vit(torch.tensor(x), weights, depth=2, heads=3)
    return outputs, F.cross_entropy(outputs, torch.tensor(y)), weights.parameters


def test_outputs_and_gradients_of_vit():
    model, x, y = twins("float64")
    outputs, loss, parameters = loss_of(model, "float64", x, y)
    np.testing.assert_allclose(model.predict(x, verbose=0), outputs.detach().numpy(), rtol=1e-9, atol=1e-9)
    expected = torch.autograd.grad(loss, parameters)
    before = [w.numpy() for w in model.weights]
    model.compile(keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.train_on_batch(x, y)
    for old, weight, gradient in zip(before, model.weights, expected, strict=True):
        np.testing.assert_allclose(old - weight.numpy(), gradient.numpy(), rtol=1e-7, atol=1e-9, err_msg=weight.path)


def test_ten_steps_of_vit():
    model, x, y = twins("float32")
    _, _, parameters = loss_of(model, "float32", x, y)
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
    for step in range(10):
        optimizer.zero_grad()
        _, expected, _ = loss_of(model, "float32", x, y, parameters)
        expected.backward()
        optimizer.step()
        model.reset_metrics()
        assert float(model.train_on_batch(x, y)) == pytest.approx(float(expected.detach()), rel=1e-3), f"step {step}"


def convnext(x, weights, depths):
    for stage, depth in enumerate(depths):
        if stage:
            x = norm(x, weights.take(2))
        x = conv(x, *weights.take(2), stride=2 if stage else 4)
        if not stage:
            x = norm(x, weights.take(2))
        for _ in range(depth):
            kernel, bias, gamma, beta, w1, b1, w2, b2, scale = weights.take(9)
            y = norm(conv(x, kernel, bias, padding=3, groups=x.shape[-1]), (gamma, beta))
            x = x + scale * (F.gelu(y @ w1 + b1) @ w2 + b2)
    x = norm(x.mean((1, 2)), weights.take(2))
    w, b = weights.take(2)
    return x @ w + b


def test_outputs_and_gradients_of_convnext():
    keras.config.set_floatx("float64")
    depths = (1, 2, 1, 1)
    build = _convnext("Tiny", depths, (8, 12, 16, 20))
    model = build(
        weights=None, input_shape=(64, 64, 3), classes=CLASSES, classifier_activation=None, include_preprocessing=False
    )
    rng = np.random.default_rng(1)
    model.set_weights([w.numpy() + 0.1 * rng.standard_normal(w.shape) for w in model.weights])
    x, y = rng.standard_normal((BATCH, 64, 64, 3)), rng.integers(0, CLASSES, BATCH)
    weights = Weights(model, "float64")
    outputs = convnext(torch.tensor(x), weights, depths)
    np.testing.assert_allclose(model.predict(x, verbose=0), outputs.detach().numpy(), rtol=1e-9, atol=1e-9)
    expected = torch.autograd.grad(F.cross_entropy(outputs, torch.tensor(y)), weights.parameters)
    before = [w.numpy() for w in model.weights]
    model.compile(keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.train_on_batch(x, y)
    for old, weight, gradient in zip(before, model.weights, expected, strict=True):
        np.testing.assert_allclose(old - weight.numpy(), gradient.numpy(), rtol=1e-7, atol=1e-9, err_msg=weight.path)


def test_parameters_of_the_large_ones():
    assert applications.ViTTi16().count_params() == 5_717_416
    assert applications.ViTS16().count_params() == 22_050_664
    assert applications.ConvNeXtTiny(weights=None, include_preprocessing=False).count_params() == 28_589_128
