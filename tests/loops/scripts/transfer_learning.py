"""Transfer learning: a frozen base of keras.applications, then fine-tuning it at a small rate."""

import numpy as np
import tensorflow as tf

import keras
from keras import layers

keras.utils.set_random_seed(7)
rng = np.random.default_rng(0)
labels = rng.integers(0, 2, 24)
images = np.clip(rng.normal(70 + 110 * labels[:, None, None, None], 20, (24, 40, 40, 3)), 0, 255).astype("uint8")
train_ds = tf.data.Dataset.from_tensor_slices((images, labels))
resize_fn = keras.layers.Resizing(32, 32)
train_ds = train_ds.map(lambda x, y: (resize_fn(x), y))
augmentation_layers = [layers.RandomFlip("horizontal"), layers.RandomRotation(0.1)]


def data_augmentation(x):
    for layer in augmentation_layers:
        x = layer(x)
    return x


train_ds = train_ds.map(lambda x, y: (data_augmentation(x), y))
train_ds = train_ds.batch(8).prefetch(tf.data.AUTOTUNE).cache()

base_model = keras.applications.MobileNetV2(weights=None, input_shape=(32, 32, 3), alpha=0.35, include_top=False)
base_model.trainable = False
inputs = keras.Input(shape=(32, 32, 3))
x = keras.layers.Rescaling(scale=1 / 127.5, offset=-1)(inputs)
x = base_model(x, training=False)
x = keras.layers.GlobalAveragePooling2D()(x)
x = keras.layers.Dropout(0.2)(x)
outputs = keras.layers.Dense(1)(x)
model = keras.Model(inputs, outputs)
model.summary(show_trainable=True)
frozen = [w.numpy() for w in base_model.weights]
model.compile(
    optimizer=keras.optimizers.Adam(),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy()],
)
model.fit(train_ds, epochs=2, validation_data=train_ds, verbose=2)
assert all(np.array_equal(a, w.numpy()) for a, w in zip(frozen, base_model.weights))

base_model.trainable = True
model.compile(
    optimizer=keras.optimizers.Adam(1e-4),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy()],
)
model.fit(train_ds, epochs=1, validation_data=train_ds, verbose=2)
assert any(not np.array_equal(a, w.numpy()) for a, w in zip(frozen, base_model.trainable_weights))
assert np.isfinite(model.evaluate(train_ds, verbose=0)).all()
print("ok")
