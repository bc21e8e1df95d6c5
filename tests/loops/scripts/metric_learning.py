# similarities of pairs of one class among those of others: a train_step with a temperature, and a loop of one's own
import numpy as np
import tensorflow as tf

import keras
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(2)
classes = 4
prototypes = rng.random((classes, 8, 8, 3)).astype("float32")


def drawn(labels):
    return prototypes[labels] + rng.normal(size=(len(labels), 8, 8, 3)).astype("float32") * 0.1


class AnchorPositivePairs(keras.utils.Sequence):
    def __init__(self, num_batches):
        super().__init__()
        self.count = num_batches

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        labels = np.arange(classes)
        return np.stack([drawn(labels), drawn(labels)])


class EmbeddingModel(keras.Model):
    def train_step(self, data):
        if isinstance(data, tuple):
            data = data[0]
        anchors, positives = data[0], data[1]
        with tf.GradientTape() as tape:
            anchor_embeddings = self(anchors, training=True)
            positive_embeddings = self(positives, training=True)
            similarities = keras.ops.einsum("ae,pe->ap", anchor_embeddings, positive_embeddings)
            similarities /= 0.2
            sparse_labels = keras.ops.arange(classes)
            loss = self.compute_loss(y=sparse_labels, y_pred=similarities)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(sparse_labels, similarities)
        return {m.name: m.result() for m in self.metrics}


inputs = layers.Input(shape=(8, 8, 3))
x = layers.Conv2D(filters=8, kernel_size=3, strides=2, activation="relu")(inputs)
x = layers.GlobalAveragePooling2D()(x)
embeddings = layers.UnitNormalization()(layers.Dense(units=8, activation=None)(x))
model = EmbeddingModel(inputs, embeddings)
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
history = model.fit(AnchorPositivePairs(num_batches=20), epochs=4, verbose=0)
assert history.history["loss"][-1] < history.history["loss"][0]

# the same network with a head, in a loop of one's own
head = keras.Sequential([model, layers.Dense(classes)])
optimizer, loss_fn = keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy, mean = keras.metrics.SparseCategoricalAccuracy(), keras.metrics.Mean()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        logits = head(x, training=True)
        loss = loss_fn(y, logits)
    optimizer.apply_gradients(zip(tape.gradient(loss, head.trainable_weights), head.trainable_weights))
    accuracy.update_state(y, logits)
    mean.update_state(loss)
    return loss


for epoch in range(5):
    accuracy.reset_state()
    mean.reset_state()
    for _ in range(20):
        y = rng.integers(0, classes, 16)
        step(tf.constant(drawn(y)), tf.constant(y))
assert float(accuracy.result()) > 0.9, float(accuracy.result())

near = keras.ops.matmul(model(drawn(np.arange(classes))), keras.ops.transpose(model(prototypes)))
assert (np.argmax(near, axis=1) == np.arange(classes)).mean() >= 0.75
print("ok")
