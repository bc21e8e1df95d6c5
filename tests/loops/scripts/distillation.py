"""Knowledge distillation: compute_loss of one's own with a teacher in it."""

import numpy as np
import tensorflow as tf

import keras
from keras import layers, ops

keras.utils.set_random_seed(11)


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher = teacher
        self.student = student

    def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
        super().compile(optimizer=optimizer, metrics=metrics)
        self.student_loss_fn = student_loss_fn
        self.distillation_loss_fn = distillation_loss_fn
        self.alpha = alpha
        self.temperature = temperature

    def train_step(self, data):
        x, y = data
        teacher_predictions = self.teacher(x, training=False)
        with tf.GradientTape() as tape:
            student_predictions = self.student(x, training=True)
            student_loss = self.student_loss_fn(y, student_predictions)
            distillation_loss = self.distillation_loss_fn(
                ops.softmax(teacher_predictions / self.temperature, axis=1),
                ops.softmax(student_predictions / self.temperature, axis=1),
            ) * (self.temperature**2)
            loss = self.alpha * student_loss + (1 - self.alpha) * distillation_loss
        trainable_vars = self.student.trainable_variables
        gradients = tape.gradient(loss, trainable_vars)
        self.optimizer.apply_gradients(zip(gradients, trainable_vars))
        results = self.compute_metrics(x, y, student_predictions, None)
        results.update({"student_loss": student_loss, "distillation_loss": distillation_loss})
        return results

    def test_step(self, data):
        x, y = data
        y_prediction = self.student(x, training=False)
        student_loss = self.student_loss_fn(y, y_prediction)
        results = self.compute_metrics(x, y, y_prediction, None)
        results.update({"student_loss": student_loss})
        return results

    def call(self, x):
        return self.student(x)


def network(filters, name):
    return keras.Sequential(
        [
            keras.Input(shape=(14, 14, 1)),
            layers.Conv2D(filters, (3, 3), strides=(2, 2), padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.MaxPooling2D(pool_size=(2, 2), strides=(1, 1), padding="same"),
            layers.Flatten(),
            layers.Dense(10),
        ],
        name=name,
    )


teacher, student = network(16, "teacher"), network(4, "student")
rng = np.random.default_rng(0)
y = rng.integers(0, 10, 64)
x = rng.random((64, 14, 14, 1)).astype("float32") * 0.3
for image, label in zip(x, y):
    image[label : label + 3] += 0.7
teacher.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
)
teacher.fit(x, y, epochs=4, batch_size=16, verbose=0)
kept = [w.numpy() for w in teacher.weights]
distiller = Distiller(student=student, teacher=teacher)
distiller.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
    student_loss_fn=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    distillation_loss_fn=keras.losses.KLDivergence(),
    alpha=0.1,
    temperature=10,
)
history = distiller.fit(x, y, epochs=8, batch_size=16, verbose=0)
assert history.history["distillation_loss"][-1] < history.history["distillation_loss"][0], history.history
results = distiller.evaluate(x, y, verbose=0, return_dict=True)
assert results["sparse_categorical_accuracy"] > 0.5, results
assert all(np.array_equal(a, w.numpy()) for a, w in zip(kept, teacher.weights))
print("ok", results)
