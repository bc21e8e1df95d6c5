"""What the zoo's scripts share: a model trained on CIFAR-10 from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from pydtconv import callbacks, datasets, optimizers


def train_on_cifar10(builder: Callable[..., Any], learning_rate: float = 0.1) -> None:
    """Trains `builder(input_shape, classes)` on CIFAR-10 with SGD and momentum; --epochs and --batch-size choose."""
    parser = argparse.ArgumentParser(description=f"Trains {builder.__name__} on CIFAR-10.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    (x_train, y_train), (x_test, y_test) = datasets.cifar10.load_data()
    mean, deviation = x_train.mean((0, 1, 2)), x_train.std((0, 1, 2))
    x_train, x_test = (((x - mean) / deviation).astype("float32") for x in (x_train, x_test))

    model = builder(input_shape=(32, 32, 3), classes=10)
    model.summary()
    model.compile(
        optimizer=optimizers.SGD(learning_rate, momentum=0.9, weight_decay=5e-4),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(
        x_train,
        y_train,
        batch_size=args.batch_size,
        epochs=args.epochs,
        validation_data=(x_test, y_test),
        callbacks=[callbacks.ReduceLROnPlateau(factor=0.2, patience=3)],
    )
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")
