"""The two-convolution network for MNIST that Keras's first example trains: 34826 parameters for 28x28x1 and 10 classes.

As a script it trains on MNIST: `python mnist_convnet.py [epochs]`.
"""

from __future__ import annotations

import sys
from typing import Any

from pydtconv import datasets, layers
from pydtconv.applications.own import own

__all__ = ["MNISTConvNet"]


@own((28, 28, 1), 10, name="mnist_convnet")
def MNISTConvNet(images: Any) -> Any:
    """Convolution 3x3x32, pooling, convolution 3x3x64, pooling, dropout, a dense softmax layer.

    input_shape: (height, width, channels), at least 10x10.
    """
    features = [
        layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(64, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
    ]
    return features, [layers.Flatten(), layers.Dropout(0.5)]


def main(epochs: int = 15) -> None:
    (x_train, y_train), (x_test, y_test) = datasets.mnist.load_data()
    x_train = x_train[..., None].astype("float32") / 255
    x_test = x_test[..., None].astype("float32") / 255

    model = MNISTConvNet()
    model.summary()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, batch_size=128, epochs=epochs, validation_split=0.1)
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
