"""Two steps of training of each of the four networks at a tiny size, then a prediction; memory.sh runs it."""

import sys

import numpy as np

from pydtconv import applications, config, optimizers, utils

NETWORKS = {"vgg16": (2, 32), "resnet34": (2, 32), "googlenet": (2, 32), "densenet121": (2, 32)}
#: their names in the zoo, where Keras has networks of these names
ZOO = {"vgg16": "smallvgg16", "densenet121": "smalldensenet121"}


def train(name: str, batch: int, size: int) -> None:
    utils.set_random_seed(7)
    generator = np.random.default_rng(7)
    x = generator.standard_normal((batch, size, size, 3)).astype("float32")
    labels = generator.integers(0, 10, batch)
    model = applications.build(ZOO.get(name, name), input_shape=(size, size, 3), classes=10)
    model.compile(optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
    losses = [float(model.train_on_batch(x, labels)) for _ in range(2)]
    if not np.isfinite(losses).all() or not np.isfinite(model.predict_on_batch(x)).all():
        sys.exit(f"{name}: expected finite losses, got {losses}")
    print(f"{name}: losses {losses[0]:.3f}, {losses[1]:.3f}", flush=True)


if __name__ == "__main__":
    for name, (batch, size) in NETWORKS.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            train(name, batch, size)
    print(f"threads: {config.num_threads()}")
