"""Super-resolution: image_dataset_from_directory, tf.data maps, depth_to_space, a callback with PSNR."""

import math
import os

import numpy as np
import tensorflow as tf
from PIL import Image

import keras
from keras import layers, ops
from keras.utils import array_to_img, image_dataset_from_directory, img_to_array, load_img

keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
os.makedirs("images/train", exist_ok=True)
for i in range(12):
    small = rng.integers(0, 255, (6, 6, 3), dtype="uint8")
    Image.fromarray(small).resize((24, 24), Image.BICUBIC).save(f"images/train/{i}.png")

crop_size, upscale_factor, batch_size = 24, 3, 4
input_size = crop_size // upscale_factor
train_ds = image_dataset_from_directory(
    "images",
    batch_size=batch_size,
    image_size=(crop_size, crop_size),
    validation_split=0.25,
    subset="training",
    seed=1337,
    label_mode=None,
)
valid_ds = image_dataset_from_directory(
    "images",
    batch_size=batch_size,
    image_size=(crop_size, crop_size),
    validation_split=0.25,
    subset="validation",
    seed=1337,
    label_mode=None,
)


def scaling(input_image):
    return input_image / 255.0


def process_input(image, input_size):
    image = tf.image.rgb_to_yuv(image)
    y, u, v = tf.split(image, 3, axis=3)
    return tf.image.resize(y, [input_size, input_size], method="area" if False else "bilinear")


def process_target(image):
    image = tf.image.rgb_to_yuv(image)
    y, u, v = tf.split(image, 3, axis=len(image.shape) - 1)
    return y


train_ds = train_ds.map(scaling)
valid_ds = valid_ds.map(scaling)
train_ds = train_ds.map(lambda x: (process_input(x, input_size), process_target(x)))
train_ds = train_ds.prefetch(buffer_size=32)
valid_ds = valid_ds.map(lambda x: (process_input(x, input_size), process_target(x))).prefetch(buffer_size=32)


class DepthToSpace(layers.Layer):
    def __init__(self, block_size):
        super().__init__()
        self.block_size = block_size

    def call(self, input):
        batch, height, width, depth = ops.shape(input)
        depth = depth // (self.block_size**2)
        x = ops.reshape(input, [batch, height, width, self.block_size, self.block_size, depth])
        x = ops.transpose(x, [0, 1, 3, 2, 4, 5])
        return ops.reshape(x, [batch, height * self.block_size, width * self.block_size, depth])


def get_model(upscale_factor=3, channels=1):
    conv_args = {"activation": "relu", "kernel_initializer": "orthogonal", "padding": "same"}
    inputs = keras.Input(shape=(None, None, channels))
    x = layers.Conv2D(16, 5, **conv_args)(inputs)
    x = layers.Conv2D(8, 3, **conv_args)(x)
    x = layers.Conv2D(channels * (upscale_factor**2), 3, **conv_args)(x)
    outputs = DepthToSpace(upscale_factor)(x)
    return keras.Model(inputs, outputs)


class ESPCNCallback(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.psnr = []

    def on_epoch_end(self, epoch, logs=None):
        print("Mean PSNR for epoch: %.2f" % (np.mean(self.psnr)))

    def on_test_batch_end(self, batch, logs=None):
        self.psnr.append(10 * math.log10(1 / logs["loss"]))


model = get_model(upscale_factor=upscale_factor, channels=1)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.003), loss=keras.losses.MeanSquaredError())
history = model.fit(
    train_ds,
    epochs=8,
    callbacks=[ESPCNCallback(), keras.callbacks.EarlyStopping(monitor="loss", patience=10)],
    validation_data=valid_ds,
    verbose=0,
)
assert history.history["loss"][-1] < 0.6 * history.history["loss"][0], history.history
image = load_img("images/train/0.png")
y = image.convert("YCbCr").split()[0]
found = model.predict(np.expand_dims(img_to_array(y).astype("float32") / 255.0, axis=0), verbose=0)[0]
assert found.shape == (72, 72, 1)
assert array_to_img(found).size == (72, 72)
print("ok", history.history["loss"])
