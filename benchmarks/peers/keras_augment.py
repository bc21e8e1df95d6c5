"""Steps with a layer of images by Keras: `KERAS_BACKEND=tensorflow python -m benchmarks.peers.keras_augment` and

    NAME SIZE BATCH STEPS SECONDS

as `benchmarks.peers.image_layers.timed` takes them.  Prints its results as a JSON line.
"""

from __future__ import annotations

import json
import sys

from benchmarks.peers import image_layers
from benchmarks.peers.keras_train import keras

if __name__ == "__main__":
    name, size, batch, steps, seconds = sys.argv[1:]
    print(json.dumps(image_layers.timed(keras, name, int(size), int(batch), int(steps), float(seconds))))
