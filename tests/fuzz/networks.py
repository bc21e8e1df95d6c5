"""Random networks of images for the rooms of graphs: what grows them, and what goes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pydtconv
from pydtconv import config, layers, losses
from pydtconv.graph import Graph
from pydtconv.ops.base import Spec

PIXELS, CLASSES = 4000, 4
Grow = Callable[[Any, list[Any], np.random.Generator], Any]


@dataclass
class Net:
    """A network, what goes in, and what its loss is."""

    model: Any
    loss: Any
    arrays: dict[str, np.ndarray]
    values: list[np.ndarray] = field(default_factory=list)

    def call(self, x: Any, training: bool) -> Any:
        return self.model(x, training=training)

    def trace(self, training: bool) -> Graph:
        graph = Graph(training=training)
        with graph:
            x = graph.input("x", Spec(self.arrays["x"].shape, self.arrays["x"].dtype.name))
            y = graph.input("y", Spec(self.arrays["y"].shape, self.arrays["y"].dtype.name))
            prediction = self.call(x, training)
            loss = self.loss(y, prediction)
        graph.outputs = {"prediction": prediction, "loss": loss}
        graph.loss = loss if training else None
        return graph


def drawn(net: Net) -> str:
    """The nodes of the graph, a line each."""
    lines = []
    for node in net.trace(True).nodes:
        inputs = ", ".join(f"{tensor.name} {tensor.shape}" for tensor in node.inputs)
        lines.append(f"  {node.name} = {node.op} of {inputs}")
    return "\n".join(lines)


def images(random: np.random.Generator) -> Net:
    """A network of images."""
    shape = tuple(int(v) for v in (*random.integers(1, 14, 2), random.integers(1, 10)))
    inputs = pydtconv.Input(shape)
    live = grown(inputs, GROWTH, random)
    x = live[-1]
    if random.random() < 0.5:  # whatever has been left behind goes into the result, too
        ends = [layers.GlobalAveragePooling2D()(end) for end in live[-3:]]
        x = layers.Concatenate()(ends) if len(ends) > 1 else ends[0]
    else:
        x = (layers.Flatten, layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D)[random.integers(3)]()(x)
    return closed(inputs, x, random)


def grown(inputs: Any, growth: tuple[Grow, ...], random: np.random.Generator) -> list[Any]:
    """Tensors that begin with the inputs, each made of those before; what makes no sense for them is left out."""
    live = [inputs]
    for _ in range(int(random.integers(2, 14))):
        make = growth[random.integers(len(growth))]
        x = live[-1] if random.random() < 0.6 else live[random.integers(len(live))]
        try:
            y = make(x, live, random)
        except ValueError as error:
            if "empty" not in str(error) and "does not fit" not in str(error):
                raise
            continue
        if np.prod(y.shape[1:]) <= PIXELS:
            live.append(y)
    return live


def closed(inputs: Any, x: Any, random: np.random.Generator, whole: np.ndarray | None = None) -> Net:
    """The network from the inputs to vectors x, with classes, a loss, data and values; whole: the data, where given."""
    batch = int(random.choice((1, 2, 3, 5)))
    if random.random() < 0.3:
        x = layers.Dense(int(random.integers(1, 20)), activation=activation_of(random))(x)
    kind = random.integers(3)
    outputs = layers.Dense(CLASSES, activation="softmax" if kind == 0 else None)(x)
    model = pydtconv.Model(inputs, outputs)
    data = random.standard_normal((batch, *inputs.shape[1:])).astype(config.floatx())
    arrays = {"x": data if whole is None else whole[:batch]}
    if kind == 2:
        arrays["y"] = random.standard_normal((batch, CLASSES)).astype(config.floatx())
        loss: Any = losses.MeanSquaredError()
    else:
        arrays["y"] = random.integers(0, CLASSES, (batch, 1) if random.random() < 0.5 else batch).astype("int32")
        loss = losses.SparseCategoricalCrossentropy(from_logits=kind == 1)
    for layer in model.layers:
        layer.trainable = bool(random.random() < 0.9)
    net = Net(model, loss, arrays)
    for variable in model.variables:
        value = np.asarray(variable.value)
        if variable.path.endswith("variance"):
            value = random.uniform(0.5, 2, value.shape)
        elif value.ndim == 1:
            value = random.standard_normal(value.shape) + ("gamma" in variable.path)
        net.values.append(np.array(value, variable.dtype))
    return net


def activation_of(random: np.random.Generator) -> str | None:
    kinds = (None, "relu", "relu", "tanh", "sigmoid", "relu6", "leaky_relu", "elu", "swish", "gelu", "softplus")
    return kinds[random.integers(len(kinds))]


def _window(random: np.random.Generator) -> dict[str, Any]:
    """Arguments of a convolution."""
    strided = random.random() < 0.3
    return {
        "kernel_size": tuple(int(v) for v in random.choice(((1, 1), (3, 3), (3, 3), random.integers(1, 5, 2)))),
        "strides": int(random.integers(2, 4)) if strided else 1,
        "padding": str(random.choice(("same", "same", "valid"))),
        "use_bias": bool(random.random() < 0.5),
        "activation": activation_of(random) if random.random() < 0.5 else None,
    }


def _conv(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    window = _window(random)
    if window["strides"] == 1 and random.random() < 0.2:
        window["dilation_rate"] = 2
    divisors = [d for d in range(1, x.shape[-1] + 1) if x.shape[-1] % d == 0]
    groups = int(random.choice(divisors)) if random.random() < 0.2 else 1
    return layers.Conv2D(groups * int(random.integers(1, 12)), groups=groups, **window)(x)


def _depthwise(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    return layers.DepthwiseConv2D(depth_multiplier=int(random.integers(1, 3)), **_window(random))(x)


def _transposed(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    return layers.Conv2DTranspose(int(random.integers(1, 8)), **_window(random))(x)


def _block(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    """What the passes look for: convolution, normalization, ReLU."""
    y = layers.Conv2D(int(random.integers(1, 12)), int(random.choice((1, 3))), padding="same", use_bias=False)(x)
    y = layers.BatchNormalization(scale=bool(random.random() < 0.8), center=bool(random.random() < 0.8))(y)
    return layers.ReLU()(y) if random.random() < 0.8 else y


def _residual(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    y = layers.Conv2D(x.shape[-1], 3, padding="same", use_bias=bool(random.random() < 0.5))(x)
    y = layers.BatchNormalization()(y) if random.random() < 0.6 else y
    y = layers.Add()([y, x] if random.random() < 0.5 else [x, y])
    return layers.ReLU()(y) if random.random() < 0.7 else y


def _merged(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    """With whatever else has its shape, itself in need."""
    others = [other for other in live if other.shape == x.shape]
    kind = (layers.Add, layers.Subtract, layers.Multiply, layers.Maximum, layers.Average)[random.integers(5)]
    return kind()([x, others[random.integers(len(others))]])


def _concatenated(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    others = [other for other in live if other.shape[1:3] == x.shape[1:3]]
    chosen = [others[random.integers(len(others))] for _ in range(int(random.integers(1, 3)))]
    return layers.Concatenate()([x, *chosen])


def _pooled(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    kind = (layers.MaxPooling2D, layers.AveragePooling2D)[random.integers(2)]
    size = int(random.integers(2, 4))
    return kind(size, strides=int(random.integers(1, 4)), padding=str(random.choice(("same", "valid"))))(x)


def _padded(x: Any, live: list[Any], random: np.random.Generator) -> Any:
    top, bottom, left, right = (int(v) for v in random.integers(0, 3, 4))
    return layers.ZeroPadding2D(((top, bottom), (left, right)))(x)


GROWTH: tuple[Grow, ...] = (
    _conv,
    _conv,
    _depthwise,
    _transposed,
    _block,
    _block,
    _residual,
    _residual,
    _merged,
    _concatenated,
    _concatenated,
    _pooled,
    _pooled,
    _padded,
    _padded,
    lambda x, live, random: layers.BatchNormalization()(x),
    lambda x, live, random: layers.LayerNormalization()(x),
    lambda x, live, random: layers.Activation(activation_of(random) or "linear")(x),
    lambda x, live, random: layers.ReLU()(x),
    lambda x, live, random: layers.Permute((2, 1, 3))(x),
    lambda x, live, random: layers.Permute((3, 1, 2))(x),
    lambda x, live, random: layers.Dense(int(random.integers(1, 9)), activation=activation_of(random))(x),
    lambda x, live, random: layers.UpSampling2D(2)(x),
    lambda x, live, random: layers.Dropout(0.0)(x),
    lambda x, live, random: layers.Reshape((x.shape[2], x.shape[1], x.shape[3]))(x),
)
