"""Training for whole epochs with Keras: `KERAS_BACKEND=tensorflow python -m benchmarks.peers.keras_epochs` and

    DATA FOLDER EPOCHS BATCH RATE SEED

See epochs.py.  Prints a JSON line: the loss and the accuracy on the test images, in percent, of each epoch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import keras

from benchmarks.peers.epochs import Run, train

if __name__ == "__main__":
    asked = Run.parse(sys.argv[1:])
    model = keras.models.model_from_json((Path(asked.folder) / "model.json").read_text())
    print(json.dumps(train(keras, model, asked)))
