"""Segmentation by a small U-Net: a tf.data pipeline of files, separable convolutions, residual additions."""

import os

import numpy as np
import tensorflow as tf
from PIL import Image

import keras
from keras import layers

keras.utils.set_random_seed(4)
rng = np.random.default_rng(0)
os.makedirs("pictures", exist_ok=True)
for i in range(10):
    mask = np.zeros((32, 32), "uint8")
    top, left = rng.integers(4, 16, 2)
    mask[top : top + 12, left : left + 12] = 1
    picture = np.where(mask[..., None], 200, 50) + rng.integers(0, 40, (32, 32, 3))
    Image.fromarray(picture.astype("uint8")).save(f"pictures/{i}.png")
    Image.fromarray(mask).save(f"pictures/{i}_mask.png")
input_img_paths = sorted(f"pictures/{i}.png" for i in range(10))
target_img_paths = sorted(f"pictures/{i}_mask.png" for i in range(10))
img_size, num_classes, batch_size = (32, 32), 2, 5


def get_dataset(batch_size, img_size, input_img_paths, target_img_paths):
    def load_img_masks(input_img_path, target_img_path):
        input_img = tf.io.read_file(input_img_path)
        input_img = tf.io.decode_png(input_img, channels=3)
        input_img = tf.image.resize(input_img, img_size)
        input_img = tf.image.convert_image_dtype(input_img, "float32")
        target_img = tf.io.read_file(target_img_path)
        target_img = tf.io.decode_png(target_img, channels=1)
        target_img = tf.image.resize(target_img, img_size, method="nearest")
        target_img = tf.image.convert_image_dtype(target_img, "uint8") if target_img.dtype == "uint8" else target_img
        return input_img, tf.cast(target_img, "uint8")

    dataset = tf.data.Dataset.from_tensor_slices((input_img_paths, target_img_paths))
    dataset = dataset.map(load_img_masks, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(batch_size)


def get_model(img_size, num_classes):
    inputs = keras.Input(shape=(*img_size, 3))
    x = layers.Rescaling(1 / 255)(inputs)
    x = layers.Conv2D(8, 3, strides=2, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    previous_block_activation = x
    for filters in [8, 16]:
        x = layers.Activation("relu")(x)
        x = layers.SeparableConv2D(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        residual = layers.Conv2D(filters, 1, strides=2, padding="same")(previous_block_activation)
        x = layers.add([x, residual])
        previous_block_activation = x
    for filters in [16, 8, 8]:
        x = layers.Activation("relu")(x)
        x = layers.Conv2DTranspose(filters, 3, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.UpSampling2D(2)(x)
        residual = layers.UpSampling2D(2)(previous_block_activation)
        residual = layers.Conv2D(filters, 1, padding="same")(residual)
        x = layers.add([x, residual])
        previous_block_activation = x
    outputs = layers.Conv2D(num_classes, 3, activation="softmax", padding="same")(x)
    return keras.Model(inputs, outputs)


model = get_model(img_size, num_classes)
dataset = get_dataset(batch_size, img_size, input_img_paths, target_img_paths)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [keras.callbacks.ModelCheckpoint("segmentation.keras", save_best_only=True)]
history = model.fit(dataset, epochs=6, validation_data=dataset, callbacks=callbacks, verbose=2)
assert history.history["loss"][-1] < 0.7 * history.history["loss"][0], history.history
predictions = model.predict(dataset, verbose=0)
assert np.argmax(predictions[0], axis=-1).shape == (32, 32)
assert os.path.exists("segmentation.keras")
print("ok")
