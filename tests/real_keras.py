"""Keras itself, where it is installed, as the reference of names, files and numbers."""

import importlib.util
import os
import warnings

import pytest


def import_keras():
    """The module keras, on PyTorch; skips the test where either is missing."""
    if importlib.util.find_spec("keras") is None or importlib.util.find_spec("torch") is None:
        pytest.skip("needs keras and torch")
    os.environ["KERAS_BACKEND"] = "torch"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import keras
    if keras.backend.backend() != "torch":
        pytest.skip("keras is loaded with another backend")
    return keras
