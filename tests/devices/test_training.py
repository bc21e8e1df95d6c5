"""Training on the device "host", and on a GPU: the plan, the backend and the kernels of GPUs, and the CPU's losses."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications, config, devices, layers, ops, utils
from pydtconv.kernels import MissingKernelError
from pydtconv.kernels.gpu.convolution import ConvBaseKernel
from tests.devices.accelerators import on_each

#: a network of the zoo, images, the learning rate at which float32 follows float64 within 1e-4 for so many steps (ten
#: of VGG's take a minute: its five poolings want 32 x 32 pixels)
NETWORKS = {
    "smallvgg16": ((32, 32, 3), 1e-4, 3),
    "resnet34": ((16, 16, 3), 1e-5, 10),
    "smalldensenet121": ((16, 16, 3), 1e-5, 10),
    "googlenet": ((16, 16, 3), 1e-5, 10),
}


def narrow(layer):
    """The layer with an eighth of its filters: the same plan in less time."""
    arguments = layer.get_config()
    for name in ("filters", "units"):
        if arguments.get(name, 0) > 16:
            arguments[name] //= 8
    return type(layer).from_config(arguments)


def losses_of(make, device, dtype, shape, optimizer, steps, classes=5, batch=4, words=0):
    """Losses of some steps on one batch, and predictions after them.  words: inputs are numbers below it."""
    config.set_floatx(dtype)
    utils.set_random_seed(3)
    model = make()
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(batch, *shape)), rng.integers(0, classes, size=batch)
    if words:
        x = rng.integers(0, words, size=(batch, *shape)).astype("int32")
    model.compile(optimizer(), "sparse_categorical_crossentropy", metrics=["accuracy"])
    with keras.device(device):
        losses = [model.train_on_batch(x, y)[0] for _ in range(steps)]
        return np.array(losses), model.predict_on_batch(x), model


@pytest.fixture
def _strict():
    """The CPU's plain sums, which round as little as a GPU's."""
    config.set_conv_precision("strict")
    yield
    config.set_conv_precision("fast")


@pytest.mark.slow
@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-9)])
@pytest.mark.parametrize("name", NETWORKS)
@on_each
def test_steps_of_the_four_networks(name, dtype, tolerance, device):
    shape, rate, steps = NETWORKS[name]

    def make():
        whole = applications.build(name, input_shape=shape, classes=5, weights=None)
        return keras.models.clone_model(whole, clone_function=narrow)

    def optimizer():
        return keras.optimizers.SGD(rate, momentum=0.9)

    want, _, _ = losses_of(make, "cpu", dtype, shape, optimizer, steps)
    if device == "host" and name != "smallvgg16":  # where convgemm takes four times as long as im2col
        config.set_conv_variant("BASE")
    try:
        got, _, _ = losses_of(make, device, dtype, shape, optimizer, steps)
    finally:
        config.set_conv_variant("AUTO")
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
    assert len(set(got.tolist())) == steps


@pytest.mark.slow
@on_each
def test_the_network_of_the_guide(device):
    """ResNet20, whose shortcuts are padded."""

    def make():
        return applications.build("resnet20", input_shape=(8, 8, 3), classes=5, weights=None)

    def optimizer():
        return keras.optimizers.SGD(1e-3, momentum=0.9)

    want, _, _ = losses_of(make, "cpu", "float64", (8, 8, 3), optimizer, 3, batch=2)
    got, _, _ = losses_of(make, device, "float64", (8, 8, 3), optimizer, 3, batch=2)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("_strict")
@on_each
def test_convolutions_in_tf32(device):
    """Few channels, strides, groups: losses are off by the rounding of operands, and differ from those in float32."""

    def make():
        return keras.Sequential(
            [
                keras.Input((9, 9, 3)),
                layers.Conv2D(16, 3, padding="same", activation="relu"),
                layers.Conv2D(32, 3, strides=2, groups=2, use_bias=False),
                layers.BatchNormalization(),
                layers.Conv2D(12, 2, dilation_rate=2, activation="relu"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(5, activation="softmax"),
            ]
        )

    def optimizer():
        return keras.optimizers.SGD(0.02, momentum=0.9)

    if not devices.get(device).has_tf32:
        pytest.skip("this GPU has no TF32")
    want, _, _ = losses_of(make, "cpu", "float64", (9, 9, 3), optimizer, 4)
    exact, _, _ = losses_of(make, device, "float32", (9, 9, 3), optimizer, 4)
    config.set_float32_matmul_precision("high")
    try:
        got, _, model = losses_of(make, device, "float32", (9, 9, 3), optimizer, 4)
        with keras.device(device):
            plan = model.plan(4)
    finally:
        config.set_float32_matmul_precision("highest")
    assert {name for names in plan.algorithms.values() for name in names.values()} == {"convgemm"}
    assert "rounded to TF32" in str(plan)
    away, off = np.abs(got - want).max(), np.abs(exact - want).max()
    assert off < 1e-5 < away < 5e-3


def vit():
    """Its patches are a convolution; LayerNorm, Attention with dropout, GELU, a token that is concatenated."""
    return applications.build(
        "vit", input_shape=(8, 8, 3), classes=5, weights=None, hidden=12, depth=1, heads=2, dropout=0.2
    )


def convnext():
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 2, strides=2),
            layers.LayerNormalization(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.GroupNormalization(2),
            layers.Dense(8, activation="gelu"),
            layers.RMSNormalization(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, activation="softmax"),
        ]
    )


def unet():
    """Transposed convolutions; the classes of an image are the means of its pixels'."""
    whole = applications.build("unet", input_shape=(8, 8, 3), classes=5, weights=None, filters=3, levels=2)
    return keras.Model(whole.input, layers.GlobalAveragePooling2D()(whole.output))


def resized():
    """Random flips and crops with the CPU's numbers, and images whose extents change."""
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.RandomFlip("horizontal"),
            layers.RandomCrop(6, 6),
            layers.Resizing(5, 4, "bicubic", antialias=True),
            layers.Conv2D(4, 3, padding="same"),
            layers.UpSampling2D(2),
            layers.Conv2D(3, 3, padding="same", activation="relu"),
            layers.UpSampling2D((1, 2), interpolation="bilinear"),
            layers.Flatten(),
            layers.Dense(5, activation="softmax"),
        ]
    )


def of_masked_words():
    """Words of which 0 is none: their mask, choices by comparisons, and elements that are moved."""
    words = keras.Input((6,), dtype="int32")
    x = layers.Embedding(9, 8, mask_zero=True)(words)
    mean = layers.GlobalAveragePooling1D()(x)
    moved = ops.roll(ops.flip(x, axis=1), 2, axis=2)[:, ::2]
    kept = ops.where(ops.greater(moved, 0.0), moved, 0.1 * ops.sin(moved))
    counts = layers.CategoryEncoding(9, output_mode="multi_hot")(words)
    both = layers.Concatenate()([mean, layers.Flatten()(ops.take(kept, [0, 2, 2], axis=1)), counts])
    return keras.Model(words, layers.Dense(5, activation="softmax")(both))


def language_model():
    """Words, causal attention of grouped heads, and the weights of the embedding once more."""
    words = keras.Input((6,), dtype="int32")
    embedding = layers.ReversibleEmbedding(9, 8)
    x = embedding(words)
    x = layers.Add()([x, layers.GroupQueryAttention(4, 4, 2)(x, x, use_causal_mask=True)])
    x = layers.LayerNormalization()(x)
    x = embedding(layers.EinsumDense("abc,cd->abd", (None, 8), bias_axes="d")(x), reverse=True)
    return keras.Model(words, layers.Softmax()(layers.GlobalAveragePooling1D()(x)))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-9)])
@pytest.mark.parametrize(
    ("make", "shape", "words"),
    [
        *((make, (8, 8, 3), 0) for make in (vit, convnext, unet, resized)),
        *((make, (6,), 9) for make in (language_model, of_masked_words)),
    ],
    ids=["vit", "convnext", "unet", "resized", "language_model", "of_masked_words"],
)
@on_each
def test_networks_of_tokens_and_of_pixels(make, shape, words, dtype, tolerance, device):
    def optimizer():
        return keras.optimizers.AdamW(1e-3)

    want, _, _ = losses_of(make, "cpu", dtype, shape, optimizer, 4, words=words)
    got, _, model = losses_of(make, device, dtype, shape, optimizer, 4, words=words)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
    assert len(set(got.tolist())) == 4
    if words:
        with keras.device(device), pytest.raises(ValueError, match="index: expected numbers from 0 to 8, got 0 to 9"):
            model.predict_on_batch(np.array([[0, 1, 2, 3, 4, 9]], "int32"))


def convnet(**convolution):
    return lambda: keras.Sequential(
        [
            keras.Input((9, 8, 3)),
            layers.Conv2D(6, 3, padding="same", activation="relu", **convolution),
            layers.MaxPooling2D(),
            layers.Conv2D(5, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.3),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, activation="softmax", kernel_regularizer="l2"),
        ]
    )


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)),
    "nesterov": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=0.01, clipvalue=0.1),
    "adam": lambda: keras.optimizers.Adam(0.01),
    "amsgrad": lambda: keras.optimizers.AdamW(0.01, amsgrad=True),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.01, momentum=0.9, centered=True),
    "nadam": lambda: keras.optimizers.Nadam(0.01),
    "adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "adadelta": lambda: keras.optimizers.Adadelta(1.0),
    "adamax": lambda: keras.optimizers.Adamax(0.01),
    "lion": lambda: keras.optimizers.Lion(0.01),
    "ftrl": lambda: keras.optimizers.Ftrl(
        0.1, -0.6, l1_regularization_strength=0.01, l2_regularization_strength=0.1, beta=0.2
    ),
    "clipnorm": lambda: keras.optimizers.Adam(0.01, clipnorm=0.05),
    "global_clipnorm": lambda: keras.optimizers.SGD(0.5, momentum=0.9, global_clipnorm=0.1),
    "use_ema": lambda: keras.optimizers.Adam(0.01, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=3),
    "accumulation": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2, clipnorm=0.1, use_ema=True),
    "loss_scale": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), dynamic_growth_steps=2),
    # those whose step runs on the host
    "lamb": lambda: keras.optimizers.Lamb(0.01, weight_decay=0.01, use_ema=True),
    "lars": lambda: keras.optimizers.Lars(0.1),
    "muon": lambda: keras.optimizers.Muon(0.01),
    "adafactor": lambda: keras.optimizers.Adafactor(0.01, gradient_accumulation_steps=2),
    "schedule_free": lambda: keras.optimizers.ScheduleFreeAdamW(0.01),
}
#: of which the state is compared, too
OF_STATE = ("adam", "use_ema", "accumulation", "loss_scale", "lamb")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@on_each
def test_each_optimizer_takes_the_cpus_steps(optimizer, device):
    """With dropout of the CPU's bits; learning rates that change are not frozen in what is captured."""
    runs = [losses_of(convnet(), each, "float64", (9, 8, 3), OPTIMIZERS[optimizer], 4) for each in ("cpu", device)]
    for got, want in zip(runs[1][:2], runs[0][:2], strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)
    for mine, reference in zip(runs[1][2].weights, runs[0][2].weights, strict=True):
        np.testing.assert_allclose(mine.numpy(), reference.numpy(), atol=1e-10)
    if optimizer in OF_STATE:
        for mine, reference in zip(runs[1][2].optimizer.variables, runs[0][2].optimizer.variables, strict=True):
            np.testing.assert_allclose(mine.numpy(), reference.numpy(), atol=1e-10)


@pytest.mark.parametrize("steps", [4, pytest.param(6, marks=pytest.mark.slow)])
@on_each
def test_gradients_that_are_applied_in_the_middle_of_backward(device, steps):
    """A layer so large that its gradient is applied by rows: updates are steps of the plan, and are captured.

    Steps whose kernels differ, of six with moving averages and accumulated gradients, are captured each.
    """
    options = {"use_ema": True, "ema_overwrite_frequency": 2, "gradient_accumulation_steps": 2} if steps > 4 else {}

    def make():
        return keras.Sequential(
            [keras.Input((600,)), layers.Dense(4096, activation="tanh"), layers.Dense(5, "softmax")]
        )

    def optimizer():
        return keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.001, 1, 0.7), **options)

    runs = [losses_of(make, each, "float64", (600,), optimizer, steps) for each in ("cpu", device)]
    np.testing.assert_allclose(runs[1][0], runs[0][0], rtol=0, atol=1e-10)
    assert all(plan.applies_gradients for run in runs for plan in run[2]._pydt_steps.plans if plan.graph.training)
    for mine, reference in zip(*(run[2].optimizer.variables for run in runs[::-1]), strict=True):
        np.testing.assert_allclose(mine.numpy(), reference.numpy(), atol=1e-10)


def test_small_gradients_are_applied_together_on_a_device():
    """Where the CPU applies each of them while it is in cache: a device would launch a kernel for each."""
    model = keras.Sequential([keras.Input((600,)), *(layers.Dense(600) for _ in range(4)), layers.Dense(5)])
    model.compile("sgd", "mse")
    applied = {}
    for device in ("cpu", "host"):
        with keras.device(device):
            applied[device] = model.plan(4).applies_gradients
    assert applied == {"cpu": True, "host": False}


@on_each
def test_convolutions_by_name(device):
    runs = [
        losses_of(convnet(algorithm=name), each, "float64", (9, 8, 3), OPTIMIZERS["adam"], 3)
        for name, each in (("im2col", "cpu"), ("fft", device))
    ]
    np.testing.assert_allclose(runs[1][0], runs[0][0], rtol=0, atol=1e-10)
    with keras.device(device):
        plan = runs[1][2].plan(4)
    assert {"fft 16x16 gauss", "im2col"} == {name for found in plan.algorithms.values() for name in found.values()}


@pytest.mark.slow
@on_each
def test_spectra_are_kept_by_the_plan(monkeypatch, device):
    """Of x, w and dy, where the gradient of the image is wanted; with the bits of transforms that are made again."""

    def make():
        return keras.Sequential(
            [
                keras.Input((9, 8, 3)),
                layers.Conv2D(4, 3, padding="same", algorithm="fft"),
                layers.Conv2D(2, 3, padding="same", activation="relu", algorithm="fft"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(5, activation="softmax"),
            ]
        )

    def run():
        losses, predictions, model = losses_of(make, device, "float64", (9, 8, 3), OPTIMIZERS["adam"], 2)
        plan = next(plan for plan in model._pydt_steps.plans if plan.graph.kept or plan.gradient_order)
        return losses, predictions, plan

    losses, predictions, plan = run()
    kept = [[each.name for each in found] for found in plan.graph.kept.values()]
    assert sorted(kept, key=len) == [["spectra"], ["spectra", "w_spectra", "dy_spectra"]]
    steps = [step for step in plan.steps if step.kind == "forward" and step.saved.keys() & {"spectra", "w_spectra"}]
    assert [sorted(step.saved) for step in steps] == [["spectra"], ["spectra", "w_spectra"]]
    monkeypatch.setattr(ConvBaseKernel, "keeps", lambda *_: [])
    again, predicted, without = run()
    assert not without.graph.kept
    assert plan.peak_bytes != without.peak_bytes
    np.testing.assert_array_equal(losses, again)
    np.testing.assert_array_equal(predictions, predicted)
    names = "spectra", "w_spectra"
    saved = sum(step.saved[name].spec.nbytes for step in steps for name in names if name in step.saved)
    assert saved > 0
    small = plan_within(make, without.peak_bytes, device)
    assert not small.graph.kept, "a limit leaves no room for what can be made again"
    assert small.peak_bytes <= without.peak_bytes


def plan_within(make, limit, device):
    config.set_floatx("float64")
    model = make()
    model.compile(OPTIMIZERS["adam"](), "sparse_categorical_crossentropy", metrics=["accuracy"])
    with keras.device(device):
        return model.plan(4, memory_limit=limit)


@on_each
def test_values_follow_between_host_and_device(device):
    """What is set on the host counts in the next step; what a step changes is seen on the host; devices may change."""
    _, _, model = losses_of(convnet(), device, "float64", (9, 8, 3), OPTIMIZERS["adam"], 2)
    other = copy.deepcopy(model)
    x = np.random.default_rng(2).normal(size=(4, 9, 8, 3))
    with keras.device(device):
        first = model.predict_on_batch(x)
        np.testing.assert_allclose(other.predict_on_batch(x), first, atol=1e-12)
        weights = [weight * 0.5 for weight in model.get_weights()]
        model.set_weights(weights)
        second = model.predict_on_batch(x)
        model.train_on_batch(x, np.arange(4))
    assert np.abs(second - first).max() > 1e-3
    assert any(np.abs(a - b).max() > 0 for a, b in zip(model.get_weights(), weights, strict=True))
    there = model.evaluate(x, np.arange(4), verbose=0)
    with keras.device(device):
        np.testing.assert_allclose(model.evaluate(x, np.arange(4), verbose=0), there, atol=1e-12)
        with pytest.raises(ValueError, match=r"expected .* from 0 to 4.*, got .*0 to 5"):
            model.train_on_batch(x, np.array([0, 5, 1, 2]))


@on_each
def test_gradients_that_are_not_finite(device):
    """A LossScaleOptimizer leaves their step out."""
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0), "mse")
    before = model.get_weights()
    with keras.device(device):
        for value, scale in ((np.inf, 4.0), (1.0, 4.0), (np.nan, 2.0)):
            model.train_on_batch(np.full((2, 3), value), np.zeros((2, 2)))
            assert float(model.optimizer.dynamic_scale) == scale
            same = all(np.array_equal(a, b) for a, b in zip(model.get_weights(), before, strict=True))
            assert same == (scale == 4.0 and value != 1.0)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


class Signs(keras.optimizers.SGD):
    """An update of one's own, written for NumPy's arrays."""

    def update(self, w, dw, slots, learning_rate, weight_decay):
        w -= learning_rate * np.sign(dw)


def test_what_a_device_lacks_is_refused_by_name():
    x, y = np.zeros((2, 6, 6, 1)), np.array([0, 1])
    model = keras.Sequential([keras.Input((6, 6, 1)), layers.RandomRotation(0.1), layers.Flatten(), layers.Dense(2)])
    model.compile("sgd", "mse")
    with keras.device("host"), pytest.raises(MissingKernelError, match="expected a kernel for device host"):
        model.train_on_batch(x, np.zeros((2, 2)))
    model = keras.Sequential([keras.Input((6, 6, 1)), layers.Flatten(), layers.Dense(2, activation="softmax")])
    model.compile(Signs(0.1), "sparse_categorical_crossentropy")
    with keras.device("host"), pytest.raises(NotImplementedError, match="Signs: expected an optimizer with kernels"):
        model.train_on_batch(x, y)
    model = keras.Sequential([keras.Input((6, 6, 1)), layers.Flatten(), layers.Dense(2, dtype="mixed_bfloat16")])
    model.compile("sgd", "mse")
    with keras.device("host"), pytest.raises(NotImplementedError, match="expected float32 or float64, got bfloat16"):
        model.train_on_batch(x, np.zeros((2, 2)))
