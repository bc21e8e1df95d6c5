"""ConvMixer: depthwise convolutions with additions, tf.data with augmentation on batches."""

import numpy as np
import tensorflow as tf

import keras
from keras import layers

keras.utils.set_random_seed(9)
auto = tf.data.AUTOTUNE
rng = np.random.default_rng(0)
y = rng.integers(0, 4, 64)
x = (rng.random((64, 16, 16, 3)) * 60 + 60 * y[:, None, None, None]).astype("uint8")
(x_train, y_train), (x_val, y_val) = (x[:48], y[:48]), (x[48:], y[48:])
data_augmentation = keras.Sequential(
    [layers.RandomCrop(16, 16), layers.RandomFlip("horizontal")], name="data_augmentation"
)


def make_datasets(images, labels, is_train=False):
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    if is_train:
        dataset = dataset.shuffle(16 * 10)
    dataset = dataset.batch(16)
    if is_train:
        dataset = dataset.map(lambda x, y: (data_augmentation(x), y), num_parallel_calls=auto)
    return dataset.prefetch(auto)


train_dataset = make_datasets(x_train, y_train, is_train=True)
val_dataset = make_datasets(x_val, y_val)


def activation_block(x):
    x = layers.Activation("gelu")(x)
    return layers.BatchNormalization(momentum=0.8)(x)


def conv_stem(x, filters, patch_size):
    x = layers.Conv2D(filters, kernel_size=patch_size, strides=patch_size)(x)
    return activation_block(x)


def conv_mixer_block(x, filters, kernel_size):
    x0 = x
    x = layers.DepthwiseConv2D(kernel_size=kernel_size, padding="same")(x)
    x = layers.Add()([activation_block(x), x0])
    x = layers.Conv2D(filters, kernel_size=1)(x)
    return activation_block(x)


inputs = keras.Input((16, 16, 3))
x = layers.Rescaling(scale=1.0 / 255)(inputs)
x = conv_stem(x, 16, 2)
for _ in range(2):
    x = conv_mixer_block(x, 16, 5)
x = layers.GlobalAvgPool2D()(x)
model = keras.Model(inputs, layers.Dense(4, activation="softmax")(x))
model.compile(
    optimizer=keras.optimizers.AdamW(learning_rate=0.01, weight_decay=0.0001),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
history = model.fit(train_dataset, validation_data=val_dataset, epochs=6, verbose=2)
assert history.history["accuracy"][-1] > 0.5, history.history
_, accuracy = model.evaluate(val_dataset, verbose=0)
patch_embeddings = model.layers[2].get_weights()[0]
assert patch_embeddings.shape == (2, 2, 3, 16)
print("ok", accuracy)
