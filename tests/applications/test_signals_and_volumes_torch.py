"""U-Nets, CosmoFlow and the residual network of signals against PyTorch from equal weights, ten steps of training.

The networks are written anew here, as PyTorch has them: channels first, functions of the weights.
"""

from collections import defaultdict

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
F = torch.nn.functional
pytestmark = pytest.mark.slow

STEPS, RATE, MOMENTUM = 10, 0.01, 0.9
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOL = {2: F.max_pool2d, 3: F.max_pool3d}


class Weights:
    """The weights of a model of ours as parameters of PyTorch, those of the next layer of a kind at a time."""

    def __init__(self, model):
        self.layers = [(kind(layer), [tensor(weight) for weight in layer.weights]) for layer in model.layers]
        self.parameters = [weight for _, weights in self.layers for weight in weights]

    def rewind(self):
        self.left = defaultdict(list)
        for name, weights in self.layers:
            if weights:
                self.left[name].append(weights)

    def take(self, name):
        return self.left[name].pop(0)


def kind(layer):
    return type(layer).__name__.rstrip("123D")


def tensor(weight):
    return torch.tensor(weight.numpy(), requires_grad=True)


def conv(x, weights):
    """Padding "same" at strides of 1: of an even kernel one more behind."""
    kernel, *bias = weights.take("Conv")
    axes = kernel.dim() - 2
    sides = [side for size in reversed(kernel.shape[:axes]) for side in ((size - 1) // 2, size // 2)]
    return CONV[axes](F.pad(x, sides), kernel.movedim((-1, -2), (0, 1)), *bias)


def normalized(x, weights):
    gamma, beta, _, _ = weights.take("BatchNormalization")
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-5)


def dense(x, weights):
    kernel, bias = weights.take("Dense")
    return x @ kernel + bias


def unet(x, weights, levels, normalize):
    axes = x.dim() - 2

    def twice(x):
        for _ in range(2):
            x = conv(x, weights)
            x = F.relu(normalized(x, weights) if normalize else x)
        return x

    kept = []
    for level in range(levels):
        x = twice(MAX_POOL[axes](x, 2) if level else x)
        kept.append(x)
    for beside in kept[-2::-1]:
        kernel, bias = weights.take(f"Conv{axes}DTranspose")
        x = TRANSPOSED[axes](x, kernel.movedim((-1, -2), (0, 1)), bias, stride=2)
        x = twice(torch.cat([beside, x], 1))
    return conv(x, weights)


def cosmoflow(x, weights, convolutions, hidden):
    for i in range(convolutions):
        x = F.leaky_relu(conv(x, weights), 0.3)
        x = F.avg_pool3d(x, 2) if i + 1 < convolutions else x
    x = x.movedim(1, -1).flatten(1)
    for _ in range(hidden):
        x = F.leaky_relu(dense(x, weights), 0.3)
    return dense(x, weights)


def resnet1d(x, weights, filters):
    for count in filters:
        y = F.relu(normalized(conv(x, weights), weights))
        y = F.relu(normalized(conv(y, weights), weights))
        y = conv(y, weights)
        if x.shape[1] != count:
            x = conv(x, weights)
        y = normalized(y, weights)
        x = F.relu(y + normalized(x, weights))
    return dense(x.mean(2), weights)


CASES = {
    "unet": ((16, 8, 2), {"filters": 4, "levels": 3}, lambda x, w: unet(x, w, 3, False)),
    "unet normalized": ((16, 8, 2), {"filters": 4, "levels": 3, "normalize": True}, lambda x, w: unet(x, w, 3, True)),
    "unet3d": ((8, 4, 8, 2), {"filters": 2, "levels": 3}, lambda x, w: unet(x, w, 3, True)),
    "cosmoflow": ((8, 8, 8, 1), {"filters": (4, 8, 8), "units": (12, 8)}, lambda x, w: cosmoflow(x, w, 3, 2)),
    "resnet1d": ((24, 2), {"filters": (8, 8)}, lambda x, w: resnet1d(x, w, (8, 8))),
}


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-8), ("float32", 1e-3)])
@pytest.mark.parametrize("case", CASES)
def test_ten_steps(case, dtype, rtol):
    keras.config.set_floatx(dtype)
    keras.utils.set_random_seed(4)
    shape, options, network = CASES[case]
    model = applications.build(case.split()[0], input_shape=shape, classes=3, **options)
    values = case == "cosmoflow"
    model.compile(
        keras.optimizers.SGD(RATE, momentum=MOMENTUM),
        "mean_squared_error" if values else "sparse_categorical_crossentropy",
    )
    weights, rng = Weights(model), np.random.default_rng(2)
    velocities = [torch.zeros_like(weight) for weight in weights.parameters]
    losses = []
    for _ in range(STEPS):
        x = rng.standard_normal((4, *shape)).astype(dtype)
        y_shape = (4, *model.output_shape[1:])
        y = rng.standard_normal(y_shape).astype(dtype) if values else rng.integers(0, 3, y_shape[:-1])
        weights.rewind()
        outputs = network(torch.tensor(x).movedim(-1, 1), weights)
        expected = (F.mse_loss if values else F.cross_entropy)(outputs, torch.tensor(y))
        gradients = torch.autograd.grad(expected, weights.parameters, allow_unused=True)  # None: of moving averages
        with torch.no_grad():
            for weight, velocity, gradient in zip(weights.parameters, velocities, gradients, strict=True):
                if gradient is not None:
                    weight -= RATE * velocity.mul_(MOMENTUM).add_(gradient)
        model.reset_metrics()
        losses.append((float(model.train_on_batch(x, y)), float(expected.detach())))
    assert not any(weights.left.values())
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=rtol)
    for weight, expected in zip(model.weights, weights.parameters, strict=True):
        if "moving" not in weight.path:
            scale = np.abs(expected.detach().numpy()).max()
            np.testing.assert_allclose(
                weight.numpy(), expected.detach().numpy(), rtol=0, atol=10 * rtol * scale, err_msg=weight.path
            )
