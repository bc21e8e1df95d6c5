"""Trains the two-convolution MNIST network on the handwritten digits that come with the package, in some seconds.

The digits are enlarged from 8x8 to 28x28 pixels.  Shows what happens, the model and the progress, then three of the
digits that were kept apart, with what the network takes them for, and draws the learning curve.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pydtconv.cli.parser import Parser, whole

SUMMARY = "train a CNN on handwritten digits, without any download"
#: from paper to ink, for pixels of 0 to 255
_SHADES = " .:-=+*#%@"
_NEXT = """
next:
  pydtconv run script.py            your Keras script as it is, on pydtconv
  pydtconv train --model resnet20 --dataset digits --epochs 3
                                    a network of the zoo; --data FOLDER trains on photographs of yours
  pydtconv plan --model resnet34    what a step of training runs, and how much memory it takes"""


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
    _, (small, _) = digits.load_data()
    (x_train, y_train), (x_test, y_test) = digits.load_data(image_size=28)
    x_train, x_test = (x[..., None].astype(config.floatx()) / 255 for x in (x_train, x_test))
    print(
        f"A convolutional network looks at {len(x_train)} handwritten digits, {args.epochs} times each, and then reads "
        f"{len(x_test)} others.\nIt takes some seconds, and nothing is downloaded."
    )
    kernel = microkernels.selected(config.floatx())
    print(f"micro-kernel: {kernel.name}, threads: {config.num_threads()}\n")

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
    scores = model.predict(x_test, verbose=0)
    found = scores.argmax(-1)
    print(f"\ntest accuracy {np.mean(found == y_test):.2%} after {seconds:.1f} s of training\n")
    chosen = np.argsort(found != y_test, kind="stable")[[0, 1, -1]]  # two that it knows, and one that it may not
    print("\n".join(side_by_side(small[chosen])))
    wrong = {i: f": it is a {y_test[i]}" for i in chosen if found[i] != y_test[i]}
    said = (f"a {found[i]}, {scores[i].max():.0%} sure{wrong.get(i, '')}" for i in chosen)
    print("   ".join(f"{text:24}" for text in said).rstrip())
    try:
        path = utils.plot_learning_curve(history, args.output, title="pydtconv on handwritten digits")
        print(f"\nlearning curve: {path}")
    except (ImportError, OSError, ValueError) as error:
        print(f"\nno learning curve: {error}")
    print(_NEXT)
    return 0


def side_by_side(images: np.ndarray) -> list[str]:
    """Images of 0 to 255 as lines of text, next to each other."""
    signs = [[[_SHADES[int(pixel) * 9 // 255] * 2 for pixel in row] for row in image] for image in images]
    return ["   ".join(f"{''.join(row):24}" for row in rows).rstrip() for rows in zip(*signs, strict=True)]
