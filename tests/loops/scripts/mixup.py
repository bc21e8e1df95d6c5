# MixUp of two shuffled data sets with tf.data, then CutMix and RandAugment as layers in a map
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 192)
x = (rng.random((192, 12, 12, 3)) * 0.3).astype("float32")
for i, label in enumerate(y):
    x[i, label * 4 : label * 4 + 4, :, label] += 0.7
y = tf.one_hot(y, 3)
AUTO, BATCH = tf.data.AUTOTUNE, 32

one = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(BATCH * 10).batch(BATCH)
two = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(BATCH * 10).batch(BATCH)
both = tf.data.Dataset.zip((one, two))


def sample_beta(size, a, b):
    gamma_1 = tf.random.gamma(shape=[size], alpha=a)
    gamma_2 = tf.random.gamma(shape=[size], alpha=b)
    return gamma_1 / (gamma_1 + gamma_2)


def mix_up(first, second, alpha=0.2):
    images_1, labels_1 = first
    images_2, labels_2 = second
    size = tf.shape(images_1)[0]
    share = sample_beta(size, alpha, alpha)
    images = tf.reshape(share, (size, 1, 1, 1))
    labels = tf.reshape(share, (size, 1))
    return images_1 * images + images_2 * (1 - images), labels_1 * labels + labels_2 * (1 - labels)


mixed = both.map(lambda first, second: mix_up(first, second), num_parallel_calls=AUTO).prefetch(AUTO)
images, labels = next(iter(mixed))
assert images.shape == (32, 12, 12, 3)
np.testing.assert_allclose(np.asarray(labels).sum(1), 1, rtol=1e-5)


def network():
    return keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(3),
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )


model = network()
model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy", metrics=["accuracy"])
model.fit(mixed, epochs=6, verbose=0)
plain = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
loss, accuracy = model.evaluate(plain, verbose=0)
assert accuracy > 0.9, accuracy

cut_mix = layers.CutMix(seed=1)
changes = layers.RandAugment(value_range=(0, 1), factor=0.1, seed=2)


def changed(images, labels):
    found = cut_mix({"images": images, "labels": labels}, training=True)
    return changes(found["images"], training=True), found["labels"]


cut = one.map(changed, num_parallel_calls=AUTO)
first, second = (np.asarray(next(iter(cut))[0]) for _ in range(2))
assert (first != second).any()
model = network()
model.compile(keras.optimizers.Adam(0.01), "categorical_crossentropy", metrics=["accuracy"])
history = model.fit(cut, epochs=4, validation_data=plain, verbose=0)
assert history.history["val_accuracy"][-1] > 0.6, history.history
print("ok")
