"""Scripts as people write them for Keras, run unmodified by `pydtconv run`.

Each is what a page on Keras shows, on the digits of the package in place of a download, and small enough for a test.
They end with assertions of their own, written with NumPy and Keras's interface only.
"""

import os
import subprocess
import sys

import pytest

SETUP = """
import numpy as np
from keras.datasets import digits

(x_train, y_train), (x_test, y_test) = digits.load_data()
x_train, y_train = x_train[:512], y_train[:512]
x_train = np.expand_dims(x_train.astype("float32") / 255, -1)
x_test = np.expand_dims(x_test.astype("float32") / 255, -1)
"""

SCRIPTS = {
    "sequential_convnet": """
import keras
from keras import layers

num_classes = 10
input_shape = (8, 8, 1)
y_train = keras.utils.to_categorical(y_train, num_classes)
y_test = keras.utils.to_categorical(y_test, num_classes)

keras.utils.set_random_seed(1)
model = keras.Sequential(
    [
        keras.Input(shape=input_shape),
        layers.Conv2D(16, kernel_size=(3, 3), activation="relu", padding="same"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.2),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.summary()
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=15, validation_split=0.1)
score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
assert score[1] > 0.8
""",
    "functional_residual": """
from tensorflow import keras
from tensorflow.keras import layers, regularizers
from tensorflow.keras.callbacks import LearningRateScheduler, ReduceLROnPlateau, EarlyStopping


def resnet_layer(inputs, num_filters=8, kernel_size=3, strides=1, activation="relu"):
    x = layers.Conv2D(num_filters, kernel_size=kernel_size, strides=strides, padding="same",
                      kernel_initializer="he_normal", kernel_regularizer=regularizers.l2(1e-4))(inputs)
    x = layers.BatchNormalization()(x)
    return layers.Activation(activation)(x) if activation is not None else x


inputs = keras.Input(shape=x_train.shape[1:], name="img")
x = resnet_layer(inputs)
for stack in range(2):
    for block in range(2):
        strides = 2 if stack > 0 and block == 0 else 1
        y = resnet_layer(x, num_filters=8 * 2**stack, strides=strides)
        y = resnet_layer(y, num_filters=8 * 2**stack, activation=None)
        if strides != 1:
            x = resnet_layer(x, num_filters=8 * 2**stack, kernel_size=1, strides=strides, activation=None)
        x = layers.add([x, y])
        x = layers.Activation("relu")(x)
x = layers.GlobalAveragePooling2D()(x)
outputs = layers.Dense(10, activation="softmax", kernel_initializer="he_normal")(x)
model = keras.models.Model(inputs=inputs, outputs=outputs, name="toy_resnet")

model.compile(
    loss=keras.losses.SparseCategoricalCrossentropy(),
    optimizer=keras.optimizers.Adam(learning_rate=1e-2),
    metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
)
history = model.fit(
    x_train, y_train, batch_size=64, epochs=6, validation_data=(x_test, y_test), verbose=2,
    callbacks=[
        LearningRateScheduler(lambda epoch: 1e-2 if epoch < 4 else 1e-3),
        ReduceLROnPlateau(factor=np.sqrt(0.1), cooldown=0, patience=5, min_lr=0.5e-6),
        EarlyStopping(monitor="val_acc", patience=6),
    ],
)
assert set(history.history) >= {"acc", "loss", "val_acc", "val_loss"}
assert history.history["acc"][-1] > 0.8
assert np.allclose(model.predict(x_test[:7], verbose=0).sum(axis=1), 1, atol=1e-5)
""",
    "subclassed_model": """
import keras
from keras import layers


class ConvBlock(layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.conv = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.bn = layers.BatchNormalization(momentum=0.9)

    def call(self, x, training=None):
        return keras.activations.relu(self.bn(self.conv(x), training=training))


class MyModel(keras.Model):
    def __init__(self, num_classes=10):
        super().__init__()
        self.blocks = [ConvBlock(8), ConvBlock(16)]
        self.pool = layers.MaxPooling2D()
        self.flatten = layers.Flatten()
        self.dropout = layers.Dropout(0.1)
        self.classifier = layers.Dense(num_classes)

    def call(self, x, training=None):
        for block in self.blocks:
            x = self.pool(block(x, training=training))
        return self.classifier(self.dropout(self.flatten(x), training=training))


model = MyModel()
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.05, momentum=0.9, nesterov=True),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=32, epochs=6, verbose=0)
loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
assert accuracy > 0.8, accuracy
assert model.predict(x_test, verbose=0).shape == (len(x_test), 10)
model.save_weights("model.weights.h5")
other = MyModel()
other(x_test[:1])
other.load_weights("model.weights.h5")
np.testing.assert_allclose(other.predict(x_test, verbose=0), model.predict(x_test, verbose=0), rtol=1e-5, atol=1e-5)
""",
    "augmentation_and_generator": """
import keras
from keras.layers import Conv2D, Dense, Flatten, Input, MaxPooling2D, RandomFlip, Rescaling, ZeroPadding2D, RandomCrop
from keras.models import Sequential
from keras.utils import PyDataset


class Batches(PyDataset):
    def __init__(self, x, y, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y, self.batch_size = x, y, batch_size

    def __len__(self):
        return int(np.ceil(len(self.x) / self.batch_size))

    def __getitem__(self, index):
        part = slice(index * self.batch_size, (index + 1) * self.batch_size)
        return self.x[part], self.y[part]


model = Sequential()
model.add(Input(shape=(8, 8, 1)))
model.add(Rescaling(2.0, offset=-1.0))
model.add(ZeroPadding2D(1))
model.add(RandomCrop(8, 8))
model.add(RandomFlip("vertical"))
model.add(Conv2D(16, (3, 3), padding="same", activation="relu"))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Flatten())
model.add(Dense(10, activation="softmax"))
model.compile(loss="sparse_categorical_crossentropy", optimizer="rmsprop", metrics=["accuracy"])
history = model.fit(Batches(x_train, y_train, 50), epochs=6, validation_data=Batches(x_test, y_test, 50), verbose=0)
assert history.history["loss"][-1] < history.history["loss"][0]


def batches():
    while True:
        order = np.random.permutation(len(x_train))[:32]
        yield x_train[order], y_train[order]


model.fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)
""",
    "autoencoder": """
import keras
from keras.layers import Conv2D, Conv2DTranspose, Input, MaxPooling2D, UpSampling2D
from keras.models import Model

input = Input(shape=(8, 8, 1))
x = Conv2D(16, (3, 3), activation="relu", padding="same")(input)
x = MaxPooling2D((2, 2), padding="same")(x)
x = Conv2D(16, (3, 3), activation="relu", padding="same")(x)
x = MaxPooling2D((2, 2), padding="same")(x)
x = Conv2DTranspose(16, (3, 3), strides=2, activation="relu", padding="same")(x)
x = UpSampling2D((2, 2))(x)
x = Conv2D(1, (3, 3), activation="sigmoid", padding="same")(x)
autoencoder = Model(input, x)
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
autoencoder.summary()
noisy = np.clip(x_train + 0.2 * np.random.normal(size=x_train.shape), 0, 1)
history = autoencoder.fit(x=noisy, y=x_train, epochs=8, batch_size=64, shuffle=True, validation_data=(x_test, x_test))
assert history.history["val_loss"][-1] < 0.75 * history.history["val_loss"][0]
assert autoencoder.predict(x_test).shape == x_test.shape
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text(SETUP + SCRIPTS[name])
    command = [sys.executable, "-W", "error", "-m", "pydtconv", "run", path.name]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, check=False)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
