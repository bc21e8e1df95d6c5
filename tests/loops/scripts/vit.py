"""A vision transformer: patches and their positions as layers of one's own, attention, AdamW."""

import numpy as np

import keras
from keras import layers, ops

keras.utils.set_random_seed(8)
num_classes, image_size, patch_size, projection_dim, num_heads = 4, 16, 4, 16, 2
num_patches = (image_size // patch_size) ** 2
rng = np.random.default_rng(0)
y_train = rng.integers(0, num_classes, (64, 1))
x_train = (rng.random((64, image_size, image_size, 3)) * 50 + 60 * y_train[:, :, None, None]).astype("float32")

data_augmentation = keras.Sequential(
    [
        layers.Normalization(),
        layers.Resizing(image_size, image_size),
        layers.RandomFlip("horizontal"),
        layers.RandomRotation(factor=0.02),
        layers.RandomZoom(height_factor=0.2, width_factor=0.2),
    ],
    name="data_augmentation",
)
data_augmentation.layers[0].adapt(x_train)


def mlp(x, hidden_units, dropout_rate):
    for units in hidden_units:
        x = layers.Dense(units, activation=keras.activations.gelu)(x)
        x = layers.Dropout(dropout_rate)(x)
    return x


class Patches(layers.Layer):
    def __init__(self, patch_size):
        super().__init__()
        self.patch_size = patch_size

    def call(self, images):
        input_shape = ops.shape(images)
        batch_size, height, width, channels = input_shape
        num_patches_h = height // self.patch_size
        num_patches_w = width // self.patch_size
        patches = keras.ops.image.extract_patches(images, size=self.patch_size)
        return ops.reshape(
            patches, (batch_size, num_patches_h * num_patches_w, self.patch_size * self.patch_size * channels)
        )

    def get_config(self):
        config = super().get_config()
        config.update({"patch_size": self.patch_size})
        return config


class PatchEncoder(layers.Layer):
    def __init__(self, num_patches, projection_dim):
        super().__init__()
        self.num_patches = num_patches
        self.projection = layers.Dense(units=projection_dim)
        self.position_embedding = layers.Embedding(input_dim=num_patches, output_dim=projection_dim)

    def call(self, patch):
        positions = ops.expand_dims(ops.arange(start=0, stop=self.num_patches, step=1), axis=0)
        projected_patches = self.projection(patch)
        return projected_patches + self.position_embedding(positions)


def create_vit_classifier():
    inputs = keras.Input(shape=(image_size, image_size, 3))
    augmented = data_augmentation(inputs)
    patches = Patches(patch_size)(augmented)
    encoded_patches = PatchEncoder(num_patches, projection_dim)(patches)
    for _ in range(2):
        x1 = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
        attention_output = layers.MultiHeadAttention(num_heads=num_heads, key_dim=projection_dim, dropout=0.1)(x1, x1)
        x2 = layers.Add()([attention_output, encoded_patches])
        x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
        x3 = mlp(x3, hidden_units=[projection_dim * 2, projection_dim], dropout_rate=0.1)
        encoded_patches = layers.Add()([x3, x2])
    representation = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
    representation = layers.Flatten()(representation)
    representation = layers.Dropout(0.1)(representation)
    features = mlp(representation, hidden_units=[32], dropout_rate=0.1)
    return keras.Model(inputs=inputs, outputs=layers.Dense(num_classes)(features))


model = create_vit_classifier()
model.compile(
    optimizer=keras.optimizers.AdamW(learning_rate=0.003, weight_decay=0.0001),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[
        keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
        keras.metrics.SparseTopKCategoricalAccuracy(2, name="top-2-accuracy"),
    ],
)
checkpoint_filepath = "checkpoint.weights.h5"
checkpoint_callback = keras.callbacks.ModelCheckpoint(
    checkpoint_filepath, monitor="val_accuracy", save_best_only=True, save_weights_only=True
)
history = model.fit(
    x=x_train, y=y_train, batch_size=16, epochs=8, validation_split=0.1, callbacks=[checkpoint_callback], verbose=0
)
model.load_weights(checkpoint_filepath)
_, accuracy, top = model.evaluate(x_train, y_train, verbose=0)
assert top >= accuracy > 0.4, (accuracy, top)
print("ok", accuracy, top)
