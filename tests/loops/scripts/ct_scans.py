# volumes: a network of 3-D convolutions, a schedule, and two outputs with losses of their own
import numpy as np

import keras
from keras import layers, ops

keras.utils.set_random_seed(2)
rng = np.random.default_rng(1)
volumes = rng.normal(size=(64, 12, 12, 8)).astype("float32") * 0.2
labels = rng.integers(0, 2, 64)
sizes = rng.uniform(1, 4, 64).astype("float32")
for volume, label, size in zip(volumes, labels, sizes):
    if label:
        n = int(size)
        volume[4 : 4 + n, 4 : 4 + n, 2 : 2 + n] += 2


def rotate(volume):
    return np.rot90(volume, k=rng.integers(0, 4), axes=(0, 1))


class Volumes(keras.utils.PyDataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        part = slice(index * 8, index * 8 + 8)
        x = np.stack([rotate(v) for v in volumes[part]])[..., None]
        return x, {"abnormal": labels[part, None].astype("float32"), "size": (sizes * labels)[part, None]}


def get_model(width=12, height=12, depth=8):
    inputs = keras.Input((width, height, depth, 1))
    x = layers.Conv3D(filters=8, kernel_size=3, activation="relu")(inputs)
    x = layers.MaxPool3D(pool_size=2)(x)
    x = layers.BatchNormalization(momentum=0.8)(x)
    x = layers.Conv3D(filters=16, kernel_size=3, activation="relu", padding="same")(x)
    x = layers.GlobalAveragePooling3D()(x)
    x = layers.Dense(units=32, activation="relu")(x)
    x = layers.Dropout(0.1)(x)
    outputs = {
        "abnormal": layers.Dense(units=1, activation="sigmoid", name="abnormal")(x),
        "size": layers.Dense(units=1, activation="softplus", name="size")(x),
    }
    return keras.Model(inputs, outputs, name="3dcnn")


model = get_model()
schedule = keras.optimizers.schedules.ExponentialDecay(0.01, decay_steps=1000, decay_rate=0.96, staircase=True)
model.compile(
    loss={"abnormal": "binary_crossentropy", "size": lambda y, p: ops.mean(ops.square(y - p), axis=-1)},
    loss_weights={"abnormal": 1.0, "size": 0.2},
    optimizer=keras.optimizers.Adam(learning_rate=schedule),
    metrics={"abnormal": ["acc"], "size": [keras.metrics.RootMeanSquaredError(name="rmse")]},
)


class FindRate(keras.callbacks.Callback):
    """Notes the loss of each batch beside the rate."""

    def on_train_begin(self, logs=None):
        self.rates, self.losses = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.rates.append(float(ops.convert_to_numpy(self.model.optimizer.learning_rate)))
        self.losses.append(logs["loss"])


rates = FindRate()
stop = keras.callbacks.EarlyStopping(monitor="val_abnormal_acc", patience=15, restore_best_weights=True)
saved = keras.callbacks.ModelCheckpoint("best.weights.h5", save_best_only=True, save_weights_only=True)
history = model.fit(
    Volumes(), validation_data=Volumes(), epochs=12, shuffle=True, verbose=2, callbacks=[rates, stop, saved]
)
assert len(rates.losses) == 8 * len(history.history["loss"])
assert rates.losses[-1] < rates.losses[0]
assert max(history.history["val_abnormal_acc"]) > 0.7, history.history["val_abnormal_acc"]
model.load_weights("best.weights.h5")
prediction = model.predict(np.expand_dims(volumes[:1], -1), verbose=0)
assert set(prediction) == {"abnormal", "size"}
print("ok")
