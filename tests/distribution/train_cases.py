"""Trains what cases.py has and writes what came out: train_cases FOLDER NAMES [OPTION=VALUE ...] of DataParallel.

NAMES: with commas between them.
"""

import ast

import numpy as np

from pydtconv import config, distribution, optimizers, replica, tree, utils
from tests.distribution import cases


def results(model, history, x):
    found = {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    if history is not None:
        found |= {f"history {name}": np.array(values) for name, values in history.history.items()}
    found |= {f"slot{i:02}": variable.numpy() for i, variable in enumerate(model.optimizer.variables)}
    predictions = tree.flatten(model.predict(x, batch_size=cases.BATCH, verbose=0))
    return found | {f"prediction{i}": part for i, part in enumerate(predictions)}


def main(folder, names, *options):
    config.set_floatx("float64")
    given = {name: ast.literal_eval(value) for name, _, value in (option.partition("=") for option in options)}
    distribution.set_distribution(distribution.DataParallel(bucket_size=0.002, **given))
    x, y = cases.images()
    runs = {name: lambda train=train: train(x, y) for name, train in cases.TRAINED.items()}
    for name in cases.OPTIMIZERS:
        runs[name] = lambda name=name: cases.trained_with(getattr(optimizers, name)(0.01), x, y)
    for name, option in cases.OPTIONS.items():
        runs[name] = lambda option=option: cases.trained_with(optimizers.Adam(0.01, **option), x, y)
    for name in names.split(","):
        utils.set_random_seed(7)
        np.savez(f"{folder}/{name}.{replica.current().rank}.npz", **results(*runs[name](), x))
