"""The MNIST convnet, with one-hot targets and a validation split."""

import numpy as np

import keras
from keras import layers

keras.utils.set_random_seed(5)
num_classes, input_shape = 10, (28, 28, 1)
rng = np.random.default_rng(0)
y = rng.integers(0, 10, 96)
x = rng.random((96, 28, 28)).astype("float32") * 60
for image, label in zip(x, y):
    image[2 + 2 * label : 5 + 2 * label, 4:24] = 255
x_train = np.expand_dims(x.astype("float32") / 255, -1)
y_train = keras.utils.to_categorical(y, num_classes)
model = keras.Sequential(
    [
        keras.Input(shape=input_shape),
        layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.summary()
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=16, epochs=8, validation_split=0.1, verbose=2)
score = model.evaluate(x_train, y_train, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
assert score[1] > 0.9, score
print("ok")
