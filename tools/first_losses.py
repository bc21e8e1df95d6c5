"""The first losses of scripts under pydtconv beside those under Keras, from equal weights and on equal batches.

It is a file of stand-ins for tools/scripts.py, which a script runs with twice, first under Keras:

export FIRST_LOSSES=folder
python tools/scripts.py SCRIPTS --stand-ins tools/stand_ins.py --stand-ins tools/first_losses.py --keras
python tools/scripts.py SCRIPTS --stand-ins tools/stand_ins.py --stand-ins tools/first_losses.py
python tools/first_losses.py

Under Keras the first `fit` writes the model's weights into the folder; under pydtconv it reads them.  Nothing is
shuffled, dropped or augmented.  The last command prints the losses of both, and their largest relative difference.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(os.environ.get("FIRST_LOSSES", "first_losses"))
#: layers that leave everything as it is, and all whose name begins with Random
IDENTITIES = ("Dropout", "GaussianDropout", "GaussianNoise", "AlphaDropout", "SpatialDropout1D", "SpatialDropout2D")


def without_randomness(layers: Any) -> None:
    """Layers drop, shift and color nothing."""
    for name in (*IDENTITIES, *(name for name in dir(layers) if name.startswith("Random") and name != "RandomCrop")):
        getattr(layers, name).call = lambda self, inputs, *args, **kwargs: inputs
    layers.MultiHeadAttention.dropout = property(lambda self: 0.0, lambda self, value: None)


def watch(keras: Any, name: str) -> None:
    """Makes the first `fit` of a script start from the weights of the folder, and write its losses."""
    own = "pydtconv" in sys.modules
    FOLDER.mkdir(parents=True, exist_ok=True)
    losses: list[float] = []

    class Losses(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            losses.append(float(logs["loss"]))
            (FOLDER / f"{name}.{'pydtconv' if own else 'keras'}.json").write_text(json.dumps(losses))

    old = keras.Model.fit
    signature = inspect.signature(old)

    @functools.wraps(old)
    def fit(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        model = given.arguments["self"]
        if losses:
            return old(*args, **kwargs)
        path = FOLDER / f"{name}.npz"
        if own:
            with np.load(path) as file:
                model.set_weights([file[f"arr_{number}"] for number in range(len(file.files))])
        else:
            np.savez(path, *model.get_weights())
        given.arguments["shuffle"] = False
        given.arguments["callbacks"] = [*(given.arguments.get("callbacks") or []), Losses()]
        return old(*given.args, **given.kwargs)

    keras.Model.fit = fit
    try:
        dataset = importlib.import_module("tensorflow").data.Dataset
    except ImportError:
        return
    dataset.shuffle = lambda self, *args, **kwargs: self


def table() -> str:
    lines = ["| script | Keras | pydtconv | largest difference |", "| --- | --- | --- | --- |"]
    for path in sorted(FOLDER.glob("*.pydtconv.json")):
        name = path.name.removesuffix(".pydtconv.json")
        theirs, ours = (json.loads((FOLDER / f"{name}.{who}.json").read_text()) for who in ("keras", "pydtconv"))
        texts = [" ".join(f"{loss:.6g}" for loss in losses) for losses in (theirs, ours)]
        difference = float(np.max(np.abs(np.divide(ours, theirs) - 1)))
        lines.append(f"| {name} | {texts[0]} | {texts[1]} | {difference:.0e} |")
    return "\n".join(lines)


def main() -> None:
    keras = importlib.import_module("keras")
    without_randomness(keras.layers)
    np.random.seed(0)  # noqa: NPY002 (what scripts draw with)
    random.seed(0)
    watch(keras, Path(sys.argv[1]).stem)


if len(sys.argv) > 1:
    main()
else:
    print(table())
