"""Trains the two-convolution MNIST network on the handwritten digits that come with the package.

The digits are enlarged from 8x8 to 28x28 pixels.  Shows the micro-kernel in use, the model, the progress and the
accuracy on digits kept apart, and draws the learning curve.
"""

from __future__ import annotations

import time
from typing import Any

from pydtconv.cli.parser import Parser, whole

SUMMARY = "train a CNN on handwritten digits, without any download"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--epochs", type=whole(1), default=20, help="passes over the training digits (default: 20)")
    parser.add_argument("--batch-size", type=whole(1), default=32, help="digits per step (default: 32)")
    parser.add_argument("--output", default="digits.png", help="picture of the learning curve (default: digits.png)")
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=1, help="equal seeds give equal runs (default: 1)")


def run(args: Any) -> int:
    from pydtconv import config, microkernels, utils
    from pydtconv.applications import MNISTConvNet
    from pydtconv.datasets import digits

    utils.set_random_seed(args.seed)
    (x_train, y_train), (x_test, y_test) = digits.load_data(image_size=28)
    x_train, x_test = (x[..., None].astype(config.floatx()) / 255 for x in (x_train, x_test))
    kernel = microkernels.selected(config.floatx())
    print(f"micro-kernel: {kernel.name}, threads: {config.num_threads()}")
    print(f"digits: {len(x_train)} for training, {len(x_test)} for testing\n")

    model = MNISTConvNet(input_shape=x_train.shape[1:], classes=10)
    model.summary()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    start = time.perf_counter()
    history = model.fit(
        x_train,
        y_train,
        batch_size=args.batch_size,
        epochs=args.epochs,
        validation_data=(x_test, y_test),
    )
    seconds = time.perf_counter() - start
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"\ntest accuracy {accuracy:.2%} after {seconds:.1f} s of training")
    try:
        path = utils.plot_learning_curve(history, args.output, title="pydtconv on handwritten digits")
        print(f"learning curve: {path}")
    except (ImportError, OSError, ValueError) as error:
        print(f"no learning curve: {error}")
    return 0
