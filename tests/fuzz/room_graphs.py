"""Random networks as plans of every kind, against a naive executor in float64: results, state, loss, gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pydtconv
from pydtconv import config, layers, losses
from pydtconv.conv import VARIANTS
from pydtconv.graph import Graph, Plan, build_plan
from pydtconv.graph.plan import MemoryLimitError
from pydtconv.graph.runtime.executor import Executor
from pydtconv.graph.runtime.memory import Memory
from pydtconv.ops.base import Spec
from tests.fuzz import trials
from tests.fuzz.naive import Naive

NETWORKS, PLANS = 4, 6
RTOL = {"float32": 1e-3, "float64": 1e-9}
#: relative changes of inputs and parameters, and how far a result may move by them and still be compared: at the edge
#: of a ReLU or between two maxima of a window rounding decides which gradient is right
NUDGE = {"float32": 2e-6, "float64": 2e-12}
PIXELS, CLASSES = 4000, 4


@dataclass
class Net:
    """A network, what goes in, and what its loss is."""

    model: Any
    loss: Any
    arrays: dict[str, np.ndarray]
    values: list[np.ndarray] = field(default_factory=list)

    def trace(self, training: bool) -> Graph:
        graph = Graph(training=training)
        with graph:
            x = graph.input("x", Spec(self.arrays["x"].shape, config.floatx()))
            y = graph.input("y", Spec(self.arrays["y"].shape, self.arrays["y"].dtype.name))
            prediction = self.model(x, training=training)
            loss = self.loss(y, prediction)
        graph.outputs = {"prediction": prediction, "loss": loss}
        graph.loss = loss if training else None
        return graph


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(NETWORKS):
        dtype = str(random.choice(("float32", "float64")))
        config.set_floatx(dtype)
        net = _network(random)
        training = bool(random.random() < 0.8)
        told = f"seed {seed}, network {index}, {dtype}"
        trials.keep("network.txt", told.encode())
        want, moved = (_naive(net, training, nudge) for nudge in (0.0, NUDGE[dtype]))
        for _ in range(PLANS):
            try:
                _try(net, training, want, moved, random, told)
            except Exception as error:
                raise AssertionError(f"{error}\n{_drawn(net)}") from error


def _try(
    net: Net,
    training: bool,
    want: dict[str, np.ndarray],
    moved: dict[str, np.ndarray],
    random: np.random.Generator,
    told: str,
) -> None:
    dtype = config.floatx()
    plan, how = _plan(net, training, random)
    told = f"{told}: {how}, {plan.variant}, x {net.arrays['x'].shape}, training {training}"
    memory = Memory()
    _reset(net)
    executor = Executor(plan, memory)
    for run in range(2):  # a second run finds in the arena what the first has left
        _reset(net)
        if memory.store is not None:
            memory.store.gradients[...] = np.nan
        got = executor.run(net.arrays)
        for name, value in got.items():
            _compare(value, want[name], moved[name], dtype, f"{name}, run {run} of {told}")
        for variable in net.model.variables:
            _compare(variable.value, want[variable.path], moved[variable.path], dtype, f"{variable.path} of {told}")
        gradients = [name for name in want if name.startswith("d ")]
        # some are sums of what cancels, as of a bias before a normalization: beside the others they are zero
        least = 0.1 * max((np.abs(want[name]).max(initial=0) for name in gradients), default=0)
        if training and memory.store is not None:
            found = {f"d {variable.path}": memory.store.gradient_of(variable) for variable in memory.store.variables}
            if set(found) != set(gradients):
                raise AssertionError(f"gradients of {sorted(found)}, expected {sorted(gradients)}, {told}")
            for name, value in found.items():
                _compare(value, want[name], moved[name], dtype, f"{name}, run {run} of {told}", least)
        elif training and gradients:
            raise AssertionError(f"no gradients of {told}")
    trials.count(f"{dtype} {'training' if training else 'inference'}, {how}", "right")


def _naive(net: Net, training: bool, nudge: float) -> dict[str, np.ndarray]:
    """Results, variables afterwards and gradients by name; the numbers that go in are moved a little by `nudge`."""
    random = np.random.default_rng(5)
    _reset(net)
    graph = net.trace(training)

    def nudged(array: np.ndarray) -> np.ndarray:
        return array * (1 + nudge * random.uniform(-1, 1, array.shape)) if array.dtype.kind == "f" else array

    inputs = {name: nudged(array) for name, array in net.arrays.items()}
    naive = Naive(graph, inputs, [nudged(np.asarray(tensor.variable.value)) for tensor in graph.parameters])
    found = {name: naive.values[tensor] for name, tensor in graph.outputs.items()}
    found |= {variable.path: np.asarray(variable.value, "float64") for variable in net.model.variables}
    for tensor in graph.parameters:
        assert tensor.variable is not None
        found[tensor.variable.path] = naive.values[tensor]
        if tensor in naive.gradients:
            found[f"d {tensor.variable.path}"] = naive.gradients[tensor]
    return found


def _compare(got: np.ndarray, want: np.ndarray, moved: np.ndarray, dtype: str, told: str, least: float = 0.0) -> None:
    scale = max(np.abs(want).max(initial=0), 1e-3, least)
    if not np.isfinite(want).all() or np.abs(want - moved).max(initial=0) > RTOL[dtype] / 20 * scale:
        trials.count(f"{dtype} arrays", "left out: rounding decides")
        return
    error = np.abs(got - want).max(initial=0) / scale
    if not error <= RTOL[dtype]:
        raise AssertionError(f"error {error:.2e} in {told}")
    trials.count(f"{dtype} arrays", "right")


def _reset(net: Net) -> None:
    for variable, value in zip(net.model.variables, net.values, strict=True):
        variable.value[...] = value


def _plan(net: Net, training: bool, random: np.random.Generator) -> tuple[Plan, str]:
    """A plan and its kind: a variant, a limit of memory, tensors to recompute, threads."""
    config.set_num_threads(int(random.integers(1, 3)))
    variant = str(random.choice(list(VARIANTS)))
    kind = str(random.choice(("plain", "memory limit", "recompute")))
    graph = net.trace(training)
    if kind == "recompute":
        tensors = [node.outputs[0] for node in graph.nodes]
        share = random.choice((0.0, 0.3, 0.7, 1.0))
        return build_plan(graph, variant, recompute=[t for t in tensors if random.random() < share]), kind
    plan = build_plan(graph, variant)
    if kind == "plain":
        return plan, kind
    limit = int(plan.peak_bytes * random.uniform(0.2, 1.0))
    try:
        limited = build_plan(net.trace(training), variant, memory_limit=limit)
    except MemoryLimitError as error:
        limit = error.smallest_bytes
        limited = build_plan(net.trace(training), variant, memory_limit=limit)
    if limited.peak_bytes > limit:
        raise AssertionError(f"a plan of {limited.peak_bytes} bytes for a limit of {limit}: {_drawn(net)}")
    return limited, kind


# -- networks ----------------------------------------------------------------------------------------------------------


def _network(random: np.random.Generator) -> Net:
    height, width, channels = (int(v) for v in (*random.integers(1, 14, 2), random.integers(1, 10)))
    batch = int(random.choice((1, 2, 3, 5)))
    inputs = pydtconv.Input((height, width, channels))
    live = [inputs]
    for _ in range(int(random.integers(2, 14))):
        make = GROWTH[random.integers(len(GROWTH))]
        x = live[-1] if random.random() < 0.6 else live[random.integers(len(live))]
        try:
            y = make(x, live, random)
        except ValueError as error:
            if "empty" not in str(error) and "does not fit" not in str(error):
                raise
            continue
        if np.prod(y.shape[1:]) <= PIXELS:
            live.append(y)
    x = live[-1]
    if random.random() < 0.5:  # whatever has been left behind goes into the result, too
        ends = [layers.GlobalAveragePooling2D()(end) for end in live[-3:]]
        x = layers.Concatenate()(ends) if len(ends) > 1 else ends[0]
    else:
        x = (layers.Flatten, layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D)[random.integers(3)]()(x)
    if random.random() < 0.3:
        x = layers.Dense(int(random.integers(1, 20)), activation=_activation(random))(x)
    kind = random.integers(3)
    outputs = layers.Dense(CLASSES, activation="softmax" if kind == 0 else None)(x)
    model = pydtconv.Model(inputs, outputs)
    arrays = {"x": random.standard_normal((batch, height, width, channels)).astype(config.floatx())}
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


def _drawn(net: Net) -> str:
    """The nodes of the graph, a line each."""
    lines = []
    for node in net.trace(True).nodes:
        inputs = ", ".join(f"{tensor.name} {tensor.shape}" for tensor in node.inputs)
        lines.append(f"  {node.name} = {node.op} of {inputs}")
    return "\n".join(lines)


def _activation(random: np.random.Generator) -> str | None:
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
        "activation": _activation(random) if random.random() < 0.5 else None,
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


GROWTH: tuple[Callable[[Any, list[Any], np.random.Generator], Any], ...] = (
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
    lambda x, live, random: layers.Activation(_activation(random) or "linear")(x),
    lambda x, live, random: layers.ReLU()(x),
    lambda x, live, random: layers.Permute((2, 1, 3))(x),
    lambda x, live, random: layers.Permute((3, 1, 2))(x),
    lambda x, live, random: layers.Dense(int(random.integers(1, 9)), activation=_activation(random))(x),
    lambda x, live, random: layers.UpSampling2D(2)(x),
    lambda x, live, random: layers.Dropout(0.0)(x),
    lambda x, live, random: layers.Reshape((x.shape[2], x.shape[1], x.shape[3]))(x),
)
