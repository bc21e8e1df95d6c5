"""Whole models through the public names: gradients of a planned step, equal runs, and runs equal to Keras's."""

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, config, layers, models, optimizers
from pydtconv.utils import set_random_seed
from tests.marks import slow
from tests.real_keras import import_keras

RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 8, 8, 3)).astype("float32")
Y = X.mean((1, 2)).argmax(-1)


def convolutional(random=False):
    """A small network; random: with every layer that draws numbers in training."""
    start = [layers.RandomFlip(), layers.RandomCrop(6, 6), layers.GaussianNoise(0.1)] if random else []
    middle = [layers.Dropout(0.3), layers.SpatialDropout2D(0.2)] if random else []
    return models.Sequential(
        [
            layers.Input((8, 8, 3)),
            *start,
            layers.Conv2D(6, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            *middle,
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )


def trained(make=convolutional, optimizer="adam", loss="sparse_categorical_crossentropy", y=Y, epochs=4, **fit):
    """The model and its history after a fit from a fixed seed, with a partial last batch."""
    set_random_seed(2)
    model = make()
    model.compile(optimizer, loss)
    return model, model.fit(X, y, epochs=epochs, batch_size=8, verbose=0, **fit).history


# --- gradients of whole steps -----------------------------------------------------------------------------------------
def residual(x):
    return layers.ReLU()(layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same")(x))]))


def dense_block(x):
    new = layers.Conv2D(3, 3, padding="same", activation="relu")(x)
    return layers.Concatenate()([x, new, layers.Conv2D(2, 1)(layers.Concatenate()([x, new]))])


DETERMINISTIC = {
    "Dense": lambda x: layers.Dense(5, activation="gelu")(x),
    "Conv2D": lambda x: layers.Conv2D(5, 3, strides=2, padding="same", activation="relu")(x),
    "Conv2D-grouped": lambda x: layers.Conv2D(6, 3, groups=2, dilation_rate=2)(x),
    "Conv2D-channels_first": lambda x: layers.Conv2D(5, 3, data_format="channels_first")(x),
    "DepthwiseConv2D": lambda x: layers.DepthwiseConv2D(3, depth_multiplier=2)(x),
    "SeparableConv2D": lambda x: layers.SeparableConv2D(5, 3, padding="same")(x),
    "Conv2DTranspose": lambda x: layers.Conv2DTranspose(5, 3, strides=2, padding="same")(x),
    "MaxPooling2D": lambda x: layers.MaxPooling2D()(x),
    "AveragePooling2D": lambda x: layers.AveragePooling2D(3, 2, "same")(x),
    "GlobalAveragePooling2D": lambda x: layers.GlobalAveragePooling2D()(x),
    "GlobalMaxPooling2D": lambda x: layers.GlobalMaxPooling2D()(x),
    "BatchNormalization": lambda x: layers.ReLU()(layers.BatchNormalization()(x)),
    "LayerNormalization": lambda x: layers.LayerNormalization()(x),
    "Reshape": lambda x: layers.Softmax()(layers.Reshape((12, -1))(x)),
    "LeakyReLU": lambda x: layers.LeakyReLU()(x),
    "ZeroPadding2D": lambda x: layers.ZeroPadding2D(((1, 0), (2, 3)))(x),
    "Cropping2D": lambda x: layers.Cropping2D(1)(x),
    "UpSampling2D": lambda x: layers.UpSampling2D(2, interpolation="bilinear")(layers.UpSampling2D(2)(x)),
    "Rescaling": lambda x: layers.Rescaling(0.5, 1.0)(x),
    "merging": lambda x: layers.Maximum()([layers.Multiply()([x, x]), layers.Average()([x, layers.Dense(4)(x)])]),
    "arithmetic": lambda x: 2 * x / (1 + x * x) - x**2 + (-x) + 1 - 3 / (x + 5),
    "slices": lambda x: x[:, 1:4, ..., 1:] * x[:, -1, :3, None, None, 0],
    "activity": lambda x: layers.ActivityRegularization(l1=0.01, l2=0.01)(x),
    "residual": residual,
    "dense_block": dense_block,
}
RANDOM = {
    "Dropout": lambda x: layers.Dropout(0.3)(x),
    "SpatialDropout2D": lambda x: layers.SpatialDropout2D(0.3)(x),
    "GaussianNoise": lambda x: layers.GaussianNoise(0.3)(x),
    "RandomFlip": lambda x: layers.RandomFlip()(x),
    "RandomCrop": lambda x: layers.RandomCrop(4, 4)(x),
}


def around(middle):
    """A float64 model with trained layers before and behind `middle`, and a batch for it; its rate is zero."""
    config.set_floatx("float64")
    x = layers.Input((6, 6, 4))
    y = middle(layers.Dense(4, activation="tanh", kernel_regularizer="l2")(x))
    model = models.Model(x, layers.Dense(2)(layers.Flatten()(y) if len(y.shape) > 2 else y))
    model.compile(optimizers.SGD(0.0), "mse")
    model.set_weights([w + 0.1 * RNG.normal(size=w.shape) ** 2 for w in model.get_weights()])
    return model, RNG.normal(size=(3, 6, 6, 4)), RNG.normal(size=(3, 2))


def gradients_of_a_step(model, x, y):
    model.train_on_batch(x, y)
    store = model._pydt_steps.memory.store
    return [store.gradient_of(v).reshape(v.shape).copy() for v in model.trainable_variables]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_gradient_of_a_step_is_the_slope_of_its_loss(name):
    model, x, y = around(DETERMINISTIC[name])
    gradients = gradients_of_a_step(model, x, y)
    direction = [g + np.abs(g).mean() * RNG.normal(size=g.shape) for g in gradients]
    slope = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True))
    step = 1e-6 / np.sqrt(sum((d * d).sum() for d in direction))
    values, found = [v.numpy().copy() for v in model.trainable_variables], []
    for sign in 1, -1:
        for variable, value, d in zip(model.trainable_variables, values, direction, strict=True):
            variable.assign(value + sign * step * d)
        found.append(model.train_on_batch(x, y))
    assert (found[0] - found[1]) / (2 * step) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("name", RANDOM)
def test_gradient_through_random_layers_reaches_all_weights(name):
    model, x, y = around(RANDOM[name])
    for gradient in gradients_of_a_step(model, x, y):
        assert np.isfinite(gradient).all()
        assert gradient.any()


# --- names ------------------------------------------------------------------------------------------------------------
RATES = {"adadelta": 1.0, "adagrad": 0.05, "ftrl": 0.05, "lion": 0.001}


@pytest.mark.parametrize(
    "name",
    ["sgd", "adam", *map(slow, ("rmsprop", "adamw", "nadam", "adamax", "adagrad", "adadelta", "ftrl", "lion"))],
)
def test_optimizer_by_name_learns(name):
    optimizer = optimizers.get(name)
    optimizer.learning_rate = RATES.get(name, 0.01)
    _, history = trained(optimizer=optimizer)
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.parametrize(
    "options",
    [
        {"global_clipnorm": 0.1},
        *map(slow, [{"clipnorm": 0.1}, {"clipvalue": 0.01}, {"weight_decay": 0.01}, {"use_ema": True}]),
        slow({"gradient_accumulation_steps": 2}),
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_optimizers_learn(options):
    for kind in optimizers.SGD, optimizers.Nadam:
        _, history = trained(optimizer=kind(0.01, **options))
        assert history["loss"][-1] < history["loss"][0]


ROWS = np.eye(3)[Y]


@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("sparse_categorical_crossentropy", Y),
        slow("crossentropy", Y),
        *[
            slow(name, ROWS)
            for name in (
                "categorical_crossentropy",
                "binary_crossentropy",
                "categorical_focal_crossentropy",
                "binary_focal_crossentropy",
                "kl_divergence",
                "poisson",
                "log_cosh",
                "cosine_similarity",
                "mse",
                "mae",
                "huber",
                "msle",
                "categorical_hinge",
            )
        ],
        slow("mape", ROWS + 1),
        slow("hinge", 2 * ROWS - 1),
        ("squared_hinge", 2 * ROWS - 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_loss_by_name_is_learnt(name, y):
    _, history = trained(loss=name, y=y)
    assert history["loss"][-1] < history["loss"][0]


# --- equal runs -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_seeds_give_equal_runs_with_every_random_layer(dtype):
    config.set_floatx(dtype)
    runs = []
    for seed in 3, 3, 4:
        set_random_seed(seed)
        model = convolutional(random=True)
        model.compile("adam", "sparse_categorical_crossentropy")
        history = model.fit(X, Y, epochs=3, batch_size=8, validation_split=0.2, verbose=0).history
        runs.append((history, model.get_weights()))
    assert {str(w.dtype) for w in runs[0][1]} == {dtype}
    assert str(model.predict(X, verbose=0).dtype) == dtype
    assert runs[0][0] == runs[1][0]
    for a, b in zip(runs[0][1], runs[1][1], strict=True):
        np.testing.assert_array_equal(a, b)
    assert runs[0][0] != runs[2][0]


def test_weights_files_between_subclassed_models(tmp_path):
    class Network(models.Model):
        def __init__(self):
            super().__init__()
            self.first = layers.Conv2D(4, 3, activation="relu")
            self.normalize = layers.BatchNormalization()
            self.blocks = [layers.Conv2D(4, 3, padding="same") for _ in range(2)]
            self.drop = layers.Dropout(0.2)
            self.last = layers.Dense(3, activation="softmax")

        def call(self, x, training=None):
            x = self.normalize(self.first(x), training=training)
            for block in self.blocks:
                x = x + block(x)
            return self.last(self.drop(layers.Flatten()(x), training=training))

    model, history = trained(Network, validation_data=(X, Y))
    assert history["loss"][-1] < history["loss"][0]
    model.save_weights(tmp_path / "model.weights.h5")
    other = Network()
    other(X[:2])
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(other.predict(X, verbose=0), model.predict(X, verbose=0))
    other.compile("adam", "sparse_categorical_crossentropy")
    other.fit(X, Y, verbose=0)
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(other.predict(X, verbose=0), model.predict(X, verbose=0))


def test_dicts_of_inputs_outputs_and_weights():
    image, numbers = layers.Input((8, 8, 3), name="image"), layers.Input((4,), name="numbers")
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(4, 3, activation="relu")(image))
    x = layers.Concatenate()([x, layers.Dense(4)(numbers)])
    outputs = {"kind": layers.Dense(3, activation="softmax")(x), "size": layers.Dense(1)(x)}
    model = models.Model({"image": image, "numbers": numbers}, outputs)
    model.compile(
        "adam",
        {"kind": "sparse_categorical_crossentropy", "size": "mse"},
        metrics={"kind": ["accuracy"]},
        weighted_metrics={"size": ["mae"]},
    )
    data = {"image": X, "numbers": RNG.normal(size=(37, 4))}
    targets = {"kind": Y, "size": data["numbers"][:, :1]}
    weights = {"kind": np.ones(37), "size": RNG.uniform(size=37)}
    options = {"batch_size": 8, "sample_weight": weights, "verbose": 0}
    history = model.fit(data, targets, epochs=3, validation_split=0.2, **options).history
    names = {"loss", "kind_loss", "size_loss", "kind_accuracy", "size_mae"}
    assert set(history) == names | {f"val_{name}" for name in names}
    found = model.evaluate(data, targets, return_dict=True, **options)
    predicted = model.predict(data, verbose=0)
    error = np.abs(predicted["size"] - targets["size"])[:, 0]
    assert found["size_mae"] == pytest.approx((error * weights["size"]).sum() / weights["size"].sum(), rel=1e-4)
    assert found["kind_accuracy"] == pytest.approx((predicted["kind"].argmax(-1) == Y).mean())


# --- runs of Keras ----------------------------------------------------------------------------------------------------
def network(k, data_format="channels_last"):
    """The same network of keras or of pydtconv: residual, concatenating, with every kind of convolution."""
    form, axis = {"data_format": data_format}, -1 if data_format == "channels_last" else 1
    first = k.layers.Input((12, 12, 3) if axis == -1 else (3, 12, 12))
    x = k.layers.Conv2D(8, 3, padding="same", use_bias=False, kernel_regularizer="l2", **form)(first)
    kept = x = k.layers.ReLU()(k.layers.BatchNormalization(axis=axis)(x))
    x = k.layers.BatchNormalization(axis=axis)(k.layers.DepthwiseConv2D(3, padding="same", **form)(x))
    x = k.layers.ReLU()(k.layers.Add()([x, kept]))
    new = k.layers.SeparableConv2D(4, 3, padding="same", activation="gelu", **form)(x)
    x = k.layers.MaxPooling2D(**form)(k.layers.Concatenate(axis=axis)([x, new]))
    x = k.layers.Conv2DTranspose(6, 3, strides=2, padding="same", activation="tanh", **form)(x)
    x = k.layers.Flatten(**form)(k.layers.AveragePooling2D(2, **form)(x))
    return k.Model(first, k.layers.Dense(4, activation="softmax")(k.layers.LayerNormalization()(x)))


def momentum(k):
    return k.optimizers.SGD(0.01, momentum=0.9, nesterov=True, clipnorm=1.0)


def decayed(k):
    schedule = k.optimizers.schedules.CosineDecay(2e-3, 10, warmup_steps=2, warmup_target=4e-3)
    return k.optimizers.AdamW(schedule, epsilon=1e-3, global_clipnorm=1.0)


IMAGES, KINDS = RNG.normal(size=(25, 12, 12, 3)).astype("float32"), RNG.integers(0, 4, 25)
WEIGHTS = {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0}}
RUNS = [
    ("channels_last", momentum, {"epochs": 2, "validation_split": 0.2, **WEIGHTS}),
    ("channels_first", decayed, {"epochs": 4, "initial_epoch": 2, "sample_weight": RNG.uniform(size=25)}),
]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(("data_format", "optimizer", "options"), RUNS, ids=["weighted_classes", "channels_first"])
def test_a_run_is_that_of_keras(data_format, optimizer, options):
    keras = import_keras()
    ours, theirs = network(pydtconv, data_format), network(keras)
    start = [0.2 * RNG.normal(size=w.shape) if w.ndim > 1 else w for w in theirs.get_weights()]
    results = []
    for k, model in (pydtconv, ours), (keras, theirs):
        x = IMAGES.transpose(0, 3, 1, 2) if model is ours and data_format == "channels_first" else IMAGES
        model.set_weights(start)
        model.compile(
            optimizer(k), "sparse_categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy"]
        )
        history = model.fit(np.ascontiguousarray(x), KINDS, batch_size=8, shuffle=False, verbose=0, **options).history
        results.append((history, model.get_weights(), model.evaluate(x, KINDS, verbose=0, return_dict=True)))
    (history, weights, scores), (their_history, their_weights, their_scores) = results
    assert set(history) == set(their_history)
    for name, values in their_history.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-4, err_msg=name)
    for a, b in zip(weights, their_weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    assert scores == pytest.approx(their_scores, rel=1e-4)


def test_callbacks_together(tmp_path):
    seen = []
    model, history = trained(
        optimizer=optimizers.Adam(0.01),
        validation_split=0.3,
        callbacks=[
            callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras"),
            callbacks.ModelCheckpoint(tmp_path / "best.weights.h5", save_weights_only=True, save_best_only=True),
            callbacks.EarlyStopping(patience=3, restore_best_weights=True),
            callbacks.ReduceLROnPlateau(monitor="loss", patience=0, min_delta=10.0),
            callbacks.CSVLogger(tmp_path / "log.csv"),
            callbacks.TerminateOnNaN(),
            callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(set(logs))),
        ],
    )
    np.testing.assert_allclose(history["learning_rate"][:3], [0.01, 0.01, 0.001], rtol=1e-5)
    assert seen[0] >= {"loss", "val_loss"}
    assert (tmp_path / "log.csv").read_text().count("\n") == len(history["loss"]) + 1
    best = min(range(len(history["val_loss"])), key=history["val_loss"].__getitem__)
    loaded = pydtconv.saving.load_model(tmp_path / f"{best + 1}.keras")
    model.load_weights(tmp_path / "best.weights.h5")
    np.testing.assert_allclose(model.predict(X, verbose=0), loaded.predict(X, verbose=0), rtol=1e-6)
    assert loaded.fit(X, Y, verbose=0).history["loss"]
