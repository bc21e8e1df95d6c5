"""Functions of `ops`: each says where Keras has it, and is found under its own name."""

import inspect
import pickle
from collections import Counter

import pytest

from pydtconv import activations, losses, metrics, ops
from pydtconv.ops.parts import PLACES


def functions_of(module):
    return {name: each for name, each in vars(module).items() if inspect.isfunction(each) and not name.startswith("_")}


def test_each_function_is_exported_once():
    counts = Counter(name for names in PLACES.values() for name in names)
    assert counts.keys() == functions_of(ops).keys() - {"Crop"}  # an operator
    assert set(counts.values()) == {1}
    assert ops.nn.__all__ == sorted(PLACES["nn"])
    assert ops.nn.relu is ops.relu


@pytest.mark.parametrize("module", [ops, ops.image, activations, losses, metrics], ids=lambda m: m.__name__)
def test_functions_can_be_pickled(module):
    for name, function in functions_of(module).items():
        assert pickle.loads(pickle.dumps(function)) is function, name
