"""Contrastive learning with a linear probe: two data sets zipped, two optimizers, augmentation within the step."""

import numpy as np
import tensorflow as tf

import keras
from keras import layers, ops

keras.utils.set_random_seed(12)
image_size, width, temperature = 16, 16, 0.1
rng = np.random.default_rng(0)


def images_of(count):
    labels = rng.integers(0, 4, count)
    images = rng.random((count, image_size, image_size, 3)) * 80 + 50 * labels[:, None, None, None]
    return images.astype("float32"), labels


unlabeled_images, unlabeled = images_of(96)
labeled_images, labels = images_of(32)
unlabeled_train_dataset = tf.data.Dataset.from_tensor_slices((unlabeled_images, unlabeled)).shuffle(96).batch(24)
labeled_train_dataset = tf.data.Dataset.from_tensor_slices((labeled_images, labels)).shuffle(32).batch(8)
test_dataset = tf.data.Dataset.from_tensor_slices((labeled_images, labels)).batch(16).prefetch(tf.data.AUTOTUNE)
train_dataset = tf.data.Dataset.zip((unlabeled_train_dataset, labeled_train_dataset)).prefetch(tf.data.AUTOTUNE)


class RandomColorAffine(layers.Layer):
    def __init__(self, brightness=0, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)
        self.brightness = brightness

    def call(self, images, training=True):
        if training:
            batch_size = ops.shape(images)[0]
            scales = 1 + keras.random.uniform(
                (batch_size, 1, 1, 1), minval=-self.brightness, maxval=self.brightness, seed=self.seed_generator
            )
            images = ops.clip(images * scales, 0, 1)
        return images


def get_augmenter(min_area, brightness):
    zoom_factor = 1.0 - np.sqrt(min_area)
    return keras.Sequential(
        [
            layers.Rescaling(1 / 255),
            layers.RandomFlip("horizontal"),
            layers.RandomTranslation(zoom_factor / 2, zoom_factor / 2),
            layers.RandomZoom((-zoom_factor, 0.0), (-zoom_factor, 0.0)),
            RandomColorAffine(brightness),
        ]
    )


def get_encoder():
    return keras.Sequential(
        [
            layers.Conv2D(width, kernel_size=3, strides=2, activation="relu"),
            layers.Conv2D(width, kernel_size=3, strides=2, activation="relu"),
            layers.Flatten(),
            layers.Dense(width, activation="relu"),
        ],
        name="encoder",
    )


class ContrastiveModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.temperature = temperature
        self.contrastive_augmenter = get_augmenter(min_area=0.5, brightness=0.3)
        self.classification_augmenter = get_augmenter(min_area=0.8, brightness=0.1)
        self.encoder = get_encoder()
        self.projection_head = keras.Sequential(
            [keras.Input(shape=(width,)), layers.Dense(width, activation="relu"), layers.Dense(width)],
            name="projection_head",
        )
        self.linear_probe = keras.Sequential([layers.Input(shape=(width,)), layers.Dense(4)], name="linear_probe")

    def compile(self, contrastive_optimizer, probe_optimizer, **kwargs):
        super().compile(**kwargs)
        self.contrastive_optimizer = contrastive_optimizer
        self.probe_optimizer = probe_optimizer
        self.probe_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.contrastive_loss_tracker = keras.metrics.Mean(name="c_loss")
        self.contrastive_accuracy = keras.metrics.SparseCategoricalAccuracy(name="c_acc")
        self.probe_loss_tracker = keras.metrics.Mean(name="p_loss")
        self.probe_accuracy = keras.metrics.SparseCategoricalAccuracy(name="p_acc")

    @property
    def metrics(self):
        return [
            self.contrastive_loss_tracker,
            self.contrastive_accuracy,
            self.probe_loss_tracker,
            self.probe_accuracy,
        ]

    def contrastive_loss(self, projections_1, projections_2):
        projections_1 = ops.normalize(projections_1, axis=1)
        projections_2 = ops.normalize(projections_2, axis=1)
        similarities = ops.matmul(projections_1, ops.transpose(projections_2)) / self.temperature
        batch_size = ops.shape(projections_1)[0]
        contrastive_labels = ops.arange(batch_size)
        self.contrastive_accuracy.update_state(contrastive_labels, similarities)
        self.contrastive_accuracy.update_state(contrastive_labels, ops.transpose(similarities))
        loss_1_2 = keras.losses.sparse_categorical_crossentropy(contrastive_labels, similarities, from_logits=True)
        loss_2_1 = keras.losses.sparse_categorical_crossentropy(
            contrastive_labels, ops.transpose(similarities), from_logits=True
        )
        return ops.mean(loss_1_2 + loss_2_1) / 2

    def train_step(self, data):
        (unlabeled_images, _), (labeled_images, labels) = data
        images = ops.concatenate((unlabeled_images, labeled_images), axis=0)
        augmented_images_1 = self.contrastive_augmenter(images, training=True)
        augmented_images_2 = self.contrastive_augmenter(images, training=True)
        with tf.GradientTape() as tape:
            features_1 = self.encoder(augmented_images_1, training=True)
            features_2 = self.encoder(augmented_images_2, training=True)
            projections_1 = self.projection_head(features_1, training=True)
            projections_2 = self.projection_head(features_2, training=True)
            contrastive_loss = self.contrastive_loss(projections_1, projections_2)
        trained = self.encoder.trainable_weights + self.projection_head.trainable_weights
        gradients = tape.gradient(contrastive_loss, trained)
        self.contrastive_optimizer.apply_gradients(zip(gradients, trained))
        self.contrastive_loss_tracker.update_state(contrastive_loss)

        preprocessed_images = self.classification_augmenter(labeled_images, training=True)
        with tf.GradientTape() as tape:
            features = self.encoder(preprocessed_images, training=False)
            class_logits = self.linear_probe(features, training=True)
            probe_loss = self.probe_loss(labels, class_logits)
        gradients = tape.gradient(probe_loss, self.linear_probe.trainable_weights)
        self.probe_optimizer.apply_gradients(zip(gradients, self.linear_probe.trainable_weights))
        self.probe_loss_tracker.update_state(probe_loss)
        self.probe_accuracy.update_state(labels, class_logits)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        labeled_images, labels = data
        preprocessed_images = self.classification_augmenter(labeled_images, training=False)
        features = self.encoder(preprocessed_images, training=False)
        class_logits = self.linear_probe(features, training=False)
        probe_loss = self.probe_loss(labels, class_logits)
        self.probe_loss_tracker.update_state(probe_loss)
        self.probe_accuracy.update_state(labels, class_logits)
        return {m.name: m.result() for m in self.metrics[2:]}


model = ContrastiveModel()
model.compile(contrastive_optimizer=keras.optimizers.Adam(1e-3), probe_optimizer=keras.optimizers.Adam(5e-2))
history = model.fit(train_dataset, epochs=10, validation_data=test_dataset, verbose=2)
assert set(history.history) == {"c_loss", "c_acc", "p_loss", "p_acc", "val_p_loss", "val_p_acc"}, history.history
assert history.history["c_loss"][-1] < history.history["c_loss"][0], history.history
assert history.history["val_p_acc"][-1] > 0.4, history.history
print("ok")
