"""Scripts of the kind that people have for Keras, in one file: a function each, which returns its figures.

    python keras_figures.py FOLDER first            with Keras: keeps the models' weights in FOLDER
    pydtconv run keras_figures.py FOLDER second     with pydtconv: the same scripts, from the same weights

Either writes FOLDER/first.json or FOLDER/second.json, figures by the names of scripts.  They compute in float64:
what is left between the two is the rounding of metrics, not what three epochs make of a sum in another order.
"""

import json
import os
import sys
import tempfile
import warnings

import keras
import numpy as np
from keras import layers, ops

warnings.simplefilter("ignore")
keras.config.set_floatx("float64")
keras.utils.set_random_seed(7)
which, folder, turn = "", sys.argv[1], sys.argv[2]
R = np.random.default_rng(7)
count = 0


def same(model):
    """Equal weights in both libraries."""
    global count
    path = f"{folder}/{which}{count}.npz"
    count += 1
    if turn == "first":
        np.savez(path, *[np.asarray(w) for w in model.get_weights()])
    with np.load(path) as file:
        model.set_weights([file[f"arr_{i}"] for i in range(len(file.files))])
    return model


def hist(h):
    return {k: [float(v) for v in vs] for k, vs in h.history.items()}


X = R.normal(size=(48, 12, 12, 3)).astype("float64")
Y = R.integers(0, 4, 48)
F = R.normal(size=(48, 5)).astype("float64")
T = R.normal(size=(48, 2)).astype("float64")
KW = {"batch_size": 16, "epochs": 3, "shuffle": False, "verbose": 0}


def convnet(name="net", out=4):
    i = keras.Input((12, 12, 3))
    x = layers.Conv2D(8, 3, padding="same", use_bias=False, name=name + "_c1")(i)
    x = layers.BatchNormalization(name=name + "_bn")(x)
    x = layers.ReLU()(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(8, 3, activation="relu", name=name + "_c2")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(i, layers.Dense(out, activation="softmax", name=name + "_d")(x), name=name)


def multi_input():
    image = keras.Input((12, 12, 3), name="image")
    meta = keras.Input((5,), name="meta")
    x = layers.Conv2D(6, 3, strides=2, activation="relu")(image)
    x = layers.Flatten()(x)
    x = layers.Dense(8, activation="relu")(x)
    m = layers.Dense(8, activation="tanh")(meta)
    z = layers.concatenate([x, m])
    a = layers.Dense(4, activation="softmax", name="kind")(z)
    b = layers.Dense(2, name="place")(z)
    model = same(keras.Model({"image": image, "meta": meta}, {"kind": a, "place": b}))
    model.compile(
        keras.optimizers.Adam(1e-2),
        loss={"kind": "sparse_categorical_crossentropy", "place": keras.losses.Huber()},
        loss_weights={"kind": 1.0, "place": 0.3},
        metrics={"kind": ["accuracy"], "place": ["mae", "mse"]},
    )
    h = model.fit({"image": X, "meta": F}, {"kind": Y, "place": T}, validation_split=0.25, **KW)
    e = model.evaluate({"image": X, "meta": F}, {"kind": Y, "place": T}, verbose=0, return_dict=True)
    p = model.predict({"image": X, "meta": F}, verbose=0)
    return {
        **hist(h),
        **{"e_" + k: v for k, v in e.items()},
        "p": [float(p["kind"].sum(0)[0]), float(p["place"].std())],
    }


def class_weights():
    model = same(convnet())
    model.compile(
        keras.optimizers.RMSprop(1e-3, momentum=0.9),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        weighted_metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2, name="top2")],
    )
    h = model.fit(
        X,
        Y,
        class_weight={0: 1.0, 1: 2.5, 2: 0.5, 3: 1.2},
        validation_data=(X[:16], Y[:16], np.linspace(0, 1, 16)),
        **KW,
    )
    return {**hist(h), "w": [float(np.abs(w).sum()) for w in model.get_weights()]}


def sample_weights():
    model = same(convnet())
    model.compile(
        keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
        keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
        metrics=[
            keras.metrics.CategoricalAccuracy(),
            keras.metrics.AUC(multi_label=False),
            keras.metrics.Precision(),
            keras.metrics.F1Score(average="macro"),
        ],
    )
    o = keras.utils.to_categorical(Y, 4)
    w = np.where(Y == 2, 3.0, 1.0).astype("float64")
    h = model.fit(X, o, sample_weight=w, **KW)
    e = model.evaluate(X, o, sample_weight=w, verbose=0)
    return {
        **hist(h),
        "e": [np.asarray(v).tolist() for v in e],
        "tb": [np.asarray(v).tolist() for v in model.train_on_batch(X[:8], o[:8], sample_weight=w[:8])],
    }


@keras.saving.register_keras_serializable("mine")
class Scale(layers.Layer):
    def __init__(self, units, power=1.0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.power = power

    def build(self, input_shape):
        self.kernel = self.add_weight(
            shape=(input_shape[-1], self.units),
            initializer="glorot_uniform",
            regularizer=keras.regularizers.L2(1e-2),
            name="kernel",
        )
        self.gain = self.add_weight(
            shape=(self.units,), initializer="ones", trainable=True, constraint=keras.constraints.NonNeg(), name="gain"
        )

    def call(self, inputs, training=False):
        y = ops.matmul(inputs, self.kernel) * self.gain**self.power
        self.add_loss(1e-2 * ops.mean(ops.square(y)))
        return ops.where(y > 0, y, ops.expm1(y))

    def compute_output_shape(self, s):
        return (*s[:-1], self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "power": self.power}


@keras.saving.register_keras_serializable("mine")
class Focal(keras.losses.Loss):
    def __init__(self, gamma=2.0, name="focal", reduction="sum_over_batch_size", **kw):
        super().__init__(name=name, reduction=reduction, **kw)
        self.gamma = gamma

    def call(self, y_true, y_pred):
        y_pred = ops.clip(y_pred, 1e-7, 1.0)
        p = ops.take_along_axis(y_pred, ops.cast(ops.reshape(y_true, (-1, 1)), "int32"), axis=-1)[:, 0]
        return -ops.power(1 - p, self.gamma) * ops.log(p)

    def get_config(self):
        return {**super().get_config(), "gamma": self.gamma}


@keras.saving.register_keras_serializable("mine")
class Confidence(keras.metrics.Metric):
    def __init__(self, name="confidence", **kw):
        super().__init__(name=name, **kw)
        self.total = self.add_weight(shape=(), initializer="zeros", name="total")
        self.n = self.add_weight(name="n", shape=(), initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        top = ops.max(y_pred, axis=-1)
        self.total.assign_add(ops.sum(top))
        self.n.assign_add(ops.cast(ops.shape(top)[0], "float64"))

    def result(self):
        return self.total / self.n

    def reset_state(self):
        self.total.assign(0.0)
        self.n.assign(0.0)


def custom_objects():
    model = same(
        keras.Sequential(
            [
                keras.Input((5,)),
                Scale(6, power=2.0),
                layers.Dropout(0.0),
                Scale(5),
                layers.Dense(4, activation="softmax"),
            ]
        )
    )
    model.compile(keras.optimizers.Adam(2e-2, clipnorm=1.0), Focal(1.5), metrics=[Confidence(), "accuracy"])
    h = model.fit(F, Y, **KW)
    path = os.path.join(tempfile.mkdtemp(), "m.keras")
    model.save(path)
    again = keras.models.load_model(path)
    h2 = again.fit(F, Y, **KW)
    return {
        **hist(h),
        **{"again_" + k: v for k, v in hist(h2).items()},
        "cfg": [again.layers[0].power, again.loss.gamma],
    }


def callbacks_():
    model = same(convnet())
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    d = tempfile.mkdtemp()
    seen = []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            seen.append("begin")

        def on_epoch_end(self, epoch, logs=None):
            seen.append(sorted(logs))

        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                seen.append(float(logs["loss"]))

    cbs = [
        keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau(factor=0.5, patience=1, min_delta=0.5),
        keras.callbacks.ModelCheckpoint(d + "/best.keras", save_best_only=True, monitor="val_accuracy", mode="max"),
        keras.callbacks.ModelCheckpoint(d + "/{epoch:02d}.weights.h5", save_weights_only=True),
        keras.callbacks.CSVLogger(d + "/log.csv"),
        keras.callbacks.TerminateOnNaN(),
        Look(),
    ]
    h = model.fit(X, Y, validation_data=(X[:16], Y[:16]), callbacks=cbs, **{**KW, "epochs": 8})
    best = keras.models.load_model(d + "/best.keras")
    with open(d + "/log.csv") as file:
        csv = file.read().splitlines()
    return {
        **hist(h),
        "seen": seen,
        "files": sorted(os.listdir(d)),
        "best": best.evaluate(X[:16], Y[:16], verbose=0),
        "head": csv[0],
        "rows": len(csv),
        "lr": float(model.optimizer.learning_rate),
        "now": model.evaluate(X[:16], Y[:16], verbose=0),
    }


def schedules():
    out = {}
    S = keras.optimizers.schedules
    for name, schedule in {
        "cos": S.CosineDecay(0.0, 6, alpha=0.01, warmup_target=0.01, warmup_steps=3),
        "exp": S.ExponentialDecay(0.01, 2, 0.5, staircase=True),
        "pw": S.PiecewiseConstantDecay([3, 6], [0.01, 0.05, 0.01]),
        "poly": S.PolynomialDecay(0.01, 5, cycle=True),
        "restarts": S.CosineDecayRestarts(0.01, 3),
        "it": S.InverseTimeDecay(0.01, 2, 0.5),
    }.items():
        model = same(convnet())
        model.compile(keras.optimizers.AdamW(schedule, weight_decay=0.01), "sparse_categorical_crossentropy")
        out[name] = [*hist(model.fit(X, Y, **KW))["loss"], float(model.optimizer.learning_rate)]
    model = same(convnet())
    model.compile("sgd", "sparse_categorical_crossentropy")
    h = model.fit(X, Y, callbacks=[keras.callbacks.LearningRateScheduler(lambda e, lr: lr * 0.5 if e else lr)], **KW)
    return {**out, **{"s_" + k: v for k, v in hist(h).items()}}


def fine_tuning():
    base = convnet("base", 8)
    base.trainable = False
    i = keras.Input((12, 12, 3))
    x = layers.Rescaling(0.5)(i)
    x = base(x, training=False)
    x = layers.Dropout(0.0)(x)
    model = same(keras.Model(i, layers.Dense(1)(x)))
    model.compile(
        keras.optimizers.Adam(1e-2),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    t = (Y > 1).astype("float64")
    h = model.fit(X, t, **KW)
    n = [len(model.trainable_weights), len(model.non_trainable_weights)]
    base.trainable = True
    for layer in base.layers[:3]:
        layer.trainable = False
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    h2 = model.fit(X, t, **KW)
    return {
        **hist(h),
        **{"f_" + k: v for k, v in hist(h2).items()},
        "n": [*n, len(model.trainable_weights), len(model.non_trainable_weights)],
        "w": [float(np.abs(w).sum()) for w in model.get_weights()],
    }


def mixed_losses():
    i = keras.Input((12, 12, 3))
    x = layers.Conv2D(4, 3, padding="same", activation="gelu", kernel_regularizer="l2")(i)
    rec = layers.Conv2DTranspose(3, 3, padding="same", name="rec")(x)
    cls = layers.Dense(4, name="cls")(layers.GlobalMaxPooling2D()(x))
    model = same(keras.Model(i, [rec, cls]))

    def charbonnier(a, b):
        return ops.mean(ops.sqrt(ops.square(a - b) + 1e-6), axis=(1, 2, 3))

    model.compile(
        keras.optimizers.Nadam(1e-2),
        [charbonnier, keras.losses.SparseCategoricalCrossentropy(from_logits=True)],
        loss_weights=[2.0, 0.5],
        metrics=[["mae"], ["accuracy"]],
    )
    h = model.fit(X, [X, Y], **KW)
    e = model.evaluate(X, [X, Y], verbose=0)
    return {**hist(h), "e": [float(v) for v in e]}


def generators():
    class Seq(keras.utils.PyDataset):
        def __init__(self):
            super().__init__()

        def __len__(self):
            return 3

        def __getitem__(self, i):
            s = slice(16 * i, 16 * i + 16)
            return X[s], Y[s], np.ones(16, "float64")

        def on_epoch_end(self):
            pass

    def gen():
        while True:
            for i in range(3):
                yield X[16 * i : 16 * i + 16], Y[16 * i : 16 * i + 16]

    out = {}
    for name, data, kw in (("seq", Seq(), {}), ("gen", gen(), {"steps_per_epoch": 2})):
        model = same(convnet())
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        h = model.fit(data, epochs=2, verbose=0, shuffle=False, validation_data=Seq(), validation_freq=2, **kw)
        out.update({name + k: v for k, v in hist(h).items()})
    out["e"] = model.evaluate(gen(), steps=3, verbose=0)
    out["p"] = list(model.predict(Seq(), verbose=0).shape)
    out["it"] = int(model.optimizer.iterations)
    return out


def save_resume():
    d = tempfile.mkdtemp()
    model = same(convnet())
    model.compile(keras.optimizers.Adam(1e-2, amsgrad=True), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(X, Y, **KW)
    model.save(d + "/m.keras")
    model.save_weights(d + "/m.weights.h5")
    model.save(d + "/m.h5")
    a = keras.models.load_model(d + "/m.keras")
    h = a.fit(X, Y, **KW)
    b = same(convnet())
    b.load_weights(d + "/m.weights.h5")
    c = keras.models.load_model(d + "/m.h5", compile=False)
    j = keras.models.model_from_json(model.to_json())
    j.set_weights(model.get_weights())
    k = keras.models.clone_model(model)
    part = keras.Model(a.input, a.layers[4].output)
    o = model.predict(X, verbose=0)
    return {
        **hist(h),
        "same": [float(np.abs(m.predict(X, verbose=0) - o).max()) < 1e-6 for m in (b, c, j)],
        "k": k.count_params(),
        "part": float(part.predict(X, verbose=0).sum()),
        "it": int(a.optimizer.iterations),
        "names": [layer.name.split("_")[0] for layer in model.layers],
    }


def own_loss():
    class M(keras.Model):
        def __init__(self):
            super().__init__()
            self.c = layers.Conv2D(4, 3, activation="swish")
            self.p = layers.GlobalAveragePooling2D()
            self.d = layers.Dense(4)

        def call(self, x, training=False):
            return self.d(self.p(self.c(x)))

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return ops.mean(keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)) + 0.1 * ops.mean(
                ops.square(y_pred)
            )

    model = M()
    model(X[:1])
    same(model)
    model.compile(
        keras.optimizers.Adagrad(0.1, global_clipnorm=0.5), metrics=[keras.metrics.SparseCategoricalAccuracy()]
    )
    h = model.fit(X, Y, **KW)
    return {**hist(h), "e": model.evaluate(X, Y, verbose=0)}


SCRIPTS = (
    multi_input, class_weights, sample_weights, custom_objects, callbacks_, schedules, fine_tuning, mixed_losses,
    generators, save_resume, own_loss,
)  # fmt: skip

figures = {}
for script in SCRIPTS:
    which, count = script.__name__, 0
    figures[which] = script()
with open(f"{folder}/{turn}.json", "w") as file:
    json.dump(figures, file)
