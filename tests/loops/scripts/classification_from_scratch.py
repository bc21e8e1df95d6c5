"""Image classification from folders: image_dataset_from_directory(subset="both"), augmentation by a map."""

import os

import numpy as np
from PIL import Image

import keras
from keras import layers
from tensorflow import data as tf_data

keras.utils.set_random_seed(6)
rng = np.random.default_rng(0)
for name, level in (("Cat", 60), ("Dog", 190)):
    os.makedirs(f"PetImages/{name}", exist_ok=True)
    for i in range(10):
        image = np.clip(rng.normal(level, 30, (24, 24, 3)), 0, 255).astype("uint8")
        Image.fromarray(image).save(f"PetImages/{name}/{i}.jpg")

image_size, batch_size = (24, 24), 4
train_ds, val_ds = keras.utils.image_dataset_from_directory(
    "PetImages", validation_split=0.2, subset="both", seed=1337, image_size=image_size, batch_size=batch_size
)
for images, labels in train_ds.take(1):
    assert np.array(images[0]).astype("uint8").shape == (24, 24, 3)
    assert int(labels[0]) in (0, 1)

data_augmentation_layers = [layers.RandomFlip("horizontal"), layers.RandomRotation(0.1)]


def data_augmentation(images):
    for layer in data_augmentation_layers:
        images = layer(images)
    return images


train_ds = train_ds.map(lambda img, label: (data_augmentation(img), label), num_parallel_calls=tf_data.AUTOTUNE)
train_ds = train_ds.prefetch(tf_data.AUTOTUNE)
val_ds = val_ds.prefetch(tf_data.AUTOTUNE)


def make_model(input_shape, num_classes):
    inputs = keras.Input(shape=input_shape)
    x = layers.Rescaling(1.0 / 255)(inputs)
    x = layers.Conv2D(16, 3, strides=2, padding="same")(x)
    x = layers.BatchNormalization(momentum=0.8)(x)
    x = layers.Activation("relu")(x)
    previous_block_activation = x
    for size in [16, 32]:
        x = layers.Activation("relu")(x)
        x = layers.SeparableConv2D(size, 3, padding="same")(x)
        x = layers.BatchNormalization(momentum=0.8)(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        residual = layers.Conv2D(size, 1, strides=2, padding="same")(previous_block_activation)
        x = layers.add([x, residual])
        previous_block_activation = x
    x = layers.GlobalAveragePooling2D()(x)
    units = 1 if num_classes == 2 else num_classes
    x = layers.Dropout(0.25)(x)
    outputs = layers.Dense(units, activation=None)(x)
    return keras.Model(inputs, outputs)


model = make_model(input_shape=image_size + (3,), num_classes=2)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(name="acc")],
)
callbacks = [keras.callbacks.ModelCheckpoint("save_at_{epoch}.keras")]
history = model.fit(train_ds, epochs=6, callbacks=callbacks, validation_data=val_ds, verbose=2)
assert history.history["acc"][-1] > 0.8, history.history
img = keras.utils.load_img("PetImages/Cat/6.jpg", target_size=image_size)
img_array = keras.ops.expand_dims(keras.utils.img_to_array(img), 0)
predictions = model.predict(img_array, verbose=0)
score = float(keras.ops.sigmoid(predictions[0][0]))
assert 0 <= score <= 1
print(f"This image is {100 * (1 - score):.2f}% cat and {100 * score:.2f}% dog.", "ok")
