"""Tensors, strings, dtypes, data sets, files: they give what was recorded of TensorFlow."""

import importlib.util

import numpy as np
import pytest

from tests.compat.tensorflow_recorded import NAMES, RECORDED
from tests.compat.tensorflow_values import EXPRESSIONS, outcomes

#: names that no expression has, and that have nothing to be compared
OF_NO_VALUE = {
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Iterator",
    "NumpyIterator",
    "TFRecordWriter",
    "ThreadingOptions",
}
#: modules of which not each name is in an expression: images have a file of their own, others are methods of Dataset
IN_PART = {"data.experimental": "", "io": "jpeg png bmp gif image"}


def test_values_are_those_of_tensorflow(tf, tmp_path):
    found = outcomes(tf, np, tmp_path)
    assert found.keys() == RECORDED.keys()
    assert {name: value for name, value in found.items() if value != RECORDED[name]} == {}


@pytest.mark.slow
def test_values_were_recorded_of_tensorflow(tmp_path):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs tensorflow")
    import tensorflow

    found = outcomes(tensorflow, np, tmp_path)
    assert {name: value for name, value in found.items() if value != RECORDED[name]} == {}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_there_or_says_why_not(tf, module):
    home = tf
    for part in module.split("."):
        home = getattr(home, part)
    text, others = "".join(EXPRESSIONS.values()), IN_PART.get(module, "-").split()
    for name in NAMES[module].split():
        if not hasattr(home, name):
            with pytest.raises(AttributeError, match=rf"pydtconv has no \w+\.{module}\.{name}: \w+"):
                getattr(home, name)
        else:
            told = not others or name in text or name in OF_NO_VALUE or any(each in name for each in others)
            assert told, f"tf.{module}.{name}"
